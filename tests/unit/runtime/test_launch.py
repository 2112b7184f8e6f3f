"""What ttnn is handed: descriptors, tensors in order, and again for another call."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest

from tilewright import ttl
from tilewright.diagnostics import KernelError
from tilewright.program import TensorSpec
from tilewright.runtime import devices, launch
from tilewright.runtime.devices import load_ttnn

SOURCE = {"out": "ttl.math.exp(a * b)"}
FACTS = {"shape": (64, 64), "dtype": "bf16"}


@pytest.fixture
def program(kernels):
    source = kernels.text.elementwise(SOURCE, block=(1, 1), blocks=(2, 2), grid=(2, 1))
    return kernels.compile(source, *(TensorSpec(name=name, **FACTS) for name in ("a", "b", "out")))


def test_descriptor(ttnn, make_tensor, make_device, program):
    device = make_device()
    described = launch.describe(program, [make_tensor(device, 1000 * n, words=(n, 2048)) for n in (1, 2, 3)], device=device)
    roles = [thread.role for thread in program.threads]
    kernels = dict(zip(roles, described.kernels, strict=True))
    assert kernels["reader"].compile_time_args == [0, 1, 1, 2048, 2, 2048]
    assert kernels["writer"].compile_time_args == [2, 3, 2048]
    assert [core.positional for core, _ in kernels["reader"].runtime_args] == [(0, 0), (1, 0)]
    assert [words[:2] for _, words in kernels["reader"].runtime_args] == [[1000, 2000]] * 2
    assert kernels["compute"].kernel_source == program.cpp["compute"]
    assert kernels["compute"].config.math_fidelity == program.config.math_fidelity == "HiFi3" and not kernels["compute"].config.fp32_dest_acc_en
    assert {name: kernels[name].config.kind for name in ("reader", "writer")} == {
        "reader": "ReaderConfigDescriptor", "writer": "WriterConfigDescriptor"
    }  # fmt: skip
    assert [(buffer.total_size, buffer.format_descriptors[0].page_size) for buffer in described.cbs] == [(2 * 2048, 2048)] * 3


def test_padding_of_inputs_is_zero_before_the_launch(ttnn, make_tensor, make_device, program, monkeypatch):
    cleared = []
    monkeypatch.setattr(ttnn, "fill_implicit_tile_padding", lambda tensor, value: cleared.append((tensor, value)) or tensor, raising=False)
    tensors = [make_tensor(make_device(), place) for place in range(3)]
    padded = tuple(replace(spec, logical_shape=(60, 60)) for spec in program.tensors)
    monkeypatch.setattr(program, "tensors", padded)
    assert launch.run(program, tensors) == "result"
    assert cleared == [(tensors[0], 0), (tensors[1], 0)]


def test_another_call_changes_addresses_only(ttnn, make_tensor, make_device, program):
    device = make_device()
    first = launch.describe(program, [make_tensor(device, 100 * n) for n in range(3)], device=device)
    kernels = list(first.kernels)
    second = launch.describe(program, [make_tensor(device, 100 * n + 7) for n in range(3)], device=device)
    assert second is first and all(one is other for one, other in zip(kernels, second.kernels, strict=True))
    reader = next(kernel for thread, kernel in zip(program.threads, kernels, strict=True) if thread.role == "reader")
    assert [words[:2] for _, words in reader.runtime_args] == [[7, 107]] * 2
    elsewhere = launch.describe(program, [make_tensor(device, 0, words=(0, 2048)) for _ in range(3)], device=device)
    assert elsewhere is not first, "tensors in other memory have other compile-time arguments"


def test_outputs_come_last(ttnn, make_tensor, make_device, kernels):
    source = kernels.text.elementwise(SOURCE, block=(1, 1)).replace("(a, b, out)", "(out, a, b)")
    program = kernels.compile(source, *(TensorSpec(name=name, shape=(32, 32), dtype="bf16") for name in ("out", "a", "b")), metal="0.81")
    tensors = [make_tensor(make_device(), place) for place in range(3)]
    assert launch.run(program, tensors) == "result"
    assert [tensor.address for tensor in ttnn.launched[0][0]] == [1, 2, 0]


def in_place_program():
    @ttl.operation(grid=(2, 1))
    def negate(x):
        old = ttl.make_tensor_backed_dfb(x, shape=(1, 1), byte_offset=2048)
        new = ttl.make_tensor_backed_dfb(x, shape=(1, 1), byte_offset=2048)

        @ttl.compute()
        def compute():
            new.reserve().store(-old.wait())

    facts = {"sharding": "height", "shard_shape": (64, 32), "shard_cores": ((0, 0), (1, 0)), "memory": "l1"}
    return negate.compile(TensorSpec(name="x", shape=(128, 32), dtype="bf16", **facts), metal="0.81")


def test_buffers_in_shards_follow_their_tensor(ttnn, make_tensor, make_device):
    program, device = in_place_program(), make_device()
    first, second = (make_tensor(device, address) for address in (64, 128))
    described = launch.describe(program, [first], device=device)
    assert [(cb.kind, cb.positional) for cb in described.cbs] == [("cb_descriptor_from_sharded_tensor", (n, first)) for n in (0, 1)]
    assert [(cb.address_offset, cb.total_size) for cb in described.cbs] == [(2048, 2048)] * 2
    assert launch.describe(program, [second], device=device) is described
    assert [cb.positional for cb in described.cbs] == [(0, second), (1, second)]


def test_a_kernel_in_place_names_its_tensor_twice(ttnn, make_tensor, make_device):
    """ttnn wants an input and an output."""
    tensor = make_tensor(make_device(), 64)
    launch.run(in_place_program(), [tensor])
    assert ttnn.launched[0][0] == [tensor, tensor]


def test_a_mesh_runs_the_program_everywhere(ttnn, make_tensor, make_device, program):
    device = make_device(count=4)
    launch.run(program, [make_tensor(device, place) for place in range(3)])
    described = ttnn.launched[0][1]
    assert described.kind == "MeshProgramDescriptor"
    ((place, inner),) = described.positional[0].items()
    assert place.positional == ("4 devices",) and inner.kind == "ProgramDescriptor"


def test_f32_goes_to_dst_unchanged(ttnn, make_tensor, make_device, kernels):
    source = kernels.text.elementwise({"out": "ttl.math.exp(a)"}, ("a",))
    program = kernels.compile(source, *(TensorSpec(name=name, shape=(32, 32), dtype="f32") for name in ("a", "out")))
    described = launch.describe(program, [make_tensor(make_device(), place) for place in range(2)])
    config = next(kernel.config for kernel in described.kernels if kernel.config.kind == "ComputeConfigDescriptor")
    assert config.fp32_dest_acc_en and program.config.unpack_to_dest
    assert [place for place, mode in enumerate(config.unpack_to_dest_mode) if mode == "exact"] == list(program.config.unpack_to_dest)
    assert len(config.unpack_to_dest_mode) == 32


@pytest.mark.parametrize(
    ("device", "tensor", "code", "words"),
    [
        ({"columns": 1}, {}, "TW602", "needs 2x1 cores, the device has 1x8"),
        ({"chip": "BLACKHOLE"}, {}, "TW602", "was compiled for wormhole_b0, the device is a blackhole"),
        ({}, {"layout": "row major"}, "TW106", "tensor 'a' is not in tiles"),
        ({}, {"storage": "host"}, "TW106", "tensor 'a' is in host memory"),
    ],
)
def test_what_cannot_run_is_said(ttnn, make_tensor, make_device, program, device, tensor, code, words):
    place = make_device(**device)
    with pytest.raises(KernelError) as caught:
        launch.run(program, [make_tensor(place, 0, **tensor) for _ in range(3)])
    assert code in str(caught.value) and words in str(caught.value) and not ttnn.launched


def test_without_a_device(ttnn, program):
    with pytest.raises(KernelError, match=r"TW602.*ttnn cannot open a device: No chips detected in the cluster \(0\)"):
        launch.run(program, [np.zeros((64, 64), np.float32)] * 3)


def test_without_ttnn(monkeypatch, program):
    monkeypatch.setitem(__import__("sys").modules, "ttnn", None)
    with pytest.raises(KernelError, match="TW601"):
        launch.run(program, [])


def test_options_follow_the_device(ttnn, make_tensor, make_device, program):
    fitted = launch.fitted(program.options, [make_tensor(make_device(chip="BLACKHOLE"), 0)])
    assert (fitted.arch, fitted.metal) == ("blackhole", "0.81")


@pytest.mark.parametrize(("columns", "given"), [(13, None), (11, (11, 10))], ids=["p150", "p100"])
def test_the_whole_chip_is_what_the_card_has(ttnn, make_tensor, make_device, program, columns, given):
    device = make_device(chip="BLACKHOLE", columns=columns, rows=10)
    fitted = launch.fitted(program.options, [make_tensor(device, 0)])
    assert fitted.card_grid == given and fitted.chip.grid == (columns, 10)


@pytest.mark.parametrize(("message", "reason"), [("a\ninfo:\nwhy\nbacktrace:", "why"), ("plain", "plain"), ("", "no reason given")])
def test_reason_of(message, reason):
    assert devices.reason_of(message) == reason


def test_two_indices_over_one_allocation(ttnn, make_tensor, make_device, kernels, block_kernels):
    """A buffer that both the matrix unit and exact readers use is one allocation with two formats."""
    source = block_kernels.single_block({"x": (1, 1), "y": (1, 1)}, [(1, 1)], "o0.store(x + x @ y)")
    program = kernels.compile(source, *(TensorSpec(name=name, shape=(32, 32), dtype="f32") for name in ("x", "y", "out")))
    described = launch.describe(program, [make_tensor(make_device(), place) for place in range(3)])
    assert [[form.buffer_index for form in buffer.format_descriptors] for buffer in described.cbs] == [[0, 3], [1], [2]]
    assert [buffer.total_size for buffer in described.cbs] == [4096] * 3
    assert 3 in program.config.unpack_to_dest and 0 not in program.config.unpack_to_dest


def test_tensors_in_rows(ttnn, make_tensor, make_device, kernels):
    ttnn.ROW_MAJOR_LAYOUT = "row major"
    source = kernels.text.elementwise(SOURCE, block=(1, 1), blocks=(2, 2), grid=(2, 1))
    layouts = {"a": "row_major", "b": "tile", "out": "row_major"}
    specs = [TensorSpec(name=name, layout=layout, **FACTS) for name, layout in layouts.items()]
    program = kernels.compile(source, *specs, metal="0.81")
    device = make_device()
    placed = [make_tensor(device, 0, layout=layout) for layout in ("row major", "tile", "row major")]
    launch.run(program, placed)
    assert len(ttnn.launched) == 1
    with pytest.raises(KernelError, match="tensor 'a' is not in rows"):
        launch.run(program, placed[1:] + placed[:1])


def test_buffers_of_some_cores(ttnn, make_tensor, make_device, program):
    program.buffers = (replace(program.buffers[0], cores=((1, 0),)), *program.buffers[1:])
    device = make_device()
    described = launch.describe(program, [make_tensor(device, 0) for _ in range(3)], device=device)
    ((corners,),) = described.cbs[0].core_ranges.positional
    assert [corner.positional for corner in corners.positional] == [(1, 0), (1, 0)]
    assert described.cbs[1].core_ranges == described.kernels[0].core_ranges != described.cbs[0].core_ranges


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("TT_THROW @ program.cpp:1\ninfo:\nbuffers grow beyond L1\nbacktrace:\n --- x", "buffers grow beyond L1"),
        ("TT_THROW @ build.cpp:1\ninfo:\ntrisc1 build failed\na.cpp:3:1: error: no 'f'\nbacktrace:\n --- x", "a.cpp:3:1: error: no 'f'"),
    ],
)
def test_a_refused_launch_says_why(ttnn, make_tensor, make_device, program, monkeypatch, said, reason):
    def refuse(tensors, described):
        raise RuntimeError(said)

    monkeypatch.setattr(ttnn, "generic_op", refuse, raising=False)
    device = make_device()
    with pytest.raises(KernelError) as caught:
        launch.run(program, [make_tensor(device, 100 * n) for n in range(3)])
    assert str(caught.value).startswith(f"error[TW606]: ttnn cannot run '{program.name}': {reason}")


@pytest.mark.parametrize(("given", "expected"), [({}, None), ({"TT_METAL_SIMULATOR": "x.so"}, "1"), ({"TT_METAL_SIMULATOR": "x.so", "TT_METAL_SLOW_DISPATCH_MODE": "0"}, "0")])
def test_simulators_are_driven_by_the_host(ttnn, monkeypatch, given, expected):
    monkeypatch.delenv("TT_METAL_SIMULATOR", raising=False)
    monkeypatch.setenv("TT_METAL_SLOW_DISPATCH_MODE", "")  # so that it is taken back
    monkeypatch.delenv("TT_METAL_SLOW_DISPATCH_MODE")
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    load_ttnn()
    assert os.environ.get("TT_METAL_SLOW_DISPATCH_MODE") == expected
