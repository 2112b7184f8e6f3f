"""Types and attributes of the ``ttcore``, ``ttl`` and ``ttkernel`` dialects, in the spelling of the specification's listings, and
the cheapest way to make the attributes, constants and loops that passes need everywhere.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from xdsl.dialects.arith import AddiOp, ConstantOp, MuliOp
from xdsl.dialects.builtin import (
    AffineMapAttr,
    AnyFloat,
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IndexType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    MemRefType,
    StringAttr,
    TensorType,
    UnknownLoc,
    bf16,
    f32,
    i32,
    i64,
)
from xdsl.dialects.scf import ForOp
from xdsl.dialects.scf import YieldOp as ScfYieldOp
from xdsl.ir import (
    Attribute,
    Block,
    Dialect,
    Operation,
    ParametrizedAttribute,
    Region,
    SSAValue,
    SSAValues,
    TypeAttribute,
)
from xdsl.ir.affine import AffineMap
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from tilewright import hardware
from tilewright.dialects.values import results_of
from tilewright.dialects.walking import uses_of
from tilewright.dtypes import DTYPE_BY_NAME

if TYPE_CHECKING:
    from typing_extensions import TypeIs

# Names of tile data formats in IR text. bf16 and f32 are builtin float types there; the others are bare words.
MEMORY_SPACES = ("l1", "dram")
BUILTIN_FORMATS: dict[str, Attribute] = {"bf16": bf16, "f32": f32}
BARE_FORMATS = tuple(name for name in DTYPE_BY_NAME if name not in BUILTIN_FORMATS)


@irdl_attr_definition
class TileType(ParametrizedAttribute, TypeAttribute):
    """``!ttcore.tile<32x32, bf16>``"""

    name = "ttcore.tile"

    rows: IntAttr
    cols: IntAttr
    format: StringAttr

    @property
    def dtype(self) -> str:
        return self.format.data

    @property
    def bytes(self) -> int:
        return hardware.tile_bytes(self.dtype)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            rows, cols = _parse_tile_shape(parser)
            parser.parse_punctuation(",")
            return [IntAttr(rows), IntAttr(cols), StringAttr(_parse_format(parser))]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{self.rows.data}x{self.cols.data}, {self.dtype}")


@irdl_attr_definition
class MemorySpaceAttr(ParametrizedAttribute):
    """``#ttcore.memory_space<l1>``: where a memref of tiles is."""

    name = "ttcore.memory_space"

    space: StringAttr

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        return [_parse_word(parser, MEMORY_SPACES, f"a memory space is one of {', '.join(MEMORY_SPACES)}")]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.space.data)


def _parse_tile_shape(parser: AttrParser) -> tuple[int, int]:
    rows = parser.parse_shape_dimension(allow_dynamic=False)
    parser.parse_shape_delimiter()
    cols = parser.parse_shape_dimension(allow_dynamic=False)
    return rows, cols


def _parse_word(parser: AttrParser, words: Sequence[str], else_message: str) -> StringAttr:
    """``<word>``, one of these."""
    with parser.in_angle_brackets():
        word = parser.parse_identifier()
        if word not in words:
            parser.raise_error(else_message)
        return StringAttr(word)


def _parse_format(parser: AttrParser) -> str:
    word = parser.parse_optional_identifier()
    if word is not None and word not in DTYPE_BY_NAME:
        parser.raise_error(f"unknown tile format '{word}'")
    if word is not None:
        return word
    kind = parser.parse_type()
    known = next((name for name, builtin in BUILTIN_FORMATS.items() if builtin == kind), None)
    return known or parser.raise_error("a tile holds bf16, f32, " + ", ".join(BARE_FORMATS))


SCALARS: dict[str, Attribute] = {"bf16": bf16, "f32": f32, "i32": i32}  # element types of what lies row by row


def scalar_format(kind: Attribute) -> str:
    """The tile format that holds such elements; empty if there is none."""
    return next((name for name, known in SCALARS.items() if known == kind), "")


# ``isinstance`` tells the class and not what is inside, which a type checker then calls unknown. These say it. The classes are
# final, and asking for the class itself takes a tenth of the time: xDSL's are abstract, which look for their subclasses.


def is_array_attr(attribute: Attribute | None) -> TypeIs[ArrayAttr[Attribute]]:
    return type(attribute) is ArrayAttr


def is_int_attr(attribute: Attribute) -> TypeIs[IntAttr[int]]:
    return type(attribute) is IntAttr


def is_number_attr(attribute: Attribute | None) -> TypeIs[IntegerAttr[IntegerType | IndexType] | FloatAttr[AnyFloat]]:
    return type(attribute) is IntegerAttr or type(attribute) is FloatAttr


def is_integer_attr(attribute: Attribute | None) -> TypeIs[IntegerAttr[IntegerType | IndexType]]:
    return type(attribute) is IntegerAttr


