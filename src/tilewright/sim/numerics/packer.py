"""The packer: DST to L1, with ReLU and L1 accumulation (rules C1 to C8). The unpacker: L1 to Src and DST."""

from __future__ import annotations

from typing import Literal

import numpy as np

from tilewright.records import record
from tilewright.sim.numerics import formats
from tilewright.sim.numerics.formats import (
    BLOCK_FLOATS,
    HIGH_HALF,
    INFINITY,
    L1_DTYPES,
    MAGNITUDE,
    SIGN,
    SMALLEST_NORMAL,
    U32,
    Array,
    FormatError,
    from_bits,
    is_nan,
    is_tiny,
    narrow_bf16,
    round_to_bf16_even,
    to_bits,
    widen_bf16,
)

QUIET_NAN = np.uint32(0x7FC00000)
RELU_MAX_COMPARED = np.uint32(0xFFFFE000)  # the max comparison of fp32 data ignores the low 13 bits


@record
class Relu:
    """Packer ReLU: ``threshold`` holds bf16 bits and must not be negative."""

    mode: Literal["zero", "min", "max"]
    threshold: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.threshold < 0x8000:
            raise ValueError(f"ReLU threshold must be non-negative bf16 bits, got {self.threshold:#x}")


def pack(
    dst: U32,
    dtype: str,
    *,
    dst32: bool,
    relu: Relu | None = None,
    old_l1: Array | None = None,
    l1_acc: bool = False,
    precise: bool = False,
) -> Array:
    """What pack_tile writes. ``l1_acc`` adds to ``old_l1``; ``precise`` is bfp8_pack_precise."""
    if dtype in ("i32", "u32"):
        return np.array(dst, dtype=np.uint32)
    if dtype == "u16":
        return dst.astype(np.uint16)
    if dtype == "u8":
        return dst.astype(np.uint8)
    if dtype in BLOCK_FLOATS:
        if l1_acc:
            raise FormatError(f"L1 accumulation is not available for {dtype}")
        blocks = _pack_bfp8(dst, dst32=dst32, relu=relu, precise=precise)
        return blocks if dtype == "bfp8_b" else formats.cut_to_bfp4(blocks)
    if dtype not in ("bf16", "f32"):
        raise FormatError(f"the packer cannot write {dtype!r}; possible: {', '.join(L1_DTYPES)}")
    bits = _late_format(dst, dtype, dst32=dst32)
    if relu is not None:
        bits = _apply_relu(bits, relu)
    if l1_acc:
        if old_l1 is None:
            raise ValueError("l1_acc needs the old contents of L1")
        return accumulate_l1(old_l1, bits, dtype)
    return narrow_bf16(bits) if dtype == "bf16" else bits


def _late_format(dst: U32, dtype: str, *, dst32: bool) -> U32:
    if dst32 and dtype == "f32":
        return np.array(dst, dtype=np.uint32)
    return clean_bf16(dst, dst32=dst32)


def clean_bf16(dst: U32, *, dst32: bool) -> U32:
    """bf16 patterns after the packer: NaN to infinity, tiny and -0 to +0; 32-bit data rounds half away."""
    if dst32:
        rounded = (dst + np.uint32(0x8000)) & HIGH_HALF
        bits = np.where((dst & MAGNITUDE) >= INFINITY, (dst & SIGN) | INFINITY, rounded)
    else:
        bits = np.where(is_nan(dst), (dst & SIGN) | INFINITY, dst)
    return np.where((bits & MAGNITUDE) < SMALLEST_NORMAL, np.uint32(0), bits)


def _apply_relu(bits: U32, relu: Relu) -> U32:
    positive = np.where(bits >= SIGN, np.uint32(0), bits)
    threshold = np.uint32(relu.threshold << 16)
    if relu.mode == "min":
        return np.where(positive <= threshold, np.uint32(0), positive)
    if relu.mode == "max":
        return np.where((positive & RELU_MAX_COMPARED) > threshold, threshold, positive)
    return positive


def _pack_bfp8(dst: U32, *, dst32: bool, relu: Relu | None, precise: bool) -> Array:
    bits = np.where(is_nan(dst), (dst & SIGN) | INFINITY, dst & HIGH_HALF)
    bits = np.where(is_tiny(bits), np.uint32(0), bits)
    if relu is not None:
        bits = _apply_relu(bits, relu)
    return formats.encode(bits, precise=precise and dst32)


