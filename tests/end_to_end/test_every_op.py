"""Every row of the op table as a kernel: alone and in a fused chain, in every dtype it claims, right within its bound.

`tests/op_kernels.py` says what goes in and what must come out. Special inputs are checked against recordings of the real kernels
in `test_recorded_kernels.py`; here only the packer's rules about them.
"""

from __future__ import annotations

import numpy as np
import pytest

import op_kernels
from tilewright.diagnostics import KernelError
from tilewright.dialects import tile_ops
from tilewright.dialects.tile_op import INTEGER_DTYPES, Unit, release_key
from tilewright.native import driver
from tilewright.options import Options
from tilewright.program import TensorSpec
from tilewright.sim.run import simulate

ROWS = [row for row in tile_ops.ROWS if row.name != "typecast"]  # test_dtypes.py has every typecast
CASES = [(row, dtype) for row in ROWS for dtype in row.dtypes]
APPROXIMATE = [row for row in ROWS if row.approx_bound_ulp]
NATIVE_GROUP = 24  # rows per native program: a chip has 32 buffers

every_case = pytest.mark.parametrize(("row", "dtype"), CASES, ids=[f"{row.name}-{dtype}" for row, dtype in CASES])
every_row = pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])


def specs(names, dtype, shape=op_kernels.TILE):
    return [TensorSpec(name=name, shape=shape, dtype=dtype) for name in names]


NEWEST = {"metal": "0.81"}  # has every row


def compiled(kernels, text, row, dtype, **options):
    names = op_kernels.names_of(row)
    if not calls_of(row, Options().metal):
        options = {**NEWEST, **options}
    return kernels.compile(kernels.text.elementwise({"out": text}, names), *specs((*names, "out"), dtype), **options)


def computed(program, tiles, dtype):
    result = np.full(op_kernels.TILE, 7, op_kernels.HOST[dtype])
    simulate(program, [*tiles, result])
    return result


def chained(row, dtype):
    """The row between other ops, its result used three times: the sum of its positive and its negative part is itself."""
    if dtype in INTEGER_DTYPES:
        inner = op_kernels.expression(row, dtype, tuple(f"({name} | 0)" for name in "abc"))
        return f"(({inner}) & ({inner})) | (({inner}) & 1)"
    inner = op_kernels.expression(row, dtype, tuple(f"(-(-{name}))" for name in "abc"))
    return f"ttl.math.relu({inner}) - ttl.math.relu(-({inner}))"


def calls_of(row, metal):
    """Names the C++ may use for the row in a release."""
    return {form.at(metal).call for form in row.forms if form.exists_in(metal)}


@every_case
def test_alone(kernels, row, dtype):
    tiles = op_kernels.operands(row, dtype)
    program = compiled(kernels, op_kernels.expression(row, dtype), row, dtype)
    found = computed(program, tiles, dtype)
    op_kernels.assert_within(row, dtype, tiles, found, op_kernels.meaning(row, tiles, **op_kernels.parameters(row)), row.bound_ulp)
    if dtype == "bf16":
        values = found.astype(np.float64)
        assert not np.isnan(values).any(), "the packer writes infinity for NaN"
        assert not (np.signbit(values) & (values == 0)).any(), "the packer writes +0 for -0"


@every_case
def test_in_a_chain(kernels, row, dtype):
    """Blackhole's spelling; the ops around the row are exact, so its bound holds here too."""
    tiles = op_kernels.operands(row, dtype)
    program = compiled(kernels, chained(row, dtype), row, dtype, arch="blackhole")
    found = computed(program, tiles, dtype)
    op_kernels.assert_within(row, dtype, tiles, found, op_kernels.meaning(row, tiles, **op_kernels.parameters(row)), row.bound_ulp)


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize("row", APPROXIMATE, ids=[row.name for row in APPROXIMATE])
def test_approximate_form(kernels, row, dtype):
    tiles = op_kernels.operands(row, dtype)
    program = compiled(kernels, op_kernels.expression(row, dtype, approx=True), row, dtype)
    found = computed(program, tiles, dtype)
    expected = op_kernels.meaning(row, tiles, **op_kernels.parameters(row, approx=True))
    if np.isinf(row.approx_bound_ulp):
        inside = op_kernels.trusted(row, tiles, expected)
        assert np.abs(found.astype(np.float64) - expected)[inside].max() < 0.03 * max(1.0, np.abs(expected[inside]).max())
        return
    op_kernels.assert_within(row, dtype, tiles, found, expected, row.approx_bound_ulp)


