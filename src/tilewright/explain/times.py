"""The time of a program for a picture: engines of some cores over time, cycles per line, traffic between cores, the roofline."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from tilewright.package import plain
from tilewright.timing.clock import Engine, Slice
from tilewright.timing.profile import Profile, named_engines
from tilewright.timing.timeline import CoreTime, Timeline

MOST_SLICES = 24_000  # of all cores in one picture
MOST_OF_ENGINE = 3_000  # more than a screen shows at any zoom that a person uses
MOST_CORES = 8
MOST_PAIRS = 2_000

Place = Callable[[str, int], list[int]]


def told(profile: Profile, timeline: Timeline, place: Place) -> dict[str, Any]:
    known = plain(asdict(profile))
    lines = [{"place": place(line["file"], line["line"]), "cycles": line["cycles"]} for line in known.pop("lines")]
    return {**known, "lines": lines, "timeline": _timeline(timeline, place), "traffic": traffic(timeline)}


# Engines over time --------------------------------------------------------------------------------------------------------------


def _timeline(found: Timeline, place: Place) -> dict[str, Any]:
    """Slices are ``[start, end, site, reason]``; reason 0 is work. Those of a long run are the larger part of every ``grain``."""
    reasons = [""]
    cores: list[dict[str, Any]] = []
    used: set[int] = set()
    total = 0
    for core in chosen(found.cores, found.slowest):
        engines: list[dict[str, Any]] = []
        for name, engine in named_engines(core).items():
            slices, grain = thinned(engine)
            total += len(slices)
            for each in slices:
                if each[3] not in reasons:
                    reasons.append(each[3])
            used |= {each[2] for each in slices}
            rows = [[round(s), round(e), site, reasons.index(reason)] for s, e, site, reason in slices]
            engines.append({"name": name, "grain": round(grain), "slices": rows})
        cores.append({"core": list(core.core), "end": round(core.end), "engines": engines, "flows": _flows(core)})
        if total > MOST_SLICES:
            break
    sites = {
        str(site.number): {"call": site.name, "place": None if site.span is None else place(site.span.file, site.span.line)}
        for site in found.sites
        if site.number in used
    }
    return {
        "cores": cores,
        "all_cores": len(found.cores),
        "reasons": reasons,
        "sites": sites,
        "skipped_turns": found.skipped_turns,
    }


def chosen(cores: Sequence[CoreTime], slowest: CoreTime) -> list[CoreTime]:
    """The slowest, the first and the last, and some between them."""
    step = max(1, (len(cores) - 1) // (MOST_CORES - 1))
    return [slowest, *(core for core in [*cores[::step], cores[-1]] if core is not slowest)][:MOST_CORES]


def thinned(engine: Engine) -> tuple[list[Slice], float]:
    """The slices of an engine; of too many, one per grain of time: what took most of it."""
    slices = engine.slices or []
    if len(slices) <= MOST_OF_ENGINE:
        return slices, 0.0
    grain = (slices[-1][1] - slices[0][0]) / MOST_OF_ENGINE
    bins: dict[int, Counter[tuple[int, str]]] = defaultdict(Counter)
    for start, end, site, reason in slices:
        while start < end:
            number = int(start // grain)
            stop = max(min(end, (number + 1) * grain), start + 1e-6)
            bins[number][site, reason] += stop - start  # pyright: ignore[reportArgumentType]
            start = stop
    merged: list[Slice] = []
    for number, shares in sorted(bins.items()):
        (site, reason), _ = shares.most_common(1)[0]
        start, end = number * grain, (number + 1) * grain
        if merged and merged[-1][1:] == (start, site, reason):
            start = merged.pop()[0]
        merged.append((start, end, site, reason))
    return merged, grain


MOST_FLOWS = 1_500


def _flows(core: CoreTime) -> list[list[Any]]:
    """From a push to the wait that saw it: buffer, producer, time, consumer, time."""
    names = {engine.name: name for name, engine in named_engines(core).items()}
    return [
        [buffer, names.get(producer, producer), round(pushed), names.get(consumer, consumer), round(taken)]
        for buffer, producer, pushed, consumer, taken in core.flows[:MOST_FLOWS]
    ]


# Traffic ------------------------------------------------------------------------------------------------------------------------


def traffic(found: Timeline) -> dict[str, Any]:
    """Bytes from core to core, and between each core and memory; of the turns that were run."""
    cores = {core.place: core.core for core in found.cores}
    pairs: Counter[tuple[Any, Any]] = Counter()
    memory: dict[Any, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for each in found.network.transfers or ():
        source = cores.get(each.source)
        for target in each.targets:
            there = cores.get(target)
            if source is not None and there is not None:
                pairs[source, there] += int(each.size)
            elif there is not None:
                memory[there][0] += each.size
            elif source is not None:
                memory[source][1] += each.size
    return {
        "between": [[list(a), list(b), size] for (a, b), size in pairs.most_common(MOST_PAIRS)],
        "memory": [[list(core), round(read), round(written)] for core, (read, written) in sorted(memory.items())],
    }
