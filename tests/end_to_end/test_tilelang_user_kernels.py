"""TileLang kernels as their users write them, against NumPy in float64: the simulator and the compiled C++ give the same bits."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilelang_runs import uniform
from tilewright import execution, tilelang

T = tilelang.language
BF16 = ml_dtypes.bfloat16


def integers(low: int, high: int, shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


def wide(array: Any) -> Any:
    return np.asarray(array).astype(np.float64)


def check(kernel: Any, inputs: tuple[Any, ...], wanted: Any, tolerance: float) -> None:
    """What the kernel returns, in both engines."""
    found: list[Any] = []
    for mode in ("sim", "native"):
        with execution.session(mode=mode):
            found.append(kernel(*inputs))
    first, second = (result if isinstance(result, tuple) else (result,) for result in found)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for one, other, right in zip(first, second, wanted, strict=True):
        assert one.tobytes() == other.tobytes()
        assert np.abs(wide(one) - right).max() <= tolerance


def blockwise(mask: Any) -> Any:
    return np.kron(mask, np.ones((32, 32)))


# Bounds --------------------------------------------------------------------------------------------------------------


def test_bounds_of_the_tensor_around_a_store():
    @tilelang.jit(out_idx=[-1])
    def vector(N, block=256):
        @T.prim_func
        def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
            with T.Kernel(T.ceildiv(N, block), threads=block) as bx:
                for i in T.Parallel(block):
                    index = bx * block + i
                    if index < N:
                        C[index] = A[index] * 2.0 + B[index]

        return main

    @tilelang.jit(out_idx=[-1])
    def matrix(M, N, block=32):
        @T.prim_func
        def main(A: T.Tensor((M, N), "float32"), C: T.Tensor((M, N), "float32")):
            with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block)) as (bx, by):
                x = T.alloc_fragment((block, block), "float32")
                for i, j in T.Parallel(block, block):
                    x[i, j] = T.if_then_else(by * block + i < M and bx * block + j < N, A[by * block + i, bx * block + j], 0.0)
                for i, j in T.Parallel(block, block):
                    if by * block + i < M and not bx * block + j >= N and by * block + i >= 0:
                        C[by * block + i, bx * block + j] = x[i, j] + 1.0

        return main

    a, b = uniform(1000), uniform(1000, seed=1)
    check(vector(1000), (a, b), wide(a) * 2 + wide(b), 1e-6)
    c = uniform(50, 70)
    check(matrix(50, 70), (c,), wide(c) + 1, 1e-6)


# Launches and loops --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wave", [4, 5, 15])
def test_persistent_blocks(wave: int):
    @tilelang.jit(out_idx=[2])
    def product(M, N, K, block=32):
        @T.prim_func
        def main(A: T.Tensor((M, K), "bfloat16"), B: T.Tensor((K, N), "bfloat16"), C: T.Tensor((M, N), "float32")):
            with T.Kernel(wave, threads=128) as block_id:
                x = T.alloc_shared((block, block), "bfloat16")
                y = T.alloc_shared((block, block), "bfloat16")
                z = T.alloc_fragment((block, block), "float32")
                for bx, by in T.Persistent([T.ceildiv(M, block), T.ceildiv(N, block)], wave, block_id):
                    T.clear(z)
                    for k in T.Pipelined(T.ceildiv(K, block), num_stages=2):
                        T.copy(A[bx * block, k * block], x)
                        T.copy(B[k * block, by * block], y)
                        T.gemm(x, y, z)
                    T.copy(z, C[bx * block, by * block])

        return main

    a, b = uniform(96, 64, dtype=BF16), uniform(64, 160, dtype=BF16, seed=1)
    check(product(96, 160, 64), (a, b), wide(a) @ wide(b), 0.02)


def test_steps_and_numbers_that_change():
    @tilelang.jit(out_idx=[1])
    def sums(M, N):
        @T.prim_func
        def main(A: T.Tensor((M, N), "float32"), C: T.Tensor((M, 32), "float32")):
            with T.Kernel(M // 32) as bx:
                x = T.alloc_fragment((32, 32), "float32")
                total = T.alloc_fragment((32, 32), "float32")
                factor = T.alloc_var("float32")
                factor = 1.0
                T.clear(total)
                for k in range(32, N, 64):
                    T.copy(A[bx * 32, k], x)
                    for i, j in T.Parallel(32, 32):
                        total[i, j] += x[i, j]
                for k in T.serial(3):
                    T.copy(A[bx * 32, k * 32], x)
                    for i, j in T.Parallel(32, 32):
                        total[i, j] += x[i, j] * factor
                    factor = factor * 0.5
                T.copy(total, C[bx * 32, 0])

        return main

    a = uniform(64, 160)
    columns = [wide(a)[:, k : k + 32] for k in range(0, 160, 32)]
    wanted = columns[1] + columns[3] + columns[0] + columns[1] / 2 + columns[2] / 4
    check(sums(64, 160), (a,), wanted, 1e-5)


@pytest.mark.parametrize("dtype", ["int32", "bool", "int8"])
def test_an_element_decides_whether_a_block_counts(dtype: str):
    @tilelang.jit(out_idx=[3])
    def product(M, N, K, b=32):
        @T.prim_func
        def main(
            A: T.Tensor((M, K), "bfloat16"),
            B: T.Tensor((K, N), "bfloat16"),
            Mask: T.Tensor((M // b, N // b, K // b), dtype),
            C: T.Tensor((M, N), "float32"),
        ):
            with T.Kernel(N // b, M // b) as (bx, by):
                x = T.alloc_shared((b, b), "bfloat16")
                y = T.alloc_shared((b, b), "bfloat16")
                z = T.alloc_fragment((b, b), "float32")
                T.use_swizzle(10)
                T.clear(z)
                for k in T.Pipelined(K // b, num_stages=2):
                    if Mask[by, bx, k]:
                        T.copy(A[by * b, k * b], x)
                        T.copy(B[k * b, bx * b], y)
                        T.gemm(x, y, z)
                T.copy(z, C[by * b, bx * b])

        return main

    a, b = uniform(64, 128, dtype=BF16), uniform(128, 64, dtype=BF16, seed=1)
    mask = integers(0, 2, (2, 2, 4), np.dtype(dtype))
    parts = [wide(a)[:, k * 32 : k * 32 + 32] @ wide(b)[k * 32 : k * 32 + 32] * blockwise(mask[:, :, k]) for k in range(4)]
    check(product(64, 64, 128), (a, b, mask), sum(parts), 0.03)


def test_an_element_decides_between_two_ways():
    """A fragment that is loaded before keeps its value; the other way changes others, in a loop of its own."""

    @tilelang.jit(out_idx=[2])
    def choose(M, N):
        @T.prim_func
        def main(A: T.Tensor((M, N), "float32"), S: T.Tensor((M // 32,), "float32"), C: T.Tensor((M, N), "float32")):
            with T.Kernel(M // 32) as bx:
                x = T.alloc_shared((32, N), "float32")
                total = T.alloc_fragment((32, N), "float32")
                top = T.alloc_fragment((32,), "float32")
                T.copy(A[bx * 32, 0], x)
                T.fill(total, 1.0)
                T.fill(top, 0.5)
                if S[bx] > 0.25:
                    T.copy(A[0, 0], x)
                    T.reduce_max(x, top, dim=1)
                else:
                    for _ in T.serial(3):
                        for i, j in T.Parallel(32, N):
                            total[i, j] = total[i, j] * 2.0 + x[i, j]
                for i, j in T.Parallel(32, N):
                    total[i, j] += x[i, j] * top[i]
                T.copy(total, C[bx * 32, 0])

        return main

    a, s = uniform(128, 64), np.array([0.5, 0.1, -1.0, 0.3], np.float32)
    wanted = np.zeros((128, 64))
    for block in range(4):
        own = wide(a)[block * 32 : block * 32 + 32]
        rows = slice(block * 32, block * 32 + 32)
        if s[block] > 0.25:
            first = wide(a)[:32]
            wanted[rows] = 1 + first * first.max(1, keepdims=True)
        else:
            wanted[rows] = 8 + 7 * own + own * 0.5
    check(choose(128, 64), (a, s), wanted, 1e-5)


def test_block_sparse_attention():
    @tilelang.jit(out_idx=[4])
    def attention(heads, seq, dim, b=32):
        scale = (1.0 / dim) ** 0.5 * 1.44269504

        @T.prim_func
        def main(
            Q: T.Tensor((heads, seq, dim), "bfloat16"),
            K: T.Tensor((heads, seq, dim), "bfloat16"),
            V: T.Tensor((heads, seq, dim), "bfloat16"),
            Mask: T.Tensor((heads, seq // b, seq // b), "int32"),
            Output: T.Tensor((heads, seq, dim), "float32"),
        ):
            with T.Kernel(seq // b, heads, threads=128) as (bx, by):
                q = T.alloc_shared((b, dim), "bfloat16")
                k_s = T.alloc_shared((b, dim), "bfloat16")
                v_s = T.alloc_shared((b, dim), "bfloat16")
                score = T.alloc_fragment((b, b), "float32")
                weight = T.alloc_fragment((b, b), "bfloat16")
                acc = T.alloc_fragment((b, dim), "float32")
                top = T.alloc_fragment((b,), "float32")
                before = T.alloc_fragment((b,), "float32")
                shrink = T.alloc_fragment((b,), "float32")
                part = T.alloc_fragment((b,), "float32")
                total = T.alloc_fragment((b,), "float32")
                T.copy(Q[by, bx * b, 0], q)
                T.fill(acc, 0)
                T.fill(total, 0)
                T.fill(top, -1e30)
                for k in T.Pipelined(seq // b, num_stages=1):
                    if Mask[by, bx, k] != 0:
                        T.copy(K[by, k * b, 0], k_s)
                        T.clear(score)
                        T.gemm(q, k_s, score, transpose_B=True)
                        T.copy(top, before)
                        T.reduce_max(score, top, dim=1, clear=False)
                        for i in T.Parallel(b):
                            shrink[i] = T.exp2(before[i] * scale - top[i] * scale)
                        for i, j in T.Parallel(b, b):
                            score[i, j] = T.exp2(score[i, j] * scale - top[i] * scale)
                        T.reduce_sum(score, part, dim=1)
                        for i in T.Parallel(b):
                            total[i] = total[i] * shrink[i] + part[i]
                        T.copy(score, weight)
                        for i, j in T.Parallel(b, dim):
                            acc[i, j] *= shrink[i]
                        T.copy(V[by, k * b, 0], v_s)
                        T.gemm(weight, v_s, acc)
                for i, j in T.Parallel(b, dim):
                    acc[i, j] /= total[i]
                T.copy(acc, Output[by, bx * b, 0])

        return main

    shape = (2, 96, 64)
    q, k, v = (uniform(*shape, dtype=BF16, seed=seed) for seed in range(3))
    mask = integers(0, 2, (2, 3, 3), np.int32, seed=4)
    mask[:, :, 1] = 1
    seen = np.stack([blockwise(head) for head in mask]) > 0
    score = np.where(seen, wide(q) @ wide(k).transpose(0, 2, 1) / 8, -np.inf)
    weight = np.exp(score - score.max(-1, keepdims=True))
    check(attention(*shape), (q, k, v, mask), weight / weight.sum(-1, keepdims=True) @ wide(v), 0.02)


# Sums ----------------------------------------------------------------------------------------------------------------


def test_a_result_that_is_copied_before_it_is_stored_stays_in_dst():
    @tilelang.jit(out_idx=[-1])
    def product(M, N, K, dtype="bfloat16"):
        @T.prim_func
        def main(A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((M, N), dtype)):
            with T.Kernel(N // 64, M // 32) as (bx, by):
                x = T.alloc_shared((32, 32), dtype)
                y = T.alloc_shared((64, 32), dtype)
                z = T.alloc_fragment((32, 64), "float")
                z_shared = T.alloc_shared((32, 64), dtype)
                T.annotate_layout({z_shared: tilelang.layout.make_swizzled_layout(z_shared)})
                T.clear(z)
                for k in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
                    T.copy(A[by * 32, k * 32], x)
                    T.copy(B[bx * 64, k * 32], y)
                    T.gemm(x, y, z, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(z, z_shared)
                T.copy(z_shared, C[by * 32, bx * 64])

        return main

    a, b = uniform(64, 64, dtype=BF16), uniform(128, 64, dtype=BF16, seed=1)
    kernel = product(64, 128, 64)
    check(kernel, (a, b), wide(a) @ wide(b).T, 0.04)
    text = kernel.compile().cpp["compute"]
    assert text.count("cb_reserve_back") == text.count("cb_push_back") == text.count("pack_block") == 1


def test_blocks_add_to_one_tensor():
    """Split-K, by elements and by blocks, with and without a rest; onto what the tensor holds."""

    @tilelang.jit
    def product(M, N, K, split, elements, b=32, dtype="bfloat16"):
        part = K // split

        @T.prim_func
        def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), "float32")):
            with T.Kernel(T.ceildiv(N, b), T.ceildiv(M, b), split, threads=128) as (bx, by, bz):
                x = T.alloc_shared((b, b), dtype)
                y = T.alloc_shared((b, b), dtype)
                z = T.alloc_fragment((b, b), "float32")
                T.clear(z)
                for k in T.Pipelined(T.ceildiv(part, b), num_stages=0):
                    T.copy(A[by * b, bz * part + k * b], x)
                    T.copy(B[bz * part + k * b, bx * b], y)
                    T.gemm(x, y, z)
                if elements:
                    for i, j in T.Parallel(b, b):
                        T.atomic_add(C[by * b + i, bx * b + j], z[i, j])
                else:
                    T.atomic_add(C[by * b, bx * b], z)

        return main

    for shape, elements in (((64, 96), True), ((50, 70), False)):
        a, b = uniform(shape[0], 256, dtype=BF16), uniform(256, shape[1], dtype=BF16, seed=1)
        kernel = product(*shape, 256, 4, elements)
        results = []
        for mode in ("sim", "native"):
            c = np.full(shape, 2, np.float32)
            with execution.session(mode=mode):
                kernel(a, b, c)
            results.append(c)
        assert results[0].tobytes() == results[1].tobytes()
        assert np.abs(wide(results[0]) - (wide(a) @ wide(b) + 2)).max() < 0.02


def test_a_loop_adds_to_blocks_of_others():
    """The gradient of queries, as attention's backward kernels have it: the loop says where, the block does not."""

    @tilelang.jit(out_idx=[2])
    def gradient(heads, seq, dim, b=32):
        @T.prim_func
        def main(
            Q: T.Tensor([heads, seq, dim], "bfloat16"),
            K: T.Tensor([heads, seq, dim], "bfloat16"),
            dQ: T.Tensor([heads, seq, dim], "float32"),
        ):
            with T.Kernel(heads, seq // b) as (bx, by):
                q = T.alloc_shared([b, dim], "bfloat16")
                k = T.alloc_shared([b, dim], "bfloat16")
                score = T.alloc_fragment([b, b], "float32")
                narrow = T.alloc_fragment([b, b], "bfloat16")
                dq = T.alloc_fragment([b, dim], "float32")
                T.copy(K[bx, by * b : (by + 1) * b, :], k)
                for step in T.Pipelined(by, seq // b, num_stages=2):
                    T.copy(Q[bx, step * b : (step + 1) * b, :], q)
                    T.gemm(q, k, score, transpose_B=True, clear_accum=True)
                    for i, j in T.Parallel(b, b):
                        with T.If(score[i, j] > 0):
                            with T.Then():
                                score[i, j] = score[i, j] * 0.5
                            with T.Else():
                                score[i, j] = 0
                    T.copy(score, narrow)
                    T.clear(dq)
                    T.gemm(narrow, k, dq)
                    for i, j in T.Parallel(b, dim):
                        T.atomic_add(dQ[bx, step * b + i, j], dq[i, j])

        return main

    q, k = uniform(2, 96, 32, dtype=BF16), uniform(2, 96, 32, dtype=BF16, seed=1)
    seen = np.kron(np.tril(np.ones((3, 3))), np.ones((32, 32)))
    score = np.maximum(wide(q) @ wide(k).transpose(0, 2, 1), 0) * 0.5 * seen
    check(gradient(2, 96, 32), (q, k), score @ wide(k), 0.05)


def test_prefix_sums():
    @tilelang.jit(out_idx=[1, 2])
    def both_ways(M, N):
        @T.prim_func
        def main(A: T.Tensor((M, N), "bfloat16"), Right: T.Tensor((M, N), "float32"), Up: T.Tensor((M, N), "float32")):
            with T.Kernel(1) as _:
                x = T.alloc_shared((M, N), "bfloat16")
                right = T.alloc_fragment((M, N), "float32")
                up = T.alloc_fragment((M, N), "float32")
                T.copy(A, x)
                T.cumsum(x, right, dim=1)
                T.cumsum(src=x, dst=up, dim=0, reverse=True)
                T.copy(right, Right)
                T.copy(up, Up)

        return main

    @tilelang.jit(out_idx=[1])
    def decays(chunks, length):
        @T.prim_func
        def main(G: T.Tensor((chunks, length), "float32"), D: T.Tensor((chunks, length, length), "float32")):
            with T.Kernel(chunks) as bx:
                g = T.alloc_fragment((length,), "float32")
                d = T.alloc_fragment((length, length), "float32")
                T.copy(G[bx, 0], g)
                T.cumsum(g)
                for i, j in T.Parallel(length, length):
                    d[i, j] = T.if_then_else(i >= j, T.exp(g[i] - g[j]), 0)
                T.copy(d, D[bx, 0, 0])

        return main

    a = uniform(64, 96, dtype=BF16)
    right, up = np.cumsum(wide(a), 1), np.cumsum(wide(a)[::-1], 0)[::-1]
    check(both_ways(64, 96), (a,), (right, up), 4e-3)
    g = uniform(3, 64, low=-0.2, high=0)
    total = np.cumsum(wide(g), 1)
    wanted = np.tril(np.exp(np.minimum(total[:, :, None] - total[:, None, :], 0)))
    check(decays(3, 64), (g,), wanted, 1e-5)


def test_one_row_per_block():
    """Vectors are reduced to one number, which the next loop uses for all elements."""

    @tilelang.jit(out_idx=[1])
    def softmax(M, N):
        @T.prim_func
        def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
            with T.Kernel(M, threads=128) as row:
                x = T.alloc_fragment((N,), "float32")
                top = T.alloc_fragment((1,), "float32")
                total = T.alloc_fragment((1,), "float32")
                T.copy(X[row, 0], x)
                T.reduce_max(x, top, dim=0)
                for j in T.Parallel(N):
                    x[j] = T.exp(x[j] - top[0])
                T.reduce_sum(x, total, dim=0)
                for j in T.Parallel(N):
                    x[j] = x[j] / total[0]
                T.copy(x, Y[row, 0])

        return main

    @tilelang.jit(out_idx=[2])
    def rms_norm(M, N):
        @T.prim_func
        def main(X: T.Tensor((M, N), "bfloat16"), weight: T.Tensor((N,), "float32"), Y: T.Tensor((M, N), "float32")):
            with T.Kernel(M) as row:
                x = T.alloc_fragment((1, N), "float32")
                square = T.alloc_fragment((1, N), "float32")
                w = T.alloc_fragment((N,), "float32")
                scale = T.alloc_fragment((1,), "float32")
                T.copy(X[row : row + 1, :], x)
                T.copy(weight, w)
                for i, j in T.Parallel(1, N):
                    square[i, j] = x[i, j] * x[i, j]
                T.reduce_sum(square, scale, dim=1)
                for i in T.Parallel(1):
                    scale[i] = T.rsqrt(scale[i] / N + 1e-6)
                for i, j in T.Parallel(1, N):
                    x[i, j] = x[i, j] * scale[i] * w[j]
                T.copy(x, Y[row : row + 1, :])

        return main

    a = uniform(3, 160, low=-3, high=3)
    e = np.exp(wide(a) - wide(a).max(1, keepdims=True))
    check(softmax(3, 160), (a,), e / e.sum(1, keepdims=True), 1e-5)
    b, w = uniform(3, 128, dtype=BF16), uniform(128, seed=1)
    check(rms_norm(3, 128), (b, w), wide(b) / np.sqrt((wide(b) ** 2).mean(1, keepdims=True) + 1e-6) * wide(w), 1e-5)


@pytest.mark.parametrize("through_shared", [False, True])
def test_fragments_of_32_bits_compute_in_32_bits(through_shared: bool):
    """Also what is computed from a bfloat16 tensor: squares of 16 bits would lose half of their bits on the way to the sum."""

    @tilelang.jit(out_idx=[1])
    def squares(M, N):
        @T.prim_func
        def main(X: T.Tensor((M, N), "bfloat16"), Y: T.Tensor((M,), "float32")):
            with T.Kernel(M // 32) as bx:
                shared = T.alloc_shared((32, N), "bfloat16")
                x = T.alloc_fragment((32, N), "float32")
                square = T.alloc_fragment((32, N), "float32")
                total = T.alloc_fragment((32,), "float32")
                if through_shared:
                    T.copy(X[bx * 32, 0], shared)
                    T.copy(shared, x)
                else:
                    T.copy(X[bx * 32, 0], x)
                for i, j in T.Parallel(32, N):
                    square[i, j] = x[i, j] * x[i, j]
                T.reduce_sum(square, total, dim=1)
                T.copy(total, Y[bx * 32])

        return main

    x = uniform(64, 128, dtype=BF16)
    check(squares(64, 128), (x,), (wide(x) ** 2).sum(1), 2e-5)


def test_reduction_by_name():
    @tilelang.jit(out_idx=[1])
    def sums(B, M, N):
        @T.prim_func
        def main(X: T.Tensor((B, M, N), "float32"), Y: T.Tensor((B, M), "float32")):
            with T.Kernel(M // 32, B) as (bx, bz):
                x = T.alloc_fragment((32, N), "float32")
                s = T.alloc_fragment((32,), "float32")
                T.copy(X[bz, bx * 32 : bx * 32 + 32, 0:N], x)
                T.reduce(x, s, "sum", 1, True)
                T.copy(s, Y[bz, bx * 32 : bx * 32 + 32])

        return main

    a = uniform(2, 64, 96)
    check(sums(2, 64, 96), (a,), wide(a).sum(2), 1e-4)


# Elements in other places -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("image", "filters", "size", "stride", "dilation", "padding"),
    [((2, 8, 8, 32), 32, 3, 1, 1, 1), ((1, 10, 10, 16), 40, 3, 2, 1, 1), ((1, 9, 9, 32), 32, 2, 1, 2, 0)],
)
def test_convolution(image: tuple[int, ...], filters: int, size: int, stride: int, dilation: int, padding: int):
    """Patches are gathered element by element; weights and results are used in another shape."""
    N, H, W, C = image
    out_h = (H + 2 * padding - dilation * (size - 1) - 1) // stride + 1
    out_w = (W + 2 * padding - dilation * (size - 1) - 1) // stride + 1

    @tilelang.jit(out_idx=[2])
    def convolution(block=32, dtype="bfloat16"):
        @T.prim_func
        def main(
            data: T.Tensor((N, H, W, C), dtype),
            weight: T.Tensor((size, size, C, filters), dtype),
            out: T.Tensor((N, out_h, out_w, filters), dtype),
        ):
            with T.Kernel(T.ceildiv(filters, block), T.ceildiv(N * out_h * out_w, block)) as (bx, by):
                patch = T.alloc_shared((block, block), dtype)
                part = T.alloc_shared((block, block), dtype)
                total = T.alloc_fragment((block, block), "float32")
                weight_flat = T.Tensor((size * size * C, filters), dtype, weight.data)
                out_flat = T.Tensor((N * out_h * out_w, filters), dtype, out.data)
                T.clear(total)
                for step in T.Pipelined(T.ceildiv(size * size * C, block), num_stages=2):
                    for i, j in T.Parallel(block, block):
                        k = step * block + j
                        m = by * block + i
                        row = m % (out_h * out_w) // out_w * stride + k // (size * C) * dilation - padding
                        column = m % out_w * stride + k // C % size * dilation - padding
                        inside = (row >= 0) and (column >= 0) and (row < H) and (column < W)
                        patch[i, j] = T.if_then_else(inside, data[m // (out_h * out_w), row, column, k % C], 0)
                    T.copy(weight_flat[step * block, bx * block], part)
                    T.gemm(patch, part, total)
                T.copy(total, out_flat[by * block, bx * block])

        return main

    x, w = uniform(*image, dtype=BF16), uniform(size, size, C, filters, dtype=BF16, seed=1)
    padded = np.pad(wide(x), ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    wanted = np.zeros((N, out_h, out_w, filters))
    for row in range(size):
        for column in range(size):
            rows = slice(row * dilation, row * dilation + (out_h - 1) * stride + 1, stride)
            columns = slice(column * dilation, column * dilation + (out_w - 1) * stride + 1, stride)
            wanted += padded[:, rows, columns] @ wide(w)[row, column]
    check(convolution(), (x, w), wanted, 0.07)


def test_copies_that_start_between_tiles():
    """A convolution that adds up shifted products."""

    @tilelang.jit(out_idx=[2])
    def convolution(H, W, C, F, size=3):
        @T.prim_func
        def main(
            X: T.Tensor((H + 2, W + 2, C), "bfloat16"),
            Weight: T.Tensor((size, size, C, F), "bfloat16"),
            Y: T.Tensor((H, W, F), "float32"),
        ):
            with T.Kernel(W // 32, H) as (bx, by):
                x = T.alloc_shared((32, C), "bfloat16")
                w = T.alloc_shared((C, F), "bfloat16")
                y = T.alloc_fragment((32, F), "float32")
                T.clear(y)
                for row in T.serial(size):
                    for column in T.serial(size):
                        T.copy(X[by + row, bx * 32 + column : bx * 32 + column + 32, :], x)
                        T.copy(Weight[row, column, :, :], w)
                        T.gemm(x, w, y)
                T.copy(y, Y[by, bx * 32 : bx * 32 + 32, :])

        return main

    x, w = uniform(4, 66, 32, dtype=BF16), uniform(3, 3, 32, 32, dtype=BF16, seed=1)
    parts = [wide(x)[row : row + 2, column : column + 64] @ wide(w)[row, column] for row in range(3) for column in range(3)]
    check(convolution(2, 64, 32, 32), (x, w), sum(parts), 0.03)


def test_strides_shifts_and_reversals():
    @tilelang.jit(out_idx=[1])
    def stencil(M, N):
        @T.prim_func
        def main(A: T.Tensor((M, N), "float32"), C: T.Tensor((M, N), "float32")):
            with T.Kernel(N // 32, M // 32) as (bx, by):
                for i, j in T.Parallel(32, 32):
                    row = by * 32 + i
                    column = bx * 32 + j
                    above = T.if_then_else(row > 0, A[row - 1, column], 0.0)
                    right = T.if_then_else(column < N - 1, A[row, column + 1], 5.0)
                    C[row, column] = above - right + A[row // 2 * 2, N - 1 - column]

        return main

    @tilelang.jit(out_idx=[2])
    def rotate(S, D):
        @T.prim_func
        def main(X: T.Tensor((S, D), "float32"), F: T.Tensor((S, D // 2), "float32"), Y: T.Tensor((S, D), "float32")):
            with T.Kernel(S // 32) as bx:
                for i, j in T.Parallel(32, D):
                    row = bx * 32 + i
                    sign = T.if_then_else(j % 2 == 0, -1.0, 1.0)
                    turned = X[row, j + 1 - 2 * (j % 2)]
                    Y[row, j] = X[row, j] * T.cos(F[row, j // 2]) + sign * turned * T.sin(F[row, j // 2])

        return main

    a = uniform(64, 96)
    above, right = np.pad(wide(a), ((1, 0), (0, 0)))[:-1], np.pad(wide(a), ((0, 0), (0, 1)), constant_values=5)[:, 1:]
    check(stencil(64, 96), (a,), above - right + wide(a)[np.arange(64) // 2 * 2, ::-1], 1e-6)
    x, f = uniform(64, 64), uniform(64, 32, seed=1)
    turned, angle = wide(x).reshape(64, 32, 2)[:, :, ::-1].reshape(64, 64), np.repeat(wide(f), 2, 1)
    check(rotate(64, 64), (x, f), wide(x) * np.cos(angle) + np.tile([-1, 1], 32) * turned * np.sin(angle), 1e-4)


def test_tables_of_integers_say_where():
    """Rows by their numbers, pages of a cache, the weights of an expert, the logit of a label; lengths that differ."""

    @tilelang.jit(out_idx=[2])
    def embedding(words, N, dim):
        @T.prim_func
        def main(Table: T.Tensor((words, dim), "bfloat16"), Ids: T.Tensor((N,), "int64"), Out: T.Tensor((N, dim), "bfloat16")):
            with T.Kernel(N // 32) as bx:
                for i, j in T.Parallel(32, dim):
                    Out[bx * 32 + i, j] = Table[Ids[bx * 32 + i], j]

        return main

    @tilelang.jit(out_idx=[5])
    def scores(batch, pages, dim, experts, most, size=32):
        @T.prim_func
        def main(
            Q: T.Tensor((batch, size, dim), "bfloat16"),
            Cache: T.Tensor((pages * size, dim), "bfloat16"),
            Weight: T.Tensor((experts, dim, dim), "bfloat16"),
            table: T.Tensor((batch, most + 1), "int32"),
            length: T.Tensor((batch,), "int32"),
            S: T.Tensor((batch, size, size), "float32"),
        ):
            with T.Kernel(batch) as bx:
                q = T.alloc_shared((size, dim), "bfloat16")
                w = T.alloc_shared((dim, dim), "bfloat16")
                turned = T.alloc_fragment((size, dim), "float32")
                narrow = T.alloc_shared((size, dim), "bfloat16")
                page = T.alloc_shared((size, dim), "bfloat16")
                total = T.alloc_fragment((size, size), "float32")
                T.copy(Q[bx, 0, 0], q)
                expert = table[bx, most]
                T.copy(Weight[expert, 0:dim, 0:dim], w)
                T.gemm(q, w, turned, clear_accum=True)
                T.copy(turned, narrow)
                T.clear(total)
                for k in T.Pipelined(most, num_stages=2):
                    if k < length[bx]:
                        number = table[bx, k]
                        T.copy(Cache[number * size : number * size + size, :], page)
                        T.gemm(narrow, page, total, transpose_B=True)
                T.copy(total, S[bx, 0, 0])

        return main

    @tilelang.jit(out_idx=[2])
    def loss(M, N):
        @T.prim_func
        def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M,), "int32"), L: T.Tensor((M,), "float32")):
            with T.Kernel(M // 32) as bx:
                x = T.alloc_fragment((32, N), "float32")
                s = T.alloc_fragment((32,), "float32")
                out = T.alloc_fragment((32,), "float32")
                T.copy(X[bx * 32, 0], x)
                for i, j in T.Parallel(32, N):
                    x[i, j] = T.exp(x[i, j])
                T.reduce_sum(x, s, dim=1)
                for i in T.Parallel(32):
                    out[i] = T.log(s[i]) - X[bx * 32 + i, Y[bx * 32 + i]]
                T.copy(out, L[bx * 32])

        return main

    rows, ids = uniform(100, 64, dtype=BF16), integers(0, 100, (64,), np.int64)
    check(embedding(100, 64, 64), (rows, ids), wide(rows)[ids], 0)

    q, cache, w = (uniform(*shape, dtype=BF16, seed=4) for shape in ((2, 32, 32), (8 * 32, 32), (4, 32, 32)))
    table, length = np.array([[3, 0, 7, 2], [5, 5, 1, 0]], np.int32), np.array([2, 3], np.int32)
    wanted = np.zeros((2, 32, 32))
    for batch in range(2):
        turned = wide((wide(q)[batch] @ wide(w)[table[batch, 3]]).astype(BF16))
        for number in table[batch, : length[batch]]:
            wanted[batch] += turned @ wide(cache)[number * 32 : number * 32 + 32].T
    check(scores(2, 8, 32, 4, 3), (q, cache, w, table, length), wanted, 0.1)

    x, y = uniform(64, 96, low=-3, high=3), integers(0, 96, (64,), np.int32)
    check(loss(64, 96), (x, y), np.log(np.exp(wide(x)).sum(1)) - wide(x)[np.arange(64), y], 1e-4)


def test_halves_of_fragments():
    """Rotary embedding in halves, head by head, and a gated unit whose gate is the right half."""

    @tilelang.jit(out_idx=[3])
    def rotate(heads, S, D):
        half = D // 2

        @T.prim_func
        def main(
            X: T.Tensor((S, heads, D), "float32"),
            Cos: T.Tensor((S, half), "float32"),
            Sin: T.Tensor((S, half), "float32"),
            Y: T.Tensor((S, heads, D), "float32"),
        ):
            with T.Kernel(S // 32) as bx:
                x = T.alloc_shared((32, D), "float32")
                y = T.alloc_fragment((32, D), "float32")
                c = T.alloc_shared((32, half), "float32")
                s = T.alloc_shared((32, half), "float32")
                T.copy(Cos[bx * 32, 0], c)
                T.copy(Sin[bx * 32, 0], s)
                for head in T.serial(heads):
                    T.copy(X[bx * 32 : bx * 32 + 32, head, :], x)
                    for i, j in T.Parallel(32, half):
                        y[i, j] = x[i, j] * c[i, j] - x[i, j + half] * s[i, j]
                        y[i, half + j] = x[i, j + half] * c[i, j] + x[i, j] * s[i, j]
                    T.copy(y, Y[bx * 32 : bx * 32 + 32, head, :])

        return main

    @tilelang.jit(out_idx=[1])
    def gated(M, N):
        @T.prim_func
        def main(X: T.Tensor((M, 2 * N), "bfloat16"), Y: T.Tensor((M, N), "bfloat16")):
            with T.Kernel(M // 32) as bx:
                x = T.alloc_shared((32, 2 * N), "bfloat16")
                y = T.alloc_fragment((32, N), "float32")
                T.copy(X[bx * 32, 0], x)
                for i, j in T.Parallel(32, N):
                    y[i, j] = x[i, j] * T.sigmoid(x[i, j + N])
                T.copy(y, Y[bx * 32, 0])

        return main

    x, c, s = uniform(64, 3, 128), uniform(64, 64, seed=1), uniform(64, 64, seed=2)
    left, right, cos, sin = wide(x)[..., :64], wide(x)[..., 64:], wide(c)[:, None], wide(s)[:, None]
    check(rotate(3, 64, 128), (x, c, s), np.concatenate([left * cos - right * sin, right * cos + left * sin], -1), 1e-5)
    z = uniform(64, 128, dtype=BF16)
    check(gated(64, 64), (z,), wide(z)[:, :64] / (1 + np.exp(-wide(z)[:, 64:])), 1e-2)


def test_partial_results_are_combined():
    """Numbers that a loop changes, buffers of one element, and a copy from tensor to tensor."""

    @tilelang.jit(out_idx=[2, 3])
    def combine(heads, splits, dim):
        @T.prim_func
        def main(
            weight: T.Tensor([heads, splits], "float32"),
            part: T.Tensor([heads, splits, dim], "bfloat16"),
            output: T.Tensor([heads, dim], "float32"),
            last: T.Tensor([heads, dim], "float32"),
        ):
            with T.Kernel(heads) as head:
                piece = T.alloc_fragment([dim], "bfloat16")
                total = T.alloc_fragment([dim], "float32")
                top = T.alloc_local([1], "float32")
                norm = T.alloc_local([1], "float32")
                T.clear(norm)
                T.clear(total)
                top[0] = -T.infinity("float32")
                for k in T.serial(splits):
                    top[0] = T.max(top[0], weight[head, k])
                for k in T.serial(splits):
                    norm[0] += T.exp2(weight[head, k] - top[0])
                for k in T.serial(splits):
                    for i in T.Parallel(dim):
                        piece[i] = part[head, k, i]
                    for i in T.Parallel(dim):
                        total[i] += piece[i] * T.exp2(weight[head, k] - top[0]) / norm[0]
                for i in T.Parallel(dim):
                    output[head, i] = total[i]
                T.copy(part[head, splits - 1, 0:dim], last[head, 0:dim])

        return main

    w, p = uniform(3, 4, low=-2, high=2), uniform(3, 4, 64, dtype=BF16, seed=1)
    share = 2.0 ** wide(w)
    wanted = (share / share.sum(1, keepdims=True))[..., None] * wide(p)
    check(combine(3, 4, 64), (w, p), (wanted.sum(1), wide(p)[:, -1]), 1e-2)


# Types of eight bits --------------------------------------------------------------------------------------------------


def test_weights_of_eight_bits():
    @tilelang.jit(out_idx=[-1])
    def product(M, N, K, dtype="bfloat16"):
        @T.prim_func
        def main(
            A: T.Tensor((M, K), dtype), W: T.Tensor((N, K), "int8"), S: T.Tensor((N,), "float32"), C: T.Tensor((M, N), "float32")
        ):
            with T.Kernel(N // 64, M // 32) as (bx, by):
                x = T.alloc_shared((32, 64), dtype)
                w = T.alloc_shared((64, 64), "int8")
                w_local = T.alloc_fragment((64, 64), "int8")
                w_wide = T.alloc_shared((64, 64), dtype)
                scale = T.alloc_fragment((64,), "float32")
                z = T.alloc_fragment((32, 64), "float32")
                T.clear(z)
                T.copy(S[bx * 64], scale)
                for k in T.Pipelined(K // 64, num_stages=2):
                    T.copy(A[by * 32, k * 64], x)
                    T.copy(W[bx * 64, k * 64], w)
                    T.copy(w, w_local)
                    for i, j in T.Parallel(64, 64):
                        w_wide[i, j] = w_local[i, j].astype(dtype)
                    T.gemm(x, w_wide, z, transpose_B=True)
                for i, j in T.Parallel(32, 64):
                    z[i, j] *= scale[j]
                T.copy(z, C[by * 32, bx * 64])

        return main

    a, w, s = uniform(64, 128, dtype=BF16), integers(-128, 128, (128, 128), np.int8), uniform(128, low=0.005, high=0.02)
    kernel = product(64, 128, 128)
    check(kernel, (a, w, s), wide(a) @ wide(w).T * wide(s), 0.05)
    assert any("int8 is held as bfloat16" in note.message for note in kernel.compile().diagnostics)


def test_products_of_small_floats():
    @tilelang.jit(out_idx=[-1])
    def product(M, N, K, kind, b=32):
        @T.prim_func
        def main(A: T.Tensor((M, K), kind), B: T.Tensor((N, K), kind), C: T.Tensor((M, N), "float32")):
            with T.Kernel(N // b, M // b) as (bx, by):
                x = T.alloc_shared((b, b), kind)
                y = T.alloc_shared((b, b), kind)
                z = T.alloc_fragment((b, b), "float32")
                T.clear(z)
                for k in T.Pipelined(K // b, num_stages=2):
                    T.copy(A[by * b, k * b], x)
                    T.copy(B[bx * b, k * b], y)
                    T.gemm(x, y, z, transpose_B=True)
                T.copy(z, C[by * b, bx * b])

        return main

    for kind in ("float8_e4m3fn", "float8_e5m2"):
        a, b = (uniform(64, 64, seed=seed).astype(getattr(ml_dtypes, kind)) for seed in (0, 1))
        check(product(64, 64, 64, kind), (a, b), wide(a) @ wide(b).T, 0.01)


def test_integers_of_eight_bits_are_exact():
    @tilelang.jit(out_idx=[2, 3])
    def products(M, N):
        @T.prim_func
        def main(
            A: T.Tensor((M, N), "int8"), B: T.Tensor((M, N), "uint8"), C: T.Tensor((M, N), "float32"), D: T.Tensor((M, N), "int32")
        ):
            with T.Kernel(N // 32, M // 32) as (bx, by):
                d = T.alloc_fragment((32, 32), "int32")
                for i, j in T.Parallel(32, 32):
                    C[by * 32 + i, bx * 32 + j] = A[by * 32 + i, bx * 32 + j] * B[by * 32 + i, bx * 32 + j] + 1
                for i, j in T.Parallel(32, 32):
                    d[i, j] = T.cast(A[by * 32 + i, bx * 32 + j], "int32") * T.cast(B[by * 32 + i, bx * 32 + j], "int32")
                T.copy(d, D[by * 32, bx * 32])

        return main

    a, b = integers(-128, 128, (64, 64), np.int8), integers(0, 256, (64, 64), np.uint8, seed=1)
    check(products(64, 64), (a, b), (wide(a) * wide(b) + 1, wide(a) * wide(b)), 0)


def test_rows_are_quantized():
    @tilelang.jit(out_idx=[1, 2])
    def quantize(M, N):
        @T.prim_func
        def main(X: T.Tensor((M, N), "float32"), Q: T.Tensor((M, N), "int8"), S: T.Tensor((M,), "float32")):
            with T.Kernel(M // 32) as bx:
                x = T.alloc_fragment((32, N), "float32")
                scale = T.alloc_fragment((32,), "float32")
                q = T.alloc_fragment((32, N), "int8")
                T.copy(X[bx * 32, 0], x)
                T.reduce_absmax(x, scale, dim=1)
                for i in T.Parallel(32):
                    scale[i] = T.max(scale[i], 1e-4) / 127.0
                for i, j in T.Parallel(32, N):
                    q[i, j] = T.cast(T.clamp(x[i, j] / scale[i], -127.0, 127.0), "int8")
                T.copy(q, Q[bx * 32, 0])
                T.copy(scale, S[bx * 32])

        return main

    x = uniform(64, 96)
    scale = np.abs(wide(x)).max(1) / 127
    found, scales = quantize(64, 96)(x)
    assert found.dtype == np.int8
    assert np.abs(wide(scales) - scale).max() < 1e-6
    exact = wide(x) / scale[:, None]
    away_from_a_step = np.abs(exact - np.round(exact)) > 1e-3
    assert (wide(found) == np.trunc(exact))[away_from_a_step].all()
    check(quantize(64, 96), (x,), (wide(found), wide(scales)), 0)
