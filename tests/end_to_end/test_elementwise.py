"""Real elementwise kernels: what the generated code looks like where it matters, and right values in bf16 and f32, half sync.

References are written out here in NumPy; bounds come from the rounding model (`rounding.py`), op by op.
"""

from __future__ import annotations

import re
from functools import reduce

import numpy as np
import pytest

DTYPES = ("bf16", "f32")
BOTH = pytest.mark.parametrize("dtype", DTYPES)
ALLOCATORS = pytest.mark.parametrize("allocator", ["optimal", "linear-scan"])


class Term:
    """An expression: Python text for the kernel, a bounded number for the model, exact NumPy for the reference."""

    def __init__(self, text, number, exact):
        self.text, self.number, self.exact = text, number, exact


class Terms:
    def __init__(self, model, inputs):
        self.model = model
        self.inputs = {name: Term(name, model.leaf(array), array.astype(np.float64)) for name, array in inputs.items()}

    def op(self, row, text, exact, *operands, **params):
        number = self.model.op(row, *(operand.number for operand in operands), **params)
        written = text.format(*(operand.text for operand in operands))
        return Term(written, number, exact(*(operand.exact for operand in operands)))

    def add(self, x, y):
        return self.op("add", "({} + {})", np.add, x, y)

    def sub(self, x, y):
        return self.op("sub", "({} - {})", np.subtract, x, y)

    def mul(self, x, y):
        return self.op("mul", "({} * {})", np.multiply, x, y)

    def scale(self, x, number):
        return self.op("mul_scalar", f"({{}} * {number})", lambda a: a * number, x, scalar=number)

    def shift(self, x, number):
        return self.op("add_scalar", f"({{}} + {number})", lambda a: a + number, x, scalar=number)

    def unary(self, row, exact, x):
        return self.op(row, f"ttl.math.{row}({{}})", exact, x)


def check(kernels, rounding, inputs, terms, outputs, **choices):
    """Runs the kernel and holds each output against its term; the model itself is held against the written reference."""
    program, results = kernels.elementwise({name: term.text for name, term in outputs.items()}, inputs, **choices)
    for name, term in outputs.items():
        np.testing.assert_allclose(term.number.value, term.exact, rtol=1e-12, atol=1e-300)
        rounding.assert_close(results[name], term.number)
    return program


def balanced(terms, values):
    while len(values) > 1:
        values = [terms.add(values[i], values[i + 1]) for i in range(0, len(values), 2)]
    return values[0]


@BOTH
@ALLOCATORS
@pytest.mark.parametrize("count", [8, 16, 30])
def test_balanced_sums(kernels, rounding, make_array, dtype, allocator, count):
    """A chip has 32 buffers, so 30 is the most inputs one kernel sums from buffers of their own."""
    inputs = {f"x{number}": make_array((1, 2), dtype, -1, 1) for number in range(count)}
    terms = Terms(rounding.Model(dtype), inputs)
    values = list(terms.inputs.values())
    total = balanced(terms, values[:16]) if count > 16 else balanced(terms, values)
    total = reduce(terms.add, values[16:], total) if count > 16 else total
    check(kernels, rounding, inputs, terms, {"out": total}, block=(1, 2), allocator=allocator, full_sync=False)


@BOTH
@ALLOCATORS
def test_sum_of_sixty_four_tiles(kernels, rounding, make_array, dtype, allocator):
    """64 different operands from 16 buffers: each is used with four factors."""
    inputs = {f"x{number}": make_array((1, 1), dtype, -1, 1) for number in range(16)}
    terms = Terms(rounding.Model(dtype), inputs)
    values = [terms.scale(x, factor) for factor in (0.5, 1.5, -2.0, 3.0) for x in terms.inputs.values()]
    check(kernels, rounding, inputs, terms, {"out": balanced(terms, values)}, allocator=allocator, full_sync=False)


