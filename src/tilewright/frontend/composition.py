"""Operations made of operations: one that is called in the body of another is expanded there, with its buffers.

Each thread of the kernel runs its parts of all operations, one after the other, in the order of the calls. Operations hand blocks
over through buffers that one of them fills and another reads. Through a tensor they do it behind a barrier: before an operation
reads what an earlier one wrote, or writes what it read or wrote, all cores have come to the end of the earlier one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from tilewright.builder.extents import KernelExtents
from tilewright.builder.thread import Unrolling
from tilewright.diagnostics import KernelError, caller_span, fail
from tilewright.dialects.attributes import SliceType
from tilewright.dialects.ttl_buffers import CopyOp, TensorAccessorOp, TensorSliceOp
from tilewright.dialects.walking import operations
from tilewright.lang.cores import Semaphore
from tilewright.lang.kernel import Build, Kernel, KernelFunction, ThreadFunction, building
from tilewright.lang.names import LanguageFunction
from tilewright.records import record

MOST_NESTED = 32  # operations called in operations
SLOTS = ("compute", "read", "write")
core_linear = LanguageFunction("core_linear")


def expand(kernel: KernelFunction, args: Sequence[Any], named: dict[str, Any], build: Build) -> None:
    """Runs the body of ``kernel`` as a part of the kernel that is built now."""
    from tilewright.frontend.build import call_body, check_called

    span = caller_span(kernel.name)
    if build.nesting >= MOST_NESTED:
        remedy = "an operation is expanded where it is called: what ends the recursion must be known at compile time"
        raise fail("TW005", f"'{kernel.name}' is called without end", span, help=remedy)
    bound = kernel.bind(args, named)
    check_called(kernel, bound, build)
    outer, chosen = build.operation, build.chosen
    build.operation = build.new_operation(kernel.name)
    build.chosen = None
    build.nesting += 1
    try:
        call_body(kernel, bound, dict(bound.values), build)
        if build.chosen is not None:
            left = [thread for thread in build.threads if thread.operation != build.operation or thread in build.chosen]
            build.threads[:] = left
    finally:
        build.operation, build.chosen = outer, chosen
        build.nesting -= 1


@record(frozen=False)
class Phase:
    """One operation: what it has each thread do, and which tensors that touches."""

    parts: dict[str, list[ThreadFunction]]
    reads: dict[str, set[int]]
    writes: dict[str, set[int]]


def joined(build: Build, check: Callable[[list[ThreadFunction]], None]) -> list[ThreadFunction]:
    """One thread of each kind, which runs the parts of all operations."""
    phases: dict[int, list[ThreadFunction]] = {}
    for thread in build.running_threads():
        phases.setdefault(thread.operation, []).append(thread)
    found: list[Phase] = []
    named: dict[Any, str] = {}
    for threads in phases.values():
        check(threads)
        found.append(_phase(threads, build, named))
    _place_barriers(found, build)
    result: list[ThreadFunction] = []
    for slot in SLOTS:
        parts = [part for phase in found for part in phase.parts[slot]]
        if parts:
            kind, first = "compute" if slot == "compute" else "noc", parts[0]
            joint = ThreadFunction(function=first.function, kind=kind, span=first.span, title=slot, parts=tuple(parts))
            result.append(joint)
    return result


def _phase(threads: Sequence[ThreadFunction], build: Build, named: dict[Any, str]) -> Phase:
    """``named`` knows the slots of threads with a kernel=: those of earlier operations, then of this one too."""
    movers = [thread for thread in threads if thread.kind == "noc"]
    touched = [_touched(mover, build) for mover in movers]
    only_writes = [bool(writes) and not reads for reads, writes in touched]
    slots = ["write", "read"] if only_writes in ([True], [True, False]) else ["read", "write"]
    slots = _as_named(movers, slots, named)
    parts: dict[str, list[ThreadFunction]] = {"compute": [thread for thread in threads if thread.kind == "compute"]}
    phase = Phase({**parts, "read": [], "write": []}, {}, {})
    for slot, mover, (reads, writes) in zip(slots, movers, touched, strict=False):
        phase.parts[slot] = [mover]
        phase.reads[slot], phase.writes[slot] = reads, writes
    return phase


def _as_named(movers: Sequence[ThreadFunction], slots: list[str], named: dict[Any, str]) -> list[str]:
    """Work with the kernel= of an earlier operation's thread stays on that thread."""
    known = [(mover, place, named[mover.kernel]) for mover, place in zip(movers, slots, strict=False) if mover.kernel in named]
    moved = [wanted != place for _, place, wanted in known]
    if any(moved) and not all(moved):
        remedy = "give the two threads kernels that are two threads everywhere"
        raise fail("TW010", f"kernel= puts both threads of this operation on '{known[0][2]}'", known[0][0].span, help=remedy)
    slots = slots[::-1] if any(moved) else slots
    named.update((mover.kernel, place) for mover, place in zip(movers, slots, strict=False) if isinstance(mover.kernel, Kernel))
    return slots


