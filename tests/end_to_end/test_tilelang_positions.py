"""Masks and other uses of positions in TileLang kernels: exact at any size, in the simulator and natively, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilelang_runs import both, in_mode
from tilewright import tilelang

T = tilelang.language


def in_all_modes(kernel: Any, *tensors: Any) -> Any:
    """The last tensor after a run in each mode, which must agree."""
    found = both(kernel, *tensors)
    assert np.allclose(in_mode("fast", kernel, tensors), found, rtol=1e-5, atol=1e-5)
    return found


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def test_causal_mask_of_a_long_sequence():
    """Rows and columns up to 6144: the difference decides, not the positions."""

    @T.prim_func
    def kernel(A, C):
        with T.Kernel(3, 96) as (bx, by):
            x = T.alloc_fragment((64, 64), "float32")
            T.copy(A[0, 0], x)
            for i, j in T.Parallel(64, 64):
                x[i, j] = T.if_then_else(by * 64 + i >= bx * 2048 + j, x[i, j], -1.0)
            T.copy(x, C[by * 64, bx * 64])

    found = in_all_modes(kernel, ones(64, 64), np.zeros((6144, 192), np.float32))
    row, column = np.indices(found.shape)
    assert np.array_equal(found, np.where(row >= column // 64 * 2048 + column % 64, 1.0, -1.0))


@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "==", "!="])
def test_every_comparison_with_offsets_on_both_sides(op: str):
    @T.prim_func
    def kernel(A, C):
        with T.Kernel(4, 4) as (bx, by):
            x = T.alloc_fragment((32, 64), "float32")
            T.copy(A[0, 0], x)
            for i, j in T.Parallel(32, 64):
                left, right = by * 32 + i - 5, bx * 64 + j - 70
                mask = {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right,
                        "==": left == right, "!=": left != right}[op]  # fmt: skip
                x[i, j] = T.if_then_else(mask, x[i, j], 0)
            T.copy(x, C[by * 32, bx * 64])

    found = in_all_modes(kernel, ones(32, 64), np.zeros((128, 256), np.float32))
    row, column = np.indices(found.shape)
    wanted = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal}
    assert np.array_equal(found, wanted[op](row - 5, column - 70).astype(np.float32))


def test_rows_wider_than_a_repeated_tile_holds():
    @T.prim_func
    def kernel(A, C):
        with T.Kernel(2) as bx:
            x = T.alloc_fragment((32, 2560), "float32")
            T.copy(A[bx * 32, 0], x)
            for i, j in T.Parallel(32, 2560):
                x[i, j] = T.if_then_else(j < 2201, x[i, j], T.cast(j, "float32"))
            T.copy(x, C[bx * 32, 0])

    found = in_all_modes(kernel, ones(64, 2560), np.zeros((64, 2560), np.float32))
    column = np.arange(2560)
    assert np.array_equal(found, np.broadcast_to(np.where(column < 2201, 1.0, column), found.shape).astype(np.float32))


def test_positions_as_values_beyond_2048():
    @T.prim_func
    def kernel(A, C):
        with T.Kernel(80) as by:
            x = T.alloc_fragment((64, 32), "float32")
            T.copy(A[0, 0], x)
            for i, j in T.Parallel(64, 32):
                x[i, j] = x[i, j] * (by * 64 + i) - j
            T.copy(x, C[by * 64, 0])

    found = in_all_modes(kernel, ones(64, 32), np.zeros((5120, 32), np.float32))
    row, column = np.indices(found.shape)
    assert np.array_equal(found, (row - column).astype(np.float32))


def test_numbers_of_the_block_in_elements():
    """A condition on the block alone, a block number as a value, and one that is no multiple of a tile in a comparison."""

    @T.prim_func
    def kernel(A, C):
        with T.Kernel(5, 3) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            T.copy(A[0, 0], x)
            for i, j in T.Parallel(32, 32):
                if bx < 2 and i > 4:
                    x[i, j] = x[i, j] * (bx * 3 + 1)
                else:
                    x[i, j] = T.if_then_else(i + j * 2 < by * 10 + 1, 7.0, x[i, j] - by)
            T.copy(x, C[by * 32, bx * 32])

    found = in_all_modes(kernel, ones(32, 32), np.zeros((96, 160), np.float32))
    row, column = np.indices(found.shape)
    by, i, bx, j = row // 32, row % 32, column // 32, column % 32
    wanted = np.where((bx < 2) & (i > 4), bx * 3 + 1, np.where(i + j * 2 < by * 10 + 1, 7, 1 - by))
    assert np.array_equal(found, wanted.astype(np.float32))


def test_quotients_and_remainders_of_positions():
    @T.prim_func
    def kernel(A, C):
        with T.Kernel(4, 4) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            T.copy(A[0, 0], x)
            for i, j in T.Parallel(32, 32):
                x[i, j] = T.if_then_else((by * 32 + i) // 8 == (bx * 32 + j) // 8, x[i, j] + j % 3, 0)
            T.copy(x, C[by * 32, bx * 32])

    found = in_all_modes(kernel, ones(32, 32), np.zeros((128, 128), np.float32))
    row, column = np.indices(found.shape)
    assert np.array_equal(found, np.where(row // 8 == column // 8, 1.0 + column % 32 % 3, 0).astype(np.float32))


def test_vectors_of_positions_and_a_tensor_of_that_name():
    @T.prim_func
    def kernel(positions, C):
        with T.Kernel(100) as bx:
            v = T.alloc_fragment((32,), "float32")
            T.copy(positions[bx * 32], v)
            for i in T.Parallel(32):
                v[i] = T.if_then_else(bx * 32 + i < 3000, v[i] + (bx * 32 + i), -1.0)
            T.copy(v, C[bx * 32])

    found = in_all_modes(kernel, np.full(3200, 0.5, np.float32), np.zeros(3200, np.float32))
    numbers = np.arange(3200)
    assert np.array_equal(found, np.where(numbers < 3000, numbers + 0.5, -1).astype(np.float32))