@BOTH
@ALLOCATORS
def test_every_pair_sum_used_twice(kernels, rounding, make_array, dtype, allocator):
    inputs = {f"x{number}": make_array((1, 1), dtype, -1, 1) for number in range(16)}
    terms = Terms(rounding.Model(dtype), inputs)
    values = list(terms.inputs.values())
    pairs = [terms.add(values[i], values[i + 1]) for i in range(0, 16, 2)]
    lets = [(f"p{i}", pair.text) for i, pair in enumerate(pairs)]
    named = [Term(name, pair.number, pair.exact) for (name, _), pair in zip(lets, pairs, strict=True)]
    products = [terms.mul(named[i], named[(i + 1) % 8]) for i in range(8)]
    check(kernels, rounding, inputs, terms, {"out": balanced(terms, products)}, lets=lets, allocator=allocator, full_sync=False)


@BOTH
@ALLOCATORS
def test_gelu_by_tanh(kernels, rounding, make_array, dtype, allocator):
    inputs = {"x": make_array((3, 3), dtype, -2, 2)}
    terms = Terms(rounding.Model(dtype), inputs)
    x = terms.inputs["x"]
    cube = terms.mul(terms.mul(x, x), x)
    inner = terms.scale(terms.add(x, terms.scale(cube, 0.044715)), 0.7978845608028654)
    gelu = terms.mul(terms.scale(x, 0.5), terms.shift(terms.unary("tanh", np.tanh, inner), 1.0))
    check(kernels, rounding, inputs, terms, {"out": gelu}, block=(3, 3), allocator=allocator, full_sync=False)


@BOTH
@ALLOCATORS
def test_adam_step(kernels, rounding, make_array, dtype, allocator):
    """Parameter, gradient and both moments in; parameter and both moments out."""
    inputs = {name: make_array((2, 2), dtype, -1, 1) for name in ("param", "grad", "first")}
    inputs["second"] = make_array((2, 2), dtype, 0.5, 1)
    terms = Terms(rounding.Model(dtype), inputs)
    param, grad, first, second = terms.inputs.values()
    moment = terms.add(terms.scale(first, 0.9), terms.scale(grad, 0.1))
    square = terms.add(terms.scale(second, 0.99), terms.scale(terms.mul(grad, grad), 0.01))
    lets = [("m", moment.text), ("v", square.text)]
    m, v = Term("m", moment.number, moment.exact), Term("v", square.number, square.exact)
    root = terms.shift(terms.unary("sqrt", np.sqrt, v), 1e-3)
    step = terms.scale(terms.mul(m, terms.unary("recip", lambda a: 1 / a, root)), 0.01)
    outputs = {"new_param": terms.sub(param, step), "new_first": m, "new_second": v}
    check(kernels, rounding, inputs, terms, outputs, lets=lets, block=(2, 2), allocator=allocator, full_sync=False)


@BOTH
@ALLOCATORS
def test_three_shared_vector_values(kernels, rounding, make_array, dtype, allocator):
    """Each of three function values is used twice, crosswise: all three are alive at once."""
    inputs = {name: make_array((2, 2), dtype, -1, 1) for name in "abc"}
    terms = Terms(rounding.Model(dtype), inputs)
    a, b, c = terms.inputs.values()
    shared = [
        terms.unary("exp", np.exp, a),
        terms.unary("sigmoid", lambda x: 1 / (1 + np.exp(-x)), b),
        terms.unary("tanh", np.tanh, c),
    ]
    lets = [(f"s{i}", term.text) for i, term in enumerate(shared)]
    x, y, z = (Term(name, term.number, term.exact) for (name, _), term in zip(lets, shared, strict=True))
    total = terms.add(terms.add(terms.mul(x, y), terms.mul(y, z)), terms.mul(z, x))
    check(kernels, rounding, inputs, terms, {"out": total}, lets=lets, block=(2, 2), allocator=allocator, full_sync=False)


