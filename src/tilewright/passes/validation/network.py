"""Cores that communicate: every send has its receive, every wait on a semaphore comes true, nobody waits for ever."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilewright.diagnostics import Diagnostic, Note, counted
from tilewright.dialects.attributes import PipeType
from tilewright.dialects.ttl_network import CreateSemaphoreOp, NetPipeOp
from tilewright.dialects.walking import of_kind, operations, place_of
from tilewright.grid import Core, NetSpec
from tilewright.machine.grid import Clash, GridMachine
from tilewright.machine.threads import Cursor, Event, Trace
from tilewright.passes.buffers import Buffer, functions_of, problem
from tilewright.passes.validation.communication_trace import ThreadTrace, network_events, pipe_of, traces_of_cores

DEPTH_TRIES = 16
MOST_NOTES = 4
SENDS = ("send", "the send it waits for")
ORDERS = ("forward", "backward", "single")


def check_network(
    module: ModuleOp,
    threads: Sequence[ThreadTrace],
    buffers: dict[int, Buffer],
    grid: Core,
    rooms: Mapping[int, int] | None = None,
    orders: Sequence[str] = ORDERS,
) -> list[Diagnostic]:
    """``rooms``: buffers taken to have less room than they have, by index. ``orders``: those that semaphores are tried in."""
    check = NetworkCheck(module, threads, buffers, grid)
    check.depths |= rooms or {}
    return check.ends() or check.balance() or check.run(orders)


class NetworkCheck:
    def __init__(self, module: ModuleOp, threads: Sequence[ThreadTrace], buffers: dict[int, Buffer], grid: Core) -> None:
        self.buffers = buffers
        self.grid = grid
        self.depths = {index: buffer.kind.factor.data for index, buffer in buffers.items()}
        pipes = [op for function in functions_of(module) for op in of_kind(function, NetPipeOp)]
        self.nets: dict[int, NetSpec] = {op.net.number: op.net for op in pipes}
        made = [op for function in functions_of(module) for op in of_kind(function, CreateSemaphoreOp)]
        self.semaphores = {op.number: op for op in made}
        self.copies = [
            (function.sym_name.data, op)
            for function in functions_of(module)
            for op in operations(function)
            if op.name == "ttl.copy" and pipe_of(op) is not None
        ]
        self.threads: list[tuple[Core, str, Trace]] = [
            (core, thread.function.sym_name.data, trace)
            for core, traces in traces_of_cores(threads, grid).items()
            for thread, trace in zip(threads, traces, strict=True)
        ]

    # Who uses a net ---------------------------------------------------------------------------------------------------------

    def ends(self) -> list[Diagnostic]:
        """One thread that sends and one that receives per net: its semaphores have one reader each."""
        for number, net in self.nets.items():
            for sending, word in ((True, "send into"), (False, "receive from")):
                uses = [(name, op) for name, op in self.copies if _net(op) == number and _sends(op) is sending]
                names = list(dict.fromkeys(name for name, _ in uses))
                if len(names) > 1:
                    first, second = (next(op for name, op in uses if name == wanted) for wanted in names[:2])
                    return [
                        problem(
                            "TW215",
                            f"threads '{names[0]}' and '{names[1]}' both {word} '{net.name}'",
                            second,
                            notes=(Note("the first does so here", place_of(first)),),
                            help="use a net in one thread only, or make a second net",
                        )
                    ]
        return self._own_buffers()

    def _own_buffers(self) -> list[Diagnostic]:
        """A thread that sends to its own core announces the block of its receive, so there must be one buffer for it."""
        for number, names in self.own_posts().items():
            receives = [op for name, op in self.copies if name in names and _net(op) == number and not _sends(op)]
            found = {event.block.buffer: op for op in receives for event in network_events(op) if event.block is not None}
            if len(found) > 1:
                first, second = list(found.values())[:2]
                return [
                    problem(
                        "TW216",
                        f"a thread that sends to itself through '{self.nets[number].name}' receives into two buffers",
                        second,
                        notes=(Note("into another one here", place_of(first)),),
                        help="receive into one buffer, or in the other data-movement thread",
                    )
                ]
        return []

    def own_posts(self) -> dict[int, frozenset[str]]:
        """Threads that both send and receive in a net that leads back to its source."""
        found: dict[int, frozenset[str]] = {}
        for number, net in self.nets.items():
            loops = any(pipe.source_core(self.grid) in pipe.target_cores(self.grid) for pipe in net.pipes)
            ways: dict[str, set[bool]] = defaultdict(set)
            for name, op in self.copies:
                if _net(op) == number:
                    ways[name].add(_sends(op))
            found[number] = frozenset(name for name, both in ways.items() if loops and len(both) == 2)
        return found

    # How often --------------------------------------------------------------------------------------------------------------

    def balance(self) -> list[Diagnostic]:
        """As many receives at every destination of a pipe as sends at its source."""
        counts: Counter[tuple[str, int, int, Core]] = Counter()
        places: dict[tuple[str, int], Event] = {}
        machine = self.machine(self.depths)
        try:
            for cursor in machine.cursors:
                for chunk, times in cursor.items:
                    for event in chunk:
                        if event.word in ("send", "post"):
                            counts[event.word, event.buffer, machine.pipe(cursor, event), cursor.core] += times
                            places.setdefault((event.word, event.buffer), event)
        except Clash as clash:
            return [self.clashed(clash)]
        for number, net in self.nets.items():
            for index, pipe in enumerate(net.pipes):
                source = pipe.source_core(self.grid)
                sent = counts["send", number, index, source]
                for target in pipe.target_cores(self.grid):
                    taken = counts["post", number, index, target]
                    if taken != sent:
                        return [self._unequal(net, (source, sent), (target, taken), places)]
        return []

    def _unequal(
        self, net: NetSpec, source: tuple[Core, int], target: tuple[Core, int], places: dict[tuple[str, int], Event]
    ) -> Diagnostic:
        words = ("send", "post") if source[1] > target[1] else ("post", "send")
        anchor = places.get((words[0], net.number)) or places[words[1], net.number]
        other = places.get((words[1], net.number))
        done = f"core {source[0]} sends {counted(source[1], 'block')} into '{net.name}'"
        notes = () if other is None else (Note("the other side is here", place_of(other.op)),)
        return problem(
            "TW218",
            f"{done}, core {target[0]} receives {target[1]}",
            anchor.op,
            label="waits for ever",
            notes=notes,
            help=f"use the same loop bounds and ifs around {net.name}.if_src and {net.name}.if_dst",
        )

    # Run -------------------------------------------------------------------------------------------------------------------

    def machine(self, depths: dict[int, int]) -> GridMachine:
        return GridMachine(
            self.threads,
            depths,
            grid=self.grid,
            nets=self.nets,
            semaphores={number: op.initial for number, op in self.semaphores.items()},
            own_posts=self.own_posts(),
        )

    def run(self, orders: Sequence[str]) -> list[Diagnostic]:
        for order in orders if self.semaphores else orders[:1]:
            machine = self.machine(self.depths)
            try:
                stopped = machine.run(order)
            except Clash as clash:
                return [self.clashed(clash)]
            if stopped:
                return [self.deadlock(machine, stopped, order)]
        return []

    def clashed(self, clash: Clash) -> Diagnostic:
        notes = () if clash.other is None else (Note(clash.note, place_of(clash.other.op)),)
        return problem(clash.code, clash.message, clash.event.op, notes=notes, help=clash.help)

    def deadlock(self, machine: GridMachine, stopped: list[Cursor], order: str) -> Diagnostic:
        def rank(cursor: Cursor) -> int:
            assert cursor.event is not None
            # What communicates with another core is the likelier cause; a full buffer can be cured by depth.
            return {"level": 0, "send": 1, "arrive": 2, "post": 2, "reserve": 3}.get(cursor.event.word, 4)

        first = min(stopped, key=rank)
        assert first.event is not None
        others = [cursor for cursor in stopped if cursor is not first and cursor.core == first.core]
        partners = [cursor for cursor in stopped if cursor.core in self._partners(machine, first) and cursor is not first]
        shown: dict[Operation, Note] = {}
        for cursor in (*partners, *others):
            assert cursor.event is not None
            text = f"'{cursor.thread}' of core {cursor.core} is stopped here, {self.reason(machine, cursor)}"
            shown.setdefault(cursor.event.op, Note(text, place_of(cursor.event.op)))
        shown.pop(first.event.op, None)
        extra = self._changes(first.event) if first.event.word == "level" else self._other_end(first.event)
        return problem(
            "TW211",
            f"deadlock: '{first.thread}' of core {first.core} stops, {self.reason(machine, first)}",
            first.event.op,
            label="waits for ever" if order == "forward" else "may wait for ever",
            notes=(*extra, *list(shown.values())[:MOST_NOTES]),
            help=self.remedy(machine, stopped, first),
        )

    def _other_end(self, event: Event) -> list[Note]:
        """Where the net that a thread is stopped at is used on the other side."""
        wanted = {"send": ("post", "the receive it waits for"), "arrive": SENDS, "post": SENDS}.get(event.word)
        if wanted is None:
            return []
        for _, _, trace in self.threads:
            for chunk, _ in trace:
                for other in chunk:
                    if other.word == wanted[0] and other.buffer == event.buffer:
                        return [Note(f"{wanted[1]} is here", place_of(other.op))]
        return []

    def _changes(self, event: Event) -> list[Note]:
        """Where the semaphore is changed at all, and where it was made."""
        found: dict[Operation, Note] = {}
        for _, _, trace in self.threads:
            for chunk, _ in trace:
                for other in chunk:
                    if other.word in ("set", "inc") and other.buffer == event.buffer:
                        found.setdefault(other.op, Note("it is changed here", place_of(other.op)))
        return list(found.values())[:2] or [Note("it is made here and never changed", place_of(self.semaphores[event.buffer]))]

    def _partners(self, machine: GridMachine, cursor: Cursor) -> list[Core]:
        event = cursor.event
        assert event is not None
        if event.word == "send":
            net = self.nets[event.buffer]
            pipe = machine.pipe(cursor, event)
            ready = machine.posted.get((event.buffer, pipe), {})
            return [core for core in net.pipes[pipe].target_cores(self.grid) if core not in ready]
        if event.word in ("arrive", "post"):
            net = self.nets[event.buffer]
            return [net.pipes[machine.pipe(cursor, event)].source_core(self.grid)]
        return [cursor.core]

    def reason(self, machine: GridMachine, cursor: Cursor) -> str:
        event = cursor.event
        assert event is not None
        if event.word in ("wait", "reserve"):
            return waits_for_buffer(event, self.buffers)
        if event.word == "level":
            relation = "at least " if event.at_least else ""
            now = machine.semaphores[cursor.core].level(event.buffer)
            name = self.semaphores[event.buffer].semaphore_name
            return f"waiting until semaphore '{name}' is {relation}{event.args[0]} (it is {now})"
        net = self.nets[event.buffer]
        cores = self._partners(machine, cursor)
        if event.word == "send":
            return f"waiting until core {cores[0] if cores else cursor.core} receives from '{net.name}'"
        return f"waiting for core {cores[0]} to send into '{net.name}'"

    def remedy(self, machine: GridMachine, stopped: list[Cursor], first: Cursor) -> str:
        events = [cursor.event for cursor in stopped if cursor.event is not None]
        found = deeper_buffer(events, self.depths, DEPTH_TRIES, lambda depths: not self.machine(depths).run())
        if found is not None:
            return f"block_count={found[1]} for '{self.buffers[found[0]].name}' is the smallest that works, or change the order"
        words = {event.word for event in events}
        assert first.event is not None
        if first.event.word == "level":
            exact = not first.event.at_least
            name = self.semaphores[first.event.buffer].semaphore_name
            if exact and machine.semaphores[first.core].level(first.event.buffer) > first.event.args[0]:
                return f"the value was passed over: wait with {name}.wait_ge({first.event.args[0]})"
            return "let another core or thread set or increase it as often as it is waited for"
        if "send" in words:
            return (
                "a send ends when the receiver has a block ready: start the receive first (t = ttl.copy(pipe, block)), then "
                "send, then t.wait(); or receive in the other data-movement thread"
            )
        return "change the order in which the cores send, receive and wait"


def _net(op: Operation) -> int:
    pipe = pipe_of(op)
    assert pipe is not None
    return pipe.net.number


def _sends(op: Operation) -> bool:
    return isinstance(op.operands[1].type, PipeType)


def waits_for_buffer(event: Event, buffers: dict[int, Buffer]) -> str:
    buffer = buffers[event.buffer]
    if event.word == "wait":
        return f"waiting for a block of '{buffer.name}'"
    return f"waiting for room in '{buffer.name}' ({counted(buffer.kind.factor.data, 'block')})"


def deeper_buffer(
    blocked: Sequence[Event], depths: dict[int, int], tries: int, ends: Callable[[dict[int, int]], bool]
) -> tuple[int, int] | None:
    """The smallest depth of one buffer that lets every thread end, if there is one: the buffer and the depth."""
    for index in dict.fromkeys(event.buffer for event in blocked if event.word == "reserve"):
        for depth in range(depths[index] + 1, depths[index] + 1 + tries):
            if ends({**depths, index: depth}):
                return index, depth
    return None
