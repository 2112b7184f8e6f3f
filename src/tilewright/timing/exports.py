"""A timeline for other programs: Perfetto's trace, tt-metal's device log, a workload for tt-npe; a profile as plain data."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tilewright.timing.profile import ENGINES, Profile, named_engines
from tilewright.timing.timeline import COMPUTE_ENGINES, CoreTime, Timeline
from tilewright.timing_constants import constants_of

MOST_EVENTS = 400_000  # of a trace: viewers become slow beyond
RISCS = {"reader": "NCRISC", "unpack": "TRISC_0", "math": "TRISC_1", "pack": "TRISC_2", "writer": "BRISC"}
LOG_COLUMNS = (
    "PCIe slot", "core_x", "core_y", "RISC processor type", "timer_id", "time[cycles since reset]", "data", "run host ID",
    "trace id", "trace id counter", "zone name", "type", "source line", "source file", "meta data",
)  # fmt: skip


def plain(told: Profile) -> dict[str, Any]:
    return asdict(told)


# Perfetto -----------------------------------------------------------------------------------------------------------------------


def trace(timelines: Sequence[Timeline]) -> dict[str, Any]:
    """Trace-event format: a process per core, a thread per engine; kernels one after the other."""
    events: list[dict[str, Any]] = []
    offset = 0.0
    flow = 0
    left_out = 0
    for found in timelines:
        per_microsecond = constants_of(found.chip).clock_ghz * 1000
        for number, core in enumerate(sorted(found.cores, key=lambda each: -each.end)):
            slices = sum(len(engine.slices or ()) for engine in core.engines.values())
            if number and len(events) + slices > MOST_EVENTS:
                left_out += 1
                continue
            flow = _core_events(events, found, core, offset, per_microsecond, flow)
        offset += found.microseconds + 1.0
    if left_out:
        events.append({"name": f"{left_out} cores left out: too many events", "ph": "i", "s": "g", "ts": 0, "pid": 0, "tid": 0})
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _core_events(
    events: list[dict[str, Any]], found: Timeline, core: CoreTime, offset: float, per_microsecond: float, flow: int
) -> int:
    pid = 1 + core.core[0] + 100 * (core.core[1] if len(core.core) > 1 else 0)
    name = f"{found.program.name} core {','.join(map(str, core.core))}"
    events.append({"name": "process_name", "ph": "M", "pid": pid, "tid": 0, "args": {"name": name}})
    tracks: dict[str, int] = {}
    for role, engine in named_engines(core).items():
        track = tracks[engine.name] = ENGINES.index(role) + 1 if role in ENGINES else len(ENGINES) + len(tracks)
        events.append({"name": "thread_name", "ph": "M", "pid": pid, "tid": track, "args": {"name": role}})
        for start, end, number, reason in engine.slices or ():
            site = found.sites[number]
            place = f"{os.path.basename(site.span.file)}:{site.span.line}" if site.span is not None else found.program.name
            event = {
                "name": reason or f"{place} {site.name}", "cat": "stall" if reason else "work", "ph": "X",
                "ts": round(offset + start / per_microsecond, 6), "dur": round((end - start) / per_microsecond, 6),
                "pid": pid, "tid": track, "args": {"call": site.name, "at": place, "cycles": round(end - start, 1)},
            }  # fmt: skip
            if reason:
                event["cname"] = "terrible" if "buffer" in reason else "bad"
            events.append(event)
    for buffer, producer, pushed, consumer, taken in core.flows:
        flow += 1
        shared = {"name": buffer, "cat": "buffer", "id": flow, "pid": pid}
        events.append({**shared, "ph": "s", "ts": round(offset + pushed / per_microsecond, 6), "tid": tracks[producer]})
        events.append(
            {**shared, "ph": "f", "bp": "e", "ts": round(offset + taken / per_microsecond, 6), "tid": tracks[consumer]}
        )
    return flow


# tt-metal's log of its device profiler ------------------------------------------------------------------------------------------


def device_log(timelines: Sequence[Timeline]) -> str:
    """Kernel zones of every processor, and a zone for each source line it works on, in the columns of that log."""
    out = io.StringIO()
    first = timelines[0].chip if timelines else ""
    clock = round(constants_of(first).clock_ghz * 1000) if first else 0
    cores = max((len(found.cores) for found in timelines), default=0)
    out.write(f"ARCH: {first}, CHIP_FREQ[MHz]: {clock}, Max Compute Cores: {cores}\n")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(LOG_COLUMNS)
    for run, found in enumerate(timelines):
        for core in found.cores:
            for role, engine in named_engines(core).items():
                risc = RISCS.get(role, role)
                zone = f"{'TRISC' if engine.name in COMPUTE_ENGINES else risc}-KERNEL"
                _zone(writer, core, risc, run, zone, engine.started, engine.end, "", found.program.name)
                for start, end, number, reason in engine.slices or ():
                    span = found.sites[number].span
                    if span is not None and not reason:
                        _zone(writer, core, risc, run, found.sites[number].name, start, end, span.line, span.file)
    return out.getvalue()


def _zone(writer: Any, core: CoreTime, risc: str, run: int, name: str, start: float, end: float, line: Any, file: str) -> None:
    for moment, kind in ((start, "ZONE_START"), (end, "ZONE_END")):
        writer.writerow((0, *core.place, risc, "", round(moment), 0, run, "", "", name, kind, line, file, ""))


# tt-npe -------------------------------------------------------------------------------------------------------------------------


def npe_workload(timelines: Sequence[Timeline]) -> dict[str, Any]:
    """Every transfer with its start; a phase per kernel."""
    phases: list[dict[str, Any]] = []
    for found in timelines:
        transfers: list[dict[str, Any]] = []
        for number, each in enumerate(found.network.transfers or ()):
            told: dict[str, Any] = {
                "id": number, "packet_size": int(each.size), "num_packets": 1, "src_x": each.source[0], "src_y": each.source[1],
                "injection_rate": 0.0, "phase_cycle_offset": round(each.start), "noc_type": f"NOC_{each.net}",
                "noc_event_type": "WRITE_MULTICAST" if len(each.targets) > 1 else "UNICAST",
            }  # fmt: skip
            if len(each.targets) > 1:
                columns, rows = [x for x, _ in each.targets], [y for _, y in each.targets]
                told |= {"mcast_start_x": min(columns), "mcast_start_y": min(rows)}
                told |= {"mcast_end_x": max(columns), "mcast_end_y": max(rows)}
            else:
                told["dst_x"], told["dst_y"] = next(iter(each.targets))
            transfers.append(told)
        phases.append({"id": len(phases), "name": found.program.name, "transfers": transfers})
    cycles = round(sum(found.cycles for found in timelines))
    chip = timelines[0].chip if timelines else ""
    return {"golden_result": {"cycles": cycles}, "common_info": {"chip": chip}, "phases": phases}
