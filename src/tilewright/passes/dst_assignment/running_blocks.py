"""Finds blocks that a loop updates through a buffer of the compute thread's own.

    reserve, store, push          what the value starts from
    for …:                        one or several loops, perhaps a branch
        wait, reserve, store(f(what was waited for)), push, pop
    wait, …, pop                  the result

That is the accumulator buffer of hand-written kernels, and what the front end makes of a Python name that a loop changes. Nothing
else may touch the buffer: then nobody can tell whether the value is in it between two iterations.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp, IfOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tilewright.dialects.attributes import constant_of, identity_map
from tilewright.dialects.ttl_buffers import ALIAS_OF, AttachCBOp, BindCBOp, CBPopOp, CBPushOp, CBReserveOp, CBWaitOp
from tilewright.dialects.ttl_compute import ComputeOp
from tilewright.dialects.walking import erase, of_kind
from tilewright.passes.validation.events import ancestor_in
from tilewright.records import record

HANDOVERS = (CBReserveOp, CBPushOp, CBWaitOp, CBPopOp)


@record(frozen=False, eq=False)
class RunningBlock:
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


def find(function: FuncOp) -> list[RunningBlock]:
    found: list[RunningBlock] = []
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


def find_added(function: FuncOp) -> list[RunningBlock]:
    """Reserved blocks that a loop adds to, once per iteration, between a reserve before it and a push behind it."""
    found: list[RunningBlock] = []
    for step in of_kind(function, ComputeOp):
        target = step.outputs[0].owner
        if len(step.outputs) != 1 or not isinstance(target, AttachCBOp) or "accumulate" not in target.attributes:
            continue
        block = _added(step, target.operands[1])
        found += [block] if block is not None else []
    return found


def _added(step: ComputeOp, buffer: SSAValue) -> RunningBlock | None:
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
    while before is not None and not (isinstance(before, CBReserveOp) and before.operands[0] is buffer):
        before = before.prev_op
    push: Operation | None = top.next_op
    while push is not None and not (isinstance(push, CBPushOp) and push.operands[0] is buffer):
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
    return RunningBlock(buffer, starts[0] if starts else None, top, step, always, [], [], behind, added=True)


def _handed_back(buffer: SSAValue, reserve: Operation, push: Operation) -> list[Operation]:
    """All handovers of a block that this thread itself takes back from the buffer, in the same piece of code; else none."""
    later: list[Operation] = []
    op = push.next_op
    while op is not None and len(later) < 2:
        if isinstance(op, HANDOVERS) and op.operands[0] is buffer:
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


def _lives(buffer: SSAValue, block: Block) -> list[RunningBlock] | None:
    """All lives of the buffer's values in a block, or None if something does not fit the pattern."""
    events = _events(buffer, block)
    if all(not isinstance(op, HANDOVERS) for op in events):
        found: list[RunningBlock] = []
        for op in events:
            for inner in [region.block for region in op.regions if region.blocks]:
                lives = _lives(buffer, inner)
                if lives is None:
                    return None
                found += lives
        return found
    if len(events) % 5:
        return None
    lives = [_life(buffer, block, events[index : index + 5]) for index in range(0, len(events), 5)]
    return None if any(life is None for life in lives) else [life for life in lives if life is not None]


def _life(buffer: SSAValue, block: Block, events: list[Operation]) -> RunningBlock | None:
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
    return RunningBlock(buffer, writers[0], loop, steps[0], always, [reserve, push], inside, [wait, pop])


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
    return isinstance(owner, AttachCBOp) and owner.operands[1] is buffer and owner.tile_offset == 0


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
