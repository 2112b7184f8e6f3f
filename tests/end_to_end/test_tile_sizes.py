"""Tiles of 16x32, 32x16 and 16x16."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright import execution, ttl
from tilewright.diagnostics import KernelError
from tilewright.standins.ttnn import names

ttnn = SimpleNamespace(**names.build())
NUMPY = {"float32": np.float32, "bfloat16": ml_dtypes.bfloat16}
SIZES = [(16, 32), (32, 16), (16, 16)]


def tiled(array: Any, tile: tuple[int, int], dtype: str) -> Any:
    return ttnn.from_torch(array, dtype=getattr(ttnn, dtype), layout=ttnn.TILE_LAYOUT, tile=ttnn.Tile(tile))


def numbers(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(NUMPY[dtype])


def everywhere(kernel: Any, arrays: list[tuple[Any, tuple[int, int]]], dtype: str) -> list[Any]:
    """Simulated and native: the same bits."""
    found = []
    for mode in (execution.SIM, execution.NATIVE):
        tensors = [tiled(array, tile, dtype) for array, tile in arrays]
        with execution.session(mode=mode):
            kernel(*tensors)
        found.append([tensor.array for tensor in tensors])
    for simulated, native in zip(*found, strict=True):
        assert simulated.tobytes() == native.tobytes()
    return found[0]


@ttl.operation(grid=(2, 1))
def scaled_sum(a, b, out):
    down, across = (-(-size // tile) for size, tile in zip(a.shape, a.tile.tile_shape, strict=True))
    a_cb, b_cb, o_cb = (ttl.make_dataflow_buffer_like(each, shape=(1, across)) for each in (a, b, out))
    tmp_cb = ttl.make_dfb(a.dtype, shape=(1, across), tile=tuple(a.tile.tile_shape))
    first = ttl.node(dims=1)

    @ttl.compute()
    def work():
        for _ in range(first, down, 2):
            with a_cb.wait() as x, tmp_cb.reserve() as t:
                t.store(ttl.math.abs(x) * 0.5)
            with tmp_cb.wait() as t, b_cb.wait() as y, o_cb.reserve() as o:
                o.store(t + y)

    @ttl.datamovement()
    def read():
        for row in range(first, down, 2):
            with a_cb.reserve() as x, b_cb.reserve() as y:
                ttl.copy(a[row : row + 1, :], x).wait()
                ttl.copy(b[row : row + 1, :], y).wait()

    @ttl.datamovement()
    def write():
        for row in range(first, down, 2):
            with o_cb.wait() as o:
                ttl.copy(o, out[row : row + 1, :]).wait()


@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize("tile", SIZES)
@pytest.mark.parametrize("shape", [(64, 96), (72, 50)])
def test_elementwise(tile, dtype, shape):
    """Of any size: the last tiles are filled up by ttnn."""
    a, b = numbers(shape, dtype), numbers(shape, dtype, 1)
    found = everywhere(scaled_sum, [(a, tile), (b, tile), (np.zeros_like(a), tile)], dtype)[2].astype(np.float64)
    expected = np.abs(a.astype(np.float64)) / 2 + b.astype(np.float64)
    assert np.abs(found - expected).max() <= (2e-2 if dtype == "bfloat16" else 1e-6)


@ttl.operation(grid=(1, 1))
def normalized_product(a, b, out):
    rows, inner, columns = a.shape[0] // 16, a.shape[1] // 32, b.shape[1] // 32
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, inner))
    b_cb = ttl.make_dataflow_buffer_like(b, shape=(inner, columns), block_count=1)
    o_cb = ttl.make_dataflow_buffer_like(out, shape=(1, columns))

    @ttl.compute()
    def work():
        with b_cb.wait() as y:
            for _ in range(rows):
                with a_cb.wait() as x, o_cb.reserve() as o:
                    e = ttl.math.exp(x)
                    total = ttl.math.reduce_sum(e, dims=[1])
                    share = e * ttl.math.recip(ttl.block.broadcast(total, dims=[1], shape=(1, inner)))
                    o.store(share @ y)

    @ttl.datamovement()
    def read():
        with b_cb.reserve() as y:
            ttl.copy(b[:, :], y).wait()
        for row in range(rows):
            with a_cb.reserve() as x:
                ttl.copy(a[row : row + 1, :], x).wait()

    @ttl.datamovement()
    def write():
        for row in range(rows):
            with o_cb.wait() as o:
                ttl.copy(o, out[row : row + 1, :]).wait()


@pytest.mark.parametrize("dtype", NUMPY)
def test_sums_along_rows_and_products_of_halves(dtype):
    a, b = numbers((48, 64), dtype), numbers((64, 96), dtype, 1)
    arrays = [(a, (16, 32)), (b, (32, 32)), (np.zeros((48, 96), NUMPY[dtype]), (16, 32))]
    found = everywhere(normalized_product, arrays, dtype)[2].astype(np.float64)
    e = np.exp(a.astype(np.float64))
    expected = e / e.sum(axis=1, keepdims=True) @ b.astype(np.float64)
    assert np.abs(found - expected).max() <= 2e-2


WRONG = """
from tilewright import ttl


@ttl.operation(grid=(1, 1))
def kernel(a, out):
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1))
    o_cb = MADE

    @ttl.compute()
    def work():
        with a_cb.wait() as x, o_cb.reserve() as o:
            o.store(VALUE)

    @ttl.datamovement()
    def read():
        with a_cb.reserve() as x:
            ttl.copy(a[0, 0], x).wait()

    @ttl.datamovement()
    def write():
        with o_cb.wait() as o:
            ttl.copy(o, out[0, 0]).wait()
"""
LIKE = "ttl.make_dataflow_buffer_like(out, shape=(1, 1))"


@pytest.mark.parametrize(
    ("made", "value", "found"),
    [
        (LIKE, "ttl.math.reduce_sum(x, dims=[0])", "ttl.math.reduce_sum of a block of 16x32 tiles"),
        (LIKE, "ttl.block.transpose(x)", "ttl.block.transpose of a block of 16x32 tiles"),
        (LIKE, "x @ x", "a product with the right side of a block of 16x32 tiles"),
        ('ttl.make_dfb("f32", shape=(1, 1))', "x", "a value of 16x32 tiles is stored into a block of 32x32 tiles"),
        ('ttl.make_dfb("f32", shape=(1, 1), tile=(8, 32))', "x", "tiles of 8x32"),
        ("ttl.make_dataflow_buffer_like(out, shape=(1, 1), tile=(32, 32))", "x", "tile=(32, 32) for a tensor in tiles of 16x32"),
    ],
)
def test_what_smaller_tiles_cannot_do(kernels, made, value, found):
    source = WRONG.replace("MADE", made).replace("VALUE", value)
    tensors = [tiled(np.zeros((16, 32), np.float32), (16, 32), "float32") for _ in range(2)]
    with pytest.raises(KernelError) as caught:
        kernels.load(source).compile(*tensors)
    assert "TW115" in str(caught.value) and found in str(caught.value) and "help" in str(caught.value)


def test_tensors_of_tiles_that_are_not_there():
    tensors = [tiled(np.zeros((8, 32), np.float32), (8, 32), "float32") for _ in range(3)]
    with pytest.raises(KernelError, match="TW115"):
        scaled_sum.compile(*tensors)
