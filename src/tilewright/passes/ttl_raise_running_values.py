"""Buffers of the author that hold a value which a loop updates become the op for such values: ``ttl.running``.

The value travels through a buffer of the compute thread's own:

    reserve, store, push          what the value starts from
    for …:                        one or several loops, perhaps a branch
        wait, reserve, store(f(what was waited for)), push, pop
    wait, …, pop                  the result

Nothing else may touch the buffer in that life: then nobody can tell whether the value is in it between two iterations.

Requires: regions under a compute configuration. Ensures: the steps of every ``ttl.running`` are the only regions that read it,
tile by tile. ``ttl.leaves_dst`` on it says why it cannot stay in DST, where the loop shows that. What could then only be read
back every step is: a running value goes through its buffer, and a buffer of the author stays as it was written.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp
from xdsl.dialects.tensor import EmptyOp
from xdsl.ir import Block, Operation, SSAValue

from tilewright.dialects.attributes import identity_map, int_value, text_attr
from tilewright.dialects.stages import ASSIGNED
from tilewright.dialects.ttl import compute_functions, name_of
from tilewright.dialects.ttl_buffers import ALIAS_OF, AttachCBOp, BindCBOp, CBPushOp, RunningOp
from tilewright.dialects.ttl_compute import ComputeOp
from tilewright.dialects.walking import ancestor_in, block_ops, erase, insert_after, insert_before, line_of, of_kind, users
from tilewright.passes.buffers import binds_of, users_of
from tilewright.passes.context import PassContext
from tilewright.passes.dst_assignment import running_values
from tilewright.passes.dst_assignment.read_back import read_back
from tilewright.passes.dst_assignment.running_values import (
    HANDOVERS,
    LEAVES_DST,
    RunningValue,
    attached_buffer,
    final_sums,
)
from tilewright.records import record

NAME = "ttl-raise-running-values"


@record
class Life:
    """One life of such a value, from the reserve before the loop to the push behind it."""

    buffer: SSAValue
    reserve: Operation
    start: ComputeOp
    loop: Operation
    steps: list[ComputeOp]
    push: Operation  # of what it starts from
    inside: tuple[Operation, ...]  # handovers in the loop


def run(module: ModuleOp, context: PassContext) -> bool:
    changed = False
    for function in compute_functions(module):
        if all(ASSIGNED in region.attributes for region in of_kind(function, ComputeOp)):
            continue  # text of a later stage
        running = running_values.find(function)
        loops: dict[Operation, list[Life | RunningValue]] = {loop: list(values) for loop, values in running.items()}
        for life in _carried(function):
            if all(isinstance(user, ComputeOp) for user in users_of(life.buffer)):  # a print looks into the block
                loops.setdefault(life.loop, []).append(life)
        for loop, lives in loops.items():
            changed = _judge(loop, lives, context) or changed
    return changed


def _judge(loop: Operation, lives: Sequence[Life | RunningValue], context: PassContext) -> bool:
    """Raises what may stay in DST or be added up in L1. What could only be read back every step is, or stays as written.

    Says whether anything changed.
    """
    hidden = [life for life in lives if isinstance(life, Life) or _hidden(life)]
    reason = _reason(loop, hidden)
    back: list[Life | RunningValue] = []
    for life in reversed(hidden):  # so that their pushes stand in order behind the loop
        if not reason or final_sums(life.steps, life.buffer):
            op = _raise(life) if isinstance(life, Life) else life.op
            op.attributes |= {LEAVES_DST: text_attr(reason)} if reason else {}
        else:
            back.insert(0, life)
    put_back = [value for value in lives if isinstance(value, RunningValue) and (value in back or value not in hidden)]
    read_back(put_back)
    for life in back:
        title = f"'{name_of(life.buffer.owner, 'value')}' is read back every step"  # pyright: ignore
        context.trace.decide(NAME, title, reason, place=f"line {line_of(loop)}")
    raised = [life for life in hidden if life not in back]
    return bool(put_back) or any(isinstance(life, Life) or reason for life in raised)


def _hidden(value: RunningValue) -> bool:
    """Nobody can tell whether the value is in its block between two steps: only steps see it, tile by tile."""
    users = users_of(value.buffer)
    touching = {op for op in users if ancestor_in(op, value.block) is value.loop}
    alone = touching == set(value.steps) and all(isinstance(user, ComputeOp) for user in users)
    return alone and all(_once(step, value.buffer) for step in value.steps)


def _reason(loop: Operation, lives: Sequence[Life | RunningValue]) -> str:
    """Why DST cannot be these values' for the whole loop."""
    steps, running = {step for life in lives for step in life.steps}, {life.buffer for life in lives}
    if any(region not in steps for region in of_kind(loop, ComputeOp)):
        return "other work in the loop needs DST"
    for step in steps:
        replaced = set(map(attached_buffer, step.outputs))
        if replaced - running:
            return "the loop stores more than the running value"
        if set(map(attached_buffer, step.inputs)) & running - replaced:
            return "one running value reads another"
    return ""


# The rewrite ----------------------------------------------------------------------------------------------------------


