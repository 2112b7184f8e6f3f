"""C = A @ B in TileLang, one output tile per block, K in a loop: the second kernel of the DST specification, verbatim."""

import numpy as np
import tilelang.language as T


@T.prim_func
def matmul(A, B, C):
    with T.Kernel(8, 8) as (bx, by):
        C_acc = T.alloc_fragment((32, 32), "float16")
        T.clear(C_acc)

        for k in range(8):
            A_tile = T.alloc_fragment((32, 32), "float16")
            B_tile = T.alloc_fragment((32, 32), "float16")
            T.copy(A[by*32:(by+1)*32, k*32:(k+1)*32], A_tile)
            T.copy(B[k*32:(k+1)*32, bx*32:(bx+1)*32], B_tile)
            T.gemm(A_tile, B_tile, C_acc)

        T.copy(C_acc, C[by*32:(by+1)*32, bx*32:(bx+1)*32])


rng = np.random.default_rng(0)
a = rng.uniform(-1, 1, (256, 256)).astype(np.float16)
b = rng.uniform(-1, 1, (256, 256)).astype(np.float16)
c = np.zeros((256, 256), np.float16)
matmul(a, b, c)
print("largest error", np.abs(c.astype(np.float32) - a.astype(np.float32) @ b.astype(np.float32)).max())
