"""Rows of the op table, recorded on the vendor's simulators of both chips with the kernel that is emitted for the row.

``tests/golden_data/rows.json`` lists every row, dtype and form that was compared, by chip. Where the chips or our simulator had
differed, ``rows.npz`` has all bits that went in and came out; the rest was equal wherever no NaN is involved. One operand in
bf16 is all 65,536 patterns, tile after tile; else it was the tile of `op_kernels.operands`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import kernel_text
import op_kernels
from tilewright.dialects import tile_ops
from tilewright.dialects.tile_op import TileOp

DATA = Path(__file__).resolve().parent / "golden_data"
CHIPS = ("wormhole_b0", "blackhole")
ROWS = {row.name: row for row in tile_ops.ROWS}
PATTERNS = {"bf16": np.uint16, "f32": np.uint32, "i32": np.uint32, "u32": np.uint32}


@cache
def compared() -> dict[str, dict[str, Any]]:
    """By chip and ``row.dtype[.approx]``: names of ``inputs`` that are kept, and lanes that differed (``differing``) from a
    simulator with Wormhole's arithmetic for both chips."""
    return json.loads((DATA / "rows.json").read_text(encoding="utf-8"))


@cache
def _arrays() -> dict[str, Any]:
    with np.load(DATA / "rows.npz") as archive:
        return {name: np.cumsum(archive[name], dtype=archive[name].dtype) for name in archive.files}


def recorded(chip: str) -> list[str]:
    return sorted(name.removeprefix(f"{chip}/") for name in _arrays() if name.startswith(f"{chip}/"))


def output(chip: str, name: str) -> Any:
    bits = _arrays()[f"{chip}/{name}"]
    return in_rows(bits) if bits.size > 1024 else bits.reshape(op_kernels.TILE)


def in_rows(bits: Any) -> Any:
    """64 tiles one after the other as an array of 8 x 8."""
    return np.ascontiguousarray(bits.reshape(8, 8, 32, 32).transpose(0, 2, 1, 3).reshape(256, 256))


def parts(name: str) -> tuple[TileOp, str, bool]:
    row, dtype, *form = name.split(".")
    return ROWS[row], dtype, bool(form)


def inputs(chip: str, name: str) -> list[Any]:
    """As patterns."""
    row, dtype, _ = parts(name)
    if kept := compared()[chip][name].get("inputs"):
        return [_arrays()[array].reshape(op_kernels.TILE) for array in kept]
    if dtype == "bf16" and row.arity <= 1:
        return [in_rows(np.arange(65536, dtype=np.uint16))]
    return [np.ascontiguousarray(tile).view(PATTERNS[dtype]) for tile in op_kernels.operands(row, dtype)]


def kernel(name: str, shape: tuple[int, ...]) -> str:
    """Source of the row's kernel on arrays of a shape."""
    row, dtype, approx = parts(name)
    tiles = (shape[0] // 32, shape[1] // 32)
    return kernel_text.elementwise({"o": op_kernels.expression(row, dtype, approx=approx)}, op_kernels.names_of(row), blocks=tiles)


def computed(name: str, given: list[Any], chip: str, folder: Path, run: Callable[[Any, list[Any]], Any]) -> Any:
    """What the row's kernel gives for patterns."""
    _, dtype, _ = parts(name)
    arrays = [array.view(op_kernels.HOST[dtype]) for array in given]
    arrays.append(np.zeros(given[0].shape, op_kernels.HOST[dtype]))
    run(kernel_text.load(kernel(name, given[0].shape), folder).compile(*arrays, arch=chip), arrays)
    return arrays[-1].view(given[0].dtype)


def is_nan(bits: Any) -> Any:
    infinity, unsigned = 0x7F80 << (8 * bits.itemsize - 16), (1 << (8 * bits.itemsize - 1)) - 1
    return (bits & bits.dtype.type(unsigned)) > bits.dtype.type(infinity)


def lost_on_the_way(given: list[Any]) -> Any:
    """Lanes with a NaN whose sign is set: it was lost before the recording."""
    lost = np.zeros(given[0].shape, bool)
    for bits in given:
        lost |= is_nan(bits) & (bits >> bits.dtype.type(8 * bits.itemsize - 1) != 0)
    return lost
