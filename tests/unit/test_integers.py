"""Folding and bounds of integer expressions agree with Python on every value of the leaves."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.integers import ARITHMETIC, COMPARISONS, Leaf, Node, bounds, constant_difference, is_dynamic, make

X = Leaf(0, "x", 0, 4)
Y = Leaf(1, "y", -2, 3)


def evaluate(value, x, y):
    if isinstance(value, Leaf):
        return x if value is X else y
    if not isinstance(value, Node):
        return value
    args = [evaluate(arg, x, y) for arg in value.args]
    if value.op == "select":
        return args[1] if args[0] else args[2]
    if value.op in ("and", "or", "not"):
        return {"and": all(args), "or": any(args), "not": not args[0]}[value.op]
    return (ARITHMETIC.get(value.op) or COMPARISONS[value.op])(*args)


POINTS = list(itertools.product(range(5), range(-2, 4)))
integers = st.recursive(
    st.sampled_from([X, Y]) | st.integers(-4, 6),
    lambda inner: (
        st.tuples(st.sampled_from("+-*"), inner, inner)
        | st.tuples(st.sampled_from(["min", "max"]), inner, inner)
        | st.tuples(st.sampled_from(["//", "%"]), inner, st.integers(1, 5))
    ),
    max_leaves=8,
)


def folded(tree):
    return make(tree[0], *(folded(part) for part in tree[1:])) if isinstance(tree, tuple) else tree


def plain(tree):
    return Node(tree[0], tuple(plain(part) for part in tree[1:])) if isinstance(tree, tuple) else tree


@settings(max_examples=300, deadline=None)
@given(integers)
def test_folding_keeps_the_value_and_bounds_hold(tree):
    value, reference = folded(tree), plain(tree)
    low, high = bounds(value)
    for x, y in POINTS:
        expected = evaluate(reference, x, y)
        assert evaluate(value, x, y) == expected
        assert low <= expected <= high


@settings(max_examples=200, deadline=None)
@given(integers, integers, st.sampled_from(sorted(COMPARISONS)))
def test_decided_comparisons_are_right(left, right, symbol):
    value = make(symbol, folded(left), folded(right))
    for x, y in POINTS:
        expected = COMPARISONS[symbol](evaluate(plain(left), x, y), evaluate(plain(right), x, y))
        assert bool(evaluate(value, x, y)) == expected


@settings(max_examples=200, deadline=None)
@given(integers, integers)
def test_constant_difference(left, right):
    found = constant_difference(folded(left), folded(right))
    differences = {evaluate(plain(left), x, y) - evaluate(plain(right), x, y) for x, y in POINTS}
    assert found is None or differences == {found}


def test_affine_ends_of_slices_are_recognised():
    twice = make("*", X, 2)
    assert constant_difference(make("*", make("+", X, 1), 2), twice) == 2
    assert constant_difference(make("+", make("+", make("//", Y, 2), X), 3), make("+", X, make("//", Y, 2))) == 3
    assert constant_difference(twice, X) is None


def test_logic_folds():
    test = make("<", X, 2)
    assert make("and", True, test) is test and make("and", test, False) is False
    assert make("or", test, True) is True and make("or", False, test) is test
    assert make("select", test, 3, 3) == 3 and make("not", True) is False
    assert make("<", X, 5) is True and make(">=", Y, 4) is False and is_dynamic(make("<", X, 4))
