"""What a person writes without thinking of the op table: Python operators in odd places, numbers on either side, chains of both.

Every group is one kernel with an output per expression; the simulator and the emitted C++ must agree on every bit.
"""

from __future__ import annotations

import numpy as np
import pytest

import op_kernels
from tilewright.diagnostics import KernelError
from tilewright.native import driver
from tilewright.program import TensorSpec
from tilewright.sim.run import simulate

TILE = op_kernels.TILE

POWERS = {
    "abs(x) ** 0.5": lambda x, y: np.sqrt(np.abs(x)),
    "x ** -1": lambda x, y: 1 / x,
    "x ** 3": lambda x, y: x**3,
    "x ** -2": lambda x, y: x**-2.0,
    "x ** 0": lambda x, y: np.ones_like(x),
    "x ** 1": lambda x, y: x,
    "pow(x, 2)": lambda x, y: x * x,
    "2 ** x": lambda x, y: 2.0**x,
    "2.5 ** x": lambda x, y: 2.5**x,
    "y ** x": lambda x, y: y**x,
    "1 / x": lambda x, y: 1 / x,
    "x / x": lambda x, y: np.ones_like(x),
}
CHAINS = {
    "-(-x)": lambda x, y: x,
    "+x": lambda x, y: x,
    "x // 2": lambda x, y: np.floor(x / 2),
    "x % 3": lambda x, y: np.mod(x, 3),
    "x % -3": lambda x, y: np.mod(x, -3.0),
    "7 % y": lambda x, y: np.mod(7, y),
    "1 - (2 - (3 - x))": lambda x, y: 2 - x,
    "x + y * 2 - 1": lambda x, y: x + y * 2 - 1,
    "x * 0.1 + x * 0.2": lambda x, y: x * 0.1 + x * 0.2,
    "x - x": lambda x, y: x - x,
    "x if True else y": lambda x, y: x,
    "ttl.math.exp(-abs(x))": lambda x, y: np.exp(-np.abs(x)),
}
CHOICES = {
    "x == 0": lambda x, y: x == 0,
    "x != y": lambda x, y: x != y,
    "0 < x": lambda x, y: x > 0,
    "1.0 >= x": lambda x, y: x <= 1,
    "(x > 0) * y": lambda x, y: (x > 0) * y,
    "(x > 0) + (y > 1)": lambda x, y: (x > 0) * 1.0 + (y > 1),
    "ttl.math.where(x > 0, x, 0.0)": lambda x, y: np.where(x > 0, x, 0),
    "ttl.math.where(x > 0, 1.0, y)": lambda x, y: np.where(x > 0, 1, y),
    "ttl.math.where(x > y, 1.0, -1.0)": lambda x, y: np.where(x > y, 1, -1),
    "max(x, y)": lambda x, y: np.maximum(x, y),
    "min(x, 0.5)": lambda x, y: np.minimum(x, 0.5),
    "ttl.math.clamp(x, -1, 1)": lambda x, y: np.clip(x, -1, 1),
}
WHOLE = {
    "3 - x": lambda x, y: 3 - x,
    "x // 3": lambda x, y: x // 3,
    "x % 7": lambda x, y: x % 7,
    "x % y": lambda x, y: x % y,
    "x ** 3": lambda x, y: x**3,
    "(x & 15) | (y ^ 5)": lambda x, y: (x & 15) | (y ^ 5),
    "~x": lambda x, y: ~x,
    "x << 2 >> 1": lambda x, y: x << 2 >> 1,
    "-abs(x)": lambda x, y: -np.abs(x),
    "x <= 2": lambda x, y: x <= 2,
    "ttl.math.where(x > y, x, y)": lambda x, y: np.where(x > y, x, y),
    "ttl.math.max(x, 5)": lambda x, y: np.maximum(x, 5),
    "2 * (x + y) - 1": lambda x, y: 2 * (x + y) - 1,
}
CASES = [("bf16", POWERS), ("bf16", CHAINS), ("bf16", CHOICES), ("f32", POWERS), ("f32", CHAINS), ("i32", WHOLE)]


@pytest.mark.parametrize(("dtype", "group"), CASES, ids=[f"{dtype}-{next(iter(group))}" for dtype, group in CASES])
def test_expressions(kernels, dtype, group):
    random = np.random.default_rng(1)
    if dtype == "i32":
        x, y = random.integers(-20, 50, TILE).astype(np.int32), random.integers(1, 9, TILE).astype(np.int32)
    else:
        x, y = (op_kernels.stored(random.uniform(low, 4, TILE), dtype) for low in (-4, 0.5))
    names = [f"out{number}" for number in range(len(group))]
    source = kernels.text.elementwise(dict(zip(names, group, strict=True)), ("x", "y"))
    program = kernels.compile(source, *(TensorSpec(name=name, shape=TILE, dtype=dtype) for name in ("x", "y", *names)))
    simulated, native = ([np.zeros(TILE, op_kernels.HOST[dtype]) for _ in names] for _ in range(2))
    simulate(program, [x, y, *simulated])
    driver.run(program, [x, y, *native])
    kind = np.int64 if dtype == "i32" else np.float64
    for text, found, other in zip(group, simulated, native, strict=True):
        assert np.array_equal(found.view(np.uint8), other.view(np.uint8)), f"{text}: native and simulator differ"
        wanted = np.asarray(group[text](x.astype(kind), y.astype(kind))).astype(kind)
        if dtype == "i32":
            assert np.array_equal(found, wanted), text
            continue
        error = np.abs(found.astype(np.float64) - wanted)
        steps = 8 if dtype == "bf16" else 0.01  # of bf16; the last op decides, earlier ones round at the size of their results
        assert (error <= steps * op_kernels.step(np.maximum(np.abs(wanted), 0.5))).all(), text


@pytest.mark.parametrize("dtype", ["u32", "u16"])
@pytest.mark.parametrize("text", ["x // 3", "x // y"])
def test_the_whole_expression_is_named_in_errors(kernels, dtype, text):
    """Not the step of it that fails, and every dtype that would do is listed."""
    with pytest.raises(KernelError) as error:
        kernels.compile(
            kernels.text.elementwise({"out": text}, ("x", "y")),
            *(TensorSpec(name=name, shape=TILE, dtype=dtype) for name in ("x", "y", "out")),
        )
    first = error.value.diagnostics[0]
    assert first.code == "TW107" and first.message == f"floordiv does not work on {dtype}"
    assert first.help.startswith("it takes bf16, f32, bfp8_b, bfp4_b, i32")