def _touched(thread: ThreadFunction, build: Build) -> tuple[set[int], set[int]]:
    """Tensors that a data-movement thread reads and writes, found by translating it once."""
    from tilewright.frontend.build import translate_thread, with_retries

    nets, buffers = len(build.nets), len(build.buffers)

    def again() -> None:
        del build.nets[nets:], build.buffers[buffers:]

    def translate(unrolling: Unrolling) -> Any:
        return translate_thread(thread, build, KernelExtents(build.grid).thread(0, unrolling.chosen), "", unrolling)

    reads, writes = set[int](), set[int]()
    try:
        function = with_retries(translate, again)
    except KernelError:
        return reads, writes  # the thread itself will say so
    finally:
        again()
    for op in operations(function):
        for side, tensors in ((op.operands[0], reads), (op.operands[1], writes)) if isinstance(op, CopyOp) else ():
            cut = side.owner if isinstance(side.type, SliceType) else None
            if isinstance(cut, TensorSliceOp) and isinstance(cut.accessor.owner, TensorAccessorOp):
                tensors.add(cut.accessor.owner.tensor_index)
    return reads, writes


# Barriers -------------------------------------------------------------------------------------------------------------------


def _place_barriers(phases: list[Phase], build: Build) -> None:
    """In front of every operation that meets earlier ones in a tensor."""
    reads: dict[str, set[int]] = {"read": set(), "write": set()}  # since the last barrier, by thread
    writes: dict[str, set[int]] = {"read": set(), "write": set()}
    barriers: Barriers | None = None
    for phase in phases:
        read, written = (set[int]().union(*sets.values()) for sets in (phase.reads, phase.writes))
        known_reads, known_writes = (set[int]().union(*sets.values()) for sets in (reads, writes))
        if read & known_writes or written & (known_reads | known_writes):  # the later one's values stay
            barriers = barriers or Barriers(build)
            leaving = [slot for slot in ("read", "write") if reads[slot] or writes[slot]]
            entering = [slot for slot in ("read", "write") if phase.parts[slot]]
            barriers.place(phase, leaving, entering)
            for sets in (*reads.values(), *writes.values()):
                sets.clear()
        for slot in phase.reads:
            reads[slot] |= phase.reads[slot]
            writes[slot] |= phase.writes[slot]


class Barriers:
    """All cores have arrived before any goes on. The first core counts arrivals and lets the others go."""

    def __init__(self, build: Build) -> None:
        self.grid = build.grid
        self.number = 0
        self.total = 0
        with building(build):
            self.arrived, self.go = Semaphore(), Semaphore()
        self.arrived.name, self.go.name = "arrived", "go"

    def place(self, phase: Phase, leaving: Sequence[str], entering: Sequence[str]) -> None:
        """Threads ``leaving`` say that they are done, ``entering`` ones wait until all are."""
        cores = prod(self.grid)
        self.number += 1
        self.total += cores * len(leaving)
        arrive, let_go, wait_for_others = self._threads(cores, self.number, self.total)
        place = next(part.span for parts in phase.parts.values() for part in parts)  # of the operation behind the barrier
        for slot in SLOTS:
            parts = [arrive] if slot in leaving else []
            parts += [let_go] if slot == leaving[-1] else []
            parts += [wait_for_others] if slot in entering else []
            phase.parts[slot][:0] = [ThreadFunction(function=function, kind="noc", span=place, made=True) for function in parts]

    def _threads(self, cores: int, number: int, total: int) -> tuple[Callable[[], None], ...]:
        """Read by the front end, as the user's threads are."""
        arrived, go, origin = self.arrived, self.go, (0,) * len(self.grid)

        def arrive() -> None:
            arrived.get_remote(origin).inc(1)

        def let_go() -> None:
            if core_linear() == 0:
                arrived.wait_ge(total)
                if cores > 1:
                    go.get_remote_multicast().set(number)
                else:
                    go.set(number)

        def wait_for_others() -> None:
            go.wait_ge(number)

        return arrive, let_go, wait_for_others
