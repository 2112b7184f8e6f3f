"""What would make a kernel faster: changes that can be made without its author are made, compiled and timed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace

from tilewright import hardware
from tilewright.diagnostics import KernelError
from tilewright.program import Program
from tilewright.records import record
from tilewright.sim.work import calls_of
from tilewright.timing import reordering, timeline
from tilewright.timing.timeline import Timeline

MOST = 3
LEAST_GAIN = 0.01
MOST_CALLS = 150_000  # of all tried programs together, unless everything is asked for: about a second and a half


@record
class Again:
    """Compiles a kernel anew: with other options, or with other values of the names its block shapes are made of."""

    compile: Callable[[Mapping[str, object], Mapping[str, int]], Program]
    block_sizes: Mapping[str, int]


@record(kw_only=True)
class Gain:
    change: str
    cycles: float  # predicted with it
    gain: float  # share of the time that it saves
    error: float | None = None  # bound of the results with it, as `ResultError` has it; None: not computed


@record
class Tried:
    gains: list[Gain]
    notes: list[str] = field(default_factory=list[str])


def advise(
    found: Timeline, scalars: Mapping[str, int] | None, again: Again | None, *, thorough: bool = False,
    error: Callable[[Program], float | None] = lambda _: None,
) -> Tried:
    """The changes that gain most. A change that the kernel does not survive, or that does other work, is none.

    ``error`` says how far a program's results may be off.
    """
    gains: list[tuple[Gain, Program]] = []
    notes: list[str] = []
    calls, each_calls = 0, calls_of(found.program)
    for change, program in _variants(found, again):
        calls += each_calls
        if calls > MOST_CALLS and not thorough:
            notes.append("the program is large: not everything that may help was tried (thorough does)")
            break
        try:
            timed = timeline.run(program, scalars=scalars)
        except KernelError:  # the simulated chip refuses it
            continue
        gain = 1 - timed.cycles / found.cycles
        if gain > LEAST_GAIN and timed.deadlock is None and _work(timed) == _work(found):
            gains.append((Gain(change=change, cycles=round(timed.cycles, 1), gain=round(gain, 4)), program))
    if again is None:
        notes.append("not tried, because only the compiled program is known: DST width, block shape")
    best = sorted(gains, key=lambda each: -each[0].gain)[:MOST]
    return Tried([replace(gain, error=error(program)) for gain, program in best], notes)


def _work(found: Timeline) -> tuple[float, float]:
    """What every way to compute the same has in common: bytes written, and tiles multiplied."""
    products = 0
    for site in found.sites:
        if site.role == "m" and "matmul" in site.name and "init" not in site.name:
            products += found.runs[site.number] * site.attributes.get("rt", 1) * site.attributes.get("ct", 1)
    return round(found.network.bytes_written), products


def _variants(found: Timeline, again: Again | None) -> Iterator[tuple[str, Program]]:
    yield from reordering.variants(found.program)
    yield from _fidelities(found.program)
    if again is not None:
        yield from _compiled(found.program, again)
    yield from _depths(found)


# Buffers ------------------------------------------------------------------------------------------------------------------------


def _depths(found: Timeline) -> Iterator[tuple[str, Program]]:
    """One block more for buffers that somebody waits for, each and all."""
    program = found.program
    room = hardware.CHIPS[found.chip].l1_usable_bytes - used_bytes(program)
    engines = [engine for core in found.cores for engine in core.engines.values()]
    waited = {reason.split(": ")[1] for engine in engines for _, reason in engine.stalls if ": " in reason}
    deeper: list[str] = []
    for buffer in program.buffers:
        block = hardware.tile_bytes(buffer.dtype) * buffer.tiles // buffer.block_count
        if buffer.name in waited and buffer.alias_of is None and buffer.tensor is None and block <= room:
            change = f"buffer '{buffer.name}': block_count {buffer.block_count + 1} instead of {buffer.block_count}"
            yield change, _deeper(program, [buffer.name])
            deeper.append(buffer.name)
    if len(deeper) > 1:
        change = f"one block more in every buffer that somebody waits for: {', '.join(deeper)}"
        yield change, _deeper(program, deeper)


def used_bytes(program: Program) -> int:
    return sum(hardware.tile_bytes(buffer.dtype) * buffer.tiles for buffer in program.buffers if buffer.alias_of is None)


def _deeper(program: Program, names: list[str]) -> Program:
    buffers = tuple(
        replace(buffer, block_count=buffer.block_count + 1) if buffer.name in names else buffer for buffer in program.buffers
    )
    return replace(program, buffers=buffers)


# Configuration ------------------------------------------------------------------------------------------------------------------


def _fidelities(program: Program) -> Iterator[tuple[str, Program]]:
    config = program.config
    lower = {"HiFi4": "HiFi2", "HiFi3": "HiFi2", "HiFi2": "LoFi"}.get(config.math_fidelity)
    if lower is not None:
        change = f"math_fidelity {lower} instead of {config.math_fidelity} (fewer bits of the operands)"
        yield change, replace(program, config=replace(config, math_fidelity=lower))


def _compiled(program: Program, again: Again) -> Iterator[tuple[str, Program]]:
    """What only the compiler can change: how many tiles DST and buffers hold at a time, and the shape of blocks."""
    config = program.config
    attempts: list[tuple[str, dict[str, object], dict[str, int]]] = []
    full = not config.dst_full_sync_en
    attempts.append((f"full_sync={full}: DST in {'one part' if full else 'two halves'}", {"full_sync": full}, {}))
    if not program.options.deep_buffers:
        attempts.append(("deep_buffers=True: one barrier for several blocks of a loop that reads", {"deep_buffers": True}, {}))
    if not program.options.reads_ahead:
        attempts.append(("reads_ahead=True: later blocks are asked for before one has arrived", {"reads_ahead": True}, {}))
    if program.options.precision == "balanced":
        attempts.append(('precision="fast": sums in 16 bits too', {"precision": "fast"}, {}))
    if config.fp32_dest_acc_en:
        attempts.append(("fp32_dest_acc=False: twice as many tiles in DST, 16 bits each", {"fp32_dest_acc": False}, {}))
    for name, size in again.block_sizes.items():
        for other in (2 * size, size // 2):
            if other >= 1 and other != size:
                attempts.append((f"block shape: {name} = {other} instead of {size}", {}, {name: other}))
    for change, options, sizes in attempts:
        try:
            yield change, again.compile(options, sizes)
        except (KernelError, ValueError, ArithmeticError, IndexError, AssertionError):
            continue  # the kernel does not take this value

