"""Registers that text names (``ttl.dst_reg``): the allocator's slots are renamed so that each value lies where it was asked for.

Slots are alike, so a renaming of a right allocation is right; ``dst/checker.py`` sees the renamed one like any other. A region
with such values takes one tile per acquire: a register is one tile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tilewright.diagnostics import KernelError, fail
from tilewright.dialects.attributes import PINNED, REQUIRED, int_value
from tilewright.dialects.walking import span_of
from tilewright.dst.checker import check
from tilewright.dst.problem import Allocation, Execute, Layout, Part, Plan, on_slots
from tilewright.passes.dst_assignment.dst_problem import RegionProblem


def bind(region: RegionProblem, allocate: Callable[[RegionProblem], Plan]) -> tuple[RegionProblem, Plan]:
    """The problem to use and its plan, which ``allocate`` makes."""
    wanted = {number: int_value(op, PINNED) for number, op in enumerate(region.ops) if PINNED in op.attributes}
    required = [number for number, op in enumerate(region.ops) if REQUIRED in op.attributes]
    if wanted:
        region = replace(region, problem=replace(region.problem, tiles=1, round_trips=0))
    plan = allocate(region)
    for number in required:
        if region.problem.result_of(number) in plan.spills:
            raise _refused(region, number, "ttl.require_dst: DST has no room for the value, it goes through a buffer")
    if not wanted:
        return region, plan
    for number, register in wanted.items():
        if register >= region.problem.capacity:
            raise _refused(region, number, f"DST register {register} is asked for, an acquire has {region.problem.capacity}")
    parts = tuple(replace(part, allocation=_renamed(part, region, wanted)) for part in plan.parts)
    plan = replace(plan, parts=parts)
    check(region.problem, plan)
    return region, plan


def _refused(region: RegionProblem, number: int, message: str) -> KernelError:
    return fail("TW401", message, span_of(region.ops[number]), help="leave the register out: the compiler chooses one")


def _renamed(part: Part, region: RegionProblem, wanted: dict[int, int]) -> Allocation:
    allocation = part.allocation
    places: dict[int, int] = {}
    made = {step.op: step.target for step in allocation.steps if isinstance(step, Execute)}
    for number, register in wanted.items():
        if number not in made:
            if number in part.ops or len(wanted) == 1:
                raise _refused(region, number, f"DST register {register} is asked for a value that is part of another call")
            continue
        slot = made[number]
        if places.setdefault(slot, register) != register or list(places.values()).count(register) > 1:
            other = places[slot]
            raise _refused(
                region, number,
                f"DST register {register} is asked for, but the call works in place and leaves its result in register {other}"
                if other != register else f"DST register {register} is asked for two values that are needed at the same time",
            )  # fmt: skip
    free = (register for register in range(region.problem.capacity) if register not in places.values())
    for slot in range(allocation.slots):
        if slot not in places:
            places[slot] = next(free)
    steps = tuple(on_slots(step, places.__getitem__) for step in allocation.steps)
    outputs = tuple(places[slot] for slot in allocation.output_slots)
    slots = max(places.values()) + 1
    return replace(allocation, steps=steps, output_slots=outputs, slots=slots, footprint=0, layout=Layout.OP_MAJOR)
