"""The ``ttl`` dialect: buffers, blocks, data movement, ``ttl.compute`` regions and the tile ops made from the op table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from typing_extensions import Self
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from tilewright.dialects import tile_ops
from tilewright.dialects.assembly import BareOp, FlatOp, PlainOp, TileMathOp, parse_operands, parse_types, print_types
from tilewright.dialects.class_table import ClassTable
from tilewright.dialects.ir_types import CBType, TileType, is_block
from tilewright.dialects.tile_faces import FACES, MEMBERS
from tilewright.dialects.tile_op import FLOAT_DTYPES, TileOp
from tilewright.dialects.ttl_blocks import shape_of
from tilewright.dialects.verify import expect, expect_operands, expect_parameters

PURE = traits_def(Pure())
MOST_DIMS = 3  # of a grid


class TensorMathOp(FlatOp):
    """A row of the op table on whole blocks: ``%r = ttl.add %a, %b : T, T -> T``."""

    SPEC: ClassVar[TileOp]

    @classmethod
    def inferred_types(cls, operands: Sequence[SSAValue], attributes: Mapping[str, Attribute]) -> Sequence[Attribute]:
        if not operands or "dtype" in attributes:
            raise ValueError("they do not follow from its operands")
        return [operands[0].type]

    def verify_(self) -> None:
        expect_operands(self, self.SPEC.arity)
        expect(self, len(self.results) == 1, "gives one block")
        for value in (*self.operands, *self.results):
            expect(self, is_block(value.type), f"works on blocks of tiles, not on {value.type}")
        shapes = {shape_of(value.type) for value in (*self.operands, *self.results)}
        expect(self, len(shapes) == 1, f"operands and result have the same shape, found {sorted(shapes)}")
        expect_parameters(self, self.SPEC)


class TileOpBase(TileMathOp):
    """The same row on one tile, inside ``ttl.compute``."""

    SPEC: ClassVar[TileOp]

    def verify_(self) -> None:
        expect_operands(self, self.SPEC.arity)
        expect(self, len(self.results) == 1, "gives one tile")
        for value in (*self.operands, *self.results):
            expect(self, isinstance(value.type, TileType), f"works on tiles, not on {value.type}")
        slot = self.attributes.get("dst_idx")
        expect(self, slot is None or (isinstance(slot, IntegerAttr) and slot.value.data >= 0), "dst_idx is a slot number")
        part = self.attributes.get(FACES)
        expect(self, part is None or (isinstance(part, StringAttr) and part.data in MEMBERS), f"{FACES} is one of {(*MEMBERS,)}")
        expect_parameters(self, self.SPEC)


def both_float(first: Attribute, second: Attribute) -> bool:
    """Blocks of one shape that hold floats: the unpacker and the packer convert between float formats."""
    if not isinstance(first, TensorType) or not isinstance(second, TensorType) or first.get_shape() != second.get_shape():
        return False
    tiles = (first.element_type, second.element_type)
    return all(isinstance(tile, TileType) and tile.dtype in FLOAT_DTYPES for tile in tiles)


def _row_classes(base: type[Operation], prefix: str) -> ClassTable[Operation]:
    def make(name: str) -> type[Operation]:
        row = tile_ops.BY_NAME[name]
        words = "".join(word.capitalize() for word in name.split("_"))
        members = {"name": f"{prefix}{name}", "SPEC": row, "__doc__": row.summary, "traits": PURE}
        return type(f"{words}{base.__name__}", (base,), members)

    return ClassTable(tile_ops.BY_NAME, make)


TENSOR_OPS = _row_classes(TensorMathOp, "ttl.")
TILE_OPS = _row_classes(TileOpBase, "ttl.tile_")


class CoreOp(FlatOp):
    """Coordinates of this core: ``%x, %y = ttl.core : index, index``."""

    name = "ttl.core"
    TAKES_OPERANDS = False
    traits = PURE

    @classmethod
    def inferred_types(cls, operands: Sequence[SSAValue], attributes: Mapping[str, Attribute]) -> Sequence[Attribute]:
        dims = attributes.get("dims")
        return [IndexType()] * min(dims.value.data if isinstance(dims, IntegerAttr) else 2, MOST_DIMS)

    def verify_(self) -> None:
        expect_operands(self, 0)
        expect(self, 1 <= len(self.results) <= MOST_DIMS, f"gives one coordinate per dimension, one to {MOST_DIMS}")
        dims = self.attributes.get("dims")
        agree = dims is None or (isinstance(dims, IntegerAttr) and dims.value.data == len(self.results))
        expect(self, agree, "dims is the number of its results")
        for result in self.results:
            expect(self, isinstance(result.type, IndexType), "coordinates are of type index")


class GridSizeOp(CoreOp):
    """Size of the grid, by dimension. Folded by the front end; here for text input."""

    name = "ttl.grid_size"


class StoreOp(FlatOp):
    """A value goes to its place: a block expression to a reserved block, or (inside sync) a tile to its output block."""

    name = "ttl.store"

    def verify_(self) -> None:
        expect_operands(self, 2)
        target = self.operands[1].type
        expect(self, is_block(target), f"stores into a block, not into {target}")
        value = self.operands[0].type
        if is_block(value) and value != target and not both_float(value, target):
            raise VerifyException(f"ttl.store: value is {value}, block is {target}")


class InitSfpuOp(PlainOp):
    """Start-up of the compute engines: ``ttl.init_sfpu(%in, %out) : <…>, <…>``."""

    name = "ttl.init_sfpu"

    def print(self, printer: Printer) -> None:
        printer.print_string("(")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_string(") : ")
        print_types(printer, [operand.type for operand in self.operands])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        with parser.in_parens():
            unresolved = parse_operands(parser)
        parser.parse_punctuation(":")
        operands = parser.resolve_operands(unresolved, parse_types(parser), parser.pos)
        return cls.create(operands=operands)

    def verify_(self) -> None:
        for operand in self.operands:
            expect(self, isinstance(operand.type, CBType), "takes buffers")


def _sync_op(name: str, doc: str) -> type[Operation]:
    words = "".join(word.capitalize() for word in name.split("_"))
    return type(f"{words}Op", (BareOp,), {"name": f"ttl.{name}", "__doc__": doc})


TileRegsAcquireOp = _sync_op("tile_regs_acquire", "Math waits for a free half of DST.")
TileRegsCommitOp = _sync_op("tile_regs_commit", "Math hands its half to the packer.")
TileRegsWaitOp = _sync_op("tile_regs_wait", "The packer waits for math.")
TileRegsReleaseOp = _sync_op("tile_regs_release", "The packer frees the half.")
SYNC_OPS = (TileRegsAcquireOp, TileRegsCommitOp, TileRegsWaitOp, TileRegsReleaseOp)


class YieldOp(FlatOp):
    """Results of a region, one per output."""

    name = "ttl.yield"
    traits = traits_def(IsTerminator())


def thread_kind(function: Operation) -> str:
    """``compute`` or ``noc``; text that says nothing computes, as the specification's listings do."""
    attribute = function.attributes.get("ttl.kernel_thread")
    return "compute" if attribute is None else attribute.parameters[0].data  # pyright: ignore


def compute_functions(module: ModuleOp) -> list[FuncOp]:
    return [op for op in module.ops if isinstance(op, FuncOp) and thread_kind(op) == "compute"]


def name_of(op: Operation, default: str) -> str:
    attribute = op.attributes.get("name")
    return attribute.data if isinstance(attribute, StringAttr) else default
