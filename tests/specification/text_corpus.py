"""One text per form of the dialect document, for tests that change them."""

from __future__ import annotations

import dialect_texts as listings
from text_programs import block, program, tile

SMALL = {"a": (1, 1), "b": (1, 1)}


def _chain(body: str) -> str:
    return program(body, {"a": (2, 2), "b": (2, 2), "c": (2, 2)}, {"out": (2, 2)}, dtype="bf16")


def _dense() -> str:
    shapes = {"x_blk": (1, 2), "w_blk": (2, 1), "bias_blk": (1, 1), "ones_blk": (1, 1)}
    return program(listings.dense_layer(listings.kept("4.4.1", 1)), shapes, {"o_blk": (1, 1)}, dtype="bf16")


def _matmul() -> str:
    kind = f"memref<8x8x{tile('bf16')}, #L1>"
    listing = listings.memrefs("bf16", listings.FILL + listings.MATMUL)
    return listings.in_function(listing, kind, ("a", "b", "out"), (2, 2), "bf16", listings.SIZES)


TEXTS = (
    program(listings.ADD, SMALL, {"o": (1, 1)}, attributes=', tiled = true, compute_config = {math_fidelity = "HiFi2"}'),
    _dense(),
    _chain(listings.chain(listings.kept("5.6.1", 1))),
    _chain(listings.region_and_generic(listings.kept("5.6.4", 1))[0]),
    _matmul(),
    listings.by_rows("f32"),
    listings.piped("ttl.create_pipe src_core=[0,0], dst_core_range=[#ttl.slice<1,4,1>, #ttl.slice<0,1,1>]"),
    listings.SEMAPHORE.format(initial=0, remote="true", signal=listings.SIGNALS["unicast"]),
    program(listings.TILES.format(acquire="%d = ttl.acquire_dst {index = 2 : i32}", register=2), listings.PAIR, {"o": (2, 2)}),
    program(listings.REGISTER, SMALL, {"o": (1, 1)}, dtype="bf16"),
    program(
        listings.SPILL.format(block=block((2, 2), "f32"), tile=tile("f32"), spill=listings.SPILLS["a constant"]),
        listings.PAIR,
        {"o": (2, 2)},
    ),
    listings.PLACES.format(grid="2, 1", tensor=block((2, 1), "f32"), tile=tile("f32"), place="%row = ttl.core_dim(1)", cores=2),
    program(
        "%r = ttl.block_reduce_max %a {axis = 1 : i64}\n%w = ttl.block_bcast %r\n%d = ttl.block_sub %a, %w\nttl.block_store %o, %d",
        {"a": (2, 2)},
        {"o": (2, 2)},
        dtype="bf16",
    ),
)
