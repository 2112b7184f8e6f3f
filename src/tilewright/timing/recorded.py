"""Hand-written kernels on the clock: the calls that a native run listed, instead of IR.

What a call waits for follows from the same rings, DST halves and source registers that the simulator has; how long it takes, from
the same costs. A buffer that no thread of the list fills has its tiles when they are asked for; one that nobody empties has room.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tilewright import hardware, timing_constants
from tilewright.diagnostics import Span
from tilewright.dialects.tile_op import COLUMN, FIRST, MEMBERS, ROW
from tilewright.dialects.ttkernel import CALLS
from tilewright.machine.threads import Ring, Wait
from tilewright.native.driver import Core, RecordedCall, Recording
from tilewright.native.program import FIDELITY_PHASES, NativeProgram
from tilewright.options import Options
from tilewright.program import BufferSpec, ComputeConfig, Program, TensorSpec, ThreadSpec
from tilewright.sim.buffers import Buffer
from tilewright.sim.machine import SourceTiles
from tilewright.sim.registry import Site
from tilewright.sim.translate import TURN, TranslatedThread, Translation
from tilewright.timing import advice, calls, timeline
from tilewright.timing.advice import Gain
from tilewright.timing.timeline import ClockedMachine, Timeline
from tilewright.trace import Trace

START = "init_sfpu"
# Enumerations of the list, in the order of runtime.h and types.h.
KINDS = ("", "copy", "add", "sub", "mul", "matmul", "reduce", "transpose", "unary_bcast", "transpose_dest")
BROADCASTS = ("", "cols", "rows", "scalar")
POOLS = ("SUM", "AVG", "MAX", "MIN")
AXES = ("REDUCE_ROW", "REDUCE_COL", "REDUCE_SCALAR")
MODE_WORDS = 7
FILLS, EMPTIES = ("cb_reserve_back", "cb_push_back"), ("cb_wait_front", "cb_pop_front")
ALL_FACES = 0xF
PARTS = {sum(1 << face for face in MEMBERS[part]): part for part in (COLUMN, ROW, FIRST)}

ROLE_OF = {"reader": "d", "unpack": "u", "math": "m", "pack": "p", "writer": "d"}


@dataclass(eq=False, slots=True)
class Step:
    """One call of a thread as the clocks take it."""

    site: Site
    act: Callable[[ClockedMachine, Site, tuple[int, ...]], Wait | None]
    words: tuple[int, ...]
    in_turn: bool


@dataclass(eq=False)
class Change:
    """One change of a semaphore: the level it left, and when it was there."""

    level: int
    before: int = 0  # the change before it, of the same semaphore
    arrival: float | None = None


@dataclass(eq=False)
class Replay:
    """What all threads of one list share."""

    fed: frozenset[int]  # buffers nobody fills
    drained: frozenset[int]  # buffers nobody empties
    changes: dict[int, Change]
    seen: dict[tuple[Core, int], int] = field(default_factory=dict[tuple[Core, int], int])  # last change a core waited for
    sites: list[Site] = field(default_factory=list[Site])


def run(native: NativeProgram, recording: Recording, name: str, *, record: bool = False) -> Timeline:
    """The time the kernels of ``native`` take, whose run gave ``recording``."""
    program = _program(native, name)
    known = frozenset(buffer.index for buffer in native.buffers)
    replay = Replay(known - _buffers_of(recording, *FILLS), known - _buffers_of(recording, *EMPTIES), _changes(recording))
    steps = _steps(recording, replay)
    threads = [_thread(name, roles, steps) for name, roles in _roles(recording).items()]
    names = frozenset(site.name for site in replay.sites)
    translation = Translation(threads, replay.sites, True, names)
    cores = sorted({core for core, _ in recording}, key=lambda core: (core[1], core[0]))
    return timeline.run(program, record=record, whole=True, cores=cores, translation=translation)


def advise(native: NativeProgram, recording: Recording, found: Timeline) -> list[Gain]:
    """What can be tried without the author: the calls stay, buffers get deeper or the matrix unit makes fewer passes."""
    gains: list[Gain] = []
    for change, variant in _variants(native, found):
        timed = run(variant, recording, found.program.name)
        gain = 1 - timed.cycles / found.cycles
        if gain > advice.LEAST_GAIN and timed.deadlock is None:
            gains.append(Gain(change=change, cycles=round(timed.cycles, 1), gain=round(gain, 4)))
    return sorted(gains, key=lambda each: -each.gain)[: advice.MOST]


def _variants(native: NativeProgram, found: Timeline) -> Iterator[tuple[str, NativeProgram]]:
    reasons = {reason for core in found.cores for engine in core.engines.values() for _, reason in engine.stalls}
    waited = [buffer for buffer in native.buffers if any(reason.endswith(f": c_{buffer.index}") for reason in reasons)]
    room = native.chip.l1_usable_bytes - sum(buffer.bytes_per_page() * buffer.pages for buffer in native.buffers)
    for chosen in (*([buffer] for buffer in waited), *([waited] if len(waited) > 1 else [])):
        if sum(buffer.bytes_per_page() * buffer.pages for buffer in chosen) <= room:
            names = ", ".join(f"c_{buffer.index}: {2 * buffer.pages} pages instead of {buffer.pages}" for buffer in chosen)
            buffers = [replace(each, pages=2 * each.pages) if each in chosen else each for each in native.buffers]
            yield f"buffer{'s' * (len(chosen) > 1)} {names}", replace(native, buffers=buffers)
    phases = list(FIDELITY_PHASES)
    for fidelity in phases[: phases.index(native.config.math_fidelity)]:
        yield f"math_fidelity {fidelity}", replace(native, config=replace(native.config, math_fidelity=fidelity))


def loose_ends(native: NativeProgram, recording: Recording) -> list[str]:
    """What the time leaves out because the list has only part of a program."""
    filled, emptied = _buffers_of(recording, *FILLS), _buffers_of(recording, *EMPTIES)
    used = filled | emptied
    notes: list[str] = []
    for index in sorted(buffer.index for buffer in native.buffers if buffer.index in used):
        if index not in filled:
            notes.append(f"buffer c_{index} is filled by no kernel given: its tiles are there when they are asked for")
        elif index not in emptied:
            notes.append(f"buffer c_{index} is emptied by no kernel given: it never is full")
    return notes


def _program(native: NativeProgram, name: str) -> Program:
    config = native.config
    return Program(
        name=name, options=Options(arch=native.chip.name), module=ModuleOp([]), grid=native.grid,
        tensors=tuple(
            TensorSpec(
                name=each.name, shape=(each.pages * hardware.TILE_ROWS, hardware.TILE_COLS), dtype=each.dtype, memory=each.memory
            )
            for each in native.tensors
        ),
        buffers=tuple(
            BufferSpec(index=each.index, name=f"c_{each.index}", shape=(1, each.pages), dtype=each.dtype, block_count=1)
            for each in native.buffers
        ),
        threads=tuple(ThreadSpec(name=kernel.role, role=kernel.role, function=kernel.role) for kernel in native.kernels),
        config=ComputeConfig(
            fp32_dest_acc_en=config.fp32_dest_acc_en, dst_full_sync_en=config.dst_full_sync_en,
            math_fidelity=config.math_fidelity, unpack_to_dest=tuple(sorted(config.unpack_to_dest)),
        ),
        cpp={}, trace=Trace(),
    )  # fmt: skip


def _buffers_of(recording: Recording, *names: str) -> frozenset[int]:
    return frozenset(call.words[0] for listed in recording.values() for call in listed if call.name in names)


def _changes(recording: Recording) -> dict[int, Change]:
    """Changes by their number; each knows the one before it."""
    found: dict[int, Change] = {}
    of: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for listed in recording.values():
        for call in listed:
            if call.name in CHANGES:
                x, y, semaphore, number, level = call.words
                found[number] = Change(level)
                of[x, y, semaphore].append(number)
    for numbers in of.values():
        numbers.sort()
        for before, number in pairwise(numbers):
            found[number].before = before
    return found


def _roles(recording: Recording) -> dict[str, list[str]]:
    """Threads, each with its processors, in the order data flows."""
    present = {processor for _, processor in recording}
    found: dict[str, list[str]] = {}
    for processor in ROLE_OF:
        if processor in present:
            found.setdefault("compute" if ROLE_OF[processor] != "d" else processor, []).append(processor)
    return found


def _thread(name: str, processors: Sequence[str], steps: Mapping[tuple[Core, str], list[Step]]) -> TranslatedThread:
    def runner(processor: str) -> Callable[[Any, list[int]], Generator[Wait, None, None]]:
        def go(machine: ClockedMachine, counts: list[int]) -> Generator[Wait, None, None]:
            for step in steps.get((machine.spot, processor), ()):
                site = step.site
                if step.in_turn and machine.is_ahead(site):
                    yield TURN
                while wait := step.act(machine, site, step.words):
                    yield wait
                counts[site.number] += 1

        return go

    return TranslatedThread(name, {ROLE_OF[each]: runner(each) for each in processors}, None, "")


def _steps(recording: Recording, replay: Replay) -> dict[tuple[Core, str], list[Step]]:
    reader = _Reader(replay)
    found: dict[tuple[Core, str], list[Step]] = {}
    for (core, processor), listed in recording.items():
        made: dict[int, Step] = {}  # calls that are alike are one object
        for call in listed:
            if id(call) not in made:
                made[id(call)] = reader.step(processor, call)
        found[core, processor] = [made[id(call)] for call in listed]
    return found


class _Reader:
    """Turns listed calls into steps; calls of one line and kind share a site."""

    def __init__(self, replay: Replay) -> None:
        self.replay = replay
        self._sites: dict[tuple[Any, ...], Site] = {}

    def step(self, processor: str, call: RecordedCall) -> Step:
        role = ROLE_OF[processor]
        act, name, attributes = self._meaning(call, role)
        thread = processor if role == "d" else "compute"
        key = (processor, name, call.file, call.line, tuple(sorted(attributes.items())))
        site = self._sites.get(key)
        if site is None:
            op = CALLS.get(name)
            site = self._sites[key] = Site(
                name, thread, role, Span(call.file, call.line), attributes, op.SPEC if op else None, op.FORM if op else None,
                len(self.replay.sites),
            )  # fmt: skip
            self.replay.sites.append(site)
        return Step(site, act, call.words, call.name in IN_TURN)

    def _meaning(self, call: RecordedCall, role: str) -> tuple[Any, str, dict[str, Any]]:
        if call.name in ("init", "execute"):
            name, attributes = _matrix_call(call.words[:MODE_WORDS])
            if call.name == "execute":
                return (_unpack if role == "u" else _math if len(call.words) > MODE_WORDS else _compute), name, attributes
            return _compute, _init_name(name), attributes
        if call.name in _BUFFER:
            return _BUFFER[call.name](self.replay), call.name, {}
        if call.name == "semaphore_wait":
            return _semaphore_wait(self.replay), "noc_semaphore_wait_min" if call.words[2] else "noc_semaphore_wait", {}
        if call.name in CHANGES:
            name = "noc_semaphore_set" if call.name == "semaphore_set" else "noc_semaphore_inc"
            return CHANGES[call.name](self.replay), name, {}
        if call.name in _ACTS:
            act, name = _ACTS[call.name]
            return act, name or call.name, {}
        return _compute, call.name, _vector_attributes(call)


def _matrix_call(words: Sequence[int]) -> tuple[str, dict[str, Any]]:
    """The canonical name of a matrix-unit call, from what it is set up for."""
    kind, broadcast, reuse, pool, axis, columns, rows = words
    name = KINDS[kind]
    if name in ("add", "sub", "mul"):
        if reuse:
            return "binary_dest_reuse_tiles", {"template": (f"ELW{name.upper()}", f"DEST_TO_SRC{'?AB'[reuse]}")}
        return f"{name}_tiles" + (f"_bcast_{BROADCASTS[broadcast]}" if broadcast else ""), {}
    if name == "matmul":
        return ("matmul_tiles", {}) if rows == columns == 1 else ("matmul_block", {"rt": rows, "ct": columns})
    if name == "reduce":
        return "reduce_tile", {"template": (POOLS[pool], AXES[axis])}
    if name == "unary_bcast":
        return "unary_bcast", {"template": ({"cols": "COL", "rows": "ROW", "scalar": "SCALAR"}.get(BROADCASTS[broadcast], ""),)}
    return {"copy": "copy_tile", "transpose": "transpose_wh_tile", "transpose_dest": "transpose_wh_dest"}.get(name, name), {}


def _init_name(call: str) -> str:
    return call.replace("_tiles_bcast_", "_bcast_") + "_init_short" if "_tiles_bcast_" in call else f"{call}_init"


def _vector_attributes(call: RecordedCall) -> dict[str, Any]:
    """``variant, faces, …`` of a vector call or init."""
    if len(call.words) < 2:
        return {}
    variant, faces = call.words[:2]
    name = call.name.removesuffix("_init")
    found: dict[str, Any] = {}
    if variant & 1 and name in timing_constants.APPROXIMATE_AT:
        found["template"] = (*("false",) * timing_constants.APPROXIMATE_AT[name], "true")
    elif variant == 1 and name.endswith("_binary_tile"):
        found["template"] = ("NearestEven",)
    if faces != ALL_FACES and faces in PARTS:
        found["faces"] = PARTS[faces]
    return found


# Buffers ------------------------------------------------------------------------------------------------------------------------

Act = Callable[[ClockedMachine, Site, tuple[int, ...]], Wait | None]


def _on_buffer(
    loose: str, move: Callable[[Ring, int], bool], clock: Callable[[ClockedMachine, Site, Buffer, int], None],
    level: str = "", text: str = "",
) -> Callable[[Replay], Act]:  # fmt: skip
    """``loose`` buffers have no other end in the list. ``level``: what must be reached before the call goes on."""

    def make(replay: Replay) -> Act:
        def act(machine: ClockedMachine, site: Site, words: tuple[int, ...]) -> Wait | None:
            buffer, count = machine.buffers[words[0]], words[1]
            if words[0] not in getattr(replay, loose) and not move(buffer, count):
                return Wait(
                    site,
                    lambda: getattr(buffer, level) >= count,
                    lambda: text.format(count, buffer.name, getattr(buffer, level)),
                )
            return clock(machine, site, buffer, count)

        return act

    return make


_BUFFER: dict[str, Callable[[Replay], Act]] = {
    "cb_wait_front": _on_buffer(
        "fed", Ring.wait, calls.wait_front, "available", "waits for {} tiles of {}, which holds {}"
    ),
    "cb_reserve_back": _on_buffer(
        "drained", Ring.reserve, calls.reserve_back, "room", "waits for room for {} tiles in {}, which has {}"
    ),
    "cb_pop_front": _on_buffer("fed", Ring.pop, calls.pop_front),
    "cb_push_back": _on_buffer("drained", Ring.push, calls.push_back),
}


# Compute ------------------------------------------------------------------------------------------------------------------------


def _operands(machine: ClockedMachine, words: tuple[int, ...]) -> list[Any]:
    return [machine.buffers[index] for index in dict.fromkeys(words[MODE_WORDS : MODE_WORDS + 2])]


def _unpack(machine: ClockedMachine, site: Site, words: tuple[int, ...]) -> Wait | None:
    if wait := machine.sources.full(site):
        return wait
    machine.sources.put(SourceTiles(site.name, None, None))
    return calls.unpack_call(machine, site, *_operands(machine, words))


def _math(machine: ClockedMachine, site: Site, words: tuple[int, ...]) -> Wait | None:
    if wait := machine.sources.empty(site):
        return wait
    machine.sources.take(site)
    return calls.math_call(machine, site, *_operands(machine, words))


def _compute(machine: ClockedMachine, site: Site, words: tuple[int, ...]) -> None:
    """A call that only takes its engine's time: an init, a vector function, a new format."""
    calls.clock_of(site.name, site.role)(machine, site)


