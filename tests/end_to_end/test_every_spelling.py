"""Everything a person can write: each function under both of its families, operators with numbers on either side, builtins."""

from __future__ import annotations

import numpy as np
import pytest

import op_kernels
from tilewright.dialects import tile_ops
from tilewright.lang.names import BLOCK_FUNCTIONS, function_names
from tilewright.native import driver
from tilewright.program import TensorSpec
from tilewright.sim.run import simulate

FUNCTIONS = sorted({name.split(".")[1] for name in function_names()})
# Functions on whole blocks: an expression for blocks of one tile.
BLOCK_TEXT = {
    "reduce_sum": "{f}(a, dims=[0])", "reduce_max": "{f}(a, dims=[1])", "reduce_min": "{f}(a, dims=[0, 1])",
    "reduce_mean": "{f}(a, dims=[1])", "broadcast": "{f}(a, dims=[0], shape=(1, 1))", "transpose": "{f}(a)",
    "fill": "{f}(1.5, shape=a.shape)", "matmul": "{f}(a, b)", "typecast": "{f}(a, 'bf16')",
    "squeeze": "{f}(ttl.block.unsqueeze(a, dims=[0]), dims=[0])", "unsqueeze": "ttl.block.squeeze({f}(a, dims=[0]), dims=[0])",
    "cumsum": "{f}(a, dims=[1])", "argmax": "{f}(a, dims=[1], dtype='f32')", "argmin": "{f}(a, dims=[0], dtype='f32')",
    "topk": "{f}(a, 2)[0]", "dropout": "{f}(a, 0.5, seed=3)",
}  # fmt: skip

# Python text -> meaning. `a` and `b` are positive.
OPERATORS = {
    "a + b": np.add, "a - b": np.subtract, "a * b": np.multiply, "a / b": np.divide, "a // b": np.floor_divide,
    "a % b": np.mod, "a ** b": np.power, "-a": lambda a, b: -a, "+a": lambda a, b: a, "abs(a)": lambda a, b: np.abs(a),
    "a + 2": lambda a, b: a + 2, "2 + a": lambda a, b: 2 + a, "a - 2": lambda a, b: a - 2, "2 - a": lambda a, b: 2 - a,
    "a * 3": lambda a, b: a * 3, "3 * a": lambda a, b: 3 * a, "2.5 * a": lambda a, b: 2.5 * a, "a / 4": lambda a, b: a / 4,
    "3 / a": lambda a, b: 3 / a, "1 - a": lambda a, b: 1 - a, "a // 2": lambda a, b: a // 2, "7 // a": lambda a, b: 7 // a,
    "a % 2": lambda a, b: a % 2, "7 % a": lambda a, b: 7 % a, "a ** 2": lambda a, b: a**2, "a ** 3": lambda a, b: a**3,
    "a ** 1": lambda a, b: a, "a ** 0.5": lambda a, b: a**0.5, "a ** -1": lambda a, b: 1 / a, "a ** 2.5": lambda a, b: a**2.5,
    "2 ** a": lambda a, b: 2.0**a, "a ** -0.5": lambda a, b: a**-0.5, "pow(a, 2)": lambda a, b: a**2,
    "a == b": np.equal, "a != b": np.not_equal, "a < b": np.less, "a > b": np.greater, "a <= b": np.less_equal,
    "a >= b": np.greater_equal, "a < 2": lambda a, b: a < 2, "2 < a": lambda a, b: a > 2, "a >= 2": lambda a, b: a >= 2,
    "2 >= a": lambda a, b: a <= 2, "a == 2": lambda a, b: a == 2, "2 != a": lambda a, b: a != 2, "min(a, b)": np.minimum,
    "max(a, b)": np.maximum, "max(a, 2)": lambda a, b: np.maximum(a, 2), "min(1, a)": lambda a, b: np.minimum(1, a),
    "ttl.math.where(a > b, a, b)": np.maximum, "ttl.math.where(a > 2, 1.0, 0.0)": lambda a, b: a > 2,
    "ttl.block.where(a > 2, a, 0.0)": lambda a, b: np.where(a > 2, a, 0), "ttl.block.mask(a, b > 2)": lambda a, b: np.where(b > 2, 0, a),
    "ttl.math.mask_posinf(a, b > 2)": lambda a, b: np.where(b > 2, np.inf, a), "ttl.math.clamp(a, 1, 2)": lambda a, b: np.clip(a, 1, 2),
    "ttl.math.clamp(a, min=1.0, max=2.0)": lambda a, b: np.clip(a, 1, 2), "ttl.math.exp(a, scale=0.5)": lambda a, b: np.exp(a / 2),
    "ttl.math.log(a) / ttl.math.log(b + 4)": lambda a, b: np.log(a) / np.log(b + 4),
    "ttl.math.round(a, decimals=1)": lambda a, b: np.round(a, 1), "ttl.math.relu6(a * 3)": lambda a, b: np.clip(a * 3, 0, 6),
    "ttl.math.fma(a, b, a)": lambda a, b: a * b + a, "ttl.math.addcmul(a, b, b, value=2.0)": lambda a, b: a + 2 * b * b,
    "ttl.math.lerp(a, b, 0.5)": lambda a, b: (a + b) / 2, "ttl.math.mul(a, 2)": lambda a, b: a * 2,
    "ttl.math.sub(2, a)": lambda a, b: 2 - a, "ttl.math.maximum(a, 1.5)": lambda a, b: np.maximum(a, 1.5),
    "ttl.block.where(condition=a > b, true_value=a, false_value=b)": np.maximum, "ttl.math.max(a=a, b=b)": np.maximum,
    "ttl.block.where(a > 2, true_value=a, false_value=0.0)": lambda a, b: np.where(a > 2, a, 0),
    "ttl.block.mask(expr=a, mask=b > 2)": lambda a, b: np.where(b > 2, 0, a), "ttl.math.exp(expr=a)": lambda a, b: np.exp(a),
    "ttl.math.hardtanh(a, min_val=1.0, max_val=2.0)": lambda a, b: np.clip(a, 1, 2), "ttl.math.elu(-a, alpha=1.0)": lambda a, b: np.expm1(-a),
    "ttl.math.leaky_relu(-a, negative_slope=0.5)": lambda a, b: -a / 2, "ttl.block.fill(value=2.0, shape=a.shape) * a": lambda a, b: 2 * a,
}  # fmt: skip


