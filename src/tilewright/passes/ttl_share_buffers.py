"""More buffers than the chip has indices, or L1 for: those that one queue can stand for become one.

Two buffers with the same ends (one thread fills both, one thread empties both) are one queue if blocks leave in the order in
which they entered, and nobody holds blocks of both at once: a queue keeps that order by itself. So nothing has to be drained,
reset or waited for between them. What the shared depth costs is tried: if a thread would stop for ever, the buffers stay apart.

Buffers whose uses lie one behind the other come first, then those that take turns; those that pipes fill or empty come last,
because their places matter to other cores. Kernels that fit are left alone, apart from buffers that the author has put into one
allocation group.

Requires: every acquire has its release, and blocks that are held together know their places.
Ensures: as few buffers as needed for the chip's limits, with some indices left for the compiler's own; numbered without gaps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import prod

from xdsl.dialects.builtin import ModuleOp

from tilewright.dialects.attributes import buffer_type_of, int_value
from tilewright.dialects.ttl import name_of
from tilewright.dialects.ttl_buffers import ALIAS_OF, CORE_RANGES, BindCBOp, PublishCBOp, RunningOp
from tilewright.dialects.walking import erase, of_kind
from tilewright.machine.threads import Event, Trace
from tilewright.passes import compiler_buffers
from tilewright.passes.buffers import Buffer, binds_of, buffers_of, functions_of
from tilewright.passes.context import PassContext
from tilewright.passes.validation.communication import communication_problems
from tilewright.passes.validation.communication_trace import ThreadTrace, Unpredictable, core_groups, trace_thread
from tilewright.passes.validation.network import ORDERS

NAME = "ttl-share-buffers"
GROUP = "allocation_group"  # of buffers that the author says may share memory
FOR_COMPILER = 12  # indices that stay free for values that travel
MOST_EVENTS = 200_000  # of one thread, looked at one by one
Shared = dict[int, int]  # buffer -> the one that stands for it


def run(module: ModuleOp, context: PassContext) -> None:
    buffers = buffers_of(module)
    wanted = _groups(buffers)
    if context.unresolved or not (wanted or _over(buffers.values(), context, FOR_COMPILER)):
        return
    try:
        threads = [trace_thread(function) for function in functions_of(module)]
        lives = Lives(threads, buffers, context.grid)
    except Unpredictable:
        return
    plan = lives.plan(wanted, context)
    works = _works(module, plan, context) or _is_wrong_anyway(module, context)
    shared = plan if works else _tried_one_by_one(module, plan, context)
    if shared:
        _rewrite(module, shared)
        _tell(shared, buffers, lives, context)


def _over(buffers: Iterable[Buffer], context: PassContext, spare: int = 0) -> bool:
    own = [buffer for buffer in buffers if not buffer.backed and not buffer.runs]
    used = sum(buffer.kind.total_tiles * buffer.kind.tile.bytes for buffer in own)
    return len(list(buffers)) > context.chip.max_buffers - spare or used > context.chip.l1_usable_bytes


def _groups(buffers: Mapping[int, Buffer]) -> list[tuple[int, int]]:
    """Pairs of neighbours in one allocation group."""
    groups: dict[int, list[int]] = {}
    for index, buffer in buffers.items():
        group = int_value(buffer.binds[0], GROUP, -1)
        if group >= 0:
            groups.setdefault(group, []).append(index)
    return [pair for members in groups.values() for pair in pairwise(members)]


class Lives:
    """What every thread does with every buffer, in order, on every kind of core."""

    def __init__(self, threads: Sequence[ThreadTrace], buffers: dict[int, Buffer], grid: tuple[int, ...]) -> None:
        self.buffers = buffers
        self.certain = not any(thread.numbers for thread in threads)  # else order is only what the text says
        self.names = [thread.function for thread in threads]
        self.traces = list(core_groups(threads, grid))
        self.piped = {
            event.block.buffer
            for traces in self.traces for trace in traces for chunk, _ in trace for event in chunk
            if event.block is not None
        }  # fmt: skip
        self._flat: dict[Trace, list[tuple[str, int]] | None] = {}

    def plan(self, wanted: Sequence[tuple[int, int]], context: PassContext) -> Shared:
        """Which buffer stands for which. Those of a group first; then as many as needed, those used in phases before others."""
        shared: Shared = {}
        for first, second in wanted:
            self._join(shared, first, second, most_turns=None)
        buffers = self.buffers
        pairs = [(one, other) for other in buffers for one in buffers if one < other and _alike(buffers[one], buffers[other])]
        for piped, most_turns in ((False, 1), (False, None), (True, 1), (True, None)):
            for first, second in pairs:
                if bool({first, second} & self.piped) is not piped or second in shared or first in shared:
                    continue
                if not self._over(shared, context):
                    return shared
                self._join(shared, first, second, most_turns)
        return shared

    def _over(self, shared: Shared, context: PassContext) -> bool:
        left = [index for index in self.buffers if index not in shared]
        used = sum(prod(self.kind(index, shared)) for index in left if not self.buffers[index].runs)
        return len(left) > context.chip.max_buffers - FOR_COMPILER or used > context.chip.l1_usable_bytes

    def kind(self, index: int, shared: Shared) -> tuple[int, int]:
        """Tiles and bytes of each, of the buffer that stands for a class."""
        members = [self.buffers[index], *(self.buffers[other] for other, own in shared.items() if own == index)]
        own = members[0]
        tiles = 0 if own.backed else max(member.kind.total_tiles for member in members)
        return tiles, own.kind.tile.bytes

    def _join(self, shared: Shared, first: int, second: int, most_turns: int | None) -> None:
        first = shared.get(first, first)
        members = [first, *(other for other, own in shared.items() if own == first)]
        if second not in shared and all(self.one_queue(member, second, most_turns) for member in members):
            shared[second] = first

    def one_queue(self, first: int, second: int, most_turns: int | None = None) -> bool:
        one, other = self.buffers[first], self.buffers[second]
        if not _alike(one, other):
            return False
        fills, empties = self.names.index(one.producers[0]), self.names.index(one.consumers[0])
        for traces in self.traces:
            entered = self._order(traces[fills], first, second, ("reserve", "push"))
            left = self._order(traces[empties], first, second, ("wait", "pop"))
            if entered is None or entered != left:
                return False
            turns = sum(a != b for a, b in pairwise(entered))
            if turns > (1 if not self.certain else len(entered) if most_turns is None else most_turns):
                return False
        return True

    def _order(self, trace: Trace, first: int, second: int, words: tuple[str, str]) -> list[int] | None:
        """Whose block each release gives up; None if blocks of both are held at once."""
        events = self._events(trace)
        held: Counter[int] = Counter()
        order: list[int] = []
        for word, buffer in events or ():
            if buffer not in (first, second) or word not in words:
                continue
            if word == words[0]:
                held[buffer] += 1
                if held[second if buffer == first else first]:
                    return None
            else:
                held[buffer] -= 1
                order.append(buffer)
        return None if events is None else order

    def _events(self, trace: Trace) -> list[tuple[str, int]] | None:
        if trace not in self._flat:
            total = sum(len(chunk) * count for chunk, count in trace)
            events = (event for chunk, count in trace for _ in range(count) for event in chunk)
            self._flat[trace] = list(_handovers(events)) if total <= MOST_EVENTS else None
        return self._flat[trace]


def _handovers(events: Iterable[Event]) -> Iterator[tuple[str, int]]:
    """What is done with which buffer. Of a running value there is always a block to be read: it may have to lie in its buffer."""
    running: set[int] = set()
    for event in events:
        buffer = event.buffer
        yield event.word, buffer
        if type(event.op) is RunningOp:
            running.add(buffer)
            yield from (("push", buffer), ("wait", buffer), ("reserve", buffer))
        elif event.word == "push" and buffer in running:
            running.remove(buffer)
            yield "pop", buffer


def _alike(one: Buffer, other: Buffer) -> bool:
    """Blocks of one shape and dtype in memory of their own, with the same two ends, on all cores."""
    for buffer in (one, other):
        bind = buffer.binds[0]
        special = buffer.backed or ALIAS_OF in bind.attributes or CORE_RANGES in bind.attributes or _published(buffer)
        if special or len(buffer.producers) != 1 or len(buffer.consumers) != 1:
            return False
    ends = one.producers == other.producers and one.consumers == other.consumers
    return ends and (one.kind.shape, one.kind.element) == (other.kind.shape, other.kind.element)


def _published(buffer: Buffer) -> bool:
    return any(isinstance(use.operation, PublishCBOp) for bind in buffer.binds for use in bind.results[0].uses)


def _works(module: ModuleOp, shared: Shared, context: PassContext) -> bool:
    """Whether every thread still reaches its end, whether what is held still lies in one piece, and whether pipes meet.

    Other orders of semaphores are left to the validation: without sharing, the kernel does not fit in any order.
    """
    if not shared:
        return True
    trial = module.clone()
    _rewrite(trial, shared)
    threads = [trace_thread(function) for function in functions_of(trial)]
    problems, _ = communication_problems(trial, threads, buffers_of(trial), context.grid, orders=ORDERS[:1])
    return not problems


def _is_wrong_anyway(module: ModuleOp, context: PassContext) -> bool:
    """Then that is told about the program as it was written."""
    threads = [trace_thread(function) for function in functions_of(module)]
    problems, _ = communication_problems(module, threads, buffers_of(module), context.grid)
    return bool(problems)


def _tried_one_by_one(module: ModuleOp, plan: Shared, context: PassContext) -> Shared:
    kept: Shared = {}
    for second, first in plan.items():
        if _works(module, {**kept, second: first}, context):
            kept[second] = first
    return kept


def _rewrite(module: ModuleOp, shared: Shared) -> None:
    """One bind for each class, as deep as its deepest member, and numbers without gaps."""
    depths: dict[int, int] = {}
    for bind in of_kind(module, BindCBOp):
        own = shared.get(bind.cb_index, bind.cb_index)
        depths[own] = max(depths.get(own, 0), buffer_type_of(bind.results[0]).factor.data)
    stands: dict[int, BindCBOp] = {}  # of any thread: its name and place are those of the class
    for bind in of_kind(module, BindCBOp):
        if bind.cb_index not in shared:
            stands.setdefault(bind.cb_index, bind)
    numbers = {index: number for number, index in enumerate(sorted(stands))}
    for function in functions_of(module):
        made: dict[int, BindCBOp] = {}
        for bind in binds_of(function):
            own = shared.get(bind.cb_index, bind.cb_index)
            if own not in made:
                made[own] = compiler_buffers.rebound(stands[own], depths[own], numbers[own])
                function.body.block.insert_op_before(made[own], bind)
            bind.results[0].replace_all_uses_with(made[own].results[0])
            erase(bind)


def _tell(shared: Shared, buffers: Mapping[int, Buffer], lives: Lives, context: PassContext) -> None:
    classes: dict[int, list[int]] = {}
    for second, first in shared.items():
        classes.setdefault(first, []).append(second)
    for first, members in classes.items():
        names = ", ".join(f"'{name_of(buffers[other].binds[0], f'cb{other}')}'" for other in members)
        reason = "the same threads fill and empty them, and their blocks leave in the order in which they came"
        context.trace.decide(NAME, f"'{buffers[first].name}' is also the buffer of {names}", reason)
    left = len(buffers) - len(shared)
    context.trace.decide(NAME, f"{len(buffers)} buffers became {left}", f"{context.chip.name} has {context.chip.max_buffers}")
