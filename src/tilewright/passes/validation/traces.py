"""The order in which each thread of a core touches buffers, found by running only its loops, ifs and integers.

A thread's IR is turned into a small Python function of the core coordinates. Straight pieces of code are *chunks*; a loop
whose course does not depend on its counter is run once and counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field, replace
from typing import Any

from xdsl.dialects import arith, scf
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tilewright.dialects.attributes import CBType, constant_of
from tilewright.dialects.ttl import CoreOp, WorkOp
from tilewright.dialects.ttl_buffers import PublishCBOp
from tilewright.dialects.ttl_network import CoreTableOp, GetRemoteSemaphoreOp, NetPipeOp, RuntimeArgumentOp
from tilewright.grid import WorkArgument, core_number
from tilewright.passes.validation.events import ACQUIRES, HANDOVERS, WORDS, bind_of
from tilewright.passes.validation.talk import TALKING, integers_of, talk_ops
from tilewright.records import record

EVENT_LIMIT = 1_000_000
JOIN_LIMIT = 64

INFIX = {
    arith.AddiOp: "+", arith.SubiOp: "-", arith.MuliOp: "*", arith.DivUIOp: "//", arith.RemUIOp: "%",
    arith.AndIOp: "&", arith.OrIOp: "|", arith.XOrIOp: "^",
}  # fmt: skip
PREDICATES = {0: "==", 1: "!=", 2: "<", 3: "<=", 4: ">", 5: ">=", 6: "<", 7: "<=", 8: ">", 9: ">="}


@record(eq=False)
class Event:
    """One buffer op: ``amount`` blocks waited for or reserved (with those already held), or one handed over.

    Or one op between cores: ``buffer`` is the net's or semaphore's number then, and ``args`` the integers it was given.
    """

    word: str  # wait, reserve, push, pop; send, post, arrive; level, set, inc
    buffer: int
    amount: int
    op: Operation
    args: tuple[int, ...] = ()


Chunk = tuple[Event, ...]
Item = tuple[Chunk, int]  # a chunk and how often it runs in a row


class Unpredictable(Exception):
    """The thread's course depends on something only the device knows."""


@record(frozen=False)
class ThreadTrace:
    """How to list the buffer ops of one thread on a given core."""

    function: FuncOp
    run: Callable[..., None]
    chunks: list[Chunk]
    by_core: bool  # whether cores differ
    tables: list[CoreTableOp] = field(default_factory=list[CoreTableOp])
    made: dict[Any, int] = field(default_factory=dict[Any, int])  # chunks that exist with certain integers only

    def items(self, core: tuple[int, ...], grid: tuple[int, ...]) -> tuple[Item, ...]:
        number = core_number(core, grid)

        def work(part: str, amount: int) -> int:
            return WorkArgument(part=part, amount=amount).value(number, math.prod(grid))

        def table(index: int, position: int = 0) -> int:
            return self.tables[index].values[number][position]

        out: list[Any] = []
        self.run(core, out, work, table, self._with_integers)
        merged: list[tuple[int, int]] = []
        for identity, count in self._flattened(out):
            if merged and merged[-1][0] == identity:
                merged[-1] = (identity, merged[-1][1] + count)
            else:
                merged.append((identity, count))
        return tuple((self.chunks[identity], count) for identity, count in merged)

    def _with_integers(self, identity: int, values: tuple[tuple[int, ...], ...]) -> int:
        """The chunk with the integers its ops were given this time."""
        key = (identity, values)
        if key not in self.made:
            self.made[key] = len(self.chunks)
            pairs = zip(self.chunks[identity], values, strict=True)
            self.chunks.append(tuple(replace(event, args=args) if args else event for event, args in pairs))
        return self.made[key]

    def _joined(self, body: list[tuple[int, int]]) -> int:
        """Chunks that follow each other in every iteration, as one."""
        key = tuple(body)
        if key not in self.made:
            self.made[key] = len(self.chunks)
            self.chunks.append(tuple(event for identity, _ in body for event in self.chunks[identity]))
        return self.made[key]

    def _flattened(self, out: list[Any]) -> list[tuple[int, int]]:
        """Counted loops are written out, except where a run of chunks repeats as it is."""
        flat: list[tuple[int, int]] = []
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


def trace_thread(function: FuncOp) -> ThreadTrace:
    writer = Writer()
    writer.block(function.body.block, 1)
    text = "def run(core, out, work, table, make):\n" + "\n".join(writer.lines or ["    pass"]) + "\n"
    scope: dict[str, Any] = {}
    exec(compile(text, f"<course of {function.sym_name.data}>", "exec"), scope)
    return ThreadTrace(function, scope["run"], writer.chunks, writer.by_core, writer.tables)


