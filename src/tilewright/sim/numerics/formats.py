"""Number formats of L1 and the host conversions into and out of them.

Inside Src and DST a value is the uint32 pattern of an fp32 number; tiles are ``[..., 32, 32]`` in row-major order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.dtypes import BLOCK_FLOATS, DTYPE_BY_NAME
from tilewright.sim.numerics import block_floats

U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]
U32 = npt.NDArray[np.uint32]
F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]

SIGN = np.uint32(0x80000000)
MAGNITUDE = np.uint32(0x7FFFFFFF)
INFINITY = np.uint32(0x7F800000)
SMALLEST_NORMAL = np.uint32(0x00800000)
FRACTION = np.uint32(0x007FFFFF)
HIGH_HALF = np.uint32(0xFFFF0000)

L1_DTYPES = tuple(DTYPE_BY_NAME)


class FormatError(ValueError):
    """A dtype that the L1 or a hardware path does not have."""


def to_bits(values: Array) -> U32:
    """fp32 patterns of ``values`` (rounded to fp32 first)."""
    return np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)


def from_bits(bits: U32) -> F32:
    """The fp32 numbers whose patterns are ``bits``."""
    return np.ascontiguousarray(bits, dtype=np.uint32).view(np.float32)


def values_of(bits: U32) -> F64:
    """The numbers as float64; signalling NaNs pass quietly."""
    with np.errstate(invalid="ignore"):
        return from_bits(bits).astype(np.float64)


def scalar_bits(value: float) -> int:
    """Pattern of one fp32 constant, as kernels pass scalar parameters."""
    return int(np.float32(value).view(np.uint32))


def widen_bf16(l1: U16) -> U32:
    return l1.astype(np.uint32) << np.uint32(16)


def holds_bf16(array: Array) -> bool:
    """Whether the elements are bf16 patterns: ``uint16`` or ``ml_dtypes.bfloat16``."""
    return array.dtype.itemsize == 2 and array.dtype != np.float16


def narrow_bf16(bits: U32) -> U16:
    """Upper halves; the caller has rounded."""
    return (bits >> np.uint32(16)).astype(np.uint16)


def is_nan(bits: U32) -> Bool:
    return (bits & MAGNITUDE) > INFINITY


def is_tiny(bits: U32) -> Bool:
    """Zero or denormal."""
    return (bits & INFINITY) == 0


def round_to_bf16_even(bits: U32) -> U32:
    """Round fp32 patterns to bf16, ties to even, as the host does; a NaN stays a quiet NaN."""
    lowest = (bits >> np.uint32(16)) & np.uint32(1)
    rounded = (bits + np.uint32(0x7FFF) + lowest) & HIGH_HALF
    return np.where(is_nan(bits), (bits | np.uint32(0x00400000)) & HIGH_HALF, rounded)


def to_l1(values: Array, dtype: str) -> Array:
    """Host numbers ``[..., 32, 32]`` as the bytes a host writes to L1 (float32 to bf16 rounds to nearest even)."""
    if dtype == "bf16":
        return narrow_bf16(round_to_bf16_even(to_bits(values)))
    if dtype == "f32":
        return to_bits(values).copy()
    if dtype in BLOCK_FLOATS:
        return block_floats.encode_host(np.ascontiguousarray(values, dtype=np.float32), small=dtype == "bfp4_b")
    if dtype == "i32":
        return np.asarray(values).astype(np.int32).view(np.uint32)
    if dtype == "u32":
        return np.asarray(values).astype(np.uint32)
    if dtype == "u16":
        return np.asarray(values).astype(np.uint16)
    if dtype == "u8":
        return np.asarray(values).astype(np.uint8)
    raise FormatError(f"unknown L1 dtype {dtype!r}; possible: {', '.join(L1_DTYPES)}")


def from_l1(l1: Array, dtype: str) -> Array:
    """L1 contents as host numbers: float32 for float formats, the matching integer type otherwise."""
    if dtype == "bf16":
        return from_bits(widen_bf16(l1))
    if dtype == "f32":
        return from_bits(l1).copy()
    if dtype in BLOCK_FLOATS:
        return from_bits(block_floats.decode(l1))
    if dtype == "i32":
        return np.ascontiguousarray(l1, dtype=np.uint32).view(np.int32).copy()
    if dtype == "u32":
        return l1.astype(np.uint32)
    if dtype == "u16":
        return l1.astype(np.uint16)
    if dtype == "u8":
        return l1.astype(np.uint8)
    raise FormatError(f"unknown L1 dtype {dtype!r}; possible: {', '.join(L1_DTYPES)}")