def _acquire(machine: ClockedMachine, site: Site, words: tuple[int, ...]) -> Wait | None:
    halves = machine.dst.halves
    if not halves.acquire():
        return Wait(site, lambda: halves.free, lambda: "waits for the packer to release DST")
    return calls.acquire(machine, site)


def _commit(machine: ClockedMachine, site: Site, words: tuple[int, ...]) -> None:
    machine.dst.halves.commit()
    calls.commit(machine, site)


def _wait_for_math(machine: ClockedMachine, site: Site, words: tuple[int, ...]) -> Wait | None:
    halves = machine.dst.halves
    if not halves.wait():
        return Wait(site, lambda: halves.committed > 0, lambda: "waits for math to commit DST")
    return calls.wait_for_math(machine, site)


def _release(machine: ClockedMachine, site: Site, words: tuple[int, ...]) -> None:
    machine.dst.halves.release()
    calls.release(machine, site)


def _pack(machine: ClockedMachine, site: Site, words: tuple[int, ...]) -> None:
    calls.pack_tile(machine, site, words[0], machine.buffers[words[1]], 0)


def _accumulate(machine: ClockedMachine, site: Site, words: tuple[int, ...]) -> None:
    machine.packer.accumulate = bool(words[0])
    _compute(machine, site, words)


