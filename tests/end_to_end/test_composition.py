"""Operations made of operations, and helpers that hold actions in an operation of one body."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.diagnostics import KernelError

PARTS = """
from tilewright import ttl


def load(tensor, buffer, row, column):
    with buffer.reserve() as block:
        ttl.copy(tensor[row, column], block).wait()


def save(buffer, tensor, row, column):
    with buffer.wait() as block:
        ttl.copy(block, tensor[row, column]).wait()


def scaled(x, factor):
    return x * factor


def combine(left, right, result, factor=2.0):
    with left.wait() as x, right.wait() as y, result.reserve() as o:
        z = scaled(x, factor)
        o.store(z + y)


def buffers(*tensors):
    return [ttl.make_dataflow_buffer_like(tensor, shape=(1, 1), block_count=2) for tensor in tensors]


@ttl.operation(grid="full")
def scale(x, out, factor):
    a, o = buffers(x, out)
    rows, columns = (size // 32 for size in x.shape)
    first, cores = ttl.node(dims=1), ttl.grid_size(dims=1)

    @ttl.compute()
    def work():
        for t in range(first, rows * columns, cores):
            with a.wait() as v, o.reserve() as r:
                r.store(v * factor)

    @ttl.datamovement()
    def read():
        for t in range(first, rows * columns, cores):
            load(x, a, t // columns, t % columns)

    @ttl.datamovement()
    def write():
        for t in range(first, rows * columns, cores):
            save(o, out, t // columns, t % columns)


@ttl.operation(grid="full")
def turn_and_add(x, out, number):
    a, o = buffers(x, out)
    rows, columns = (size // 32 for size in out.shape)
    first, cores = ttl.node(dims=1), ttl.grid_size(dims=1)
    for t in range(first, rows * columns, cores):
        load(x, a, t % columns, t // columns)
        with a.wait() as v, o.reserve() as r:
            r.store(ttl.block.transpose(v) + number)
        save(o, out, t // columns, t % columns)
"""

WHOLE = {
    "phases": """
@ttl.operation(grid=(2, 2))
def kernel(x, tmp, out):
    scale(x, tmp, 3.0)
    turn_and_add(tmp, out, 1)
""",
    "nested": """
@ttl.operation(grid="full")
def both(x, tmp, out, number):
    scale(x, tmp, factor=3.0)
    turn_and_add(tmp, out, number)


@ttl.operation(grid=(3, 1))
def kernel(x, tmp, out):
    both(x, tmp, out, 1)
""",
    "between": """
@ttl.operation(grid=(3, 1))
def kernel(x, tmp, out):
    a, o = buffers(x, tmp)
    row = ttl.node(dims=1)
    for c in range(x.shape[1] // 32):
        load(x, a, row, c)
        with a.wait() as v, o.reserve() as r:
            r.store(scaled(v, 3.0))
        save(o, tmp, row, c)
    turn_and_add(tmp, out, 1)
""",
    "own threads last": """
@ttl.operation(grid=(2, 1))
def kernel(x, tmp, out):
    scale(x, tmp, 3.0)
    a, o = buffers(tmp, out)
    rows, columns = (size // 32 for size in out.shape)
    first = ttl.node(dims=1)

    @ttl.datamovement()
    def write():
        for t in range(first, rows * columns, 2):
            save(o, out, t // columns, t % columns)

    @ttl.compute()
    def work():
        for t in range(first, rows * columns, 2):
            with a.wait() as v, o.reserve() as r:
                r.store(ttl.block.transpose(v) + 1)

    @ttl.datamovement()
    def read():
        for t in range(first, rows * columns, 2):
            load(tmp, a, t % columns, t // columns)
""",
}


def numbers(shape, seed=1):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


@pytest.mark.parametrize("name", WHOLE)
def test_operations_meet_in_a_tensor(kernels, name):
    """Cores read tiles that others wrote: a barrier stands between the operations."""
    x = numbers((96, 160))
    tmp, out = np.zeros_like(x), np.zeros((160, 96), np.float32)
    program = kernels.run(PARTS + WHOLE[name], x, tmp, out)
    assert np.abs(tmp - 3 * x).max() <= 1e-6 and np.abs(out - (3 * x.T + 1)).max() <= 1e-6
    assert "noc_semaphore_wait_min" in program.cpp["reader"]


TWICE = """
@ttl.operation(grid="full")
def from_behind(x, out):
    a, o = buffers(x, out)
    last, cores = x.shape[1] // 32 - 1, ttl.grid_size(dims=1)
    for c in range(ttl.node(dims=1), last + 1, cores):
        load(x, a, 0, last - c)
        with a.wait() as v, o.reserve() as r:
            r.store(v + 1)
        save(o, out, 0, last - c)


@ttl.operation(grid=(4, 1))
def kernel(x, z, out):
    scale(x, out, 3.0)
    from_behind(z, out)
"""


def test_the_later_of_two_operations_that_write_a_tensor_wins(kernels):
    """Tiles are written by one core and then by another: not before all have written theirs."""
    x, z = numbers((32, 256)), numbers((32, 256), 2)
    out = np.zeros_like(x)
    program = kernels.run(PARTS + TWICE, x, z, out)
    assert np.abs(out - (z + 1)).max() <= 1e-6
    assert "noc_semaphore_wait_min" in program.cpp["writer"]


THROUGH_BUFFERS = """
@ttl.operation(grid="full")
def bring(x, target):
    row = ttl.node(dims=1)
    for c in range(x.shape[1] // 32):
        load(x, target, row, c)


@ttl.operation(grid="full")
def square(source, target, count):
    @ttl.compute()
    def work():
        for _ in range(count):
            with source.wait() as v, target.reserve() as r:
                r.store(v * v)


@ttl.operation(grid="full")
def take(source, out):
    row = ttl.node(dims=1)

    @ttl.datamovement()
    def write():
        for c in range(out.shape[1] // 32):
            save(source, out, row, c)


@ttl.operation(grid=(2, 1))
def kernel(x, out):
    a, b = buffers(x, out)
    bring(x, a)
    square(a, b, x.shape[1] // 32)
    take(b, out)
"""


def test_operations_meet_in_buffers(kernels):
    """Those that take buffers are parts of threads that run at the same time: nothing waits for a barrier."""
    x = numbers((64, 256))
    out = np.zeros_like(x)
    program = kernels.run(PARTS + THROUGH_BUFFERS, x, out)
    assert np.abs(out - x * x).max() <= 1e-6
    assert "semaphore" not in program.cpp["reader"] + program.cpp["writer"]


HELPERS = """
@ttl.operation(grid=(2, 1))
def kernel(a, b, out):
    a_dfb, b_dfb, out_dfb = buffers(a, b, out)
    row = ttl.node(dims=1)

    def bring(column):
        load(a, a_dfb, row, column)
        load(b, b_dfb, row, column)

    for c in range(a.shape[1] // 32):
        bring(c)
        combine(a_dfb, b_dfb, out_dfb, factor={factor})
        save(out_dfb, out, row, c)
"""


@pytest.mark.parametrize("factor", [2.0, -0.5])
def test_helpers_hold_actions_of_several_threads(kernels, factor):
    a, b = numbers((64, 96)), numbers((64, 96), 2)
    out = np.zeros_like(a)
    program = kernels.run(PARTS + HELPERS.format(factor=factor), a, b, out)
    assert np.abs(out - (a * factor + b)).max() <= 1e-6
    assert "noc_async_write" not in program.cpp["reader"] and "noc_async_read" not in program.cpp["writer"]


IN_A_LOOP = """
@ttl.operation(grid="full")
def hand_over(source, target, number):
    with source.wait() as v, target.reserve() as r:
        r.store(v + number)


@ttl.operation(grid=(1, 1))
def kernel(x, out):
    a, b = buffers(x, out)
    for c in range(x.shape[1] // 32):
        load(x, a, 0, c)
        hand_over(a, b, 5)
        save(b, out, 0, c)
"""


def test_an_operation_is_called_in_a_loop(kernels):
    x = numbers((32, 128))
    out = np.zeros_like(x)
    kernels.run(PARTS + IN_A_LOOP, x, out)
    assert np.abs(out - (x + 5)).max() <= 1e-6


def test_another_inner_operation_is_another_program(kernels):
    loaded = kernels.load(PARTS + WHOLE["phases"])
    x = numbers((64, 64))
    tmp, out = np.zeros_like(x), np.zeros_like(x)
    loaded(x, tmp, out)
    module = loaded.function.__globals__
    module["scaled_before"], module["scale"] = module["scale"], module["turn_and_add"]
    loaded(x, tmp, out)
    assert np.abs(tmp - (x.T + 3)).max() <= 1e-6


WRONG = [
    ("@ttl.operation(grid=(4, 4))\ndef inner(x, out):\n    scale(x, out, 1.0)", "inner(x, out)", "TW015", "wants grid (4, 4)", "same grid"),
    ("import numpy\nother = numpy.zeros((32, 32), numpy.float32)", "scale(x, other, 1.0)", "TW106", "no argument", "outer operation"),
    ("@ttl.operation(grid=\"full\")\ndef inner(x, out):\n    inner(x, out)", "inner(x, out)", "TW005", "without end", "compile time"),
    ("", "scale(x)", "TW004", "missing", "parameters"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "call", "code", "message", "remedy"), WRONG)
def test_wrong_calls(kernels, before, call, code, message, remedy):
    source = f"{PARTS}\n{before}\n\n@ttl.operation(grid=(1, 1))\ndef kernel(x, out):\n    {call}\n"
    x = numbers((32, 32))
    with pytest.raises(KernelError) as caught:
        kernels.compile(source, x, np.zeros_like(x))
    (found,) = caught.value.diagnostics
    assert found.code == code and message in found.message and remedy in (found.help or "") and found.span is not None


def test_an_operation_is_no_helper_of_a_thread(kernels):
    source = PARTS + WHOLE["own threads last"].replace("load(tmp, a, t % columns, t // columns)", "scale(tmp, out, 1.0)")
    x = numbers((64, 64))
    with pytest.raises(KernelError, match="TW001") as caught:
        kernels.compile(source, x, np.zeros_like(x), np.zeros_like(x))
    assert "in the body of the kernel" in (caught.value.diagnostics[0].help or "")
