"""The cycle model: what a sequence of steps costs per tile.

``T = max(unpack, pack, math + (sync + inits) / U)`` with half sync, where the packer works beside the math thread,
and ``T = max(unpack, math + pack + (sync + inits) / U)`` with full sync, where it does not. ``U`` is the number of
tiles per acquire. An init is paid whenever a step needs another one than the step before it; every acquire starts
without one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilewright.dst.allocation import Allocation, Copy, Layout, Load, Step
from tilewright.dst.problem import Leaf, Problem

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
