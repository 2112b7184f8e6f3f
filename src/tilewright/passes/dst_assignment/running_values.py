"""A running value: what it starts from, the step of a loop that updates it, and its result behind the loop.

It is recognized after fusion, in the two shapes it is written in. ``block += x`` says it of a reserved block (`added`). A value
that a loop changes travels through a buffer of the compute thread's own:

    reserve, store, push          what the value starts from
    for …:                        one or several loops, perhaps a branch
        wait, reserve, store(f(what was waited for)), push, pop
    wait, …, pop                  the result

That is the accumulator buffer of hand-written kernels, and what the front ends make of a name that a loop changes. Nothing else
may touch the buffer in that life: then nobody can tell whether the value is in it between two iterations. Where it is instead
is decided once, by ``ttl-form-accumulation-sections`` (DST) and, for what cannot stay there, ``ttl-accumulate-in-l1`` (the
packer, or the buffer).
"""

from __future__ import annotations

from xdsl.dialects.arith import CmpiOp, OrIOp, SelectOp
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp, IfOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from tilewright.dialects.attributes import (
    INDEX,
    CBType,
    constant,
    constant_of,
    i32_list,
    identity_map,
    int_list,
    text_array,
    text_attr,
)
from tilewright.dialects.ttkernel import reduce_template
from tilewright.dialects.ttl import StoreOp, TileOpBase
from tilewright.dialects.ttl_buffers import ALIAS_OF, IN_DST, AttachCBOp, BindCBOp, CBPopOp, CBPushOp, CBReserveOp, CBWaitOp
from tilewright.dialects.ttl_compute import ComputeOp, L1AccumulateOp, ResidentTileOp, TileReduceOp
from tilewright.dialects.walking import ancestor_in, erase, of_kind
from tilewright.passes.buffers import buffer_of
from tilewright.records import record

HANDOVERS = (CBReserveOp, CBPushOp, CBWaitOp, CBPopOp)  # in the order of one trip through the buffer
ACCUMULATE = "accumulate"  # on a reserved block: stores add to it
LEAVES_DST = "ttl.leaves_dst"  # on a step: why its running value cannot stay in DST across the loop
PACKER_ADDS = ("bf16", "f32")  # formats the packer can add to


@record(frozen=False, eq=False)
class RunningValue:
    """One life of such a value, from the store before the loop to the pop behind it."""

    buffer: SSAValue
    start: ComputeOp | None  # None: ``block += x`` starts from nothing
    loop: Operation
    step: ComputeOp
    steps_always: bool  # the step runs at least once, in the first iteration of every loop around it
    before: list[Operation]  # reserve and push before the loop
    inside: list[Operation]  # wait, reserve, push and pop in it
    behind: list[Operation]  # wait and pop behind it; of an added block, all handovers if this thread takes it back
    added: bool = False  # ``block += x`` on a block that stays reserved

    @property
    def tiles(self) -> int:
        count = 1
        for extent in self.step.output_shape:
            count *= extent
        return count

    @property
    def block(self) -> Block:
        assert self.loop.parent is not None
        return self.loop.parent

    def readers(self) -> list[ComputeOp]:
        """Regions behind the loop that read the result."""
        return [op for op in _reading(self.buffer) if ancestor_in(op, self.block) is not None and not _inside(op, self.loop)]


def find(function: FuncOp) -> dict[Operation, list[RunningValue]]:
    """All of a function, by loop."""
    found: dict[Operation, list[RunningValue]] = {}
    for value in (*_find_carried(function), *_find_added(function)):
        found.setdefault(value.loop, []).append(value)
    return found


