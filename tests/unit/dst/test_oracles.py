"""``optimal`` against two oracles that share nothing with it: constraint programming and exhaustive search."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tilewright.dst.allocate import fewest_slots, optimal
from tilewright.dst.linear_scan import DoesNotFit
from tilewright.dst.model import PROOF
from tilewright.dst.problem import Costs, Execute, Form, Layout, Leaf, Op, Operand, Place, Problem, ResultRule

RANDOM_BODIES = 200
EXHAUSTIVE_SEEDS = 300


def copies_only(problem: Problem, capacity: int) -> Problem:
    """The same body where nothing costs anything but a copy."""
    ops = tuple(
        replace(op, forms=tuple(replace(f, math_cycles=0, unpack_cycles=0, init="") for f in op.forms))
        for op in problem.ops
    )
    leaf = Leaf(load_math_cycles=0, load_unpack_cycles=0, init="")
    costs = Costs(sync=0, copy=1, copy_init="", pack=0)
    return replace(
        problem, leaves=(leaf,) * len(problem.leaves), ops=ops, costs=costs, capacity=capacity, tiles=1
    )


def random_body(seed: int) -> Problem:
    """4 to 20 ops, half of them in place, one to four outputs."""
    choose = random.Random(seed)
    leaves, count = choose.randint(1, 6), choose.randint(4, 20)
    ops = []
    for op in range(count):
        values = leaves + op
        picked = tuple(choose.randrange(max(0, values - 7), values) for _ in range(choose.choice((1, 2))))
        unary = len(picked) == 1
        form = Form(
            key="op",
            operands=tuple(Operand(value, Place.DST) for value in picked),
            result=ResultRule.IN_PLACE if unary else ResultRule.FREE,
            reuses=0 if unary else None,
        )
        ops.append(Op(operands=picked, forms=(form,)))
    used = {value for op in ops for value in op.operands}
    outputs = tuple(v for v in range(leaves, leaves + count) if v not in used)
    return Problem(leaves=(Leaf(),) * leaves, ops=tuple(ops), outputs=outputs, capacity=16)


def agree(problem: Problem, oracle) -> None:
    slots = fewest_slots(problem)
    assert slots == oracle.fewest_slots(problem)
    for capacity in (slots, slots + 1):
        plan = optimal(copies_only(problem, capacity))
        assert len(plan.parts) == 1 and plan.exact
        assert plan.copies == oracle.fewest_copies(problem, capacity)


@pytest.mark.parametrize("number", range(26))
def test_constraint_oracle_agrees_on_the_benchmark_bodies(bodies, constraint_oracle, number: int) -> None:
    name = list(bodies.BODIES)[number]
    problem = bodies.benchmark_problem(name, 16, fpu=False)
    # The oracle's model has one form per op: where writes a free slot.
    problem = replace(problem, ops=tuple(replace(op, forms=op.forms[:1]) for op in problem.ops))
    agree(problem, constraint_oracle)


@pytest.mark.parametrize("block", range(10))
def test_constraint_oracle_agrees_on_random_bodies(constraint_oracle, block: int) -> None:
    each = RANDOM_BODIES // 10
    for seed in range(block * each, (block + 1) * each):
        agree(random_body(seed), constraint_oracle)


def tiny_problem(fuzz, seed: int) -> Problem | None:
    """Small enough for exhaustive search, with every kind of form and init."""
    problem = fuzz.random_problem(seed, most_ops=4)
    capacity = seed % 3 + 1 if seed % 4 else 4
    if len(problem.leaves) > 3 or (capacity == 4 and len(problem.ops) > 3):
        return None
    return replace(problem, capacity=capacity, tiles=min(problem.tiles, 7))


@pytest.mark.parametrize("block", range(5))
def test_exhaustive_oracle_agrees_on_cycles(fuzz, exhaustive, block: int) -> None:
    """Forms, orders, loads, copies, inits, unpack-bound cases: the modelled cycles are the least there are."""
    compared = 0
    each = EXHAUSTIVE_SEEDS // 5
    for seed in range(block * each, (block + 1) * each):
        problem = tiny_problem(fuzz, seed)
        if problem is None:
            continue
        compared += 1
        least = exhaustive.least_cycles(problem)
        try:
            plan = optimal(problem, effort=PROOF)
        except DoesNotFit:
            assert least is None, seed
            continue
        if least is None:
            assert len(plan.parts) > 1 or recomputes(plan), seed
            continue
        assert len(plan.parts) == 1, seed
        if plan.parts[0].allocation.layout is Layout.TILE_MAJOR:
            assert plan.cycles_per_tile <= least + 1e-6, seed  # the oracle knows the op-major layout only
        else:
            assert plan.cycles_per_tile == pytest.approx(least), seed
    assert compared > each // 4


def recomputes(plan) -> bool:
    ops = [step.op for step in plan.parts[0].allocation.steps if isinstance(step, Execute)]
    return len(set(ops)) < len(ops)
