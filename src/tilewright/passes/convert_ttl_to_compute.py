"""Block expressions become ``ttl.compute`` regions, fused as far as the hardware lets values stay in DST.

Requires: every ``ttl.store`` puts a block expression into a reserved block.
Ensures: no tensor-level math is left; each region reads blocks that buffers hold and writes blocks that were reserved; a
sub-expression that several stores share, or that the source writes twice, is computed once; a value that a unit must read from
a buffer goes through one the compiler made.
"""

from __future__ import annotations

from dataclasses import field

from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.tensor import EmptyOp
from xdsl.ir import Block, Operation, SSAValue

from tilewright.diagnostics import counted, fail
from tilewright.dialects.attributes import REQUIRED
from tilewright.dialects.ttl import PrintOp, StoreOp, compute_functions
from tilewright.dialects.ttl_buffers import AttachCBOp, CBPopOp, CBPushOp, CBReserveOp, CBWaitOp
from tilewright.dialects.walking import erase, line_of, operations, place_of
from tilewright.passes.context import PassContext
from tilewright.passes.fusion.fusion_regions import BLOCK_MATH, Partition, math_below, partition, shared
from tilewright.passes.fusion.region_builder import RegionEmitter
from tilewright.passes.validation.events import acquire_of
from tilewright.records import record

NAME = "convert-ttl-to-compute"


def run(module: ModuleOp, context: PassContext) -> None:
    for function in compute_functions(module):
        emitter = RegionEmitter(function, module)
        for block in _blocks(function):
            _convert_block(block, emitter, context)
        _erase_converted(function)


def _blocks(op: Operation) -> list[Block]:
    found: list[Block] = []
    for region in op.regions:
        for block in region.blocks:
            found.append(block)
            for inner in block.ops:
                found += _blocks(inner)
    return found


@record(frozen=False)
class Group:
    """Stores that are converted together because they share math, and whether a release stands between them."""

    stores: list[StoreOp] = field(default_factory=list)
    math: set[Operation] = field(default_factory=set)
    released: bool = False


def _convert_block(block: Block, emitter: RegionEmitter, context: PassContext) -> None:
    group = Group()
    same = shared([op for op in block.ops if isinstance(op, BLOCK_MATH)])[1]
    for op in list(block.ops):
        if isinstance(op, StoreOp):
            math = {_standing_for(below, same) for below in math_below([op.value])}
            if "accumulate" not in op.attributes:
                # Nobody has seen what this store replaces; in one region there would be no order between the two.
                for store in [old for old in group.stores if acquire_of(old.target) is acquire_of(op.target)]:
                    group.stores.remove(store)
                    erase(store)
            if group.stores and (not group.math & math or _adds_to_one_of(op, group.stores)):
                _emit(group, emitter, context)
                group = Group()
            group.stores.append(op)
            group.math |= math
        elif isinstance(op, PrintOp):
            # What is printed has been stored before it.
            _emit(group, emitter, context)
            group = Group()
        elif isinstance(op, (CBPushOp, CBPopOp)):
            group.released = group.released or bool(group.stores)
        elif isinstance(op, (CBWaitOp, CBReserveOp)):
            # An acquire after a release may wait for whoever the release wakes: the region must run before it.
            if group.released:
                _emit(group, emitter, context)
                group = Group()
        elif op.regions:
            _emit(group, emitter, context)
            group = Group()
    _emit(group, emitter, context)


def _adds_to_one_of(store: StoreOp, earlier: list[StoreOp]) -> bool:
    """A region packs each of its values once; what is added to a block must find there what was stored before."""
    return "accumulate" in store.attributes and any(store.target is other.target for other in earlier)


def _standing_for(op: Operation, same: dict[SSAValue, SSAValue]) -> Operation:
    """The first op that computes what ``op`` computes."""
    kept = same.get(op.results[0], op.results[0]).owner
    assert isinstance(kept, Operation)
    return kept


def _emit(group: Group, emitter: RegionEmitter, context: PassContext) -> None:
    if not group.stores:
        return
    last = group.stores[-1]
    _delay_releases(group.stores[0], last)
    parts = partition([store.value for store in group.stores])
    _check_required(parts)
    targets: list[tuple[SSAValue, SSAValue]] = []
    block = last.parent
    assert block is not None
    for store in group.stores:
        empty, target = _target(store)
        block.insert_ops_before([empty, target], last)
        targets.append((parts.canonical(store.value), target.results[0]))
    emitter.emit(parts, targets, last)
    place = f"line {line_of(last)}"
    for store in group.stores:
        erase(store)
    ops = sum(len(region.ops) for region in parts.regions)
    details = [f"{parts.merged} repeated sub-expressions computed once"] if parts.merged else []
    details += [f"{len(parts.materialised)} values through buffers that a unit must read from L1"] if parts.materialised else []
    regions = counted(max(1, len(parts.regions)), "region")
    title = f"{counted(ops, 'tile op')} and {counted(len(group.stores), 'output')} in {regions}"
    context.trace.decide(NAME, title, "; ".join(details), place=place)


def _check_required(parts: Partition) -> None:
    """``ttl.require_dst``: text demands that a value does not go through a buffer."""
    for value in parts.materialised:
        maker = value.owner
        if isinstance(maker, Operation) and REQUIRED in maker.attributes:
            message = "ttl.require_dst: the value goes through a buffer, because a unit reads it from there"
            remedy = "matrix products, reductions, broadcasts and transposes read buffers"
            raise fail("TW401", message, place_of(maker), help=remedy)


def _target(store: StoreOp) -> tuple[Operation, Operation]:
    """The block a region writes, bound to the buffer that was reserved for it."""
    reserved = store.target.owner
    assert isinstance(reserved, AttachCBOp)
    attributes = {**reserved.attributes, **store.attributes}
    if _filled_twice(reserved, store):
        attributes["out_of_order"] = UnitAttr()
    empty = EmptyOp.create(result_types=[store.target.type], location=store.location)
    attached = AttachCBOp.create(
        operands=[empty.results[0], reserved.buffer],
        result_types=[store.target.type],
        attributes=attributes,
        location=store.location,
    )
    return empty, attached


def _filled_twice(reserved: AttachCBOp, store: StoreOp) -> bool:
    """The packer counts tiles from the reserve on; a second store into the same block must name its tiles instead."""
    stores = [use.operation for use in reserved.results[0].uses if isinstance(use.operation, StoreOp)]
    return len(stores) > 1 or store.parent is not reserved.parent


def _delay_releases(first: StoreOp, last: StoreOp) -> None:
    """Pushes and pops between the stores move behind the region: what they hand over is not there before."""
    block = last.parent
    assert block is not None
    anchor: Operation = last
    op: Operation | None = first
    while op is not None and op is not last:
        following = op.next_op
        if isinstance(op, (CBPushOp, CBPopOp)):
            op.detach()
            block.insert_op_after(op, anchor)
            anchor = op
        op = following


def _erase_converted(function: FuncOp) -> None:
    """What the regions replace, and what nobody stores: math without readers, and the blocks only it read."""
    pending = [op for op in operations(function) if isinstance(op, (*BLOCK_MATH, AttachCBOp))]
    gone: set[Operation] = set()
    while pending:
        op = pending.pop()
        if op in gone or any(result.uses for result in op.results):
            continue
        gone.add(op)
        # A value may stand behind its readers here: equal ones are represented by any of them.
        pending += [o.owner for o in op.operands if isinstance(o.owner, (*BLOCK_MATH, AttachCBOp))]
        erase(op)