def is_tensor_type(kind: Attribute | None) -> TypeIs[TensorType[Attribute]]:
    return type(kind) is TensorType


def is_memref_type(kind: Attribute) -> TypeIs[MemRefType[Attribute]]:
    return isinstance(kind, MemRefType)


def is_shaped_type(kind: Attribute) -> TypeIs[TensorType[Attribute] | MemRefType[Attribute]]:
    return isinstance(kind, (TensorType, MemRefType))


def buffer_type_of(value: SSAValue) -> CBType:
    assert isinstance(value.type, CBType)
    return value.type


def block_type_of(value: SSAValue) -> TensorType[Attribute]:
    assert type(value.type) is TensorType
    return value.type  # pyright: ignore


def defining_op(value: SSAValue) -> Operation:
    """Of a value that no block has as an argument."""
    assert type(value.owner) is not Block
    return value.owner  # pyright: ignore[reportReturnType]


def is_block(kind: Attribute) -> bool:
    """A tensor of tiles; in text also one of elements that make whole tiles."""
    if not is_tensor_type(kind):
        return False
    shape = kind.get_shape()
    sizes = (hardware.TILE_ROWS, hardware.TILE_COLS)
    whole = len(shape) >= 2 and not any(size % unit for size, unit in zip(shape[-2:], sizes, strict=True))
    return isinstance(kind.element_type, TileType) or (whole and scalar_format(kind.element_type) != "")


def _print_shape(printer: Printer, shape: ArrayAttr[IntAttr]) -> None:
    printer.print_string("[" + ", ".join(str(dim.data) for dim in shape) + "]")


def _parse_shape(parser: AttrParser) -> ArrayAttr[IntAttr]:
    dims = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
    return ArrayAttr([IntAttr(dim) for dim in dims])


class _TilesType(ParametrizedAttribute, TypeAttribute):
    """Shared by buffers and tensors: ``<[shape in tiles], what a tile is, one more word>``."""

    shape: ArrayAttr[IntAttr]
    element: Attribute

    @classmethod
    @abstractmethod
    def parse_last(cls, parser: AttrParser) -> Attribute: ...

    @abstractmethod
    def print_last(self, printer: Printer) -> None: ...

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            shape = _parse_shape(parser)
            parser.parse_punctuation(",")
            element = parser.parse_type()
            parser.parse_punctuation(",")
            return [shape, element, cls.parse_last(parser)]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            _print_shape(printer, self.shape)
            printer.print_string(", ")
            printer.print_attribute(self.element)
            printer.print_string(", ")
            self.print_last(printer)

    @property
    def dims(self) -> tuple[int, ...]:
        return tuple([dim.data for dim in self.shape.data])

    @property
    def tile(self) -> TileType:
        assert isinstance(self.element, TileType)
        return self.element

    @property
    def tiled(self) -> bool:
        """Whether the shape counts tiles; else it counts elements, and the data lies row by row."""
        return isinstance(self.element, TileType)


class _BufferType(_TilesType):
    """Shared by the two buffer types: the shape is a block's, and the last word says how many blocks."""

    factor: IntAttr

    @classmethod
    def parse_last(cls, parser: AttrParser) -> Attribute:
        return IntAttr(parser.parse_integer())

    def print_last(self, printer: Printer) -> None:
        printer.print_string(str(self.factor.data))

    @property
    def block_tiles(self) -> int:
        tiles = 1
        for dim in self.shape.data:
            tiles *= dim.data
        return tiles

    @property
    def total_tiles(self) -> int:
        return self.block_tiles * self.factor.data


@irdl_attr_definition
class CBType(_BufferType):
    """``!ttl.cb<[2, 2], !ttcore.tile<32x32, bf16>, 2>``: block shape, element, number of blocks."""

    name = "ttl.cb"

    shape: ArrayAttr[IntAttr]
    element: Attribute
    factor: IntAttr

    @property
    def block_type(self) -> TensorType[Attribute]:
        return tensor_type(self.element, self.dims)


@irdl_attr_definition
class KernelCBType(_BufferType):
    """``!ttkernel.cb<…>``: the same buffer once only hardware calls remain."""

    name = "ttkernel.cb"

    shape: ArrayAttr[IntAttr]
    element: Attribute
    factor: IntAttr


@irdl_attr_definition
class DstType(ParametrizedAttribute, TypeAttribute):
    """``!ttl.dst``: token of a tile that was brought into DST."""

    name = "ttl.dst"


@irdl_attr_definition
class TransferType(ParametrizedAttribute, TypeAttribute):
    """``!ttl.transfer``: a copy under way."""

    name = "ttl.transfer"


@irdl_attr_definition
class SemaphoreType(ParametrizedAttribute, TypeAttribute):
    """``!ttl.semaphore``"""

    name = "ttl.semaphore"


