"""The vector unit against every call recorded on Wormhole: equal bits."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tilewright.sim.numerics import sfpu

CHIP = "wormhole_b0"

BINARY_PARAMS = {"isclose_binary_tile": (0x3C23D70A, 0x3A83126F)}
MASK_FORMAT_FLOAT32 = 0


@pytest.mark.recorded(r".*\.(bf16|fp32)", where="is_unary")
def test_unary(entry: Any) -> None:
    """16-bit DST: all 65,536 inputs, from the table."""
    name, params, variant = entry.call()
    entry.assert_equal(entry.pack(sfpu.unary(CHIP, name, entry.dst(0), dst32=entry.dst32, params=params, variant=variant)))


@pytest.mark.recorded(
    r"(exp|log|sqrt|rsqrt|recip_nolegacy|tanh|sigmoid|silu|gelu|sin|square|softplus|relu|add_s|mul_s)\.d32b"
)
def test_bf16_buffers_with_wide_dst(entry: Any) -> None:
    """bf16 in, computed in 32-bit DST, rounded by the packer."""
    name, params, variant = entry.call()
    entry.assert_equal(entry.pack(sfpu.unary(CHIP, name, entry.dst(0), dst32=True, params=params, variant=variant)))


@pytest.mark.recorded(r"sfpu_(add|sub|rsub|mul|div|max|min|eq|ne|lt|gt|le|ge|isclose|power|fmod|remainder|atan2|xlogy)"
                      r"(_rne)?\.(bf16|fp32)|mask\.(bf16|fp32)")  # fmt: skip
def test_binary(entry: Any) -> None:
    name, _, _ = entry.call()
    params = BINARY_PARAMS.get(name, ())
    if name == "mask_tile" and entry.dst32:
        params = (MASK_FORMAT_FLOAT32,)
    nearest = "NearestEven" in entry.record["call"]
    result = sfpu.binary(CHIP, name, entry.dst(0), entry.dst(1), dst32=entry.dst32, params=params, nearest_even=nearest)
    entry.assert_equal(entry.pack(result))


@pytest.mark.recorded(r"sfpu_(add|mul|div|max)\.d32b")
def test_binary_with_wide_dst(entry: Any) -> None:
    name, _, _ = entry.call()
    entry.assert_equal(entry.pack(sfpu.binary(CHIP, name, entry.dst(0), entry.dst(1), dst32=True)))


@pytest.mark.recorded(r"(where|mac|lerp|addcmul|addcdiv)\.(bf16|fp32)")
def test_ternary(entry: Any) -> None:
    name, _, _ = entry.call()
    operands = [entry.dst(index) for index in range(3)]
    entry.assert_equal(entry.pack(sfpu.ternary(CHIP, name, *operands, dst32=entry.dst32, params=(0x3F333333,))))


@pytest.mark.recorded(r"copy_dest_values\.(bf16|fp32)")
def test_copy_between_slots(entry: Any) -> None:
    """copy_dest_values is identity_tile of the other slot: it flushes denormals."""
    entry.assert_equal(entry.pack(sfpu.unary(CHIP, "identity_tile", entry.dst(1), dst32=entry.dst32)))


@pytest.mark.recorded(r"sfpu_(add|sub|mul)_bcast_row\..*")
def test_broadcast_row_between_slots(entry: Any) -> None:
    operation = entry.name.split("_")[1]
    entry.assert_equal(
        entry.pack(sfpu.sfpu_bcast(CHIP, operation, "row", entry.dst(0), entry.dst(1), dst32=entry.dst32))
    )


@pytest.mark.recorded(r"sfpu_(add|sub|mul)_bcast_col\..*")
def test_broadcast_column_between_slots(entry: Any, recordings: ModuleType) -> None:
    """Bit-equal on the sample, except that a leaked NaN may carry other low bits."""
    operation = entry.name.split("_")[1]
    packed = entry.pack(sfpu.sfpu_bcast(CHIP, operation, "col", entry.dst(0), entry.dst(1), dst32=entry.dst32))
    part, want = entry.sample()
    got = recordings.to_recorded(packed).ravel()[part]
    infinity = 0x7F80 if got.dtype == np.uint16 else 0x7F800000
    unsigned = got.dtype.type((1 << (8 * got.itemsize - 1)) - 1)
    both_wild = ((got & unsigned) >= infinity) & ((want & unsigned) >= infinity)
    assert ((got == want) | both_wild).all()


@pytest.mark.recorded(r"sfpu_reduce_(sum|max|min)_col\..*")
def test_column_reduction(entry: Any, recordings: ModuleType) -> None:
    """Row 0, and the rest of the tile; of extremes, rows 1 to 3 hold what the macro leaves in its registers."""
    kind = entry.name.split("_")[2]
    packed = entry.pack(sfpu.sfpu_reduce(CHIP, kind, "col", entry.dst(0), dst32=entry.dst32))
    rows = np.broadcast_to(np.arange(32)[:, None], (packed.shape[0], 32, 32)).astype(np.uint32)
    part, want = entry.sample()
    row = recordings.to_recorded(rows).ravel()[part]
    defined = (row == 0) | (row > 3) | (kind == "sum")
    assert (row == 0).sum() >= 8
    assert (recordings.to_recorded(packed).ravel()[part] == want)[defined].all()


@pytest.mark.recorded(r"typecast_.*")
def test_typecast(entry: Any) -> None:
    source, target = {"f32_i32": ("f32", "i32"), "f32_u32": ("f32", "u32"), "i32_f32": ("i32", "f32"),
                      "bf16_fp32_rt": ("f32", "bf16")}[entry.name.removeprefix("typecast_")]  # fmt: skip
    dst = np.asarray(entry.l1[0], dtype=np.uint32)
    entry.assert_equal(entry.pack(sfpu.typecast(CHIP, dst, source, target, dst32=True)))
