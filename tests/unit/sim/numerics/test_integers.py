"""Integer calls against Python's own integers: wrap-around, signs, shifts."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.sim.numerics import sfpu

CHIP = "wormhole_b0"

A = np.array([0, 1, -1, 7, -7, 2**31 - 1, -(2**31), 123456789, -987654321], dtype=np.int64)
B = np.array([5, -3, -3, 2, 2, 1, 1, -1000, 4096], dtype=np.int64)


def bits(values: np.ndarray) -> np.ndarray:
    return (values & 0xFFFFFFFF).astype(np.uint32)


def wrapped(value: int) -> int:
    return value & 0xFFFFFFFF


BINARY = {
    "add_int_tile": lambda a, b: a + b,
    "sub_int_tile": lambda a, b: a - b,
    "rsub_int_tile": lambda a, b: b - a,
    "mul_int_tile": lambda a, b: a * b,
    "div_int32_floor_tile": lambda a, b: a // b,
    "div_int32_trunc_tile": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "remainder_int32_tile": lambda a, b: a % b,
    "fmod_int32_tile": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
    "binary_max_int32_tile": max,
    "binary_min_int32_tile": min,
    "binary_max_uint32_tile": lambda a, b: max(wrapped(a), wrapped(b)),
    "lt_int_tile": lambda a, b: int(a < b),
    "lt_int_tile:u32": lambda a, b: int(wrapped(a) < wrapped(b)),
    "ge_int_tile": lambda a, b: int(a >= b),
    "bitwise_and_binary_tile": lambda a, b: a & b,
    "bitwise_xor_binary_tile": lambda a, b: a ^ b,
}


@pytest.mark.parametrize("key", sorted(BINARY))
def test_binary(key: str) -> None:
    name, _, variant = key.partition(":")
    got = sfpu.binary(CHIP, name, bits(A), bits(B), dst32=True, variant=variant)
    want = [wrapped(BINARY[key](int(a), int(b))) for a, b in zip(A, B, strict=True)]
    assert got.tolist() == want


@pytest.mark.parametrize(
    ("name", "kept"), [("binary_right_shift_tile", True), ("binary_logical_right_shift_tile", False)]
)
def test_right_shifts_differ_in_the_sign(name: str, kept: bool) -> None:
    counts = np.array([0, 1, 4, 31, 31, 16, 31, 32, 3], dtype=np.int64)
    got = sfpu.binary(CHIP, name, bits(A), bits(counts), dst32=True)
    source = A if kept else A & 0xFFFFFFFF
    want = [wrapped(int(a) >> int(n)) if n < 32 else 0 for a, n in zip(source, counts, strict=True)]
    assert got.tolist() == want


def test_unary_and_scalars() -> None:
    assert sfpu.unary(CHIP, "abs_tile_int32", bits(A), dst32=True).tolist() == [wrapped(abs(int(a))) for a in A]
    assert sfpu.unary(CHIP, "negative_tile_int32", bits(A), dst32=True).tolist() == [wrapped(-int(a)) for a in A]
    less = sfpu.unary(CHIP, "add_unary_tile_int32", bits(A), dst32=True, params=(-5,))
    assert less.tolist() == [wrapped(int(a) - 5) for a in A]
    assert sfpu.unary(CHIP, "clamp_tile_int32", bits(A), dst32=True, params=(-6, 6)).tolist() == [
        wrapped(min(max(int(a), -6), 6)) for a in A
    ]
    assert sfpu.unary(CHIP, "bitwise_not_tile", bits(A), dst32=True).tolist() == [wrapped(~int(a)) for a in A]
    assert sfpu.unary(CHIP, "left_shift_tile", bits(A), dst32=True, params=(3,)).tolist() == [wrapped(int(a) << 3) for a in A]


def test_small_integers_are_not_flushed_like_denormals() -> None:
    one = np.array([1], dtype=np.uint32)
    assert sfpu.unary(CHIP, "relu_tile_int32", one, dst32=True).tolist() == [1]
    assert sfpu.binary(CHIP, "add_int_tile", one, one, dst32=True).tolist() == [2]


def test_typecast_by_variant() -> None:
    source = np.array([-2.75, 3.5, 1e20], dtype=np.float32).view(np.uint32)
    got = sfpu.unary(CHIP, "typecast_tile", source, dst32=True, variant="f32_i32")
    assert got.tolist() == [wrapped(-2), 3, 0x80000000]
    back = sfpu.unary(CHIP, "typecast_tile", got[:2].copy(), dst32=True, variant="i32_f32")
    assert back.view(np.float32).tolist() == [-2.0, 3.0]
