"""Tensors whose sides are no multiples of 32, and blocks that stick out of their tensor: padded, cut, and masked where it matters."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.diagnostics import KernelError

DTYPES = {"bf16": ml_dtypes.bfloat16, "f32": np.float32}
TOLERANCE = {"bf16": 2e-2, "f32": 1e-5}

# One block of `blocks` tiles per step, in rows and columns of blocks; `body` stores from x into o.
KERNEL = """
from tilewright import ttl

@ttl.operation(grid={grid})
def kernel(x, out):
    a = ttl.make_dataflow_buffer_like(x, shape={block}, block_count=2)
    b = ttl.make_dataflow_buffer_like(out, shape={result}, block_count=2)

    @ttl.compute()
    def compute():
        for _ in range({steps}):
            with a.wait() as x_blk, b.reserve() as o:
                {body}

    @ttl.datamovement()
    def read():
        row, column = ttl.node(dims=2)
        for i in range({steps}):
            with a.reserve() as blk:
                ttl.copy(x[{place}], blk).wait()

    @ttl.datamovement()
    def write():
        row, column = ttl.node(dims=2)
        for i in range({steps}):
            with b.wait() as blk:
                ttl.copy(blk, out[{target}]).wait()
"""


def text(body: str, **parts: object) -> str:
    whole = {"grid": (1, 1), "steps": 1, "block": (1, 1), "target": parts.get("place"), "result": parts.get("block", (1, 1)), **parts}
    return KERNEL.format(body=body, **whole)


def normal(shape: tuple[int, ...], dtype: str, shift: float = 0.0) -> np.ndarray:
    return (np.random.default_rng(7).standard_normal(shape) + shift).astype(DTYPES[dtype])


def close(found: np.ndarray, expected: np.ndarray, dtype: str) -> None:
    scale = np.abs(expected).max()
    assert np.isfinite(found.astype(np.float64)).all()
    assert np.abs(found.astype(np.float64) - expected).max() <= TOLERANCE[dtype] * scale


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize("shape", [(1, 1), (33, 31), (70, 100), (96, 40)])
def test_elementwise(kernels, dtype, shape):
    x = normal(shape, dtype)
    out = np.zeros_like(x)
    tiles = tuple(-(-size // 32) for size in shape)
    kernels.run(text("o.store(x_blk * 2 + 1)", block=tiles, place=f"0:{tiles[0]}, 0:{tiles[1]}"), x, out)
    close(out, x.astype(np.float64) * 2 + 1, dtype)


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("ttl.math.reduce_max(x_blk, dims=[1])", lambda x: x.max(1, keepdims=True)),
        ("ttl.math.reduce_min(x_blk, dims=[1])", lambda x: x.min(1, keepdims=True)),
        ("ttl.math.reduce_sum(x_blk, dims=[1])", lambda x: x.sum(1, keepdims=True)),
        ("ttl.math.reduce_mean(x_blk, dims=[1])", lambda x: x.mean(1, keepdims=True)),
        ("ttl.math.reduce_sum(ttl.math.exp(x_blk), dims=[1])", lambda x: np.exp(x).sum(1, keepdims=True)),
        ("ttl.math.reduce_mean(x_blk * x_blk + 3, dims=[1])", lambda x: (x * x + 3).mean(1, keepdims=True)),
    ],
)
@pytest.mark.parametrize("shift", [-6.0, 6.0])
def test_rows_are_reduced(kernels, dtype, function, expected, shift):
    """A maximum of negative numbers would be 0 if it saw the padding, a minimum of positive ones too."""
    x = normal((40, 75), dtype, shift)
    out = np.zeros((40, 1), x.dtype)
    source = text(f"o.store({function})", block=(2, 3), result=(2, 1), place="0:2, 0:3", target="0:2, 0:1")
    kernels.run(source, x, out)
    close(out, expected(x.astype(np.float64)), dtype)


@pytest.mark.parametrize(
    ("dims", "axes", "result", "tiles"), [([0], 0, (1, 50), (1, 2)), ([0, 1], (0, 1), (1, 1), (1, 1))]
)
def test_columns_and_everything_are_reduced(kernels, dims, axes, result, tiles):
    x = normal((45, 50), "f32", -5)
    out = np.zeros(result, x.dtype)
    source = text(
        f"o.store(ttl.math.reduce_max(x_blk, dims={dims}))", block=(2, 2), result=tiles, place="0:2, 0:2",
        target=f"0:{tiles[0]}, 0:{tiles[1]}",
    )  # fmt: skip
    kernels.run(source, x, out)
    close(out, x.astype(np.float64).max(axis=axes, keepdims=True), "f32")


@pytest.mark.parametrize(
    ("value", "expected"),
    [("x_blk + 1", lambda x: x + 1), ("ttl.math.where(x_blk < 0, x_blk * 0 - 2, x_blk)", lambda x: np.where(x < 0, -2, x))],
)
def test_a_mean_of_everything_counts_the_elements_inside(kernels, value, expected):
    """Rows and columns have a mask each; a ``where`` of the kernel is none."""
    x = normal((45, 77), "f32", 1)
    out = np.zeros((1, 1), x.dtype)
    body = f"o.store(ttl.math.reduce_mean({value}, dims=[0, 1]))"
    source = text(body, block=(2, 3), result=(1, 1), place="0:2, 0:3", target="0:1, 0:1")
    kernels.run(source, x, out)
    close(out, expected(x.astype(np.float64)).mean(keepdims=True), "f32")


@pytest.mark.parametrize(("sign", "expected"), [("+", lambda x, w: x + w), ("*", lambda x, w: x * w)])
def test_a_tensor_ends_where_the_other_goes_on(kernels, sign, expected):
    """Elements of the larger one that stand beside padding do not count: a sum has a mask, and a product is zero there."""
    x, w = normal((40, 75), "f32"), normal((64, 96), "f32", 2)
    out = np.zeros((40, 1), x.dtype)
    body = f"o.store(ttl.math.reduce_sum(x_blk {sign} w_blk, dims=[1]))"
    source = text(body, block=(2, 3), result=(2, 1), place="0:2, 0:3", target="0:2, 0:1")
    for old, new in (
        ("(x, out)", "(x, w, out)"),
        ("    @ttl.compute()", "    c = ttl.make_dataflow_buffer_like(w, shape=(2, 3), block_count=1)\n\n    @ttl.compute()"),
        ("a.wait() as x_blk,", "a.wait() as x_blk, c.wait() as w_blk,"),
        ("with a.reserve() as blk:", "with a.reserve() as blk, c.reserve() as w_blk:\n                ttl.copy(w[0:2, 0:3], w_blk).wait()"),
    ):
        source = source.replace(old, new)
    kernels.run(source, x, w, out)
    close(out, expected(x.astype(np.float64), w.astype(np.float64)[:40, :75]).sum(1, keepdims=True), "f32")


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_a_moving_edge_is_transposed(kernels, dtype):
    """The mask that comes with each block says which of its columns are inside, and the sum is over rows of the transpose."""
    x = normal((32, 75), dtype, 2)
    out = np.zeros((1, 96), x.dtype)
    body = "o.store(ttl.math.reduce_sum(ttl.math.transpose(x_blk + 1), dims=[0]))"
    kernels.run(text(body, steps=3, place="0:1, i:i+1"), x, out)
    pieces = [(x.astype(np.float64)[:, start : start + 32] + 1).sum(1) for start in (0, 32, 64)]
    close(out, np.concatenate(pieces)[None], dtype)


def test_the_largest_few_are_inside(kernels):
    """What was taken out of a block leaves its edge where it was."""
    x = normal((40, 70), "f32", -9)
    out = np.zeros((40, 3), x.dtype)
    body = "values, places = ttl.math.topk(x_blk, 3, dims=[1]); o.store(values)"
    kernels.run(text(body, block=(2, 3), result=(2, 1), place="0:2, 0:3", target="0:2, 0:1"), x, out)
    close(out, -np.sort(-x.astype(np.float64), axis=1)[:, :3], "f32")


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_softmax_by_rows_on_several_cores(kernels, dtype):
    x = normal((100, 200), dtype, -3)
    out = np.zeros_like(x)
    body = "e = ttl.math.exp(x_blk - ttl.math.reduce_max(x_blk, dims=[1])); o.store(e / ttl.math.reduce_sum(e, dims=[1]))"
    program = kernels.run(text(body, grid=(2, 2), block=(1, 7), place="row * 2 + column, 0:7"), x, out)
    wide = np.exp(x.astype(np.float64) - x.astype(np.float64).max(1, keepdims=True))
    close(out, wide / wide.sum(1, keepdims=True), dtype)
    words = [decision.title for decision in program.trace.decisions]
    assert any("all but the first 200 columns are -inf for reduce_max" in word for word in words)
    assert any("all but the first 200 columns are 0 for reduce_sum" in word for word in words)


STREAMED = """
from tilewright import ttl

