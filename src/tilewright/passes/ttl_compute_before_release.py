"""A value means what it was where it was written: it is computed before a block it reads is released.

Expressions become code where they are stored. A value that is written before a pop and stored behind it would read a block that
somebody else may have filled again, so here it crosses the pop in a buffer. A store that can take place before the pop does
instead. What stays lazy is decided later: `ttl-forward-stores` takes buffers away where the pop may wait.

Requires: every acquire has its release.
Ensures: no computed value reads a block that was released. The block itself, used after its release, is left for
`passes/validation/blocks.py` to report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from typing_extensions import TypeIs
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from tilewright.dialects.attributes import text_value, trip_count
from tilewright.dialects.ttl import BLOCK_OPS, StoreOp, TensorMathOp, dtype_of, shape_of
from tilewright.dialects.ttl_buffers import EAGER, AttachCBOp, BindCBOp, CBPopOp, CBPushOp, CBWaitOp, RunningOp
from tilewright.dialects.walking import ancestor_in, block_ops, erase, line_of, move_before, of_kind
from tilewright.passes import compiler_buffers
from tilewright.passes.buffers import (
    ACQUIRES,
    RELEASES,
    acquire_of,
    attached,
    bind_of,
    buffer_name,
    effects,
    functions_of,
    handovers_between,
    key_of,
)
from tilewright.passes.context import PassContext
from tilewright.records import record

NAME = "ttl-compute-before-release"
VALUES = (TensorMathOp, *BLOCK_OPS)

Queues = dict[tuple[int, str], list[Operation]]


def run(module: ModuleOp, context: PassContext) -> bool:
    found = [
        _compute_before_releases(function, context)
        for function in functions_of(module)
        if function.sym_name.data not in context.unresolved
    ]
    return any(found)


def _compute_before_releases(function: FuncOp, context: PassContext) -> bool:
    """Says whether anything changed."""
    known = len(context.trace.decisions)  # every value that crosses a release is one
    live = LiveAcrossReleases(function, context)
    live.walk(function.body.block, {})
    live.finish()
    views = [view for view in of_kind(function, AttachCBOp) if AttachCBOp.AS_VALUE in view.attributes]
    for view in views:
        _as_block(view)
    return bool(views) or len(context.trace.decisions) > known


@record
class SavedValue:
    """A value that is live across a pop, in a buffer of the compiler's."""

    bind: BindCBOp
    first: Operation  # its reserve
    wait: CBWaitOp