@every_row
@pytest.mark.parametrize("arch", ["wormhole_b0", "blackhole"])
@pytest.mark.parametrize("metal", ["0.69", "0.78"])
def test_cpp_of_each_release(kernels, row, metal, arch):
    """A call of the release, or an error at the line that names the release which has it, or another form."""
    dtype = row.dtypes[0]
    text = op_kernels.expression(row, dtype)
    if not calls_of(row, metal):
        newer = min((form.since for form in row.forms), key=release_key)
        try:
            program = compiled(kernels, text, row, dtype, metal=metal, arch=arch)
        except KernelError as error:
            first = error.diagnostics[0]
            assert first.code == "TW405" and newer in first.help, str(error)
            assert "out_block.store" in str(error) and first.span is not None
            return
        assert not any(f"{form.call}(" in program.cpp["compute"] for form in row.forms if form.call not in ("exp_tile",))
        return
    cpp = compiled(kernels, text, row, dtype, metal=metal, arch=arch).cpp["compute"]
    fused = {
        "div": {"recip_tile"}, "add": {"add_tiles"}, "sub": {"sub_tiles"}, "mul": {"mul_tiles"}, "relu": {"pack_relu_config", "unary_max_tile"},
        "relu_max": {"unary_min_tile"}, "clamp": {"unary_min_tile"},
    }.get(row.name, set())  # fmt: skip
    assert any(f"{call}(" in cpp or f"{call}<" in cpp for call in calls_of(row, metal) | fused), cpp


def wild(dtype, place):
    """Any bit pattern among ordinary numbers."""
    generator = np.random.default_rng(place)
    if dtype in op_kernels.BLOCK_FLOATS:
        return op_kernels.stored(generator.normal(size=op_kernels.TILE), dtype)
    kind = {"bf16": np.uint16, "f32": np.uint32}.get(dtype) or op_kernels.HOST[dtype]
    if dtype in INTEGER_DTYPES:
        low, high = op_kernels.LIMITS[dtype]
        ordinary = generator.integers(0, 50, op_kernels.TILE)
    else:
        low, high = 0, 2 ** (8 * np.dtype(kind).itemsize)
        ordinary = generator.normal(size=op_kernels.TILE).astype(op_kernels.HOST[dtype]).view(kind)
    anything = generator.integers(low, high, op_kernels.TILE)
    return np.where(generator.random(op_kernels.TILE) < 0.3, anything, ordinary).astype(kind)


def native_groups(dtype):
    rows = [row for row in ROWS if dtype in row.dtypes]
    if dtype == "bfp4_b":  # in DST it is what bfp8_b is
        rows = rows[:NATIVE_GROUP]
    return [rows[start : start + NATIVE_GROUP] for start in range(0, len(rows), NATIVE_GROUP)]


NATIVE = [(dtype, group) for dtype in ("bf16", "f32", *op_kernels.BLOCK_FLOATS, *INTEGER_DTYPES) for group in native_groups(dtype)]


@pytest.mark.parametrize(("dtype", "rows"), NATIVE, ids=[f"{dtype}-{group[0].name}" for dtype, group in NATIVE])
def test_native_and_simulator_agree(kernels, dtype, rows):
    """The emitted C++ on the host and the simulator give the same bits, one output per row."""
    outputs = {f"o{number}": op_kernels.expression(row, dtype) for number, row in enumerate(rows)}
    source = kernels.text.elementwise(outputs, "abc", count=1)
    program = kernels.compile(source, *specs((*"abc", *outputs), dtype), **NEWEST)
    tiles = [wild(dtype, place) for place in range(3)]
    simulated, native = ([np.zeros(op_kernels.TILE, tiles[0].dtype) for _ in rows] for _ in range(2))
    simulate(program, [*tiles, *simulated])
    driver.run(program, [*tiles, *native])
    bits = [(row.name, one.view(np.uint8), other.view(np.uint8)) for row, one, other in zip(rows, simulated, native, strict=True)]
    assert [name for name, one, other in bits if not np.array_equal(one, other)] == []


def test_table_is_whole():
    """Every row has an SFPU form or is reached by one, and every dtype of the table is tested somewhere."""
    assert len(ROWS) >= 175 and {dtype for _, dtype in CASES} == {"bf16", "f32", *op_kernels.BLOCK_FLOATS, *INTEGER_DTYPES}
    assert all(row.form(Unit.SFPU) is not None for row in ROWS)
