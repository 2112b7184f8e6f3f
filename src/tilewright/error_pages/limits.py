"""What the hardware cannot hold (TW3) and DST (TW4)."""

from __future__ import annotations

from tilewright.error_pages.page import Code

LIMITS: dict[str, Code] = {
    "TW301": Code(
        "too many buffers",
        "A core has a fixed number of circular buffers: 32 on Wormhole, 64 on Blackhole. Use one buffer for several "
        "values of the same shape, or fuse expressions so that fewer values are stored. A region that fits DST only in parts "
        "needs buffers for what its parts hand on; the message says how many, and how many are left.",
    ),
    "TW302": Code(
        "buffers do not fit in L1",
        "All buffers of a core lie in its L1 memory: tiles per block times block_count times bytes per tile. The "
        "notes list each. Use smaller blocks or fewer blocks per buffer.",
    ),
    "TW303": Code(
        "grid does not fit the chip",
        'The grid has more columns or rows than the chip has cores for programs. grid="full" takes all of them.',
    ),
    "TW304": Code(
        "more blocks held than the buffer has",
        "A thread holds several blocks of one buffer at once, more than its block_count. The wait or reserve could never end.",
    ),
    "TW305": Code(
        "too many semaphores",
        "A core has 16 semaphores. Every net takes one for arrivals and one for each pipe of its busiest source; "
        "multicasts share one more. Let several nets be one, or let data travel along a ring or tree.",
    ),
    "TW306": Code(
        "too many run-time arguments",
        "A kernel gets at most 341 words per core: tensor addresses, coordinates, and for a core that is an end of many "
        "pipes the other end of each. Let data travel in two steps.",
    ),
    "TW307": Code(
        "held blocks wrap around",
        "A buffer is a ring of block_count blocks, and the blocks that a thread holds at once are addressed as one piece. "
        "They must not pass the end of the ring: hold blocks in groups, release a whole group before the next, and make "
        "block_count a multiple of the group.",
    ),
    "TW401": Code(
        "does not fit the DST register file",
        "Every value of a compute region lives in DST (4 to 16 tiles). Tilewright reorders, reloads, recomputes and "
        "splits before it gives up; this error means that one single operation needs more tiles than there are.",
    ),
    "TW402": Code(
        "the allocator's answer failed its check",
        "The register assignment was replayed on a model of DST and an output did not hold the value the source asks "
        "for. This is a defect in Tilewright: please report it with the kernel.",
    ),
    "TW403": Code(
        "faces are read that a confined call left out",
        "A call with ttl.faces computes only the upper left part of a tile (its left or upper half, or one face) and leaves the "
        "rest as it was. Such a value may only be broadcast from its first column, row or element; a product, a reduction, "
        "another thread or a broadcast along the other dimension would read what nobody computed. Remove ttl.faces, or "
        "report it if the compiler wrote it.",
    ),
    "TW404": Code(
        "DST in IR text does not hold together",
        "IR text may come with its DST indices assigned. What an op reads must be what the last op that wrote this index left "
        "there, an op that works in place has the index of its operand, every index is below the capacity, and what is computed "
        "is packed before DST is released. tile_regs_acquire, commit, wait and release follow each other on every path. Leave "
        "the indices and these ops out (the text before ttl-tile-and-assign-dst) to have them chosen.",
    ),
}
