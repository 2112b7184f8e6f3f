"""The working of linear scan, phase by phase, as the specification writes it: plain data, and the lines that show it.

Values are called as there: ``%in0`` a tile from a buffer, ``%0`` the result of the first op, ``%0_copy_0`` its first copy.
"""

from __future__ import annotations

from typing import Any


def entry(problem: Any, working: Any) -> dict[str, Any]:
    """``working`` is what the allocator recorded; everything by name, ready for JSON."""
    names = value_names(problem, working)
    intervals = working.intervals

    def events(found: Any) -> list[dict[str, Any]]:
        return [
            {
                "value": names[event.node],
                "set": [names[node] for node in intervals.sets[event.node]],
                "interval": [event.interval.start, event.interval.end],
                "slot": event.slot,
                "expired": [names[node] for node in event.expired],
            }
            for event in found
        ]

    shared = events(working.shared_events)
    active: list[str] = []
    for event in shared:
        active = [*(name for name in active if name not in event["expired"]), event["value"]]
        event["active"] = active
    op_at = {position: op.op for position, op in enumerate(working.ops, start=1)}
    return {
        "schedule": working.schedule,
        "schedule_reason": working.schedule_reason,
        "order": [names[problem.result_of(op)] for op in working.order],
        "copies": [
            {"copy": names[copy.node], "of": names[copy.source], "for": problem.ops[copy.op].name} for copy in working.copies
        ],
        "intervals": [
            {
                "value": names[node],
                "interval": [interval.start, interval.end],
                "merged": [intervals.after[node].start, intervals.after[node].end],
            }
            for node, interval in intervals.before.items()
        ],
        "merges": [
            {
                "op": problem.ops[op_at[merge.position]].name,
                "values": [names[merge.operand], names[merge.result]],
                "interval": [merge.interval.start, merge.interval.end],
            }
            for merge in intervals.merges
        ],
        "shared_events": shared,
        "output_events": events(working.output_events),
        "slots": {names[node]: slot for node, slot in working.slots.items()},
        "footprint": working.footprint,
        "outputs_per_tile": working.output_region,
        "capacity": problem.capacity,
        "tiles": problem.tiles,
        "unroll_factor": working.unroll_factor,
    }


def value_names(problem: Any, working: Any) -> dict[int, str]:
    leaves = len(problem.leaves)
    names = {value: f"%in{value}" if leaves > 1 else "%in" for value in range(leaves)}
    names |= {problem.result_of(op): f"%{op}" for op in range(len(problem.ops))}
    counts: dict[int, int] = {}
    for copy in working.copies:
        number = counts.get(copy.source, 0)
        counts[copy.source] = number + 1
        names[copy.node] = f"{names[copy.source]}_copy_{number}"
    return names


def lines(found: dict[str, Any]) -> list[str]:
    order = "the order of the source" if found["schedule"] == "source" else f"lars: {', '.join(found['order'])}"
    reason = f" ({found['schedule_reason']})" if found["schedule_reason"] else ""
    text = [f"phase 0: {order}{reason}"]
    copies = [f"{copy['copy']} = copy_dest_values({copy['of']}) for {copy['for']}" for copy in found["copies"]]
    text += ["phase 1: no copies"] if not copies else ["phase 1:", *(f"  {copy}" for copy in copies)]
    text.append("phase 2: intervals")
    text += [f"  {each['value']}: {_span(each['interval'])}" for each in found["intervals"]]
    text += [f"  merge for {each['op']} ({', '.join(each['values'])}): {_span(each['interval'])}" for each in found["merges"]]
    text.append("phase 3: inputs and intermediates")
    text += [f"  {_event(event)}, active=[{', '.join(event['active'])}]" for event in found["shared_events"]]
    text.append(f"  inputs_and_intermediates_footprint = {found['footprint']}")
    text.append(f"phase 4: outputs from DST[{found['footprint']}] on")
    text += [f"  {_event(event)}" for event in found["output_events"]]
    free = found["capacity"] - found["footprint"]
    each = f"{free} / {found['outputs_per_tile']}"
    text.append(f"unroll factor: min({each}, {found['tiles']}) = {found['unroll_factor']}")
    return text


def _span(interval: list[int]) -> str:
    return f"[{interval[0]}, {interval[1]}]"


def _event(event: dict[str, Any]) -> str:
    others = [name for name in event["set"] if name != event["value"]]
    merged = f" (with {', '.join(others)})" if others else ""
    expired = f", expire {', '.join(event['expired'])}" if event["expired"] else ""
    start, end = event["interval"]
    return f"{event['value']} [{start},{end}]: allocate DST[{event['slot']}]{merged}{expired}"
