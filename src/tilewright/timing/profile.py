"""What a timeline says to a person: how long, what binds, which line pays, what would help. Plain data, ready for JSON."""

from __future__ import annotations

import linecache
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field, replace

from xdsl.dialects.func import FuncOp

from tilewright import hardware
from tilewright.diagnostics import KernelError
from tilewright.dialects.ttl import signposts_of
from tilewright.dialects.walking import of_kind
from tilewright.program import Program
from tilewright.records import record
from tilewright.sim.error_bounds import ResultError
from tilewright.sim.registry import ROLES, Site
from tilewright.sim.run import result_errors
from tilewright.sim.tensors import Array
from tilewright.timing import advice, calls, movement, timeline
from tilewright.timing.advice import Again, Gain
from tilewright.timing.clock import Engine
from tilewright.timing.network import link_name
from tilewright.timing.timeline import CoreTime, Timeline
from tilewright.timing_constants import constants_of

ENGINES = ("reader", "unpack", "math", "pack", "writer")
SATURATED = 0.75  # share of the time from which a link or bank is what binds
# How far predictions are off, by what binds: nine of ten published programs lie within (benchmarks/timing.py).
UNCERTAINTY = {
    "math": 0.08, "unpack": 0.12, "pack": 0.12, "reader": 0.15, "writer": 0.15, "NoC": 0.3, "DRAM": 0.3,
}  # fmt: skip
FIDELITY_PHASES = {"LoFi": 1, "HiFi2": 2, "HiFi3": 3, "HiFi4": 4}
MACS_PER_CYCLE = 32**3 // 16  # of the matrix unit of one core, one phase [isa]


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
class Roofline:
    """Lower limits of the time, in cycles: no program that does this work is faster than any of them."""

    math: float
    dram: float
    noc: float
    intensity: float  # operations per byte of DRAM traffic
    utilisation: float  # of the matrix unit, over all cores
    operations: float  # of all cores
    bytes: float  # to and from DRAM


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
    errors: list[ResultError] = field(default_factory=list[ResultError])  # of the tensors that it writes, if they were computed
    signposts: dict[str, dict[str, float]] = field(default_factory=dict[str, "dict[str, float]"])  # cycles by engine below each
    advice: list[Gain] = field(default_factory=list[Gain])
    notes: list[str] = field(default_factory=list[str])

    def _repr_html_(self) -> str:
        """For notebooks."""
        from tilewright import notebook

        return notebook.profile(asdict(self))


def profile(
    program: Program, scalars: Mapping[str, int] | None = None, *, record: bool = False, advise: bool = True,
    again: Again | None = None, thorough: bool = False, arrays: Sequence[Array] | None = None,
) -> tuple[Profile, Timeline]:
    """The time of a program. ``record`` keeps what a picture needs, ``advise`` tries what would help.

    ``again`` compiles the kernel anew, for changes that the compiler must see. ``thorough`` tries everything, however long.
    With ``arrays``, which are written as by a run, how far the results are off is said too; without them nothing is computed.
    """
    found = timeline.run(program, scalars=scalars, record=record)
    told = describe(found)
    if found.deadlock is not None:
        return told, found
    given = None if arrays is None else [array.copy() for array in arrays]

    def error(program: Program) -> float | None:
        """The largest bound, for a program that is tried."""
        if given is None:
            return None
        errors = result_errors(program, [array.copy() for array in given], scalars=scalars)
        return max((each.bound for each in errors), default=0.0)

    if arrays is not None:
        try:
            told = replace(told, errors=result_errors(program, arrays, scalars=scalars))
        except KernelError as refused:  # code of the author's own, without a meaning
            given, note = None, f"how far results are off is not known: {refused.diagnostics[0].message}"
            told = replace(told, notes=[*told.notes, note])
    if not advise:
        return told, found
    tried = advice.advise(found, scalars, again, thorough=thorough, error=error)
    return replace(told, advice=tried.gains, notes=[*told.notes, *tried.notes]), found


def describe(found: Timeline) -> Profile:
    """What a timeline says, without advice."""
    program, bound = found.program, what_binds(found)
    return Profile(
        kernel=program.name,
        chip=found.chip,
        grid=tuple(program.grid),
        cycles=round(found.cycles, 1),
        microseconds=round(found.microseconds, 3),
        uncertainty=next((share for word, share in UNCERTAINTY.items() if word in bound), 0.2),
        bound=bound,
        engines=engine_times(found.slowest),
        lines=line_times(found),
        signposts=signpost_times(found),
        roofline=roofline(found),
        l1_bytes=advice.used_bytes(program),
        l1_room=hardware.CHIPS[found.chip].l1_usable_bytes,
        notes=_notes(found),
    )


