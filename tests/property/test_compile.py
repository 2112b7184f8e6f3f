"""Random elementwise kernels, through compilation and simulation, against NumPy within what rounding explains."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

DTYPES = {"bf16": "bfloat16", "f32": "float32"}

# Row of the op table, how Python writes it, how large a result may be for operands of these sizes.
BINARY = {
    "add": ("{} + {}", lambda x, y: x + y),
    "sub": ("{} - {}", lambda x, y: x + y),
    "mul": ("{} * {}", lambda x, y: x * y),
    "max": ("ttl.math.max({}, {})", max),
    "min": ("ttl.math.min({}, {})", max),
}
UNARY = {
    "abs": ("ttl.math.abs({})", lambda x: x),
    "neg": ("-{}", lambda x: x),
    "relu": ("ttl.math.relu({})", lambda x: x),
    "sigmoid": ("ttl.math.sigmoid({})", lambda x: 1.0),
    "tanh": ("ttl.math.tanh({})", lambda x: 1.0),
    "square": ("{} ** 2", lambda x: x * x),
    "exp": ("ttl.math.exp({})", lambda x: math.exp(x) if x < 10 else math.inf),
}
SCALAR = {"add_scalar": "{} + {}", "mul_scalar": "{} * {}", "rsub_scalar": "{1} - {0}"}
NUMBERS = (0.5, -1.25, 3.0)
LARGEST = 1e6  # results stay where neither format overflows


@dataclass(frozen=True)
class Node:
    row: str
    operands: tuple[int, ...]
    number: float | None = None


@dataclass(frozen=True)
class Dag:
    inputs: int
    nodes: tuple[Node, ...]
    outputs: tuple[int, ...]

    def name(self, value: int) -> str:
        return f"x{value}" if value < self.inputs else f"v{value - self.inputs}"

    def lets(self) -> list[tuple[str, str]]:
        return [(self.name(self.inputs + position), self._written(node)) for position, node in enumerate(self.nodes)]

    def _written(self, node: Node) -> str:
        names = [self.name(operand) for operand in node.operands]
        if node.number is not None:
            return SCALAR[node.row].format(names[0], node.number)
        return {**BINARY, **UNARY}[node.row][0].format(*names)


@st.composite
def dags(draw: st.DrawFn) -> Dag:
    inputs = draw(st.integers(1, 4))
    sizes = [2.0] * inputs
    nodes: list[Node] = []
    for _ in range(draw(st.integers(1, 9))):
        values = st.integers(0, len(sizes) - 1)
        kind = draw(st.sampled_from(("binary", "binary", "unary", "scalar")))
        first = draw(values)
        if kind == "binary":
            row, second = draw(st.sampled_from(sorted(BINARY))), draw(values)
            node, size = Node(row, (first, second)), BINARY[row][1](sizes[first], sizes[second])
        elif kind == "unary":
            row = draw(st.sampled_from(sorted(UNARY)))
            node, size = Node(row, (first,)), UNARY[row][1](sizes[first])
        else:
            row, number = draw(st.sampled_from(sorted(SCALAR))), draw(st.sampled_from(NUMBERS))
            node, size = Node(row, (first,), number), sizes[first] * abs(number) + abs(number)
        if size > LARGEST:
            node, size = Node("tanh", (first,)), 1.0
        nodes.append(node)
        sizes.append(size)
    computed = st.integers(inputs, len(sizes) - 1)
    outputs = draw(st.lists(computed, min_size=1, max_size=2, unique=True))
    return Dag(inputs, tuple(nodes), tuple(outputs))


def expected(dag: Dag, arrays, model):
    values = [model.leaf(array) for array in arrays]
    for node in dag.nodes:
        operands = [values[operand] for operand in node.operands]
        params = {} if node.number is None else {"scalar": node.number}
        values.append(model.op(node.row, *operands, **params))
    return [values[output] for output in dag.outputs]


OPTIONS = st.fixed_dictionaries(
    {
        "allocator": st.sampled_from(("optimal", "linear-scan")),
        "dst_capacity": st.sampled_from((None, None, 2, 3)),
        "fpu_binary_ops": st.booleans(),
        "enable_unroll": st.booleans(),
        "combine_packs": st.booleans(),
        "full_sync": st.sampled_from((None, True)),
        "inits": st.sampled_from(("hoist", "hoist", "each")),
    }
)


@settings(max_examples=250, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    dag=dags(),
    block=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    dtype=st.sampled_from(sorted(DTYPES)),
    options=OPTIONS,
    seed=st.integers(0, 99),
)
def test_random_kernels_give_the_values_of_numpy(kernels, rounding, make_array, dag, block, dtype, options, seed):
    used = [f"x{number}" for number in range(dag.inputs)]
    generator = np.random.default_rng(seed)
    like = make_array((1, 1), dtype)
    shape = (block[0] * 32, block[1] * 32)
    arrays = [generator.uniform(-2, 2, shape).astype(like.dtype) for _ in used]
    outputs = {f"y{position}": dag.name(value) for position, value in enumerate(dag.outputs)}
    inputs = dict(zip(used, arrays, strict=True))
    native = seed % 5 == 0  # a C++ compiler has to read those
    _, results = kernels.elementwise(outputs, inputs, lets=dag.lets(), block=block, native=native, **options)
    for found, wanted in zip(results.values(), expected(dag, arrays, rounding.Model(dtype)), strict=True):
        rounding.assert_close(found, wanted)