def _find_carried(function: FuncOp) -> list[RunningValue]:
    found: list[RunningValue] = []
    module = function.parent_op()
    assert isinstance(module, ModuleOp)
    binds = of_kind(module, BindCBOp)
    aliased = {op.attributes[ALIAS_OF] for op in binds if ALIAS_OF in op.attributes}
    for bind in [op for op in function.body.block.ops if isinstance(op, BindCBOp)]:
        twins = [op for op in binds if op.cb_index == bind.cb_index and op is not bind]
        if any(twin.results[0].uses for twin in twins) or ALIAS_OF in bind.attributes or bind.attributes["cb_index"] in aliased:
            continue
        users = [use.operation for use in bind.results[0].uses]
        if not all(isinstance(op, (*HANDOVERS, AttachCBOp)) for op in users) or not users:
            continue
        lives = _lives(bind.results[0], function.body.block)
        found += lives or []
    return found


def _find_added(function: FuncOp) -> list[RunningValue]:
    """Reserved blocks that a loop adds to, once per iteration, between a reserve before it and a push behind it."""
    found: list[RunningValue] = []
    for step in of_kind(function, ComputeOp):
        target = step.outputs[0].owner
        if len(step.outputs) != 1 or not isinstance(target, AttachCBOp) or "accumulate" not in target.attributes:
            continue
        block = _added(step, target.buffer)
        found += [block] if block is not None else []
    return found


def _added(step: ComputeOp, buffer: SSAValue) -> RunningValue | None:
    always, loop = True, step.parent_op()
    while isinstance(loop, (ForOp, IfOp)) and not any(isinstance(op, CBReserveOp) for op in _direct(buffer, loop)):
        always = always and isinstance(loop, ForOp) and _runs(loop)
        loop = loop.parent_op()
    # What was reached holds the reserve (or is the function): the loop is the op in it around the step.
    if loop is None or loop is step.parent_op():
        return None
    home = next((region.block for region in loop.regions if region.blocks and ancestor_in(step, region.block)), None)
    top = ancestor_in(step, home) if home is not None else None
    if home is None or not isinstance(top, ForOp):
        return None
    before: Operation | None = top.prev_op
    while before is not None and not (isinstance(before, CBReserveOp) and before.buffer is buffer):
        before = before.prev_op
    push: Operation | None = top.next_op
    while push is not None and not (isinstance(push, CBPushOp) and push.buffer is buffer):
        push = push.next_op
    if before is None or push is None:
        return None
    writers = [op for op in _writing(buffer) if op is not step]
    starts = [op for op in writers if op.parent is home and _between(op, before, top)]
    near = [op for op in writers if (t := ancestor_in(op, home)) is not None and _between(t, before, push)]
    if len(starts) > 1 or near != starts or any(_of(value, buffer) for value in step.inputs):
        return None
    if not all(len(op.outputs) == 1 and _of(op.outputs[0], buffer) for op in (step, *starts)):
        return None
    behind = _handed_back(buffer, before, push)
    return RunningValue(buffer, starts[0] if starts else None, top, step, always, [], [], behind, added=True)


def _handed_back(buffer: SSAValue, reserve: Operation, push: Operation) -> list[Operation]:
    """All handovers of a block that this thread itself takes back from the buffer, in the same piece of code; else none."""
    later: list[Operation] = []
    op = push.next_op
    while op is not None and len(later) < 2:
        if isinstance(op, HANDOVERS) and op.buffer is buffer:
            later.append(op)
        op = op.next_op
    taken = len(later) == 2 and isinstance(later[0], CBWaitOp) and isinstance(later[1], CBPopOp)
    return [reserve, push, *later] if taken else []


def _direct(buffer: SSAValue, op: Operation) -> list[Operation]:
    """Handovers of the buffer that stand directly in a region of ``op``."""
    blocks = [region.block for region in op.regions if region.blocks]
    users = [use.operation for use in buffer.uses if isinstance(use.operation, HANDOVERS)]
    return [user for user in users if any(user.parent is block for block in blocks)]


def _runs(loop: ForOp) -> bool:
    low, high = constant_of(loop.lb), constant_of(loop.ub)
    return low is not None and high is not None and low < high