@irdl_attr_definition
class PipeType(ParametrizedAttribute, TypeAttribute):
    """``!ttl.pipe``"""

    name = "ttl.pipe"


class _TensorRefType(_TilesType):
    """Shared by whole tensors and slices of them: the last word says in which memory they lie."""

    memory: StringAttr

    @classmethod
    def parse_last(cls, parser: AttrParser) -> Attribute:
        return StringAttr(parser.parse_str_literal())

    def print_last(self, printer: Printer) -> None:
        printer.print_string_literal(self.memory.data)


@irdl_attr_definition
class AccessorType(_TensorRefType):
    """``!ttl.accessor<[64, 64], !ttcore.tile<32x32, bf16>, "dram">``: a whole tensor outside the core, shape in tiles."""

    name = "ttl.accessor"

    shape: ArrayAttr[IntAttr]
    element: Attribute
    memory: StringAttr


@irdl_attr_definition
class SliceType(_TensorRefType):
    """``!ttl.slice<[2, 2], …>``: a rectangle of tiles of such a tensor."""

    name = "ttl.slice"

    shape: ArrayAttr[IntAttr]
    element: Attribute
    memory: StringAttr


@irdl_attr_definition
class SliceAttr(ParametrizedAttribute):
    """``#ttl.slice<1, 8, 1>``: start, stop and step of a range of cores, as Python's slice."""

    name = "ttl.slice"

    start: IntAttr
    stop: IntAttr
    step: IntAttr

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        numbers = parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parser.parse_integer)
        if len(numbers) not in (2, 3):
            parser.raise_error("a slice is <start, stop, step>; the step may be left out")
        return [IntAttr(number) for number in (*numbers, 1)[:3]]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{self.start.data}, {self.stop.data}, {self.step.data}")


@irdl_attr_definition
class ThreadAttr(ParametrizedAttribute):
    """``#ttkernel.thread<compute>`` or ``#ttkernel.thread<noc>``: which processor runs a function."""

    name = "ttkernel.thread"

    kind: StringAttr

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        return [_parse_word(parser, ("compute", "noc"), "a thread is compute or noc")]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.kind.data)


@lru_cache(maxsize=64)
def tile_type(dtype: str) -> TileType:
    return TileType(IntAttr(hardware.TILE_ROWS), IntAttr(hardware.TILE_COLS), StringAttr(dtype))


def int_array(values: Iterable[int]) -> ArrayAttr[IntAttr]:
    return _int_array(tuple(values))


@lru_cache(maxsize=1024)
def _int_array(values: tuple[int, ...]) -> ArrayAttr[IntAttr]:
    return ArrayAttr([IntAttr(value) for value in values])


@lru_cache(maxsize=1024)
def cb_type(shape: tuple[int, ...], dtype: str, factor: int) -> CBType:
    return CBType(int_array(shape), tile_type(dtype), IntAttr(factor))


@lru_cache(maxsize=1024)
def tensor_type(element: Attribute, shape: tuple[int, ...]) -> TensorType[Attribute]:
    return TensorType(element, shape)


def block_type(shape: Iterable[int], dtype: str) -> TensorType[Attribute]:
    return tensor_type(tile_type(dtype), tuple(shape))


COMPUTE_THREAD = ThreadAttr(StringAttr("compute"))
NOC_THREAD = ThreadAttr(StringAttr("noc"))
# Names the specification's listings use without defining them.
KNOWN_ALIASES: dict[str, Attribute] = {f"#{space.upper()}": MemorySpaceAttr(StringAttr(space)) for space in MEMORY_SPACES}

TTCore = Dialect("ttcore", [], [TileType, MemorySpaceAttr])


# Attributes and constants. Equal ones are one object: making them is what costs.

INDEX = IndexType()
I32 = IntegerType(32)
I1 = IntegerType(1)
FALSE, TRUE = (IntegerAttr(value, I1) for value in (0, 1))
Made = TypeVar("Made", bound=Operation)
NOWHERE = UnknownLoc()  # given to ops that have no place of their own: xDSL would make one for each


@lru_cache(maxsize=4096)
def i32_attr(value: int) -> IntegerAttr:
    return IntegerAttr(value, I32)


@lru_cache(maxsize=4096)
def index_attr(value: int) -> IntegerAttr:
    return IntegerAttr(value, INDEX)


@lru_cache(maxsize=4096)
def text_attr(text: str) -> StringAttr:
    return StringAttr(text)


@lru_cache(maxsize=4096, typed=True)
def i64_attr(value: int) -> IntegerAttr:
    return IntegerAttr(value, i64)


@lru_cache(maxsize=1024)
def i64_array(values: tuple[int, ...]) -> Attribute:
    return DenseArrayBase.from_list(i64, values)


