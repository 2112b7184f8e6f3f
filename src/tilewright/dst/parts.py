"""Parts and plans from steps: which ops and buffer values a part touches, and how plans compare."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.dst.allocation import Allocation, Execute, Layout, Load, Part, Step
from tilewright.dst.cost import priced_allocation
from tilewright.dst.layouts import tile_major
from tilewright.dst.problem import Place, Problem

Rank = tuple[float, int, int, int]


def part_of(problem: Problem, allocation: Allocation, outputs: Sequence[int], spilled: int = 0) -> Part:
    """The part that runs ``allocation``; ops and leaves are read off its steps."""
    ops: set[int] = set()
    leaves: set[int] = set()
    for step in allocation.steps:
        if isinstance(step, Load):
            leaves.add(step.leaf)
        elif isinstance(step, Execute):
            form = problem.ops[step.op].forms[step.form]
            ops.add(step.op)
            ops.update(form.absorbs)
            leaves.update(o.value for o in form.operands if o.place is Place.BUFFER)
    return Part(
        ops=tuple(sorted(ops)),
        leaves=tuple(sorted(leaves)),
        outputs=tuple(outputs),
        allocation=allocation,
        spilled=spilled,
    )


def without_unread_spills(problem: Problem, parts: Sequence[Part]) -> tuple[Part, ...]:
    """A later part may have computed a value again, in a form that repeats its op: then nobody reads its buffer."""
    kept: list[Part] = []
    read: set[int] = set()
    for part in reversed(parts):
        wanted = [number for number, value in enumerate(part.outputs) if number >= part.spilled or value in read]
        if len(wanted) < len(part.outputs):
            old = part.allocation
            spilled = len(wanted) - (len(part.outputs) - part.spilled)
            slots = [old.output_slots[number] for number in wanted]
            allocation = priced_allocation(
                problem, old.steps, slots, slots=old.slots, layout=old.layout, footprint=old.footprint,
                tiles=old.tiles_per_acquire, spilled=spilled,
            )  # fmt: skip
            part = part_of(problem, allocation, [part.outputs[number] for number in wanted], spilled)
        if part.outputs:
            kept.append(part)
            read.update(part.leaves)
    return tuple(reversed(kept))


def best_layout(
    problem: Problem, steps: Sequence[Step], output_slots: Sequence[int], slots: int, spilled: int
) -> Allocation:
    """The steps with as many tiles per acquire as fit, op-major or tile-major, whichever costs less."""
    used = max(slots, 1)
    op_major = priced_allocation(
        problem,
        steps,
        output_slots,
        slots=used,
        layout=Layout.OP_MAJOR,
        footprint=0,
        tiles=min(problem.capacity // used, problem.tiles),
        spilled=spilled,
    )
    other = tile_major(problem, op_major, spilled)
    return op_major if other is None or rank(op_major) <= rank(other) else other


def rank(allocation: Allocation) -> Rank:
    """Smaller is better: cycles, then copies, then more tiles per acquire, then init switches."""
    cycles = round(allocation.cycles_per_tile, 6)
    return (cycles, allocation.copies, -allocation.tiles_per_acquire, allocation.init_switches)


def rank_of_parts(parts: Sequence[Part]) -> Rank:
    allocations = [part.allocation for part in parts]
    cycles = round(sum(a.cycles_per_tile for a in allocations), 6)
    fewest = min(a.tiles_per_acquire for a in allocations)
    return (cycles, sum(a.copies for a in allocations), -fewest, sum(a.init_switches for a in allocations))


def budgets(capacity: int, tiles: int) -> list[tuple[int, int]]:
    """(tiles per acquire, slots per tile) worth trying: for each slot budget the most tiles, most tiles first."""
    best: dict[int, int] = {}
    for count in range(1, min(capacity, tiles) + 1):
        best[capacity // count] = count
    return sorted(((count, slots) for slots, count in best.items()), reverse=True)
