"""All cores of a grid at once: buffers, pipes and semaphores, without data.

Threads run until each has ended or waits. Pipes and buffers have one producer and one consumer, so their outcome does not
depend on timing; semaphores may, and are tried in several orders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import field

from tilewright.dialects.ttl_network import GetRemoteMulticastSemaphoreOp, GetRemoteSemaphoreOp, nested_value
from tilewright.grid import Core, NetSpec, PipeSpec, cores_of
from tilewright.passes.validation.thread_course import Runner, run_until_stuck
from tilewright.passes.validation.traces import Event
from tilewright.records import record


@record
class Posted:
    """A block a receiver has ready."""

    buffer: int
    position: int  # block number in the buffer
    event: Event


class Clash(Exception):
    """Something that is wrong whatever the others do. ``other`` is the place it clashes with."""

    def __init__(self, code: str, message: str, event: Event, help: str, other: Event | None = None, note: str = "") -> None:
        self.code, self.message, self.event, self.help, self.other, self.note = code, message, event, help, other, note
        super().__init__(message)


@record(frozen=False, kw_only=True)
class GridMachine:
    grid: Core
    runners: list[Runner]
    nets: dict[int, NetSpec]
    initial: dict[int, int]  # of semaphores
    depths: dict[int, int]
    own_posts: dict[int, frozenset[str]]  # threads that announce their own block, by net
    block_of: Callable[[Event], tuple[int, int, int]]  # buffer, blocks held before it, bytes of the block a copy names
    filled: Counter[tuple[Core, int]] = field(default_factory=Counter[tuple[Core, int]])
    pushed: Counter[tuple[Core, int]] = field(default_factory=Counter[tuple[Core, int]])
    posted: dict[tuple[int, int], dict[Core, Posted]] = field(default_factory=dict[tuple[int, int], dict[Core, Posted]])
    delivered: dict[tuple[Core, int], tuple[int, Event]] = field(default_factory=dict[tuple[Core, int], tuple[int, Event]])
    offered: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])  # pipes whose source has called its destination
    levels: dict[tuple[Core, int], int] = field(default_factory=dict[tuple[Core, int], int])

    def run(self, order: str = "forward") -> list[Runner]:
        """Threads that are stopped when nobody can go on."""
        runners = list(reversed(self.runners)) if order == "backward" else self.runners
        run_until_stuck(runners, self._try if order == "single" else self._run_until_blocked, self._state)
        return [runner for runner in self.runners if runner.event is not None]

    def _run_until_blocked(self, runner: Runner) -> bool:
        moved = False
        while self._try(runner):
            moved = True
        return moved

    def _state(self) -> Hashable:
        places = frozenset((key, count % self.depths[key[1]]) for key, count in self.pushed.items())
        waiting = frozenset((pipe, core) for pipe, receivers in self.posted.items() for core in receivers)
        return (
            frozenset(self.filled.items()),
            places,
            waiting,
            frozenset(self.delivered),
            frozenset(self.offered),
            frozenset(self.levels.items()),
        )

    def _try(self, runner: Runner) -> bool:
        event = runner.event
        if event is None or not STEPS[event.word](self, runner, event):
            return False
        runner.advance()
        return True

    # Buffers ----------------------------------------------------------------------------------------------------------------

    def _wait(self, runner: Runner, event: Event) -> bool:
        return self.filled[runner.core, event.buffer] >= event.amount

    def _reserve(self, runner: Runner, event: Event) -> bool:
        return self.depths[event.buffer] - self.filled[runner.core, event.buffer] >= event.amount

    def _push(self, runner: Runner, event: Event) -> bool:
        self.filled[runner.core, event.buffer] += 1
        self.pushed[runner.core, event.buffer] += 1
        return True

    def _pop(self, runner: Runner, event: Event) -> bool:
        self.filled[runner.core, event.buffer] -= 1
        return True

    # Pipes ------------------------------------------------------------------------------------------------------------------

    def pipe(self, runner: Runner, event: Event) -> int:
        """Number of the pipe in its net."""
        side = "src" if event.word == "send" else "dst"
        net = self.nets[event.buffer]
        pipes = net.ends(side, self.grid).get(runner.core, ())
        position = event.args[0] if event.args else 0
        if position >= len(pipes):
            word, verb = ("source", "sends into") if side == "src" else ("destination", "receives from")
            raise Clash(
                "TW215",
                f"core {runner.core} {verb} '{net.name}', but it is no {word} of it",
                event,
                f"{net.name}.if_{side}(…) runs its function on the right cores only",
            )
        return pipes[position]

    def _post(self, runner: Runner, event: Event) -> bool:
        pipe = self.pipe(runner, event)
        net = self.nets[event.buffer]
        key = (event.buffer, pipe)
        if net.meets(self.grid) and key not in self.offered:
            return False
        receivers = self.posted.setdefault(key, {})
        if runner.thread in self.own_posts[event.buffer] and net.pipes[pipe].source_core(self.grid) == runner.core:
            return True  # the send has announced this block
        earlier = receivers.get(runner.core)
        for number in net.by_target(self.grid)[runner.core]:
            earlier = earlier or self.posted.get((event.buffer, number), {}).get(runner.core)
        if earlier is not None:
            raise Clash(
                "TW217",
                f"core {runner.core} starts to receive from '{net.name}' before the receive before it was waited for",
                event,
                "wait() for each receive before the next one of the same net, or use two nets",
                earlier.event,
                "the receive under way was started here",
            )
        receivers[runner.core] = self._block(runner, event)
        return True

    def _block(self, runner: Runner, event: Event) -> Posted:
        buffer, before, _ = self.block_of(event)
        return Posted(buffer, (self.pushed[runner.core, buffer] + before) % self.depths[buffer], event)

    def _send(self, runner: Runner, event: Event) -> bool:
        pipe = self.pipe(runner, event)
        net = self.nets[event.buffer]
        key = (event.buffer, pipe)
        self.offered.add(key)
        receivers = self.posted.setdefault(key, {})
        targets = net.pipes[pipe].target_cores(self.grid)
        if runner.thread in self.own_posts[event.buffer] and runner.core in targets and runner.core not in receivers:
            receive = self.own_receive(runner, event)
            buffer = self.block_of(receive)[0]
            if self.depths[buffer] - self.filled[runner.core, buffer] < 1:
                return False
            receivers[runner.core] = self._block(runner, receive)
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

    def own_receive(self, runner: Runner, event: Event) -> Event:
        """The receive of the same thread that a send to this core itself prepares."""
        for chunk, _ in runner.items:
            for other in chunk:
                if other.word == "post" and other.buffer == event.buffer:
                    return other
        raise AssertionError("a thread announces its own block only if it receives")

    def _check_blocks(self, event: Event, net: NetSpec, targets: tuple[Core, ...], receivers: dict[Core, Posted]) -> None:
        first = receivers[targets[0]]
        size = self.block_of(event)[2]
        for core in targets:
            found = receivers[core]
            bytes_there = self.block_of(found.event)[2]
            if bytes_there != size:
                raise Clash(
                    "TW216",
                    f"a block of {size} bytes goes through '{net.name}' into one of {bytes_there}",
                    event,
                    "give both buffers the same block shape and dtype",
                    found.event,
                    "it is received here",
                )
            if (found.buffer, found.position) != (first.buffer, first.position):
                raise Clash(
                    "TW216",
                    f"receivers of '{net.name}' have their blocks at different places: core {targets[0]} and core {core}",
                    event,
                    "a multicast writes to one address: every receiver must fill the same buffer, equally often before",
                    found.event,
                    f"core {core} receives here, into block {found.position} of it; core {targets[0]} into {first.position}",
                )

    def _arrive(self, runner: Runner, event: Event) -> bool:
        return self.delivered.pop((runner.core, event.buffer), None) is not None

    # Semaphores -------------------------------------------------------------------------------------------------------------

    def level(self, core: Core, number: int) -> int:
        return self.levels.get((core, number), self.initial[number])

    def reached(self, runner: Runner, event: Event) -> list[Core]:
        """Cores whose semaphore an op changes."""
        owner = event.op.operands[0].owner
        if isinstance(owner, GetRemoteMulticastSemaphoreOp):
            given = owner.attributes.get("core_range")
            if given is None:
                return list(cores_of(self.grid))
            return list(PipeSpec((0,) * len(self.grid), nested_value(given), False).target_cores(self.grid))
        if not isinstance(owner, GetRemoteSemaphoreOp):
            return [runner.core]
        given = owner.attributes.get("core")
        core = event.args[1:] if given is None else nested_value(given)
        if not all(0 <= place < size for place, size in zip(core, self.grid, strict=True)):
            raise Clash(
                "TW110",
                f"core {runner.core} changes a semaphore of core {tuple(core)}, which is outside the grid {self.grid}",
                event,
                "guard the cores at the edge with an if",
            )
        return [tuple(core)]

    def _set(self, runner: Runner, event: Event) -> bool:
        for core in self.reached(runner, event):
            self.levels[core, event.buffer] = event.args[0]
        return True

    def _inc(self, runner: Runner, event: Event) -> bool:
        for core in self.reached(runner, event):
            self.levels[core, event.buffer] = self.level(core, event.buffer) + event.args[0]
        return True

    def _level(self, runner: Runner, event: Event) -> bool:
        now = self.level(runner.core, event.buffer)
        return now >= event.args[0] if "at_least" in event.op.attributes else now == event.args[0]


STEPS: dict[str, Callable[[GridMachine, Runner, Event], bool]] = {
    "wait": GridMachine._wait,  # pyright: ignore[reportPrivateUsage]
    "reserve": GridMachine._reserve,  # pyright: ignore[reportPrivateUsage]
    "push": GridMachine._push,  # pyright: ignore[reportPrivateUsage]
    "pop": GridMachine._pop,  # pyright: ignore[reportPrivateUsage]
    "send": GridMachine._send,  # pyright: ignore[reportPrivateUsage]
    "post": GridMachine._post,  # pyright: ignore[reportPrivateUsage]
    "arrive": GridMachine._arrive,  # pyright: ignore[reportPrivateUsage]
    "set": GridMachine._set,  # pyright: ignore[reportPrivateUsage]
    "inc": GridMachine._inc,  # pyright: ignore[reportPrivateUsage]
    "level": GridMachine._level,  # pyright: ignore[reportPrivateUsage]
}
