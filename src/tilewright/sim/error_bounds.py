"""How far results are from exact arithmetic: tiles carry what the chip has, what real numbers give, and a bound of the distance.

Every call is computed by the chip's rules on the chip's operands, in float64 on the same operands, and in float64 on exact
operands. The first two differ by what the call itself rounds. The bound of its result is that, and what the bounds of its
operands can do to it: roundings that cancel each other count as if they added up. So it holds for the data of this run, to
first order, whichever way the roundings of other data like it fall. No op, format or chip has a constant here.

Whole numbers are taken as they came out: a cast to an integer decides by what the chip has.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from tilewright.dtypes import BLOCK_FLOATS, INTEGERS, WORDS
from tilewright.program import ComputeConfig, TensorSpec
from tilewright.records import record
from tilewright.sim.arithmetic import Arithmetic, Format, ProductJob
from tilewright.sim.call_parameters import integer_variant, meaning_of
from tilewright.sim.exact_arithmetic import ExactArithmetic
from tilewright.sim.fast_arithmetic import FastArithmetic
from tilewright.sim.numerics import formats
from tilewright.sim.registry import Site
from tilewright.sim.tensors import Array, DirectMemory
from tilewright.tile_pages import join_pages

TILE = np.dtype([("bits", np.uint32), ("value", np.float64), ("bound", np.float64)])  # bits: of an fp32 number, also in L1

Op = Callable[..., Any]  # of an arithmetic and its tiles
OnOne = Callable[[Arithmetic, Any], Any]


@record(kw_only=True)
class ResultError:
    """What a tensor that a kernel wrote is off, as shares of its largest element."""

    tensor: str
    largest: float
    measured: float
    bound: float


def result_error(spec: TensorSpec, pages: Array) -> ResultError:
    whole = join_pages(spec, pages)[tuple(slice(size) for size in spec.logical_shape or spec.shape)]
    exact, chip = whole["value"], formats.values_of(whole["bits"])
    known = np.isfinite(exact) & np.isfinite(chip)
    largest = float(np.abs(exact[known]).max(initial=0.0))
    measured, bound = np.abs(chip - exact)[known].max(initial=0.0), whole["bound"][known].max(initial=0.0)
    return ResultError(
        tensor=spec.name, largest=largest, measured=float(measured) / (largest or 1.0), bound=float(bound) / (largest or 1.0)
    )


class BoundedArithmetic(DirectMemory):
    defers_products = True

    def __init__(self, config: ComputeConfig, chip: str) -> None:
        self._chip = ExactArithmetic(config, chip)
        self._real = FastArithmetic(np.float64)
        self._meanings: dict[tuple[Site, Site | None], bool] = {}

    # What a call makes of its operands ------------------------------------------------------------------------------------------

    def _result(self, op: Op, operands: list[Any], moved: Callable[[], Array]) -> Array:
        """``moved`` says how far the bounds of the operands can move the exact result."""
        chip = op(self._chip, *(_part(tile, "bits") for tile in operands))
        with np.errstate(all="ignore"):
            same = op(self._real, *(None if tile is None else formats.values_of(tile["bits"]) for tile in operands))
            return _tile(chip, op(self._real, *(_part(tile, "value") for tile in operands)), moved(), same)

    def _linear(self, op: Op, operands: list[Any], old: Any) -> Array:
        """A sum of products of the operands, onto ``old``."""

        def moved() -> Array:
            sizes = [np.abs(tile["value"]) for tile in operands]
            larger = [size + tile["bound"] for size, tile in zip(sizes, operands, strict=True)]
            return op(self._real, *larger, _part(old, "bound")) - op(self._real, *sizes, None)

        return self._result(op, [*operands, old], moved)

    def _arranged(self, op: OnOne, tile: Array) -> Array:
        """Elements at other places, or just rounded."""
        return self._result(op, [tile], lambda: op(self._real, tile["bound"]))

    def _at_corners(self, op: Op, operands: list[Any], *, alike: bool = False) -> Array:
        """Functions that rise or fall in each operand; ``alike``: in all of them the same way."""
        corners = [(sign,) * len(operands) for sign in (-1, 1)] if alike else list(product((-1, 1), repeat=len(operands)))

        def moved() -> Array:
            here, most = op(self._real, *(_part(tile, "value") for tile in operands)), np.zeros(())
            for signs in corners:
                corner = op(self._real, *(_shifted(tile, sign) for tile, sign in zip(operands, signs, strict=True)))
                most = np.fmax(most, np.abs(corner - here))
            return most

        return self._result(op, operands, moved)

    # Memory ---------------------------------------------------------------------------------------------------------------------

    def pages(self, spec: TensorSpec, array: Array) -> Array:
        return _given(_unpacked(self._chip.pages(spec, array), spec.dtype), spec.dtype)

    def write_back(self, spec: TensorSpec, pages: Array, array: Array) -> None:
        self._chip.write_back(spec, _packed(pages["bits"], spec.dtype), array)

    def constant_tile(self, values: Array, dtype: str) -> Array:
        bits = _unpacked(self._chip.constant_tile(values, dtype), dtype)
        return _given(bits, dtype) if dtype in INTEGERS else _tile(bits, values.astype(np.float64), np.zeros(()), values)

    # The engines ----------------------------------------------------------------------------------------------------------------

    def to_source(self, tile: Array, dtype: str) -> Array:
        return self._arranged(lambda on, tile: on.to_source(self._stored(on, tile, dtype), dtype), tile)

    def straight_to_dst(self, tile: Array, dtype: str, *, unpack_to_dest: bool) -> Array:
        if dtype in INTEGERS:
            bits = self._chip.straight_to_dst(_packed(tile["bits"], dtype), dtype, unpack_to_dest=unpack_to_dest)
            return _given(bits, dtype)

        def op(on: Arithmetic, tile: Array) -> Array:
            return on.straight_to_dst(self._stored(on, tile, dtype), dtype, unpack_to_dest=unpack_to_dest)

        return self._arranged(op, tile)

    def _stored(self, on: Arithmetic, tile: Array, dtype: str) -> Array:
        """A tile of L1 as this arithmetic keeps it."""
        return _packed(tile, dtype) if on is self._chip else tile

    def copy(self, source: Array) -> Array:
        return self._arranged(lambda on, source: on.copy(source), source)

    def dst_to_source(self, value: Array, source: Format) -> Array:
        return self._arranged(lambda on, value: on.dst_to_source(value, source), value)

    def binary(self, kind: str, a: Array, b: Array, old: Array | None, *, accumulate: bool) -> Array:
        def op(on: Arithmetic, a: Array, b: Array, old: Array | None) -> Array:
            return on.binary(kind, a, b, old, accumulate=accumulate)

        if kind == "mul":
            return self._linear(op, [a, b], old)
        both = a["bound"] + b["bound"]
        return self._result(op, [a, b, old], lambda: both + old["bound"] if accumulate and old is not None else both)

    def broadcast(self, source: Array, dim: str, row: int = 0) -> Array:
        return self._arranged(lambda on, source: on.broadcast(source, dim, row), source)

    def unary_broadcast(self, source: Array, dim: str, *, direct: bool) -> Array:
        return self._arranged(lambda on, source: on.unary_broadcast(source, dim, direct=direct), source)

    def transpose(self, source: Array, *, direct: bool) -> Array:
        return self._arranged(lambda on, source: on.transpose(source, direct=direct), source)

    def turned(self, source: Array) -> Array:
        return np.swapaxes(source, -1, -2)

    def products(self, jobs: list[ProductJob]) -> list[list[Array]]:
        def on(arithmetic: Arithmetic, read: Callable[[Array], Array], old: Callable[[Array], Array | None]) -> list[list[Array]]:
            return arithmetic.products([_read(job, read, old) for job in jobs])

        def seen(tile: Array) -> Array:
            return formats.values_of(tile["bits"])

        chip = on(self._chip, lambda tile: tile["bits"], lambda tile: tile["bits"])
        exact = on(self._real, lambda tile: tile["value"], lambda tile: tile["value"])
        same = on(self._real, seen, seen)
        larger = on(self._real, lambda tile: np.abs(tile["value"]) + tile["bound"], lambda tile: tile["bound"])
        sizes = on(self._real, lambda tile: np.abs(tile["value"]), lambda _: None)
        return [
            [_tile(bits, value, more - less, here) for bits, value, more, less, here in zip(*parts, strict=True)]
            for parts in zip(chip, exact, larger, sizes, same, strict=True)
        ]

    def reduce(self, data: Array, scaler: Array, old: Array | None, *, pool: str, dim: str, dtype: str) -> Array:
        def op(on: Arithmetic, data: Array, scaler: Array, old: Array | None) -> Array:
            return on.reduce(data, scaler, old, pool=pool, dim=dim, dtype=dtype)

        def largest(on: Arithmetic, data: Array, old: Array | None) -> Array:
            return op(on, data, scaler["bits" if on is self._chip else "value"], old)

        return self._at_corners(largest, [data, old], alike=True) if pool == "max" else self._linear(op, [data, scaler], old)

    def vector(self, site: Site, init: Site | None, operands: list[Array], shape: tuple[int, ...]) -> Array:
        if not self._has_meaning(site, init):
            bits = self._chip.vector(site, init, [tile["bits"] for tile in operands], shape)
            return _given(bits, "f32")

        def op(on: Arithmetic, *tiles: Array) -> Array:
            return on.vector(site, init, list(tiles), shape)

        return self._at_corners(op, list(operands))

    def _has_meaning(self, site: Site, init: Site | None) -> bool:
        """Whether a call is arithmetic on real numbers."""
        key = (site, init)
        if key not in self._meanings:
            found = meaning_of(site, init)
            whole = found is None or found[0].result_dtype or not set(found[0].dtypes) - set(INTEGERS)
            self._meanings[key] = not whole and integer_variant(site) is None
        return self._meanings[key]

    def only_faces(self, part: str, value: Array, old: Array | None = None) -> Array:
        return self._chip.only_faces(part, value, old)

    def copy_slot(self, value: Array, *, integer: bool) -> Array:
        return value if integer else self._arranged(lambda on, value: on.copy_slot(value, integer=False), value)

    def vector_reduce(self, kind: str, dim: str, data: Array) -> Array:
        def op(on: Arithmetic, data: Array) -> Array:
            return on.vector_reduce(kind, dim, data)

        return self._at_corners(op, [data], alike=True)

    def vector_broadcast(self, kind: str, dim: str, data: Array, vector: Array) -> Array:
        def op(on: Arithmetic, data: Array, vector: Array) -> Array:
            return on.vector_broadcast(kind, dim, data, vector)

        return self._at_corners(op, [data, vector])

    def pack(self, value: Array, dtype: str, *, relu: Any, old: Array | None) -> Array:
        if dtype in INTEGERS:
            return _given(_unpacked(self._chip.pack(value["bits"], dtype, relu=relu, old=None), dtype), dtype)

        def op(on: Arithmetic, value: Array, old: Array | None) -> Array:
            if on is not self._chip:
                return on.pack(value, dtype, relu=relu, old=old)
            return _unpacked(on.pack(value, dtype, relu=relu, old=None if old is None else _packed(old, dtype)), dtype)

        added = value["bound"] if old is None else value["bound"] + old["bound"]
        return self._result(op, [value, old], lambda: added)

    def mask_reduced(self, tile: Array, dim: str) -> Array:
        return self._chip.mask_reduced(tile, dim)


def _part(tile: Array | None, field: str) -> Array | None:
    return None if tile is None else tile[field]


def _shifted(tile: Array | None, sign: int) -> Array | None:
    return None if tile is None else tile["value"] + sign * tile["bound"]


def _tile(chip: Array, exact: Array, moved: Array, same: Array) -> Array:
    """``same`` is what real numbers make of the chip's operands."""
    tile = np.empty(chip.shape, TILE)
    tile["bits"], tile["value"] = chip, exact
    found = formats.values_of(chip)
    with np.errstate(all="ignore"):
        bound = moved + np.abs(found - same)
    unbounded = ~np.isfinite(bound)
    if unbounded.any():  # an infinity has no distance: where a result is one, it is left out at the end
        bound = np.where(unbounded, np.where(np.isfinite(found) & np.isfinite(exact), np.inf, 0.0), bound)
    tile["bound"] = bound
    return tile


