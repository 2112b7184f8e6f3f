"""The ``ttl`` dialect on whole blocks: the op table's rows on blocks and on tiles, matmul, reductions, broadcasts; stores,
cores, work and synchronisation. Buffers, data movement, regions, the network and forms of text are in the files ``ttl_*.py``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

from typing_extensions import Self
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FloatAttr, IndexType, IntegerAttr, ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from tilewright.dialects import tile_ops
from tilewright.dialects.assembly import (
    ONE_INDEX,
    BareOp,
    ClassTable,
    FlatOp,
    Operand,
    PlainOp,
    TileMathOp,
    expect,
    expect_operands,
    expect_parameters,
    integers,
    mark,
    parse_operands,
    parse_types,
    print_types,
    text,
)
from tilewright.dialects.attributes import (
    AccessorType,
    CBType,
    ThreadAttr,
    TileType,
    int_value,
    is_array_attr,
    is_block,
    is_tensor_type,
    text_value,
)
from tilewright.dialects.tile_op import FACES, FLOAT_DTYPES, MEMBERS, TileOp
from tilewright.dialects.walking import functions
from tilewright.grid import PARTS, WorkArgument

PATTERNS = ("rows", "columns", "upper", "lower")  # of blocks whose elements say where they stand
REDUCE_KINDS = ("sum", "max")
TRANSPOSE_B = "transpose_b"  # of a product: each tile of the right operand is transposed on its way to the unit
KEEP_IN_DST = "keep_in_dst"  # the result stays in DST wherever a unit can read it there
MEAN = "mean"  # on the factor of a mean, until ttl-mask-padding: the dimensions it is taken over
TURNED_B = "turned_b"  # the right operand's tiles lie columns by rows


class _BlockOp(FlatOp):
    traits = traits_def(Pure())

    def verify_(self) -> None:
        super().verify_()
        expect(self, len(self.results) == 1, "gives one block")
        for value in (*self.operands, *self.results):
            kind = value.type
            expect(self, is_block(kind), f"works on blocks of tiles, not on {kind}")


def shape_of(kind: Attribute) -> tuple[int, ...]:
    assert is_tensor_type(kind)
    return tuple([size.data for size in kind.shape.data])


def dtype_of(kind: Attribute) -> str:
    """Of a block's tiles."""
    assert is_tensor_type(kind) and isinstance(kind.element_type, TileType)
    return kind.element_type.dtype


class MatmulOp(_BlockOp):
    """``%r = ttl.matmul %a, %b``: blocks of MxK and KxN tiles give MxN."""

    name = "ttl.matmul"
    TAKES = 2
    lhs = Operand(0)
    rhs = Operand(1)

    def verify_(self) -> None:
        super().verify_()
        left, right, result = (shape_of(value.type) for value in (*self.operands, *self.results))
        expect(self, len(left) == len(right) == 2, "multiplies blocks of two dimensions")
        right = right[::-1] if TURNED_B in self.attributes else right
        expect(self, left[1] == right[0], f"inner sizes differ: {left} and {right}")
        expect(self, result == (left[0], right[1]), f"the product of {left} and {right} is {(left[0], right[1])}")


class ReduceOp(_BlockOp):
    """``%r = ttl.reduce %x {kind = "sum", dims = [1]}``: over tiles and within tiles; reduced dimensions have size 1.

    An optional second operand is a tile of scale factors that each element is multiplied with, an optional third one a tile that
    is reduced with those of each result. ``exact`` keeps f32 off the matrix unit; what the tiles hold besides the result is then
    undefined.
    """

    name = "ttl.reduce"
    source = Operand(0)
    scaler = Operand(1)  # if there is one
    dims = integers("dims")
    exact = mark("exact")

    @property
    def tiles(self) -> int:
        """How many tiles of the operand one tile of the result comes from."""
        return math.prod(size for axis, size in enumerate(shape_of(self.source.type)) if axis in self.dims)

    def verify_(self) -> None:
        expect(self, len(self.operands) in (1, 2, 3), "takes a block, perhaps a scaler and one tile more")
        super().verify_()
        kind = self.attributes.get("kind")
        expect(self, isinstance(kind, StringAttr) and kind.data in REDUCE_KINDS, f"kind is one of {REDUCE_KINDS}")
        source, result = shape_of(self.source.type), shape_of(self.results[0].type)
        _expect_dims(self, self.dims, len(source))
        expected = tuple(1 if axis in self.dims else size for axis, size in enumerate(source))
        expect(self, result == expected, f"reducing {source} over {self.dims} gives {expected}")


class BcastOp(_BlockOp):
    """``%r = ttl.bcast %x {dims = [1]}``: blocks repeat their tiles along dimensions of size 1, as NumPy does with elements.

    Within each tile the first row, column or element is repeated along ``dims``; without dims tiles stay whole.
    """

    name = "ttl.bcast"
    TAKES = 1
    source = Operand(0)
    dims = integers("dims")

    def verify_(self) -> None:
        super().verify_()
        source, result = shape_of(self.source.type), shape_of(self.results[0].type)
        _expect_dims(self, self.dims, len(result), empty=True)
        expect(self, len(source) <= len(result) <= 2, "gives two dimensions at most, and no fewer than it gets")
        for small, large in zip(reversed(source), reversed(result), strict=False):
            expect(self, small in (1, large), f"cannot repeat {source} to {result}")


