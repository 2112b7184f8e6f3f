"""Buffers in the memory of a tensor's shard: what may be overwritten in place."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tilewright.diagnostics import Diagnostic, Note
from tilewright.dialects.attributes import CBType, int_value
from tilewright.dialects.ttl import StoreOp, TensorMathOp
from tilewright.dialects.ttl_buffers import BindCBOp
from tilewright.dialects.walking import operations, place_of
from tilewright.passes.validation.events import acquire_of, bind_of, buffer_name, problem, sources


def _binds(function: FuncOp) -> list[BindCBOp]:
    return [op for op in function.body.block.ops if isinstance(op, BindCBOp)]


def check_in_place(function: FuncOp) -> list[Diagnostic]:
    """A store that overwrites a block of another buffer in the same shard: it must not be needed any more."""
    if sum(bind.backed for bind in _binds(function)) < 2:
        return []
    problems: list[Diagnostic] = []
    overwritten: dict[Operation, StoreOp] = {}
    for op in operations(function):
        if not isinstance(op, StoreOp):
            continue
        target = acquire_of(op.operands[1])
        if target is None:
            continue
        shared: list[Operation] = []
        for value in sources(op.operands[0]):
            read = acquire_of(value)
            assert read is not None
            if read in overwritten:
                problems.append(_late(op, read, overwritten[read]))
            elif _overlap(bind_of(read.operands[0]), bind_of(target.operands[0])):
                shared.append(read)
                if not _tile_by_tile(op, read, target):
                    problems.append(_not_alike(op, read))
        overwritten |= dict.fromkeys(shared, op)
    return problems


def _tiles(bind: BindCBOp) -> range:
    kind = bind.results[0].type
    assert isinstance(kind, CBType)
    first = int_value(bind, "first_tile", 0)
    return range(first, first + kind.total_tiles)


def _overlap(one: BindCBOp, other: BindCBOp) -> bool:
    if one.cb_index == other.cb_index or not one.backed or not other.backed:
        return False
    if one.attributes["tensor_index"] != other.attributes["tensor_index"]:
        return False
    return max(_tiles(one).start, _tiles(other).start) < min(_tiles(one).stop, _tiles(other).stop)


def _tile_by_tile(op: StoreOp, read: Operation, target: Operation) -> bool:
    """Whether each tile of the result depends on the same tile of the shard only."""
    ours, theirs = bind_of(read.operands[0]), bind_of(target.operands[0])
    if ours.results[0].type != theirs.results[0].type or _tiles(ours) != _tiles(theirs):
        return False
    return _elementwise(op.operands[0], read)


def _elementwise(value: SSAValue, read: Operation) -> bool:
    owner = value.owner
    if acquire_of(value) is not None or not isinstance(owner, Operation):
        return True
    if all(acquire_of(source) is not read for source in sources(value)):
        return True
    return isinstance(owner, TensorMathOp) and all(_elementwise(operand, read) for operand in owner.operands)


def _late(op: StoreOp, read: Operation, store: StoreOp) -> Diagnostic:
    return problem(
        "TW219",
        f"block of '{buffer_name(read)}' is read after a store has overwritten it",
        op,
        notes=(Note("the store into the same shard is here", place_of(store)),),
        help="store into the shard last, or keep the result in a buffer of its own",
    )


def _not_alike(op: StoreOp, read: Operation) -> Diagnostic:
    return problem(
        "TW219",
        f"this store overwrites '{buffer_name(read)}' tile by tile, but its tiles depend on other tiles of it",
        op,
        notes=(Note("the block was waited for here", place_of(read)),),
        help="in place, each tile may depend on the same tile only: same shape and byte_offset, elementwise functions",
    )
