"""Softmax of long rows in two passes over column blocks: a running maximum and a running sum that is rescaled."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def online_softmax(M, N, block_M=32, block_N=64, dtype="float32"):
    log2_e = 1.44269504

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            x = T.alloc_shared((block_M, block_N), dtype)
            y = T.alloc_fragment((block_M, block_N), dtype)
            largest = T.alloc_fragment((block_M,), dtype)
            before = T.alloc_fragment((block_M,), dtype)
            part = T.alloc_fragment((block_M,), dtype)
            total = T.alloc_fragment((block_M,), dtype)
            T.fill(largest, -T.infinity(dtype))
            T.clear(total)
            for k in T.Pipelined(N // block_N, num_stages=2):
                T.copy(X[bx * block_M, k * block_N], x)
                T.copy(largest, before)
                T.reduce_max(x, largest, dim=1, clear=False)
                for i, j in T.Parallel(block_M, block_N):
                    y[i, j] = T.exp2((x[i, j] - largest[i]) * log2_e)
                T.reduce_sum(y, part, dim=1)
                for i in T.Parallel(block_M):
                    total[i] = total[i] * T.exp2((before[i] - largest[i]) * log2_e) + part[i]
            for k in T.Pipelined(N // block_N, num_stages=2):
                T.copy(X[bx * block_M, k * block_N], x)
                for i, j in T.Parallel(block_M, block_N):
                    y[i, j] = T.exp2((x[i, j] - largest[i]) * log2_e) / total[i]
                T.copy(y, Y[bx * block_M, k * block_N])

    return main


if __name__ == "__main__":
    x = np.random.default_rng(0).uniform(-4, 4, (512, 512)).astype(np.float32)
    y = online_softmax(512, 512)(x)
    e = np.exp(x - x.max(1, keepdims=True))
    print("largest error", np.abs(y - e / e.sum(1, keepdims=True)).max())
