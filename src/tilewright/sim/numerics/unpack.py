"""The unpackers: L1 to Src, and L1 to DST (rules U1 to U7)."""

from __future__ import annotations

import numpy as np

from tilewright.sim.numerics import block_floats
from tilewright.sim.numerics.formats import (
    BLOCK_FLOATS,
    HIGH_HALF,
    INFINITY,
    SIGN,
    U32,
    Array,
    FormatError,
    is_nan,
    is_tiny,
    widen_bf16,
)

TF32 = np.uint32(0xFFFFE000)


def to_src(l1: Array, dtype: str, *, dst32: bool) -> U32:
    """What SrcA or SrcB holds after unpacking: bf16 as is, f32 cut to bf16 (16-bit DST) or tf32 (32-bit DST)."""
    if dtype == "bf16":
        return widen_bf16(l1)
    if dtype in BLOCK_FLOATS:
        return block_floats.decode(l1)
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
