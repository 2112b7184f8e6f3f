"""Phase 0: valid, deterministic, and better than source order where it should be."""

from __future__ import annotations

import random

import pytest

from tilewright.dst.linear_scan import lars_order
from tilewright.dst.problem import Form, Leaf, Op, Operand, Place, Problem, ResultRule


def problem_of(operands: list[tuple[int, ...]], leaves: int, outputs: tuple[int, ...]) -> Problem:
    ops = []
    for row in operands:
        unary = len(row) == 1
        form = Form(
            key="op",
            operands=tuple(Operand(value, Place.DST) for value in row),
            result=ResultRule.IN_PLACE if unary else ResultRule.FREE,
            reuses=0 if unary else None,
        )
        ops.append(Op(operands=row, forms=(form,)))
    return Problem(leaves=(Leaf(),) * leaves, ops=tuple(ops), outputs=outputs, capacity=8)


def test_unary_consumer_of_a_shared_value_comes_last() -> None:
    """The example of phase 0: mul, then add before abs."""
    problem = problem_of([(0, 1), (3,), (3, 2)], 3, (4, 5))
    assert lars_order(problem) == [0, 2, 1]


def test_release_potential_comes_first() -> None:
    # Op 1 ends two values, op 0 none, although op 0 stands earlier in the source.
    problem = problem_of([(0, 1), (2, 3), (0, 4), (1, 6)], 4, (5, 7))
    assert lars_order(problem)[0] == 1


def test_a_tree_is_finished_branch_by_branch() -> None:
    """A balanced sum of eight leaves needs few live values: no order that runs all four pair sums first."""
    problem = problem_of([(0, 1), (2, 3), (4, 5), (6, 7), (8, 9), (10, 11), (12, 13)], 8, (14,))
    order = lars_order(problem)
    assert order.index(4) < order.index(3)


@pytest.mark.parametrize("ordering", ["adaptive", "spec"])
def test_order_is_valid_and_deterministic(ordering) -> None:
    choose = random.Random(5)
    operands = [tuple(choose.randrange(4 + op) for _ in range(choose.choice((1, 2, 2)))) for op in range(200)]
    problem = problem_of(operands, 4, (203,))
    order = lars_order(problem, ordering)
    assert sorted(order) == list(range(200))
    assert order == lars_order(problem, ordering)
    position = {4 + op: place for place, op in enumerate(order)}
    for op, row in enumerate(operands):
        assert all(value < 4 or position[value] < position[4 + op] for value in row)


def test_adaptive_ordering_changes_only_bodies_with_much_reuse() -> None:
    chain = problem_of([(0,), (1,), (2,)], 1, (3,))
    assert lars_order(chain, "adaptive") == lars_order(chain, "spec")
    reuse = problem_of([(0, 1), (0, 2), (1, 2), (0, 3), (1, 4), (2, 5), (3, 5), (6, 7), (8, 9)], 2, (10,))
    assert sorted(lars_order(reuse, "adaptive")) == sorted(lars_order(reuse, "spec"))
