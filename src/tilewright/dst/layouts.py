"""From steps to parts with a price: the cycle model, how many tiles share an acquire, and how plans compare.

``T = max(unpack, pack, math + (sync + inits) / U)`` with half sync, where the packer works beside the math thread,
and ``T = max(unpack, math + pack + (sync + inits) / U)`` with full sync, where it does not. ``U`` is the number of
tiles per acquire. An init is paid whenever a step needs another one than the step before it; every acquire starts
without one.

Op-major runs each op over all tiles and pays each init once per acquire, but every tile needs all its slots.
Tile-major pays the inits for every tile; only outputs, and results that need an untouched slot, keep a slot per tile.
It wins where one tile alone fills more than half of DST.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilewright.dst.allocation import Allocation, Copy, Execute, Layout, Load, Part, Step, on_slots
from tilewright.dst.problem import Leaf, Place, Problem, ResultRule

# The cycle model ------------------------------------------------------------------------------------------------------


SPILLED_LEAF_NAME = "spilled value"


def leaf_of(problem: Problem, value: int) -> Leaf:
    """How a value in a buffer is loaded; a spilled value loads like a leaf, at the unpack cost of a spill."""
    return problem.leaves[value] if problem.is_leaf(value) else spilled_leaf(problem)


def spilled_leaf(problem: Problem) -> Leaf:
    model = problem.leaves[0] if problem.leaves else Leaf()
    return Leaf(
        name=SPILLED_LEAF_NAME,
        load_math_cycles=model.load_math_cycles,
        load_unpack_cycles=problem.costs.spill_unpack,
        init=model.init,
        init_cycles=model.init_cycles,
    )


def step_cost(problem: Problem, step: Step) -> tuple[int, int, str, int]:
    """Math cycles, unpack cycles, init key and init cycles of one step."""
    if isinstance(step, Load):
        leaf = leaf_of(problem, step.leaf)
        return leaf.load_math_cycles, leaf.load_unpack_cycles, leaf.init, leaf.init_cycles
    if isinstance(step, Copy):
        return problem.costs.copy, 0, problem.costs.copy_init, problem.costs.copy_init_cycles
    form = problem.ops[step.op].forms[step.form]
    return form.math_cycles, form.unpack_cycles, form.init, form.init_cycles


def init_cost(sequence: Iterable[tuple[str, int]], current: str = "") -> tuple[int, int, str]:
    """Cycles and number of init switches over (key, cycles) pairs, and the init in force at the end."""
    cycles = switches = 0
    for key, price in sequence:
        if key and key != current:
            current = key
            cycles += price
            switches += 1
    return cycles, switches, current


def modelled_cycles(problem: Problem, *, math: int, unpack: int, pack: int, inits: int, tiles: int) -> float:
    exposed = math + (problem.costs.sync + inits) / tiles
    if problem.full_sync and problem.costs.full_sync_serialises_pack:
        return max(unpack, exposed + pack)
    return max(unpack, pack, exposed)


def priced_allocation(
    problem: Problem,
    steps: Sequence[Step],
    output_slots: Sequence[int],
    *,
    slots: int,
    layout: Layout,
    footprint: int,
    tiles: int,
    spilled: int = 0,
) -> Allocation:
    """An allocation with all its cost fields set. Every spill adds its buffer handshake to the tile."""
    costs = [step_cost(problem, step) for step in steps]
    keys = [(key, cycles) for _, _, key, cycles in costs]
    inits, switches, last = init_cost(keys)
    if layout is Layout.TILE_MAJOR and tiles > 1:
        again, again_switches, _ = init_cost([pair for pair in keys if pair[0] not in problem.lasting_inits], last)
        inits += again * (tiles - 1)
        switches += again_switches * (tiles - 1)
    math = sum(cost[0] for cost in costs)
    unpack = sum(cost[1] for cost in costs)
    pack = problem.costs.pack * len(output_slots)
    cycles = modelled_cycles(problem, math=math, unpack=unpack, pack=pack, inits=inits, tiles=tiles)
    return Allocation(
        steps=tuple(steps),
        output_slots=tuple(output_slots),
        slots=slots,
        layout=layout,
        footprint=footprint,
        tiles_per_acquire=tiles,
        math_cycles=math,
        unpack_cycles=unpack,
        pack_cycles=pack,
        init_cycles=inits,
        init_switches=switches,
        cycles_per_tile=cycles + problem.costs.spill_overhead * spilled,
    )


# Tile-major -----------------------------------------------------------------------------------------------------------


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
        [on_slots(step, renamed.__getitem__) for step in allocation.steps],
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


# Parts ----------------------------------------------------------------------------------------------------------------


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
