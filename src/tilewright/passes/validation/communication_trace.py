"""Communication traces: what every thread of every core says to others, buffer ops and ops between cores, without its data.

A thread is written as a Python function of its core that lists its events: loops and ifs that say nothing are left out, values
are evaluated only where they decide something. A trace that depends on what only the device knows is `Unpredictable`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import lru_cache
from itertools import product
from types import CodeType
from typing import Any

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tilewright.dialects.attributes import PipeType, buffer_type_of, constant_of
from tilewright.dialects.ttl import CoreOp, StoreOp, WorkOp
from tilewright.dialects.ttl_buffers import (
    LARGEST,
    AttachCBOp,
    CBReserveOp,
    CBWaitOp,
    CopyOp,
    PublishCBOp,
    ReadElementOp,
    TensorAccessorOp,
    TensorSliceOp,
    WaitOp,
    WriteElementOp,
)
from tilewright.dialects.ttl_network import (
    CoreTableOp,
    CreateSemaphoreOp,
    GetRemoteMulticastSemaphoreOp,
    GetRemoteSemaphoreOp,
    NetPipeOp,
    RuntimeArgumentOp,
    SemaphoreIncOp,
    SemaphoreSetOp,
    SemaphoreWaitOp,
    WaitAnyOp,
    nested_value,
)
from tilewright.dialects.walking import block_ops, inherits, operations, users
from tilewright.grid import WorkArgument, core_number, cores_of
from tilewright.integers import PYTHON_NAMES, python_text
from tilewright.machine.threads import OWN, Chunk, Event, Item, Reach, SentBlock, Trace
from tilewright.passes.buffers import HANDOVERS, WORDS, acquire_of, bind_of
from tilewright.records import record

EVENT_LIMIT = 1_000_000
JOIN_LIMIT = 64
FOLDED_RUNS = 8
FOLDED_EVENTS = 2048

NETWORK_OPS: frozenset[type[Operation]] = frozenset({CopyOp, WaitOp, SemaphoreSetOp, SemaphoreIncOp, SemaphoreWaitOp})
names_cores = inherits(NetPipeOp, GetRemoteSemaphoreOp)
WITH_INTEGERS = frozenset(("send", "post", "arrive", "set", "inc", "level"))  # events that integers of the core decide about
SEMAPHORE_WORDS: dict[type[Operation], str] = {SemaphoreSetOp: "set", SemaphoreIncOp: "inc", SemaphoreWaitOp: "level"}
Ways = dict[scf.IfOp, bool]  # ifs that are not in it depend on more than the core
Traces = tuple[Trace, ...]  # of the threads of one core


Table = tuple[tuple[int, ...], ...]  # numbers per core
Run = tuple[int, int]  # a chunk by its number, and how often it comes in a row


class Unpredictable(Exception):
    """What the thread does depends on something only the device knows."""


@record(frozen=False)
class ThreadTrace:
    """How to list the buffer ops of one thread on a given core."""

    function: FuncOp
    run: Callable[..., None]
    chunks: list[Chunk]
    by_core: bool  # whether cores differ
    tables: list[Table] = field(default_factory=list["Table"])  # of the cores, read once: there may be thousands of entries
    made: dict[Any, int] = field(default_factory=dict[Any, int])  # chunks that exist with certain integers only
    numbers: list[Number] = field(default_factory=list["Number"])  # from data, on which the trace depends
    assumed: Callable[[Number, tuple[int, ...]], int] = field(default=lambda number, place: number.low)

    def items(self, core: tuple[int, ...], grid: tuple[int, ...]) -> tuple[Item, ...]:
        number = core_number(core, grid)

        def work(part: str, amount: int) -> int:
            return WorkArgument(part=part, amount=amount).value(number, math.prod(grid))

        def table(index: int, position: int = 0) -> int:
            return self.tables[index][number][position]

        def number_at(index: int, *place: int) -> int:
            return self.assumed(self.numbers[index], place)

        out: list[Any] = []
        self.run(core, out, work, table, self._with_integers, number_at)
        merged: list[Run] = []
        for identity, count in self._flattened(out):
            if merged and merged[-1][0] == identity:
                merged[-1] = (identity, merged[-1][1] + count)
            else:
                merged.append((identity, count))
        return tuple((self.chunks[identity], count) for identity, count in self._folded(merged))

    def _with_integers(self, identity: int, values: tuple[tuple[int, ...], ...]) -> int:
        """The chunk with the integers its ops were given this time."""
        key = (identity, values)
        if key not in self.made:
            self.made[key] = len(self.chunks)
            pairs = zip(self.chunks[identity], values, strict=True)
            self.chunks.append(tuple(replace(event, args=args) if args else event for event, args in pairs))
        return self.made[key]

    def _joined(self, body: Sequence[Run]) -> int:
        """Chunks that follow each other in every iteration, as one."""
        key = tuple(body)
        if key not in self.made:
            self.made[key] = len(self.chunks)
            self.chunks.append(tuple(event for identity, count in body for event in self.chunks[identity] * count))
        return self.made[key]

    def _folded(self, runs: list[Run]) -> list[Run]:
        """Several runs that repeat in a row as one chunk, inner loops first: machines skip rounds of a chunk.

        A loop that asks for its step lists every iteration on its own, and one inside another is written out: both come back
        here. A chunk stays short, or the rounds that are run before a state is met again would cost more than skipping saves.
        """
        while True:
            folded: list[Run] = []
            at = 0
            while at < len(runs):
                period = self._period(runs, at)
                times = 1
                while period and runs[at + times * period : at + (times + 1) * period] == runs[at : at + period]:
                    times += 1
                run = (self._joined(runs[at : at + period]), times) if period else runs[at]
                if folded and folded[-1][0] == run[0]:
                    run = (run[0], folded.pop()[1] + run[1])
                folded.append(run)
                at += times * period or 1
            if len(folded) == len(runs):
                return folded
            runs = folded

    def _period(self, runs: list[Run], at: int) -> int:
        """How many runs from here on come again at once; 0 if none do."""
        first = runs[at]
        for period in range(2, min(FOLDED_RUNS, (len(runs) - at) // 2) + 1):
            if runs[at + period] == first and runs[at : at + period] == runs[at + period : at + 2 * period]:
                events = sum(len(self.chunks[identity]) * count for identity, count in runs[at : at + period])
                return period if events <= FOLDED_EVENTS else 0
        return 0

    def _flattened(self, out: list[Any]) -> list[Run]:
        """Counted loops are written out, except where a run of chunks repeats as it is."""
        flat: list[Run] = []
        for entry in out:
            if isinstance(entry, int):
                flat.append((entry, 1))
                continue
            count, inner = entry
            body = self._flattened(inner)
            if len(body) == 1:
                flat.append((body[0][0], body[0][1] * count))
            elif body and all(times == 1 for _, times in body) and len(body) <= JOIN_LIMIT:
                flat.append((self._joined(body), count))
            elif len(body) * count > EVENT_LIMIT:
                raise Unpredictable
            else:
                flat += body * count
        return flat


@lru_cache(maxsize=64)
def _code(text: str, name: str) -> CodeType:
    """Remembered: every pass that asks about the threads of a kernel has their text again."""
    return compile(text, f"<trace of {name}>", "exec")


def trace_thread(function: FuncOp) -> ThreadTrace:
    writer = Writer()
    writer.block(function.body.block, 1)
    text = "def run(core, out, work, table, make, element):\n" + "\n".join(writer.lines or ["    pass"]) + "\n"
    scope: dict[str, Any] = dict(PYTHON_NAMES)
    exec(_code(text, function.sym_name.data), scope)
    return ThreadTrace(function, scope["run"], writer.chunks, writer.by_core, writer.tables, numbers=writer.numbers)


def traced(functions: Sequence[FuncOp], known: dict[FuncOp, ThreadTrace]) -> list[ThreadTrace]:
    """The threads as `known` has them; it keeps those that it has not."""
    for function in functions:
        if function not in known:
            known[function] = trace_thread(function)
    return [known[function] for function in functions]


@record
class Number:
    """An integer that a thread reads from data, and where from: the same element of the same tensor is the same number in
    every thread, if the kernel does not write it."""

    op: Operation
    tensor: str  # the argument it comes from; empty if it is computed, or that is not known
    low: int
    high: int
    declared: bool = True  # the author, or the language, says how large it can be

    @property
    def source(self) -> object:
        return self.tensor or self.op


MOST_ASSUMED = 8  # of a number that nothing is said about


def number_of(read: ReadElementOp) -> tuple[Number, list[SSAValue]]:
    """The number, and what tells it from others of its source: the slice that was copied to its block, and its place there."""
    low, high = read.bounds
    high = high if read.declared and high < LARGEST else low + MOST_ASSUMED
    place = [read.row, read.column]
    copy = _copied_to(read)
    if copy is None:
        return Number(read, "", low, high, read.declared), place
    cut = copy.source.owner
    assert isinstance(cut, TensorSliceOp) and isinstance(cut.accessor.owner, TensorAccessorOp)
    return Number(read, cut.accessor.owner.tensor_name, low, high, read.declared), [*cut.operands[1:], *place]


def _copied_to(read: ReadElementOp) -> CopyOp | None:
    """A copy that fills the buffer of a block, if the reading thread can tell what it copied: the only one, in this thread or at
    a place that the core alone decides, or one of several that copy the same slice."""
    acquire, function = acquire_of(read.block), read
    while not isinstance(function, FuncOp):
        parent = function.parent_op()
        assert parent is not None
        function = parent
    module = function.parent_op()
    if acquire is None or module is None:
        return None
    index = bind_of(acquire.operands[0]).cb_index
    filled: list[CopyOp] = []
    for op in operations(module):
        target = op.target if isinstance(op, (CopyOp, StoreOp)) else op.block if isinstance(op, WriteElementOp) else None
        held = None if target is None else acquire_of(target)
        if held is not None and bind_of(held.operands[0]).cb_index == index:
            if not isinstance(op, CopyOp) or not isinstance(op.source.owner, TensorSliceOp):
                return None
            filled.append(op)
    cuts = [copy.source.owner for copy in filled if isinstance(copy.source.owner, TensorSliceOp)]
    accessors = [cut.accessor.owner for cut in cuts if isinstance(cut.accessor.owner, TensorAccessorOp)]
    if not cuts or len(accessors) < len(cuts) or _is_written(accessors[0], module):
        return None
    slices = {(accessor.tensor_index, *map(constant_of, cut.operands[1:])) for accessor, cut in zip(accessors, cuts, strict=True)}
    if len(slices) == 1 and None not in next(iter(slices)):
        return filled[0]
    if len(filled) > 1:
        return None
    here = function.is_ancestor(filled[0]) and _visible(filled[0], read)
    return filled[0] if here or all(map(_same_in_all_threads, cuts[0].operands[1:])) else None


def _same_in_all_threads(value: SSAValue) -> bool:
    """Whether an integer is a constant or computed from where the core is: another thread of it would compute the same."""
    owner = value.owner
    if not isinstance(owner, Operation):
        return False
    known = isinstance(owner, (CoreOp, CoreTableOp, WorkOp)) or owner.dialect_name() == "arith"
    return known and all(map(_same_in_all_threads, owner.operands))


def _visible(op: Operation, user: Operation) -> bool:
    """Whether numbers at ``op`` are those that ``user`` would see: it stands in the same body, or in one around it."""
    block = user.parent
    while block is not None:
        if block is op.parent:
            return True
        around = block.parent_op()
        block = None if around is None else around.parent
    return False


def _is_written(accessor: TensorAccessorOp, module: Operation) -> bool:
    cuts = [op.target.owner for op in operations(module) if isinstance(op, CopyOp)]
    owners = [cut.accessor.owner for cut in cuts if isinstance(cut, TensorSliceOp)]
    return any(isinstance(owner, TensorAccessorOp) and owner.tensor_index == accessor.tensor_index for owner in owners)


@record(frozen=False)
class Writer:
    lines: list[str] = field(default_factory=list[str])
    chunks: list[Chunk] = field(default_factory=list[Chunk])
    names: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    by_core: bool = False
    tables: list[Table] = field(default_factory=list["Table"])  # of the cores, read once: there may be thousands of entries
    assumes: bool = True  # numbers from data are whatever is assumed; else they make a thread unpredictable
    numbers: list[Number] = field(default_factory=list[Number])
    _outs: list[str] = field(default_factory=lambda: ["out"])

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def block(self, block: Block, depth: int) -> None:
        events: list[Event] = []
        start = len(self.lines)
        for op in block_ops(block):
            if type(op) in HANDOVERS:
                events += _events(op)
            elif type(op) in NETWORK_OPS:
                events += network_events(op)
            elif type(op) is scf.ForOp:
                self._flush(events, depth)
                self._loop(op, depth)
            elif type(op) is scf.IfOp:
                self._flush(events, depth)
                self._branch(op, depth)
        self._flush(events, depth)
        if len(self.lines) == start:
            self.line(depth, "pass")

    def _flush(self, events: list[Event], depth: int) -> None:
        if events:
            integers = [_integers_of(event) for event in events] if any(event.word in WITH_INTEGERS for event in events) else []
            if any(integers):
                texts = ", ".join(f"({''.join(self.value(v) + ', ' for v in values)})" for values in integers)
                self.line(depth, f"{self._outs[-1]}.append(make({len(self.chunks)}, ({texts},)))")
            else:
                self.line(depth, f"{self._outs[-1]}.append({len(self.chunks)})")
            self.chunks.append(tuple(events))
            events.clear()

    def _loop(self, loop: scf.ForOp, depth: int) -> None:
        if not _communicates(loop) and not loop.results:
            return
        body = loop.body.block
        counter = self._name(body.args[0])
        bounds = ", ".join(self.value(v) for v in (loop.lb, loop.ub, loop.step))
        for argument, initial in zip(body.args[1:], loop.iter_args, strict=True):
            self.line(depth, f"{self._name(argument)} = {self.value(initial)}")
        inner_depth = depth + 1
        counted = not loop.iter_args and not _steers(body.args[0], body)
        if counted:
            out = f"out{len(self.lines)}"
            self.line(depth, f"{out} = []")
            self.line(depth, f"if len(range({bounds})):")
            self.line(depth + 1, f"{self._outs[-1]}.append((len(range({bounds})), {out}))")
            self._outs.append(out)
        else:
            self.line(depth, f"for {counter} in range({bounds}):")
        self.block(body, inner_depth)
        if counted:
            self._outs.pop()
            return
        last = body.last_op
        assert last is not None
        new = [self.value(v) for v in last.operands]
        if new:
            self.line(inner_depth, ", ".join(self._name(a) for a in body.args[1:]) + " = " + ", ".join(new))
            for result, argument in zip(loop.results, body.args[1:], strict=True):
                self.names[result] = self._name(argument)

    def _branch(self, op: scf.IfOp, depth: int) -> None:
        if not _communicates(op) and not op.results:
            return
        self.line(depth, f"if {self.value(op.cond)}:")
        self._arm(op, op.true_region.block, depth + 1)
        if op.false_region.blocks:
            self.line(depth, "else:")
            self._arm(op, op.false_region.block, depth + 1)

    def _arm(self, op: scf.IfOp, block: Block, depth: int) -> None:
        self.block(block, depth)
        last = block.last_op
        for result, value in zip(op.results, last.operands if last is not None else (), strict=False):
            self.line(depth, f"{self._name(result)} = {self.value(value)}")

    def _name(self, value: SSAValue) -> str:
        return self.names.setdefault(value, f"v{len(self.names)}")

    def value(self, value: SSAValue) -> str:
        """A Python expression; values are pure, so they are written where they are used."""
        number = constant_of(value)
        if number is not None:
            return repr(number)
        if value in self.names:
            return self.names[value]
        owner = value.owner
        if isinstance(owner, CoreOp):
            self.by_core = True
            return f"core[{owner.results.index(value)}]"
        if isinstance(owner, CoreTableOp):
            self.by_core = True
            self.tables.append(owner.values)
            return f"table({len(self.tables) - 1}{''.join(', ' + self.value(operand) for operand in owner.operands)})"
        if isinstance(owner, RuntimeArgumentOp) and owner.given is not None:
            return str(owner.given)
        if isinstance(owner, (ReadElementOp, WaitAnyOp)) and self.assumes:
            number, place = number_of(owner) if isinstance(owner, ReadElementOp) else (Number(owner, "", *owner.bounds), [])
            self.by_core = True
            self.numbers.append(number)
            index = len(self.numbers) - 1
            return f"element({', '.join([str(index), *map(self.value, place)])})"
        if isinstance(owner, WorkOp):
            self.by_core = True
            return f"work({owner.argument.part!r}, {owner.argument.amount})"
        if isinstance(value, BlockArgument) or not isinstance(owner, Operation):
            raise Unpredictable
        parts = [self.value(operand) for operand in owner.operands]
        text = python_text(owner.name, owner.predicate.value.data if isinstance(owner, arith.CmpiOp) else None, parts)
        if text is None:
            raise Unpredictable
        return f"({text})"


def _events(op: Operation) -> list[Event]:
    bind = bind_of(op.operands[0])
    kind = buffer_type_of(bind.results[0])
    if isinstance(op, PublishCBOp):
        blocks = kind.factor.data
        return [Event("reserve", bind.cb_index, blocks, op), *[Event("push", bind.cb_index, 1, op)] * blocks]
    amount = op.tiles // kind.block_tiles if isinstance(op, (CBWaitOp, CBReserveOp)) else 1
    return [Event(WORDS[type(op)], bind.cb_index, amount, op)]


def _communicates(op: Operation) -> bool:
    inside = operations(op)
    return not HANDOVERS.isdisjoint(map(type, inside)) or any(map(_between_cores, inside))


def _steers(counter: SSAValue, body: Block) -> bool:
    """Whether a loop counter decides a loop or an if inside that touches buffers."""
    reached: set[SSAValue] = {counter}
    pending = [counter]
    while pending:
        for user in users(pending.pop()):
            if names_cores(type(user)) or _between_cores(user):
                return True
            if type(user) is scf.ForOp or type(user) is scf.IfOp:
                if _communicates(user):
                    return True
                pending += [result for result in user.results if result not in reached]
            elif type(user) is scf.YieldOp or type(user) is ReturnOp:
                parent = user.parent_op()
                if parent is not None and parent.parent is not None and parent is not body.parent_op():
                    pending += [result for result in parent.results if result not in reached]
            else:
                pending += [result for result in user.results if result not in reached]
            reached.update(pending)
    return False


def traces_of_cores(threads: Sequence[ThreadTrace], grid: tuple[int, ...]) -> dict[tuple[int, ...], Traces]:
    """What the threads of every core do, as numbers from data are assumed now."""
    cores = list(product(*(range(size) for size in grid)))
    alike = [None if thread.by_core else thread.items(cores[0], grid) for thread in threads]
    return {
        core: tuple(thread.items(core, grid) if same is None else same for thread, same in zip(threads, alike, strict=True))
        for core in cores
    }


def core_groups(threads: Sequence[ThreadTrace], grid: tuple[int, ...]) -> dict[Traces, tuple[int, ...]]:
    """Distinct behaviours, each with the first core that shows it."""
    return grouped(traces_of_cores(threads, grid))


def grouped(everyone: dict[tuple[int, ...], Traces]) -> dict[Traces, tuple[int, ...]]:
    found: dict[Traces, tuple[int, ...]] = {}
    for core, traces in everyone.items():
        found.setdefault(traces, core)
    return found


def pipe_of(copy: Operation) -> NetPipeOp | None:
    """The pipe a copy goes through, if it does."""
    for operand in copy.operands:
        if type(operand.type) is PipeType and isinstance(operand.owner, NetPipeOp):
            return operand.owner
    return None


def received_by(wait: Operation) -> list[CopyOp]:
    """Copies out of pipes that a wait completes."""
    copies = [operand.owner for operand in wait.operands if type(operand.owner) is CopyOp]
    return [copy for copy in copies if type(copy.source.type) is PipeType]


def semaphore_of(value: SSAValue) -> CreateSemaphoreOp:
    owner = value.owner
    while isinstance(owner, (GetRemoteSemaphoreOp, GetRemoteMulticastSemaphoreOp)):
        owner = owner.semaphore.owner
    assert isinstance(owner, CreateSemaphoreOp)
    return owner


def network_events(op: Operation) -> list[Event]:
    """What an op says to another core, or hears from it."""
    if isinstance(op, CopyOp):
        pipe = pipe_of(op)
        if pipe is None:
            return []
        word = "send" if isinstance(op.target.type, PipeType) else "post"
        return [Event(word, pipe.net.number, 0, op, block=_sent_block(op))]
    if isinstance(op, WaitOp):
        pipes = [pipe_of(copy) for copy in received_by(op)]
        return [Event("arrive", pipe.net.number, 0, op) for pipe in pipes if pipe is not None]
    number = semaphore_of(op.operands[0]).number
    return [Event(SEMAPHORE_WORDS[type(op)], number, 0, op, at_least="at_least" in op.attributes, reach=_reach(op))]


def _sent_block(copy: CopyOp) -> SentBlock | None:
    value = next(value for value in copy.operands if not isinstance(value.type, PipeType))
    acquire = acquire_of(value)
    if acquire is None:  # refused elsewhere
        return None
    kind = buffer_type_of(acquire.operands[0])
    offset = value.owner.tile_offset if isinstance(value.owner, AttachCBOp) else 0
    return SentBlock(bind_of(acquire.operands[0]).cb_index, offset // kind.block_tiles, kind.block_tiles * kind.tile.bytes)


def _reach(op: Operation) -> Reach:
    owner = op.operands[0].owner
    if isinstance(owner, GetRemoteMulticastSemaphoreOp):
        given = owner.attributes.get("core_range")
        return Reach("all") if given is None else Reach("ranges", nested_value(given))
    if isinstance(owner, GetRemoteSemaphoreOp):
        given = owner.attributes.get("core")
        return Reach("core", None if given is None else nested_value(given))
    return OWN


def _integers_of(event: Event) -> list[SSAValue]:
    """Values that decide what the event does: which of the core's pipes; value and core of a semaphore."""
    op: Operation = event.op
    if event.word in ("send", "post", "arrive"):
        pipe = pipe_of(received_by(op)[0] if event.word == "arrive" else op)
        assert pipe is not None
        return list(pipe.operands)
    if event.word not in WITH_INTEGERS:
        return []
    owner = op.operands[0].owner
    core = list(owner.operands[1:]) if isinstance(owner, GetRemoteSemaphoreOp) else []
    return [op.operands[1], *core]


def cores_communicate(module: ModuleOp) -> bool:
    return any(network_events(op) for op in operations(module) if type(op) in NETWORK_OPS)


def _between_cores(op: Operation) -> bool:
    return type(op) in NETWORK_OPS and bool(network_events(op))


def ways_of_cores(function: FuncOp, grid: tuple[int, ...]) -> list[Ways]:
    """Every combination that some core takes, once."""
    writer = Writer(assumes=False)
    tests: dict[scf.IfOp, Any] = {}
    for op in operations(function):
        if isinstance(op, scf.IfOp):
            try:
                tests[op] = compile(writer.value(op.cond), "<condition>", "eval")
            except Unpredictable:
                continue
    found: dict[tuple[bool, ...], Ways] = {}
    for core in cores_of(grid):
        number = core_number(core, grid)

        def work(part: str, amount: int, number: int = number) -> int:
            return WorkArgument(part=part, amount=amount).value(number, math.prod(grid))

        def table(index: int, position: int = 0, number: int = number) -> int:
            return writer.tables[index][number][position]

        ways = {op: bool(eval(test, {**PYTHON_NAMES, "core": core, "work": work, "table": table})) for op, test in tests.items()}
        found.setdefault(tuple(ways.values()), ways)
    return list(found.values())
