"""Linear scan, phase 2: live intervals, and the sets of values that share a slot because an op works in place.

Positions: leaves exist at 0, the first op stands at 1, a copy stands at the position of the op it is made for. The
worked examples of the specification end the interval of an output one position after its definition (or at its last
use, if that is later); outputs keep their slot until the pack all the same, phase 4 sees to that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.dst.copies import InsertedCopy, ScanOp


@dataclass(frozen=True)
class Interval:
    start: int
    end: int

    def hull(self, other: Interval) -> Interval:
        return Interval(min(self.start, other.start), max(self.end, other.end))


@dataclass(frozen=True)
class Merge:
    """The in-place op at ``position`` joined ``operand`` and ``result``; ``interval`` covers their whole set by then.
    """

    position: int
    operand: int
    result: int
    interval: Interval


@dataclass
class Intervals:
    before: dict[int, Interval] = field(default_factory=dict[int, Interval])  # node -> interval, in order of appearance
    merges: list[Merge] = field(default_factory=list[Merge])
    sets: dict[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])  # node -> all nodes of its set
    after: dict[int, Interval] = field(default_factory=dict[int, Interval])  # node -> interval of its set


def build_intervals(
    ops: Sequence[ScanOp], copies: Sequence[InsertedCopy], outputs: Sequence[int], leaf_count: int
) -> Intervals:
    result = Intervals()
    result.before = _plain_intervals(ops, copies, outputs, leaf_count)
    _merge_in_place(ops, result)
    return result


def _plain_intervals(
    ops: Sequence[ScanOp], copies: Sequence[InsertedCopy], outputs: Sequence[int], leaf_count: int
) -> dict[int, Interval]:
    start: dict[int, int] = {}
    end: dict[int, int] = {}
    copies_for: dict[int, list[InsertedCopy]] = {}
    for copy in copies:
        copies_for.setdefault(copy.op, []).append(copy)
    used = {node for op in ops for node in op.operands if node is not None} | {copy.source for copy in copies}
    for leaf in range(leaf_count):
        if leaf in used or leaf in outputs:
            start[leaf] = end[leaf] = 0
    for position, op in enumerate(ops, start=1):
        for copy in copies_for.get(op.op, ()):
            end[copy.source] = position
            start[copy.node] = end[copy.node] = position
        for node in op.operands:
            if node is not None:
                end[node] = position
        start[op.result] = end[op.result] = position
    for value in outputs:
        end[value] = max(end[value], start[value] + 1)
    return {node: Interval(start[node], end[node]) for node in start}


def _merge_in_place(ops: Sequence[ScanOp], result: Intervals) -> None:
    members: dict[int, list[int]] = {node: [node] for node in result.before}
    hulls = dict(result.before)  # first node of a set -> interval of the set
    for position, op in enumerate(ops, start=1):
        if op.destroys is None:
            continue
        joined = members[op.destroys]
        first = joined[0]
        joined.append(op.result)
        members[op.result] = joined
        hulls[first] = hulls[first].hull(result.before[op.result])
        result.merges.append(Merge(position, op.destroys, op.result, hulls[first]))
    frozen = {nodes[0]: tuple(nodes) for nodes in members.values()}
    result.sets = {node: frozen[nodes[0]] for node, nodes in members.items()}
    result.after = {node: hulls[nodes[0]] for node, nodes in members.items()}
