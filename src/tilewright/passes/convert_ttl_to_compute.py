"""Tensor-level ops become ``ttl.compute`` regions, fused as far as a shared expression reaches.

Requires: every ``ttl.store`` puts a block expression into a reserved block.
Ensures: no tensor-level math is left; each region reads blocks that buffers hold and writes blocks that were reserved; a
sub-expression that several stores share, or that the source writes twice, is computed once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects.builtin import AffineMapAttr, ModuleOp, TensorType, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.tensor import EmptyOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap

from tilewright.dialects.location import line_of
from tilewright.dialects.ttl import TILE_OPS, StoreOp, TensorMathOp, YieldOp, thread_kind
from tilewright.dialects.ttl_buffers import AttachCBOp, CBPopOp, CBPushOp, CBReserveOp, CBWaitOp
from tilewright.dialects.ttl_compute import ComputeOp
from tilewright.passes.context import PassContext

NAME = "convert-ttl-to-compute"


def run(module: ModuleOp, context: PassContext) -> None:
    for function in module.ops:
        if isinstance(function, FuncOp) and thread_kind(function) == "compute":
            for block in list(_blocks(function)):
                _convert_block(block, context)
            _erase_dead_math(function)


def _blocks(op: Operation) -> list[Block]:
    found: list[Block] = []
    for region in op.regions:
        for block in region.blocks:
            found.append(block)
            for inner in block.ops:
                found += _blocks(inner)
    return found


@dataclass
class Group:
    """Stores that will share one region, and the releases that must wait until it has run."""

    stores: list[StoreOp] = field(default_factory=list)
    math: set[Operation] = field(default_factory=set)
    released: bool = False


def _convert_block(block: Block, context: PassContext) -> None:
    group = Group()
    for op in list(block.ops):
        if isinstance(op, StoreOp):
            math = _expression(op.operands[0])
            shares = bool(group.math & math) and _shape(op) == _shape(group.stores[0])
            if group.stores and not shares:
                _emit(group, context)
                group = Group()
            group.stores.append(op)
            group.math |= math
        elif isinstance(op, (CBPushOp, CBPopOp)):
            group.released = group.released or bool(group.stores)
        elif isinstance(op, (CBWaitOp, CBReserveOp)):
            # An acquire after a release may wait for whoever the release wakes: the region must run before it.
            if group.released:
                _emit(group, context)
                group = Group()
        elif op.regions:
            _emit(group, context)
            group = Group()
    _emit(group, context)


def _shape(store: StoreOp) -> tuple[int, ...]:
    kind = store.operands[1].type
    assert isinstance(kind, TensorType)
    return kind.get_shape()


def _expression(root: SSAValue) -> set[Operation]:
    """The math ops a value is computed from."""
    seen: set[Operation] = set()
    pending = [root]
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, TensorMathOp) and owner not in seen:
            seen.add(owner)
            pending += owner.operands
    return seen


def _emit(group: Group, context: PassContext) -> None:
    if not group.stores:
        return
    last = group.stores[-1]
    block = last.parent
    assert block is not None
    _delay_releases(group.stores[0], last)

    order = _source_order([store.operands[0] for store in group.stores])
    inputs = list(dict.fromkeys(o for op in order for o in op.operands if not isinstance(o.owner, TensorMathOp)))
    for store in group.stores:
        if not isinstance(store.operands[0].owner, TensorMathOp) and store.operands[0] not in inputs:
            inputs.append(store.operands[0])

    new_ops: list[Operation] = []
    outputs: list[SSAValue] = []
    for store in group.stores:
        reserved = store.operands[1].owner
        assert isinstance(reserved, AttachCBOp)
        empty = EmptyOp.create(result_types=[store.operands[1].type], location=store.location)
        attributes = dict(reserved.attributes)
        if _filled_twice(reserved, store):
            attributes["out_of_order"] = UnitAttr()
        attached = AttachCBOp.create(
            operands=[empty.results[0], reserved.operands[1]],
            result_types=[store.operands[1].type],
            attributes=attributes,
            location=store.location,
        )
        new_ops += [empty, attached]
        outputs.append(attached.results[0])

    body, merged = _body(order, inputs, outputs, [store.operands[0] for store in group.stores])
    rank = len(_shape(last))
    identity = AffineMapAttr(AffineMap.identity(rank))
    compute = ComputeOp(inputs, outputs, [identity] * (len(inputs) + len(outputs)), ["parallel"] * rank, Region(body))
    compute.location = last.location
    block.insert_ops_before([*new_ops, compute], last)
    for store in group.stores:
        store.detach()
        store.erase()
    context.trace.decide(
        NAME,
        f"{len(order) - merged} tile ops and {len(outputs)} output{'s' if len(outputs) > 1 else ''} in one region",
        f"{merged} repeated sub-expressions computed once" if merged else "",
        place=f"line {line_of(compute)}",
    )


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


def _source_order(roots: list[SSAValue]) -> list[Operation]:
    """Math ops below the roots, each after its operands, otherwise as the source has them."""
    order: list[Operation] = []
    seen: set[Operation] = set()
    for root in roots:
        stack: list[tuple[Operation, bool]] = [(root.owner, False)] if isinstance(root.owner, TensorMathOp) else []
        while stack:
            op, ready = stack.pop()
            if ready:
                order.append(op)
                continue
            if op in seen:
                continue
            seen.add(op)
            stack.append((op, True))
            stack += [(o.owner, False) for o in reversed(op.operands) if isinstance(o.owner, TensorMathOp)]
    return order


def _body(
    order: list[Operation], inputs: list[SSAValue], outputs: list[SSAValue], stored: list[SSAValue]
) -> tuple[Block, int]:
    kinds = [value.type.element_type for value in (*inputs, *outputs)]  # pyright: ignore
    block = Block(arg_types=kinds)
    values: dict[SSAValue, SSAValue] = dict(zip(inputs, block.args, strict=False))
    known: dict[object, SSAValue] = {}
    merged = 0
    for op in order:
        assert isinstance(op, TensorMathOp)
        operands = tuple(values[operand] for operand in op.operands)
        kind = op.results[0].type.element_type  # pyright: ignore
        key = (op.name, operands, tuple(sorted((k, str(v)) for k, v in op.attributes.items())), kind)
        if key in known:
            values[op.results[0]] = known[key]
            merged += 1
            continue
        tile_op = TILE_OPS[op.SPEC.name].create(
            operands=list(operands), result_types=[kind], attributes=dict(op.attributes), location=op.location
        )
        tile_op.results[0].name_hint = op.results[0].name_hint
        block.add_op(tile_op)
        values[op.results[0]] = known[key] = tile_op.results[0]
    block.add_op(YieldOp.create(operands=[values[value] for value in stored]))
    return block, merged


def _erase_dead_math(function: FuncOp) -> None:
    for op in reversed(list(function.walk())):
        if isinstance(op, (TensorMathOp, AttachCBOp)) and not any(result.uses for result in op.results):
            op.detach()
            op.erase()


