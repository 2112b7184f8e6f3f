"""Folding and bounds of integer expressions agree with Python on every value of the leaves."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.integers import (
    ARITHMETIC,
    COMPARISONS,
    FORMS,
    PREDICATES,
    PYTHON_NAMES,
    Leaf,
    Node,
    bounds,
    constant_difference,
    interval,
    is_dynamic,
    make,
    python_text,
)

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


@settings(max_examples=300)
@given(integers)
def test_folding_keeps_the_value_and_bounds_hold(tree):
    value, reference = folded(tree), plain(tree)
    low, high = bounds(value)
    for x, y in POINTS:
        expected = evaluate(reference, x, y)
        assert evaluate(value, x, y) == expected
        assert low <= expected <= high


@settings(max_examples=200)
@given(integers, integers, st.sampled_from(sorted(COMPARISONS)))
def test_decided_comparisons_are_right(left, right, symbol):
    value = make(symbol, folded(left), folded(right))
    for x, y in POINTS:
        expected = COMPARISONS[symbol](evaluate(plain(left), x, y), evaluate(plain(right), x, y))
        assert bool(evaluate(value, x, y)) == expected


@settings(max_examples=200)
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


NUMBERS = st.integers(-40, 40)
POSITIVE = st.integers(1, 12)


@given(st.sampled_from(sorted(ARITHMETIC)), NUMBERS, NUMBERS, POSITIVE, POSITIVE, st.data())
def test_intervals_hold_what_the_operation_gives(op, low, other, length, size, data):
    first, second = (low, low + length), (abs(other) + 1, abs(other) + size) if op in ("//", "%") else (other, other + size)
    left, right = data.draw(st.integers(*first)), data.draw(st.integers(*second))
    found = interval(op, first, second)
    assert found is not None
    assert found[0] <= ARITHMETIC[op](left, right) <= found[1]


def test_an_op_of_the_ir_means_the_same_in_python_and_in_expressions():
    for name, form in FORMS.items():
        if form.symbol in ARITHMETIC:
            for left, right in itertools.product(range(9), range(1, 5)):
                text = python_text(name, None, (str(left), str(right)))
                assert eval(text, dict(PYTHON_NAMES)) == make(form.symbol, left, right)
    for number, symbol in enumerate(PREDICATES):
        assert eval(python_text("arith.cmpi", number, ("2", "3")), dict(PYTHON_NAMES)) == COMPARISONS[symbol](2, 3)
    assert eval(python_text("arith.divsi", None, ("-7", "2")), dict(PYTHON_NAMES)) == -3
    assert eval(python_text("arith.remsi", None, ("-7", "2")), dict(PYTHON_NAMES)) == -1
    assert not eval(python_text("arith.cmpi", 6, ("-1", "3")), dict(PYTHON_NAMES)), "a negative number is a large word"
    assert python_text("arith.addf", None, ("1", "2")) is None
