"""Every number a chip imposes, with unit and source, and one record per dtype of a tile. Nothing else in the tree states one.

Sources: [api] the kernel API headers of ttnn 0.81, [isa] the public Tensix ISA documentation, [count] instructions counted on
the vendor's simulator, [llk] measurements published with the low-level kernel library, [ttnn] what ttnn 0.81 accepts at most,
found with `tests/vendor`; 0.78 accepts a little more.
"""

from __future__ import annotations

from tilewright.records import record


@record(kw_only=True)
class Dtype:
    name: str  # ours, in IR text and in messages
    format: str  # its member of the kernel API's DataFormat
    number: int  # the value of that member, as the vendor's headers have it
    api: str  # what ttnn calls it; NumPy and ml_dtypes too, where they have it
    tile_bytes: int  # of one 32x32 tile in L1 [api]; block formats have 64 shared exponents beside the mantissas
    word: str = ""  # NumPy's unsigned integer for the bits of one element; block formats have none
    precision: int = 0  # significant bits of a float; 0: an integer
    wide: bool = False  # only a 32-bit DST holds it
    computed: bool = True  # units compute with it; else it is converted from and to

    @property
    def range(self) -> tuple[int, int]:
        """Smallest and largest value of an integer."""
        bits = int(self.word.removeprefix("uint"))
        return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if self.api.startswith("int") else (0, 2**bits - 1)


DTYPES = (
    Dtype(name="bf16", format="Float16_b", number=5, api="bfloat16", tile_bytes=2048, word="uint16", precision=8),
    Dtype(name="f32", format="Float32", number=0, api="float32", tile_bytes=4096, word="uint32", precision=24, wide=True),
    Dtype(name="bfp8_b", format="Bfp8_b", number=6, api="bfloat8_b", tile_bytes=1088, precision=7),
    Dtype(name="bfp4_b", format="Bfp4_b", number=7, api="bfloat4_b", tile_bytes=576, precision=3),
    Dtype(name="i32", format="Int32", number=8, api="int32", tile_bytes=4096, word="uint32", wide=True),
    Dtype(name="u32", format="UInt32", number=24, api="uint32", tile_bytes=4096, word="uint32", wide=True),
    Dtype(name="u16", format="UInt16", number=9, api="uint16", tile_bytes=2048, word="uint16"),
    Dtype(name="u8", format="UInt8", number=30, api="uint8", tile_bytes=1024, word="uint8", wide=True, computed=False),
)
DTYPE_BY_NAME = {dtype.name: dtype for dtype in DTYPES}
FLOATS = tuple(dtype.name for dtype in DTYPES if dtype.precision)
BY_PRECISION = tuple(dtype.name for dtype in sorted(DTYPES, key=lambda dtype: dtype.precision) if dtype.precision)
WORDS = {dtype.name: dtype.word for dtype in DTYPES if dtype.word}  # of dtypes whose elements have bits of their own
INTEGERS = {dtype.name: dtype.api for dtype in DTYPES if not dtype.precision}  # as NumPy calls them
COMPUTED_INTEGERS = tuple(dtype.name for dtype in DTYPES if not dtype.precision and dtype.computed)
BLOCK_FLOATS = tuple(dtype.name for dtype in DTYPES if not dtype.word)  # elements share exponents
WIDE = tuple(dtype.name for dtype in DTYPES if dtype.wide)


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
    cancellation_erratum=True, broadcast_in_dst=True,
)
BLACKHOLE = Chip(
    name="blackhole", grid=(13, 10), max_buffers=64, l1_bytes=1536 * 1024, l1_reserved_bytes=111744, dram_read_alignment=64,
    cancellation_erratum=False, broadcast_in_dst=False,
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
