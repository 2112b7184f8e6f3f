"""A convolution as a product: patches of the image are gathered element by element, weights and results have another shape."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[2])
def convolution(N, H, W, C, F, size=3, stride=1, padding=1, block=32, dtype="bfloat16"):
    out_h, out_w = (H + 2 * padding - size) // stride + 1, (W + 2 * padding - size) // stride + 1

    @T.prim_func
    def patches(
        data: T.Tensor((N, H, W, C), dtype),
        weight: T.Tensor((size, size, C, F), dtype),
        out: T.Tensor((N, out_h, out_w, F), dtype),
    ):
        with T.Kernel(T.ceildiv(F, block), T.ceildiv(N * out_h * out_w, block), threads=128) as (bx, by):
            patch = T.alloc_shared((block, block), dtype)
            weights = T.alloc_shared((block, block), dtype)
            total = T.alloc_fragment((block, block), "float")
            weight_flat = T.Tensor((size * size * C, F), dtype, weight.data)
            out_flat = T.Tensor((N * out_h * out_w, F), dtype, out.data)
            T.clear(total)
            for step in T.Pipelined(T.ceildiv(size * size * C, block), num_stages=2):
                for i, j in T.Parallel(block, block):
                    k = step * block + j
                    m = by * block + i
                    row = m % (out_h * out_w) // out_w * stride + k // (size * C) - padding
                    column = m % out_w * stride + k // C % size - padding
                    inside = row >= 0 and column >= 0 and row < H and column < W
                    patch[i, j] = T.if_then_else(inside, data[m // (out_h * out_w), row, column, k % C], 0)
                T.copy(weight_flat[step * block, bx * block], weights)
                T.gemm(patch, weights, total)
            T.copy(total, out_flat[by * block, bx * block])

    return patches


if __name__ == "__main__":
    import ml_dtypes

    rng = np.random.default_rng(0)
    for stride in (1, 2):
        x = rng.uniform(-1, 1, (2, 12, 12, 32)).astype(ml_dtypes.bfloat16)
        w = rng.uniform(-1, 1, (3, 3, 32, 64)).astype(ml_dtypes.bfloat16)
        found = convolution(2, 12, 12, 32, 64, stride=stride)(x, w).astype(np.float32)
        padded = np.pad(x.astype(np.float32), ((0, 0), (1, 1), (1, 1), (0, 0)))
        wanted = np.zeros_like(found)
        for row in range(3):
            for column in range(3):
                wanted += padded[:, row : row + 12 : stride, column : column + 12 : stride] @ w[row, column].astype(np.float32)
        print("stride", stride, "largest error", np.abs(found - wanted).max())
