"""Integers that differ among cores: entries of large tables, and factors of blocks."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.diagnostics import KernelError

KERNEL = """
import numpy as np
from tilewright import ttl

@ttl.operation(grid={grid})
def kernel(x, out):
    table = {table}
    x_buffer = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=2)
    out_buffer = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)

    def pick(number):
        if number == 2:
            return 2.5
        return 0.75 if number > 3 else 1.25

    @ttl.compute()
    def compute():
        node = ttl.node(dims=1)
        {before}
        for step in range({steps}):
            with x_buffer.wait() as a, out_buffer.reserve() as o:
                o.store({value})

    @ttl.datamovement()
    def read():
        node = ttl.node(dims=1)
        for step in range({steps}):
            with x_buffer.reserve() as block:
                ttl.copy(x[{index}, 0], block).wait()

    @ttl.datamovement()
    def write():
        node = ttl.node(dims=1)
        for step in range({steps}):
            with out_buffer.wait() as block:
                ttl.copy(block, out[node * {steps} + step, 0]).wait()
"""
PLAIN = {"before": "pass", "table": "()", "steps": 1, "value": "a * 1.0", "index": "node"}


def tiles(count: int, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(2).uniform(-1, 1, (count * 32, 32)).astype(dtype)


@pytest.mark.parametrize("made", ["[(7 * n + 3) % 130 for n in range(130)]", "np.array([(7 * n + 3) % 130 for n in range(130)])"])
def test_a_table_with_an_entry_per_core_of_a_large_chip(kernels, made):
    x, out = tiles(130), np.zeros((130 * 32, 32), np.float32)
    source = KERNEL.format(**{**PLAIN, "grid": (13, 10), "table": made, "index": "table[node]"})
    kernels.run(source, x, out, arch="blackhole")
    order = [(7 * n + 3) % 130 for n in range(130)]
    assert (out.reshape(130, 32, 32) == x.reshape(130, 32, 32)[order]).all()


def test_a_table_with_a_row_of_entries_per_core(kernels):
    """Each core is given what its iterations reach."""
    made = "[(11 * n + 5) % 96 for n in range(96)]"
    x, out = tiles(96), np.zeros((96 * 32, 32), np.float32)
    source = KERNEL.format(**{**PLAIN, "grid": (4, 2), "table": made, "steps": 12, "index": "table[node * 12 + step]"})
    kernels.run(source, x, out)
    order = [(11 * n + 5) % 96 for n in range(96)]
    assert (out.reshape(96, 32, 32) == x.reshape(96, 32, 32)[order]).all()


def test_a_table_that_iterations_choose_from_freely_is_refused(kernels):
    x = tiles(400)
    source = KERNEL.format(
        **{**PLAIN, "grid": (1, 1), "table": "[(3 * n) % 400 for n in range(400)]", "steps": 400, "index": "table[step]"}
    )
    with pytest.raises(KernelError) as error:
        kernels.compile(source, x, np.zeros_like(x))
    assert error.value.diagnostics[0].code == "TW007"


VALUES = {
    "a * node": lambda a, n: a * n,
    "node - a": lambda a, n: n - a,
    "a * (3 - node) + node * node": lambda a, n: a * (3 - n) + n * n,
    "ttl.math.exp(a) / (node + 1)": lambda a, n: np.exp(a) / (n + 1),
}


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_a_block_with_a_coordinate(kernels, value, dtype):
    x, out = tiles(6, dtype), np.zeros((6 * 32, 32), dtype)
    kernels.run(KERNEL.format(**{**PLAIN, "grid": (3, 2), "value": value}), x, out)
    node = np.arange(6)[:, None, None]
    wanted = VALUES[value](x.astype(np.float64).reshape(6, 32, 32), node)
    error = 2.0**-21 if dtype is np.float32 else 3 * 2.0**-8
    assert np.abs(out.astype(np.float64).reshape(6, 32, 32) - wanted).max() <= error * np.abs(wanted).max()


FRACTIONS = {
    "a * (node * 0.3)": lambda a, n: a * (n * 0.3),
    "a * pick(node)": lambda a, n: a * np.select([n == 2, n > 3], [2.5, 0.75], 1.25),
    "1 / (node + 1) - a": lambda a, n: 1 / (n + 1) - a,
    "a * -(pick(node) / 8 + node)": lambda a, n: a * -(np.select([n == 2, n > 3], [2.5, 0.75], 1.25) / 8 + n),
    "a * (2.0 if pick(node) > 1 else 3.0)": lambda a, n: a * np.where(n > 3, 3.0, 2.0),
    "a * scale + scale": lambda a, n: a * (n / 4 - 1) + (n / 4 - 1),
    "ttl.math.max(a, scale)": lambda a, n: np.maximum(a, n / 4 - 1),
}


@pytest.mark.parametrize("value", FRACTIONS)
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_a_block_with_a_fraction_of_a_coordinate(kernels, value, dtype):
    x, out = tiles(6, dtype), np.zeros((6 * 32, 32), dtype)
    kernels.run(KERNEL.format(**{**PLAIN, "grid": (3, 2), "before": "scale = node / 4 - 1", "value": value}), x, out)
    node = np.arange(6)[:, None, None]
    wanted = FRACTIONS[value](x.astype(np.float64).reshape(6, 32, 32), node)
    error = 2.0**-21 if dtype is np.float32 else 3 * 2.0**-8
    assert np.abs(out.astype(np.float64).reshape(6, 32, 32) - wanted).max() <= error * np.abs(wanted).max()


def test_a_fraction_of_a_coordinate_may_divide_by_zero(kernels):
    x = tiles(6)
    with pytest.raises(KernelError) as caught:
        kernels.compile(KERNEL.format(**{**PLAIN, "grid": (3, 2), "value": "a * (1 / node)"}), x, np.zeros_like(x))
    assert "division by zero" in str(caught.value)


TURNS = """count, down = 0, 10
        for i in range(node + 1):
            count = count + 2
        for i in range(node, 0, -1):
            down -= 1"""


def test_a_block_with_a_number_that_a_loop_has_counted(kernels):
    """Loops of which every core runs its own number of turns; what they count stays within bounds that are known."""
    x, out = tiles(6), np.zeros((6 * 32, 32), np.float32)
    kernels.run(KERNEL.format(**{**PLAIN, "grid": (3, 2), "before": TURNS, "value": "a / (count // 2 + 1) + down"}), x, out)
    node = np.arange(6)[:, None, None]
    wanted = x.astype(np.float64).reshape(6, 32, 32) / (node + 2) + 10 - node
    assert np.abs(out.reshape(6, 32, 32) - wanted).max() <= 2.0**-20 * 10


def test_a_block_with_a_coordinate_in_a_loop(kernels):
    x, out = tiles(24), np.zeros((24 * 32, 32), np.float32)
    kernels.run(KERNEL.format(**{**PLAIN, "grid": (4, 2), "steps": 3, "value": "a * node", "index": "node * 3 + step"}), x, out)
    wanted = x.reshape(8, 3, 32, 32) * np.arange(8, dtype=np.float32)[:, None, None, None]
    assert (out.reshape(8, 3, 32, 32) == wanted).all()


OUTSIDE = {
    "table[node]": ("(1, 2, 3)", "IndexError: the index is 3 on core (3, 0), of 3 entries"),
    "table[node - 4]": ("(1.0, 2.0, 3.0)", "IndexError: the index is -4 on core (0, 0), of 3 entries"),
    "table[node // 2 + step]": ("[1, 2]", "IndexError: the index is 2 on core (2, 0), of 2 entries"),
    "table[node] * 0": ("{0: 2.0, 1: 3.0, 3: 4.0}", "KeyError: the key is 2 on core (2, 0), of 3 entries"),
    "(table[node] if step > 0 else 1)": ("[1] * 3", "IndexError: the index is 3 on core (3, 0), of 3 entries"),
}


@pytest.mark.parametrize("entry", OUTSIDE)
def test_entries_that_a_core_does_not_find(kernels, entry):
    table, message = OUTSIDE[entry]
    source = KERNEL.format(**{**PLAIN, "grid": (4, 1), "steps": 2, "table": table, "value": f"a * {entry}", "index": "node * 2 + step"})
    x = tiles(8)
    with pytest.raises(KernelError) as caught:
        kernels.compile(source, x, np.zeros_like(x))
    assert "TW017" in str(caught.value) and message in str(caught.value)


LOOPS = """
from tilewright import ttl