def _events(buffer: SSAValue, block: Block) -> list[Operation]:
    """Ops of a block that hand the buffer over, or contain such ops."""
    found: list[Operation] = []
    for user in [use.operation for use in buffer.uses if isinstance(use.operation, HANDOVERS)]:
        top = ancestor_in(user, block)
        if top is not None and top not in found:
            found.append(top)
    order = {op: number for number, op in enumerate(block.ops)}
    return sorted(found, key=lambda op: order[op])


def _lives(buffer: SSAValue, block: Block) -> list[RunningValue] | None:
    """All lives of the buffer's values in a block, or None if something does not fit the pattern."""
    events = _events(buffer, block)
    if all(not isinstance(op, HANDOVERS) for op in events):
        inner = [_lives(buffer, region.block) for op in events for region in op.regions if region.blocks]
        return None if any(found is None for found in inner) else [life for found in inner for life in found or ()]
    lives: list[RunningValue] = []
    while events:
        if tuple(map(type, events[:4])) == HANDOVERS:
            events = events[4:]  # put away and taken back, with no loop between: one that was moved to DST before
            continue
        life = _life(buffer, block, events[:5]) if len(events) >= 5 else None
        if life is None:
            return None
        lives.append(life)
        events = events[5:]
    return lives


def _life(buffer: SSAValue, block: Block, events: list[Operation]) -> RunningValue | None:
    reserve, push, loop, wait, pop = events
    kinds = (CBReserveOp, CBPushOp, ForOp, CBWaitOp, CBPopOp)
    if not all(isinstance(op, kind) for op, kind in zip(events, kinds, strict=True)):
        return None
    writers = [op for op in _writing(buffer) if op.parent is block and _between(op, reserve, push)]
    path = _path(buffer, loop)
    if len(writers) != 1 or path is None:
        return None
    inner, always = path
    inside = _events(buffer, inner)
    if sorted(op.name for op in inside) != sorted(kind.name for kind in HANDOVERS):
        return None
    steps = [op for op in _writing(buffer) if op.parent is inner]
    touching = [op for op in (*_writing(buffer), *_reading(buffer)) if _inside(op, loop)]
    if len(steps) != 1 or any(op is not steps[0] for op in touching):
        return None
    if not _once(steps[0], buffer) or sum(_of(value, buffer) for value in writers[0].outputs) != 1:
        return None
    return RunningValue(buffer, writers[0], loop, steps[0], always, [reserve, push], inside, [wait, pop])


def _path(buffer: SSAValue, loop: Operation) -> tuple[Block, bool] | None:
    """The block with the step, and whether every level of loops runs it from its first iteration on."""
    always = True
    op = loop
    while True:
        if isinstance(op, ForOp):
            always = always and _runs(op)
            block = op.body.block
        elif isinstance(op, IfOp):
            always = False
            ways = [region.block for region in op.regions if region.blocks and _events(buffer, region.block)]
            if len(ways) != 1:
                return None
            block = ways[0]
        else:
            return None
        events = _events(buffer, block)
        if any(isinstance(event, HANDOVERS) for event in events):
            return block, always
        if len(events) != 1:
            return None
        op = events[0]


def _once(step: ComputeOp, buffer: SSAValue) -> bool:
    """The step reads the buffer tile by tile, where it writes it, and nowhere else."""
    inputs = [index for index, value in enumerate(step.inputs) if _of(value, buffer)]
    outputs = [value for value in step.outputs if _of(value, buffer)]
    rank = len(step.output_shape)
    return len(inputs) == len(outputs) == 1 and step.maps[inputs[0]].data == identity_map(rank).data


def _of(value: SSAValue, buffer: SSAValue) -> bool:
    owner = value.owner
    return isinstance(owner, AttachCBOp) and owner.buffer is buffer and owner.tile_offset == 0


def _attached(buffer: SSAValue) -> list[AttachCBOp]:
    return [use.operation for use in buffer.uses if isinstance(use.operation, AttachCBOp)]


def _writing(buffer: SSAValue) -> list[ComputeOp]:
    users = [use.operation for view in _attached(buffer) for use in view.results[0].uses]
    return [op for op in dict.fromkeys(users) if isinstance(op, ComputeOp) and any(_of(v, buffer) for v in op.outputs)]


