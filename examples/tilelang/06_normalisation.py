"""RMSNorm and LayerNorm of rows, with weights that are broadcast along the rows."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def rms_norm(M, N, block_M=32, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), weight: T.Tensor((N,), dtype), B: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            A_shared = T.alloc_shared((block_M, N), dtype)
            weights = T.alloc_fragment((N,), dtype)
            squares = T.alloc_fragment((block_M, N), dtype)
            scale = T.alloc_fragment((block_M,), dtype)
            T.copy(A[bx * block_M : (bx + 1) * block_M, :], A_shared)
            T.copy(weight, weights)
            for i, j in T.Parallel(block_M, N):
                squares[i, j] = A_shared[i, j] * A_shared[i, j]
            T.reduce_sum(squares, scale, dim=1)
            for i in T.Parallel(block_M):
                scale[i] = T.rsqrt(scale[i] / N + 1e-12)
            for i, j in T.Parallel(block_M, N):
                A_shared[i, j] *= scale[i] * weights[j]
            T.copy(A_shared, B[bx * block_M : (bx + 1) * block_M, :])

    return main


@tilelang.jit(out_idx=[-1])
def layer_norm(M, N, block_M=32, dtype="float32"):
    @T.prim_func
    def main(
        X: T.Tensor((M, N), dtype), gamma: T.Tensor((N,), dtype), beta: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)
    ):
        with T.Kernel(T.ceildiv(M, block_M), threads=128) as bx:
            x = T.alloc_fragment((block_M, N), dtype)
            squares = T.alloc_fragment((block_M, N), dtype)
            gammas = T.alloc_fragment((N,), dtype)
            betas = T.alloc_fragment((N,), dtype)
            mean = T.alloc_fragment((block_M,), dtype)
            variance = T.alloc_fragment((block_M,), dtype)
            T.copy(X[bx * block_M, 0], x)
            T.copy(gamma, gammas)
            T.copy(beta, betas)
            T.reduce_sum(x, mean, dim=1)
            for i, j in T.Parallel(block_M, N):
                x[i, j] -= mean[i] / N
            for i, j in T.Parallel(block_M, N):
                squares[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(squares, variance, dim=1)
            for i, j in T.Parallel(block_M, N):
                x[i, j] = x[i, j] * T.rsqrt(variance[i] / N + 1e-5) * gammas[j] + betas[j]
            T.copy(x, Y[bx * block_M, 0])

    return main


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 3, (512, 256)).astype(np.float32)
    g, b = (rng.uniform(-1, 1, 256).astype(np.float32) for _ in range(2))
    wanted = x / np.sqrt((x * x).mean(1, keepdims=True)) * g
    print("rms norm: largest error", np.abs(rms_norm(512, 256)(x, g) - wanted).max())
    wanted = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * g + b
    print("layer norm: largest error", np.abs(layer_norm(512, 256)(x, g, b) - wanted).max())
