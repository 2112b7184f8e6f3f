"""Kernels of single rows of the op table: how a person writes the row, what goes in, and what must come out.

Inputs of one tile: half ordinary numbers of the row's domain, a quarter numbers of any exponent, a quarter special ones.
"""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np

from tilewright.dialects import tile_ops
from tilewright.dialects.tile_op import INTEGER_DTYPES, Composite, TileOp
from tilewright.sim.numerics import formats

BLOCK_FLOATS = ("bfp8_b", "bfp4_b")  # sixteen numbers share an exponent
HOST = {
    "bf16": ml_dtypes.bfloat16, "f32": np.float32, **dict.fromkeys(BLOCK_FLOATS, np.float32), "i32": np.int32, "u32": np.uint32,
    "u16": np.uint16, "u8": np.uint8,
}  # fmt: skip
LIMITS = {"i32": (-(2**31), 2**31), "u32": (0, 2**32), "u16": (0, 2**16), "u8": (0, 2**8)}
SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-39, -1e-39, 3.38e38, -3.38e38, 2.0**-126, -(2.0**-126), 1.0, -1.0, 0.5, 2.0, -3.0)
SMALLEST = 2.0**-126  # normal; results near it may be zero
TILE = (32, 32)
ORDINARY = slice(0, 512)
# Rows whose Python text needs more than a function and its parameters.
WRITTEN = {
    "exp_scaled": "ttl.math.exp({0}, approx=True, scale=0.5)",
    "pow_int": "ttl.math.pow({0}, 3)",
    "pow_scalar": "ttl.math.pow({0}, 2.5)",
    "fill": "ttl.block.fill(1.2345678, shape={0}.shape, dtype='{dtype}')",
    "fill_int": "ttl.block.fill(7, shape={0}.shape, dtype='{dtype}')",
}
EVERYTHING: tuple[TileOp | Composite, ...] = (*tile_ops.ROWS, *tile_ops.COMPOSITES)


def written_as(row: TileOp, dtype: str) -> tuple[TileOp | Composite, str]:
    """The function a person calls to reach ``row`` on ``dtype``: on blocks, or with a number on the ``right`` or ``left``."""
    if row.python:
        return row, "blocks"
    for op in EVERYTHING:
        if (dtype, row.name) in op.by_dtype and op.python:
            return op, "blocks"
    for op in EVERYTHING:
        if row.name not in (op.scalar, op.rscalar):
            continue
        side = "right" if op.scalar == row.name else "left"
        outer = [other for other in EVERYTHING if (dtype, op.name) in other.by_dtype and other.python]
        if op.python or outer:
            return (op if op.python else outer[0]), side
    raise AssertionError(f"no Python text reaches the row {row.name} on {dtype}")


def expression(row: TileOp, dtype: str, names: str | tuple[str, ...] = "abc", *, approx: bool = False) -> str:
    """Python text of the row with its sample parameters."""
    if row.name in WRITTEN:
        return WRITTEN[row.name].format(*names, dtype=dtype)
    op, side = written_as(row, dtype)
    call = f"ttl.{op.python[0]}"
    if side != "blocks":
        number = repr(row.params[0].sample)
        return f"{call}({names[0]}, {number})" if side == "right" else f"{call}({number}, {names[0]})"
    params = [f"{p.name}={p.sample!r}" for p in row.params if not p.hidden and p.name != "approx" and p.sample is not None]
    return f"{call}({', '.join([*names[: row.arity], *params, *(['approx=True'] if approx else [])])})"


def names_of(row: TileOp) -> str:
    return "abc"[: max(row.arity, 1)]


def parameters(row: TileOp, *, approx: bool = False) -> dict[str, Any]:
    values = {param.name: param.sample for param in row.params}
    return {**values, "approx": True} if approx else values


def operands(row: TileOp, dtype: str) -> list[Any]:
    """One tile per operand."""
    generator = np.random.default_rng(7)
    if dtype in INTEGER_DTYPES:
        return [_integers(row, dtype, generator, place) for place in range(max(row.arity, 1))]
    tiles: list[Any] = []
    pairs = list(itertools.product(range(len(SPECIAL)), repeat=2))
    for place in range(max(row.arity, 1)):
        ordinary = generator.uniform(*row.domain, 512)
        extreme = np.ldexp(generator.uniform(1, 2, 256), generator.integers(-126, 127, 256)) * generator.choice([-1, 1], 256)
        special = np.array([SPECIAL[(first, second, (first + second) % len(SPECIAL))[place]] for first, second in pairs])
        if dtype in BLOCK_FLOATS:  # wild ones would be all that is left of their sixteen
            ordinary, extreme, special = (generator.uniform(*row.domain, count) for count in (512, 256, 256))
        tiles.append(stored(np.concatenate([ordinary, extreme, special]).reshape(TILE), dtype))
    return [_inside(tile, *row.domain) for tile in tiles] if dtype == "bfp4_b" else tiles


