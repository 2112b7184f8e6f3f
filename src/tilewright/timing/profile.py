"""What a timeline says to a person: how long, what binds, which line pays, what would help. Plain data, ready for JSON."""

from __future__ import annotations

import linecache
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import field, replace

from tilewright import hardware
from tilewright.program import Program
from tilewright.records import record
from tilewright.sim.registry import ROLES, Site
from tilewright.timing import calls, movement, timeline
from tilewright.timing.clock import Engine
from tilewright.timing.network import link_name
from tilewright.timing.timeline import CoreTime, Timeline
from tilewright.timing_constants import constants_of

SATURATED = 0.75  # share of the time from which a link or bank is what binds
# How far predictions are off, by what binds: nine of ten published programs lie within (benchmarks/timing.py).
UNCERTAINTY = {
    "math": 0.08, "unpack": 0.12, "pack": 0.12, "reader": 0.15, "writer": 0.15, "NoC": 0.2, "DRAM": 0.25, "other core": 0.2,
}  # fmt: skip
FIDELITY_PHASES = {"LoFi": 1, "HiFi2": 2, "HiFi3": 3, "HiFi4": 4}
MACS_PER_CYCLE = 32**3 // 16  # of the matrix unit of one core, one phase [isa]
MOST_ADVICE = 3


@record(kw_only=True)
class EngineTime:
    """One engine of the slowest core."""

    busy: float
    stalled: float
    reasons: dict[str, float]  # why it was stalled, cycles each


@record(kw_only=True)
class LineTime:
    file: str
    line: int
    text: str
    cycles: dict[str, float]  # at work, by engine


@record(kw_only=True)
class Advice:
    change: str
    cycles: float  # predicted with it
    gain: float  # share of the time that it saves


@record(kw_only=True)
class Roofline:
    """Lower limits of the time, in cycles: no program that does this work is faster than any of them."""

    math: float
    dram: float
    noc: float
    intensity: float  # operations per byte of DRAM traffic
    utilisation: float  # of the matrix unit, over all cores


@record(kw_only=True)
class Profile:
    kernel: str
    chip: str
    grid: tuple[int, ...]
    cycles: float
    microseconds: float
    uncertainty: float  # share
    bound: str
    engines: dict[str, EngineTime]
    lines: list[LineTime]
    roofline: Roofline
    l1_bytes: int
    l1_room: int
    advice: list[Advice] = field(default_factory=list[Advice])
    notes: list[str] = field(default_factory=list[str])


def profile(
    program: Program, scalars: Mapping[str, int] | None = None, *, record: bool = False, advise: bool = True
) -> tuple[Profile, Timeline]:
    """The time of a program without its values. ``record`` keeps what a picture needs, ``advise`` tries what would help."""
    found = timeline.run(program, scalars=scalars, record=record)
    bound = what_binds(found)
    told = Profile(
        kernel=program.name,
        chip=found.chip,
        grid=tuple(program.grid),
        cycles=round(found.cycles, 1),
        microseconds=round(found.microseconds, 3),
        uncertainty=next((share for word, share in UNCERTAINTY.items() if word in bound), 0.2),
        bound=bound,
        engines=engine_times(found.slowest),
        lines=line_times(found),
        roofline=roofline(found),
        l1_bytes=used_bytes(program),
        l1_room=hardware.CHIPS[found.chip].l1_usable_bytes,
        notes=_notes(found),
    )
    return (replace(told, advice=advice(found, scalars)) if advise and found.deadlock is None else told), found


def _notes(found: Timeline) -> list[str]:
    notes = [f"{name}: no cost is known, {cycles:.0f} cycles are taken" for name, cycles in found.estimated.items()]
    if found.skipped_turns:
        notes.append(f"long loops were run until they were steady, then multiplied: {found.skipped_turns:,} turns were not run")
    if found.deadlock is not None:
        notes.append(f"the kernel does not end: {found.deadlock.message}")
    return notes


