"""``ttl`` ops on circular buffers, those that move data between tensors and blocks, and those on single elements of a block.

Elements of a block that a thread holds are numbers that come from data. Rows and columns count elements of the block, whatever
its tiles look like in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from typing_extensions import Self
from xdsl.dialects.builtin import IndexType, IntegerAttr, StringAttr, TensorType
from xdsl.ir import Attribute, Operation, SSAValue, Use
from xdsl.parser import Parser
from xdsl.printer import Printer

from tilewright import hardware
from tilewright.dialects.assembly import (
    ONE_INDEX,
    FlatOp,
    Operand,
    PlainOp,
    expect,
    expect_operands,
    integer,
    integers,
    mark,
    parse_type,
    print_attributes,
    print_type,
)
from tilewright.dialects.attributes import (
    MEMORY_SPACES,
    SCALARS,
    AccessorType,
    CBType,
    MemorySpaceAttr,
    PipeType,
    SliceType,
    TransferType,
    buffer_type_of,
    int_array,
    int_list,
    int_value,
    is_array_attr,
    is_tensor_type,
    scalar_format,
    text_value,
)
from tilewright.dialects.walking import ancestor_in, users
from tilewright.hardware import MOST_BUFFERS
from tilewright.program import ROW_MAJOR, ROWS

ALIAS_OF = "alias_of"
IN_DST = "ttl.in_dst"  # the value that this buffer is for stays in DST: nothing is written to its blocks
SPILL = "ttl.spill"  # of a buffer through which tiles pass because text says so
EAGER = "eager"  # of a buffer in which a value crosses the pop of a block it reads
CORE_RANGES = "core_ranges"  # of a buffer that only some cores have
HOLDS = "holds"  # of a buffer of the compiler's: which values go through it, in the source's words


class BindCBOp(PlainOp):
    """``%0 = ttl.bind_cb{cb_index = 0, buffer_factor = 2} : <[2, 2], !ttcore.tile<32x32, bf16>, 2>``

    ``alias_of`` names another index over the same memory; both are filled and released together. ``tile_sizes``: its tiles are
    filled in part, with so many rows and columns. ``holds``: the values that take turns in it, as the source calls them.
    """

    name = "ttl.bind_cb"
    cb_index = integer("cb_index")
    backed = mark("tensor_index")  # its memory is a tensor's shard, from tile ``first_tile`` on

    def print(self, printer: Printer) -> None:
        print_attributes(printer, self.attributes)
        printer.print_string(" : ")
        print_type(printer, self.results[0].type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        return cls.create(result_types=[parse_type(parser)], attributes=attributes)

    def verify_(self) -> None:
        kind = self.results[0].type
        expect(self, isinstance(kind, CBType), "gives a circular buffer")
        index = self.attributes.get("cb_index")
        expect(self, isinstance(index, IntegerAttr) and 0 <= index.value.data < MOST_BUFFERS, "needs a cb_index from 0 to 63")
        factor = self.attributes.get("buffer_factor")
        expect(
            self,
            factor is None or (isinstance(factor, IntegerAttr) and factor.value.data == kind.factor.data),  # pyright: ignore
            "buffer_factor and the type disagree",
        )

    @property
    def tile_sizes(self) -> tuple[int, int]:
        sizes = int_list(self, "tile_sizes")
        return (sizes[0], sizes[1]) if len(sizes) == 2 else (hardware.TILE_ROWS, hardware.TILE_COLS)


class _AcquireOp(FlatOp):
    """``%b = ttl.cb_wait %cb : <…> -> tensor<…>``. ``tiles`` overrides the count when several blocks are held at once."""

    TAKES = 1
    buffer = Operand(0, CBType, "takes a circular buffer")

    @classmethod
    def inferred_types(cls, operands: Sequence[SSAValue], attributes: Mapping[str, Attribute]) -> Sequence[Attribute]:
        kind = operands[0].type if operands else None
        if not isinstance(kind, CBType):
            raise ValueError("they follow from a circular buffer")
        return [kind.block_type]

    def verify_(self) -> None:
        super().verify_()
        expect(self, len(self.results) == 1, "gives the block")
        kind = buffer_type_of(self.buffer)
        expect(self, self.results[0].type == kind.block_type, f"the block of this buffer is {kind.block_type}")

    @property
    def tiles(self) -> int:
        return int_value(self, "tiles", buffer_type_of(self.buffer).block_tiles)


class CBWaitOp(_AcquireOp):
    """The consumer waits until a block is there."""

    name = "ttl.cb_wait"


class CBReserveOp(_AcquireOp):
    """The producer waits until there is room for a block."""

    name = "ttl.cb_reserve"


class RunningOp(CBReserveOp):
    """``%b = ttl.running %cb : <…> -> tensor<…>``: a value that a loop updates, from here to the push behind that loop.

    A store (later a region) before the loop says what the value starts from. One in the loop, the step, says what it is next;
    branches and loops further inside have steps of their own. What a step stores counts from the next of those on, at the latest
    from the end of its own piece of code: who reads the value before that, through a view, reads what it was, wherever the step
    stands. So values that replace each other are steps like any other. The push ends the value, and hands over the result.

    Between two steps the value need not be in a block: the passes choose where it is. ``ttl.leaves_dst`` says why that is not
    DST.
    """

    name = "ttl.running"

    @property
    def views(self) -> list[AttachCBOp]:
        return [user for user in users(self.results[0]) if type(user) is AttachCBOp]

    @property
    def reads(self) -> list[AttachCBOp]:
        """Views through which the value is read."""
        return [view for view in self.views if any(not _is_written(use) for use in view.results[0].uses)]

    @property
    def writers(self) -> list[Operation]:
        """What stores to it: stores, after fusion regions."""
        return list(dict.fromkeys(use.operation for view in self.views for use in view.results[0].uses if _is_written(use)))

    def steps_in(self, op: Operation) -> bool:
        """Whether code in an op replaces the value."""
        return any(writer is not op and op.is_ancestor(writer) for writer in self.writers)

    def end_of(self, step: Operation) -> Operation:
        """The op in front of which a step counts."""
        op = step.next_op
        assert op is not None
        while op.next_op is not None and not self.steps_in(op):
            op = op.next_op
        return op

    def verify_(self) -> None:
        super().verify_()
        expect(self, len(self.views) == len(list(self.results[0].uses)), "it is seen through ttl.attach_cb")
        steps = [writer for writer in self.writers if writer.parent is not self.parent]
        loops = {ancestor_in(step, self.parent) for step in steps} if self.parent is not None else {None}
        expect(self, len(steps) < len(self.writers), "a store beside it is what it starts from")
        expect(self, len(loops) == 1, "stores in one loop behind it are its steps")
        expect(self, len({self.end_of(step) for step in steps}) == len(steps), "a step counts before the next one is stored")


def _is_written(use: Use) -> bool:
    """Whether a use of a view is the place that is stored to."""
    op = use.operation
    inputs = {"ttl.store": 1, "ttl.compute": len(op.operands) - len(op.results)}.get(op.name)
    return inputs is not None and use.index >= inputs


class _FinishOp(FlatOp):
    TAKES = 1
    buffer = Operand(0, CBType, "takes a circular buffer")


class _ReleaseOp(_FinishOp):
    """Takes the buffer; text may give the block that its acquire gave instead."""

    ACQUIRE: ClassVar[type[_AcquireOp]]

    def verify_(self) -> None:
        if len(self.operands) == 1 and isinstance(self.buffer.owner, self.ACQUIRE):
            return
        super().verify_()


class CBPushOp(_ReleaseOp):
    """The producer's block is ready."""

    name = "ttl.cb_push"
    ACQUIRE = CBReserveOp


