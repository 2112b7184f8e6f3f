"""The DST decisions of a compilation as plain data, from the plans that the allocation pass left in the trace."""

from __future__ import annotations

from typing import Any

from tilewright.trace import Trace


def regions(trace: Trace) -> list[dict[str, Any]]:
    """One entry per compute region, in program order. A trace from the cache has them instead of the plans."""
    if trace.stored is not None:
        return trace.stored.regions
    return [region(problem, plan) for problem, plan in trace.plans]


def region(problem: Any, plan: Any) -> dict[str, Any]:
    working = plan.explanation
    return {
        "file": "" if problem.span is None else problem.span.file,
        "line": 0 if problem.span is None else problem.span.line,
        "capacity": problem.problem.capacity,
        "tiles": problem.problem.tiles,
        "allocator": plan.allocator,
        "proven_least_cost": plan.exact,
        "cycles_per_tile": plan.cycles_per_tile,
        "copies": plan.copies,
        "reloads": plan.reloads,
        "full_sync": problem.problem.full_sync,
        "values": {value_name(problem, number): value_entry(problem, number) for number in all_values(problem)},
        "remedies": [{"kind": item.kind, "detail": item.detail, "cycles": item.cycles} for item in plan.remedies],
        "notes": list(plan.notes),
        "parts": [part_entry(problem, part) for part in plan.parts],
        "linear_scan": None if working is None else linear_scan_entry(problem.problem, working),
    }


def part_entry(problem: Any, part: Any) -> dict[str, Any]:
    allocation = part.allocation
    return {
        "tiles_per_acquire": allocation.tiles_per_acquire,
        "layout": allocation.layout.value,
        "footprint": allocation.footprint,
        "slots_per_tile": allocation.slots,
        "outputs": [
            {
                "slot": slot,
                "dst": [allocation.dst_index(slot, tile) for tile in range(allocation.tiles_per_acquire)],
                "value": value_name(problem, value),
                "spilled": number < part.spilled,
            }
            for number, (slot, value) in enumerate(zip(allocation.output_slots, part.outputs, strict=True))
        ],
        "slots": [
            [allocation.dst_index(slot, tile) for tile in range(allocation.tiles_per_acquire)] for slot in range(allocation.slots)
        ],
        "steps": [step_entry(problem, step) for step in allocation.steps],
        "requirements": requirements_entry(problem, part.requirements),
    }


def requirements_entry(problem: Any, needs: Any) -> dict[str, Any]:
    """Peak, largest sub-block, and the life of every value in DST; steps count from 0."""
    if needs is None:
        return {}
    return {
        "peak": needs.peak,
        "largest_sub_block": needs.largest_sub_block,
        "values": [
            {
                "value": value_name(problem, life.value),
                "slot": life.slot,
                "from": life.start,
                "to": life.end,
                "takes": life.takes,
                "cycles": life.cycles,
            }
            for life in needs.lives
        ],
    }


def all_values(problem: Any) -> range:
    return range(len(problem.problem.leaves) + len(problem.problem.ops))


def value_entry(problem: Any, value: int) -> dict[str, Any]:
    """What the source calls a value, and where it computes it."""
    place = problem.place(value)
    return {
        "name": problem.name(value),
        "file": "" if place is None else place.file,
        "line": 0 if place is None else place.line,
        "output": value in problem.problem.outputs,
    }


def value_name(problem: Any, value: int) -> str:
    """``input 2``, or the op that computes the value."""
    if problem.problem.is_leaf(value):
        return f"input {value}"
    return f"{problem.problem.ops[problem.problem.op_of(value)].name} {value - len(problem.problem.leaves)}"


def lines(trace: Trace) -> list[str]:
    """The regions as text: what happens to the slots of one tile, step by step."""
    text: list[str] = []
    for number, entry in enumerate(regions(trace), start=1):
        proof = "proven least" if entry["proven_least_cost"] else "heuristic"
        cost = f"{entry['cycles_per_tile']:.0f} cycles per tile ({entry['allocator']}, {proof})"
        text.append(f"region {number}: {counted(entry['tiles'], 'tile')}, {entry['capacity']} DST slots, {cost}")
        text += [f"  remedy: {item['kind']}, {item['detail']} ({item['cycles']} cycles)" for item in entry["remedies"]]
        text += [f"  note: {note}" for note in entry["notes"]]
        if entry.get("linear_scan"):
            text += [f"  {line}" for line in entry["linear_scan"]["lines"]]
        for part in entry["parts"]:
            tiles, slots = counted(part["tiles_per_acquire"], "tile"), counted(part["slots_per_tile"], "slot")
            text.append(f"  {tiles} per acquire, {part['layout']}, {slots} per tile")
            text += [f"    {step_line(step)}" for step in part["steps"]]
            text += requirement_lines(part.get("requirements", {}))
            text += [f"    pack slot {item['slot']}: DST {span_of(item['dst'])}" for item in part["outputs"]]
    return text


def counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def requirement_lines(needs: dict[str, Any]) -> list[str]:
    """What the part asks of DST."""
    if not needs:
        return []
    peak, most = needs["peak"], needs["largest_sub_block"]
    text = [f"    needs {counted(peak, 'slot')} at once, so a sub-block has at most {counted(most, 'tile')}"]
    for value in needs["values"]:
        taken = "a new slot" if value["takes"] else "in the slot of a value that ends"
        lives = f"lives from step {value['from']} to {value['to']}"
        text.append(f"      {value['value']}: slot {value['slot']}, {taken}, {lives}, {value['cycles']} cycles")
    return text


def step_line(step: dict[str, Any]) -> str:
    if "load" in step:
        return f"load {step['load']} -> slot {step['slot']}"
    if "copy" in step:
        return f"copy {step['copy']} -> slot {step['slot']}"
    reads = ", ".join(item if isinstance(item, str) else f"slot {item}" for item in step["reads"])
    return f"{step['op']} ({step['unit']}) {reads} -> slot {step['slot']}"


def span_of(indices: list[int]) -> str:
    """``4..7``, or one number."""
    return str(indices[0]) if len(indices) == 1 else f"{indices[0]}..{indices[-1]}"


def step_entry(problem: Any, step: Any) -> dict[str, Any]:
    """A load, a copy or an operation; slots are those of one tile."""
    if hasattr(step, "leaf"):
        return {"load": value_name(problem, step.leaf), "slot": step.slot}
    if hasattr(step, "source"):
        return {"copy": f"slot {step.source}", "slot": step.target}
    chosen = problem.problem.ops[step.op]
    form = chosen.forms[step.form]
    pairs = zip(form.operands, step.slots, strict=True)
    reads = [value_name(problem, use.value) if slot is None else slot for use, slot in pairs]
    accumulates = form.result.name == "ACCUMULATE"
    value = value_name(problem, problem.problem.result_of(step.op))
    return {"op": chosen.name, "unit": form.key, "reads": reads, "slot": step.target, "value": value, "accumulates": accumulates}


# The working of linear scan, phase by phase, as the specification writes it: plain data, and the lines that show it. Values are
# called as there: ``%in0`` a tile from a buffer, ``%0`` the result of the first op, ``%0_copy_0`` its first copy.

def linear_scan_entry(problem: Any, working: Any) -> dict[str, Any]:
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
    op_at: dict[int, int] = {position: op.op for position, op in enumerate(working.ops, start=1)}
    entry: dict[str, Any] = {
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
    return {**entry, "lines": linear_scan_lines(entry)}


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


def linear_scan_lines(found: dict[str, Any]) -> list[str]:
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
