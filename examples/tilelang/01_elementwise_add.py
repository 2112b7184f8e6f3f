"""C = A + B in TileLang, one 32x32 tile per block of an 8x8 grid: the kernel of the DST specification, verbatim."""

import numpy as np
import tilelang.language as T


@T.prim_func
def elem_add(A, B, C):
    with T.Kernel(8, 8) as (bx, by):
        A_tile = T.alloc_fragment((32, 32), "float16")
        B_tile = T.alloc_fragment((32, 32), "float16")
        C_tile = T.alloc_fragment((32, 32), "float16")

        T.copy(A[by*32:(by+1)*32, bx*32:(bx+1)*32], A_tile)
        T.copy(B[by*32:(by+1)*32, bx*32:(bx+1)*32], B_tile)
        C_tile = A_tile + B_tile
        T.copy(C_tile, C[by*32:(by+1)*32, bx*32:(bx+1)*32])


rng = np.random.default_rng(0)
a = rng.uniform(-1, 1, (256, 256)).astype(np.float16)
b = rng.uniform(-1, 1, (256, 256)).astype(np.float16)
c = np.zeros((256, 256), np.float16)
elem_add(a, b, c)
print("largest error", np.abs(c.astype(np.float32) - (a.astype(np.float32) + b.astype(np.float32))).max())