def written(word, family):
    """A call of the function on blocks a, b, c, and the dtype it needs."""
    call = f"ttl.{family}.{word}"
    handler = BLOCK_FUNCTIONS.get(f"math.{word}") or BLOCK_FUNCTIONS.get(f"block.{word}")
    if handler is not None:
        return BLOCK_TEXT[handler].format(f=call), "f32" if handler == "typecast" else "bf16"
    names = (f"math.{word}", f"block.{word}")
    op = next(table[name] for table in (tile_ops.BY_PYTHON, tile_ops.COMPOSITE_BY_PYTHON) for name in names if name in table)
    params = [f"{p.name}={p.sample!r}" for p in op.params if not p.hidden and p.name != "approx" and p.sample is not None]
    dtypes = getattr(op, "dtypes", ("bf16",))
    return f"{call}({', '.join([*'abc'[: op.arity], *params])})", dtypes[0]


@pytest.mark.parametrize("word", FUNCTIONS)
def test_function_under_both_families(kernels, word):
    """`ttl.math.x` and `ttl.block.x` are one function and give one kernel."""
    texts = []
    for family in ("math", "block"):
        text, dtype = written(word, family)
        out = "bf16" if word == "typecast" else dtype
        source = kernels.text.elementwise({"out": text}, "abc")
        specs = [TensorSpec(name=n, shape=(32, 32), dtype=out if n == "out" else dtype) for n in (*"abc", "out")]
        texts.append(kernels.compile(source, *specs).cpp["compute"])
    assert texts[0] == texts[1]
    assert "tile_regs_acquire" in texts[0]


def test_every_row_is_reachable():
    """Each row has Python text that leads to it, in every dtype it claims."""
    for row in tile_ops.ROWS:
        for dtype in row.dtypes:
            if row.name != "typecast":
                assert op_kernels.expression(row, dtype)


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize("text", OPERATORS, ids=lambda text: text.replace(" ", ""))
def test_operator(kernels, text, dtype):
    generator = np.random.default_rng(5)
    tiles = [op_kernels.stored(generator.choice([0.75, 1.0, 1.5, 2.0, 2.25, 3.0], op_kernels.TILE), dtype) for _ in range(2)]
    source = kernels.text.elementwise({"out": text}, "ab")
    program = kernels.compile(source, *(TensorSpec(name=n, shape=op_kernels.TILE, dtype=dtype) for n in ("a", "b", "out")))
    found = np.zeros(op_kernels.TILE, op_kernels.HOST[dtype])
    native = found.copy()
    simulate(program, [*tiles, found])
    assert not driver.run(program, [*tiles, native]).errors
    assert native.tobytes() == found.tobytes()
    with np.errstate(all="ignore"):
        wanted = np.broadcast_to(OPERATORS[text](*(tile.astype(np.float64) for tile in tiles)), op_kernels.TILE).astype(np.float64)
    finite = np.isfinite(wanted)
    assert np.array_equal(found.astype(np.float64)[~finite], wanted[~finite])
    error = np.abs(found.astype(np.float64) - wanted)[finite]
    assert (error <= 3 * op_kernels.step(wanted)[finite] + 1e-30).all(), f"{error.max()} off"
