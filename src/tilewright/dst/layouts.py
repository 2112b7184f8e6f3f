"""Tile-major layout: the same steps with the slots of inputs and intermediates shared by all tiles of an acquire.

Op-major runs each op over all tiles and pays each init once per acquire, but every tile needs all its slots.
Tile-major pays the inits for every tile; only outputs, and results that need an untouched slot, keep a slot per tile.
It wins where one tile alone fills more than half of DST.
"""

from __future__ import annotations

from tilewright.dst.allocation import Allocation, Copy, Execute, Layout, Load, Step
from tilewright.dst.cost import priced_allocation
from tilewright.dst.problem import Problem, ResultRule


def tile_major(problem: Problem, allocation: Allocation, spilled: int) -> Allocation | None:
    """The tile-major form of an op-major allocation, or None if it holds no more tiles."""
    private = private_slots(problem, allocation)
    footprint = allocation.slots - len(private)
    if not private:
        return None
    tiles = min((problem.capacity - footprint) // len(private), problem.tiles)
    if tiles <= allocation.tiles_per_acquire:
        return None
    shared = [slot for slot in range(allocation.slots) if slot not in private]
    renamed = {slot: number for number, slot in enumerate([*shared, *sorted(private)])}
    return priced_allocation(
        problem,
        [_rename(step, renamed) for step in allocation.steps],
        [renamed[slot] for slot in allocation.output_slots],
        slots=allocation.slots,
        layout=Layout.TILE_MAJOR,
        footprint=footprint,
        tiles=tiles,
        spilled=spilled,
    )


def private_slots(problem: Problem, allocation: Allocation) -> set[int]:
    """Slots that hold an output at the end or must be untouched since the acquire when a result is added to them."""
    private = set(allocation.output_slots)
    for step in allocation.steps:
        if isinstance(step, Execute) and problem.ops[step.op].forms[step.form].result is ResultRule.ZEROED:
            private.add(step.target)
    return private


def _rename(step: Step, renamed: dict[int, int]) -> Step:
    if isinstance(step, Load):
        return Load(step.leaf, renamed[step.slot])
    if isinstance(step, Copy):
        return Copy(step.value, renamed[step.source], renamed[step.target])
    slots = tuple(None if slot is None else renamed[slot] for slot in step.slots)
    return Execute(step.op, step.form, slots, renamed[step.target])