class ReshapeOp(_BlockOp):
    """``%r = ttl.reshape %x``: dimensions of one tile are dropped or added; tiles keep their order."""

    name = "ttl.reshape"
    TAKES = 1
    source = Operand(0)

    @property
    def places(self) -> tuple[int | None, ...]:
        """For each dimension of the operand the one of the result that runs over it; None for a dropped one."""
        target = list(shape_of(self.results[0].type))
        found: list[int | None] = []
        place = 0
        for size in shape_of(self.source.type):
            while size != 1 and place < len(target) and target[place] == 1:
                place += 1
            if size == 1:
                found.append(None)
            else:
                found.append(place)
                place += 1
        return tuple(found)

    def verify_(self) -> None:
        super().verify_()
        source, result = shape_of(self.source.type), shape_of(self.results[0].type)
        kept = [[size for size in shape if size != 1] for shape in (source, result)]
        expect(self, kept[0] == kept[1], f"drops or adds dimensions of one tile, but {source} is no {result}")


class TransposeOp(_BlockOp):
    """``%r = ttl.transpose %x``: tiles change places and each tile is transposed."""

    name = "ttl.transpose"
    TAKES = 1
    source = Operand(0)

    def verify_(self) -> None:
        super().verify_()
        source, result = shape_of(self.source.type), shape_of(self.results[0].type)
        expect(self, len(source) == 2 and result == (source[1], source[0]), f"turns {source} into {source[::-1]}")


class FillBlockOp(_BlockOp):
    """``%r = ttl.fill_block {value = 0.0 : f32}``: every element has this value, a whole number in blocks of integers."""

    name = "ttl.fill_block"
    TAKES = 0

    def verify_(self) -> None:
        super().verify_()
        expect(self, isinstance(self.attributes.get("value"), (FloatAttr, IntegerAttr)), "needs the attribute 'value'")


class PatternBlockOp(_BlockOp):
    """``%r = ttl.pattern_block {pattern = "columns"}``: every element says where it stands in its block.

    ``rows`` and ``columns`` hold its number among them. ``upper`` holds ones on and above the diagonal of the block and zeros
    below, ``lower`` ones on and below it.
    """

    name = "ttl.pattern_block"
    TAKES = 0
    pattern = text("pattern")

    def verify_(self) -> None:
        super().verify_()
        expect(self, self.pattern in PATTERNS, f"pattern is one of {PATTERNS}")
        shape = shape_of(self.results[0].type)
        expect(self, len(shape) == 2 and dtype_of(self.results[0].type) in ("bf16", "f32"), "makes bf16 or f32 of two dimensions")
        expect(self, self.pattern in ("rows", "columns") or shape[0] == shape[1], "a triangle fills a square block")


def _expect_dims(op: Operation, dims: tuple[int, ...], rank: int, *, empty: bool = False) -> None:
    given = op.attributes.get("dims")
    expect(
        op, is_array_attr(given) and all(isinstance(dim, IntegerAttr) for dim in given), "needs dims, a list of integers"
    )
    distinct = len(set(dims)) == len(dims) and (empty or bool(dims))
    expect(op, distinct and all(0 <= dim < rank for dim in dims), f"dims lie in 0..{rank - 1}")


BLOCK_OPS: tuple[type[Operation], ...] = (MatmulOp, ReduceOp, BcastOp, ReshapeOp, TransposeOp, FillBlockOp, PatternBlockOp)


PURE = traits_def(Pure())
MOST_DIMS = 3  # of a grid


class TensorMathOp(FlatOp):
    """A row of the op table on whole blocks: ``%r = ttl.add %a, %b : T, T -> T``."""

    SPEC: ClassVar[TileOp]
    lhs = Operand(0)  # of a unary op, its operand
    rhs = Operand(1)

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
    lhs = Operand(0)  # of a unary op, its operand
    rhs = Operand(1)

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
    if not is_tensor_type(first) or not is_tensor_type(second) or first.get_shape() != second.get_shape():
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
    TAKES = 0
    TAKES_OPERANDS = False
    traits = PURE

    @classmethod
    def inferred_types(cls, operands: Sequence[SSAValue], attributes: Mapping[str, Attribute]) -> Sequence[Attribute]:
        dims = attributes.get("dims")
        return [IndexType()] * min(dims.value.data if isinstance(dims, IntegerAttr) else 2, MOST_DIMS)

    def verify_(self) -> None:
        super().verify_()
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
    TAKES = 2
    value = Operand(0)
    target = Operand(1)

    def verify_(self) -> None:
        super().verify_()
        target = self.target.type
        expect(self, is_block(target), f"stores into a block, not into {target}")
        value = self.value.type
        expect(self, is_block(value) or isinstance(value, TileType), f"stores a block or a tile, not {value}")
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
    return attribute.kind.data if isinstance(attribute, ThreadAttr) else "compute"