class CBPopOp(_ReleaseOp):
    """The consumer's block may be overwritten."""

    name = "ttl.cb_pop"
    ACQUIRE = CBWaitOp


class PublishCBOp(_FinishOp):
    """``ttl.cb_publish %cb``: hands over all blocks of a buffer at once, with what their memory holds already."""

    name = "ttl.cb_publish"


class AttachCBOp(FlatOp):
    """``%t = ttl.attach_cb %block, %cb``: says which buffer a block lives in; ``tile_offset`` when it is not the first held.

    ``first_tile``: only the block's tiles from there on are meant, as many as the result has. ``as_value``: what the block holds
    there is meant, which stays when it is released (``+x``); `ttl-compute-before-release` takes these away.
    """

    name = "ttl.attach_cb"
    TAKES = 2
    block = Operand(0)
    buffer = Operand(1, CBType, "takes a block and its buffer")
    tile_offset = integer("tile_offset", 0)
    first_tile = integer("first_tile", 0)

    AS_VALUE: ClassVar[str] = "as_value"

    def verify_(self) -> None:
        super().verify_()
        whole, part = self.block.type, self.results[0].type
        if "first_tile" not in self.attributes or not is_tensor_type(whole) or not is_tensor_type(part):
            expect(self, part == whole, "gives the block itself")
            return
        expect(self, part.element_type == whole.element_type, "gives tiles of the block")