@record(frozen=False, eq=False)
class LiveAcrossReleases:
    """Saves what is live across releases of the blocks it was computed from."""

    function: FuncOp
    context: PassContext
    saved: list[SavedValue] = field(default_factory=list[SavedValue])

    def walk(self, block: Block, queues: Queues) -> Queues:
        """Along the program, with the blocks that are held; returns those held at the end."""
        for op in block_ops(block):
            if type(op) in ACQUIRES:
                queues.setdefault(key_of(op), []).append(op)
            elif type(op) in RELEASES:
                queue = queues.get(key_of(op))
                if queue:
                    self.released(queue.pop(0), op)
            elif type(op) is scf.IfOp or type(op) is scf.ForOp:
                queues = self.inside(op, queues)
        return queues

    def inside(self, op: scf.IfOp | scf.ForOp, queues: Queues) -> Queues:
        """A running value that changes in there is another one behind it."""
        for running in [held for queue in queues.values() for held in queue if isinstance(held, RunningOp)]:
            if running.steps_in(op) and running.parent is not op.parent:
                self.crossing(running, [view for view in running.reads if _is_late(op, view)], op)
        if isinstance(op, scf.IfOp):
            ways = [self.walk(region.block, _copy(queues)) for region in op.regions if region.blocks]
            return ways[0]
        return self.loop(op, queues)

    def loop(self, op: scf.ForOp, queues: Queues) -> Queues:
        """A loop that releases blocks held around it does so once per round."""
        rounds = trip_count(op)
        if rounds == 0:
            return queues
        rounds = rounds or 2  # unknown: more than once
        after = self.walk(op.body.block, _copy(queues))
        for key, held in queues.items():
            gone = len(held) - len(after.get(key, []))
            if gone > 0 and rounds > 1:
                for acquire in held[: gone * rounds]:
                    self.released(acquire, op)
                after[key] = held[gone * rounds :]
        return after

    def released(self, acquire: Operation, release: Operation) -> None:
        self.crossing(acquire, attached(acquire), release)

    def crossing(self, acquire: Operation, attachments: Sequence[AttachCBOp], release: Operation) -> None:
        """Values that read the block and are used behind ``release`` cross it."""
        views = [view.results[0] for view in attachments]
        if not any(_is_late(store, release) for view in views for store in effects(view)):
            return
        late: dict[Operation, list[Operation]] = {}  # a value -> who uses it behind the release
        pending: list[SSAValue] = list(views)
        seen: set[Operation] = set()
        while pending:
            value = pending.pop()
            for user in [use.operation for use in value.uses]:
                if _is_late(user, release):
                    owner = value.owner
                    if _is_value(owner) and _has_effect(user):
                        late.setdefault(owner, []).append(user)
                elif isinstance(user, VALUES) and user not in seen:
                    seen.add(user)
                    pending.append(user.results[0])
        block = release.parent
        assert block is not None
        order = {op: position for position, op in enumerate(self.function.walk())} if len(late) > 1 else {}
        for value in sorted(late, key=lambda op: order.get(op, 0)):
            self.cross(value, late[value], release, acquire)

    def cross(self, value: Operation, users: list[Operation], release: Operation, acquire: Operation) -> None:
        home = value.parent
        assert home is not None
        before = ancestor_in(release, home)
        assert before is not None, "a value and its users stand in one piece of code, or the users further inside"
        name = value.results[0].name_hint or "a value"
        word = "changes" if isinstance(acquire, RunningOp) else "is popped"
        title = f"{_quoted(name)} is computed before '{buffer_name(acquire)}' {word}"
        moved = [user for user in users if isinstance(user, StoreOp) and _stored_early(user, value, before)]
        if moved:
            self.context.trace.decide(NAME, title, "its store takes place there", place=f"line {line_of(moved[0])}")
        rest = [user for user in users if user not in moved]
        if not rest:
            return
        bind = self._pass(value, rest, before)
        where = f"it is kept in buffer '{text_value(bind, 'name', '')}'"
        self.context.trace.decide(NAME, title, where, place=f"line {line_of(value)}")

    def _pass(self, value: Operation, users: list[Operation], before: Operation) -> BindCBOp:
        """Through a buffer of its own in front of ``before``; the pop comes when all users are known."""
        result, place = value.results[0], value.location
        index = compiler_buffers.next_index(self.function)
        name = f"{result.name_hint or 'value'}_{index}"
        buffer = compiler_buffers.bind(self.function, index, shape_of(result.type), dtype_of(result.type), name, place)
        bind = buffer.owner
        assert isinstance(bind, BindCBOp)
        bind.attributes[EAGER] = UnitAttr()
        reserve, target = compiler_buffers.stored_to(buffer, place)
        store = StoreOp.create(operands=[result, target.results[0]], location=place)
        push = CBPushOp.create(operands=[buffer], location=place)
        wait, view = compiler_buffers.waited(buffer, place)
        view.results[0].name_hint = result.name_hint
        home = before.parent
        assert home is not None and isinstance(wait, CBWaitOp)
        home.insert_ops_before([reserve, target, store, push, wait, view], before)
        for user in users:
            for position, operand in enumerate(user.operands):
                if operand is result:
                    user.operands[position] = view.results[0]
        self.saved.append(SavedValue(bind, reserve, wait))
        return bind

    def finish(self) -> None:
        """Pops behind the last uses; values of one type whose ways do not overlap share a buffer."""
        free: list[tuple[BindCBOp, Operation]] = []  # buffers, and their last pop so far
        for value in self._in_order():
            home = value.wait.parent
            assert home is not None
            last = _last_use(value.wait, home)
            pop = CBPopOp.create(operands=[value.bind.results[0]], location=value.wait.location)
            home.insert_op_after(pop, last)
            same = value.bind.results[0].type
            place = next(
                (
                    number
                    for number, (bind, end) in enumerate(free)
                    if bind.results[0].type == same and end.parent is home and end.is_before_in_block(value.first)
                ),
                None,
            )
            if place is None:
                free.append((value.bind, pop))
                continue
            shared = free[place][0]
            value.bind.results[0].replace_all_uses_with(shared.results[0])
            erase(value.bind)
            free[place] = (shared, pop)

    def _in_order(self) -> list[SavedValue]:
        if len(self.saved) < 2:
            return self.saved
        order = {op: position for position, op in enumerate(self.function.walk())}
        return sorted(self.saved, key=lambda value: order[value.first])


