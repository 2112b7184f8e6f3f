"""What the kernel files look like: names, comments, arguments, headers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tilewright import execution
from tilewright.diagnostics import KernelError
from tilewright.dialects import tile_ops
from tilewright.emit.arguments import numbered, reserved_words
from tilewright.emit.spelling import SPELLINGS, Written, headers, release, spell
from tilewright.program import TensorAddress


def compiled(kernels, make_array, outputs, inputs="ab", tiles=(1, 1), **choices):
    layout = {key: choices.pop(key) for key in ("lets", "block", "blocks", "grid") if key in choices}
    source = kernels.text.elementwise(outputs, tuple(inputs), **layout)
    return kernels.compile(source, *[make_array(tiles, "bf16") for _ in range(len(inputs) + len(outputs))], **choices), source


def test_comments_name_the_python_line_and_the_value(kernels, make_array):
    program, source = compiled(kernels, make_array, {"out": "product - a"}, lets=[("product", "a * b")])
    line = source.splitlines().index("        product = a * b") + 1
    assert f"// product, line {line}" in program.cpp["compute"]


def test_loops_of_the_source_are_loops(kernels, make_array):
    program, _ = compiled(kernels, make_array, {"out": "a + b"}, tiles=(3, 4), blocks=(3, 4))
    for text in program.cpp.values():
        assert "for (uint32_t row = 0; row < 3; ++row) {" in text
        assert "for (uint32_t column = 0; column < 4; ++column) {" in text


def test_bounds_checks_are_branches(kernels, make_array):
    program, _ = compiled(kernels, make_array, {"out": "a + b"}, tiles=(5, 3), blocks=(5, 3), grid=(2, 2))
    for text in program.cpp.values():
        assert re.search(r"if \(.* < 5\) \{", text) and re.search(r"if \(.* < 3\) \{", text)


def test_arguments_are_read_in_the_order_they_are_given(kernels, make_array):
    program, _ = compiled(kernels, make_array, {"out": "a + b"}, tiles=(4, 4), blocks=(4, 4), grid=(2, 2))
    for thread in program.threads:
        text = program.cpp[thread.role]
        slots = [int(slot) for slot in re.findall(r"= get_compile_time_arg_val\((\d+)\)", text)]
        assert slots == list(range(sum(each.KIND == "cb" for each in thread.compile_time_args)))
        runtime = [int(slot) for slot in re.findall(r"get_arg_val<uint32_t>\((\d+)\)", text)]
        assert sorted(runtime) == list(range(len(thread.runtime_args)))
    reader = next(thread for thread in program.threads if thread.role == "reader")
    assert [entry for entry in reader.runtime_args if entry.KIND == "address"] == [TensorAddress(0), TensorAddress(1)]
    text = program.cpp["reader"]
    assert "TensorAccessorArgs<2>()" in text and "TensorAccessorArgs<a_args.next_compile_time_args_offset()>()" in text


def test_scalars_are_written_as_bits_with_their_value(kernels, make_array):
    program, _ = compiled(kernels, make_array, {"out": "a * 2.5"}, "a")
    assert "0x40200000u /* 2.5 */" in program.cpp["compute"]


AWKWARD = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(float, double, auto):
    new = ttl.make_dataflow_buffer_like(float, shape=(1, 1), block_count=2)
    copy_tile = ttl.make_dataflow_buffer_like(double, shape=(1, 1), block_count=2)
    kernel_main = ttl.make_dataflow_buffer_like(auto, shape=(1, 1), block_count=2)

    @ttl.compute()
    def template():
        for register in range(2):
            with new.wait() as x, copy_tile.wait() as y, kernel_main.reserve() as o:
                switch = ttl.math.exp(x)
                o.store(switch - y * x)

    @ttl.datamovement()
    def read():
        for default in range(2):
            with new.reserve() as x, copy_tile.reserve() as y:
                ttl.copy(float[0:1, default : default + 1], x).wait()
                ttl.copy(double[0:1, default : default + 1], y).wait()

    @ttl.datamovement()
    def write():
        for this in range(2):
            with kernel_main.wait() as o:
                ttl.copy(o, auto[0:1, this : this + 1]).wait()
"""

KEYWORDS = {"auto", "default", "double", "float", "new", "register", "switch", "template", "this"}


def test_python_names_that_cpp_reserves(kernels, make_array):
    """Keywords and the API's own functions are no variable names."""
    program = kernels.compile(AWKWARD, *[make_array((1, 2), "bf16") for _ in range(3)])
    for text in program.cpp.values():
        declared = re.findall(r"(?:const|constexpr) (?:uint32_t|auto|bool) (\w+) =|for \(uint32_t (\w+) =", text)
        names = {name for pair in declared for name in pair if name}
        assert names and not names & {*KEYWORDS, "copy_tile", "kernel_main"}
        calls = set(re.findall(r"\b([a-z_0-9]+)(?:<[^;]*>)?\(", text))
        assert not names & calls


