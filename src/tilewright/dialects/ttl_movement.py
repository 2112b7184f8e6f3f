"""``ttl`` ops that move data between tensors and blocks."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, IndexType, IntegerAttr, StringAttr
from xdsl.ir import Operation

from tilewright.dialects.assembly import FlatOp
from tilewright.dialects.ir_types import AccessorType, CBType, PipeType, SliceType, TransferType
from tilewright.dialects.verify import expect, expect_operands
from tilewright.program import ROW_MAJOR


class TensorAccessorOp(FlatOp):
    """``%a = ttl.tensor_accessor {tensor_index = 0 : i32, name = "lhs"} : !ttl.accessor<…>``: an argument of the kernel.

    ``layout = "row_major"``: it is stored row by row, not in tiles. ``significant_bits``: its values have no more than these.
    """

    name = "ttl.tensor_accessor"

    def verify_(self) -> None:
        expect_operands(self, 0)
        expect(self, isinstance(self.results[0].type, AccessorType), "gives an accessor")
        expect(self, isinstance(self.attributes.get("tensor_index"), IntegerAttr), "needs tensor_index, the argument number")

    @property
    def tensor_index(self) -> int:
        attribute = self.attributes["tensor_index"]
        assert isinstance(attribute, IntegerAttr)
        return attribute.value.data

    @property
    def significant_bits(self) -> int:
        """0: as many as its format holds."""
        attribute = self.attributes.get("significant_bits")
        return attribute.value.data if isinstance(attribute, IntegerAttr) else 0

    @property
    def by_rows(self) -> bool:
        """Row-major: a page of the tensor is one row of elements, not a tile."""
        attribute = self.attributes.get("layout")
        return isinstance(attribute, StringAttr) and attribute.data == ROW_MAJOR

    @property
    def tensor_name(self) -> str:
        attribute = self.attributes.get("name")
        return attribute.data if isinstance(attribute, StringAttr) else f"tensor{self.tensor_index}"


class TensorSliceOp(FlatOp):
    """``%s = ttl.tensor_slice %a, %row, %col``: the rectangle of tiles that starts there; its shape is in the result type.

    One index per tensor dimension, in tiles. Dimensions before the last two are single (the slice has the rank of a block).
    ``strides`` (one per dimension of the slice, default 1) steps over tiles. ``turned``: rows of the slice run along the tensor's
    columns, so that tiles (not what is in them) are transposed on the way.
    """

    name = "ttl.tensor_slice"

    def verify_(self) -> None:
        expect(self, bool(self.operands), "needs an accessor")
        accessor, kind = self.operands[0].type, self.results[0].type
        expect(self, isinstance(accessor, AccessorType) and isinstance(kind, SliceType), "takes an accessor and gives a slice")
        assert isinstance(accessor, AccessorType)
        expect_operands(self, 1 + len(accessor.dims))
        for operand in self.operands[1:]:
            expect(self, isinstance(operand.type, IndexType), "tile coordinates are of type index")

    @property
    def strides(self) -> tuple[int, ...]:
        kind = self.results[0].type
        assert isinstance(kind, SliceType)
        attribute = self.attributes.get("strides")
        if not isinstance(attribute, ArrayAttr):
            return (1,) * len(kind.dims)
        return tuple(stride.value.data for stride in attribute if isinstance(stride, IntegerAttr))

    @property
    def turned(self) -> bool:
        return "turned" in self.attributes


class CopyOp(FlatOp):
    """``%t = ttl.copy %source, %target``: starts a transfer; one side is a block, the other a slice or a pipe."""

    name = "ttl.copy"

    def verify_(self) -> None:
        expect_operands(self, 2)
        expect(self, len(self.results) == 1 and isinstance(self.results[0].type, TransferType), "gives a transfer")
        ends = [operand for operand in self.operands if isinstance(operand.type, (SliceType, PipeType))]
        expect(self, len(ends) == 1, "moves between a block and a tensor slice or a pipe")


class WaitOp(FlatOp):
    """``ttl.wait %t``: the transfer is complete after this."""

    name = "ttl.wait"

    def verify_(self) -> None:
        for operand in self.operands:
            expect(self, isinstance(operand.type, TransferType), "waits for transfers")


class FillScalerOp(FlatOp):
    """``ttl.fill_scaler %cb {value = 1.0 : f32}``: push one tile that holds the value in the first row of every face.

    ``pattern`` names another place: the first ``row`` or ``column`` of the tile, or its ``corner``.
    """

    name = "ttl.fill_scaler"

    def verify_(self) -> None:
        expect_operands(self, 1)
        expect(self, isinstance(self.operands[0].type, CBType), "takes a circular buffer")


MOVEMENT_OPS: tuple[type[Operation], ...] = (TensorAccessorOp, TensorSliceOp, CopyOp, WaitOp, FillScalerOp)
