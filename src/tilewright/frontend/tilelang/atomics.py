"""``T.atomic_add`` to a tensor: blocks do not see each other's sums, so each adds to a part of its own.

The kernel writes the parts to a tensor that the launcher adds, with one more dimension for every block or loop variable that does
not say by itself where the block lies; the launcher adds them up and onto the tensor.
"""

from __future__ import annotations

import math
from typing import Any

from tilewright.frontend.tilelang.elements import store_element
from tilewright.frontend.tilelang.primitives import copy, window_like
from tilewright.frontend.tilelang.reading import Corner, Reading, TensorElement
from tilewright.frontend.tilelang.symbols import Fragment, Tensor, plain
from tilewright.frontend.tilelang.tile_program import Window
from tilewright.frontend.tilelang.trouble import Trouble
from tilewright.integers import Leaf, Value, linear, make
from tilewright.records import record

PARTS = "parts"
MOST_PARTS = 2**26  # elements


@record
class Parts:
    """The tensor (by its number) that the parts are added to, and how many of the made one's dimensions tell parts apart."""

    tensor: int
    dimensions: int


def atomic_add(reading: Reading, dst: Any, value: Any, *_hints: Any, **_named: Any) -> None:
    if isinstance(dst, TensorElement):
        extents = tuple(_extent(reading, index) for index in dst.indices)
        holder, around = _parts(reading, dst.tensor, dst.indices, extents)
        store_element(reading, holder, tuple(map(plain, (*around, *dst.indices))), value)
        return
    if not isinstance(dst, (Tensor, Corner, Window)) or not isinstance(value, Fragment):
        raise Trouble(
            "TW004",
            "T.atomic_add takes a place in a tensor and what is added to it",
            help="T.atomic_add(C[by * 32, bx * 32], fragment), or elements of both inside T.Parallel",
            word="atomic_add",
        )
    window = window_like(dst, value)
    holder, around = _parts(reading, window.tensor, window.starts, window.extents)
    copy(reading, value, Window(holder, (*around, *window.starts), (*(1 for _ in around), *window.extents)))


def _extent(reading: Reading, index: Value) -> int:
    return next(
        (reading.parallel[term] for term, _ in linear(index)[0] if isinstance(term, Leaf) and term in reading.parallel), 1
    )


def _parts(
    reading: Reading, tensor: Tensor, starts: tuple[Value, ...], extents: tuple[int, ...]
) -> tuple[Tensor, tuple[Value, ...]]:
    """The tensor of parts, and where this block's part is."""
    assert reading.launch is not None
    leaves = [leaf for leaf in (*reading.launch.variables, *reading.loop_variables) if leaf.high > leaf.low]
    told = _told_apart(reading, starts, extents)
    apart = [leaf for leaf in leaves if leaf not in told]
    shape = (*(leaf.high - leaf.low + 1 for leaf in apart), *tensor.shape)
    if math.prod(shape) > MOST_PARTS:
        raise Trouble(
            "TW001",
            f"T.atomic_add to '{tensor.name}' from {math.prod(shape) // math.prod(tensor.shape)} places",
            help="give each block its own part of the output, and add the parts in a second kernel",
            word="atomic_add",
        )
    taken, number = {each.name for each in reading.tensors}, 0
    while (name := f"{tensor.name}_parts{number or ''}") in taken:
        number += 1
    whole = tensor.format in ("i32", "u32", "u16")
    kind, format = (tensor.dtype, tensor.format) if whole else ("float32", "f32")
    holder = Tensor(name, shape, kind, format, len(reading.tensors), PARTS)
    holder.origin = Parts(tensor.index, len(apart))
    reading.tensors.append(holder)
    return holder, tuple(make("-", leaf, leaf.low) for leaf in apart)


def _told_apart(reading: Reading, starts: tuple[Value, ...], extents: tuple[int, ...]) -> set[Any]:
    """Variables whose values give blocks that do not overlap: each steps over all that smaller ones reach."""
    found: set[Any] = set()
    for start, extent in zip(starts, extents, strict=True):
        reach = extent
        terms = [(term, factor) for term, factor in linear(start)[0] if term not in reading.parallel]
        for term, factor in sorted(terms, key=lambda item: (abs(item[1]), str(item[0]))):
            if not isinstance(term, Leaf) or abs(factor) < reach:
                break
            found.add(term)
            reach += abs(factor) * (term.high - term.low)
    return found
