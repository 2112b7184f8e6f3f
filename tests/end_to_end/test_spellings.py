"""One kernel, many spellings: both generations of Python names give the same C++; every ttnn release gets only names it has."""

from __future__ import annotations

import re

import pytest

from tilewright import execution
from tilewright.diagnostics import KernelError
from tilewright.standins import finder

FIRST_GENERATION = """
from ttlang import ttl, make_circular_buffer_like
from ttlang.operators import copy
from ttlang.ttl_api import Program

@ttl.kernel(grid=(2, 2))
def kernel(a, b, out):
    a_cb = make_circular_buffer_like(a, shape=(2, 1), buffer_factor=2)
    b_cb = make_circular_buffer_like(b, shape=(2, 1), buffer_factor=2)
    out_cb = make_circular_buffer_like(out, shape=(2, 1), buffer_factor=2)

    @ttl.compute()
    def add():
        x, y = ttl.core(dims=2)
        for n in range(x + 1):
            l = a_cb.wait()
            r = b_cb.wait()
            o = out_cb.reserve()
            o.store(ttl.math.exp(l) + r * 2.0)
            a_cb.pop()
            b_cb.pop()
            out_cb.push()

    @ttl.datamovement()
    def read():
        x, y = ttl.core(dims=2)
        for n in range(x + 1):
            l = a_cb.reserve()
            copy(a[2 * y : 2 * y + 2, n : n + 1], l).wait()
            a_cb.push()
            r = b_cb.reserve()
            copy(b[2 * y : 2 * y + 2, n : n + 1], r).wait()
            b_cb.push()

    @ttl.datamovement()
    def write():
        x, y = ttl.core(dims=2)
        for n in range(x + 1):
            o = out_cb.wait()
            copy(o, out[2 * y : 2 * y + 2, n : n + 1]).wait()
            out_cb.pop()

    return Program(add, read, write)(a, b, out)
"""

SECOND_GENERATION = '''
"""The same kernel as it is written today."""
import ttl


@ttl.operation(grid=(2, 2))
def kernel(a, b, out):
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(2, 1), block_count=2)
    b_cb = ttl.make_dataflow_buffer_like(b, shape=(2, 1), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(2, 1), block_count=2)

    @ttl.compute()
    def add():
        x, y = ttl.node(dims=2)
        for n in range(x + 1):
            with a_cb.wait() as l, b_cb.wait() as r, out_cb.reserve() as o:
                o.store(ttl.math.exp(l) + r * 2.0)

    @ttl.datamovement()
    def read():
        x, y = ttl.node(dims=2)
        for n in range(x + 1):
            with a_cb.reserve() as l:
                ttl.copy(a[2 * y : 2 * y + 2, n : n + 1], l).wait()
            with b_cb.reserve() as r:
                ttl.copy(b[2 * y : 2 * y + 2, n : n + 1], r).wait()

    @ttl.datamovement()
    def write():
        x, y = ttl.node(dims=2)
        for n in range(x + 1):
            with out_cb.wait() as o:
                ttl.copy(o, out[2 * y : 2 * y + 2, n : n + 1]).wait()
'''


def without_lines(text: str) -> str:
    """C++ without the numbers of source lines."""
    text = re.sub(r",? *line \d+", "", text)
    return re.sub(r" *// *$", "", text, flags=re.MULTILINE)


def released(text: str) -> list[str]:
    """Lines, with pops and pushes that follow each other in one order: leaving a ``with`` says no order."""
    lines = without_lines(text).splitlines()
    start = 0
    while start < len(lines):
        end = start
        while end < len(lines) and re.match(r" *cb_(pop_front|push_back)\(", lines[end]):
            end += 1
        lines[start:end] = sorted(lines[start:end])
        start = max(end, start + 1)
    return lines


@pytest.fixture
def supplied_modules():
    """`import ttl`, `from ttlang import ttl`: what `tilewright run` supplies."""
    with finder.installed():
        yield


