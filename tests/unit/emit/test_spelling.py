"""Index arithmetic as C++ text: the text means what the IR means, and is what a person would write."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.arith import AddiOp, CmpiOp, ConstantOp, DivUIOp, MuliOp, RemUIOp, SelectOp, SubiOp
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Block

from tilewright.emit.spelling import Expressions

INDEX = IndexType()
BINARY = {AddiOp: lambda x, y: x + y, MuliOp: lambda x, y: x * y, SubiOp: lambda x, y: x - y}
DIVISIONS = {DivUIOp: lambda x, y: x // y, RemUIOp: lambda x, y: x % y}
VARIABLES = {"i": 3, "j": 7}


def constant(number):
    return ConstantOp(IntegerAttr(number, INDEX)).result


class Tree:
    """An SSA value with the number it stands for."""

    def __init__(self, value, number):
        self.value, self.number = value, number


def leaves():
    numbers = st.integers(0, 9).map(lambda n: (n,))
    return st.one_of(numbers, st.sampled_from(sorted(VARIABLES)).map(lambda name: (name,)))


TREES = st.recursive(leaves(), lambda inner: st.tuples(st.sampled_from([*BINARY, *DIVISIONS]), inner, inner), max_leaves=12)


def build(shape, variables):
    if len(shape) == 1:
        leaf = shape[0]
        return Tree(variables[leaf], VARIABLES[leaf]) if isinstance(leaf, str) else Tree(constant(leaf), leaf)
    kind, left, right = shape
    first, second = build(left, variables), build(right, variables)
    if kind in DIVISIONS and second.number <= 0:
        second = Tree(constant(5), 5)
    if kind is SubiOp and first.number < second.number:
        first, second = second, first
    meaning = BINARY.get(kind) or DIVISIONS[kind]
    return Tree(kind(first.value, second.value).result, meaning(first.number, second.number))


@settings(max_examples=200)
@given(shape=TREES)
def test_text_has_the_value_of_the_ir(shape):
    block = Block(arg_types=[INDEX] * len(VARIABLES))
    variables = dict(zip(VARIABLES, block.args, strict=True))
    tree = build(shape, variables)
    expressions = Expressions()
    expressions.names.update({value: name for name, value in variables.items()})
    text = expressions.text(tree.value)
    assert eval(text.replace("/", "//"), {}, VARIABLES) == tree.number


def written(value, **names):
    expressions = Expressions()
    expressions.names.update({value: name for name, value in names.items()})
    return expressions.text(value)


@pytest.fixture
def index():
    return Block(arg_types=[INDEX]).args[0]


def test_neutral_numbers_vanish(index):
    assert written(AddiOp(MuliOp(index, constant(2)).result, constant(0)).result, i=index) == "i * 2"
    assert written(AddiOp(constant(0), index).result, i=index) == "i"
    assert written(MuliOp(index, constant(1)).result, i=index) == "i"
    assert written(MuliOp(constant(0), index).result, i=index) == "0"
    assert written(AddiOp(MuliOp(constant(1), constant(2)).result, constant(1)).result) == "3"


def test_parentheses_only_where_needed(index):
    total = AddiOp(index, constant(2)).result
    assert written(MuliOp(total, constant(3)).result, i=index) == "(i + 2) * 3"
    assert written(AddiOp(total, constant(3)).result, i=index) == "i + 2 + 3"
    assert written(SubiOp(index, total).result, i=index) == "i - (i + 2)"
    before = AddiOp(index, constant(-1)).result
    assert written(before, i=index) == "i - 1"
    assert written(SubiOp(index, before).result, i=index) == "i - (i - 1)"


def test_comparison_and_choice(index):
    less = CmpiOp(index, constant(5), "ult").result
    assert written(less, i=index) == "i < 5"
    assert written(SelectOp(less, index, constant(5)).result, i=index) == "i < 5 ? i : 5"