@ttl.operation(grid={grid})
def kernel(x, out):
    a = ttl.make_dataflow_buffer_like(x, shape=(1, {width}), block_count=2)
    b = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        with b.reserve() as o:
            with a.wait() as blk:
                top = ttl.math.reduce_{kind}(blk{after}, dims=[1])
            for _ in range({steps} - 1):
                with a.wait() as blk:
                    top = {join}(top, ttl.math.reduce_{kind}(blk{after}, dims=[1]))
            o.store(top)

    @ttl.datamovement()
    def read():
        row = ttl.node(dims=1)
        for i in range({steps}):
            with a.reserve() as blk:
                ttl.copy(x[row, i * {width} : i * {width} + {width}], blk).wait()

    @ttl.datamovement()
    def write():
        row = ttl.node(dims=1)
        with b.wait() as blk:
            ttl.copy(blk, out[row, 0]).wait()
"""


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize(("kind", "after", "join"), [("max", "", "ttl.math.max"), ("sum", " + 2", "sum_of")])
def test_the_edge_comes_with_one_of_many_blocks(kernels, width, kind, after, join):
    """Rows are reduced piece by piece; only the last piece has padding, and it may stick out."""
    x = normal((60, 150), "f32", -4)
    out = np.zeros((60, 1), x.dtype)
    source = STREAMED.format(grid=2, width=width, steps=-(-5 // width), kind=kind, after=after, join=join)
    source = source.replace("sum_of(top, ", "(top + ")
    kernels.run(source, x, out)
    wide = x.astype(np.float64)
    close(out, (wide.max(1, keepdims=True) if kind == "max" else (wide + 2).sum(1, keepdims=True)), "f32")


PRODUCT = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(x, w, out):
    a = ttl.make_dataflow_buffer_like(x, shape=(2, 4), block_count=2)
    b = ttl.make_dataflow_buffer_like(w, shape=(4, 2), block_count=2)
    c = ttl.make_dataflow_buffer_like(out, shape=(2, 2), block_count=2)

    @ttl.compute()
    def compute():
        with a.wait() as left, b.wait() as right, c.reserve() as o:
            o.store({value})

    @ttl.datamovement()
    def read():
        with a.reserve() as blk:
            ttl.copy(x[0:2, 0:4], blk).wait()
        with b.reserve() as blk:
            ttl.copy(w[0:4, 0:2], blk).wait()

    @ttl.datamovement()
    def write():
        with c.wait() as blk:
            ttl.copy(blk, out[0:2, 0:2]).wait()
"""


