"""Kernels that are legal for every tilelang from 0.1.13 on, and the shapes to run them with. Loaded once with the real package
and once with Tilewright's."""

import tilelang
import tilelang.language as T


@tilelang.jit
def specification_add(M=256, N=256, dtype="float16"):
    """The DST specification's first kernel with types, element by element: tilelang adds no whole fragments."""

    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(8, 8) as (bx, by):
            A_tile = T.alloc_fragment((32, 32), dtype)
            B_tile = T.alloc_fragment((32, 32), dtype)
            C_tile = T.alloc_fragment((32, 32), dtype)
            T.copy(A[by * 32 : (by + 1) * 32, bx * 32 : (bx + 1) * 32], A_tile)
            T.copy(B[by * 32 : (by + 1) * 32, bx * 32 : (bx + 1) * 32], B_tile)
            for i, j in T.Parallel(32, 32):
                C_tile[i, j] = A_tile[i, j] + B_tile[i, j]
            T.copy(C_tile, C[by * 32 : (by + 1) * 32, bx * 32 : (bx + 1) * 32])

    return main


@tilelang.jit
def specification_product(M=256, N=256, K=256, dtype="float16"):
    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(8, 8) as (bx, by):
            C_acc = T.alloc_fragment((32, 32), dtype)
            T.clear(C_acc)
            for k in T.serial(8):
                A_tile = T.alloc_fragment((32, 32), dtype)
                B_tile = T.alloc_fragment((32, 32), dtype)
                T.copy(A[by * 32 : (by + 1) * 32, k * 32 : (k + 1) * 32], A_tile)
                T.copy(B[k * 32 : (k + 1) * 32, bx * 32 : (bx + 1) * 32], B_tile)
                T.gemm(A_tile, B_tile, C_acc)
            T.copy(C_acc, C[by * 32 : (by + 1) * 32, bx * 32 : (bx + 1) * 32])

    return main


@tilelang.jit
def transposed_product(M=128, N=64, K=96, left=False, right=False, dtype="bfloat16"):
    @T.prim_func
    def main(
        A: T.Tensor((K, M) if left else (M, K), dtype),
        B: T.Tensor((N, K) if right else (K, N), dtype),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(M, 64)) as bx:
            x = T.alloc_shared((K, 64) if left else (64, K), dtype)
            y = T.alloc_shared((N, K) if right else (K, N), dtype)
            z = T.alloc_fragment((64, N), "float32")
            T.use_swizzle(10)
            if left:
                T.copy(A[0, bx * 64], x)
            else:
                T.copy(A[bx * 64, 0], x)
            T.copy(B, y)
            T.gemm(x, y, z, transpose_A=left, transpose_B=right, clear_accum=True)
            T.copy(z, C[bx * 64, 0])

    return main


@tilelang.jit
def masks_lets_and_conditions(M=128, N=128):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "bfloat16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(N // 64, M // 64, threads=128) as (bx, by):
            y = T.alloc_fragment((64, 64), "float32")
            for i, j in T.Parallel(64, 64):
                left = A[by * 64 + i, bx * 64 + j] * 2.0
                right = T.sigmoid(A[by * 64 + i, bx * 64 + j])
                y[i, j] = T.if_then_else(by * 64 + i > bx * 64 + j, left + right, T.abs(left) - B[by * 64 + i, bx * 64 + j])
                if y[i, j] < 0.5 and i < 40:
                    y[i, j] = -y[i, j] + T.cast(i, "float32")
                else:
                    y[i, j] = T.max(y[i, j], 1.0) * 0.5
            T.copy(y, C[by * 64, bx * 64])

    return main