def _given(bits: Array, dtype: str) -> Array:
    """Data that is what it is."""
    tile = np.zeros(bits.shape, TILE)
    tile["bits"] = bits
    if dtype not in INTEGERS:
        tile["value"] = formats.values_of(tile["bits"])
    return tile


def _unpacked(l1: Array, dtype: str) -> Array:
    """What L1 holds, as fp32 patterns; integers as they are."""
    if dtype == "bf16":
        return formats.widen_bf16(l1)
    return formats.decode(l1) if dtype in BLOCK_FLOATS else l1.astype(np.uint32)


def _packed(bits: Array, dtype: str) -> Array:
    """Back to what L1 holds: the patterns came from there."""
    if dtype == "bf16":
        return formats.narrow_bf16(bits)
    return formats.to_l1(formats.from_bits(bits), dtype) if dtype in BLOCK_FLOATS else bits.astype(WORDS[dtype])


def _read(job: ProductJob, read: Callable[[Array], Array], old: Callable[[Array], Array | None]) -> ProductJob:
    def side(tiles: list[Any]) -> list[Any]:
        return [np.ascontiguousarray(read(tile)) for tile in tiles]  # for BLAS

    steps = [(side(left), side(right)) for left, right in job.steps]
    return ProductJob(job.down, job.across, steps, [None if tile is None else old(tile) for tile in job.olds])
