"""The checker refuses what is wrong, names the step, and accepts what is right."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright.dst.checker import CheckError, check
from tilewright.dst.problem import (
    Allocation,
    Copy,
    Execute,
    Form,
    Layout,
    Leaf,
    Load,
    Op,
    Operand,
    Part,
    Place,
    Plan,
    Problem,
    ResultRule,
    Step,
)

DST, BUFFER = Place.DST, Place.BUFFER


def form(operands: list[tuple[int, Place]], rule: ResultRule, **more) -> Form:
    return Form(key="form", operands=tuple(Operand(v, p) for v, p in operands), result=rule, **more)


# Leaves 0, 1; op 0 (value 2) = mul, zeroed from buffers or in DST; op 1 (value 3) = unary of 2; op 2 (value 4) = 2 + 3.
PROBLEM = Problem(
    leaves=(Leaf(), Leaf()),
    ops=(
        Op(
            operands=(0, 1),
            forms=(
                form([(0, BUFFER), (1, BUFFER)], ResultRule.ZEROED),
                form([(0, DST), (1, DST)], ResultRule.FREE),
            ),
        ),
        Op(operands=(2,), forms=(form([(2, DST)], ResultRule.IN_PLACE, reuses=0),)),
        Op(
            operands=(2, 3),
            forms=(
                form([(2, DST), (3, DST)], ResultRule.FREE),
                form([(0, BUFFER), (1, BUFFER), (3, DST)], ResultRule.ACCUMULATE, reuses=2),
            ),
        ),
    ),
    outputs=(4,),
    capacity=8,
)
PROBLEM = replace(PROBLEM, ops=(*PROBLEM.ops[:2], replace(PROBLEM.ops[2], forms=PROBLEM.ops[2].forms[:1])))
GOOD: list[Step] = [
    Execute(0, 0, (None, None), 0),
    Copy(2, 0, 1),
    Execute(1, 0, (1,), 1),
    Execute(2, 0, (0, 1), 0),
]


def plan_of(steps: list[Step], problem: Problem = PROBLEM, **changes) -> Plan:
    settings = {
        "output_slots": (0,),
        "slots": 2,
        "layout": Layout.OP_MAJOR,
        "footprint": 0,
        "tiles_per_acquire": 4,
        **changes,
    }
    part = Part(
        ops=tuple(range(len(problem.ops))),
        leaves=tuple(range(len(problem.leaves))),
        outputs=problem.outputs,
        allocation=Allocation(steps=tuple(steps), **settings),
    )
    return Plan(parts=(part,), allocator="test", exact=False)


def refused(steps: list[Step], step: int | None, reason: str, **changes) -> None:
    with pytest.raises(CheckError, match=reason) as error:
        check(PROBLEM, plan_of(steps, **changes))
    assert error.value.step == step


def test_accepts_a_right_plan() -> None:
    check(PROBLEM, plan_of(GOOD))


def test_dropped_copy() -> None:
    refused([*GOOD[:1], *GOOD[2:]], 1, "never written")


def test_copy_dropped_and_operand_rewired() -> None:
    refused([GOOD[0], Execute(1, 0, (0,), 0), Execute(2, 0, (0, 0), 0)], 2, "holds value 3")


def test_reordered_past_a_destructive_op() -> None:
    refused([GOOD[0], GOOD[1], Execute(2, 0, (0, 1), 0), GOOD[2]], 2, "not value 3")


def test_wrong_output_slot() -> None:
    refused(GOOD, None, "not value 4", output_slots=(1,))


def test_in_place_must_stay_in_place() -> None:
    refused([*GOOD[:2], Execute(1, 0, (1,), 2), *GOOD[3:]], 2, "works in place", slots=3, tiles_per_acquire=2)


def test_accumulating_form_needs_an_untouched_slot() -> None:
    refused([Load(0, 0), *GOOD], 1, "was written before")


def test_capacity_is_counted_over_all_tiles() -> None:
    refused(GOOD, 1, "outside the capacity", tiles_per_acquire=5)


def test_slot_outside_the_allocation() -> None:
    refused(GOOD, 1, "outside the 1 slots", slots=1)


def test_operand_count_and_place() -> None:
    refused([Execute(0, 0, (None,), 0), *GOOD[1:]], 0, "takes 2 operands")
    refused([Execute(0, 0, (0, None), 0), *GOOD[1:]], 0, "comes from a buffer")
    refused([Execute(0, 1, (None, None), 0), *GOOD[1:]], 0, "must be in DST")
    refused([Execute(0, 7, (None, None), 0), *GOOD[1:]], 0, "has no form 7")


def test_tile_major_shares_slots_below_the_footprint() -> None:
    steps = [Load(0, 0), Load(1, 1), Execute(0, 1, (0, 1), 0), Copy(2, 0, 1), Execute(1, 0, (1,), 1)]
    good = [*steps, Execute(2, 0, (0, 1), 2)]
    check(PROBLEM, plan_of(good, output_slots=(2,), slots=3, layout=Layout.TILE_MAJOR, footprint=2, tiles_per_acquire=6))
    with pytest.raises(CheckError, match="of tile 5, not value 4"):
        shared = [*steps, Execute(2, 0, (0, 1), 0)]
        check(PROBLEM, plan_of(shared, layout=Layout.TILE_MAJOR, footprint=2, tiles_per_acquire=6))


def test_tile_major_untouched_slot_may_not_be_shared() -> None:
    steps = [Execute(0, 0, (None, None), 0), Copy(2, 0, 1), Execute(1, 0, (1,), 1), Execute(2, 0, (0, 1), 2)]
    layout = {"output_slots": (2,), "slots": 3, "layout": Layout.TILE_MAJOR, "footprint": 2}
    check(PROBLEM, plan_of(steps, tiles_per_acquire=1, **layout))
    with pytest.raises(CheckError, match="was written before") as error:
        check(PROBLEM, plan_of(steps, tiles_per_acquire=2, **layout))
    assert error.value.step == 0


def test_forms_must_match_the_expression() -> None:
    wrong = replace(PROBLEM.ops[2], forms=(form([(0, DST), (3, DST)], ResultRule.FREE),))
    with pytest.raises(CheckError, match="does not take the operands"):
        check(replace(PROBLEM, ops=(*PROBLEM.ops[:2], wrong)), plan_of(GOOD))
    absorbing = form([(0, BUFFER), (1, BUFFER), (3, DST)], ResultRule.ACCUMULATE, reuses=2, absorbs=(0,))
    fused = replace(PROBLEM, ops=(*PROBLEM.ops[:2], replace(PROBLEM.ops[2], forms=(absorbing,))))
    steps = [*GOOD[:1], Execute(1, 0, (0,), 0), Execute(2, 0, (None, None, 0), 0)]
    check(fused, plan_of(steps, fused))
    repeating = replace(absorbing, absorbs=(), repeats=(0,))
    twice = [*GOOD[:3], Execute(2, 0, (None, None, 1), 1)]
    again = replace(fused, ops=(*fused.ops[:2], replace(fused.ops[2], forms=(repeating,))))
    check(again, plan_of(twice, again, output_slots=(1,)))
    not_inside = replace(absorbing, absorbs=(0, 1))
    with pytest.raises(CheckError, match="does not take the operands"):
        check(replace(fused, ops=(*fused.ops[:2], replace(fused.ops[2], forms=(not_inside,)))), plan_of(steps, fused))


def split_plan(**second) -> Plan:
    first = Part(
        ops=(0, 1),
        leaves=(0, 1),
        outputs=(2, 3),
        spilled=2,
        allocation=Allocation(
            steps=tuple(GOOD[:3]), output_slots=(0, 1), slots=2, layout=Layout.OP_MAJOR, footprint=0, tiles_per_acquire=4
        ),
    )
    rest = {
        "ops": (2,),
        "leaves": (2, 3),
        "outputs": (4,),
        "allocation": Allocation(
            steps=(Load(2, 0), Load(3, 1), Execute(2, 0, (0, 1), 0)),
            output_slots=(0,),
            slots=2,
            layout=Layout.OP_MAJOR,
            footprint=0,
            tiles_per_acquire=4,
        ),
        **second,
    }
    return Plan(parts=(first, Part(**rest)), allocator="test", exact=False, buffers=((2, 0), (3, 1)))


def test_split_parts_read_spilled_values_from_buffers() -> None:
    plan = split_plan()
    check(PROBLEM, plan)
    assert plan.spills == (2, 3)
    with pytest.raises(CheckError, match="nobody filled"):
        check(PROBLEM, replace(plan, parts=tuple(reversed(plan.parts))))
    with pytest.raises(CheckError, match="not in a buffer of this part"):
        check(PROBLEM, split_plan(leaves=(2,)))
    with pytest.raises(CheckError, match="are not the outputs"):
        check(replace(PROBLEM, outputs=(4, 4)), plan)


def test_a_buffer_holds_one_value_from_its_part_to_its_last_reader() -> None:
    plan = split_plan()
    with pytest.raises(CheckError, match="no buffer that is empty"):
        check(PROBLEM, replace(plan, buffers=((2, 0), (3, 0))))
    with pytest.raises(CheckError, match="no buffer that is empty"):
        check(PROBLEM, replace(plan, buffers=((2, 0),)))
    with pytest.raises(CheckError, match="more than 1 intermediate buffers"):
        check(replace(PROBLEM, spill_limit=1), plan)
    with pytest.raises(CheckError, match="never read"):
        check(PROBLEM, replace(plan, parts=plan.parts[:1]))
