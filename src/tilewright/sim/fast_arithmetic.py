"""Values only: tiles are float32 everywhere, rounded to their storage format where they are stored; or float64, never rounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.dialects.tile_op import TileOp, applicable
from tilewright.dtypes import INTEGERS
from tilewright.program import TensorSpec
from tilewright.sim.arithmetic import Format, ProductJob, carry_out
from tilewright.sim.call_parameters import meaning_of, variant_of
from tilewright.sim.numerics import formats
from tilewright.sim.numerics.rounding import TYPECASTS
from tilewright.sim.registry import Site, fault
from tilewright.sim.tensors import Array, DirectMemory, join_faces
from tilewright.tile_pages import join_pages, split_pages

ELEMENTWISE: dict[str, Callable[..., Array]] = {"add": np.add, "sub": np.subtract, "mul": np.multiply}


def round_bf16(values: Array) -> Array:
    """float32 rounded to the nearest bf16, ties to even."""
    bits = values.view(np.uint32)
    rounded = bits >> np.uint32(16)
    rounded &= np.uint32(1)
    rounded += np.uint32(0x7FFF)
    rounded += bits
    rounded &= np.uint32(0xFFFF0000)
    result = rounded.view(np.float32)
    odd = np.isnan(values)
    if odd.any():
        result[odd] = np.nan
    return result


class FastArithmetic(DirectMemory):
    defers_products = False

    def __init__(self, kind: type[np.floating[Any]] = np.float32) -> None:
        self._kind = kind
        self._rounds = kind is np.float32
        self._meanings: dict[tuple[Site, Site | None], tuple[TileOp, dict[str, Any]] | None] = {}

    def pages(self, spec: TensorSpec, array: Array) -> Array:
        if spec.dtype in INTEGERS:
            return split_pages(spec, array.astype(INTEGERS[spec.dtype]))
        if spec.dtype == "bf16" and formats.holds_bf16(array):
            return formats.widen_bf16(split_pages(spec, np.ascontiguousarray(array).view(np.uint16))).view(np.float32)
        pages = np.ascontiguousarray(split_pages(spec, array), dtype=np.float32)
        return pages if spec.dtype == "f32" else self.pack(pages, spec.dtype, relu=None, old=None)

    def write_back(self, spec: TensorSpec, pages: Array, array: Array) -> None:
        if spec.dtype == "bf16" and formats.holds_bf16(array):
            array[...] = join_pages(spec, formats.narrow_bf16(pages.view(np.uint32))).view(array.dtype)
            return
        array[...] = join_pages(spec, pages).astype(array.dtype)

    def to_source(self, tile: Array, dtype: str) -> Array:
        return tile

    def straight_to_dst(self, tile: Array, dtype: str, *, unpack_to_dest: bool) -> Array:
        return tile

    def copy(self, source: Array) -> Array:
        return source

    def binary(self, kind: str, a: Array, b: Array, old: Array | None, *, accumulate: bool) -> Array:
        with np.errstate(all="ignore"):
            result = ELEMENTWISE[kind](a, b)
            return result if old is None or not accumulate else result + old

    def dst_to_source(self, value: Array, source: Format) -> Array:
        return value

    def broadcast(self, source: Array, dim: str, row: int = 0) -> Array:
        if dim == "col":
            return np.broadcast_to(source[..., :, :1], source.shape)
        if dim == "row":
            return np.broadcast_to(source[..., row : row + 1, :], source.shape)
        return np.broadcast_to(source[..., :1, :1], source.shape)

    def unary_broadcast(self, source: Array, dim: str, *, direct: bool) -> Array:
        return self.broadcast(source, dim)

    def transpose(self, source: Array, *, direct: bool) -> Array:
        return np.swapaxes(source, -1, -2)

    def zeros(self, shape: tuple[int, ...]) -> Array:
        return np.zeros(shape, self._kind)

    def turned(self, source: Array) -> Array:
        return np.swapaxes(source, -1, -2)

    def matmul(self, in0: Array, in1: Array, old: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.matmul(in0, in1) + old

    def products(self, jobs: list[ProductJob]) -> list[list[Array]]:
        return carry_out(jobs, self.matmul, self.zeros)

    def reduce(self, data: Array, scaler: Array, old: Array | None, *, pool: str, dim: str, dtype: str) -> Array:
        axes = {"row": (-1,), "col": (-2,), "scalar": (-2, -1)}[dim]
        factor = scaler[..., 0, 0][..., None, None]
        if pool == "max":
            found = data.max(axis=axes, keepdims=True)
        else:
            found = data.sum(axis=axes, keepdims=True, dtype=self._kind) * (factor * factor if dim == "scalar" else factor)
        result = np.zeros_like(data)
        rows = slice(None) if dim == "row" else slice(0, 1)
        cols = slice(None) if dim == "col" else slice(0, 1)
        if old is not None:
            before = old[..., rows, cols]
            found = np.maximum(found, before) if pool == "max" else found + before
        result[..., rows, cols] = found
        return result

    def vector(self, site: Site, init: Site | None, operands: list[Array], shape: tuple[int, ...]) -> Array:
        key = (site, init)
        if key not in self._meanings:
            self._meanings[key] = meaning_of(site, init)
        found = self._meanings[key]
        if found is None:
            raise fault("TW514", site, "the op table has no NumPy meaning of this call", help="run without --fast")
        row, params = found
        if row.result_dtype and params.get("dtype") in INTEGERS:
            return cast_to_integers(operands[0], variant_of(site, init), params["dtype"])
        kept = _result_dtype(operands) if operands else None
        operands = [tile.astype(np.int64) if tile.dtype.kind in "iu" else tile for tile in operands]  # as the table's meanings
        with np.errstate(all="ignore"):
            if not operands:
                value = np.asarray(applicable(row.reference)(**params))
                return np.broadcast_to(value.astype(self._kind if value.dtype.kind == "f" else np.int32), shape)
            value = np.asarray(applicable(row.reference)(*operands, **params))
        kind = INTEGERS.get(params.get("dtype", ""), self._kind) if row.result_dtype else kept
        result = value.astype(kind, copy=False)
        narrow = self._rounds and row.result_dtype and params.get("dtype") == "bf16"
        return round_bf16(np.ascontiguousarray(result)) if narrow else result

    def only_faces(self, part: str, value: Array, old: Array | None = None) -> Array:
        return join_faces(part, value, old)

    def copy_slot(self, value: Array, *, integer: bool) -> Array:
        return value

    def vector_reduce(self, kind: str, dim: str, data: Array) -> Array:
        result = data.copy()
        axis = -1 if dim == "row" else -2
        found = {"sum": np.sum, "max": np.max, "min": np.min}[kind](data, axis=axis, keepdims=True)
        result[..., slice(None) if dim == "row" else slice(0, 1), slice(None) if dim == "col" else slice(0, 1)] = found
        return result

    def vector_broadcast(self, kind: str, dim: str, data: Array, vector: Array) -> Array:
        with np.errstate(all="ignore"):
            return ELEMENTWISE[kind](data, self.broadcast(vector, dim))

    def constant_tile(self, values: Array, dtype: str) -> Array:
        return self.pack(values, dtype, relu=None, old=None)

    def pack(self, value: Array, dtype: str, *, relu: Any, old: Array | None) -> Array:
        if dtype in INTEGERS:
            return value.astype(INTEGERS[dtype])
        stored = np.ascontiguousarray(value, dtype=self._kind)
        if relu is not None:
            stored = apply_relu(stored, relu)
        if old is not None:
            stored = stored + old
        if dtype == "f32" or not self._rounds:
            return stored
        return round_bf16(stored) if dtype == "bf16" else formats.from_l1(formats.to_l1(stored, dtype), dtype)

    def mask_reduced(self, tile: Array, dim: str) -> Array:
        return tile  # reduce leaves zeros there


def _result_dtype(operands: list[Array]) -> np.dtype[Any]:
    """That of the operands; the first of three is a condition, and a float zero may stand beside integers."""
    values = operands[1:] if len(operands) > 2 else operands[:1]
    return next((value.dtype for value in values if value.dtype.kind in "iu"), values[0].dtype)


def cast_to_integers(values: Array, variant: str, target: str) -> Array:
    """As the chip rounds, clamps or wraps."""
    source = values.astype(np.int64) if values.dtype.kind in "iu" else np.ascontiguousarray(values, np.float32).view(np.uint32)
    bits = np.ascontiguousarray(TYPECASTS[f"typecast_tile:{variant}"](source.astype(np.uint32), (), True))
    return bits.view(np.int32) if target == "i32" else bits.astype(INTEGERS[target])


def apply_relu(values: Array, relu: Any) -> Array:
    threshold = np.uint32(relu.threshold << 16).view(np.float32)
    positive = np.maximum(values, np.float32(0))
    if relu.mode == "min":
        return np.where(positive <= threshold, np.float32(0), positive)
    return np.minimum(positive, threshold) if relu.mode == "max" else positive