@pytest.mark.parametrize("metal", ["0.62", "0.69", "0.78"])
def test_both_generations_give_the_same_cpp(kernels, make_array, supplied_modules, metal):
    arrays = [make_array((4, 2), "bf16") for _ in range(3)]
    old, new = (kernels.compile(source, *arrays, metal=metal) for source in (FIRST_GENERATION, SECOND_GENERATION))
    assert sorted(old.cpp) == sorted(new.cpp) == ["compute", "reader", "writer"]
    for role in old.cpp:
        assert released(old.cpp[role]) == released(new.cpp[role])


@pytest.mark.parametrize("layout", [{"block": (2, 2)}, {"block": (1, 3), "blocks": (2, 2)}, {"blocks": (5, 3), "grid": (2, 2)}])
def test_buffer_methods_in_both_generations(kernels, make_array, layout):
    """The same text, only the names exchanged: identical to the letter but for nothing."""
    text = kernels.text
    rows, columns = (size * count for size, count in zip(layout.get("block", (1, 1)), layout.get("blocks", (1, 1)), strict=True))
    arrays = [make_array((rows, columns), "bf16") for _ in range(3)]
    programs = [
        kernels.compile(text.elementwise({"out": "ttl.math.sigmoid(a) - b"}, spelling=spelling, **layout), *arrays)
        for spelling in (text.OLD, text.NEW)
    ]
    assert programs[0].cpp == programs[1].cpp


# Which release has which name (Y present, D deprecated, - absent, ? not known).
RELEASES = ("0.62", "0.69", "0.72", "0.74", "0.76", "0.77", "0.78", "0.79", "0.80", "0.81.1")
NAMES = {
    "copy_init": "------YYYY",
    "copy_tile_init": "YYYYYYDDDD",
    "copy_tile_to_dst_init_short": "YYYYYYDDDD",
    "add_tiles_init": "YYYYYDDDD-",
    "add_init": "-----YYYYY",
    "binary_op_init_common": "YYYYYDDDD-",
    "compute_kernel_hw_startup": "?YYYYYYYYY",
    "init_sfpu": "YYYYYYDDDD",
    "mm_init": "YYYD------",
    "matmul_init": "---YYYYYYY",
    "mm_block_init": "YYYD------",
    "matmul_block_init": "---YYYYYYY",
    "pack_tile_block": "YYYYDDDDD-",
    "pack_block": "----YYYYYY",
    "binary_dest_reuse_tiles": "YYYYYDDDD-",
    "add_reuse_dest_tiles": "-----YYYYY",
    "transpose_wh_tile": "YYYDDDDDD-",
    "transpose_tile": "---YYYYYYY",
    "init_bcast": "YYYYYDDDD-",
    "add_bcast_rows_init_short": "YYYYYDDDD-",
    "add_bcast_rows_init": "-----YYYYY",
    "unary_bcast_init": "YYYYYYYYYY",
    "copy_dest_values": "YYYYYYYYYY",
    "binary_max_tile": "?YYYYYYYYY",
    "max_tile": "Y---------",
    "noc_async_read_page": "?YYYYYYYYY",
    "noc_async_read_tile": "YDDDDDDDDD",
    "acquire_dst": "YDDDDDDDDD",
    "tile_regs_acquire": "YYYYYYYYYY",
    "pack_relu_config": "?YYYYYYYYY",
    "copy_block": "----YYYYYY",
    "copy_block_matmul_partials": "YYYYDDDDD-",
}
EXPRESSIONS = {
    "vector": {"out": "ttl.math.abs(p)", "other": "ttl.math.relu(ttl.math.exp(p) - c)"},
    "matrix": {"out": "a * b + c", "other": "ttl.math.exp(a - b) - c"},
    "reuse": {"out": "c - ttl.math.sigmoid(a) * b", "other": "ttl.math.sigmoid(a) + c"},
}


def called(cpp: str) -> set[str]:
    code = "\n".join(line.split("//")[0] for line in cpp.splitlines() if not line.startswith("#"))
    return {match[1] for match in re.finditer(r"\b([a-z]\w*)(?:<[^;{}]*?>)?\(", code)}


