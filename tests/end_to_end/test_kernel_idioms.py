"""Ways people write Python that a kernel may use too: early ends, gathered arguments, methods, partials, slices made before."""

from __future__ import annotations

import functools

import ml_dtypes
import numpy as np
import pytest

from tilewright import execution, ttl

TILE = 32
MODES = ("sim", "fast", "native")


def random(rows: int, cols: int) -> np.ndarray:
    return (np.random.default_rng(rows * 31 + cols).random((rows * TILE, cols * TILE)) * 2 - 1).astype(ml_dtypes.bfloat16)


def zeros(rows: int, cols: int) -> np.ndarray:
    return np.zeros((rows * TILE, cols * TILE), ml_dtypes.bfloat16)


def close(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=0.02, atol=0.02)


def run(kernel, *args, mode: str, **named) -> None:
    with execution.session(mode=mode):
        kernel(*args, **named)


def source_column(column):
    if column == 0:
        return 2
    if column == 1:
        return 0
    return column - 1


@ttl.operation(grid=(4, 2))
def some_cores_leave(x, out):
    """Cores beyond the tensor return at once; every other row belongs to the other core row."""
    rows, cols = x.shape[0] // TILE, x.shape[1] // TILE
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
    out_dfb = ttl.make_dataflow_buffer_like(out, shape=(1, 1))

    @ttl.compute()
    def compute():
        column, half = ttl.node(dims=2)
        if column >= cols:
            return
        for row in range(rows):
            if row % 2 != half:
                continue
            with x_dfb.wait() as block, out_dfb.reserve() as result:
                result.store(block + block)

    @ttl.datamovement()
    def read():
        column, half = ttl.node(dims=2)
        if column >= cols:
            return
        for row in range(rows):
            if row % 2 != half:
                continue
            place = (row, slice(source_column(column), source_column(column) + 1))
            with x_dfb.reserve() as block:
                ttl.copy(x[place], block).wait()

    @ttl.datamovement()
    def write():
        column, half = ttl.node(dims=2)
        if column >= cols:
            return
        for row in range(rows):
            if row % 2 != half:
                continue
            with out_dfb.wait() as block:
                ttl.copy(block, out[row, column]).wait()


@pytest.mark.parametrize("mode", MODES)
def test_early_ends(mode):
    x, out = random(5, 3), zeros(5, 3)
    run(some_cores_leave, x, out, mode=mode)
    columns = [x.astype(np.float64)[:, c * TILE : (c + 1) * TILE] for c in (2, 0, 1)]
    close(out, 2 * np.concatenate(columns, axis=1))


@ttl.operation(grid=(1, 1))
def weighted_sum(*tensors, scale=2.0, **more):
    *inputs, out = tensors
    inputs += more.values()
    buffers = [ttl.make_dataflow_buffer_like(tensor, shape=(1, 1)) for tensor in inputs]
    out_dfb = ttl.make_dataflow_buffer_like(out, shape=(1, 1))

    @ttl.compute()
    def compute():
        blocks = [buffer.wait() for buffer in buffers]
        result = out_dfb.reserve()
        result.store(sum(blocks) * scale)
        result.push()
        for block in blocks:
            block.pop()

    @ttl.datamovement()
    def read():
        for tensor, buffer in zip(inputs, buffers, strict=True):
            with buffer.reserve() as block:
                ttl.copy(tensor[0, 0], block).wait()

    @ttl.datamovement()
    def write():
        with out_dfb.wait() as block:
            ttl.copy(block, out[0, 0]).wait()


@pytest.mark.parametrize("mode", MODES)
def test_gathered_arguments(mode):
    parts = [random(1, 1) * np.float32(k) for k in (1, 2, 3)]
    parts = [part.astype(ml_dtypes.bfloat16) for part in parts]
    plain = [part.astype(np.float64) for part in parts]
    out = zeros(1, 1)
    run(weighted_sum, *parts, out, mode=mode, scale=0.5)
    close(out, sum(plain) * 0.5)
    run(weighted_sum, parts[0], out, mode=mode, bias=parts[2])
    close(out, (plain[0] + plain[2]) * 2)