def acquires_below(value: SSAValue) -> list[CBWaitOp | CBReserveOp]:
    """The acquires of all blocks that a value is computed from."""
    found: list[CBWaitOp | CBReserveOp] = []
    pending, seen = [value], set[SSAValue]()
    while pending:
        current = pending.pop()
        owner = current.owner
        if current in seen or not isinstance(owner, Operation):
            continue
        seen.add(current)
        if isinstance(owner, (CBWaitOp, CBReserveOp)):
            found.append(owner)
        else:
            pending += owner.operands
    return found


BUFFER_OPS: tuple[type[Operation], ...] = (
    BindCBOp, CBWaitOp, CBReserveOp, RunningOp, CBPushOp, CBPopOp, PublishCBOp, AttachCBOp,
)  # fmt: skip


# ``ttl`` ops that move data between tensors and blocks.

LAYOUTS = ("tile", ROW_MAJOR, ROWS)


class TensorAccessorOp(FlatOp):
    """``%a = ttl.tensor_accessor {tensor_index = 0 : i32, name = "lhs"} : !ttl.accessor<…>``: an argument of the kernel.

    ``layout = "row_major"``: it is stored row by row, not in tiles; ``"rows"``: so it is, and moves by rows.
    ``page_elements``: of rows, and of tiles that are not 32x32. ``significant_bits``: its values have no more than these.
    Text may give the tensor itself instead of its number:
    ``ttl.tensor_accessor %lhs : tensor<4x4x!ttcore.tile<…>> -> !ttl.accessor<…>``.
    """

    name = "ttl.tensor_accessor"
    GIVES = (AccessorType, "gives an accessor")
    tensor = Operand(0)  # text only
    tensor_index = integer("tensor_index")
    significant_bits = integer("significant_bits", 0)  # 0: as many as its format holds
    page_elements = integer("page_elements", 0)  # of a page that moves as a whole and is no tile of 32x32; 0 if it is one

    @classmethod
    def inferred_types(cls, operands: Sequence[SSAValue], attributes: Mapping[str, Attribute]) -> Sequence[Attribute]:
        kind = operands[0].type if operands else None
        if not is_tensor_type(kind):
            raise ValueError("they follow from a tensor")
        return [accessor_of(kind)]

    def verify_(self) -> None:
        super().verify_()
        kind = self.results[0].type
        assert isinstance(kind, AccessorType)
        expect(self, kind.memory.data in MEMORY_SPACES, f"its memory is one of {', '.join(MEMORY_SPACES)}")
        expect(self, kind.tiled or scalar_format(kind.element) != "", f"holds tiles, or elements of {', '.join(SCALARS)}")
        layout = self.attributes.get("layout")
        known = layout is None or (isinstance(layout, StringAttr) and layout.data in LAYOUTS)
        expect(self, known, f"layout is one of {', '.join(LAYOUTS)}")
        expect(self, 0 <= self.significant_bits <= 32, "significant_bits is 32 at most")
        expect(self, len(self.operands) <= 1, "takes a tensor, or names its number")
        if not self.operands:
            index = self.attributes.get("tensor_index")
            counts = isinstance(index, IntegerAttr) and index.value.data >= 0
            expect(self, counts, "needs tensor_index, the argument number")
            return
        tensor = self.tensor.type
        expect(self, is_tensor_type(tensor), f"takes a tensor, not {tensor}")
        assert is_tensor_type(tensor)
        expect(self, kind == accessor_of(tensor), f"the accessor of {tensor} is {accessor_of(tensor)}")
        expect(self, "tensor_index" not in self.attributes, "names the tensor by its value, not by its number")

    @property
    def by_rows(self) -> bool:
        """Row-major: a page of the tensor is one row of elements, not a tile."""
        return text_value(self, "layout") == ROW_MAJOR

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
    columns, so that tiles (not what is in them) are transposed on the way. ``clipped`` lists dimensions of the tensor in which
    the slice may stick out: tiles outside are read as zeros and not written.
    """

    name = "ttl.tensor_slice"
    accessor = Operand(0)
    turned = mark("turned")
    clipped = integers("clipped")

    def verify_(self) -> None:
        expect(self, bool(self.operands), "needs an accessor")
        expect(self, len(self.results) == 1, "gives one slice")
        accessor, kind = self.accessor.type, self.results[0].type
        expect(self, isinstance(accessor, AccessorType) and isinstance(kind, SliceType), "takes an accessor and gives a slice")
        assert isinstance(accessor, AccessorType)
        expect_operands(self, 1 + len(accessor.dims))
        for operand in self.starts:
            expect(self, isinstance(operand.type, IndexType), "tile coordinates are of type index")
        assert isinstance(kind, SliceType)
        same = kind.element == accessor.element and kind.memory == accessor.memory and len(kind.dims) <= len(accessor.dims)
        expect(self, same, "a slice has the tiles, the memory and at most the dimensions of its tensor")
        strides = self.attributes.get("strides")
        counts = strides is None or (is_array_attr(strides) and len(strides) == len(kind.dims))
        counts = counts and all(stride > 0 for stride in self.strides) and len(self.strides) == len(kind.dims)
        expect(self, counts, "strides has one number, 1 or more, per dimension of the slice")
        listed, dims = self.attributes.get("clipped"), self.clipped
        numbers = listed is None or (is_array_attr(listed) and len(listed) == len(set(dims)))
        within = numbers and all(0 <= dim < len(accessor.dims) for dim in dims)
        expect(self, within, "clipped lists dimensions of the tensor")

    @property
    def starts(self) -> Sequence[SSAValue]:
        """One index per dimension of the tensor."""
        return self.operands[1:]

    @property
    def strides(self) -> tuple[int, ...]:
        kind = self.results[0].type
        assert isinstance(kind, SliceType)
        attribute = self.attributes.get("strides")
        if not is_array_attr(attribute):
            return (1,) * len(kind.dims)
        return tuple(stride.value.data for stride in attribute if isinstance(stride, IntegerAttr))

    @property
    def axes(self) -> list[tuple[SSAValue, int, int]]:
        """Start, number of tiles and size of the tensor, per dimension of the tensor."""
        accessor, kind = self.accessor.type, self.results[0].type
        assert isinstance(accessor, AccessorType) and isinstance(kind, SliceType)
        own = tuple((dim - 1) * stride + 1 for dim, stride in zip(kind.dims, self.strides, strict=True))
        extents = (1,) * (len(accessor.dims) - len(kind.dims)) + (own[::-1] if self.turned else own)
        return list(zip(self.starts, extents, accessor.dims, strict=True))


class CopyOp(FlatOp):
    """``%t = ttl.copy %source, %target``: starts a transfer; one side is a block, the other a slice or a pipe."""

    name = "ttl.copy"
    TAKES = 2
    GIVES = (TransferType, "gives a transfer")
    source = Operand(0)
    target = Operand(1)

    @classmethod
    def inferred_types(cls, operands: Sequence[SSAValue], attributes: Mapping[str, Attribute]) -> Sequence[Attribute]:
        return [TransferType()]

    def verify_(self) -> None:
        super().verify_()
        ends = [operand for operand in self.operands if isinstance(operand.type, (SliceType, PipeType))]
        blocks = [operand for operand in self.operands if is_tensor_type(operand.type)]
        expect(self, len(ends) == len(blocks) == 1, "moves between a block and a tensor slice or a pipe")


class WaitOp(FlatOp):
    """``ttl.wait %t``: the transfer is complete after this."""

    name = "ttl.wait"
    transfer = Operand(0)

    def verify_(self) -> None:
        for operand in self.operands:
            expect(self, isinstance(operand.type, TransferType), "waits for transfers")


class FillScalerOp(FlatOp):
    """``ttl.fill_scaler %cb {value = 1.0 : f32}``: push one tile that holds the value in the first row of every face.

    ``pattern`` names another place: the first ``row`` or ``column`` of the tile, or its ``corner``; of ``first``, which is the
    corner as well, nobody reads the rest of the tile.
    """

    name = "ttl.fill_scaler"
    TAKES = 1
    buffer = Operand(0, CBType, "takes a circular buffer")


class FillMaskOp(FlatOp):
    """``ttl.fill_mask %cb, %start {axis = 1, limit = 100}``: push one block of ones inside a tensor and zeros beside it.

    Along rows (``axis = 0``) or columns (1) the block starts at tile ``%start`` of a tensor that has ``limit`` elements there.
    """

    name = "ttl.fill_mask"
    TAKES = 2
    buffer = Operand(0, CBType, "takes a circular buffer")
    start = Operand(1, IndexType, "starts at a tile, of type index")

    def verify_(self) -> None:
        super().verify_()
        for name in ("axis", "limit"):
            expect(self, isinstance(self.attributes.get(name), IntegerAttr), f"needs the attribute '{name}'")


class FillPatternOp(FlatOp):
    """``ttl.fill_pattern %cb {pattern = "columns"}``: push one block whose elements say where they stand.

    The patterns are those of ``ttl.pattern_block``.
    """

    name = "ttl.fill_pattern"
    TAKES = 1
    buffer = Operand(0, CBType, "takes a circular buffer")

    def verify_(self) -> None:
        super().verify_()
        expect(self, isinstance(self.attributes.get("pattern"), StringAttr), "needs the attribute 'pattern'")


MOVEMENT_OPS: tuple[type[Operation], ...] = (
    TensorAccessorOp, TensorSliceOp, CopyOp, WaitOp, FillScalerOp, FillMaskOp, FillPatternOp,
)  # fmt: skip


LARGEST = 2**31 - 1
NUMBER, BITS = "number", "bits"  # an element as an integer, or as the bits it is stored as


class ReadElementOp(FlatOp):
    """``%n = ttl.read_element %block, %row, %column {form = "number", low = 0, high = 63} : … -> index``

    ``number``: the element as an integer, fractions cut off. ``bits``: as it is stored. ``low`` and ``high`` are what the author
    says about it; without ``high`` nothing is known.
    """

    name = "ttl.read_element"
    TAKES = 3
    GIVES = ONE_INDEX
    block = Operand(0, TensorType, "takes a block")
    row = Operand(1)
    column = Operand(2)
    declared = mark("high")  # the author said how large it can be

    def verify_(self) -> None:
        super().verify_()
        expect(self, text_value(self, "form") in (NUMBER, BITS), "form is number or bits")
        low, high = self.bounds
        expect(self, low <= high, "low is at most high")

    @property
    def bounds(self) -> tuple[int, int]:
        return int_value(self, "low", 0), int_value(self, "high", LARGEST)


class WriteElementOp(FlatOp):
    """``ttl.write_element %block, %row, %column, %value {form = "bits"} : …``: a number, or bits as they are stored."""

    name = "ttl.write_element"
    TAKES = 4
    block = Operand(0, TensorType, "takes a block")
    row = Operand(1)
    column = Operand(2)
    value = Operand(3)

    def verify_(self) -> None:
        super().verify_()
        expect(self, text_value(self, "form") in (NUMBER, BITS), "form is number or bits")


ELEMENT_OPS: tuple[type[Operation], ...] = (ReadElementOp, WriteElementOp)