def _raise(life: Life) -> RunningOp:
    reserve = life.reserve
    op = RunningOp.create(
        operands=[life.buffer],
        result_types=[reserve.results[0].type],
        attributes=dict(reserve.attributes),
        location=reserve.location,
    )
    assert isinstance(op, RunningOp)
    insert_before(op, reserve)
    for region in (*life.steps, life.start):
        for view in [value.owner for value in region.operands if attached_buffer(value) is life.buffer]:
            assert isinstance(view, AttachCBOp)
            empty, view.block = view.block.owner, op.results[0]
            if isinstance(empty, EmptyOp) and empty.results[0].first_use is None:
                erase(empty)
    insert_after(CBPushOp.create(operands=[life.buffer], location=life.push.location), life.loop)
    erase(life.push)
    for handover in (*life.inside, reserve):
        for view in [user for result in handover.results for user in users(result)]:
            erase(view)
        erase(handover)
    return op


# Through a buffer -----------------------------------------------------------------------------------------------------


def _carried(function: FuncOp) -> list[Life]:
    found: list[Life] = []
    module = function.parent_op()
    assert isinstance(module, ModuleOp)
    binds = of_kind(module, BindCBOp)
    bound: dict[int, list[BindCBOp]] = {}
    for op in binds:
        bound.setdefault(op.cb_index, []).append(op)
    places: dict[Block, dict[Operation, int]] = {}
    aliased = {int_value(op, ALIAS_OF, -1) for op in binds}
    for bind in binds_of(function):
        twins = [op for op in bound[bind.cb_index] if op is not bind]
        elsewhere = any(twin.results[0].first_use is not None for twin in twins)
        if elsewhere or ALIAS_OF in bind.attributes or bind.cb_index in aliased:
            continue
        lives = _lives(bind.results[0], places)
        found += [life for life in lives if life is not None] if all(lives) else []
    return found


def _lives(buffer: SSAValue, places: dict[Block, dict[Operation, int]]) -> list[Life | None]:
    """All lives of values in the buffer, if each piece of code takes back what it puts there; None stands for what is no life.

    ``places`` keeps the order of the ops of each body, once it was asked for.
    """
    bodies: dict[Block, list[Operation]] = {}
    for user in users(buffer):
        if isinstance(user, HANDOVERS) and user.parent is not None:
            bodies.setdefault(user.parent, []).append(user)
        elif not isinstance(user, AttachCBOp):
            return [None]
    lives: list[Life | None] = []
    other_order, steps = set[Block](), set[Block]()
    for body, handovers in bodies.items():
        if body not in places:
            places[body] = {op: place for place, op in enumerate(block_ops(body))}
        place = places[body]
        order = sorted(handovers, key=place.__getitem__)
        trips = [order[first : first + 4] for first in range(0, len(order), 4)]
        if any(tuple(map(type, trip)) != HANDOVERS for trip in trips):
            other_order.add(body)
            continue
        nested = [(loop, other) for other in bodies if (loop := _around(other, body)) is not None]
        for reserve, push, wait, pop in trips:
            inside = [each for each in nested if place[reserve] < place[each[0]] < place[pop]]
            nested = [each for each in nested if each not in inside]
            if inside:  # else it is put away and taken back, with no loop between
                loop, other = inside[0]
                steps.add(other)
                fits = len(inside) == 1 and place[push] < place[loop] < place[wait]
                lives.append(_life(buffer, reserve, push, loop, bodies[other], place) if fits else None)
        lives += [None] if nested else []
    return lives if other_order <= steps else [None]


def _around(body: Block, outer: Block) -> Operation | None:
    """The op of ``outer`` that ``body`` is a part of."""
    op = body.parent_op()
    return ancestor_in(op, outer) if op is not None else None


def _life(
    buffer: SSAValue, reserve: Operation, push: Operation, loop: Operation, inside: list[Operation], place: dict[Operation, int]
) -> Life | None:
    """``place``: the order of the ops around the loop."""
    block, inner = reserve.parent, inside[0].parent
    assert block is not None
    users = users_of(buffer)
    writing = [op for op in users if isinstance(op, ComputeOp) and any(_of(value, buffer) for value in op.outputs)]
    writers = [op for op in writing if op.parent is block and place[reserve] < place[op] < place[push]]
    steps = [op for op in writing if op.parent is inner]
    if not isinstance(loop, ForOp) or len(writers) != 1 or len(steps) != 1 or {type(op) for op in inside} != set(HANDOVERS):
        return None
    touching = [op for op in users if ancestor_in(op, block) is loop]
    if len(inside) != len(HANDOVERS) or touching != steps or not _once(steps[0], buffer):
        return None
    if sum(_of(value, buffer) for value in writers[0].outputs) != 1:
        return None
    return Life(buffer, reserve, writers[0], loop, steps, push, tuple(inside))


def _once(step: ComputeOp, buffer: SSAValue) -> bool:
    """The step reads the buffer tile by tile, where it writes it, and nowhere else, if it reads it at all."""
    inputs = [index for index, value in enumerate(step.inputs) if _of(value, buffer)]
    outputs = [value for value in step.outputs if _of(value, buffer)]
    rank = len(step.output_shape)
    return len(inputs) <= len(outputs) == 1 and all(step.maps[index].data == identity_map(rank).data for index in inputs)


def _of(value: SSAValue, buffer: SSAValue) -> bool:
    owner = value.owner
    return isinstance(owner, AttachCBOp) and owner.buffer is buffer and owner.tile_offset == 0