def engine_times(core: CoreTime) -> dict[str, EngineTime]:
    """The five engines by their names; a thread with a name of its own counts as reader or writer, in their order."""
    told: dict[str, EngineTime] = {}
    for name, engine in named_engines(core).items():
        reasons: dict[str, float] = defaultdict(float)
        for (_, reason), cycles in engine.stalls.items():
            reasons[reason] += cycles
        told[name] = EngineTime(busy=round(engine.busy, 1), stalled=round(engine.stalled, 1), reasons=dict(reasons))
    return told


def named_engines(core: CoreTime) -> dict[str, Engine]:
    movers = [name for name in core.engines if name not in timeline.COMPUTE_ENGINES]
    free = [name for name in ("reader", "writer") if name not in movers]
    return {
        (name if name in timeline.COMPUTE_ENGINES or name in ("reader", "writer") or not free else free.pop(0)): engine
        for name, engine in core.engines.items()
    }


def line_times(found: Timeline) -> list[LineTime]:
    """Cycles at work of every source line, on the slowest core, dearest first."""
    by_line: dict[tuple[str, int], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for name, engine in named_engines(found.slowest).items():
        for site in found.sites:
            cycles = engine.spent[site.number]
            if cycles and site.span is not None:
                by_line[site.span.file, site.span.line][name] += cycles
    lines = [
        LineTime(
            file=file, line=line, text=linecache.getline(file, line).strip(),
            cycles={name: round(cycles, 1) for name, cycles in spent.items()},
        )
        for (file, line), spent in by_line.items()
    ]  # fmt: skip
    return sorted(lines, key=lambda line: -max(line.cycles.values()))


# What binds ---------------------------------------------------------------------------------------------------------------------


def what_binds(found: Timeline) -> str:
    """From the engine that ends last, back along what it waits for, to an engine that works most of its time."""
    cycles = max(found.cycles, 1.0)
    network = found.network
    bank = max(range(len(network.bank_load)), key=network.bank_load.__getitem__)
    if network.bank_load[bank] > SATURATED * cycles:
        return f"DRAM bank {bank}"
    link = max(range(len(network.load)), key=network.load.__getitem__)
    if network.load[link] > SATURATED * cycles:
        return link_name(found.chip, link)
    engines = found.slowest.engines
    name = max(engines, key=lambda each: engines[each].end)
    seen: set[str] = set()
    while name not in seen:
        seen.add(name)
        engine = engines[name]
        reason, lost = _main_stall(engine)
        if engine.busy >= lost:
            return name
        if reason in (movement.READS, movement.WRITES, movement.PATH, movement.NETWORK):
            return f"{name}: {reason}"
        if reason == calls.PEER:
            return f"{name}: waits for another core"
        following = _blamed(found, name, reason)
        if following is None:
            return name
        name = following
    # A circle of waits: whoever of them works most.
    return max(seen, key=lambda each: engines[each].busy)


def _main_stall(engine: Engine) -> tuple[str, float]:
    reasons: dict[str, float] = defaultdict(float)
    for (_, reason), cycles in engine.stalls.items():
        reasons[reason] += cycles
    return max(reasons.items(), key=lambda entry: entry[1], default=("", 0.0))


def _blamed(found: Timeline, name: str, reason: str) -> str | None:
    """Who an engine waits for."""
    fixed = {calls.DST_TAKEN: "pack", calls.DST_NOT_READY: "math", calls.NO_OPERANDS: "unpack", calls.NO_BANK: "math"}
    if reason in fixed:
        return fixed[reason]
    for word, verb in ((calls.EMPTY, "cb_push_back"), (calls.FULL, "cb_pop_front")):
        if reason.startswith(f"{word}: "):
            return _who(found, verb, reason.removeprefix(f"{word}: "), name)
    return None


def _who(found: Timeline, verb: str, buffer: str, asking: str) -> str | None:
    """The engine that pushes or pops a buffer; the site does not know it, so every one that could is asked in turn."""
    candidates = {_engine_of(site) for site in found.sites if site.name == verb and found.buffers_of.get(site.number) == buffer}
    return next((name for name in candidates if name != asking), None)


def _engine_of(site: Site) -> str:
    return site.thread if site.role == "d" else ROLES[site.role]


# Limits -------------------------------------------------------------------------------------------------------------------------


def roofline(found: Timeline) -> Roofline:
    constants, network = constants_of(found.chip), found.network
    operations = products = 0.0
    cores = len(found.cores)
    for site in found.sites:
        if site.role != "m":
            continue
        runs = found.runs[site.number]
        if "matmul" in site.name and "init" not in site.name:
            tiles = site.attributes.get("rt", 1) * site.attributes.get("ct", 1)
            products += runs * tiles * 32**3
        elif site.name.endswith(("_tile", "_tiles")):
            operations += runs * hardware.TILE_ELEMENTS
    phases = FIDELITY_PHASES.get(found.program.config.math_fidelity, 4)
    ideal = products * phases / MACS_PER_CYCLE / cores
    traffic = network.bytes_read + network.bytes_written
    read = network.bytes_read / (constants.banks * constants.bank_read)
    written = network.bytes_written / (constants.banks * constants.bank_write)
    busiest = max(sum(engine.busy for name, engine in core.engines.items() if name == "math") for core in found.cores)
    return Roofline(
        math=round(busiest, 1),
        dram=round(read + written, 1),
        noc=round(max(network.load), 1),
        intensity=round((2 * products + operations) / traffic, 3) if traffic else 0.0,
        utilisation=round(ideal / found.cycles, 4) if found.cycles else 0.0,
    )


# Advice -------------------------------------------------------------------------------------------------------------------------


def advice(found: Timeline, scalars: Mapping[str, int] | None) -> list[Advice]:
    """Changes that can be tried without the author, tried: only what gains is told."""
    told: list[Advice] = []
    for change, program in _variants(found):
        cycles = timeline.run(program, scalars=scalars).cycles
        gain = 1 - cycles / found.cycles
        if gain > 0.01:
            told.append(Advice(change=change, cycles=round(cycles, 1), gain=round(gain, 4)))
    return sorted(told, key=lambda each: -each.gain)[:MOST_ADVICE]


def _variants(found: Timeline) -> list[tuple[str, Program]]:
    program = found.program
    variants: list[tuple[str, Program]] = []
    room = hardware.CHIPS[found.chip].l1_usable_bytes - used_bytes(program)
    engines = [engine for core in found.cores for engine in core.engines.values()]
    waited = {reason.split(": ")[1] for engine in engines for _, reason in engine.stalls if ": " in reason}
    deeper: list[str] = []
    for buffer in program.buffers:
        block = hardware.tile_bytes(buffer.dtype) * buffer.tiles // buffer.block_count
        if buffer.name in waited and buffer.alias_of is None and buffer.tensor is None and block <= room:
            change = f"buffer '{buffer.name}': block_count {buffer.block_count + 1} instead of {buffer.block_count}"
            variants.append((change, _deeper(program, [buffer.name])))
            deeper.append(buffer.name)
    if len(deeper) > 1:
        change = f"one block more in every buffer that somebody waits for: {', '.join(deeper)}"
        variants.append((change, _deeper(program, deeper)))
    config = program.config
    lower = {"HiFi4": "HiFi2", "HiFi3": "HiFi2", "HiFi2": "LoFi"}.get(config.math_fidelity)
    if lower is not None:
        change = f"math_fidelity {lower} instead of {config.math_fidelity} (fewer bits of the operands)"
        variants.append((change, replace(program, config=replace(config, math_fidelity=lower))))
    return variants


def used_bytes(program: Program) -> int:
    return sum(hardware.tile_bytes(buffer.dtype) * buffer.tiles for buffer in program.buffers if buffer.alias_of is None)


def _deeper(program: Program, names: list[str]) -> Program:
    buffers = tuple(
        replace(buffer, block_count=buffer.block_count + 1) if buffer.name in names else buffer for buffer in program.buffers
    )
    return replace(program, buffers=buffers)