def family(name: str) -> str:
    """Subtraction and multiplication, and the other broadcasts, came and went with addition over rows."""
    name = re.sub(r"^(sub|mul)_(?=tiles_init|init$|reuse_dest|bcast)", "add_", name)
    name = re.sub(r"_(cols|scalar)(?=_init)", "_rows", name)
    return name.replace("noc_async_write_", "noc_async_read_")


@pytest.mark.parametrize("kind", EXPRESSIONS)
@pytest.mark.parametrize("release", RELEASES)
def test_names_exist_in_the_release(kernels, make_array, release, kind):
    """Nothing absent anywhere; nothing deprecated in the releases the three spellings are made for, nor in the newest."""
    source = kernels.text.elementwise(EXPRESSIONS[kind], "abc", lets=[("p", "a * b")], block=(2, 2))
    arrays = [make_array((2, 2), "bf16") for _ in range(5)]
    program = kernels.compile(source, *arrays, metal=release, fpu_binary_ops=kind != "vector", allocator="linear-scan")
    names = {family(name) for text in program.cpp.values() for name in called(text)}
    column = RELEASES.index(release)
    marks = {name: NAMES[name][column] for name in names & NAMES.keys()}
    assert marks, "a kernel that calls nothing proves nothing"
    allowed = "Y" if release in ("0.62", "0.69", "0.78", "0.81.1") else "YD"
    assert {name: mark for name, mark in marks.items() if mark not in allowed} == {}


def test_forms_of_the_newest_release(kernels, make_array):
    """The untyped copy is deprecated in 0.81, and the old entry point is gone since 0.69."""
    source = kernels.text.elementwise(EXPRESSIONS["vector"], "abc", lets=[("p", "a * b")])
    arrays = [make_array((1, 1), "bf16") for _ in range(5)]
    options = {"fpu_binary_ops": False, "allocator": "linear-scan"}
    texts = {metal: kernels.compile(source, *arrays, metal=metal, **options).cpp["compute"] for metal in ("0.62", "0.69", "0.78")}
    assert "copy_dest_values<DataFormat::Float16_b>(" in texts["0.78"]
    assert "copy_dest_values(" in texts["0.69"]
    for metal, text in texts.items():
        assert ("void MAIN" in text) is (metal == "0.62")
        assert ('"compute_kernel_api/' in text) is (metal == "0.62")
        assert ('"api/compute/' in text) is (metal != "0.62")


def test_call_the_release_does_not_have(kernels, make_array):
    """0.62 has a maximum of neighbouring slots only, in place: not the one of the table."""
    source = kernels.text.elementwise({"out": "ttl.math.max(a, b)"})
    arrays = [make_array((1, 1), "bf16") for _ in range(3)]
    with pytest.raises(KernelError, match=r"TW405.*\n(.*\n)*.*ttnn 0\.62 has no call for it: choose 0\.69 or newer"):
        kernels.compile(source, *arrays, metal="0.62")
    assert "binary_max_tile(" in kernels.compile(source, *arrays, metal="0.69").cpp["compute"]


@pytest.mark.parametrize("metal", ["0.62", "0.69", "0.78"])
def test_the_text_itself_computes_the_values(kernels, rounding, make_array, metal):
    """The emitted C++ of each spelling, compiled for the host, gives what the simulator gives, bit for bit."""
    source = kernels.text.elementwise(EXPRESSIONS["matrix"], "abc", block=(2, 3), blocks=(1, 2))
    inputs = [make_array((2, 6), "bf16", -1, 1) for _ in range(3)]
    simulated = [make_array((2, 6), "bf16") for _ in range(2)]
    native = [make_array((2, 6), "bf16") for _ in range(2)]
    program = kernels.run(source, *inputs, *simulated, metal=metal)
    with execution.session(mode=execution.NATIVE):
        execution.run(program, [*inputs, *native])
    for left, right in zip(simulated, native, strict=True):
        assert left.tobytes() == right.tobytes()
