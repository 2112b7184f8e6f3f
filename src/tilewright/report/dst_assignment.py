"""The DST decisions of a compilation as plain data, from the plans that the allocation pass left in the trace."""

from __future__ import annotations

from typing import Any

from tilewright.trace import Trace


def regions(trace: Trace) -> list[dict[str, Any]]:
    """One entry per compute region, in program order."""
    return [region(problem, plan) for problem, plan in trace.facts.get("plans", ())]


def region(problem: Any, plan: Any) -> dict[str, Any]:
    return {
        "capacity": problem.problem.capacity,
        "tiles": problem.problem.tiles,
        "allocator": plan.allocator,
        "proven_least_cost": plan.exact,
        "cycles_per_tile": plan.cycles_per_tile,
        "copies": plan.copies,
        "reloads": plan.reloads,
        "remedies": [{"kind": item.kind, "detail": item.detail, "cycles": item.cycles} for item in plan.remedies],
        "parts": [part_entry(problem, part) for part in plan.parts],
    }


def part_entry(problem: Any, part: Any) -> dict[str, Any]:
    allocation = part.allocation
    return {
        "tiles_per_acquire": allocation.tiles_per_acquire,
        "layout": allocation.layout.value,
        "footprint": allocation.footprint,
        "slots_per_tile": allocation.slots,
        "outputs": [
            {"slot": slot, "dst": [allocation.dst_index(slot, tile) for tile in range(allocation.tiles_per_acquire)]}
            for slot in allocation.output_slots
        ],
        "steps": [step_entry(problem, step) for step in allocation.steps],
    }


def step_entry(problem: Any, step: Any) -> dict[str, Any]:
    """A load, a copy or an operation; slots are those of one tile."""
    if hasattr(step, "leaf"):
        return {"load": f"input {step.leaf}", "slot": step.slot}
    if hasattr(step, "source"):
        return {"copy": f"slot {step.source}", "slot": step.target}
    chosen = problem.problem.ops[step.op]
    form = chosen.forms[step.form]
    reads = [f"input {use.value}" if slot is None else slot for use, slot in zip(form.operands, step.slots, strict=True)]
    return {"op": chosen.name, "unit": form.key, "reads": reads, "slot": step.target}
