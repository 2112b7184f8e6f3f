"""Parts of fragments: ``x[i, j + 64]`` in a loop over half of them.

Tiles of a fragment stay together, so a part is a fragment of its own. One that is read is loaded again from where the whole came
from; parts that are written one by one are stored one by one. Both only within one straight piece of code: behind a loop or a
branch nobody could tell what the whole holds.
"""

from __future__ import annotations

import math
from dataclasses import field
from typing import TYPE_CHECKING, Any

from tilewright import hardware
from tilewright.frontend.tilelang.liveness import reads
from tilewright.frontend.tilelang.symbols import Fragment, Read
from tilewright.frontend.tilelang.tile_program import Assign, Load, Statement, Window
from tilewright.frontend.tilelang.trouble import Trouble
from tilewright.integers import Leaf, Value, linear, make
from tilewright.records import record

if TYPE_CHECKING:
    from tilewright.frontend.tilelang.reading import Reading

Ranges = tuple[tuple[int, int], ...]  # start and size along each dimension
Part = tuple[Fragment, tuple[Leaf, ...]]  # and the parallel variables along it


@record(frozen=False)
class Whole:
    """What is known of a fragment: where it was loaded from, or the parts it was given, and in which piece of code."""

    body: list[Statement]
    window: Window | None = None
    parts: dict[Ranges, Fragment] = field(default_factory=dict[Ranges, Fragment])


class FragmentParts:
    def __init__(self) -> None:
        self.wholes: dict[Fragment, Whole] = {}

    def note(self, statement: Statement, body: list[Statement]) -> None:
        """A load or an assignment gives the whole of its target another value; nothing may read a whole that has parts."""
        for fragment in reads(statement):
            if fragment in self.wholes and self.wholes[fragment].parts:
                raise Trouble(
                    "TW104",
                    f"fragment '{fragment.name}' {fragment.shape} was given values in parts and is used as a whole",
                    help="parts that cover all of it can be stored to a tensor; else use a fragment for each part",
                )
        if isinstance(statement, Load):
            self.wholes[statement.target] = Whole(body, statement.window)
        elif isinstance(statement, Assign):
            copied = self.wholes.get(statement.value.fragment) if isinstance(statement.value, Read) else None
            self.wholes.pop(statement.target, None)
            if copied is not None and copied.body is body and copied.window is not None and not copied.parts:
                self.wholes[statement.target] = Whole(body, copied.window)  # the same elements, from the same place

    def read(self, reading: Reading, fragment: Fragment, indices: tuple[Value, ...]) -> Read | None:
        found, whole = _ranges(reading, fragment, indices), self.wholes.get(fragment)
        if found is None or whole is None or whole.body is not reading.bodies[-1]:
            return None
        ranges, leaves = found
        if ranges not in whole.parts:
            if whole.window is None or whole.parts:
                return None
            if (fragment, ranges) not in reading.loaded:
                part = _part(reading, fragment, ranges)
                reading.emit(Load(part, narrowed(whole.window, ranges), reading.place))
                reading.loaded[fragment, ranges] = part
            return Read(reading.loaded[fragment, ranges], leaves)
        return Read(whole.parts[ranges], leaves)

    def gathered(self, reading: Reading, fragment: Fragment, indices: tuple[Value, ...]) -> Read | None:
        """``x[i, j // 2]`` of a fragment that was loaded: the launcher puts these elements of the tensor in order."""
        from tilewright.frontend.tilelang.gathers import gathered

        whole = self.wholes.get(fragment)
        if whole is None or whole.body is not reading.bodies[-1] or whole.window is None or whole.parts:
            return None
        places = list(whole.window.starts)
        along = [axis for axis, extent in enumerate(whole.window.extents) if extent > 1]
        if len(along) != len(indices):
            return None
        for axis, index in zip(along, indices, strict=True):
            places[axis] = make("+", places[axis], index)
        return gathered(reading, whole.window.tensor, tuple(places))

    def written(self, reading: Reading, fragment: Fragment, indices: tuple[Value, ...]) -> Part | None:
        """The part that a store to these elements gives a value, and the variables along it."""
        found = _ranges(reading, fragment, indices)
        if found is None or fragment in reading.valued:
            return None
        ranges, leaves = found
        whole = self.wholes.get(fragment)
        if whole is None or whole.body is not reading.bodies[-1]:
            whole = self.wholes[fragment] = Whole(reading.bodies[-1])
        if ranges not in whole.parts:
            whole.parts[ranges] = _part(reading, fragment, ranges)
        return whole.parts[ranges], leaves

    def stored(self, reading: Reading, fragment: Fragment) -> dict[Ranges, Fragment]:
        """The parts that make up the whole; empty if it has none."""
        whole = self.wholes.get(fragment)
        if whole is None or whole.body is not reading.bodies[-1]:
            return {}
        covered = sum(math.prod(size for _, size in ranges) for ranges in whole.parts)
        apart = all(_apart(a, b) for a in whole.parts for b in whole.parts if a is not b)
        return whole.parts if covered == fragment.length and apart else {}


def _part(reading: Reading, fragment: Fragment, ranges: Ranges) -> Fragment:
    return reading.fragment(tuple(size for _, size in ranges), fragment.dtype, fragment.scope, f"{fragment.name}_part")


def narrowed(window: Window, ranges: Ranges) -> Window:
    """The part of a window that a part of its fragment lies in."""
    starts, extents = list(window.starts), list(window.extents)
    along = [axis for axis, extent in enumerate(window.extents) if extent > 1]
    for axis, (start, size) in zip(along, ranges, strict=True):
        starts[axis], extents[axis] = make("+", starts[axis], start), size
    return Window(window.tensor, tuple(starts), tuple(extents))


def _ranges(reading: Reading, fragment: Fragment, indices: tuple[Value, ...]) -> tuple[Ranges, tuple[Leaf, ...]] | None:
    """Which elements these are, if each index is a parallel variable and a number of whole tiles."""
    ranges: list[tuple[int, int]] = []
    leaves: list[Any] = []
    for index, extent in zip(indices, fragment.shape, strict=True):
        terms, start = linear(index)
        (leaf, factor), *others = terms or {(0, 0)}
        if others or factor != 1 or leaf not in reading.parallel or leaf in leaves:
            return None
        size = reading.parallel[leaf]  # pyright: ignore
        if start % hardware.TILE_ROWS or start < 0 or start + size > extent:
            return None
        ranges.append((start, size))
        leaves.append(leaf)
    return tuple(ranges), tuple(leaves)


def _apart(first: Ranges, second: Ranges) -> bool:
    return any(a + n <= b or b + m <= a for (a, n), (b, m) in zip(first, second, strict=True))
