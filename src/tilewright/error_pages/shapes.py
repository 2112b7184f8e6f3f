"""Shapes and types that do not agree (TW1)."""

from __future__ import annotations

from tilewright.error_pages.page import Code

SHAPES: dict[str, Code] = {
    "TW101": Code(
        "shapes differ",
        "Blocks combine element by element, so both must have the same number of tiles in each dimension; matmul "
        "needs equal inner sizes. ttl.block.broadcast repeats a row, a column or a tile to a larger block.",
    ),
    "TW102": Code(
        "dtypes differ",
        "Floats of different format combine in the finest, and a store converts between them. Integers and floats, and "
        "integers of different width, do not: convert with ttl.math.typecast, or make the buffer like a tensor of the "
        "right dtype. A copy never converts.",
    ),
    "TW103": Code(
        "slice outside the tensor",
        "Tensor indices count tiles of 32x32 elements: a 128x64 tensor has rows 0 to 3 and columns 0 to 1. Every core"
        " and iteration was checked; the message names one that leaves the tensor. Guard the copy with an if when the"
        " work does not divide evenly, and use the same guard in all threads.",
    ),
    "TW104": Code(
        "slice unlike its block",
        "A copy fills a whole block, so the slice must have exactly as many tiles as the block in each dimension, the"
        " same on every core and in every iteration. tensor[r, c] is one tile; tensor[r:r+2, c:c+2] is 2x2 tiles.",
    ),
    "TW105": Code(
        "tensor not tile-aligned",
        "The last two dimensions of a tensor must be multiples of 32. Pad the tensor before the call.",
    ),
    "TW106": Code(
        "not a tensor the compiler takes",
        "Tensors are NumPy arrays (float32, float16, ml_dtypes.bfloat16, int32, uint32, uint16), torch tensors or "
        "ttnn tensors, in tiles or, if they are interleaved and the chip's alignment allows it, row by row. "
        "ttl.bf16(array) uses a float32 array as bfloat16.",
    ),
    "TW107": Code(
        "operation not defined for this dtype",
        "Not every operation exists for every tile format; docs/ops.md lists them. Convert with ttl.math.typecast first.",
    ),
    "TW108": Code(
        "wrong block shape",
        "shape= of a buffer is the size of one block in tiles: positive integers, usually two, for example shape=(2, 2).",
    ),
    "TW109": Code(
        "wrong number of indices",
        "A slice gives one index or range per dimension of the tensor. The last two dimensions are counted in tiles; "
        "of the others one entry at a time can be copied.",
    ),
    "TW110": Code(
        "core outside the grid",
        "The source or a destination of a pipe, or the core of a remote semaphore, is not a core of the kernel's grid. "
        "Coordinates count from 0 in the order of grid=(x, y); the stop of a slice is not part of it. Guard the cores "
        "at the edge with an if.",
    ),
    "TW111": Code(
        "tensor cannot hold a buffer",
        "make_tensor_backed_dfb makes a buffer in the memory of a tensor's shard. The tensor must be in tiles and sharded "
        "over the L1 of cores (height, width or block); every core of the grid must hold a shard, and block_count blocks "
        "of shape tiles, from byte_offset on, must fit into it.",
    ),
    "TW112": Code(
        "reduced or full, depending on when",
        "A reduced block has one element per row or column, which repeats beside full tiles. Which of the two a block is "
        "follows from what was stored into its buffer or sent through its pipe. Here a wait() gets a reduced block in some "
        "iterations or on some cores and a full one in others, and the result would depend on it. Give each its own buffer, "
        "or repeat the element where it is stored: ttl.block.broadcast(x, dims=[1], shape=block.shape).",
    ),
}
