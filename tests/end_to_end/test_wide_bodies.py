"""Bodies with more values alive than DST and the free buffers hold: they compile by default, and compute what NumPy does."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.diagnostics import KernelError

SHARED = 16  # inputs, each used twice or more
TILE = 32
DTYPES = {"bf16": ml_dtypes.bfloat16, "f32": np.float32}


def sum_tree(terms):
    while len(terms) > 1:
        terms = [f"({terms[i]} + {terms[i + 1]})" if i + 1 < len(terms) else terms[i] for i in range(0, len(terms), 2)]
    return terms[0]


def lines(text, count=SHARED):
    return [text.format(i=i, j=(i + 1) % count, k=(i + 5) % count) for i in range(count)]


PRODUCTS = [f"p{i}" for i in range(SHARED)]
# Each is 16 shared values and 31 products and sums, or a little more.
BODIES = {
    "products of inputs": [*lines("p{i} = x{i} * x{j}"), f"y = {sum_tree(PRODUCTS)}"],
    "a chain of products": ["y = x0 * x1", *(f"y = y + x{i} * x{(i + 1) % SHARED}" for i in range(1, SHARED))],
    "products of sums": [*lines("s{i} = x{i} + x{j}"), *lines("p{i} = s{i} * s{k}"), f"y = {sum_tree(PRODUCTS)}"],
    "products far apart": [
        *lines("s{i} = x{i} - x{k}"), *(f"p{i} = s{i} * s{(i + 7) % SHARED} + s{(3 * i + 2) % SHARED}" for i in range(SHARED)),
        f"y = {sum_tree(PRODUCTS)}",
    ],
    "exponentials": [*lines("s{i} = ttl.math.exp(x{i} - x{j})"), *lines("p{i} = s{i} * s{k}"), f"y = {sum_tree(PRODUCTS)}"],
}  # fmt: skip


class Reference:
    math = type("math", (), {"exp": staticmethod(np.exp)})


def expected(body, inputs):
    names = {f"x{i}": array.astype(np.float64) for i, array in enumerate(inputs)}
    exec("\n".join(body), {"ttl": Reference, "np": np}, names)
    return names["y"]


def run(kernels, body, dtype, count=SHARED, side=1, **options):
    rng = np.random.default_rng(len(body))
    inputs = [rng.uniform(-1, 1, (TILE * side, TILE)).astype(DTYPES[dtype]) for _ in range(count)]
    out = np.zeros_like(inputs[0])
    lets = [tuple(line.split(" = ", 1)) for line in body]
    source = kernels.text.elementwise({"out": "y"}, [f"x{i}" for i in range(count)], lets=lets, block=(side, 1), count=1)
    program = kernels.run(source, *inputs, out, **options)
    want = expected(body, inputs)
    error = np.abs(out.astype(np.float64) - want).max() / np.abs(want).max()
    assert error < (0.04 if dtype == "bf16" else 1e-5), error
    return program


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BODIES)
def test_a_wide_body_compiles(kernels, name, dtype):
    program = run(kernels, BODIES[name], dtype, side=2)
    assert len(program.buffers) <= 32


def test_values_take_turns_in_buffers(kernels):
    """More values travel than there are buffers made for them."""
    program = run(kernels, BODIES["products of sums"], "bf16", fp32_dest_acc=False, dst_capacity=2)
    (plan,) = program.dst
    made = [buffer for buffer in program.buffers if buffer.origin == "compiler"]
    assert len(plan.spills) > len(made) == len({number for _, number in plan.buffers})


def test_few_buffers_are_left(kernels):
    """28 of the author's own: four are left for values that must leave DST."""
    count = 27
    body = [*lines("s{i} = x{i} * x{j}", count), "y = s0", *(f"y = (y - s{i}) * x{i}" for i in range(1, count)),
            f"y = y + {sum_tree([f's{i}' for i in range(0, count, 9)])}"]  # fmt: skip
    program = run(kernels, body, "bf16", count, dst_capacity=2)
    assert len(program.buffers) <= 32


def test_regions_one_after_the_other_use_the_same_buffers(kernels):
    """Both regions are split; what the first has read is free for the second."""
    source = """from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(a, b, out, other):
    a_buffer = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=1)
    b_buffer = ttl.make_dataflow_buffer_like(b, shape=(1, 1), block_count=1)
    out_buffer = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=1)
    other_buffer = ttl.make_dataflow_buffer_like(other, shape=(1, 1), block_count=1)

    @ttl.compute()
    def compute():
        with a_buffer.wait() as x, b_buffer.wait() as y:
            with out_buffer.reserve() as o:
                m = x * y
                o.store(ttl.math.exp(m) + ttl.math.abs(m))
            with other_buffer.reserve() as o:
                n = x + y
                o.store(ttl.math.exp(n) * ttl.math.abs(n))

    @ttl.datamovement()
    def read():
        with a_buffer.reserve() as block:
            ttl.copy(a[0:1, 0:1], block).wait()
        with b_buffer.reserve() as block:
            ttl.copy(b[0:1, 0:1], block).wait()

    @ttl.datamovement()
    def write():
        with out_buffer.wait() as block:
            ttl.copy(block, out[0:1, 0:1]).wait()
        with other_buffer.wait() as block:
            ttl.copy(block, other[0:1, 0:1]).wait()
"""
    rng = np.random.default_rng(4)
    a, b = (rng.uniform(-1, 1, (TILE, TILE)).astype(ml_dtypes.bfloat16) for _ in range(2))
    out, other = np.zeros_like(a), np.zeros_like(a)
    program = kernels.run(source, a, b, out, other, round_trips=True, fp32_dest_acc=False)
    assert [len(plan.spills) for plan in program.dst] == [1, 1]
    assert sum(buffer.origin == "compiler" for buffer in program.buffers) == 1
    x, y = a.astype(np.float64), b.astype(np.float64)
    assert np.abs(out.astype(np.float64) - (np.exp(x * y) + abs(x * y))).max() < 0.05
    assert np.abs(other.astype(np.float64) - np.exp(x + y) * abs(x + y)).max() < 0.3


def test_without_a_free_buffer_the_message_says_what_is_short(kernels):
    """32 of the author's own, and values that no order and no second computation keep in two slots."""
    count = 31
    body = [*lines("s{i} = ttl.math.exp(x{i} * x{j}) - x{k}", count)]
    body += [f"t{i} = s{i} * s{(i * 7 + 3) % count}" for i in range(count)]
    body += [f"u{i} = t{i} - t{(i * 11 + 5) % count}" for i in range(count)]
    body += [f"y = {sum_tree([f'u{i}' for i in range(count)])}"]
    with pytest.raises(KernelError) as error:
        run(kernels, body, "bf16", count, dst_capacity=2, fp32_dest_acc=False)
    (found,) = error.value.diagnostics
    assert found.code == "TW301" and "intermediate buffers" in found.message