def compute_functions(module: ModuleOp) -> list[FuncOp]:
    return [op for op in functions(module) if thread_kind(op) == "compute"]


def name_of(op: Operation, default: str) -> str:
    return text_value(op, "name", default)


class PrintOp(FlatOp):
    """``ttl.print %cb, %i {text = "row {}", subject = "waited", processor = "unpack"}``.

    ``text`` has one ``{}`` per index operand. ``subject`` is empty, or says what the first operand stands for: the block that is
    ``waited`` for or ``reserved``, the state of the ``buffer``, or the first pages of a ``tensor``; ``dst`` needs no operand.
    ``processor`` names one of the three of a compute thread.
    """

    name = "ttl.print"

    def verify_(self) -> None:
        expect(self, isinstance(self.attributes.get("text"), StringAttr), "needs a text")
        numbers = [operand for operand in self.operands if isinstance(operand.type, IndexType)]
        others = [operand for operand in self.operands if isinstance(operand.type, (CBType, AccessorType))]
        expect(self, len(numbers) + len(others) == len(self.operands) and len(others) <= 1, "prints numbers and one object")


class BreakpointOp(FlatOp):
    """``ttl.breakpoint %cb, %i {names = ["x", "i"], kinds = ["waited", "number"], …}``: where a simulation stops.

    Operands are what names stand for: a ``number``, a ``truth``, or a block, ``waited`` for or ``reserved``; ``held`` older ones
    lie before it in its buffer. ``constants`` and ``others`` are tables of literals, written in Python: names with a value
    that is known, and words about those that have none here.
    """

    name = "ttl.breakpoint"

    def verify_(self) -> None:
        for key in ("names", "kinds", "held"):
            listed = self.attributes.get(key)
            expect(self, is_array_attr(listed) and len(listed) == len(self.operands), f"needs one of {key} per operand")


DEBUG_OPS: tuple[type[Operation], ...] = (PrintOp, BreakpointOp)  # they look at what has been stored before them


class WorkOp(FlatOp):
    """``%n = ttl.work {part = "count", amount = 64 : i32, name = "count"} : index``: this core's share of 64 blocks."""

    name = "ttl.work"
    TAKES = 0
    GIVES = ONE_INDEX
    traits = traits_def(Pure())

    def verify_(self) -> None:
        super().verify_()
        part = self.attributes.get("part")
        expect(self, isinstance(part, StringAttr) and part.data in PARTS, f"part is one of {PARTS}")
        expect(self, isinstance(self.attributes.get("amount"), IntegerAttr), "needs the attribute 'amount'")

    @property
    def argument(self) -> WorkArgument:
        return WorkArgument(part=text_value(self, "part"), amount=int_value(self, "amount"))

    @property
    def argument_name(self) -> str:
        return text_value(self, "name", text_value(self, "part"))


WORK_OPS: tuple[type[Operation], ...] = (WorkOp,)


# C++ of the author's own. What it does to buffers stands around it as ops of the dialect, marked `EXTERNAL`.

EXTERNAL = "external"  # on an acquire or release that the author's code makes itself: it is executed, but not written


class ExternCallOp(FlatOp):
    """``ttl.extern_call %block, %buffer, %n {text = "scale<{0}>({1})", code = "…", meaning = "…"} : …``

    Operands are the blocks that it works on, then buffers, integers and tensors, which ``text`` numbers from 0. ``code`` defines
    the function.
    """

    name = "ttl.extern_call"

    def verify_(self) -> None:
        known = (TensorType, CBType, IndexType, AccessorType)
        expect(self, all(isinstance(operand.type, known) for operand in self.operands), "takes blocks, buffers and integers")
        for key in ("text", "code"):
            expect(self, isinstance(self.attributes.get(key), StringAttr), f"needs {key}")

    @property
    def blocks(self) -> list[SSAValue]:
        return [operand for operand in self.operands if is_tensor_type(operand.type)]

    @property
    def arguments(self) -> list[SSAValue]:
        return [operand for operand in self.operands if not is_tensor_type(operand.type)]


EXTERNAL_OPS: tuple[type[Operation], ...] = (ExternCallOp,)


# Signposts ---------------------------------------------------------------------------------------------------------------
# A function knows the source lines below each signpost of its thread; whoever measures lines can measure those.

SIGNPOSTS = "ttl.signposts"


def signposts_attr(rows: Mapping[str, Sequence[tuple[str, int]]]) -> DictionaryAttr:
    places = {name: ArrayAttr([StringAttr(f"{file}:{line}") for file, line in lines]) for name, lines in rows.items()}
    return DictionaryAttr(places)


def signposts_of(function: Operation) -> dict[str, set[tuple[str, int]]]:
    found = function.attributes.get(SIGNPOSTS)
    rows: dict[str, set[tuple[str, int]]] = {}
    for name, places in found.data.items() if isinstance(found, DictionaryAttr) else ():
        assert is_array_attr(places)
        texts = [place.data for place in places if isinstance(place, StringAttr)]
        rows[name] = {(file, int(line)) for file, _, line in (text.rpartition(":") for text in texts)}
    return rows
