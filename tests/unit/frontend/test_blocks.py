"""Operators and functions on blocks: which ops they become."""

from __future__ import annotations

import re

import pytest

from tilewright.diagnostics import KernelError
from tilewright.dialects.tile_ops import BY_NAME, BY_PYTHON, COMPOSITE_BY_NAME, SUBSTITUTES

TEXT = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(lhs, rhs, out):
    a_cb = ttl.make_dataflow_buffer_like(lhs, shape=(2, 2))
    b_cb = ttl.make_dataflow_buffer_like(rhs, shape={b})
    o_cb = ttl.make_dataflow_buffer_like(out, shape={o})

    @ttl.compute()
    def compute():
        with a_cb.wait() as a, b_cb.wait() as b, o_cb.reserve() as o:
            {statement}
"""


@pytest.fixture
def ops(load, tensor):
    """Names of the block ops a statement becomes, with their attributes."""

    def run(statement: str, *, b=(2, 2), o=(2, 2)):
        kernel = load(TEXT.format(statement=statement, b=b, o=o))["kernel"]
        built = kernel.build(tensor("lhs"), tensor("rhs"), tensor("out"))
        built.module.verify()
        skip = ("bind_cb", "cb_", "attach_cb", "kernel_thread", "cb<")
        lines = [line for line in str(built.module).splitlines() if " ttl." in line and not any(word in line for word in skip)]
        return [
            re.search(r"ttl\.(\w+)(?: %\w+(?:, %\w+)*)?( {[^}]*})?", line).expand(r"\1\2").replace(" : f32", "") for line in lines
        ]

    return run


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a + b", ["add"]),
        ("a - b", ["sub"]),
        ("a * b", ["mul"]),
        ("a / b", ["div"]),
        ("-a", ["neg"]),
        ("abs(a)", ["abs"]),
        ("a + 2", ["add_scalar {scalar = 2.000000e+00}"]),
        ("2.5 + a", ["add_scalar {scalar = 2.500000e+00}"]),
        ("a - 3", ["sub_scalar {scalar = 3.000000e+00}"]),
        ("1 - a", ["rsub_scalar {scalar = 1.000000e+00}"]),
        ("a * 2.0", ["mul_scalar {scalar = 2.000000e+00}"]),
        ("a / 4", ["div_scalar {scalar = 4.000000e+00}"]),
        ("a ** 2", ["square"]),
        ("a ** 1", []),
        ("a ** 3", ["pow_int {exponent = 3 : i32}"]),
        ("a ** 2.5", ["pow_scalar {scalar = 2.500000e+00}"]),
        ("2 / a", ["rdiv_scalar {scalar = 2.000000e+00}"]),
        ("a < b", ["lt"]),
        ("0.5 < a", ["gt_scalar {scalar = 5.000000e-01}"]),
        ("a // b", ["div", "floor"]),
        ("ttl.math.atan2(a, 2.0)", ["fill_block {value = 2.000000e+00}", "atan2"]),
        ("ttl.math.mask(a, b)", ["fill_block {value = 0.000000e+00}", "where"]),
        ("ttl.math.exp(a, scale=0.5)", ["mul_scalar {scalar = 5.000000e-01}", "exp"]),
        ("ttl.math.exp(a, approx=True, iterations=8)", ["exp {approx = true}"]),
        ("ttl.math.clamp(a, 0.0, max=1.0)", ["clamp {min = 0.000000e+00, max = 1.000000e+00}"]),
        ("a ** 0.5", ["sqrt"]),
        ("a ** -1", ["recip"]),
        ("a ** b", ["pow"]),
        ("ttl.math.exp(a)", ["exp"]),
        ("ttl.exp(a)", ["exp"]),
        ("ttl.math.max(a, b)", ["max"]),
        ("max(a, b)", ["max"]),
        ("ttl.math.add(a, 1.0)", ["add_scalar {scalar = 1.000000e+00}"]),
        ("(a + b) * (a - b)", ["add", "sub", "mul"]),
        ("+a", []),
    ],
)
def test_expression(ops, expression, expected):
    assert ops(f"o.store({expression})") == [*expected, "store"]


@pytest.mark.parametrize("spelling", sorted(BY_PYTHON))
def test_every_function_of_the_table_compiles(ops, spelling):
    row = BY_PYTHON[spelling]
    if row.name == "fill":
        assert ops(f"o.store(ttl.{spelling}(o, 1.5))") == ["fill_block {value = 1.500000e+00}", "store"]
        return
    blocks = ["a", "b", "a"][: row.arity]
    given = {"float": "1.5", "int": "1", "bool": "True", "str": repr("int32")}
    params = [f"{p.name}={p.low if p.low is not None else given[p.kind]}" for p in row.params if p.default is None]
    if "bf16" not in row.dtypes or row.result_dtype:
        with pytest.raises(KernelError):
            ops(f"o.store(ttl.{spelling}({', '.join(blocks + params)}))")
        return
    found = ops(f"o.store(ttl.{spelling}({', '.join(blocks + params)}))")
    first = COMPOSITE_BY_NAME[SUBSTITUTES[row.name]].steps[0].op if row.name in SUBSTITUTES else row.name
    assert found[0].split(" ")[0] == first and found[-1] == "store"


def test_accumulation_and_reuse(ops):
    assert ops("o += a * b") == ["mul", "store {accumulate = true}"]
    assert ops("o.store(a, acc=True)") == ["store {accumulate = true}"]
    assert ops("x = a\n            x *= b\n            o.store(x)") == ["mul", "store"]
    assert ops("o.store(a * b)\n            o.store(o + a)") == ["mul", "store", "add", "store"]


def test_matmul_reduce_broadcast_transpose_fill(ops):
    assert ops("o.store(a @ b)", b=(2, 3), o=(2, 3)) == ["matmul", "store"]
    assert ops("o.store(ttl.math.matmul(a, b, dtype=o.dtype))", b=(2, 3), o=(2, 3)) == ["matmul", "store"]
    reduced = 'reduce {kind = "sum", dims = [1 : i64]}'
    assert ops("o.store(ttl.math.reduce_sum(a, dims=[-1]))", o=(2, 1)) == [reduced, "store"]
    assert ops("o.store(ttl.math.reduce_sum(a, b, dims=[1]))", b=(1, 1), o=(2, 1)) == [reduced, "store"]
    assert ops("o.store(ttl.math.reduce_max(a, dims=[0, 1]))", o=(1, 1)) == [
        'reduce {kind = "max", dims = [0 : i64, 1 : i64]}',
        "store",
    ]
    spread = "bcast {dims = [1 : i64]}"
    assert ops("o.store(ttl.block.broadcast(b, dims=[1], shape=a.shape))", b=(2, 1)) == [spread, "store"]
    assert ops("o.store(ttl.math.broadcast(b, o, dims=[-1]))", b=(2, 1)) == [spread, "store"]
    assert ops("o.store(ttl.math.transpose(b))", b=(2, 1), o=(1, 2)) == ["transpose", "store"]
    assert ops("o.store(ttl.block.fill(0.5, shape=o.shape))") == ["fill_block {value = 5.000000e-01}", "store"]
    assert ops("o.store(ttl.math.fill(o, 0))") == ["fill_block {value = 0.000000e+00}", "store"]


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("o.store(a + 'x')", "TW004"),
        ("o.store(a / 0)", "TW004"),
        ("o.store(ttl.math.exp(a, b))", "TW004"),
        ("o.store(ttl.math.exp())", "TW004"),
        ("o.store(ttl.math.exp(1.0))", "TW004"),
        ("o.store(ttl.math.exp(a, speed=3))", "TW004"),
        ("o.store(a @ 2)", "TW004"),
        ("o.store(a ^ b)", "TW107"),
        ("o.store(~a)", "TW107"),
        ("o.store(a[0])", "TW101"),
        ("o.store(a.sum())", "TW003"),
        ("o.stor(a)", "TW003"),
        ("o.store(ttl.math.reduce_sum(a, dims=[5]))", "TW004"),
        ("o.store(ttl.block.broadcast(a, dims=[0]))", "TW101"),
        ("o.store(ttl.block.broadcast(a, dims=[0], shape=(4, 4)))", "TW101"),
        ("o.store(a, b)", "TW004"),
        ("o.store()", "TW004"),
        ("o -= a", "TW204"),
        ("a += b", "TW204"),
        ("(a + b).store(a)", "TW204"),
        ("(a + b).pop()", "TW202"),
        ("a.wait()", "TW003"),
        ("o.x = a", "TW001"),
        ("o[0] = a", "TW001"),
        ("x, y = a", "TW004"),
        ("for block in a: pass", "TW001"),
        ("with a: pass", None),
    ],
)
def test_refused(ops, statement, code):
    if code is None:
        assert ops(statement + "\n            o.store(a)")[-1] == "store"
        return
    with pytest.raises(KernelError) as caught:
        ops(statement)
    assert [d.code for d in caught.value.diagnostics] == [code], str(caught.value)


def test_scalar_rows_exist():
    for name in ("add_scalar", "sub_scalar", "rsub_scalar", "mul_scalar", "div_scalar", "square", "recip", "sqrt"):
        assert BY_NAME[name].arity == 1