def _inside(tile: Any, low: float, high: float) -> Any:
    """Three bits round numbers out of the domain, or to zero, and the infinity of one takes its sixteen with it."""
    blocks = tile.reshape(64, 16)
    outside = (blocks < low) | (blocks > high) | ((blocks == 0) & (low > -0.5))
    return np.where(outside, blocks.max(axis=1, keepdims=True), blocks).reshape(TILE)


def _integers(row: TileOp, dtype: str, generator: Any, place: int) -> Any:
    low, high = LIMITS[dtype]
    ordinary = generator.integers(int(row.domain[0]), int(row.domain[1]) + 1, 768)
    wild = generator.integers(low, high, 256)
    special = np.array([low, high - 1, 0, 1, 2, 31])
    wild[: len(special)] = special if place == 0 else special[::-1]
    if place and row.name in ("floordiv_int", "truncdiv_int", "fmod_int", "remainder_int", "remainder_uint"):
        wild[wild == 0] = 3  # what the chip divides by zero is not known
    if place and "shift" in row.name:
        wild %= 32
    if row.name == "lcm":
        wild %= 180  # larger ones overflow
    return np.concatenate([ordinary, wild]).astype(np.int64).astype(HOST[dtype]).reshape(TILE)


def stored(values: Any, dtype: str) -> Any:
    """Values as a tensor of ``dtype`` holds them."""
    with np.errstate(over="ignore", invalid="ignore"):
        array = np.asarray(values).astype(HOST[dtype])
    if dtype not in BLOCK_FLOATS:
        return array
    tiles = array.reshape(-1, 32, 32)
    return formats.from_l1(formats.to_l1(tiles, dtype), dtype).reshape(array.shape)


def wide(array: Any) -> Any:
    """As float64 (denormals flushed, as the chip does) or int64."""
    if array.dtype.kind in "iu":
        return array.astype(np.int64)
    with np.errstate(invalid="ignore"):
        values = array.astype(np.float64)
    return np.where(np.abs(values) < SMALLEST, np.copysign(0.0, values), values)


def meaning(row: TileOp, tiles: list[Any], **values: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.broadcast_to(np.asarray(row.reference(*(wide(tile) for tile in tiles[: row.arity]), **values)), TILE)


def trusted(row: TileOp, tiles: list[Any], expected: Any) -> Any:
    """Where the row's bound holds: faithful inputs, results that are numbers and fit. What the chip takes -0 and denormals for
    is the recordings' business."""
    inside = np.isfinite(expected) & (np.abs(expected) < 3.38e38)
    for tile in tiles[: row.arity]:
        values = wide(tile)
        inside &= np.isfinite(values) & (values >= row.faithful[0]) & (values <= row.faithful[1])
        inside &= np.abs(values) >= row.faithful_from
        inside &= (tile.view(f"u{tile.dtype.itemsize}") == 0) | (np.abs(values) >= SMALLEST)
    return inside


def step(values: Any) -> Any:
    """Distance of neighbouring bf16 numbers."""
    return np.ldexp(1.0, np.frexp(np.maximum(np.abs(values), SMALLEST))[1] - 8)


def assert_within(row: TileOp, dtype: str, tiles: list[Any], found: Any, expected: Any, bound: float) -> None:
    """Integers exactly, floats within ``bound`` units of bf16 wherever the bound holds."""
    if dtype in INTEGER_DTYPES:
        assert np.array_equal(found, np.asarray(expected).astype(np.int64).astype(HOST[dtype])), row.name
        return
    inside = trusted(row, tiles, expected)
    assert inside.ravel()[ORDINARY].mean() > 0.4, "most ordinary inputs are tested"
    with np.errstate(all="ignore"):
        error = np.abs(found.astype(np.float64) - expected)
    allowed = bound * step(expected) + 4 * SMALLEST
    if dtype in BLOCK_FLOATS:  # the packer rounds to seven bits, and again at the scale of the largest of sixteen
        largest = np.abs(np.where(inside, expected, np.nan_to_num(found.astype(np.float64), posinf=0, neginf=0)))
        largest = largest.reshape(64, 16).max(axis=1).repeat(16).reshape(TILE)
        quantum = np.ldexp(1.0, np.frexp(largest * (1 + 2.0**-7) + bound * step(largest))[1] - 7)
        allowed = allowed + step(expected) + quantum / 2
        if dtype == "bfp4_b":  # and then drops four bits
            allowed = allowed + 16 * quantum
    wrong = inside & ~(error <= allowed * (1 + 1e-6))
    if not wrong.any():
        return
    at = tuple(np.argwhere(wrong)[0])
    inputs = [float(tile[at]) for tile in tiles[: row.arity]]
    raise AssertionError(
        f"{row.name} on {dtype}: {int(wrong.sum())} of {int(inside.sum())} results are off; {inputs} gives {float(found[at])}, "
        f"{float(expected[at])} is right, {error[at] / step(expected)[at]:.3g} ULP, allowed {bound}"
    )
