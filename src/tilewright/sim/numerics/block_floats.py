"""bfp8_b and bfp4_b: blocks of 16 numbers (one face row) that share an 8-bit exponent.

A packed bfp8_b tile is ``uint8[..., 1088]``: 64 exponents, then 1024 sign-magnitude bytes, both in face order. bfp4_b has the
same exponents and the upper four bits of every byte, two numbers to a byte, the first one in its lower half: ``uint8[..., 576]``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]
F32 = npt.NDArray[np.float32]

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