def one_tile(expression):
    """A kernel of one tile: ``expression(*pair)`` is stored."""

    @ttl.operation(grid=(1, 1))
    def kernel(pair, out):
        buffers = [ttl.make_dataflow_buffer_like(tensor, shape=(1, 1)) for tensor in pair]
        out_dfb = ttl.make_dataflow_buffer_like(out, shape=(1, 1))

        @ttl.compute()
        def compute():
            with buffers[0].wait() as a, buffers[1].wait() as b, out_dfb.reserve() as result:
                result.store(expression(a, b))

        @ttl.datamovement()
        def read():
            for tensor, buffer in zip(pair, buffers, strict=True):
                with buffer.reserve() as block:
                    ttl.copy(tensor[0, 0], block).wait()

        @ttl.datamovement()
        def write():
            with out_dfb.wait() as block:
                ttl.copy(block, out[0, 0]).wait()

    return kernel


class Gate:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, a, b):
        return self.scaled(a) - b

    def scaled(self, a):
        return a * self.factor


def lerp(weight, a, b):
    return a + weight * (b - a)


@pytest.mark.parametrize("holder", [list, tuple])
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (Gate(4).__call__, lambda a, b: 4 * a - b),
        (Gate(-2), lambda a, b: -2 * a - b),
        (functools.partial(lerp, 0.25), lambda a, b: a + 0.25 * (b - a)),
        (lambda a, b: a * b + 1, lambda a, b: a * b + 1),  # two lambdas on one line
    ],
    ids=["method", "object", "partial", "lambda"],
)
def test_callables(holder, expression, expected):
    a, b, out = random(1, 1), random(1, 1)[::-1].copy(), zeros(1, 1)
    run(one_tile(expression), holder((a, b)), out, mode="sim")
    close(out, expected(a.astype(np.float64), b.astype(np.float64)))


class Layer:
    def __init__(self, factor):
        self.factor = factor

    @ttl.operation(grid=(1, 1))
    def forward(self, x, out):
        x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1))
        out_dfb = ttl.make_dataflow_buffer_like(out, shape=(1, 1))

        @ttl.compute()
        def compute():
            with x_dfb.wait() as block, out_dfb.reserve() as result:
                result.store(ttl.math.relu(block) * self.factor)

        @ttl.datamovement()
        def move():
            with x_dfb.reserve() as block:
                ttl.copy(x[0, 0], block).wait()
            with out_dfb.wait() as block:
                ttl.copy(block, out[0, 0]).wait()


def test_kernel_that_is_a_method():
    x, out = random(1, 1), zeros(1, 1)
    for factor in (3, -1):
        run(Layer(factor).forward, x, out, mode="sim")
        close(out, np.maximum(x.astype(np.float64), 0) * factor)


@ttl.operation(grid=(1, 1))
def state_with_a_flag(start, x, decay, states, final):
    """A recurrence whose first state is popped once, by a flag that only Python knows: the loop is unrolled."""
    steps = x.shape[0] // TILE
    start_dfb = ttl.make_dataflow_buffer_like(start, shape=(1, 1), block_count=1)
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=2)
    decay_dfb = ttl.make_dataflow_buffer_like(decay, shape=(1, 1), block_count=2)
    states_dfb = ttl.make_dataflow_buffer_like(states, shape=(1, 1), block_count=2)
    final_dfb = ttl.make_dataflow_buffer_like(final, shape=(1, 1), block_count=1)

    @ttl.compute()
    def compute():
        first = start_dfb.wait()
        state = first
        popped = False
        for _ in range(steps):
            x_blk, decay_blk = x_dfb.wait(), decay_dfb.wait()
            states_dfb.reserve().store(x_blk @ state)
            following = ttl.math.exp(decay_blk) * state + x_blk
            if not popped:
                first.pop()
                popped = True
            state = following
            x_blk.pop()
            decay_blk.pop()
        final_dfb.reserve().store(state)

    @ttl.datamovement()
    def read():
        ttl.copy(start[0, 0], start_dfb.reserve()).wait()
        for step in range(steps):
            ttl.copy(x[step, 0], x_dfb.reserve()).wait()
            ttl.copy(decay[step, 0], decay_dfb.reserve()).wait()

    @ttl.datamovement()
    def write():
        for step in range(steps):
            ttl.copy(states_dfb.wait(), states[step, 0]).wait()
        ttl.copy(final_dfb.wait(), final[0, 0]).wait()


