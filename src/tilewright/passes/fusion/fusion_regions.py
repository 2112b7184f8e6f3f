"""Partitions a block expression into regions: what shares one pass through DST, and what must go through a buffer.

The units that multiply matrices, reduce, transpose or broadcast read buffers, so what they read and somebody computed must be
materialised. Everything else stays in DST. Each op gets a *level*: how many materialised values lie below it at most. Ops of one
level that are joined by values in DST form a region; a value that crosses levels is materialised, so regions never wait for
each other in a circle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.ttl import KEEP_IN_DST, BcastOp, FillBlockOp, MatmulOp, ReduceOp, ReshapeOp, TensorMathOp, TransposeOp
from tilewright.passes.fusion.repeated_broadcasts import repeat_by_level
from tilewright.records import record

BLOCK_MATH = (TensorMathOp, MatmulOp, ReduceOp, BcastOp, ReshapeOp, TransposeOp, FillBlockOp)
READS_BUFFERS = (MatmulOp, ReduceOp, BcastOp, ReshapeOp, TransposeOp)


def reads_buffers(op: Operation) -> bool:
    """Needs its operands in L1. An exact reduction of a single tile works on DST, and so does a broadcast that may be part of the
    arithmetic which reads it."""
    if isinstance(op, ReduceOp):
        return not (op.exact and op.tiles == 1)
    return isinstance(op, READS_BUFFERS) and not (isinstance(op, BcastOp) and _joins_its_reader(op))


def _joins_its_reader(op: BcastOp) -> bool:
    """Kept in DST by its text: the vector unit repeats a row or a column as part of a sum, a difference or a product."""
    if KEEP_IN_DST not in op.attributes or len(op.dims) != 1 or op.source.type != op.results[0].type:
        return False
    uses = list(op.results[0].uses)
    reader = uses[0].operation if len(uses) == 1 else None
    if not isinstance(reader, TensorMathOp) or reader.lhs is reader.operands[-1]:
        return False
    return reader.SPEC.name in ("add", "mul") or (reader.SPEC.name == "sub" and uses[0].index == 1)


def is_masked(op: Operation) -> bool:
    """A reduction on the matrix unit: the packer writes zeros outside its result."""
    return isinstance(op, ReduceOp) and not op.exact


def is_math(value: SSAValue) -> bool:
    return isinstance(value.owner, BLOCK_MATH)


@record(frozen=False)
class FusedRegion:
    """Ops that run together, each after its operands, and the values that leave."""

    shape: tuple[int, ...]
    level: int
    ops: list[Operation] = field(default_factory=list)
    outputs: list[SSAValue] = field(default_factory=list)


@record(frozen=False)
class Partition:
    regions: list[FusedRegion]  # in an order that respects their dependences
    materialised: list[SSAValue]  # computed values that travel between regions
    same: dict[SSAValue, SSAValue]  # value -> the equal value that stands for it
    merged: int  # repeated sub-expressions

    def canonical(self, value: SSAValue) -> SSAValue:
        return self.same.get(value, value)


def math_below(roots: Sequence[SSAValue]) -> list[Operation]:
    """Math ops the roots are computed from, each after its operands, otherwise in source order."""
    order: list[Operation] = []
    seen: set[Operation] = set()
    for root in roots:
        stack: list[tuple[Operation, bool]] = [(root.owner, False)] if is_math(root) else []  # pyright: ignore
        while stack:
            op, ready = stack.pop()
            if ready:
                order.append(op)
            elif op not in seen:
                seen.add(op)
                stack.append((op, True))
                stack += [(operand.owner, False) for operand in reversed(op.operands) if is_math(operand)]  # pyright: ignore
    return order


def partition(stored: Sequence[SSAValue]) -> Partition:
    order, same, merged = shared(math_below(stored))
    wanted = {same.get(value, value) for value in stored}
    needed = _read_from_buffers(order, same)
    order = repeat_by_level(order, same, _levels_with(order, same, set(needed)), needed | wanted)
    cut = set(needed)
    _levels_with(order, same, cut)
    _separate_masked(order, same, cut, wanted)
    regions = _regions(order, same, cut, _levels_with(order, same, cut))
    owners = {op: region for region in regions for op in region.ops}
    for op in order:
        result = op.results[0]
        if result in cut or result in wanted:
            owners[op].outputs.append(result)
    materialised: list[SSAValue] = [op.results[0] for op in order if op.results[0] in cut]
    return Partition(regions, materialised, same, merged)


def shared(order: list[Operation]) -> tuple[list[Operation], dict[SSAValue, SSAValue], int]:
    """Equal sub-expressions are one."""
    same: dict[SSAValue, SSAValue] = {}
    known: dict[object, SSAValue] = {}
    kept: list[Operation] = []
    for op in order:
        operands = tuple(same.get(operand, operand) for operand in op.operands)
        attributes = tuple(sorted((key, str(value)) for key, value in op.attributes.items()))
        key = (op.name, operands, attributes, op.results[0].type)
        if key in known:
            same[op.results[0]] = known[key]
            continue
        known[key] = op.results[0]
        kept.append(op)
    return kept, same, len(order) - len(kept)


def _read_from_buffers(order: list[Operation], same: dict[SSAValue, SSAValue]) -> set[SSAValue]:
    return {same.get(o, o) for op in order if reads_buffers(op) for o in op.operands if is_math(o)}


def _levels_with(order: list[Operation], same: dict[SSAValue, SSAValue], cut: set[SSAValue]) -> dict[Operation, int]:
    """Levels under a set of cut values, each op as late as its readers allow; what is read above its level is cut as well."""
    earliest: dict[Operation, int] = {}
    below: dict[Operation, list[SSAValue]] = {}
    for op in order:
        below[op] = [same.get(o, o) for o in op.operands if is_math(o)]
        earliest[op] = max((earliest[o.owner] + (o in cut) for o in below[op]), default=0)  # pyright: ignore
    latest: dict[Operation, int] = {}
    level: dict[Operation, int] = {}
    for op in reversed(order):
        level[op] = latest.get(op, earliest[op])
        for value in below[op]:
            owner: Operation = value.owner  # pyright: ignore
            bound = level[op] - (value in cut)
            latest[owner] = min(latest.get(owner, bound), bound)
    for op in order:
        cut |= {value for value in below[op] if level[value.owner] < level[op]}  # pyright: ignore
    return level


def _regions(
    order: list[Operation], same: dict[SSAValue, SSAValue], cut: set[SSAValue], level: dict[Operation, int]
) -> list[FusedRegion]:
    leader: dict[Operation, Operation] = {op: op for op in order}

    def find(op: Operation) -> Operation:
        while leader[op] is not op:
            leader[op] = leader[leader[op]]
            op = leader[op]
        return op

    for op in order:
        for operand in op.operands:
            value = same.get(operand, operand)
            if is_math(value) and value not in cut:
                leader[find(value.owner)] = find(op)  # pyright: ignore
    found: dict[Operation, FusedRegion] = {}
    for op in order:
        root = find(op)
        if root not in found:
            kind = op.results[0].type
            assert isinstance(kind, TensorType)
            found[root] = FusedRegion(kind.get_shape(), level[op])
        found[root].ops.append(op)
    return sorted(found.values(), key=lambda region: region.level)


def _separate_masked(order: list[Operation], same: dict[SSAValue, SSAValue], cut: set[SSAValue], wanted: set[SSAValue]) -> None:
    """While a reduction is set up the packer writes zeros outside its result, so nothing else may be packed beside it,
    a reduction of another kind neither: where a region mixes them, the reduced values go through buffers, all but the last
    kind if nothing else is packed."""
    reduced: set[SSAValue] = set()
    for op in order:
        below = [same.get(o, o) for o in op.operands]
        if is_masked(op) or any(value in reduced and value not in cut for value in below):
            reduced.add(op.results[0])
    packed = cut | wanted
    for region in _regions(order, same, cut, _levels_with(order, same, cut)):
        heads = [op for op in region.ops if is_masked(op)]
        masks = [(str(op.attributes["kind"]), str(op.attributes["dims"])) for op in heads]
        others = any(op.results[0] in packed and op.results[0] not in reduced for op in region.ops)
        cut |= {op.results[0] for op, mask in zip(heads, masks, strict=True) if others or mask != masks[-1]}