# Data movement ------------------------------------------------------------------------------------------------------------------


def _move_page(machine: ClockedMachine, site: Site, words: tuple[int, ...]) -> None:
    tensor, page, size = words
    move = calls.read_bytes if "read" in site.name else calls.write_bytes
    move(machine, site, machine.tensors[tensor], page, size)


def _move_core(machine: ClockedMachine, site: Site, words: tuple[int, ...]) -> None:
    x, y, size = words
    mover, constants, place = machine.mover(site), machine.constants, machine.network.die.worker((x, y))
    if "read" in site.name:
        mover.read_l1(site, place, size, constants.read_issue)
    else:
        mover.write_l1(site, place, size, constants.write_issue)


def _multicast(machine: ClockedMachine, site: Site, words: tuple[int, ...]) -> None:
    x0, y0, x1, y1, size, linked = words
    (left, right), (top, bottom) = sorted((x0, x1)), sorted((y0, y1))
    places = tuple(machine.network.die.worker((x, y)) for y in range(top, bottom + 1) for x in range(left, right + 1))
    issue = machine.constants.multicast_issue
    machine.last_multicast = machine.mover(site).multicast(site, places, size, issue, linked=bool(linked))


def _barrier(machine: ClockedMachine, site: Site, words: tuple[int, ...]) -> None:
    calls.clock_of(site.name, "d")(machine, site, *words)


