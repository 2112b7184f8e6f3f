"""Blocks of more than two dimensions: what is in front of rows and columns counts matrices of tiles."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.diagnostics import KernelError

TEXT = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(a, b, out):
    a_buffer = ttl.make_dataflow_buffer_like(a, shape={a}, block_count=1)
    b_buffer = ttl.make_dataflow_buffer_like(b, shape={b}, block_count=1)
    out_buffer = ttl.make_dataflow_buffer_like(out, shape={out}, block_count=1)

    @ttl.compute()
    def compute():
        with a_buffer.wait() as x, b_buffer.wait() as y, out_buffer.reserve() as o:
            o.store({stored})

    @ttl.datamovement()
    def read():
        with a_buffer.reserve() as block:
            ttl.copy(a[{all_a}], block).wait()
        with b_buffer.reserve() as block:
            ttl.copy(b[{all_b}], block).wait()

    @ttl.datamovement()
    def write():
        with out_buffer.wait() as block:
            ttl.copy(block, out[{all_out}]).wait()
"""


def elements(tiles):
    return (*tiles[:-2], tiles[-2] * 32, tiles[-1] * 32)


def text_for(a, b, out, stored):
    everything = {f"all_{name}": ", ".join(":" for _ in tiles) for name, tiles in (("a", a), ("b", b), ("out", out))}
    return TEXT.format(a=a, b=b, out=out, stored=stored, **everything)


def first_row(y):
    return y[..., :1, :]


CASES = {
    "sum of matrices": ((2, 2, 3), (2, 2, 3), (2, 2, 3), "x * 2.0 + y", lambda x, y: 2 * x + y),
    "rows by one matrix": ((3, 2, 2), (2, 1), (3, 2, 1), "x @ y", lambda x, y: x @ y),
    "one matrix by one": ((1, 1, 2, 3), (1, 1, 3, 2), (1, 1, 2, 2), "ttl.math.relu(x @ y)", lambda x, y: np.maximum(x @ y, 0)),
    "turned": ((1, 2, 3), (1, 2, 3), (1, 2, 2), "x @ ttl.block.transpose(y)", lambda x, y: x @ y.swapaxes(-1, -2)),
    "softmax": (
        (2, 1, 3),
        (1, 1, 1),
        (2, 1, 3),
        "ttl.math.exp(x) / ttl.math.reduce_sum(ttl.math.exp(x), dims=[-1], shape=(2, 1, 1)) + y * 0.0",
        lambda x, y: np.exp(x) / np.exp(x).sum(-1, keepdims=True),
    ),
    "centred": ((1, 2, 2), (1, 2, 2), (1, 2, 2), "x - ttl.math.reduce_max(y, dims=[1])", lambda x, y: x - y.max(1, keepdims=True)),
    "row for all": (
        (2, 2, 2),
        (1, 1, 2),
        (2, 2, 2),
        "x + ttl.block.broadcast(y, dims=[0, 1], shape=(2, 2, 2))",
        lambda x, y: x + first_row(y),
    ),
    "one number": ((2, 1, 2), (2, 1, 2), (2, 1, 2), "ttl.math.where(x > 0.0, y, 3.0)", lambda x, y: np.where(x > 0, y, 3)),
    "running": ((1, 1, 2), (1, 1, 2), (1, 1, 2), "ttl.block.unsqueeze(ttl.block.squeeze(x, [0]), [0]) * y", lambda x, y: x * y),
}


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float32])
@pytest.mark.parametrize("name", CASES)
def test_values(kernels, name, dtype):
    a, b, out, stored, expected = CASES[name]
    random = np.random.default_rng(7)
    x, y = (random.uniform(-1, 1, elements(tiles)).astype(dtype) for tiles in (a, b))
    result = np.zeros(elements(out), dtype)
    kernels.run_everywhere(text_for(a, b, out, stored), x, y, result)
    exact = expected(x.astype(np.float64), y.astype(np.float64))
    error = np.abs(result.astype(np.float64) - exact).max()
    assert error <= (0.02 if dtype is ml_dtypes.bfloat16 else 0.003) * max(1.0, np.abs(exact).max())


def test_part_of_the_matrices(kernels):
    """Slices may take several entries of the dimensions in front, with a step or listed."""
    text = text_for((2, 1, 2), (2, 1, 2), (2, 1, 2), "x - y").replace("a[:, :, :]", "a[1:5:2, :, :]")
    text = text.replace("b[:, :, :]", "b[[3, 0], 1:2, :]").replace("out[:, :, :]", "out[1:3, 0:1, :]")
    random = np.random.default_rng(8)
    a = random.uniform(-1, 1, (5, 32, 64)).astype(np.float32)
    b = random.uniform(-1, 1, (4, 64, 64)).astype(np.float32)
    out = np.zeros((4, 32, 64), np.float32)
    kernels.run_everywhere(text, a, b, out)
    expected = np.zeros_like(out)
    expected[1:3] = a[1:5:2] - b[[3, 0], 32:]
    assert np.abs(out - expected).max() <= 1e-6


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ("x @ y", "several matrices at once"),
        ("ttl.math.reduce_sum(x, dims=[0]) + y", "reduce_sum over"),
        ("ttl.math.reduce_max(x, dims=[1]) + y", "reduce_max over"),
        ("ttl.block.transpose(x) + y", "transpose of a block of 2x2x2 tiles"),
    ],
)
def test_matrices_are_not_told_apart(kernels, stored, said):
    shape = (2, 2, 2)
    arrays = [np.zeros(elements(shape), np.float32) for _ in range(3)]
    with pytest.raises(KernelError, match=said) as caught:
        kernels.compile(text_for(shape, shape, shape, stored), *arrays)
    assert "loop over them" in caught.value.diagnostics[0].help
