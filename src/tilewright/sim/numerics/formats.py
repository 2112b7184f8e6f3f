"""Number formats of L1 and the host conversions into and out of them; block formats first.

Inside Src and DST a value is the uint32 pattern of an fp32 number; tiles are ``[..., 32, 32]`` in row-major order.

bfp8_b and bfp4_b are blocks of 16 numbers (one face row) that share an 8-bit exponent. A packed bfp8_b tile is ``uint8[...,
1088]``: 64 exponents, then 1024 sign-magnitude bytes, both in face order. bfp4_b has the same exponents and the upper four bits
of every byte, two numbers to a byte, the first one in its lower half: ``uint8[..., 576]``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tilewright.dtypes import BLOCK_FLOATS, DTYPE_BY_NAME

U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]
U32 = npt.NDArray[np.uint32]
F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]
Array = npt.NDArray[Any]

BLOCK = 16
EXPONENTS = 64
PACKED_BYTES = 1088
SMALL_BYTES = 576
ROUND_NEAREST_AWAY = np.uint32(0x10000)  # half of the last of 6 fraction bits


def faces_from_tile(tile: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Row-major ``[..., 32, 32]`` to face order ``[..., 64, 16]``: one row per block."""
    lead = tile.shape[:-2]
    split = tile.reshape(*lead, 2, 16, 2, 16)
    return np.moveaxis(split, -2, -3).reshape(*lead, EXPONENTS, BLOCK)


def tile_from_faces(blocks: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Face order ``[..., 64, 16]`` back to row-major ``[..., 32, 32]``."""
    lead = blocks.shape[:-2]
    split = blocks.reshape(*lead, 2, 2, 16, 16)
    return np.ascontiguousarray(np.moveaxis(split, -2, -3).reshape(*lead, 32, 32))


def decode(packed: U8) -> U32:
    """Packed tiles to fp32 patterns. The exponent wraps modulo 256; a signed zero magnitude reads as -inf."""
    if packed.shape[-1] == SMALL_BYTES:
        packed = _widened(packed)
    lead = packed.shape[:-1]
    exponents = packed[..., :EXPONENTS].astype(np.int32)[..., None]
    datums = packed[..., EXPONENTS:].reshape(*lead, EXPONENTS, BLOCK).astype(np.int32)
    magnitude = datums & 0x7F
    # frexp's exponent is the bit length: position of the leading one plus one.
    length = np.frexp(magnitude.astype(np.float32))[1].astype(np.int32)
    shift = 7 - length
    fraction = (magnitude << (shift + 1)) & 0x7F
    exponent = (exponents - shift) & 0xFF
    sign = datums >> 7
    bits = (sign << 15) | (exponent << 7) | fraction
    bits = np.where(magnitude == 0, np.where(sign == 1, 0xFF80, 0), bits)
    return tile_from_faces(bits.astype(np.uint32) << np.uint32(16))


def encode(bits: U32, *, precise: bool = False) -> U8:
    """bf16-valued patterns, already cleaned of NaN, to packed tiles as the packer does (half away, twice).

    ``precise`` leaves out the first rounding to 6 fraction bits.
    """
    magnitude: U32 = bits & np.uint32(0x7FFF0000)
    if not precise:
        raised: U32 = np.minimum(magnitude + ROUND_NEAREST_AWAY, np.uint32(0x7FFE0000) + ROUND_NEAREST_AWAY)
        magnitude = raised & np.uint32(0xFFFE0000)
    return _share_exponent(bits, magnitude)


def _share_exponent(bits: U32, magnitude: U32) -> U8:
    lead = bits.shape[:-2]
    sign = faces_from_tile(bits >> np.uint32(31)).astype(np.int32)
    blocks = faces_from_tile(magnitude)
    exponent = (blocks >> np.uint32(23)).astype(np.int32)
    significand = np.where(exponent == 0, 0, ((blocks >> np.uint32(16)) & np.uint32(0x7F)).astype(np.int32) | 0x80)
    shared = exponent.max(axis=-1, keepdims=True)
    distance = np.minimum(shared - exponent, 30)
    shifted = (significand + (1 << distance)) >> (distance + 1)
    shifted = np.where(distance >= 8, 0, np.minimum(shifted, 127))
    datums = np.where(shifted == 0, 0, (sign << 7) | shifted)
    packed = np.empty((*lead, PACKED_BYTES), dtype=np.uint8)
    packed[..., :EXPONENTS] = shared[..., 0]
    packed[..., EXPONENTS:] = datums.reshape(*lead, 1024)
    return packed


def cut_to_bfp4(packed: U8) -> U8:
    """bfp8_b tiles to bfp4_b as the packer does: four bits of magnitude are dropped, a zero has no sign."""
    datums = packed[..., EXPONENTS:] >> np.uint8(4)
    return _halved(packed[..., :EXPONENTS], np.where((datums & 7) == 0, 0, datums).astype(np.uint8))


def _halved(exponents: U8, datums: U8) -> U8:
    return np.concatenate([exponents, datums[..., 0::2] | (datums[..., 1::2] << np.uint8(4))], axis=-1)


def _widened(small: U8) -> U8:
    """bfp4_b tiles as bfp8_b tiles of the same values."""
    pairs = small[..., EXPONENTS:]
    packed = np.empty((*small.shape[:-1], PACKED_BYTES), dtype=np.uint8)
    packed[..., :EXPONENTS] = small[..., :EXPONENTS]
    packed[..., EXPONENTS::2] = pairs << np.uint8(4)
    packed[..., EXPONENTS + 1 :: 2] = pairs & 0xF0
    return packed


def encode_host(values: F32, *, small: bool = False) -> U8:
    """Host conversion from float32: shared exponent of the block, mantissas of 7 (``small``: 3) bits, ties to even."""
    bits = values.view(np.uint32)
    lead = bits.shape[:-2]
    width = 3 if small else 7
    blocks = faces_from_tile(bits & np.uint32(0x7FFFFFFF))
    sign = faces_from_tile(bits >> np.uint32(31)).astype(np.int64)
    exponent = (blocks >> np.uint32(23)).astype(np.int64)
    significand = np.where(exponent == 0, 0, (blocks & np.uint32(0x7FFFFF)).astype(np.int64) | 0x800000)
    shared = exponent.max(axis=-1, keepdims=True)
    drop = np.minimum(24 - width + shared - exponent, 40)
    half = np.int64(1) << (drop - 1)
    odd = (significand >> drop) & 1
    shifted = np.minimum((significand + half - 1 + odd) >> drop, (1 << width) - 1)
    datums = np.where(shifted == 0, 0, (sign << width) | shifted).astype(np.uint8).reshape(*lead, 1024)
    exponents = shared[..., 0].astype(np.uint8)
    return _halved(exponents, datums) if small else np.concatenate([exponents, datums], axis=-1)


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
        return encode_host(np.ascontiguousarray(values, dtype=np.float32), small=dtype == "bfp4_b")
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
        return from_bits(decode(l1))
    if dtype == "i32":
        return np.ascontiguousarray(l1, dtype=np.uint32).view(np.int32).copy()
    if dtype == "u32":
        return l1.astype(np.uint32)
    if dtype == "u16":
        return l1.astype(np.uint16)
    if dtype == "u8":
        return l1.astype(np.uint8)
    raise FormatError(f"unknown L1 dtype {dtype!r}; possible: {', '.join(L1_DTYPES)}")