@BOTH
def test_value_used_as_output_and_as_operand(kernels, rounding, make_array, dtype):
    inputs = {name: make_array((2, 2), dtype, -1, 1) for name in "ab"}
    terms = Terms(rounding.Model(dtype), inputs)
    a, b = terms.inputs.values()
    product = terms.mul(a, b)
    p = Term("p", product.number, product.exact)
    outputs = {"plain": p, "bent": terms.unary("exp", np.exp, p), "both": terms.sub(p, a)}
    check(kernels, rounding, inputs, terms, outputs, lets=[("p", product.text)], block=(2, 2))


@BOTH
def test_block_stored_as_it_is(kernels, rounding, make_array, dtype):
    """A copy through DST changes no bit of ordinary numbers."""
    inputs = {"a": make_array((3, 2), dtype)}
    _, results = kernels.elementwise({"out": "a", "twice": "a"}, inputs, block=(3, 2))
    for result in results.values():
        np.testing.assert_array_equal(result, inputs["a"])


def trips(cpp: str, call: str) -> int:
    """How often ``call`` runs: loop trips multiply."""
    total, factors = 0, []
    for line in cpp.splitlines():
        text = line.strip()
        head = re.match(r"for \(uint32_t (\w+) = (\d+); \w+ < (\d+); (?:\+\+\w+|\w+ \+= (\d+))\)", text)
        if head:
            factors.append((int(head[3]) - int(head[2])) // int(head[4] or 1))
        elif text == "}" and factors:
            factors.pop()
        elif re.match(rf"{call}(<.*>)?\(", text):
            total += int(np.prod(factors, initial=1))
    return total


def test_exp_of_fma_on_64_tiles(kernels, make_array):
    """bf16: eight tiles per acquire, c is not loaded one by one into slots that only hold it, block packs, inits outside."""
    source = kernels.text.elementwise({"out": "ttl.math.exp(a * b + c)"}, "abc", block=(8, 8), count=1)
    program = kernels.compile(source, *[make_array((8, 8), "bf16") for _ in range(4)])
    ((_, plan),) = program.trace.plans
    (part,) = plan.parts
    assert part.allocation.tiles_per_acquire == 8
    cpp = program.cpp["compute"]
    assert trips(cpp, "tile_regs_acquire") == 8
    assert trips(cpp, "pack_block") == 8 and "pack_tile" not in cpp
    assert trips(cpp, "mul_tiles") == trips(cpp, "exp_tile") == 64
    assert trips(cpp, "copy_tile") <= 64, "c is loaded at most once per tile"
    assert trips(cpp, "exp_tile_init") == 1, "the vector unit is set up once, before the loop"


def test_shared_product_is_computed_once(kernels, make_array):
    """`mul` feeding `abs` and `exp` in two outputs: four multiplies for four tiles."""
    outputs = {"out": "ttl.math.abs(a * b)", "other": "ttl.math.exp(a * b)"}
    source = kernels.text.elementwise(outputs, "ab", block=(2, 2))
    for options in ({}, {"fpu_binary_ops": False}, {"allocator": "linear-scan"}):
        program = kernels.compile(source, *[make_array((2, 2), "bf16") for _ in range(4)], **options)
        cpp = program.cpp["compute"]
        assert sum(trips(cpp, call) for call in ("mul_tiles", "mul_binary_tile", "mul_reuse_dest_tiles", "addcmul_tile")) == 4
        assert trips(cpp, "abs_tile") == trips(cpp, "exp_tile") == 4


def test_f32_stays_off_the_matrix_unit(kernels, make_array):
    """The matrix unit reads at most 19 bits of a float32: nothing moves there silently."""
    source = kernels.text.elementwise({"out": "(a + b) * c - a"}, "abc", block=(2, 2))
    cpp = kernels.compile(source, *[make_array((2, 2), "f32") for _ in range(4)]).cpp["compute"]
    assert not re.search(r"\b(add|sub|mul)_(tiles|reuse_dest_tiles)\b", cpp)
    assert "add_binary_tile(" in cpp and "mul_binary_tile(" in cpp