@pytest.mark.parametrize("mode", MODES)
def test_values_that_an_unrolled_loop_hands_on(mode):
    """They are computed before the blocks they come from are released, as in a loop on the device."""
    start, x = random(1, 1), random(3, 1)
    decay = (-np.abs(random(3, 2)[:, :TILE].astype(np.float32))).astype(ml_dtypes.bfloat16)
    states, final = zeros(3, 1), zeros(1, 1)
    run(state_with_a_flag, start, x, decay, states, final, mode=mode)
    state, parts = start.astype(np.float64), []
    for step in range(3):
        rows = slice(step * TILE, (step + 1) * TILE)
        parts.append(x[rows].astype(np.float64) @ state)
        state = np.exp(decay[rows].astype(np.float64)) * state + x[rows].astype(np.float64)
    close(final, state)
    np.testing.assert_allclose(states.astype(np.float64), np.concatenate(parts), atol=0.1)


@ttl.operation(grid=(1, 1))
def alternating_norms(x, out):
    """Rows and columns are divided by their sums in turn, in the block that leaves; the compiler releases what was waited for."""
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=2)
    sum_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=2)
    out_dfb = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        x_blk = x_dfb.wait()
        with out_dfb.reserve() as o:
            o.store(ttl.math.exp(x_blk))
            for _ in range(2):
                sum_dfb.reserve().store(ttl.math.reduce_sum(o, dims=[1]))
                o.store(o * ttl.math.recip(ttl.math.broadcast(sum_dfb.wait(), dims=[1])))
                sum_dfb.reserve().store(ttl.math.reduce_sum(o, dims=[0]))
                o.store(o * ttl.math.recip(ttl.math.broadcast(sum_dfb.wait(), dims=[0])))

    @ttl.datamovement()
    def read():
        ttl.copy(x[0, 0], x_dfb.reserve()).wait()

    @ttl.datamovement()
    def write():
        ttl.copy(out_dfb.wait(), out[0, 0]).wait()


@pytest.mark.parametrize("mode", MODES)
def test_a_block_that_is_rewritten_in_place(mode):
    x, out = random(1, 1), zeros(1, 1)
    run(alternating_norms, x, out, mode=mode)
    expected = np.exp(x.astype(np.float64))
    for axis in (1, 0, 1, 0):
        expected /= expected.sum(axis, keepdims=True)
    np.testing.assert_allclose(out.astype(np.float64), expected, rtol=0.04)


@ttl.kernel(grid=(1, 3))
def with_a_pipe(x, out):
    """The first generation writes guards of pipes as ``with``."""
    pipe = ttl.Pipe(src=(0, 0), dst=(0, slice(0, 3)))
    assert ttl.PipeNet(pipe).pipes == (pipe,)  # a net of one pipe needs no list
    x_cb = ttl.make_circular_buffer_like(x, shape=(1, 1), buffer_factor=2)
    out_cb = ttl.make_circular_buffer_like(out, shape=(1, 1), buffer_factor=2)

    @ttl.compute()
    def compute():
        with x_cb.wait() as x_blk, out_cb.reserve() as o:
            o.store(abs(x_blk))

    @ttl.datamovement()
    def read():
        with x_cb.reserve() as block:
            with pipe.if_src():
                ttl.copy(x[0, 0], block).wait()
                ttl.copy(block, pipe).wait()
            with pipe.if_dst():
                ttl.copy(pipe, block).wait()

    @ttl.datamovement()
    def write():
        _, row = ttl.core(dims=2)
        with out_cb.wait() as block:
            ttl.copy(block, out[row, 0]).wait()


@pytest.mark.parametrize("mode", MODES)
def test_guards_of_pipes_as_with(mode):
    x, out = random(1, 1), zeros(3, 1)
    run(with_a_pipe, x, out, mode=mode)
    close(out, np.concatenate([np.abs(x.astype(np.float64))] * 3))
