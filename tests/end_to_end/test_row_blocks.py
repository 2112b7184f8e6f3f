"""Blocks that count elements: whole rows of row-major tensors."""

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
NUMPY = {"float32": np.float32, "bfloat16": ml_dtypes.bfloat16, "int32": np.int32}


def rows(array: Any, dtype: str) -> Any:
    return ttnn.from_torch(array, dtype=getattr(ttnn, dtype), layout=ttnn.ROW_MAJOR_LAYOUT)


def numbers(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-4, 4, shape).astype(NUMPY[dtype])


def everywhere(kernel: Any, arrays: list[Any], dtype: str) -> list[Any]:
    """Simulated and native: the same bits."""
    found = []
    for mode in (execution.SIM, execution.NATIVE):
        tensors = [rows(array, dtype) for array in arrays]
        with execution.session(mode=mode):
            kernel(*tensors)
        found.append([tensor.array for tensor in tensors])
    for simulated, native in zip(*found, strict=True):
        assert simulated.tobytes() == native.tobytes()
    return found[0]


@ttl.operation(grid=(2, 1))
def upsampled(images, out):
    count, height, width, channels = images.shape
    blocks = ttl.make_dataflow_buffer_like(images, shape=(channels,), block_count=2)
    column = ttl.node(dims=1)

    @ttl.datamovement()
    def read():
        for image in range(count):
            for row in range(column, height, 2):
                for x in range(width):
                    with blocks.reserve() as pixel:
                        ttl.copy(images[image, row, x, :], pixel).wait()

    @ttl.datamovement()
    def write():
        for image in range(count):
            for row in range(column, height, 2):
                for x in range(width):
                    with blocks.wait() as pixel:
                        group = ttl.GroupTransfer()
                        for down in range(2):
                            for across in range(2):
                                group.add(ttl.copy(pixel, out[image, row * 2 + down, x * 2 + across, :]))
                        group.wait_all()


@pytest.mark.parametrize(("dtype", "channels"), [("float32", 32), ("bfloat16", 30), ("float32", 1000), ("int32", 7)])
def test_rows_are_copied_as_they_are(dtype, channels):
    images = numbers((2, 3, 2, channels), dtype)
    out = np.zeros((2, 6, 4, channels), NUMPY[dtype])
    _, found = everywhere(upsampled, [images, out], dtype)
    assert np.array_equal(found, images.repeat(2, axis=1).repeat(2, axis=2))


@ttl.operation(grid=(1, 2))
def mixed(a, b, out):
    high, wide = 5, a.shape[1]
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(high, wide))
    b_cb = ttl.make_dataflow_buffer_like(b, shape=(1, wide))
    o_cb = ttl.make_dataflow_buffer_like(out, shape=(high, wide))
    top = ttl.node(dims=1) * high

    @ttl.compute()
    def work():
        with a_cb.wait() as x, b_cb.wait() as y, o_cb.reserve() as o:
            o.store(ttl.math.exp(x) * 0.5 + y)

    @ttl.datamovement()
    def read():
        with a_cb.reserve() as x, b_cb.reserve() as y:
            ttl.copy(a[top : top + high, 0:wide], x).wait()
            ttl.copy(b[0:1, :], y).wait()

    @ttl.datamovement()
    def write():
        with o_cb.wait() as o:
            ttl.copy(o, out[top : top + high, :]).wait()


@pytest.mark.parametrize(("dtype", "wide", "bound"), [("float32", 48, 1e-5), ("bfloat16", 30, 2e-2), ("float32", 1024, 1e-5)])
def test_elementwise_math_takes_rows(dtype, wide, bound):
    """A single row meets many, as in NumPy."""
    a, b = numbers((10, wide), dtype), numbers((1, wide), dtype, 1)
    found = everywhere(mixed, [a, b, np.zeros_like(a)], dtype)[2].astype(np.float64)
    expected = np.exp(a.astype(np.float64)) * 0.5 + b.astype(np.float64)
    assert np.abs(found - expected).max() <= bound * np.abs(expected).max()


@ttl.operation(grid=(3, 1))
def shared_out(vector, out):
    (wide,) = vector.shape
    v_cb = ttl.make_dataflow_buffer_like(vector, shape=(wide,))
    net = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=(slice(0, 3), 0))])

    @ttl.datamovement()
    def read():
        with v_cb.reserve() as row:

            def give(pipe):
                ttl.copy(vector[:], row).wait()
                ttl.copy(row, pipe).wait()

            net.if_src(give)
            net.if_dst(lambda pipe: ttl.copy(pipe, row).wait())

    @ttl.datamovement()
    def write():
        with v_cb.wait() as row:
            ttl.copy(row, out[ttl.node(dims=1), :]).wait()


@pytest.mark.simulated_only("runs natively itself")
def test_a_vector_through_a_pipe():
    vector = numbers((200,), "float32")
    _, found = everywhere(shared_out, [vector, np.zeros((3, 200), np.float32)], "float32")
    assert np.array_equal(found, np.stack([vector] * 3))


WRONG = """
from tilewright import ttl


@ttl.operation(grid=(1, 1))
def kernel(a, out):
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(4, 48))
    o_cb = ttl.make_dataflow_buffer_like(out, shape=SHAPE)
    t_cb = ttl.make_dfb("f32", shape=(4, 1))

    @ttl.compute()
    def work():
        with a_cb.wait() as x, o_cb.reserve() as o:
            o.store(VALUE)

    @ttl.datamovement()
    def read():
        with a_cb.reserve() as x:
            ttl.copy(a[PLACE], x).wait()

    @ttl.datamovement()
    def write():
        with o_cb.wait() as o:
            ttl.copy(o, out[0:4, :]).wait()
"""


@pytest.mark.parametrize(
    ("value", "place", "found"),
    [
        ("ttl.math.reduce_sum(x, dims=[1])", "0:4, :", "ttl.math.reduce_sum of a block that counts elements"),
        ("x @ x", "0:4, :", "a product of a block that counts elements"),
        ("x[0:1, 0:1]", "0:4, :", "a part of a block that counts elements"),
        ("x + x", "0:4, 0:16", "a part of a row of 'a'"),
        ("x + x", "0:3, :", "slice of 'a' has 3x1 tiles"),
    ],
)
def test_what_rows_cannot_do(kernels, value, place, found):
    source = WRONG.replace("VALUE", value).replace("PLACE", place).replace("SHAPE", "(4, 48)")
    tensors = [rows(numbers((4, 48), "float32"), "float32") for _ in range(2)]
    with pytest.raises(KernelError) as caught:
        kernels.load(source).compile(*tensors)
    text = str(caught.value)
    assert found in text and ("TW114" in text or "TW104" in text) and "help" in text


def test_rows_and_tiles_do_not_meet(kernels):
    source = WRONG.replace("VALUE", "x").replace("PLACE", "0:4, :").replace("SHAPE", "(4, 1)")
    tensors = [rows(numbers((4, 48), "float32"), "float32"), np.zeros((128, 32), np.float32)]
    with pytest.raises(KernelError, match="TW114"):
        kernels.load(source).compile(*tensors)


def test_rows_longer_than_a_tile():
    tensors = [rows(np.zeros((1, 2, 2, 1030), np.float32), "float32"), rows(np.zeros((1, 4, 4, 1030), np.float32), "float32")]
    with pytest.raises(KernelError, match="1030 elements, more than the 1024 of a tile"):
        upsampled.compile(*tensors)
