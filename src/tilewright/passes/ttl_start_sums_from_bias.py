"""``sum of products + bias`` behind a loop starts from the bias instead: loaded into DST once, it costs no addition.

Requires: a running value that fits DST, starts from zeros, gets one product per step, and has one reader, which adds a block to
it. The wait for that block moves before the loop if it stands behind it. All threads must provably still reach their ends, even
with only one block of room in every buffer the loop reads: else the loop would wait for what is read in last.

Ensures: the running block starts from what was added to it, and nothing is added behind the loop.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from tilewright.dialects.attributes import TileType, identity_map
from tilewright.dialects.ttl import TileOpBase, YieldOp, compute_functions
from tilewright.dialects.ttl_buffers import AttachCBOp, BindCBOp, CBWaitOp
from tilewright.dialects.ttl_compute import ComputeOp, TileBcastOp, TileMatmulOp
from tilewright.dialects.walking import ancestor_in, erase, insert_before, line_of, module_of, move_before, of_kind
from tilewright.passes.buffers import handovers_between
from tilewright.passes.context import PassContext, config_of
from tilewright.passes.dst_assignment import running_values
from tilewright.passes.dst_assignment.dst_problem import capacity_of
from tilewright.passes.dst_assignment.running_values import RunningValue, final_sums, is_zero, without_input
from tilewright.passes.validation.communication import surely_ends
from tilewright.program import ComputeConfig

NAME = "ttl-start-sums-from-bias"


def run(module: ModuleOp, context: PassContext) -> bool:
    known = len(context.trace.decisions)  # every sum that starts otherwise is one
    for function in compute_functions(module):
        for values in running_values.find(function).values():
            if len(values) == 1:
                _start_from_bias(values[0], config_of(function), context)
    return len(context.trace.decisions) > known


def _start_from_bias(block: RunningValue, config: ComputeConfig, context: PassContext) -> None:
    start, reader = block.start, _reader(block)
    if reader is None or not _sums_products(block):
        return
    if len(start.outputs) != 1 or not is_zero(start, block.buffer):
        return
    add = _addition(reader, block.buffer)
    if add is None:
        return
    total, bias = add.operands
    if _is_total(bias, reader, block.buffer):
        total, bias = bias, total
    argument = bias.owner.source if isinstance(bias.owner, TileBcastOp) else bias
    if not isinstance(argument, BlockArgument) or argument.index >= len(reader.inputs) or bias.type != total.type:
        return
    if block.tiles + _slots_beside(bias, config) > capacity_of(config, context):
        return
    if not _waited_early(reader.inputs[argument.index], block, reader, context):
        return
    place = f"line {line_of(add)}"
    _replace_start(start, reader, argument, bias)
    add.results[0].replace_all_uses_with(total)
    erase(add)
    if isinstance(bias.owner, TileBcastOp) and not bias.uses:
        erase(bias.owner)
    if not argument.uses:
        without_input(reader, argument)
    context.trace.decide(NAME, "the sum starts from what is added to it", "no addition behind the loop", place=place)


def _slots_beside(bias: SSAValue, config: ComputeConfig) -> int:
    """DST slots that loading the bias takes beside the sum: a row of 16 bits reaches a 32-bit DST by the vector unit only."""
    spread, kind = bias.owner, bias.type
    assert isinstance(kind, TileType)
    by_vector_unit = isinstance(spread, TileBcastOp) and spread.dim == "col" and config.fp32_dest_acc_en and kind.dtype != "f32"
    return 2 if by_vector_unit else 0


def _reader(block: RunningValue) -> ComputeOp | None:
    readers = block.readers()
    return readers[0] if len(readers) == 1 and readers[0].parent is block.block else None


def _sums_products(block: RunningValue) -> bool:
    """The loop computes nothing but this sum, and the matrix unit makes it in place."""
    sums = final_sums(block.steps, block.buffer)
    alone = of_kind(block.loop, ComputeOp) == block.steps
    return alone and bool(sums) and all(isinstance(summand.owner, TileMatmulOp) for _, summand in sums)


def _is_total(value: SSAValue, reader: ComputeOp, buffer: SSAValue) -> bool:
    if not isinstance(value, BlockArgument) or value.index >= len(reader.inputs):
        return False
    view, map_ = reader.inputs[value.index].owner, reader.maps[value.index]
    return isinstance(view, AttachCBOp) and view.buffer is buffer and map_ == identity_map(map_.data.num_dims)


def _addition(reader: ComputeOp, buffer: SSAValue) -> TileOpBase | None:
    """The only op that reads the sum, if it adds one thing to it."""
    totals = [argument for argument in reader.block.args if _is_total(argument, reader, buffer)]
    users = [use.operation for total in totals for use in total.uses]
    if len(totals) != 1 or len(users) != 1 or not isinstance(users[0], TileOpBase) or users[0].SPEC.name != "add":
        return None
    return users[0]


def _waited_early(value: SSAValue, block: RunningValue, reader: ComputeOp, context: PassContext) -> bool:
    """Whether the block is there before the sum starts; its wait is moved if it may be."""
    view = value.owner
    wait = view.block.owner if isinstance(view, AttachCBOp) else None
    if not isinstance(view, AttachCBOp) or not isinstance(wait, CBWaitOp):
        return False
    place = block.op
    if wait.parent is not block.block:
        return _holds(wait, place)
    moved: list[Operation] = [wait, view]
    if handovers_between(view.buffer, place, reader) == [wait]:
        back = [op.next_op for op in moved]
        for op in moved:
            move_before(op, place)
        if "tiles" not in wait.attributes and surely_ends(module_of(place), context.grid, _one_block_each(block)):
            return True
        for op, following in reversed(list(zip(moved, back, strict=True))):
            assert following is not None
            move_before(op, following)
        return False
    before = view.parent is block.block and view.is_before_in_block(place)
    return before and not handovers_between(view.buffer, place, reader)


def _holds(wait: CBWaitOp, place: Operation) -> bool:
    """Whether code around the loop holds the block: it stands before the op around ``place`` in its own block."""
    outer = ancestor_in(place, wait.parent) if wait.parent is not None else None
    return outer is not None and wait.is_before_in_block(outer)


def _one_block_each(block: RunningValue) -> dict[int, int]:
    waits = [op for op in block.loop.walk() if isinstance(op, CBWaitOp) and op.buffer is not block.buffer]
    return {op.buffer.owner.cb_index: 1 for op in waits if isinstance(op.buffer.owner, BindCBOp)}


def _replace_start(start: ComputeOp, reader: ComputeOp, argument: BlockArgument, bias: SSAValue) -> None:
    """A region that stores the bias where zeros were stored."""
    tile = start.block.args[-1].type
    body = Block(arg_types=[argument.type, tile])
    first: SSAValue = body.args[0]
    if isinstance(bias.owner, TileBcastOp):
        spread = bias.owner.clone({argument: first})
        body.add_op(spread)
        first = spread.results[0]
    body.add_op(YieldOp.create(operands=[first]))
    maps = [reader.maps[argument.index], start.maps[-1]]
    rank = len(start.output_shape)
    new = ComputeOp([reader.inputs[argument.index]], list(start.outputs), maps, ["parallel"] * rank, Region(body))
    new.location = reader.location
    insert_before(new, start)
    erase(start)
