"""Dimensions of one tile, dropped and added: tiles keep their order."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

TEXT = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(a, out):
    a_buffer = ttl.make_dataflow_buffer_like(a, shape={source}, block_count=1)
    out_buffer = ttl.make_dataflow_buffer_like(out, shape={target}, block_count=1)

    @ttl.compute()
    def compute():
        with a_buffer.wait() as x, out_buffer.reserve() as o:
            o.store({stored})

    @ttl.datamovement()
    def read():
        with a_buffer.reserve() as block:
            ttl.copy(a[{read}], block).wait()

    @ttl.datamovement()
    def write():
        with out_buffer.wait() as block:
            ttl.copy(block, out[{written}]).wait()
"""
ALL = {(2, 3): "0:2, 0:3", (1, 2, 3): "0, 0:2, 0:3"}


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float32])
@pytest.mark.parametrize(
    ("source", "target", "stored"),
    [
        ((1, 2, 3), (2, 3), "ttl.block.squeeze(x, dims=[0]) * 2.0"),
        ((1, 2, 3), (2, 3), "ttl.math.squeeze(x) * 2.0"),
        ((1, 2, 3), (2, 3), "ttl.block.squeeze(x * 2.0, [0])"),
        ((2, 3), (1, 2, 3), "ttl.block.unsqueeze(x, dims=[0]) * 2.0"),
        ((2, 3), (2, 3), "ttl.block.squeeze(ttl.math.unsqueeze(x, [0]), [0]) * 2.0"),
    ],
)
def test_tiles_keep_their_order(kernels, source, target, stored, dtype):
    elements = {(2, 3): (64, 96), (1, 2, 3): (1, 64, 96)}
    a = np.random.default_rng(2).uniform(-2, 2, elements[source]).astype(dtype)
    out = np.zeros(elements[target], dtype)
    text = TEXT.format(source=source, target=target, stored=stored, read=ALL[source], written=ALL[target])
    kernels.run_everywhere(text, a, out)
    assert np.array_equal(out.astype(np.float64), 2 * a.astype(np.float64).reshape(out.shape))


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ("ttl.block.squeeze(x, dims=[1])", "cannot lose [1]"),
        ("ttl.block.unsqueeze(x)", "needs the dimensions"),
        ("ttl.block.squeeze(x, dims=[5])", "has no dimension 5"),
    ],
)
def test_what_cannot_be_dropped_is_refused(kernels, stored, said):
    from tilewright.diagnostics import KernelError

    a, out = np.zeros((64, 96), np.float32), np.zeros((64, 96), np.float32)
    text = TEXT.format(source=(2, 3), target=(2, 3), stored=stored, read=ALL[2, 3], written=ALL[2, 3])
    with pytest.raises(KernelError) as error:
        kernels.compile(text, a, out)
    assert said in str(error.value) and "^" in str(error.value)
