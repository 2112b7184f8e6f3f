"""A product whose inner dimension is shared out: the blocks of a sum each add their part to one tensor."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit
def split_product(M, N, K, split, block=32, dtype="bfloat16"):
    part = K // split

    @T.prim_func
    def split_k(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), "float32")):
        with T.Kernel(N // block, M // block, split, threads=128) as (bx, by, bz):
            A_shared = T.alloc_shared((block, block), dtype)
            B_shared = T.alloc_shared((block, block), dtype)
            C_local = T.alloc_fragment((block, block), "float")
            T.clear(C_local)
            for k in T.Pipelined(part // block, num_stages=2):
                T.copy(A[by * block, bz * part + k * block], A_shared)
                T.copy(B[bz * part + k * block, bx * block], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            for i, j in T.Parallel(block, block):
                T.atomic_add(C[by * block + i, bx * block + j], C_local[i, j])

    return split_k


if __name__ == "__main__":
    import ml_dtypes

    rng = np.random.default_rng(0)
    a = rng.uniform(-1, 1, (64, 512)).astype(ml_dtypes.bfloat16)
    b = rng.uniform(-1, 1, (512, 64)).astype(ml_dtypes.bfloat16)
    c = np.ones((64, 64), np.float32)
    split_product(64, 64, 512, 8)(a, b, c)
    print("largest error", np.abs(c - 1 - a.astype(np.float32) @ b.astype(np.float32)).max())
