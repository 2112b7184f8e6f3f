"""Values that go through a buffer because that costs less than a copy, or than a product of two tiles in DST."""

from __future__ import annotations

from dataclasses import replace

from tilewright.dst.allocate import allocate
from tilewright.dst.checker import check
from tilewright.dst.round_trips import exposed_cycles, saving

SHARED_PRODUCT = "a b | m=mul a b; x=abs m; y=exp m | x y"


def body(bodies, text: str, capacity: int = 8, tiles: int = 64):
    return bodies.BodyBuilder(text, round_trips=True).problem(capacity, tiles)


def test_a_round_trip_replaces_a_copy(bodies) -> None:
    """Pack and load again (14 cycles twice) against a copy (133): one multiply, no copy."""
    problem = body(bodies, SHARED_PRODUCT, tiles=4)
    plan = allocate(problem)
    check(problem, plan)
    assert [len(part.ops) for part in plan.parts] == [1, 2]
    assert plan.copies == 0 and plan.spills == (2,)
    math = sum(part.allocation.math_cycles for part in plan.parts)
    assert math == 70 + 14 + 14 + 144 + 676
    assert "1 value through a buffer by choice" in plan.notes[0]


def test_a_product_of_computed_tiles_reads_them_from_buffers(bodies) -> None:
    problem = body(bodies, "a b | g=exp a; s=add g b; t=tanh s; y=mul g t | y")
    plan = allocate(problem)
    check(problem, plan)
    keys = [
        problem.ops[step.op].forms[step.form].key
        for part in plan.parts for step in part.allocation.steps if hasattr(step, "form")
    ]  # fmt: skip
    assert "fpu mul" in keys and "sfpu mul" not in keys
    assert exposed_cycles(problem, plan.parts) < exposed_cycles(problem, allocate(replace(problem, round_trips=0)).parts)


def test_none_where_it_does_not_pay_or_is_not_allowed(bodies) -> None:
    problem = body(bodies, SHARED_PRODUCT, tiles=4)
    assert len(allocate(replace(problem, round_trips=0)).parts) == 1
    assert len(allocate(replace(problem, costs=replace(bodies.COSTS, copy=20))).parts) == 1
    assert len(allocate(body(bodies, "a b c | m=mul a b; s=add m c; y=exp s | y")).parts) == 1


def test_a_round_trip_has_to_save_what_is_asked_for(bodies) -> None:
    text = "a b | g=exp a; s=add g b; t=tanh s; y=mul g t | y"
    problem = body(bodies, text)
    kept = allocate(replace(problem, round_trips=0))
    saved = saving(problem, allocate(problem).parts, kept.parts)
    assert 0.3 < 1 - exposed_cycles(problem, allocate(problem).parts) / exposed_cycles(problem, kept.parts) < saved < 1
    assert len(allocate(replace(problem, round_trip_saving=saved - 0.01)).parts) == 3
    refused = allocate(replace(problem, round_trip_saving=saved + 0.01))
    assert refused.parts == kept.parts and "2 values through a buffer would cost" in refused.notes[-1]


def test_any_saving_counts_where_the_copy_costs_more_than_the_value(bodies) -> None:
    """``a * b`` takes 70 cycles, a copy of it 133: holding it in DST would lose against computing it twice."""
    problem = replace(body(bodies, SHARED_PRODUCT, tiles=4), round_trip_saving=0.9)
    assert allocate(problem).spills == (2,)
    dear = body(bodies, "a b | m=exp a; x=abs m; y=exp m | x y")
    assert allocate(dear).spills and not allocate(replace(dear, round_trip_saving=0.9)).spills


def test_packing_that_nothing_hides_is_paid(bodies) -> None:
    """A block of one section is waited for until its first tile has come through; of many, the first have done so long before."""
    costs = [exposed_cycles(p, allocate(p).parts) for p in (body(bodies, SHARED_PRODUCT, tiles=n) for n in (4, 64))]
    assert costs[0] - costs[1] > 40


def test_benchmark_bodies_hardly_copy_and_cost_no_more(bodies) -> None:
    copies = 0
    for name in bodies.BODIES:
        problem = bodies.benchmark_problem(name, 4, round_trips=True)
        plan, whole = allocate(problem), allocate(replace(problem, round_trips=0))
        check(problem, plan)
        copies += plan.copies
        assert plan.copies <= whole.copies, name
        assert exposed_cycles(problem, plan.parts) <= exposed_cycles(problem, whole.parts) + 1e-6, name
    assert copies <= 1


def test_an_output_that_is_read_again_is_packed_twice(bodies) -> None:
    problem = body(bodies, "a b | m=mul a b; x=exp m; y=mul x m | m y")
    plan = allocate(problem)
    check(problem, plan)
    if len(plan.parts) > 1:
        first = plan.parts[0]
        assert first.outputs.count(2) == 2 and first.spilled == 1


def test_copies_of_the_published_model(bodies) -> None:
    """With the vector unit alone the cheapest plans at 4 slots make the published 11 copies and split two bodies."""
    plans = [allocate(bodies.benchmark_problem(name, 4, fpu=False)) for name in bodies.BODIES]
    assert sum(plan.copies for plan in plans) <= 11
    assert sum(len(plan.parts) > 1 for plan in plans) <= 2
