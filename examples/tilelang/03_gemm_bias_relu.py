"""relu(A @ B + bias) with 128x128x32 blocks: a factory of typed kernels, pipelined copies, a one-dimensional bias."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def gemm_bias_relu(M, N, K, block_M=128, block_N=128, block_K=32, dtype="bfloat16", accum_dtype="float"):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        bias: T.Tensor((N,), dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            bias_local = T.alloc_fragment((block_N,), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            T.use_swizzle(panel_size=10)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(bias[bx * block_N], bias_local)
            for i, j in T.Parallel(block_M, block_N):
                C_local[i, j] = T.max(C_local[i, j] + bias_local[j], 0)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


if __name__ == "__main__":
    import ml_dtypes

    rng = np.random.default_rng(0)
    a, b = (rng.uniform(-1, 1, (512, 512)).astype(ml_dtypes.bfloat16) for _ in range(2))
    bias = rng.uniform(-1, 1, 512).astype(ml_dtypes.bfloat16)
    kernel = gemm_bias_relu(512, 512, 512)
    c = kernel(a, b, bias)
    wanted = np.maximum(a.astype(np.float32) @ b.astype(np.float32) + bias.astype(np.float32), 0)
    print("largest error", np.abs(c.astype(np.float32) - wanted).max(), "of", wanted.max())
