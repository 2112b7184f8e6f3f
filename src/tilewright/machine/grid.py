"""The cores of a grid at once, without data: buffers, pipes and semaphores, moved by the traces of all threads.

Threads run until each has ended or waits. Pipes and buffers have one producer and one consumer, so their outcome does not
depend on timing; semaphores may, and are tried in several orders.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from tilewright.grid import Core, NetSpec, PipeSpec, cores_of
from tilewright.machine.threads import Cursor, Event, Repeats, Ring, Semaphores, SentBlock, Trace, run_until_stuck
from tilewright.records import record


@record
class Posted:
    """A block a receiver has ready."""

    block: SentBlock
    position: int  # block number in the buffer
    event: Event


class Clash(Exception):
    """Something that is wrong whatever the others do. ``other`` is the place it clashes with."""

    def __init__(self, code: str, message: str, event: Event, help: str, other: Event | None = None, note: str = "") -> None:
        self.code, self.message, self.event, self.help, self.other, self.note = code, message, event, help, other, note
        super().__init__(message)


class GridMachine:
    """``threads``: core, name and trace of each. ``own_posts``: threads that announce their own block, by net."""

    def __init__(
        self,
        threads: Iterable[tuple[Core, str, Trace]],
        depths: dict[int, int],
        *,
        grid: Core = (),
        nets: dict[int, NetSpec] | None = None,
        semaphores: dict[int, int] | None = None,
        own_posts: dict[int, frozenset[str]] | None = None,
    ) -> None:
        self.grid = grid
        self.nets = nets or {}
        self.own_posts = own_posts or {}
        self._ends = {(number, side): net.ends(side, grid) for number, net in self.nets.items() for side in ("src", "dst")}
        self._targets = {number: [pipe.target_cores(grid) for pipe in net.pipes] for number, net in self.nets.items()}
        self._meets = {number: net.meets(grid) for number, net in self.nets.items()}
        self.rings: dict[Core, dict[int, Ring]] = {}
        self.cursors: list[Cursor] = []
        for core, name, trace in threads:
            if core not in self.rings:
                self.rings[core] = {index: Ring(depth) for index, depth in depths.items()}
            self.cursors.append(Cursor(core, name, trace, self.rings[core]))
        self.semaphores = {core: Semaphores(semaphores) for core in self.rings}
        self.posted: dict[tuple[int, int], dict[Core, Posted]] = {}
        self.delivered: dict[tuple[Core, int], tuple[int, Event]] = {}
        self.offered: set[tuple[int, int]] = set()  # pipes whose source has called its destination
        self._talks = bool(nets or semaphores)
        self._every_ring = [ring for own in self.rings.values() for ring in own.values()]

    def run(self, order: str = "forward") -> list[Cursor]:
        """Threads that are stopped when nobody can go on."""
        step = self._try if order == "single" else self._run_until_blocked
        cursors = list(reversed(self.cursors)) if order == "backward" else self.cursors
        run_until_stuck(cursors, step, Repeats(cursors, self._state).skip)
        return [cursor for cursor in self.cursors if cursor.event is not None]

    def _run_until_blocked(self, cursor: Cursor) -> bool:
        moved = False
        while self._try(cursor):
            moved = True
        return moved

    def _try(self, cursor: Cursor) -> bool:
        event = cursor.event
        if event is None:
            return False
        rule = RING_RULES.get(event.word)
        if not (rule(cursor.rings[event.buffer], event.amount) if rule else RULES[event.word](self, cursor, event)):
            return False
        cursor.advance()
        return True

    def _state(self) -> Hashable:
        """What decides how it goes on. Where in a buffer a block lies matters to those who send into it."""
        filled = tuple([ring.available for ring in self._every_ring])
        if not self._talks:
            return filled
        return (
            filled,
            tuple([ring.write for ring in self._every_ring]),
            frozenset((pipe, core) for pipe, receivers in self.posted.items() for core in receivers),
            frozenset(self.delivered),
            frozenset(self.offered),
            tuple([tuple(own.levels.items()) for own in self.semaphores.values()]),
        )

    # Pipes ------------------------------------------------------------------------------------------------------------------

    def pipe(self, cursor: Cursor, event: Event) -> int:
        """Number of the pipe in its net."""
        side = "src" if event.word == "send" else "dst"
        pipes = self._ends[event.buffer, side].get(cursor.core, ())
        position = event.args[0] if event.args else 0
        if position >= len(pipes):
            net = self.nets[event.buffer]
            word, verb = ("source", "sends into") if side == "src" else ("destination", "receives from")
            message = f"core {cursor.core} {verb} '{net.name}', but it is no {word} of it"
            raise Clash("TW215", message, event, f"{net.name}.if_{side}(…) runs its function on the right cores only")
        return pipes[position]

    def _post(self, cursor: Cursor, event: Event) -> bool:
        pipe = self.pipe(cursor, event)
        net = self.nets[event.buffer]
        key = (event.buffer, pipe)
        if self._meets[event.buffer] and key not in self.offered:
            return False
        receivers = self.posted.setdefault(key, {})
        if cursor.thread in self.own_posts[event.buffer] and net.pipes[pipe].source_core(self.grid) == cursor.core:
            return True  # the send has announced this block
        earlier = receivers.get(cursor.core)
        for number in self._ends[event.buffer, "dst"][cursor.core]:
            earlier = earlier or self.posted.get((event.buffer, number), {}).get(cursor.core)
        if earlier is not None:
            raise Clash(
                "TW217",
                f"core {cursor.core} starts to receive from '{net.name}' before the receive before it was waited for",
                event,
                "wait() for each receive before the next one of the same net, or use two nets",
                earlier.event,
                "the receive under way was started here",
            )
        receivers[cursor.core] = self._block(cursor, event)
        return True

    def _block(self, cursor: Cursor, event: Event) -> Posted:
        block = event.block
        assert block is not None
        ring = cursor.rings[block.buffer]
        return Posted(block, (ring.write + block.before) % ring.capacity, event)

    def _send(self, cursor: Cursor, event: Event) -> bool:
        pipe = self.pipe(cursor, event)
        net = self.nets[event.buffer]
        key = (event.buffer, pipe)
        self.offered.add(key)
        receivers = self.posted.setdefault(key, {})
        targets = self._targets[event.buffer][pipe]
        if cursor.thread in self.own_posts[event.buffer] and cursor.core in targets and cursor.core not in receivers:
            receive = self.own_receive(cursor, event)
            assert receive.block is not None
            if cursor.rings[receive.block.buffer].room < 1:
                return False
            receivers[cursor.core] = self._block(cursor, receive)
        if any(core not in receivers for core in targets):
            return False
        self._check_blocks(event, net, targets, receivers)
        for core in targets:
            if (core, event.buffer) in self.delivered:
                raise self._overtaken(core, event, net)
            self.delivered[core, event.buffer] = (pipe, event)
        receivers.clear()
        self.offered.discard(key)
        return True

    def _overtaken(self, core: Core, event: Event, net: NetSpec) -> Clash:
        return Clash(
            "TW217",
            f"two blocks of '{net.name}' reach core {core} before it waits for the first",
            event,
            "wait() for each receive before the next one of the same net",
            self.delivered[core, event.buffer][1],
            "the other block is sent here",
        )

    def own_receive(self, cursor: Cursor, event: Event) -> Event:
        """The receive of the same thread that a send to this core itself prepares."""
        for chunk, _ in cursor.items:
            for other in chunk:
                if other.word == "post" and other.buffer == event.buffer:
                    return other
        raise AssertionError("a thread announces its own block only if it receives")

    def _check_blocks(self, event: Event, net: NetSpec, targets: tuple[Core, ...], receivers: dict[Core, Posted]) -> None:
        first = receivers[targets[0]]
        assert event.block is not None
        size = event.block.bytes
        for core in targets:
            found = receivers[core]
            bytes_there = found.block.bytes
            if bytes_there != size:
                raise Clash(
                    "TW216",
                    f"a block of {size} bytes goes through '{net.name}' into one of {bytes_there}",
                    event,
                    "give both buffers the same block shape and dtype",
                    found.event,
                    "it is received here",
                )
            if (found.block.buffer, found.position) != (first.block.buffer, first.position):
                raise Clash(
                    "TW216",
                    f"receivers of '{net.name}' have their blocks at different places: core {targets[0]} and core {core}",
                    event,
                    "a multicast writes to one address: every receiver must fill the same buffer, equally often before",
                    found.event,
                    f"core {core} receives here, into block {found.position} of it; core {targets[0]} into {first.position}",
                )

    def _arrive(self, cursor: Cursor, event: Event) -> bool:
        return self.delivered.pop((cursor.core, event.buffer), None) is not None

    # Semaphores -------------------------------------------------------------------------------------------------------------

    def reached(self, cursor: Cursor, event: Event) -> Iterable[Core]:
        """Cores whose semaphore an event changes."""
        kind, given = event.reach.kind, event.reach.given
        if kind == "own":
            return (cursor.core,)
        if kind == "all":
            return cores_of(self.grid)
        if kind == "ranges":
            return PipeSpec((0,) * len(self.grid), given, False).target_cores(self.grid)
        core = tuple(event.args[1:] if given is None else given)
        if not all(0 <= place < size for place, size in zip(core, self.grid, strict=True)):
            message = f"core {cursor.core} changes a semaphore of core {core}, which is outside the grid {self.grid}"
            raise Clash("TW110", message, event, "guard the cores at the edge with an if")
        return (core,)

    def _set(self, cursor: Cursor, event: Event) -> bool:
        for core in self.reached(cursor, event):
            self.semaphores[core].set(event.buffer, event.args[0])
        return True

    def _inc(self, cursor: Cursor, event: Event) -> bool:
        for core in self.reached(cursor, event):
            self.semaphores[core].add(event.buffer, event.args[0])
        return True

    def _level(self, cursor: Cursor, event: Event) -> bool:
        return self.semaphores[cursor.core].reached(event.buffer, event.args[0], at_least=event.at_least)


RING_RULES: dict[str, Callable[[Ring, int], bool]] = {
    "wait": Ring.wait,
    "reserve": Ring.reserve,
    "push": Ring.push,
    "pop": Ring.pop,
}
RULES: dict[str, Callable[[GridMachine, Cursor, Event], bool]] = {
    "send": GridMachine._send,  # pyright: ignore[reportPrivateUsage]
    "post": GridMachine._post,  # pyright: ignore[reportPrivateUsage]
    "arrive": GridMachine._arrive,  # pyright: ignore[reportPrivateUsage]
    "set": GridMachine._set,  # pyright: ignore[reportPrivateUsage]
    "inc": GridMachine._inc,  # pyright: ignore[reportPrivateUsage]
    "level": GridMachine._level,  # pyright: ignore[reportPrivateUsage]
}
