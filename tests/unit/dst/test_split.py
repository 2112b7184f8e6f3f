"""Values that travel between parts take turns in buffers, as few as are occupied at once, of one format each."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright.dst.allocate import allocate
from tilewright.dst.checker import CheckError, check
from tilewright.dst.linear_scan import DoesNotFit
from tilewright.dst.problem import Form, Op, Operand, Place, Problem, ResultRule
from tilewright.dst.round_trips import assign_buffers

# Every value is wanted at the end again, so most of them wait while the rest is computed.
WAITING = 12


def waiting_body(bodies, capacity: int) -> Problem:
    first = "; ".join(f"e{n}=exp i{n}" for n in range(WAITING))
    total = "; ".join(f"s{n}=sub {'e0' if n == 1 else f's{n - 1}'} e{n}" for n in range(1, WAITING))
    last = "; ".join(f"t{n}=sub s{WAITING - 1} e{n}" for n in range(WAITING))
    outputs = " ".join(f"t{n}" for n in range(WAITING))
    return bodies.BodyBuilder(f"{' '.join(f'i{n}' for n in range(WAITING))} | {first}; {total}; {last} | {outputs}").problem(capacity)


def stored(*formats: str) -> Problem:
    form = Form(key="op", operands=(Operand(0, Place.DST),), result=ResultRule.FREE)
    return Problem(leaves=(), ops=tuple(Op(operands=(0,), forms=(form,), storage=kind) for kind in formats), outputs=(), capacity=1)


def test_a_buffer_is_taken_again_after_its_last_reader() -> None:
    lives = [(0, 0, 1), (1, 0, 3), (2, 1, 2), (3, 2, 3)]
    # Value 3 is packed by the part after the last one that reads value 0; value 2 by that very part.
    assert assign_buffers(stored("", "", "", ""), lives) == ((0, 0), (1, 1), (2, 2), (3, 0))


def test_values_of_different_formats_share_no_buffer() -> None:
    lives = [(0, 0, 1), (1, 2, 3), (2, 4, 5)]
    assert assign_buffers(stored("bf16", "f32", "bf16"), lives) == ((0, 0), (1, 1), (2, 0))


@pytest.mark.parametrize("limit", [32, 14, 12])
def test_a_split_stays_within_the_buffers_there_are(bodies, limit: int) -> None:
    problem = replace(waiting_body(bodies, 4), spill_limit=limit)
    plan = allocate(problem)
    check(problem, plan)
    assert len(plan.parts) > 1
    assert len({buffer for _, buffer in plan.buffers}) <= limit


def test_where_buffers_are_short_the_answer_says_how_many_would_do(bodies) -> None:
    problem = waiting_body(bodies, 4)
    problem = replace(problem, ops=tuple(replace(op, forms=op.forms[:1]) for op in problem.ops), spill_limit=0)
    try:
        plan = allocate(problem)
    except DoesNotFit as error:
        assert error.buffers > 0
        assert f"there is room for {problem.spill_limit}" in str(error)
    else:  # computed again instead
        assert not plan.spills


def test_the_checker_sees_a_buffer_that_is_used_too_early(bodies) -> None:
    problem = waiting_body(bodies, 4)
    plan = allocate(problem)
    (first, _), (second, _), *rest = plan.buffers
    with pytest.raises(CheckError, match="no buffer that is empty"):
        check(problem, replace(plan, buffers=((first, 0), (second, 0), *rest)))