def _reading(buffer: SSAValue) -> list[ComputeOp]:
    views = _attached(buffer)
    users = [use.operation for view in views for use in view.results[0].uses]
    return [op for op in dict.fromkeys(users) if isinstance(op, ComputeOp) and any(v.owner in views for v in op.inputs)]


def _inside(op: Operation, outer: Operation) -> bool:
    current: Operation | None = op
    while current is not None and current is not outer:
        current = current.parent_op()
    return current is outer


def _between(op: Operation, first: Operation, last: Operation) -> bool:
    current = first.next_op
    while current is not None and current is not last:
        if current is op:
            return True
        current = current.next_op
    return False


def without_input(compute: ComputeOp, argument: BlockArgument) -> ComputeOp:
    """The region in its place without an input that its body does not read."""
    position = argument.index
    compute.block.erase_arg(argument)
    body = compute.detach_region(compute.body)
    inputs = [value for index, value in enumerate(compute.inputs) if index != position]
    maps = [map_ for index, map_ in enumerate(compute.maps) if index != position]
    new = ComputeOp(inputs, list(compute.outputs), maps, ["parallel"] * len(compute.output_shape), body)
    new.location = compute.location
    assert compute.parent is not None
    compute.parent.insert_op_before(new, compute)
    erase(compute)
    return new


def attached_buffer(block: SSAValue) -> SSAValue | None:
    return block.owner.buffer if isinstance(block.owner, AttachCBOp) else None


def is_zero(start: ComputeOp, buffer: SSAValue) -> bool:
    """Whether a region stores zeros into the buffer."""
    last = start.block.last_op
    assert last is not None
    stored = next(v for v, block in zip(last.operands, start.outputs, strict=True) if attached_buffer(block) is buffer)
    owner = stored.owner
    if not isinstance(owner, TileOpBase) or owner.SPEC.name not in ("fill", "fill_int"):
        return False
    value = owner.attributes["value"]
    return isinstance(value, (FloatAttr, IntegerAttr)) and value.value.data == 0


def final_sum(block: RunningValue) -> tuple[TileOpBase, SSAValue] | None:
    """The addition that ends the step, and what it adds to the old value."""
    kind = block.buffer.type
    step = block.step
    last = step.block.last_op
    if not isinstance(kind, CBType) or kind.tile.dtype not in PACKER_ADDS or len(step.outputs) != 1 or last is None:
        return None
    add = last.operands[0].owner
    position = next(index for index, value in enumerate(step.inputs) if attached_buffer(value) is block.buffer)
    old = step.block.args[position]
    if not isinstance(add, TileOpBase) or add.SPEC.name != "add" or len(list(old.uses)) != 1:
        return None
    others = [operand for operand in add.operands if operand is not old]
    if len(others) != 1 or len(list(add.results[0].uses)) != 1:
        return None
    return add, others[0]


# Out of DST -----------------------------------------------------------------------------------------------------------


def leaving_dst(function: FuncOp) -> list[RunningValue]:
    """Those that ``ttl-form-accumulation-sections`` found no room for."""
    return [value for values in find(function).values() for value in values if LEAVES_DST in value.step.attributes]


def result_copy(value: RunningValue) -> ComputeOp | None:
    """The only reader of the result, if it just copies it into a block of the same kind that nothing else is put into."""
    readers = value.readers()
    if len(readers) != 1 or readers[0].parent is not value.block or len(readers[0].outputs) != 1 or len(readers[0].inputs) != 1:
        return None
    copy = readers[0]
    target = attached_buffer(copy.outputs[0])
    if len(list(copy.block.ops)) != 1 or target is None or copy.outputs[0].type != value.step.outputs[0].type:
        return None
    views = [view for view in target.uses if isinstance(view.operation, AttachCBOp) and view.operation.results[0].uses]
    return copy if value.start is not None and len(value.start.outputs) == 1 and len(views) == 1 else None


