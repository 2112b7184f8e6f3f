"""The decorator, its options, the grid, and the kernel object."""

from __future__ import annotations

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

from tilewright import ttl
from tilewright.diagnostics import KernelError
from tilewright.grid import folded_grid
from tilewright.hardware import CHIPS
from tilewright.jit.kernel import Kernel
from tilewright.lang.cores import resolve_grid
from tilewright.lang.kernel import compile_options
from tilewright.lang.names import MODULE_NAMES

SCALE = 2.0
OFFSETS = {"all": 1.0}


def shifted(block):
    return block + OFFSETS["all"]


def array(rows: int = 32, cols: int = 32) -> np.ndarray:
    return np.zeros((rows, cols), ml_dtypes.bfloat16)


@ttl.operation(grid=(1, 1))
def scale(lhs, out, times=1):
    a_cb = ttl.make_dataflow_buffer_like(lhs, shape=(1, 1))
    o_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1))

    @ttl.compute()
    def compute():
        with a_cb.wait() as a, o_cb.reserve() as o:
            o.store(a * (SCALE * times))

    @ttl.datamovement()
    def read():
        with a_cb.reserve() as block:
            ttl.copy(lhs[0, 0], block).wait()

    @ttl.datamovement()
    def write():
        with o_cb.wait() as block:
            ttl.copy(block, out[0, 0]).wait()


def test_importing_the_package_is_light():
    code = "import sys, tilewright; print([m for m in ('numpy', 'xdsl', 'torch') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
    code = "import sys; from tilewright import ttl; print([m for m in ('xdsl', 'torch', 'ttnn') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_both_generations_are_one_object():
    for new, old in MODULE_NAMES.items():
        assert getattr(ttl, new) is getattr(ttl, old)
    assert {"exp", "add", "relu"} <= set(dir(ttl.math))
    assert repr(ttl.math.exp) == "ttl.math.exp"


def test_call_computes():
    lhs = np.arange(1024, dtype=np.float32).reshape(32, 32) / 64
    out = np.zeros((32, 32), np.float32)
    scale(ttl.bf16(lhs), ttl.bf16(out), times=3)
    expected = 6 * lhs.astype(ml_dtypes.bfloat16).astype(np.float32)
    np.testing.assert_allclose(out, expected, rtol=2**-7)


def test_programs_are_remembered_until_something_changes(monkeypatch):
    first = scale.compile(array(), array())
    assert scale.compile(array(), array()) is first
    assert scale.compile(array(), array(), 2) is not first
    assert scale.compile(array(64, 32), array()) is not first
    assert scale.compile(array(), array(), enable_unroll=True) is not first
    monkeypatch.setitem(globals(), "SCALE", 4.0)
    assert scale.compile(array(), array()) is not first


def test_what_helpers_read_is_part_of_the_kernel(monkeypatch):
    @ttl.operation(grid=(1, 1))
    def shift(lhs, out):
        a_cb = ttl.make_dataflow_buffer_like(lhs, shape=(1, 1))
        o_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1))

        @ttl.compute()
        def compute():
            with a_cb.wait() as a, o_cb.reserve() as o:
                o.store(shifted(a))

        @ttl.datamovement()
        def read():
            with a_cb.reserve() as block:
                ttl.copy(lhs[0, 0], block).wait()

        @ttl.datamovement()
        def write():
            with o_cb.wait() as block:
                ttl.copy(block, out[0, 0]).wait()

    first = shift.compile(array(), array())
    assert shift.compile(array(), array()) is first
    monkeypatch.setitem(OFFSETS, "all", 5.0)
    assert shift.compile(array(), array()).cpp["compute"] != first.cpp["compute"]


def test_constant_arguments_reach_the_code():
    assert "0x40c00000u /* 6 */" in scale.compile(array(), array(), 3).cpp["compute"]


def test_wrong_number_of_arguments():
    with pytest.raises(KernelError, match="missing a required argument: 'out'"):
        scale.compile(array())
    with pytest.raises(KernelError, match="unknown option 'speed'"):
        scale.compile(array(), array(), speed=3)


def test_decorator_without_arguments():
    @ttl.kernel
    def empty(lhs):
        pass

    assert isinstance(empty, Kernel) and empty.name == "empty"
    with pytest.raises(KernelError, match="has no threads"):
        empty.compile(array())