@lru_cache(maxsize=1024)
def segments(sizes: tuple[int, ...]) -> Attribute:
    """``operandSegmentSizes``: how many operands each group has."""
    return DenseArrayBase.from_list(i32, sizes)


@lru_cache(maxsize=64)
def identity_map(rank: int) -> AffineMapAttr:
    return AffineMapAttr(AffineMap.identity(rank))


def i32_list(values: Iterable[int]) -> ArrayAttr[IntegerAttr]:
    return ArrayAttr([i32_attr(value) for value in values])


def i64_list(values: Iterable[int]) -> ArrayAttr[IntegerAttr]:
    return ArrayAttr([i64_attr(value) for value in values])


@lru_cache(maxsize=256)
def text_array(words: tuple[str, ...]) -> ArrayAttr[StringAttr]:
    return ArrayAttr([text_attr(word) for word in words])


def number_attr(value: float | int | bool | str) -> Attribute:
    if isinstance(value, bool):
        return TRUE if value else FALSE
    if isinstance(value, int):
        return i32_attr(value) if -(2**31) <= value < 2**31 else IntegerAttr(value, IntegerType(64))
    if isinstance(value, str):
        return text_attr(value)
    return FloatAttr(value, f32)


def int_value(op: Operation, key: str, default: int | None = None) -> int:
    attribute = op.attributes.get(key)
    if attribute is not None and isinstance(attribute, IntegerAttr):
        return attribute.value.data
    assert default is not None, f"{op.name} lacks the attribute {key}"
    return default


def text_value(op: Operation, key: str, default: str = "") -> str:
    attribute = op.attributes.get(key)
    return attribute.data if attribute is not None and isinstance(attribute, StringAttr) else default


def int_list(op: Operation, key: str) -> tuple[int, ...]:
    attribute = op.attributes.get(key)
    if not is_array_attr(attribute):
        return ()
    return tuple(item.value.data for item in attribute if isinstance(item, IntegerAttr))


def created(
    kind: type[Made], operands: Sequence[SSAValue] = (), results: Sequence[Attribute] = (), *,
    value: Attribute | None = None, body: Region | None = None, location: LocationAttr = NOWHERE,
) -> Made:  # fmt: skip
    """As ``kind.create`` makes one of xDSL's ops, without the steps for what these do not have: they cost more than the rest."""
    op = kind.__new__(kind)
    op._operands, op._operand_uses = SSAValues(operands), uses_of(op, operands)  # pyright: ignore[reportPrivateUsage]
    op.results = SSAValues(results_of(op, results))
    op.properties, op.attributes, op.location = dict(_defaults(kind)) if value is None else {"value": value}, {}, location
    if body is not None:
        op.add_region(body)
    return op


@lru_cache(maxsize=64)
def _defaults(kind: type[Operation]) -> dict[str, Attribute]:
    return kind.create().properties


def constant(value: int) -> ConstantOp:
    return created(ConstantOp, (), [INDEX], value=index_attr(value))


def constant_of(value: SSAValue) -> int | None:
    """The number behind an SSA value, if it is a constant. A truth is 0 or 1 (xDSL reads the one bit of an i1 as -1)."""
    owner = value.owner
    number = owner.properties["value"] if type(owner) is ConstantOp else None
    if type(number) is not IntegerAttr:
        return None
    return number.value.data & 1 if number.type is not INDEX and number.type == I1 else number.value.data


def add(left: SSAValue, right: SSAValue) -> Operation:
    return created(AddiOp, [left, right], [INDEX])


def multiply(left: SSAValue, right: SSAValue) -> Operation:
    return created(MuliOp, [left, right], [INDEX])


def for_loop(low: SSAValue, high: SSAValue, step: SSAValue, body: Block, carried: Sequence[SSAValue] = ()) -> ForOp:
    return created(ForOp, [low, high, step, *carried], [value.type for value in carried], body=Region(body))


def loop_end(values: Sequence[SSAValue] = ()) -> Operation:
    return created(ScfYieldOp, values)


def trip_count(loop: ForOp) -> int | None:
    """How often the body of a loop runs; None if that is not known."""
    low, high, step = map(constant_of, tuple(loop._operands)[:3])  # pyright: ignore[reportPrivateUsage]
    if low is None or high is None or step is None:
        return None
    return max(0, -(-(high - low) // step))


# What an op may say about where its result lies in DST, from text to the allocator.

PINNED = "ttl.dst_reg"  # the register that the result of the first tile lies in
REQUIRED = "ttl.require_dst"  # the result may not go through a buffer


def pins_of(op: Operation) -> dict[str, Attribute]:
    """Those of an op, for the one that stands for it."""
    return {key: op.attributes[key] for key in (PINNED, REQUIRED) if key in op.attributes}