def reserved_before(value: RunningValue, copy: ComputeOp) -> bool:
    """Whether the last thing done before the loop with the buffer that is copied to is to reserve one block of it."""
    target = attached_buffer(copy.outputs[0])
    op = value.loop.prev_op
    while op is not None and not (isinstance(op, CBReserveOp) and op.buffer is target):
        op = op.prev_op
    return op is not None and "tiles" not in op.attributes


def drop_unused(buffer: SSAValue, function: FuncOp) -> None:
    """A buffer nobody hands over any more needs no memory; it goes when the loops are written."""
    bind = buffer.owner
    assert isinstance(bind, BindCBOp)
    if any(isinstance(use.operation, HANDOVERS) for use in buffer.uses):
        return
    bind.attributes[IN_DST] = UnitAttr()
    left = [index for index in int_list(function, "ttl.unpack_to_dest") if index != bind.cb_index]
    function.attributes["ttl.unpack_to_dest"] = i32_list(left)


def erase_dropped(function: FuncOp) -> None:
    """Buffers that were kept in DST, once nothing names them."""
    for bind in [op for op in function.body.block.ops if isinstance(op, BindCBOp) and IN_DST in op.attributes]:
        for view in [use.operation for use in bind.results[0].uses]:
            if not any(result.uses for result in view.results):
                erase(view)
        if not bind.results[0].uses:
            erase(bind)


# Added by the packer --------------------------------------------------------------------------------------------------


def attach_of(block: SSAValue) -> AttachCBOp:
    owner = block.owner
    while not isinstance(owner, AttachCBOp):
        assert isinstance(owner, Operation)
        owner = owner.operands[0].owner
    return owner


def accumulates(block: SSAValue) -> bool:
    return ACCUMULATE in attach_of(block).attributes


def flag(store: StoreOp, compute: ComputeOp) -> list[Operation] | None:
    """Ops that switch the packer to adding where this is not the block's first store; None for a plain store."""
    target = store.target
    if not accumulates(target):
        return None
    buffer = buffer_of(target)
    later: list[SSAValue] = []
    ops: list[Operation] = []
    current: Operation = compute
    while current.parent is not None:
        block = current.parent
        if _reserve_of(buffer, current) is not None:
            break
        loop = block.parent_op()
        if isinstance(loop, ForOp) and "ttl.sub_blocks" not in loop.attributes:
            compare = CmpiOp(block.args[0], loop.lb, "ne")
            ops.append(compare)
            later.append(compare.results[0])
        if loop is None:
            break
        current = loop
    if _written_before(buffer, current):
        one = constant(1)
        return [one, L1AccumulateOp.create(operands=[one.results[0]], location=store.location)]
    if not later:
        return None
    condition = later[0]
    for other in later[1:]:
        either = OrIOp(condition, other)
        ops.append(either)
        condition = either.results[0]
    one, zero = constant(1), constant(0)
    choice = SelectOp(condition, one.results[0], zero.results[0])
    assert choice.results[0].type == INDEX
    return [*ops, one, zero, choice, L1AccumulateOp.create(operands=[choice.results[0]], location=store.location)]


def _reserve_of(buffer: SSAValue, before: Operation) -> CBReserveOp | None:
    op = before.prev_op
    while op is not None:
        if isinstance(op, CBReserveOp) and op.buffer is buffer:
            return op
        op = op.prev_op
    return None


def _written_before(buffer: SSAValue, before: Operation) -> bool:
    op = before.prev_op
    while op is not None and not (isinstance(op, CBReserveOp) and op.buffer is buffer):
        if any(isinstance(inner, StoreOp) and buffer_of(inner.target) is buffer for inner in op.walk()):
            return True
        op = op.prev_op
    return False


def packed_edge(op: Operation) -> Attribute | None:
    """The part of a tile that the packer writes under the reduction which made it, or a running value it was added to."""
    if isinstance(op, TileReduceOp):
        return text_attr(str(text_array(reduce_template(op.kind, op.dim))))
    return op.attributes.get("edge") if isinstance(op, ResidentTileOp) else None
