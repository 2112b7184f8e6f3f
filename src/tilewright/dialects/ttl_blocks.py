"""``ttl`` ops on whole blocks that are not elementwise: matmul, reductions, broadcasts, transpose, fill."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntegerAttr, StringAttr, TensorType
from xdsl.ir import Attribute, Operation
from xdsl.irdl import traits_def
from xdsl.traits import Pure

from tilewright.dialects.assembly import FlatOp
from tilewright.dialects.attributes import int_list
from tilewright.dialects.ir_types import is_block
from tilewright.dialects.verify import expect, expect_operands

REDUCE_KINDS = ("sum", "max")
TRANSPOSE_B = "transpose_b"  # of a product: each tile of the right operand is transposed on its way to the unit
KEEP_IN_DST = "keep_in_dst"  # the result stays in DST wherever a unit can read it there
TURNED_B = "turned_b"  # the right operand's tiles lie columns by rows


class _BlockOp(FlatOp):
    traits = traits_def(Pure())

    def expect_blocks(self) -> None:
        expect(self, len(self.results) == 1, "gives one block")
        for value in (*self.operands, *self.results):
            kind = value.type
            expect(self, is_block(kind), f"works on blocks of tiles, not on {kind}")


def shape_of(kind: Attribute) -> tuple[int, ...]:
    assert isinstance(kind, TensorType)
    return kind.get_shape()


class MatmulOp(_BlockOp):
    """``%r = ttl.matmul %a, %b``: blocks of MxK and KxN tiles give MxN."""

    name = "ttl.matmul"

    def verify_(self) -> None:
        expect_operands(self, 2)
        self.expect_blocks()
        left, right, result = (shape_of(value.type) for value in (*self.operands, *self.results))
        expect(self, len(left) == len(right) == 2, "multiplies blocks of two dimensions")
        right = right[::-1] if TURNED_B in self.attributes else right
        expect(self, left[1] == right[0], f"inner sizes differ: {left} and {right}")
        expect(self, result == (left[0], right[1]), f"the product of {left} and {right} is {(left[0], right[1])}")


class ReduceOp(_BlockOp):
    """``%r = ttl.reduce %x {kind = "sum", dims = [1]}``: over tiles and within tiles; reduced dimensions have size 1.

    An optional second operand is a tile of scale factors that each element is multiplied with. ``exact`` keeps f32 off the matrix
    unit; what the tiles hold besides the result is then undefined.
    """

    name = "ttl.reduce"

    @property
    def dims(self) -> tuple[int, ...]:
        return int_list(self, "dims")

    @property
    def exact(self) -> bool:
        return "exact" in self.attributes

    @property
    def tiles(self) -> int:
        """How many tiles of the operand one tile of the result comes from."""
        return math.prod(size for axis, size in enumerate(shape_of(self.operands[0].type)) if axis in self.dims)

    def verify_(self) -> None:
        expect(self, len(self.operands) in (1, 2), "takes a block and perhaps a scaler")
        self.expect_blocks()
        kind = self.attributes.get("kind")
        expect(self, isinstance(kind, StringAttr) and kind.data in REDUCE_KINDS, f"kind is one of {REDUCE_KINDS}")
        source, result = shape_of(self.operands[0].type), shape_of(self.results[0].type)
        _expect_dims(self, self.dims, len(source))
        expected = tuple(1 if axis in self.dims else size for axis, size in enumerate(source))
        expect(self, result == expected, f"reducing {source} over {self.dims} gives {expected}")


class BcastOp(_BlockOp):
    """``%r = ttl.bcast %x {dims = [1]}``: blocks repeat their tiles along dimensions of size 1, as NumPy does with elements.

    Within each tile the first row, column or element is repeated along ``dims``; without dims tiles stay whole.
    """

    name = "ttl.bcast"

    @property
    def dims(self) -> tuple[int, ...]:
        return int_list(self, "dims")

    def verify_(self) -> None:
        expect_operands(self, 1)
        self.expect_blocks()
        source, result = shape_of(self.operands[0].type), shape_of(self.results[0].type)
        _expect_dims(self, self.dims, len(result), empty=True)
        expect(self, len(source) <= len(result) <= 2, "gives two dimensions at most, and no fewer than it gets")
        for small, large in zip(reversed(source), reversed(result), strict=False):
            expect(self, small in (1, large), f"cannot repeat {source} to {result}")


class ReshapeOp(_BlockOp):
    """``%r = ttl.reshape %x``: dimensions of one tile are dropped or added; tiles keep their order."""

    name = "ttl.reshape"

    @property
    def places(self) -> tuple[int | None, ...]:
        """For each dimension of the operand the one of the result that runs over it; None for a dropped one."""
        target = list(shape_of(self.results[0].type))
        found: list[int | None] = []
        place = 0
        for size in shape_of(self.operands[0].type):
            while size != 1 and place < len(target) and target[place] == 1:
                place += 1
            if size == 1:
                found.append(None)
            else:
                found.append(place)
                place += 1
        return tuple(found)

    def verify_(self) -> None:
        expect_operands(self, 1)
        self.expect_blocks()
        source, result = shape_of(self.operands[0].type), shape_of(self.results[0].type)
        kept = [[size for size in shape if size != 1] for shape in (source, result)]
        expect(self, kept[0] == kept[1], f"drops or adds dimensions of one tile, but {source} is no {result}")


class TransposeOp(_BlockOp):
    """``%r = ttl.transpose %x``: tiles change places and each tile is transposed."""

    name = "ttl.transpose"

    def verify_(self) -> None:
        expect_operands(self, 1)
        self.expect_blocks()
        source, result = shape_of(self.operands[0].type), shape_of(self.results[0].type)
        expect(self, len(source) == 2 and result == (source[1], source[0]), f"turns {source} into {source[::-1]}")


class FillBlockOp(_BlockOp):
    """``%r = ttl.fill_block {value = 0.0 : f32}``: every element has this value, a whole number in blocks of integers."""

    name = "ttl.fill_block"

    def verify_(self) -> None:
        expect_operands(self, 0)
        self.expect_blocks()
        expect(self, isinstance(self.attributes.get("value"), (FloatAttr, IntegerAttr)), "needs the attribute 'value'")


def _expect_dims(op: Operation, dims: tuple[int, ...], rank: int, *, empty: bool = False) -> None:
    given = op.attributes.get("dims")
    expect(
        op, isinstance(given, ArrayAttr) and all(isinstance(dim, IntegerAttr) for dim in given), "needs dims, a list of integers"
    )
    distinct = len(set(dims)) == len(dims) and (empty or bool(dims))
    expect(op, distinct and all(0 <= dim < rank for dim in dims), f"dims lie in 0..{rank - 1}")


BLOCK_OPS: tuple[type[Operation], ...] = (MatmulOp, ReduceOp, BcastOp, ReshapeOp, TransposeOp, FillBlockOp)
