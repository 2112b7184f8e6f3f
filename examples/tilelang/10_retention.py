"""Chunked retention: linear attention whose past fades by a factor per step, in masks and in the state a loop carries."""

import math

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[3])
def retention(batch, heads, seq_len, dim, decay, chunk=64, dtype="bfloat16"):
    shape = (batch, heads, seq_len, dim)
    log_decay = math.log2(decay)

    @T.prim_func
    def main(Q: T.Tensor(shape, dtype), K: T.Tensor(shape, dtype), V: T.Tensor(shape, dtype), Out: T.Tensor(shape, dtype)):
        with T.Kernel(heads, batch) as (bx, by):
            q = T.alloc_shared((chunk, dim), dtype)
            k = T.alloc_shared((chunk, dim), dtype)
            v = T.alloc_shared((chunk, dim), dtype)
            faded = T.alloc_shared((chunk, dim), dtype)
            scores = T.alloc_fragment((chunk, chunk), "float")
            masked = T.alloc_shared((chunk, chunk), dtype)
            state = T.alloc_fragment((dim, dim), "float")
            before = T.alloc_shared((dim, dim), dtype)
            inner = T.alloc_fragment((chunk, dim), "float")
            cross = T.alloc_fragment((chunk, dim), "float")
            T.clear(state)
            for n in T.Pipelined(seq_len // chunk, num_stages=2):
                T.copy(Q[by, bx, n * chunk : (n + 1) * chunk, :], q)
                T.copy(K[by, bx, n * chunk : (n + 1) * chunk, :], k)
                T.copy(V[by, bx, n * chunk : (n + 1) * chunk, :], v)
                T.gemm(q, k, scores, transpose_B=True, clear_accum=True)
                for i, j in T.Parallel(chunk, chunk):
                    masked[i, j] = T.if_then_else(i >= j, scores[i, j] * T.exp2((i - j) * log_decay), 0)
                T.gemm(masked, v, inner, clear_accum=True)
                T.copy(state, before)
                T.gemm(q, before, cross, clear_accum=True)
                for i, j in T.Parallel(chunk, dim):
                    inner[i, j] += cross[i, j] * T.exp2((i + 1) * log_decay)
                    faded[i, j] = k[i, j] * T.exp2((chunk - 1 - i) * log_decay)
                    state[i, j] *= decay**chunk
                T.gemm(faded, v, state, transpose_A=True)
                T.copy(inner, Out[by, bx, n * chunk : (n + 1) * chunk, :])

    return main


if __name__ == "__main__":
    import ml_dtypes

    rng = np.random.default_rng(0)
    q, k, v = ((rng.normal(size=(2, 4, 256, 64)) / 4).astype(ml_dtypes.bfloat16) for _ in range(3))
    out = retention(2, 4, 256, 64, 0.97)(q, k, v).astype(np.float32)
    q, k, v = (x.astype(np.float32) for x in (q, k, v))
    step = np.arange(256)[:, None] - np.arange(256)[None, :]
    weight = np.where(step >= 0, 0.97 ** np.maximum(step, 0), 0)
    print("largest error", np.abs(out - (q @ k.transpose(0, 1, 3, 2) * weight) @ v).max())