@tilelang.jit
def reductions(M=128, N=96, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), R: T.Tensor((M,), dtype), S: T.Tensor((M,), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(M // 32) as bx:
            x = T.alloc_fragment((32, N), dtype)
            low = T.alloc_fragment((32,), dtype)
            high = T.alloc_fragment((32,), dtype)
            total = T.alloc_fragment((32,), dtype)
            columns = T.alloc_fragment((N,), dtype)
            T.copy(A[bx * 32, 0], x)
            T.fill(high, 0.25)
            T.reduce_min(x, low, dim=1)
            T.reduce_absmax(x, high, dim=1, clear=False)
            T.reduce_abssum(x, total, dim=-1)
            T.reduce_max(x, columns, dim=0)
            for i in T.Parallel(32):
                total[i] = T.rsqrt(total[i] * (1.0 / N) + 1e-5)
            for i, j in T.Parallel(32, N):
                x[i, j] = (x[i, j] - low[i]) / high[i] * total[i] + columns[j]
            T.copy(x, C[bx * 32, 0])
            T.copy(low, R[bx * 32])
            T.copy(total, S[bx * 32])

    return main


@tilelang.jit
def conversions(M=64, N=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), v: T.Tensor((N,), "bfloat16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(M // 32) as bx:
            x = T.alloc_fragment((32, N), "float32")
            narrow = T.alloc_fragment((32, N), "bfloat16")
            w = T.alloc_fragment((N,), "bfloat16")
            T.copy(A[bx * 32, 0], x)
            T.copy(v, w)
            T.copy(x, narrow)
            for i, j in T.Parallel(32, N):
                x[i, j] = T.cast(x[i, j] * 3.0, "bfloat16") + x[i, j] * w[j]
            for i, j in T.Parallel(32, N):
                x[i, j] += T.cast(narrow[i, j], "float32") * T.cast(w[j], "float32") + narrow[i, j] * T.exp2(x[i, j])
            T.copy(x, C[bx * 32, 0])

    return main


@tilelang.jit
def loops_and_branches(M=128, N=128, K=128, dtype="bfloat16"):
    @T.macro
    def scaled(target, factor):
        for i, j in T.Parallel(32, 64):
            target[i, j] = T.clamp(target[i, j] * factor, -4.0, 4.0)

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(N // 64, M // 32) as (bx, by):
            x = T.alloc_shared((32, 32), dtype)
            y = T.alloc_shared((32, 64), dtype)
            acc = T.alloc_fragment((32, 64), "float32")
            T.fill(acc, 1.0)
            for k in T.Pipelined(T.ceildiv((by + 1) * 32, 32), num_stages=3):
                T.copy(A[by * 32, k * 32], x)
                T.copy(B[k * 32, bx * 64], y)
                if k % 2 == 0:
                    T.gemm(x, y, acc)
                else:
                    T.gemm(x, y, acc, clear_accum=(k == by))
                scaled(acc, 0.5)
            for step in T.serial(1, 3):
                scaled(acc, 1.5)
            T.copy(acc, C[by * 32, bx * 64])

    return main


@tilelang.jit
def four_dimensions(batch=2, heads=2, rows=64, dim=64):
    @T.prim_func
    def main(Q: T.Tensor((batch, rows, heads, dim), "bfloat16"), O: T.Tensor((batch, rows, heads, dim), "bfloat16")):  # noqa: E741
        with T.Kernel(rows // 32, heads, batch) as (bx, by, bz):
            x = T.alloc_shared((32, dim), "bfloat16")
            y = T.alloc_fragment((32, dim), "float32")
            T.copy(Q[bz, bx * 32 : (bx + 1) * 32, by, :], x)
            for i, j in T.Parallel(32, dim):
                y[i, j] = T.tanh(x[i, j]) + T.log2(T.abs(x[i, j]) + 1.0)
            T.copy(y, O[bz, bx * 32 : (bx + 1) * 32, by, :])

    return main


@tilelang.jit
def eager_product(A, B, block_M=64, block_N=64, block_K=32, dtype=T.bfloat16, accum_dtype=T.float32):
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), dtype)
    B: T.Tensor((K, N), dtype)
    C = T.empty((M, N), accum_dtype)
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        A_shared = T.alloc_shared((block_M, block_K), dtype)
        B_shared = T.alloc_shared((block_K, block_N), dtype)
        C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
            T.copy(A[by * block_M, k * block_K], A_shared)
            T.copy(B[k * block_K, bx * block_N], B_shared)
            T.gemm(A_shared, B_shared, C_local)
        T.copy(C_local, C[by * block_M, bx * block_N])
    return C


@tilelang.jit
def bounds_around_stores(M=70, N=100):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32)) as (bx, by):
            for i, j in T.Parallel(32, 32):
                if by * 32 + i < M and bx * 32 + j < N:
                    C[by * 32 + i, bx * 32 + j] = A[by * 32 + i, bx * 32 + j] * 2.0

    return main


@tilelang.jit
def copies_on_the_way_out(M=64, N=128, K=64, dtype="bfloat16"):
    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(N // 64, M // 32) as (bx, by):
            x = T.alloc_shared((32, 32), dtype)
            y = T.alloc_shared((64, 32), dtype)
            acc = T.alloc_fragment((32, 64), "float32")
            out = T.alloc_shared((32, 64), dtype)
            T.clear(acc)
            for k in T.Pipelined(K // 32, num_stages=2):
                T.copy(A[by * 32, k * 32], x)
                T.copy(B[bx * 64, k * 32], y)
                T.gemm(x, y, acc, transpose_B=True)
            T.copy(acc, out)
            T.copy(out, C[by * 32, bx * 64])

    return main


@tilelang.jit
def prefix_sums(M=64, N=96, dim=1, reverse=False):
    @T.prim_func
    def main(A: T.Tensor((M, N), "bfloat16"), C: T.Tensor((M, N), "bfloat16")):
        with T.Kernel(1) as _:
            x = T.alloc_shared((M, N), "bfloat16")
            T.copy(A, x)
            T.cumsum(x, dim=dim, reverse=reverse)
            T.copy(x, C)

    return main


@tilelang.jit
def element_decides(M=64, N=64, K=128, b=32):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), "bfloat16"),
        B: T.Tensor((K, N), "bfloat16"),
        S: T.Tensor((M // b, N // b, K // b), "float32"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(N // b, M // b) as (bx, by):
            x = T.alloc_shared((b, b), "bfloat16")
            y = T.alloc_shared((b, b), "bfloat16")
            z = T.alloc_fragment((b, b), "float32")
            T.clear(z)
            for k in T.Pipelined(K // b, num_stages=2):
                if S[by, bx, k] > 0.0:
                    T.copy(A[by * b, k * b], x)
                    T.copy(B[k * b, bx * b], y)
                    T.gemm(x, y, z)
            T.copy(z, C[by * b, bx * b])

    return main


@tilelang.jit
def persistent_blocks(M=96, N=160, wave=8):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(wave, threads=128) as block:
            x = T.alloc_fragment((32, 32), "float32")
            for bx, by in T.Persistent([M // 32, N // 32], wave, block):
                T.copy(A[bx * 32, by * 32], x)
                for i, j in T.Parallel(32, 32):
                    x[i, j] = x[i, j] + 1.0
                T.copy(x, C[bx * 32, by * 32])

    return main


@tilelang.jit
def patches_of_an_image(N=2, C=32, H=8, W=8, F=32, K=3, stride=1, padding=1, block=32):
    out_h, out_w = (H + 2 * padding - K) // stride + 1, (W + 2 * padding - K) // stride + 1

    @T.prim_func
    def main(
        data: T.Tensor((N, H, W, C), "bfloat16"),
        weight: T.Tensor((K, K, C, F), "bfloat16"),
        out: T.Tensor((N, out_h, out_w, F), "bfloat16"),
    ):
        with T.Kernel(T.ceildiv(F, block), T.ceildiv(N * out_h * out_w, block)) as (bx, by):
            patch = T.alloc_shared((block, block), "bfloat16")
            part = T.alloc_shared((block, block), "bfloat16")
            total = T.alloc_fragment((block, block), "float32")
            flat_weight = T.Tensor((K * K * C, F), "bfloat16", weight.data)
            flat_out = T.Tensor((N * out_h * out_w, F), "bfloat16", out.data)
            T.clear(total)
            for step in T.Pipelined(T.ceildiv(K * K * C, block), num_stages=2):
                for i, j in T.Parallel(block, block):
                    k = step * block + j
                    m = by * block + i
                    row = m % (out_h * out_w) // out_w * stride + k // (K * C) - padding
                    column = m % out_w * stride + k // C % K - padding
                    inside = row >= 0 and column >= 0 and row < H and column < W
                    patch[i, j] = T.if_then_else(inside, data[m // (out_h * out_w), row, column, k % C], 0)
                T.copy(flat_weight[step * block, bx * block], part)
                T.gemm(patch, part, total)
            T.copy(total, flat_out[by * block, bx * block])

    return main


@tilelang.jit
def split_sums(M=64, N=64, K=128, split=2, elements=True, b=32):
    @T.prim_func
    def main(A: T.Tensor((M, K), "bfloat16"), B: T.Tensor((K, N), "bfloat16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(N // b, M // b, split, threads=128) as (bx, by, bz):
            x = T.alloc_shared((b, b), "bfloat16")
            y = T.alloc_shared((b, b), "bfloat16")
            z = T.alloc_fragment((b, b), "float32")
            T.clear(z)
            for k in T.Pipelined(K // split // b, num_stages=2):
                T.copy(A[by * b, bz * (K // split) + k * b], x)
                T.copy(B[bz * (K // split) + k * b, bx * b], y)
                T.gemm(x, y, z)
            if elements:
                for i, j in T.Parallel(b, b):
                    T.atomic_add(C[by * b + i, bx * b + j], z[i, j])
            else:
                T.atomic_add(C[by * b, bx * b], z)

    return main


# Name, and the arguments of the factory or, for the eager style, sizes and arguments by name.
CASES = [
    ("specification_add", {}),
    ("specification_product", {}),
    *(("transposed_product", {"left": left, "right": right}) for left in (False, True) for right in (False, True)),
    ("masks_lets_and_conditions", {}),
    ("reductions", {}),
    ("conversions", {}),
    ("loops_and_branches", {}),
    ("four_dimensions", {}),
    ("eager_product", {"M": 128, "N": 64, "K": 96}),
    ("bounds_around_stores", {}),
    ("copies_on_the_way_out", {}),
    *(("prefix_sums", {"dim": dim, "reverse": reverse}) for dim in (0, 1) for reverse in (False, True)),
    ("element_decides", {}),
    ("persistent_blocks", {}),
    ("patches_of_an_image", {}),
    ("split_sums", {"elements": True}),
    ("split_sums", {"elements": False}),
    ("patches_of_an_image", {"stride": 2, "C": 16, "F": 40}),
]