def test_such_a_kernel_compiles_and_runs(kernels, make_array):
    arrays = [make_array((1, 2), "bf16", -1, 1) for _ in range(2)]
    simulated, native = make_array((1, 2), "bf16"), make_array((1, 2), "bf16")
    program = kernels.run(AWKWARD, *arrays, simulated)
    with execution.session(mode=execution.NATIVE):
        execution.run(program, [*arrays, native])
    assert simulated.tobytes() == native.tobytes()


def test_every_spelling_is_reserved():
    """A variable of the same name would hide the function."""
    shape, template = ("0", "1", "1", "1"), ("EltwiseBinaryType::ELWADD", "EltwiseBinaryReuseDestType::DEST_TO_SRCA")
    for name, entries in SPELLINGS.items():
        for _, spelling in entries:
            text = spelling(Written(name, ("x", "y", "z"), template, "DataFormat::Float32", shape))
            assert re.match(r"\w+", text)[0] in reserved_words()


def test_releases():
    assert release("0.62") == (0, 62) and release("0.81.1") == (0, 81)
    for wrong in ("", "1", "new", "0.x", "0.5"):
        with pytest.raises(KernelError, match="TW601"):
            release(wrong)


def test_spelling_picks_the_newest_that_exists():
    call = Written("copy_tile_init", ("cb",), ())
    assert [spell(call, version) for version in ((0, 62), (0, 77), (0, 78), (0, 99))] == [
        "copy_tile_init(cb)",
        "copy_tile_init(cb)",
        "copy_init(cb)",
        "copy_init(cb)",
    ]
    for name, entries in SPELLINGS.items():
        since = [version for version, _ in entries]
        assert since == sorted(since) and since[0] == (0, 62), name


def test_dest_reuse_names_its_op_in_new_releases():
    template = ("EltwiseBinaryType::ELWSUB", "EltwiseBinaryReuseDestType::DEST_TO_SRCA")
    call = Written("binary_dest_reuse_tiles", ("cb", "0", "1"), template)
    assert spell(call, (0, 69)) == f"binary_dest_reuse_tiles<{', '.join(template)}>(cb, 0, 1)"
    assert spell(call, (0, 78)) == f"sub_reuse_dest_tiles<{template[1]}>(cb, 0, 1)"


@pytest.mark.parametrize("version", [(0, 62), (0, 69), (0, 78)])
def test_each_call_of_the_table_has_its_header(version):
    folder = "compute_kernel_api/" if version < (0, 69) else "api/compute/"
    for row in tile_ops.ROWS:
        for form in row.forms:
            lines = headers([form.call], version)
            name = Path(form.header).name
            general = "compute_kernel_api.h" in lines[-1] or any("compute_kernel_api.h" in line for line in lines)
            assert any(line.endswith(f'{name}"') for line in lines) or general, f"{form.call}: {lines}"
            assert f'#include "{folder}common.h"' in lines


@pytest.mark.parametrize("metal", ["0.69", "0.74", "0.78", "0.81"])
def test_includes_stand_in_the_order_of_hand_written_kernels(metal):
    """digamma.h before tile_move_copy.h makes a name of the unpacker's library ambiguous in ttnn 0.78."""
    calls = ["digamma_tile", "add_binary_tile", "mul_tiles", "matmul_tiles", "copy_tile", "pack_tile", "init_sfpu", "rdiv_tile"]
    lines = [line.split("/")[-1].rstrip('"') for line in headers(calls, release(metal)) if "compute" in line]
    assert lines[0] == "common.h"
    moved = max(lines.index(name) for name in ("tile_move_copy.h", "pack.h", "eltwise_binary.h", "matmul.h"))
    assert moved < lines.index("eltwise_binary_sfpu.h") < lines.index("binop_with_scalar.h") < lines.index("rdiv.h")
    assert moved < lines.index("digamma.h")


def test_names_end_with_their_block_and_numbers_are_told_from_digits(kernels, make_array):
    program, _ = compiled(kernels, make_array, {"out": "a + b"}, tiles=(4, 4), block=(2, 2), blocks=(2, 2))
    for text in program.cpp.values():
        assert not re.search(r"\bindex2\b", text)  # sibling loops declare their own
    assert [numbered(name, number) for name, number in (("row", 1), ("row", 2), ("a_l1", 2))] == ["row", "row2", "a_l1_2"]