def _zeros(machine: ClockedMachine, site: Site, words: tuple[int, ...]) -> None:
    machine.mover(site).write_l1(site, machine.place, words[0], machine.constants.write_issue)


def _blocked(machine: ClockedMachine, site: Site, words: tuple[int, ...]) -> Wait:
    return Wait(site, lambda: False, lambda: "waits for ever, as it did in the native run")


# Semaphores: a wait ends with the change that ended it in the native run. -------------------------------------------------------


def _semaphore_wait(replay: Replay) -> Act:
    def act(machine: ClockedMachine, site: Site, words: tuple[int, ...]) -> Wait | None:
        semaphore, value, at_least, number = words
        seen = replay.seen.get((machine.spot, semaphore), 0)

        def holds(change: Change) -> bool:
            return change.level >= value if at_least else change.level == value

        # Several changes may have come before the waiter looked: the first that was enough counts.
        while number > seen and (before := replay.changes[number].before) and holds(replay.changes[before]):
            number = before
        last = number
        needed: list[Change] = []
        while number > seen:
            needed.append(replay.changes[number])
            number = replay.changes[number].before
        if any(change.arrival is None for change in needed):
            return Wait(site, lambda: all(change.arrival is not None for change in needed), lambda: "waits for another core")
        replay.seen[machine.spot, semaphore] = max(seen, last)
        reached = max((change.arrival or 0.0 for change in needed), default=0.0)
        machine.engine(site).poll(site, machine.constants.poll, reached + machine.constants.poll, calls.PEER)
        return None

    return act