def accumulate_l1(old_l1: Array, bits: U32, dtype: str) -> Array:
    """L1 accumulation: the sum of the stored and the packed value, rounded once to nearest even."""
    old = widen_bf16(old_l1) if dtype == "bf16" else np.asarray(old_l1, dtype=np.uint32)
    old_values = from_bits(flush(old))
    new_values = from_bits(flush(bits))
    if dtype == "f32":
        with np.errstate(all="ignore"):
            total = to_bits(old_values + new_values)
        return np.where(is_nan(total), QUIET_NAN, flush(total))
    return narrow_bf16(_add_bf16(old_values, new_values))


def flush(bits: U32) -> U32:
    """Denormals to zero of the same sign."""
    return np.where(is_tiny(bits), bits & SIGN, bits)


def _add_bf16(old: Array, new: Array) -> U32:
    # fp32 add then bf16 rounding rounds twice, which is wrong only where the first rounding ends on a tie.
    with np.errstate(all="ignore"):
        bits = to_bits(old + new)
    tie = (bits & np.uint32(0xFFFF)) == np.uint32(0x8000)
    if tie.any():
        bits[tie] = _add_sticky(old[tie], new[tie])
    rounded = round_to_bf16_even(bits)
    tiny = (rounded & MAGNITUDE) < SMALLEST_NORMAL
    rounded = np.where(tiny, rounded & SIGN, rounded)
    return np.where(is_nan(bits), QUIET_NAN, rounded)


def _add_sticky(old: Array, new: Array) -> U32:
    """The fp32 sum, cut instead of rounded, with its last bit set if it is not exact."""
    with np.errstate(all="ignore"):
        first = old + new
        second = first - old
        error = (old - (first - second)) + (new - second)
    bits = to_bits(first)
    inexact = np.isfinite(error) & (error != 0)
    toward_zero = inexact & ((error < 0) != (first < 0))
    bits = np.where(toward_zero, bits - np.uint32(1), bits)
    return np.where(inexact, bits | np.uint32(1), bits)


TF32 = np.uint32(0xFFFFE000)


def to_src(l1: Array, dtype: str, *, dst32: bool) -> U32:
    """What SrcA or SrcB holds after unpacking: bf16 as is, f32 cut to bf16 (16-bit DST) or tf32 (32-bit DST)."""
    if dtype == "bf16":
        return widen_bf16(l1)
    if dtype in BLOCK_FLOATS:
        return formats.decode(l1)
    if dtype != "f32":
        raise FormatError(f"{dtype!r} has no float path into Src; possible: bf16, f32, bfp8_b, bfp4_b")
    bits: U32 = np.asarray(l1, dtype=np.uint32)
    if dst32:
        return bits & TF32
    return np.where(is_tiny(bits), bits & SIGN, bits & HIGH_HALF)


def src_format(dtype: str, *, dst32: bool, unpack_to_dest: bool = False) -> str:
    """Format register of a Src that ``dtype`` was configured into: what a later DST-to-Src move keeps."""
    if dtype == "f32" and dst32 and not unpack_to_dest:
        return "tf32"
    return "bf16"


def copy_to_dst(l1: Array, dtype: str, *, dst32: bool, unpack_to_dest: bool) -> U32:
    """copy_tile. Lossless with unpack-to-dest and in 16-bit DST; else an FPU add with zero."""
    if dtype in ("i32", "u32", "u8"):
        if not dst32:
            raise FormatError(f"{dtype} needs 32-bit DST")
        return np.array(l1, dtype=np.uint32)
    if dtype == "u16":
        return l1.astype(np.uint32)
    if unpack_to_dest:
        if dtype != "f32" or not dst32:
            raise FormatError("unpack-to-dest needs an f32 buffer and 32-bit DST")
        return np.array(l1, dtype=np.uint32)
    src = to_src(l1, dtype, dst32=dst32)
    if not dst32:
        return src
    return add_zero(src)


def add_zero(src: U32) -> U32:
    """The FPU add of +0: denormals and -0 become +0, a NaN becomes the infinity of its sign."""
    cleaned = np.where(is_tiny(src), np.uint32(0), src)
    return np.where(is_nan(src), (src & SIGN) | INFINITY, cleaned)