@record(frozen=False)
class Writer:
    lines: list[str] = field(default_factory=list[str])
    chunks: list[Chunk] = field(default_factory=list[Chunk])
    names: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    by_core: bool = False
    tables: list[CoreTableOp] = field(default_factory=list[CoreTableOp])
    _outs: list[str] = field(default_factory=lambda: ["out"])

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def block(self, block: Block, depth: int) -> None:
        events: list[Event] = []
        start = len(self.lines)
        for op in block.ops:
            if type(op) in HANDOVERS:
                events += _events(op)
            elif type(op) in TALKING:
                events += network_events(op)
            elif isinstance(op, (scf.ForOp, scf.IfOp)):
                self._flush(events, depth)
                (self._loop if isinstance(op, scf.ForOp) else self._branch)(op, depth)  # pyright: ignore
        self._flush(events, depth)
        if len(self.lines) == start:
            self.line(depth, "pass")

    def _flush(self, events: list[Event], depth: int) -> None:
        if events:
            integers = [event_integers(event) for event in events]
            if any(integers):
                texts = ", ".join(f"({''.join(self.value(v) + ', ' for v in values)})" for values in integers)
                self.line(depth, f"{self._outs[-1]}.append(make({len(self.chunks)}, ({texts},)))")
            else:
                self.line(depth, f"{self._outs[-1]}.append({len(self.chunks)})")
            self.chunks.append(tuple(events))
            events.clear()

    def _loop(self, loop: scf.ForOp, depth: int) -> None:
        if not _talks(loop) and not loop.results:
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
        if not _talks(op) and not op.results:
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
            return f"core[{owner.results.index(value)}]"  # pyright: ignore
        if isinstance(owner, CoreTableOp):
            self.by_core = True
            self.tables.append(owner)
            return f"table({len(self.tables) - 1}{''.join(', ' + self.value(operand) for operand in owner.operands)})"
        if isinstance(owner, RuntimeArgumentOp) and owner.given is not None:
            return str(owner.given)
        if isinstance(owner, WorkOp):
            self.by_core = True
            return f"work({owner.argument.part!r}, {owner.argument.amount})"
        if isinstance(value, BlockArgument) or not isinstance(owner, Operation):
            raise Unpredictable
        parts = [self.value(operand) for operand in owner.operands]
        if isinstance(owner, arith.CmpiOp):
            return f"({parts[0]} {PREDICATES[owner.predicate.value.data]} {parts[1]})"
        if isinstance(owner, arith.SelectOp):
            return f"({parts[1]} if {parts[0]} else {parts[2]})"
        if isinstance(owner, (arith.MinSIOp, arith.MaxSIOp)):
            return f"{'min' if isinstance(owner, arith.MinSIOp) else 'max'}({parts[0]}, {parts[1]})"
        symbol = INFIX.get(type(owner))  # pyright: ignore
        if symbol is None:
            raise Unpredictable
        return f"({parts[0]} {symbol} {parts[1]})"


def _events(op: Operation) -> list[Event]:
    bind = bind_of(op.operands[0])
    kind = bind.results[0].type
    assert isinstance(kind, CBType)
    if isinstance(op, PublishCBOp):
        blocks = kind.factor.data
        return [Event("reserve", bind.cb_index, blocks, op), *[Event("push", bind.cb_index, 1, op)] * blocks]
    amount = op.tiles // kind.block_tiles if type(op) in ACQUIRES else 1  # pyright: ignore
    return [Event(WORDS[type(op)], bind.cb_index, amount, op)]


def network_events(op: Operation) -> list[Event]:
    return [Event(talk.word, talk.number, 0, talk.op) for talk in talk_ops(op)]


def event_integers(event: Event) -> list[SSAValue]:
    return integers_of(event.word, event.op)


def _talks(op: Operation) -> bool:
    return any(type(inner) in HANDOVERS or (type(inner) in TALKING and talk_ops(inner)) for inner in op.walk())


def _steers(counter: SSAValue, body: Block) -> bool:
    """Whether a loop counter decides a loop or an if inside that touches buffers."""
    reached: set[SSAValue] = {counter}
    pending = [counter]
    while pending:
        for use in pending.pop().uses:
            user = use.operation
            if isinstance(user, (NetPipeOp, GetRemoteSemaphoreOp)) or (type(user) in TALKING and talk_ops(user)):
                return True
            if isinstance(user, (scf.ForOp, scf.IfOp)):
                if _talks(user):
                    return True
                pending += [result for result in user.results if result not in reached]
            elif isinstance(user, (scf.YieldOp, ReturnOp)):
                parent = user.parent_op()
                if parent is not None and parent.parent is not None and parent is not body.parent_op():
                    pending += [result for result in parent.results if result not in reached]
            else:
                pending += [result for result in user.results if result not in reached]
            reached.update(pending)
    return False
