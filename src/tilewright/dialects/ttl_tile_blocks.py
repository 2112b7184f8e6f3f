"""Tile ops that are not elementwise: they read buffers, not DST, and some of them run over several tiles.

Each works on the tile its operand's map names. ``ttl.tile_matmul`` and ``ttl.tile_reduce`` add up over further tiles of their
operands: the op states how many, so that a region stays one body over its output tiles.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Operation

from tilewright.dialects.assembly import TileMathOp
from tilewright.dialects.attributes import int_value, text_value
from tilewright.dialects.ttl_blocks import TRANSPOSE_B, TURNED_B
from tilewright.dialects.verify import expect, expect_operands

DIMS = ("row", "col", "scalar")  # what is left: a column of row results, a row of column results, one element


class IrregularTileOp(TileMathOp):
    """Base of the ops that are not rows of the op table."""

    @property
    def kind(self) -> str:
        return text_value(self, "kind")

    @property
    def dim(self) -> str:
        return text_value(self, "dim")


class TileMatmulOp(IrregularTileOp):
    """``%r = ttl.tile_matmul %a, %b {k = 4 : i32, columns = 2 : i32}``: sum over k of a[k] @ b[k * columns]."""

    name = "ttl.tile_matmul"

    def verify_(self) -> None:
        expect_operands(self, 2)
        expect(self, isinstance(self.attributes.get("k"), IntegerAttr), "needs k, the number of tiles to add up")

    @property
    def k(self) -> int:
        return int_value(self, "k")

    @property
    def transposed(self) -> bool:
        return TRANSPOSE_B in self.attributes

    @property
    def turned(self) -> bool:
        """Tiles of the right operand that follow each other along a column of the product's depth lie in a row."""
        return TURNED_B in self.attributes


class AccumulateMatmulOp(TileMatmulOp):
    """``%r = ttl.tile_matmul_accumulate %acc, %a, %b {k, columns}``: acc + the product, added onto the slot of acc."""

    name = "ttl.tile_matmul_accumulate"

    def verify_(self) -> None:
        expect_operands(self, 3)


class TileReduceOp(IrregularTileOp):
    """``%r = ttl.tile_reduce %x, %scaler {kind = "sum", dim = "row", rows, cols}``: over that many tiles, then within them."""

    name = "ttl.tile_reduce"

    def verify_(self) -> None:
        expect_operands(self, 2)
        expect(self, isinstance(self.attributes.get("kind"), StringAttr), "needs kind, sum or max")
        expect(self, self.dim in DIMS, f"dim is one of {DIMS}")

    @property
    def counts(self) -> tuple[int, int]:
        return int_value(self, "rows", 1), int_value(self, "cols", 1)


class TileScratchOp(IrregularTileOp):
    """``%s = ttl.tile_scratch``: a DST slot that a later op may use on its way; it holds nothing."""

    name = "ttl.tile_scratch"

    def verify_(self) -> None:
        expect_operands(self, 0)


class TileFoldOp(IrregularTileOp):
    """``%r = ttl.tile_fold %x, %scratch {kind = "sum", rows, cols}``: that many tiles joined element by element, in DST."""

    name = "ttl.tile_fold"

    def verify_(self) -> None:
        expect_operands(self, 2)
        expect(self, self.kind in ("sum", "max"), "kind is sum or max")

    @property
    def counts(self) -> tuple[int, int]:
        return int_value(self, "rows", 1), int_value(self, "cols", 1)


class TileVectorReduceOp(IrregularTileOp):
    """``%r = ttl.tile_vector_reduce %x {kind = "sum", dim = "row"}``: within a tile in DST; the rest of it is left undefined."""

    name = "ttl.tile_vector_reduce"

    def verify_(self) -> None:
        expect_operands(self, 1)
        expect(self, self.kind in ("sum", "max"), "kind is sum or max")
        expect(self, self.dim in DIMS[:2], f"dim is one of {DIMS[:2]}")


class TileBcastOp(IrregularTileOp):
    """``%r = ttl.tile_bcast %x {dim = "col"}``: column 0, row 0 or element (0, 0) repeated over the tile."""

    name = "ttl.tile_bcast"

    def verify_(self) -> None:
        expect_operands(self, 1)
        expect(self, self.dim in DIMS, f"dim is one of {DIMS}")


class TileTransposeOp(IrregularTileOp):
    """``%r = ttl.tile_transpose %x``"""

    name = "ttl.tile_transpose"

    def verify_(self) -> None:
        expect_operands(self, 1)


class TileBinaryBcastOp(IrregularTileOp):
    """``%r = ttl.tile_binary_bcast %x, %v {kind = "add", dim = "col"}``: x with v repeated over the tile, in one call."""

    name = "ttl.tile_binary_bcast"

    def verify_(self) -> None:
        expect_operands(self, 2)
        expect(self, self.kind in ("add", "sub", "mul"), "kind is add, sub or mul")
        expect(self, self.dim in DIMS, f"dim is one of {DIMS}")


class ResidentTileOp(IrregularTileOp):
    """``%r = ttl.tile_resident {resident = 0 : i32}``: a tile that earlier code of the same acquire left in DST."""

    name = "ttl.tile_resident"

    def verify_(self) -> None:
        expect_operands(self, 0)

    @property
    def number(self) -> int:
        return int_value(self, "resident")


TILE_BLOCK_OPS: tuple[type[Operation], ...] = (
    TileMatmulOp,
    AccumulateMatmulOp,
    TileReduceOp,
    TileScratchOp,
    TileFoldOp,
    TileVectorReduceOp,
    TileBcastOp,
    TileTransposeOp,
    TileBinaryBcastOp,
    ResidentTileOp,
)
