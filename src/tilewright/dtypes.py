"""One record per dtype of a tile. Whoever needs a fact about one reads it here; names elsewhere are these names."""

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
COMPUTED_AS = {name: "bf16" if name in BLOCK_FLOATS else name for name in DTYPE_BY_NAME}  # block floats are to keep numbers in
WIDE = tuple(dtype.name for dtype in DTYPES if dtype.wide)
