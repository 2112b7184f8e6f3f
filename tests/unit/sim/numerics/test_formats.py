"""Host conversions: against ml_dtypes and by round trip."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.sim.numerics import formats, packer
from tilewright.sim.numerics.formats import FormatError, from_l1, scalar_bits, to_bits, to_l1


def tiles(seed: int, scale: float = 1.0) -> np.ndarray:
    return np.random.default_rng(seed).normal(scale=scale, size=(3, 32, 32)).astype(np.float32)


def test_bf16_rounds_to_nearest_even() -> None:
    values = tiles(0, 100.0)
    values[0, 0, :4] = [1 + 2.0**-8, 1 + 3 * 2.0**-8, np.inf, -0.0]
    want = values.astype(ml_dtypes.bfloat16)
    assert (to_l1(values, "bf16") == want.view(np.uint16)).all()
    assert (from_l1(to_l1(values, "bf16"), "bf16") == want.astype(np.float32)).all()


def test_bf16_keeps_nan() -> None:
    assert np.isnan(from_l1(to_l1(np.full((32, 32), np.nan), "bf16"), "bf16")).all()


def test_f32_is_a_bit_copy() -> None:
    values = tiles(1)
    assert (from_l1(to_l1(values, "f32"), "f32") == values).all()


@pytest.mark.parametrize(
    ("dtype", "low", "high"), [("i32", -(2**31), 2**31 - 1), ("u32", 0, 2**32 - 1), ("u16", 0, 65535)]
)
def test_integers_round_trip(dtype: str, low: int, high: int) -> None:
    values = np.random.default_rng(2).integers(low, high, size=(2, 32, 32), endpoint=True)
    assert (from_l1(to_l1(values, dtype), dtype) == values).all()


def test_bfp8_shares_an_exponent_per_face_row() -> None:
    """Half a step of the block's largest magnitude: 7 bits, the leading one explicit; saturation adds another half."""
    values = tiles(3)
    packed = to_l1(values, "bfp8_b")
    assert packed.shape == (3, formats.PACKED_BYTES)
    back = from_l1(packed, "bfp8_b")
    blocks = values.reshape(3, 32, 2, 16)
    largest = np.abs(blocks).max(axis=-1, keepdims=True)
    step = 2.0 ** (np.floor(np.log2(largest)) - 6)
    assert (np.abs(back.reshape(3, 32, 2, 16) - blocks) <= step).all()


def test_bfp8_decode_inverts_encode_on_its_own_numbers() -> None:
    back = from_l1(to_l1(tiles(4), "bfp8_b"), "bfp8_b")
    assert (from_l1(to_l1(back, "bfp8_b"), "bfp8_b") == back).all()


def test_bfp8_signed_zero_reads_as_minus_infinity() -> None:
    packed = np.zeros((1, formats.PACKED_BYTES), dtype=np.uint8)
    packed[0, 64] = 0x80
    assert formats.decode(packed)[0, 0, 0] == 0xFF800000


def test_scalar_bits() -> None:
    assert scalar_bits(1.0) == 0x3F800000
    assert scalar_bits(-0.1) == 0xBDCCCCCD


def test_unknown_dtype_lists_the_known_ones() -> None:
    with pytest.raises(FormatError, match="bf16, f32, bfp8_b"):
        to_l1(np.zeros((32, 32)), "f16")
    with pytest.raises(FormatError, match="possible"):
        from_l1(np.zeros((32, 32)), "f16")


def test_bfp4_keeps_three_bits() -> None:
    """The host rounds ties to even, the packer drops; both share the exponent of the largest number."""
    values = np.zeros((32, 32), dtype=np.float32)
    values[0, :16] = [1.75, 1.25, 1.125, 1.375, 0.875, 0.9, 0.125, 0.1251, 0.375, -1.5, -0.1, -0.25, 0, -0.0, 1.999, 0.5]
    host = from_l1(to_l1(values, "bfp4_b"), "bfp4_b")[0, :16]
    expected = [1.75, 1.25, 1.0, 1.5, 1.0, 1.0, 0.0, 0.25, 0.5, -1.5, 0, -0.25, 0, 0, 1.75, 0.5]
    assert host.tolist() == expected
    packed = packer.pack(to_bits(values), "bfp4_b", dst32=False)
    assert packed.shape == (576,)
    cut = from_l1(packed, "bfp4_b")[0, :16]
    # 1.999 rounds up to 2 in bfp8_b: the shared exponent is that of 2, and three bits of it are steps of a half
    assert cut.tolist() == [1.5, 1.0, 1.0, 1.0, 0.5, 0.5, 0.0, 0.0, 0.0, -1.5, 0.0, 0.0, 0.0, 0.0, 2.0, 0.5]
    assert not np.signbit(cut[10])


def test_bfp4_decode_inverts_encode_on_its_own_numbers() -> None:
    values = np.random.default_rng(4).integers(-7, 8, (3, 32, 32)).astype(np.float32)
    values[..., ::16] = 7
    packed = to_l1(values, "bfp4_b")
    assert packed.shape == (3, 576)
    assert (from_l1(packed, "bfp4_b") == values).all()
    assert (packer.pack(to_bits(values), "bfp4_b", dst32=False) == packed).all()


def test_bytes() -> None:
    tile = np.arange(1024, dtype=np.uint32).reshape(32, 32)
    assert (packer.pack(tile, "u8", dst32=True) == tile % 256).all()
    with pytest.raises(FormatError, match="32-bit DST"):
        packer.copy_to_dst(tile.astype(np.uint8), "u8", dst32=False, unpack_to_dest=False)
