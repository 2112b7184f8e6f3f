"""Every number a chip imposes, with unit and source. Nothing else in the tree states one.

Sources: [api] the kernel API headers of ttnn 0.81, [isa] the public Tensix ISA documentation, [count] instructions counted on
the vendor's simulator, [llk] measurements published with the low-level kernel library, [ttnn] what ttnn 0.81 accepts at most,
found with `tests/vendor`; 0.78 accepts a little more.
"""

from __future__ import annotations

from tilewright.dtypes import DTYPES
from tilewright.records import record

TILE_ROWS = 32
TILE_COLS = 32
FACE_ROWS = 16  # a tile is four 16x16 faces [isa]
FACE_COLS = 16
TILE_ELEMENTS = TILE_ROWS * TILE_COLS
TILE_SIZES = ((32, 32), (16, 32), (32, 16), (16, 16))  # whole faces of a tile, in the order of memory [api]
SOURCE_SIGNIFICANT_BITS = 11  # of an f32 that SrcA and SrcB hold (tf32), the leading one included [isa]
SOURCE_LEADING_BITS = (5, 7)  # of SrcA and SrcB, which the first pass of the matrix unit multiplies; the rest comes later [isa]
FIDELITIES = ("LoFi", "HiFi2", "HiFi3", "HiFi4")  # by passes of the matrix unit [api]

DST_TILES_16BIT_FULL = 16  # 1024 rows of 16 datums of 16 bit; a tile takes 64 rows [api]

TILE_BYTES = {dtype.name: dtype.tile_bytes for dtype in DTYPES}
# Floats that SrcA and SrcB hold with all their bits.
SOURCE_FORMATS = tuple(dtype.name for dtype in DTYPES if 0 < dtype.precision <= SOURCE_SIGNIFICANT_BITS)


@record(kw_only=True)
class Chip:
    """One Tensix generation."""

    name: str
    grid: tuple[int, int]  # worker columns (x), rows (y) a program may use
    max_buffers: int  # circular buffers per core [api]
    l1_bytes: int  # of one core [api]
    l1_reserved_bytes: int  # firmware, mailboxes, kernels and their arguments at the bottom of L1 [ttnn]
    dram_read_alignment: int  # bytes: the NoC reads DRAM from multiples of this only [api]
    cancellation_erratum: bool  # the smallest negative sum in a 32-bit DST comes out 2^27 times too large [count]
    broadcast_in_dst: bool  # false: it needs an instruction that the chip documents as unsupported (SETDVALID) [api]
    throttles_products: bool  # the firmware may slow matmul_block down: it then takes an address mode of the vector unit [api]
    max_runtime_args: int = 341  # words per core and kernel [api]
    max_semaphores: int = 16  # per core [api]

    @property
    def l1_usable_bytes(self) -> int:
        return self.l1_bytes - self.l1_reserved_bytes

    def row_read_bytes(self, part: int, memory: str) -> int:
        """How a tile is read from a tensor stored row by row: ``part`` bytes for each row of a face, or, where DRAM is not
        read in such small steps, both faces' parts of a row at once. 0: neither starts at a multiple of the step."""
        if memory == "l1":
            return part
        return next((size for size in (part, 2 * part) if size % self.dram_read_alignment == 0), 0)


WORMHOLE_B0 = Chip(
    name="wormhole_b0", grid=(8, 8), max_buffers=32, l1_bytes=1464 * 1024, l1_reserved_bytes=105824, dram_read_alignment=32,
    cancellation_erratum=True, broadcast_in_dst=True, throttles_products=False,
)
BLACKHOLE = Chip(
    name="blackhole", grid=(13, 10), max_buffers=64, l1_bytes=1536 * 1024, l1_reserved_bytes=111744, dram_read_alignment=64,
    cancellation_erratum=False, broadcast_in_dst=False, throttles_products=True,
)
LARGEST_GRID = (14, 12)  # columns and rows: no card has more
LONGEST_ROW = 16  # cores: no chip has a longer row or column
L1_ALIGNMENT = 16  # bytes, of addresses in L1 that the NoC reads and writes [api]
MOST_BUFFERS = 64  # circular buffers of a core on any chip
CHIPS = {chip.name: chip for chip in (WORMHOLE_B0, BLACKHOLE)}


def dst_tiles(*, fp32_dest_acc: bool, full_sync: bool) -> int:
    """DST tiles one acquire may use: 16/8 for 16-bit and 8/4 for 32-bit datums, full/half sync [api]."""
    tiles = DST_TILES_16BIT_FULL
    if fp32_dest_acc:
        tiles //= 2
    if not full_sync:
        tiles //= 2
    return tiles


def tile_bytes(dtype: str) -> int:
    return TILE_BYTES[dtype]