def _notes(found: Timeline) -> list[str]:
    notes = [f"{name}: no cost is known, {cycles:.0f} cycles are taken" for name, cycles in found.estimated.items()]
    if found.skipped_turns:
        notes.append(f"long loops were run until they were steady, then multiplied: {found.skipped_turns:,} turns were not run")
    if found.deadlock is not None:
        notes.append(f"the kernel does not end: {found.deadlock.message}")
    return notes


def engine_times(core: CoreTime) -> dict[str, EngineTime]:
    """The five engines by their names; a thread with a name of its own counts as reader or writer, in their order."""
    told = {name: EngineTime(busy=0.0, stalled=0.0, reasons={}) for name in ENGINES}  # one that has no thread does nothing
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


def signpost_times(found: Timeline) -> dict[str, dict[str, float]]:
    """Cycles that each engine of the slowest core spends below a signpost, at work and waiting."""
    told: dict[str, dict[str, float]] = {}
    for function in of_kind(found.program.module, FuncOp):
        role = next((thread.role for thread in found.program.threads if thread.function == function.sym_name.data), "")
        for post, places in signposts_of(function).items():
            sites = {site.number for site in found.sites if site.span is not None and (site.span.file, site.span.line) in places}
            for name, engine in named_engines(found.slowest).items():
                if (name in timeline.COMPUTE_ENGINES) != (role == "compute") or (role != "compute" and name != role):
                    continue
                waited = sum(cycles for (number, _), cycles in engine.stalls.items() if number in sites)
                cycles = sum(engine.spent[number] for number in sites) + waited
                if cycles:
                    told.setdefault(post, {})[name] = round(told.get(post, {}).get(name, 0.0) + cycles, 1)
    return told


# What binds ---------------------------------------------------------------------------------------------------------------------


def what_binds(found: Timeline) -> str:
    """A bank, a link or an engine that has something to do nearly all the time; else whoever the others wait for.

    That one is found from the engine that ends last, back along what each waits for: who has most to do that nobody else delays.
    """
    cycles = max(found.cycles, 1.0)
    network, engines = found.network, found.slowest.engines
    bank = max(range(len(network.bank_load)), key=network.bank_load.__getitem__)
    link = max(range(len(network.load)), key=network.load.__getitem__)
    loads = {name: engine.busy for name, engine in engines.items()}
    loads |= {f"DRAM bank {bank}": network.bank_load[bank], link_name(found.chip, link): network.load[link]}
    busiest = max(loads, key=loads.__getitem__)
    if loads[busiest] > SATURATED * cycles:
        return busiest
    name: str | None = max(engines, key=lambda each: engines[each].end)
    chain: list[str] = []
    while name is not None and name not in chain:
        chain.append(name)
        name = _blamed(found, name, _main_stall(engines[name])[0])
    longest = max(chain, key=lambda each: _own_time(engines[each]))
    reason, lost = _main_stall(engines[longest])
    if reason == calls.PEER and lost > engines[longest].busy:
        return _peer(found, longest)
    return longest if lost <= engines[longest].busy or reason not in OWN_WAITS else f"{longest}: {reason}"


def _peer(found: Timeline, waiting: str) -> str:
    """Who an engine of the slowest core waits for on others: the one with most to do by itself, if that is most of the time."""
    busiest = max(
        ((core, name) for core in found.cores for name in core.engines), key=lambda each: _alone(each[0].engines[each[1]])
    )
    core, name = busiest
    engine = core.engines[name]
    if _alone(engine) < found.cycles / 2:
        return f"{waiting}: waits for another core"
    reason, lost = _main_stall(engine)
    why = f": {reason}" if lost > engine.busy and reason in OWN_WAITS else ""
    return name if core is found.slowest else f"{name} of core {core.core}{why}"


def _alone(engine: Engine) -> float:
    """Cycles that no other engine of any core could shorten."""
    return _own_time(engine) - sum(cycles for (_, reason), cycles in engine.stalls.items() if reason == calls.PEER)


# What an engine waits for that no other engine of its core could give it earlier.
OWN_WAITS = (movement.READS, movement.WRITES, movement.PATH, movement.NETWORK, calls.PEER)


def _own_time(engine: Engine) -> float:
    return engine.busy + sum(cycles for (_, reason), cycles in engine.stalls.items() if reason in OWN_WAITS)


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
        operations=2 * products + operations,
        bytes=round(traffic, 1),
    )
