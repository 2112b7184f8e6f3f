"""Chunked linear attention: each chunk attends to itself and to a state that a loop carries and adds to."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[3])
def linear_attention(batch, heads, seq_len, dim, chunk=64, dtype="bfloat16"):
    shape = (batch, heads, seq_len, dim)

    @T.prim_func
    def main(Q: T.Tensor(shape, dtype), K: T.Tensor(shape, dtype), V: T.Tensor(shape, dtype), Out: T.Tensor(shape, dtype)):
        with T.Kernel(heads, batch) as (bx, by):
            q = T.alloc_shared((chunk, dim), dtype)
            k = T.alloc_shared((chunk, dim), dtype)
            v = T.alloc_shared((chunk, dim), dtype)
            scores = T.alloc_fragment((chunk, chunk), "float")
            masked = T.alloc_shared((chunk, chunk), dtype)
            state = T.alloc_fragment((dim, dim), "float")
            before = T.alloc_shared((dim, dim), dtype)
            out = T.alloc_fragment((chunk, dim), "float")
            T.clear(state)
            for n in T.Pipelined(seq_len // chunk, num_stages=1):
                T.copy(Q[by, bx, n * chunk : (n + 1) * chunk, :], q)
                T.copy(K[by, bx, n * chunk : (n + 1) * chunk, :], k)
                T.copy(V[by, bx, n * chunk : (n + 1) * chunk, :], v)
                T.gemm(q, k, scores, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(chunk, chunk):
                    masked[i, j] = T.if_then_else(i >= j, scores[i, j], 0)
                T.gemm(masked, v, out, clear_accum=True)
                T.copy(state, before)
                T.gemm(q, before, out)
                T.gemm(k, v, state, transpose_A=True)
                T.copy(out, Out[by, bx, n * chunk : (n + 1) * chunk, :])

    return main


if __name__ == "__main__":
    import ml_dtypes

    rng = np.random.default_rng(0)
    q, k, v = ((rng.normal(size=(1, 4, 256, 64)) / 4).astype(ml_dtypes.bfloat16) for _ in range(3))
    out = linear_attention(1, 4, 256, 64)(q, k, v).astype(np.float32)
    q, k, v = (x.astype(np.float32) for x in (q, k, v))
    print("largest error", np.abs(out - np.tril(q @ k.transpose(0, 1, 3, 2)) @ v).max())
