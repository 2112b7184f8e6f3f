"""Softmax of whole rows: reductions to vectors that are broadcast back."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def row_softmax(M, N, block_M=32, dtype="float32"):
    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            x = T.alloc_fragment((block_M, N), dtype)
            largest = T.alloc_fragment((block_M,), dtype)
            total = T.alloc_fragment((block_M,), dtype)
            T.copy(X[bx * block_M : (bx + 1) * block_M, 0:N], x)
            T.reduce_max(x, largest, dim=1)
            for i, j in T.Parallel(block_M, N):
                x[i, j] = T.exp(x[i, j] - largest[i])
            T.reduce_sum(x, total, dim=1)
            for i, j in T.Parallel(block_M, N):
                x[i, j] = x[i, j] / total[i]
            T.copy(x, Y[bx * block_M : (bx + 1) * block_M, 0:N])

    return main


if __name__ == "__main__":
    x = np.random.default_rng(0).uniform(-4, 4, (1024, 256)).astype(np.float32)
    y = row_softmax(1024, 256)(x)
    e = np.exp(x - x.max(1, keepdims=True))
    print("largest error", np.abs(y - e / e.sum(1, keepdims=True)).max())