@ttl.operation(grid=(4, 1))
def kernel(x, out):
    table = [3, 1, 2, 0]
    x_buffer = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=2)
    out_buffer = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        with x_buffer.wait() as a, out_buffer.reserve() as o:
            o.store(a + 1.0)

    @ttl.datamovement()
    def read():
        node = ttl.node(dims=1)
        for i in range({start}, {stop}):
            for j in range(i, i + 1):
                with x_buffer.reserve() as block:
                    ttl.copy(x[table[j], 0], block).wait()

    @ttl.datamovement()
    def write():
        node = ttl.node(dims=1)
        with out_buffer.wait() as block:
            ttl.copy(block, out[node, 0]).wait()
"""


def test_loops_whose_ends_each_core_knows_stay_inside_a_table(kernels):
    x, out = tiles(4), np.zeros((4 * 32, 32), np.float32)
    kernels.run(LOOPS.format(start="node", stop="node + 1"), x, out)
    assert (out.reshape(4, 32, 32) == x.reshape(4, 32, 32)[[3, 1, 2, 0]] + np.float32(1)).all()
    with pytest.raises(KernelError) as caught:
        kernels.compile(LOOPS.format(start="node + 1", stop="node + 2"), x, out)
    assert "TW017" in str(caught.value) and "the index is 4 on core (3, 0), of 4 entries" in str(caught.value)


COUNTED = """
from tilewright import ttl

@ttl.operation(grid=(3, 1))
def kernel(x, out):
    x_buffer = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=2)
    out_buffer = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)
    node = ttl.node(dims=1)

    @ttl.compute()
    def compute():
        for i in range(node + 1):
            with x_buffer.wait() as a, out_buffer.reserve() as o:
                o.store(a + 1.0)

    @ttl.datamovement()
    def read():
        count = 0
        for i in range(node + 1):
            for j in range(i, i + 1):
                count = count + 1
            with x_buffer.reserve() as block:
                ttl.copy(x[node, USED], block).wait()

    @ttl.datamovement()
    def write():
        for i in range(node + 1):
            with out_buffer.wait() as block:
                ttl.copy(block, out[node, i]).wait()
"""


@pytest.mark.parametrize("used", ["i", "count - 1"])
def test_a_counter_of_nested_loops_of_which_each_core_runs_another_number(kernels, used):
    """Whether anybody reads the counter or not."""
    x = np.random.default_rng(3).uniform(-1, 1, (96, 96)).astype(np.float32)
    out = np.zeros_like(x)
    kernels.run(COUNTED.replace("USED", used), x, out)
    inside = np.kron(np.tri(3), np.ones((32, 32)))
    assert (out == np.where(inside, x + np.float32(1), 0)).all()