def _changed(how: Callable[[ClockedMachine, Site, Core], float]) -> Callable[[Replay], Act]:
    def make(replay: Replay) -> Act:
        def act(machine: ClockedMachine, site: Site, words: tuple[int, ...]) -> None:
            x, y, _, number, _ = words
            replay.changes[number].arrival = how(machine, site, (x, y))
            other = machine.neighbours.get((x, y))
            if isinstance(other, ClockedMachine):
                machine.touch(other)

        return act

    return make


def _set_here(machine: ClockedMachine, site: Site, core: Core) -> float:
    machine.engine(site).work(site, machine.constants.semaphore_local)
    return machine.engine(site).now


def _sent(machine: ClockedMachine, site: Site, core: Core) -> float:
    return machine.mover(site).signal(site, machine.network.die.worker(core), machine.constants.semaphore_issue)


def _with_multicast(machine: ClockedMachine, site: Site, core: Core) -> float:
    return machine.last_multicast


CHANGES: dict[str, Callable[[Replay], Act]] = {
    "semaphore_set": _changed(_set_here),
    "semaphore_add": _changed(_sent),
    "semaphore_write": _changed(_sent),
    "semaphore_arrives": _changed(_with_multicast),
}

_ACTS: dict[str, tuple[Any, str]] = {
    "start": (_compute, START),
    "reduce_uninit": (_compute, ""),
    "tile_regs_acquire": (_acquire, ""),
    "tile_regs_commit": (_commit, ""),
    "tile_regs_wait": (_wait_for_math, ""),
    "tile_regs_release": (_release, ""),
    "pack_tile": (_pack, ""),
    "pack_reconfig_l1_acc": (_accumulate, ""),
    "read_page": (_move_page, "noc_async_read_page"),
    "write_page": (_move_page, "noc_async_write_page"),
    "read_core": (_move_core, "noc_async_read"),
    "write_core": (_move_core, "noc_async_write"),
    "multicast": (_multicast, "noc_async_write_multicast"),
    "write_zeros": (_zeros, ""),
    "noc_async_read_barrier": (_barrier, ""),
    "noc_async_read_set_trid": (_barrier, ""),
    "noc_async_read_barrier_with_trid": (_barrier, ""),
    "noc_async_write_barrier": (_barrier, ""),
    "noc_async_writes_flushed": (_barrier, ""),
    "noc_async_atomic_barrier": (_barrier, ""),
    "blocked": (_blocked, ""),
}
# A multicast and the levels it brings are one call, so nobody comes between.
IN_TURN = frozenset(
    ("read_page", "write_page", "read_core", "write_core", "multicast", "write_zeros", "semaphore_wait", *CHANGES)
) - {"semaphore_arrives"}
