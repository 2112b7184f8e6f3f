"""The default allocator: known kernels, choices between forms, layouts and remedies."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest

from tilewright.dst.allocate import allocate, fewest_slots, optimal
from tilewright.dst.checker import check
from tilewright.dst.linear_scan import DoesNotFit
from tilewright.dst.model import PROOF, TRIP, Model
from tilewright.dst.optimizer import Optimizer
from tilewright.dst.problem import Copy, Execute, Form, Layout, Leaf, Load, Op, Operand, Place, Plan, Problem, ResultRule


def keys(problem: Problem, plan: Plan) -> list[str]:
    names = []
    for part in plan.parts:
        for step in part.allocation.steps:
            if isinstance(step, Execute):
                names.append(problem.ops[step.op].forms[step.form].key)
            else:
                names.append("load" if isinstance(step, Load) else "copy")
    return names


def body(bodies, text: str, capacity: int = 8, tiles: int = 64, fpu: bool = True) -> Problem:
    return bodies.BodyBuilder(text, fpu=fpu).problem(capacity, tiles)


def test_multiply_add_runs_on_the_fpu_with_eight_tiles_per_acquire(bodies) -> None:
    problem = body(bodies, "a b c | m=mul a b; s=add m c; y=exp s | y")
    plan = allocate(problem)
    allocation = plan.parts[0].allocation
    assert keys(problem, plan) == ["load", "fpu multiply-add", "exp"]
    assert (allocation.slots, allocation.tiles_per_acquire, allocation.layout) == (1, 8, Layout.OP_MAJOR)
    assert plan.exact and plan.lower_bound == allocation.cycles_per_tile
    assert allocation.math_cycles == 14 + 70 + 676
    assert allocation.cycles_per_tile == 760 + (20 + 37 + 49 + 16) / 8


def test_a_shared_product_is_multiplied_once_and_copied(bodies) -> None:
    problem = body(bodies, "a b | m=mul a b; x=abs m; y=exp m | x y", tiles=4)
    plan = allocate(problem)
    assert sorted(keys(problem, plan)) == sorted(["fpu mul", "copy", "abs", "exp"])
    assert plan.parts[0].allocation.tiles_per_acquire == 4


def test_a_leaf_is_loaded_again_rather_than_copied(bodies) -> None:
    problem = body(bodies, "x | a=abs x; b=exp x | a b")
    plan = allocate(problem)
    assert plan.copies == 0
    assert plan.reloads == 1


@pytest.mark.parametrize("capacity", [4, 8, 16])
def test_benchmark_bodies_are_never_dearer_than_the_other_allocators(bodies, capacity: int) -> None:
    for name in bodies.BODIES:
        problem = bodies.benchmark_problem(name, capacity)
        best = allocate(problem)
        assert len(best.parts) == 1 or (name, capacity) == ("online_softmax_merge", 4)
        for other in (allocate(problem, "lars"), allocate(problem, "linear-scan")):
            if len(other.parts) <= len(best.parts):
                assert best.cycles_per_tile <= other.cycles_per_tile + 1e-6, name


def test_fewest_slots_of_the_benchmark_bodies(bodies) -> None:
    for name, published in bodies.PUBLISHED_SLOTS.items():
        assert fewest_slots(bodies.benchmark_problem(name, 16)) <= published, name


def test_results_that_add_to_their_slot_get_an_untouched_one() -> None:
    """Three FPU products summed in three slots: the third slot was written by a load, so it takes the dearer way."""
    product = Form(
        key="fpu mul",
        operands=(Operand(0, Place.BUFFER), Operand(1, Place.BUFFER)),
        result=ResultRule.ZEROED,
        math_cycles=70,
    )
    reuse = Form(
        key="reuse mul",
        operands=(Operand(0, Place.DST), Operand(1, Place.BUFFER)),
        result=ResultRule.IN_PLACE,
        reuses=0,
        math_cycles=102,
    )
    ops = tuple(Op(operands=(0, 1), forms=(product, reuse)) for _ in range(2))
    total = Form(key="add", operands=(Operand(2, Place.DST), Operand(3, Place.DST)), result=ResultRule.FREE, math_cycles=208)
    more = Form(key="fpu mul", operands=product.operands, result=ResultRule.ZEROED, math_cycles=70)
    problem = Problem(
        leaves=(Leaf(init=""), Leaf(init="")),
        ops=(*ops, Op(operands=(2, 3), forms=(total,)), Op(operands=(0, 1), forms=(more, reuse))),
        outputs=(4, 5),
        capacity=2,
    )
    plan = allocate(problem)
    check(problem, plan)
    assert sorted(keys(problem, plan)) == sorted(["fpu mul", "fpu mul", "add", "load", "reuse mul"])


def test_unpack_bound_bodies_trade_math_for_unpack_cycles() -> None:
    """With a slow unpacker two ops on one leaf load it once, although two buffer forms take less math."""
    def op(other: int, result: int) -> Op:
        from_buffers = Form(
            key="buffers", operands=(Operand(0, Place.BUFFER), Operand(other, Place.BUFFER)),
            result=ResultRule.FREE, math_cycles=14, unpack_cycles=500,
        )  # fmt: skip
        in_dst = Form(
            key="dst", operands=(Operand(0, Place.DST), Operand(other, Place.DST)),
            result=ResultRule.FREE, math_cycles=100,
        )  # fmt: skip
        return Op(operands=(0, other), forms=(from_buffers, in_dst))

    leaves = (Leaf(load_unpack_cycles=100),) * 3
    problem = Problem(leaves=leaves, ops=(op(1, 3), op(2, 4)), outputs=(3, 4), capacity=8, tiles=8)
    plan = allocate(problem)
    assert keys(problem, plan).count("dst") == 2
    assert plan.parts[0].allocation.cycles_per_tile < 500
    assert plan.exact


def test_tile_major_where_one_tile_fills_most_of_dst() -> None:
    """Three inputs and a result at capacity 4: op-major holds one tile, sharing the inputs holds two."""
    operands = tuple(Operand(value, Place.DST) for value in range(3))
    form = Form(key="ternary", operands=operands, result=ResultRule.FREE, math_cycles=300)
    leaf = Leaf(init="")
    problem = Problem(leaves=(leaf,) * 3, ops=(Op(operands=(0, 1, 2), forms=(form,)),), outputs=(3,), capacity=4, tiles=8)
    allocation = allocate(problem).parts[0].allocation
    assert allocation.layout is Layout.TILE_MAJOR
    assert (allocation.footprint, allocation.tiles_per_acquire) == (2, 2)


def test_full_sync_pays_for_the_pack(bodies) -> None:
    problem = body(bodies, "a b | y=mul a b | y")
    half, full = allocate(problem), allocate(replace(problem, full_sync=True, capacity=16))
    assert full.full_sync
    assert full.cycles_per_tile == pytest.approx(70 + 46 + (20 + 49) / 16)
    assert half.cycles_per_tile == pytest.approx(70 + (20 + 49) / 8)


def test_leaves_may_be_outputs_and_outputs_may_repeat(bodies) -> None:
    problem = replace(body(bodies, "a b | y=mul a b | y"), outputs=(2, 0, 2))
    for allocator in ("optimal", "lars", "linear-scan"):
        plan = allocate(problem, allocator)
        assert plan.parts[0].outputs == (2, 0, 2)


def test_ops_nobody_needs_are_not_run(bodies) -> None:
    problem = replace(body(bodies, "a b | x=exp a; y=mul a b | y"), outputs=(3,))
    assert allocate(problem).parts[0].ops == (1,)


def test_recompute_instead_of_holding() -> None:
    """Two slots, two outputs and a value both need: it is computed twice when nothing may be spilled."""
    def in_dst(key: str, *values: int) -> Form:
        rule = ResultRule.IN_PLACE if len(values) == 1 else ResultRule.FREE
        reuses = 0 if len(values) == 1 else None
        operands = tuple(Operand(value, Place.DST) for value in values)
        return Form(key=key, operands=operands, result=rule, reuses=reuses, math_cycles=100)

    # v = exp(a); x = abs(b) needs v later: x + v and x - v are both packed.
    problem = Problem(
        leaves=(Leaf(), Leaf()),
        ops=(
            Op(operands=(0,), forms=(in_dst("exp", 0),)),
            Op(operands=(1,), forms=(in_dst("abs", 1),)),
            Op(operands=(2, 3), forms=(in_dst("add", 2, 3),)),
            Op(operands=(2, 3), forms=(in_dst("sub", 2, 3),)),
        ),
        outputs=(4, 5),
        capacity=3,
        spill_limit=0,
    )
    assert fewest_slots(problem) == 3
    tight = replace(problem, capacity=2)
    plan = allocate(tight)
    assert [remedy.kind for remedy in plan.remedies if remedy.kind in ("recompute", "split")]


def test_a_region_that_does_not_fit_is_split_at_the_cheapest_cut(bodies) -> None:
    """Six values that all wait for their sum, in four slots."""
    lines = "; ".join(f"e{n}=exp i{n}" for n in range(6))
    sums = "s0=sub e0 e1; s1=sub s0 e2; s2=sub s1 e3; s3=sub s2 e4; s4=sub s3 e5"
    tails = "; ".join(f"t{n}=mul s4 e{n}" for n in range(6))
    text = f"{' '.join(f'i{n}' for n in range(6))} | {lines}; {sums}; {tails} | {' '.join(f't{n}' for n in range(6))}"
    problem = body(bodies, text, capacity=4)
    plan = allocate(problem)
    check(problem, plan)
    assert len(plan.parts) > 1
    kinds = [remedy.kind for remedy in plan.remedies]
    assert kinds[-1] == "split"
    assert plan.remedies[-1].cycles > 0
    assert len(allocate(problem).parts) > 1
    assert len(allocate(replace(problem, capacity=16)).parts) == 1


def test_linear_scan_falls_back_and_says_so(bodies) -> None:
    problem = bodies.benchmark_problem("rk4_logistic", 4)
    plan = allocate(problem, "linear-scan")
    assert plan.allocator == "optimal"
    assert any("linear scan needs" in note for note in plan.notes)


def test_an_op_too_large_for_dst_is_an_error() -> None:
    form = Form(key="op", operands=tuple(Operand(v, Place.DST) for v in range(3)), result=ResultRule.FREE)
    small = Form(key="small", operands=(Operand(3, Place.DST),), result=ResultRule.IN_PLACE, reuses=0)
    ops = (Op(operands=(0, 1, 2), forms=(form,), name="select"), Op(operands=(3,), forms=(small,), name="small"))
    problem = Problem(leaves=(Leaf(),) * 3, ops=ops, outputs=(4,), capacity=2)
    for allocator in ("optimal", "linear-scan", "lars"):
        with pytest.raises(DoesNotFit, match="'select' alone needs 3 DST slots; there are 2") as error:
            allocate(problem, allocator)
        assert (error.value.op, error.value.needed) == (0, 3)
    enough = replace(problem, capacity=3)
    check(enough, allocate(enough))


def test_allocation_is_deterministic(bodies) -> None:
    for name in ("fft_butterfly", "online_softmax_merge", "euler_lorenz"):
        problem = bodies.benchmark_problem(name, 4)
        assert allocate(problem) == allocate(problem)


def test_the_problem_is_not_changed_and_costs_are_those_of_the_steps(bodies) -> None:
    problem = bodies.benchmark_problem("adam", 8)
    allocation = allocate(problem).parts[0].allocation
    copies = sum(isinstance(step, Copy) for step in allocation.steps)
    loads = sum(isinstance(step, Load) for step in allocation.steps)
    forms = [problem.ops[s.op].forms[s.form] for s in allocation.steps if isinstance(s, Execute)]
    assert allocation.math_cycles == 133 * copies + 14 * loads + sum(form.math_cycles for form in forms)
    assert allocation.unpack_cycles == 40 * loads + sum(form.unpack_cycles for form in forms)
    assert allocation.pack_cycles == 46 * 3


def test_heuristic_above_the_size_limit_says_so(bodies) -> None:
    problem = bodies.benchmark_problem("black_scholes", 8)
    exact, quick = optimal(problem), optimal(problem, size_limit=10)
    check(problem, quick)
    assert not quick.exact
    assert "above the exact limit" in quick.notes[0]
    assert quick.cycles_per_tile <= 1.05 * exact.cycles_per_tile


def test_a_body_of_two_thousand_ops_is_allocated(bodies) -> None:
    lines = "; ".join(f"v{n}={'exp' if n % 3 else 'neg'} {f'v{n - 1}' if n else 'x'}" for n in range(1999))
    problem = body(bodies, f"x y | {lines}; z=mul v1998 y | z")
    plan = allocate(problem)
    assert plan.parts[0].allocation.slots == 1
    assert len(plan.parts) == 1


def test_a_copy_in_dst_is_taken_where_it_is_cheaper_than_a_load(bodies) -> None:
    problem = body(bodies, "x | a=abs x; b=exp x | a b")
    assert allocate(problem).copies == 0
    assert allocate(replace(problem, costs=replace(bodies.COSTS, copy=1))).copies == 1


def test_unproved_plans_say_what_is_proved(bodies) -> None:
    problem = bodies.BodyBuilder(bodies.random_text(0, 44)).problem(16, 64)
    plan = optimal(problem, effort=TRIP)
    assert not plan.exact
    assert 0 < plan.lower_bound <= plan.cycles_per_tile
    assert any("above the optimum" in note for note in plan.notes)
    assert optimal(bodies.benchmark_problem("euler_lorenz", 8), effort=PROOF).exact


def test_a_plan_below_a_limit_is_found_if_there_is_one(fuzz) -> None:
    """A limit spares searches and hides no plan in one part that costs less."""
    compared = 0
    for seed in range(60):
        problem = fuzz.random_problem(seed, most_ops=8)
        try:
            plan = optimal(problem, whole=True)
        except DoesNotFit:
            continue
        limited = optimal(problem, whole=True, below=plan.cycles_per_tile + 0.5)
        assert limited.cycles_per_tile <= plan.cycles_per_tile + 1e-6, f"seed {seed}"
        compared += 1
    assert compared > 30


def test_one_op_alone_is_answered_as_the_search_answers(fuzz, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = [fuzz.random_problem(seed, most_ops=1) for seed in range(300)]
    found = [_plan_or_none(problem) for problem in alone]
    answered = [Optimizer(Model(problem), effort=PROOF)._of_one_op() is not None for problem in alone]
    assert any(answered)
    monkeypatch.setattr(Optimizer, "_of_one_op", lambda self: None)
    assert found == [_plan_or_none(problem) for problem in alone]


def _plan_or_none(problem: Problem) -> Plan | None:
    with contextlib.suppress(DoesNotFit):
        return optimal(problem)
    return None