@pytest.mark.parametrize(
    ("value", "left", "right"),
    [
        ("left @ right", lambda x: x, lambda w: w),
        ("ttl.math.exp(left) @ right", np.exp, lambda w: w),
        ("ttl.math.recip(left) @ ttl.math.exp(right)", lambda x: 1 / x, np.exp),
    ],
)
def test_inner_sizes_of_products(kernels, value, left, right):
    """A reciprocal of the padding is infinite; it is no part of the sum."""
    x, w = normal((37, 99), "bf16", 4), normal((99, 51), "bf16")
    out = np.zeros((37, 51), x.dtype)
    kernels.run(PRODUCT.format(value=value), x, w, out)
    close(out, left(x.astype(np.float64)) @ right(w.astype(np.float64)), "bf16")


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_blocks_stick_out(kernels, dtype):
    """Five rows of tiles in blocks of two, on three cores; what lies outside is neither read nor written."""
    x = normal((160, 100), dtype)
    out = np.zeros_like(x)
    source = text("o.store(x_blk + 1)", grid=(3, 1), block=(2, 3), steps=2,
                  place="row * 2 : row * 2 + 2, i * 3 : i * 3 + 3")  # fmt: skip
    program = kernels.run(source, x, out)
    close(out, x.astype(np.float64) + 1, dtype)
    assert any("stick out of 'x'" in decision.title for decision in program.trace.decisions)
    assert "A tile outside the tensor." in program.cpp["reader"]


def test_batches_have_edges_too(kernels):
    x = normal((3, 40, 50), "f32", -4)
    out = np.zeros((3, 40, 1), x.dtype)
    source = text("o.store(ttl.math.reduce_max(x_blk, dims=[1]))", block=(2, 2), result=(2, 1), steps=3,
                  place="i, 0:2, 0:2", target="i, 0:2, 0:1")  # fmt: skip
    kernels.run(source, x, out)
    close(out, x.astype(np.float64).max(2, keepdims=True), "f32")


def test_torch_tensors_have_any_size(kernels):
    torch = pytest.importorskip("torch")
    x = torch.randn(35, 50)
    out = torch.zeros(35, 50)
    kernels.load(text("o.store(x_blk * 3)", block=(2, 2), place="0:2, 0:2"))(x, out)
    assert torch.allclose(out, x * 3, rtol=1e-5)


THROUGH_A_BUFFER = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(x, out):
    a = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=2)
    t = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=4)
    b = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        for _ in range(2):
            with a.wait() as blk, t.reserve() as s:
                s.store({stored})
        with b.reserve() as o:
            with t.wait() as first:
                top = ttl.math.reduce_max(first, dims=[1])
            with t.wait() as second:
                o.store(ttl.math.max(top, ttl.math.reduce_max(second, dims=[1])))

    @ttl.datamovement()
    def read():
        for i in range(2):
            with a.reserve() as blk:
                ttl.copy(x[0, i], blk).wait()

    @ttl.datamovement()
    def write():
        with b.wait() as blk:
            ttl.copy(blk, out[0, 0]).wait()
"""


def test_an_edge_that_is_lost_is_an_error(kernels):
    x, out = normal((32, 50), "f32"), np.zeros((32, 1), np.float32)
    with pytest.raises(KernelError, match="TW113") as caught:
        kernels.compile(THROUGH_A_BUFFER.format(stored="blk * 2"), x, out)
    (found,) = caught.value.diagnostics
    assert "which columns of the block are padding" in found.message and "pad the tensor" in (found.help or "")
    assert found.span is not None