def test_language_names_outside_a_kernel():
    for use in (
        lambda: ttl.copy(1, 2),
        lambda: ttl.math.exp(1.0),
        lambda: ttl.make_circular_buffer_like(array(), shape=(1, 1)),
        lambda: ttl.grid_size(dims=2),
        lambda: ttl.Program(),
        lambda: ttl.compute()(lambda: None),
    ):
        with pytest.raises(KernelError) as caught:
            use()
        (found,) = caught.value.diagnostics
        assert found.code == "TW009" and found.span.file == __file__
    with pytest.raises(AttributeError, match=r"did you mean ttl\.math\.exp"):
        ttl.math.expo  # noqa: B018
    with pytest.raises(KernelError, match="not supported yet"):
        ttl.DeviceDomain(0)


def test_arguments_of_the_decorator():
    span = scale.span
    options = compile_options(
        {
            "fp32_dest_acc_en": True,
            "dst_full_sync_en": False,
            "math_fidelity": "MathFidelity.HiFi2",
            "options": "--no-ttl-fpu-binary-ops --ttl-maximize-dst --ttl-combine-pack-tiles=0",
            "num_outs": 1,
            "memory_space": "L1",
            "tiled": True,
            "indexing_maps": [],
            "iterator_types": [],
            "allocator": "linear-scan",
        },
        span,
    )
    assert (options.fp32_dest_acc, options.full_sync, options.math_fidelity) == (True, False, "HiFi2")
    assert (options.fpu_binary_ops, options.combine_packs, options.allocator) == (False, False, "linear-scan")
    no_options = ({"fp32_dest_acc_en": 1}, {"math_fidelity": "HiFi9"}, {"options": "--ttl-nonsense"}, {"colour": "red"})
    no_values = ({"dst_capacity": 0}, {"dst_capacity": "4"}, {"metal": "9.x"}, {"metal": None}, {"arch": "grayskull"})
    for wrong in (*no_options, *no_values, {"inits": "never"}, {"enable_unroll": "yes"}):
        with pytest.raises(KernelError) as caught:
            compile_options(wrong, span)
        assert caught.value.diagnostics[0].code == "TW015"
    with pytest.raises(KernelError, match="1 or more"):
        scale.compile(array(), array(), dst_capacity=-1)
    with pytest.raises(KernelError, match="the largest DST has 16"):
        scale.compile(array(), array(), dst_capacity=17)
    with pytest.raises(KernelError, match="did you mean fp32_dest_acc"):
        compile_options({"fp32_dest_ac": True}, span)


def test_grids():
    chip, span = CHIPS["wormhole_b0"], scale.span
    assert resolve_grid((2, 3), chip, span) == (2, 3)
    assert resolve_grid("auto", chip, span) == resolve_grid("full", chip, span) == chip.grid
    assert resolve_grid(lambda: (4,), chip, span) == (4,)
    assert resolve_grid(None, chip, span) == (1, 1)
    assert resolve_grid((8, 4, 2), chip, span) == (8, 4, 2)
    for wrong in ((9, 1), (1, 9), (8, 8, 2), (65,), (0, 1), (1.5, 1), "all", (1, 1, 1, 1)):
        with pytest.raises(KernelError):
            resolve_grid(wrong, chip, span)
    for raises in (ttl.operation(grid=(1, 1)), lambda: 1 // 0):
        with pytest.raises(KernelError, match="TW017"):
            resolve_grid(raises, chip, span)
    assert resolve_grid((13, 10), CHIPS["blackhole"], span) == (13, 10)


def test_folding_of_sizes():
    assert folded_grid((8, 8), 1) == (64,)
    assert folded_grid((8, 8, 8), 2) == (8, 64)
    assert folded_grid((8, 8), 3) == (8, 8, 1)


@pytest.mark.parametrize("argument", [{"tiled": False}, {"memory_space": "DST"}])
def test_statements_about_tensors_that_are_not_so(argument):
    """They were read and dropped: each tensor says itself how and where it lies."""
    with pytest.raises(KernelError, match="TW015"):
        ttl.kernel(grid=(1, 1), **argument)(lambda out: None)