def _is_value(owner: Operation | Block) -> TypeIs[Operation]:
    """A view of a running value is what that was there."""
    if not isinstance(owner, AttachCBOp):
        return isinstance(owner, VALUES)
    return AttachCBOp.AS_VALUE in owner.attributes or isinstance(owner.block.owner, RunningOp)


def _as_block(view: AttachCBOp) -> None:
    """Who reads the value before the release reads the block."""
    del view.attributes[AttachCBOp.AS_VALUE]
    others = [use.operation for use in view.block.uses if use.operation is not view]
    for block in others:
        if isinstance(block, AttachCBOp) and block.attributes == view.attributes and _same_there(block, view):
            view.results[0].replace_all_uses_with(block.results[0])
            erase(view)
            return


def _same_there(block: AttachCBOp, view: AttachCBOp) -> bool:
    """Whether one view stands before the other, and sees the same."""
    running, op = block.block.owner, block
    if not _is_late(view, block) or not isinstance(running, RunningOp):
        return _is_late(view, block)
    while op is not None and not running.steps_in(op) and not op.is_ancestor(view):
        op = op.next_op
    return op is not None and not running.steps_in(op)


def _quoted(name: str) -> str:
    return name if " " in name else f"'{name}'"


def _copy(queues: Queues) -> Queues:
    return {key: list(queue) for key, queue in queues.items()}


def _is_late(op: Operation, release: Operation) -> bool:
    """Whether an op runs after a release. What stands in a loop that releases is taken to run after it."""
    current: Operation | None = release
    while current is not None:
        block = current.parent
        top = ancestor_in(op, block) if block is not None else None
        if top is not None:
            if top is current:
                return isinstance(current, scf.ForOp) and current is release
            return current.is_before_in_block(top)
        current = current.parent_op()
    return False


def _has_effect(user: Operation) -> bool:
    return isinstance(user, StoreOp) or any(True for result in user.results for _ in effects(result))


def _stored_early(store: StoreOp, value: Operation, before: Operation) -> bool:
    """Moves the store of a value in front of ``before``, if its target can be there by then and nobody else looks at it."""
    target = store.target.owner
    acquire = acquire_of(store.target)
    if store.value is not value.results[0] or store.parent is not before.parent or acquire is None:
        return False
    running = isinstance(acquire, RunningOp)  # its step may stand anywhere in its piece of code
    if not isinstance(target, Operation) or store.value is store.target or (len(attached(acquire)) != 1 and not running):
        return False
    if isinstance(acquire, RunningOp) and acquire.steps_in(before):
        return False  # steps that come earlier stand further inside
    others = [use.operation for use in target.results[0].uses if use.operation is not store]
    if any(_is_late(other, before) and not _is_late(other, store) for other in others):
        return False
    reserved_here = acquire.parent is before.parent
    if reserved_here and before.is_before_in_block(acquire):
        # A buffer of the compiler that nobody waits for: it can be reserved earlier.
        if text_value(bind_of(acquire.operands[0]), "origin", "user") != "compiler":
            return False
        if handovers_between(acquire.operands[0], before, acquire):
            return False
        ops: list[Operation] = [acquire, target, store]
    elif running and target.parent is before.parent:
        ops = [target, store]
    else:
        ops = [store]
    for op in ops:
        move_before(op, before)
    return True


def _last_use(wait: CBWaitOp, home: Block) -> Operation:
    """What stands in ``home`` and contains the last op that reads the block for good."""
    views = attached(wait)
    order = {op: position for position, op in enumerate(block_ops(home))}
    users = [top for view in views for effect in effects(view.results[0]) if (top := ancestor_in(effect, home)) is not None]
    return max([wait, *views, *users], key=lambda op: order[op])
