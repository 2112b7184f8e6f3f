"""``T.alloc_global``, and blocks that are no whole tiles."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import execution, tilelang
from tilewright.diagnostics import KernelError

T = tilelang.language


@T.prim_func
def put_down_and_taken_up(A: T.Tensor((64, 64), "float32"), C: T.Tensor((64, 64), "float32")):
    workspace = T.alloc_global((64, 64), "float32")
    with T.Kernel(2, 2) as (bx, by):
        a = T.alloc_fragment((32, 32), "float32")
        b = T.alloc_fragment((32, 32), "float32")
        T.copy(A[by * 32, bx * 32], a)
        for i, j in T.Parallel(32, 32):
            a[i, j] = a[i, j] * 2.0
        T.copy(a, workspace[by * 32, bx * 32])
        for i, j in T.Parallel(32, 32):
            a[i, j] = a[i, j] + 1.0
        T.copy(workspace[by * 32, bx * 32], b)
        for i, j in T.Parallel(32, 32):
            b[i, j] = b[i, j] - a[i, j] * 0.5
        T.copy(b, C[by * 32, bx * 32])


@pytest.mark.parametrize("mode", ["sim", "native"])
def test_what_a_block_stores_it_finds_again(mode):
    a = np.random.default_rng(1).uniform(-1, 1, (64, 64)).astype(np.float32)
    c = np.zeros_like(a)
    with execution.session(mode=mode):
        put_down_and_taken_up(a, c)
    assert np.abs(c - (2 * a - (2 * a + 1) * 0.5)).max() <= 2**-22


@T.prim_func
def taken_up_elsewhere(A: T.Tensor((64, 32), "float32"), C: T.Tensor((64, 32), "float32")):
    workspace = T.alloc_global((64, 32), "float32")
    with T.Kernel(2) as bx:
        a = T.alloc_fragment((32, 32), "float32")
        T.copy(A[bx * 32, 0], a)
        T.copy(a, workspace[bx * 32, 0])
        T.copy(workspace[(1 - bx) * 32, 0], a)
        T.copy(a, C[bx * 32, 0])


def test_what_another_block_stores_is_refused():
    a = np.zeros((64, 32), np.float32)
    with pytest.raises(KernelError) as error:
        taken_up_elsewhere.compile(a, a.copy())
    assert error.value.diagnostics[0].code == "TW001" and error.value.diagnostics[0].span.line > 0


def small_blocks(size: int):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(64 // size, 64 // size) as (bx, by):
            a = T.alloc_shared((size, size), "float32")
            T.copy(A[by * size, bx * size], a)
            T.copy(a, C[by * size, bx * size])

    return main


@pytest.mark.parametrize("size", [16, 8])
def test_blocks_that_are_no_whole_tiles_get_the_nearest_that_are(size):
    a = np.zeros((64, 64), np.float32)
    with pytest.raises(KernelError) as error:
        small_blocks(size).compile(a, a.copy())
    found = error.value.diagnostics[0]
    assert found.code == "TW105" and f"({size}, {size})" in found.message
    assert "(32, 32)" in found.help
