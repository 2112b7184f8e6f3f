"""``ttl`` ops that move data between tensors and blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, IndexType, IntegerAttr, StringAttr, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.dialects.assembly import FlatOp
from tilewright.dialects.ir_types import (
    MEMORY_SPACES,
    SCALARS,
    AccessorType,
    CBType,
    MemorySpaceAttr,
    PipeType,
    SliceType,
    TransferType,
    int_array,
    scalar_format,
)
from tilewright.dialects.verify import expect, expect_operands
from tilewright.program import ROW_MAJOR

LAYOUTS = ("tile", ROW_MAJOR)


class TensorAccessorOp(FlatOp):
    """``%a = ttl.tensor_accessor {tensor_index = 0 : i32, name = "lhs"} : !ttl.accessor<…>``: an argument of the kernel.

    ``layout = "row_major"``: it is stored row by row, not in tiles. ``significant_bits``: its values have no more than these.
    Text may give the tensor itself instead of its number:
    ``ttl.tensor_accessor %lhs : tensor<4x4x!ttcore.tile<…>> -> !ttl.accessor<…>``.
    """

    name = "ttl.tensor_accessor"

    @classmethod
    def inferred_types(cls, operands: Sequence[SSAValue], attributes: Mapping[str, Attribute]) -> Sequence[Attribute]:
        kind = operands[0].type if operands else None
        if not isinstance(kind, TensorType):
            raise ValueError("they follow from a tensor")
        return [accessor_of(kind)]

    def verify_(self) -> None:
        expect(self, len(self.results) == 1 and isinstance(self.results[0].type, AccessorType), "gives an accessor")
        kind = self.results[0].type
        assert isinstance(kind, AccessorType)
        expect(self, kind.memory.data in MEMORY_SPACES, f"its memory is one of {', '.join(MEMORY_SPACES)}")
        expect(self, kind.tiled or scalar_format(kind.element) != "", f"holds tiles, or elements of {', '.join(SCALARS)}")
        layout = self.attributes.get("layout")
        known = layout is None or (isinstance(layout, StringAttr) and layout.data in LAYOUTS)
        expect(self, known, f"layout is one of {', '.join(LAYOUTS)}")
        expect(self, len(self.operands) <= 1, "takes a tensor, or names its number")
        if not self.operands:
            index = self.attributes.get("tensor_index")
            counts = isinstance(index, IntegerAttr) and index.value.data >= 0
            expect(self, counts, "needs tensor_index, the argument number")
            return
        tensor = self.operands[0].type
        expect(self, isinstance(tensor, TensorType), f"takes a tensor, not {tensor}")
        assert isinstance(tensor, TensorType)
        expect(self, kind == accessor_of(tensor), f"the accessor of {tensor} is {accessor_of(tensor)}")
        expect(self, "tensor_index" not in self.attributes, "names the tensor by its value, not by its number")

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


def accessor_of(tensor: TensorType[Attribute]) -> AccessorType:
    """Its shape counts tiles, or elements of what lies row by row. A tensor that does not say where it lies is in DRAM."""
    space = tensor.encoding.space.data if isinstance(tensor.encoding, MemorySpaceAttr) else "dram"
    return AccessorType(int_array(tensor.get_shape()), tensor.element_type, StringAttr(space))


class TensorSliceOp(FlatOp):
    """``%s = ttl.tensor_slice %a, %row, %col``: the rectangle of tiles that starts there; its shape is in the result type.

    One index per tensor dimension, in tiles. Dimensions before the last two are single (the slice has the rank of a block).
    ``strides`` (one per dimension of the slice, default 1) steps over tiles. ``turned``: rows of the slice run along the tensor's
    columns, so that tiles (not what is in them) are transposed on the way.
    """

    name = "ttl.tensor_slice"

    def verify_(self) -> None:
        expect(self, bool(self.operands), "needs an accessor")
        expect(self, len(self.results) == 1, "gives one slice")
        accessor, kind = self.operands[0].type, self.results[0].type
        expect(self, isinstance(accessor, AccessorType) and isinstance(kind, SliceType), "takes an accessor and gives a slice")
        assert isinstance(accessor, AccessorType)
        expect_operands(self, 1 + len(accessor.dims))
        for operand in self.operands[1:]:
            expect(self, isinstance(operand.type, IndexType), "tile coordinates are of type index")
        assert isinstance(kind, SliceType)
        same = kind.element == accessor.element and kind.memory == accessor.memory and len(kind.dims) <= len(accessor.dims)
        expect(self, same, "a slice has the tiles, the memory and at most the dimensions of its tensor")
        strides = self.attributes.get("strides")
        counts = strides is None or (isinstance(strides, ArrayAttr) and len(strides) == len(kind.dims))
        counts = counts and all(stride > 0 for stride in self.strides) and len(self.strides) == len(kind.dims)
        expect(self, counts, "strides has one number, 1 or more, per dimension of the slice")

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

    @classmethod
    def inferred_types(cls, operands: Sequence[SSAValue], attributes: Mapping[str, Attribute]) -> Sequence[Attribute]:
        return [TransferType()]

    def verify_(self) -> None:
        expect_operands(self, 2)
        expect(self, len(self.results) == 1 and isinstance(self.results[0].type, TransferType), "gives a transfer")
        ends = [operand for operand in self.operands if isinstance(operand.type, (SliceType, PipeType))]
        blocks = [operand for operand in self.operands if isinstance(operand.type, TensorType)]
        expect(self, len(ends) == len(blocks) == 1, "moves between a block and a tensor slice or a pipe")


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
