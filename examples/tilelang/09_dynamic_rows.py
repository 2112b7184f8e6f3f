"""A product whose number of rows the call decides; a last block that sticks out reads zeros and writes only its rows."""

import numpy as np
import tilelang
import tilelang.language as T


def gemm(N, K, block_M=128, block_N=64, block_K=32, dtype="bfloat16"):
    M = T.dynamic("m")

    @T.prim_func
    def dynamic_gemm(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float")
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return dynamic_gemm


if __name__ == "__main__":
    import ml_dtypes

    kernel = tilelang.compile(gemm(128, 96), out_idx=[-1])
    rng = np.random.default_rng(0)
    b = rng.uniform(-1, 1, (96, 128)).astype(ml_dtypes.bfloat16)
    for m in (100, 200, 256):
        a = rng.uniform(-1, 1, (m, 96)).astype(ml_dtypes.bfloat16)
        c = kernel(a, b)
        assert c.shape == (m, 128)
        print(m, "rows: largest error", np.abs(c.astype(np.float32) - a.astype(np.float32) @ b.astype(np.float32)).max())
