"""Compiled kernels against recordings of the real ones: all 65,536 bf16 inputs, f32 samples with every special value, pairs, triples.

The recordings (`tests/golden_data`) were made by calling one function of the kernel API per tile. Here the same inputs go through a
kernel written in Python, compiled and simulated; every element of the result must have the recorded bits.
"""

from __future__ import annotations

import numpy as np
import pytest
import recordings

import op_kernels
from tilewright.dialects import tile_ops
from tilewright.program import TensorSpec
from tilewright.sim.numerics.report import values_by_call
from tilewright.sim.run import simulate

FIDELITIES = ("LoFi", "HiFi2", "HiFi3", "HiFi4")
WIDTHS = {"bf16": False, "fp32": True}  # mode of a recording -> 32-bit DST


KINDS = {"bf16": np.uint16, "f32": np.uint32}


def recorded_rows():
    """Rows with a recording of one call of the vector unit."""
    found = []
    for row in tile_ops.ROWS:
        for mode, wide in WIDTHS.items():
            tag = f"{row.golden}.{mode}"
            if not row.golden or tag not in recordings.records() or "." in row.golden:
                continue
            key = f"{recordings.call_key(recordings.recording(tag))}@{32 if wide else 16}"
            if key in values_by_call()["wormhole_b0"]:
                found.append((row, tag))
    return found


ROWS = recorded_rows()


def run_recorded(kernels, entry, text, names, **options):
    """The recorded inputs through a kernel; tiles as the recording has them."""
    tiles = entry.l1
    count = len(tiles[0])
    source = kernels.text.elementwise({"out": text}, names, block=(8, 1), blocks=(count // 8, 1))
    shape = (32 * count, 32)
    specs = [TensorSpec(name=name, shape=shape, dtype=dtype) for name, dtype in zip(names, entry.in_dtypes, strict=True)]
    program = kernels.compile(source, *specs, TensorSpec(name="out", shape=shape, dtype=entry.out_dtype), **options)
    result = np.zeros(shape, KINDS[entry.out_dtype])
    simulate(program, [*(np.ascontiguousarray(tile.reshape(shape)) for tile in tiles[: len(names)]), result])
    return program, result.reshape(count, 32, 32)


@pytest.mark.parametrize(("row", "tag"), ROWS, ids=[f"{row.name}-{tag}" for row, tag in ROWS])
def test_row(kernels, row, tag):
    entry = recordings.recording(tag)
    wide = WIDTHS[tag.rsplit(".", 1)[1]]
    dtype = "f32" if wide else "bf16"
    text = op_kernels.expression(row, dtype)
    if row.arity == 0:
        tile = entry.l1[0]
        assert len(tile) == 1
        source = kernels.text.elementwise({"out": text}, "a")
        program = kernels.compile(source, *(TensorSpec(name=n, shape=(32, 32), dtype=dtype) for n in ("a", "out")), fp32_dest_acc=wide)
        result = np.zeros((32, 32), KINDS[dtype])
        simulate(program, [tile.reshape(32, 32), result])
        entry.assert_equal(result[None])
        return
    names = op_kernels.names_of(row)
    # The packer's relu keeps denormals, the recorded call flushes them: linear-scan always makes the call.
    allocator = "linear-scan" if row.name == "relu" else "optimal"
    _, result = run_recorded(kernels, entry, text, names, fp32_dest_acc=wide, fpu_binary_ops=False, allocator=allocator)
    entry.assert_equal(result)


def test_most_rows_are_covered():
    rows = {row.name for row, _ in ROWS}
    assert len(rows) >= 100 and len(ROWS) >= 190, (len(rows), len(ROWS))


@pytest.mark.parametrize("wide", [False, True], ids=["dst16", "dst32"])
@pytest.mark.parametrize("fidelity", FIDELITIES)
def test_product_on_the_matrix_unit(kernels, fidelity, wide):
    """65,536 pairs, all fidelities, both widths of DST."""
    entry = recordings.recording(f"fpu_mul.{fidelity}.{'d32b' if wide else 'bf16'}")
    program, result = run_recorded(kernels, entry, "a * b", "ab", fp32_dest_acc=wide, math_fidelity=fidelity)
    assert "mul_tiles(" in program.cpp["compute"]
    entry.assert_equal(result)


@pytest.mark.parametrize("wide", [False, True], ids=["dst16", "dst32"])
@pytest.mark.parametrize(("name", "sign"), [("add", "+"), ("sub", "-")])
def test_sum_on_the_matrix_unit(kernels, name, sign, wide):
    entry = recordings.recording(f"fpu_{name}.{'d32b' if wide else 'bf16'}")
    program, result = run_recorded(kernels, entry, f"a {sign} b", "ab", fp32_dest_acc=wide)
    assert f"{name}_tiles(" in program.cpp["compute"]
    entry.assert_equal(result)


@pytest.mark.parametrize("mode", ["bf16", "d32b", "fp32", "f32d16", "d32"])
def test_copy(kernels, mode):
    """A stored block: unpacked, moved through DST of either width, packed to the same or a wider format."""
    entry = recordings.recording(f"copy.{mode}")
    text = "a" if entry.in_dtypes[0] == entry.out_dtype else f"ttl.math.typecast(a, '{entry.out_dtype}')"
    program, result = run_recorded(kernels, entry, text, "a", fp32_dest_acc=entry.dst32)
    assert "typecast_tile" not in program.cpp["compute"], "the unpacker converts"
    entry.assert_equal(result)


def test_typecast_that_rounds(kernels):
    """f32 to bf16 is a call that rounds to even; the packer alone would round half away."""
    entry = recordings.recording("typecast_bf16_fp32_rt.fp32b")
    _, result = run_recorded(kernels, entry, "ttl.math.typecast(a, 'bf16')", "a")
    entry.assert_equal(result)


@pytest.mark.parametrize(("tag", "sign"), [("fpu_add_reuse_srca.bf16", "+"), ("fpu_sub_reuse_srca.bf16", "-")])
def test_value_in_dst_with_a_buffer(kernels, tag, sign):
    """``identity(a) op b`` is one call on a value in DST and a tile in a buffer. `identity` flushes denormals, the recording's copy
    does not."""
    entry = recordings.recording(tag)
    program, result = run_recorded(kernels, entry, f"ttl.math.identity(a) {sign} b", "ab", fp32_dest_acc=False)
    assert "reuse_dest" in program.cpp["compute"]
    ordinary = (entry.l1[0] & 0x7F80) != 0
    part, want = entry.sample()
    chosen = recordings.to_recorded(ordinary).ravel()[part]
    got = recordings.to_recorded(result).ravel()[part]
    assert chosen.sum() > 1000 and np.array_equal(got[chosen], want[chosen])
