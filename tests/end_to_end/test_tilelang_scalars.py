"""Single numbers in TileLang kernels: elements of tensors, buffers of one element, expressions of the block's coordinates."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tilelang_runs import both, uniform
from tilewright import tilelang

T = tilelang.language


def test_an_element_of_a_tensor_per_block():
    @T.prim_func
    def kernel(A, S, C):
        with T.Kernel(3, 2) as (bx, by):
            x = T.alloc_fragment((32, 64), "float32")
            v = T.alloc_fragment((32,), "float32")
            T.copy(A[by * 32, bx * 64], x)
            for i in T.Parallel(32):
                v[i] = S[bx, 1]
            for i, j in T.Parallel(32, 64):
                x[i, j] = x[i, j] * S[bx, by] + v[i]
            T.copy(x, C[by * 32, bx * 64])

    a, s = uniform(64, 192), uniform(3, 2, dtype=ml_dtypes.bfloat16, seed=1)
    found = both(kernel, a, s, np.zeros_like(a))
    wide = np.kron(s.astype(np.float32).T, np.ones((32, 64)))
    last = np.kron(np.tile(s.astype(np.float32)[:, 1], (2, 1)), np.ones((32, 64)))
    assert np.abs(found - (a * wide + last)).max() < 1e-5


def test_buffers_of_one_element_name_a_value():
    @T.prim_func
    def kernel(A, S, C):
        with T.Kernel(2) as bx:
            x = T.alloc_fragment((32, 32), "float32")
            total = T.alloc_fragment((32, 32), "float32")
            scale = T.alloc_local((1,), "float32")
            decay = T.alloc_fragment((1,), "float32")
            T.copy(S[bx, 0, 0], decay)
            T.clear(total)
            for k in T.serial(4):
                scale[0] = S[bx, k, 31]
                T.copy(A[bx * 32, k * 32], x)
                for i, j in T.Parallel(32, 32):
                    total[i, j] = total[i, j] * decay[0] + x[i, j] * scale[0]
            T.copy(total, C[bx * 32, 0])

    a, s = uniform(64, 128), uniform(2, 4, 32, seed=1)
    found = both(kernel, a, s, np.zeros((64, 32), np.float32))
    wanted = np.zeros((64, 32), np.float32)
    for k in range(4):
        wanted = wanted * np.repeat(s[:, 0, 0], 32)[:, None]
        wanted += a[:, k * 32 : k * 32 + 32] * np.repeat(s[:, k, 31], 32)[:, None]
    assert np.abs(found - wanted).max() < 1e-5


def test_numbers_computed_from_the_block():
    """A decay per head, as retention has it."""

    @T.prim_func
    def kernel(A, C):
        with T.Kernel(4) as head:
            x = T.alloc_fragment((32, 32), "float32")
            log_decay = T.log2(1 - T.exp2(-5.0 - 1.0 * head))
            T.copy(A[head * 32, 0], x)
            for i, j in T.Parallel(32, 32):
                x[i, j] = T.if_then_else(i >= j, T.exp2((i - j) * log_decay), 0.0) * x[i, j]
            T.copy(x, C[head * 32, 0])

    a = uniform(128, 32)
    found = both(kernel, a, np.zeros_like(a))
    row, column = np.indices((32, 32))
    for head in range(4):
        decay = (1 - 2.0 ** (-5 - head)) ** (row - column)
        block = slice(head * 32, head * 32 + 32)
        assert np.abs(found[block] - np.where(row >= column, decay, 0) * a[block]).max() < 1e-4


def test_loops_inside_parallel_are_unrolled():
    @T.prim_func
    def kernel(A, S, C):
        with T.Kernel(2) as bx:
            x = T.alloc_fragment((32, 32), "float32")
            T.copy(A[bx * 32, 0], x)
            for i, j in T.Parallel(32, 32):
                for k in T.serial(3):
                    x[i, j] = x[i, j] * x[i, j] + S[k]
            T.copy(x, C[bx * 32, 0])

    a, s = uniform(64, 32), uniform(3, seed=1)
    wanted = a
    for k in range(3):
        wanted = wanted * wanted + s[k]
    assert np.abs(both(kernel, a, s, np.zeros_like(a)) - wanted).max() < 1e-5
