"""``ttl.compute_region`` and the ``ttl.block_*`` names of the specification, and the DST markers of its IR.

The block ops are the tensor-level ops under the specification's names. They exist for text; ``ttl-expand-text-forms`` turns them
into the ops the front end writes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import ClassVar

from typing_extensions import Self
from xdsl.context import Context
from xdsl.dialects.builtin import IndexType, IntegerAttr, TensorType, UnknownLoc
from xdsl.dialects.linalg import Linalg
from xdsl.ir import Attribute, Block, Dialect, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoTerminator
from xdsl.utils.mlir_lexer import MLIRTokenKind

from tilewright.dialects import tile_ops
from tilewright.dialects.assembly import (
    DST_REG,
    ClassTable,
    FlatOp,
    Operand,
    PlainOp,
    expect,
    expect_parameters,
    parse_groups,
    print_attributes,
    print_groups,
)
from tilewright.dialects.attributes import CBType, TileType, int_value, is_block, is_shaped_type, is_tensor_type
from tilewright.dialects.walking import location

AXIS = "axis"


def _block_shape(value: SSAValue) -> tuple[int, ...]:
    if not is_tensor_type(value.type):
        raise ValueError(f"{value.type} is no block")
    return value.type.get_shape()


def _reshaped(value: SSAValue, shape: Sequence[int]) -> Attribute:
    assert is_tensor_type(value.type)
    return TensorType(value.type.element_type, shape)


class TextParser(Parser):
    """xDSL's parser with places. ``first_line`` is the number of the text's first line in its file."""

    def __init__(self, context: Context, text: str, name: str, *, first_line: int = 1) -> None:
        super().__init__(context, text, name)
        self.file, self.first_line = name, first_line
        self.line_starts = [0, *(index + 1 for index, letter in enumerate(text) if letter == "\n")]
        self.argument_types: Sequence[Attribute] = ()  # of the next region's entry block, where the text gives none

    def place(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1."""
        line = bisect_right(self.line_starts, offset) - 1
        return self.first_line + line, offset - self.line_starts[line] + 1

    def parse_operation(self) -> Operation:
        start = self._current_token.span.start
        op = super().parse_operation()
        if isinstance(op.location, UnknownLoc):
            op.location = location(self.file, *self.place(start))
        return op

    def _parse_optional_block_arg_list(self, block: Block) -> Block | None:
        known, self.argument_types = self.argument_types, ()
        if self._current_token.kind != MLIRTokenKind.L_PAREN:
            return None

        def parse_argument() -> None:
            name = self._parse_token(MLIRTokenKind.PERCENT_IDENT, "block argument expected").span
            number = len(block.args)
            if self.parse_optional_punctuation(":"):
                kind = self.parse_attribute()
            elif number < len(known):
                kind = known[number]
            else:
                self.raise_error(f"give the type of argument {name.text}")
            argument = block.insert_arg(kind, number, self.parse_optional_location())
            self._register_ssa_definition(name.text[1:], (argument,), name)

        self.parse_comma_separated_list(self.Delimiter.PAREN, parse_argument)
        return block


@irdl_op_definition
class ComputeRegionOp(IRDLOperation):
    """``%r = ttl.compute_region ins(%x, … : …) outs(%o : …) { ^bb0(…): … ttl.yield … } {keep_in_dst = true}``

    Types may be left out. ``keep_in_dst``: values between its ops stay in DST wherever a unit can read them there.
    """

    name = "ttl.compute_region"

    inputs = var_operand_def()
    outputs = var_operand_def()
    res = var_result_def()
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def print(self, printer: Printer) -> None:
        print_groups(printer, self.inputs, self.outputs)
        printer.print_string(" ")
        printer.print_region(self.body, print_empty_block=False)
        if self.attributes:
            printer.print_string(" ")
            print_attributes(printer, self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        groups = parse_groups(parser)
        if isinstance(parser, TextParser):
            parser.argument_types = [value.type for value in groups[0]]
        body = parser.parse_region()
        attributes: dict[str, Attribute] = dict(parser.parse_optional_attr_dict())
        results = [value.type for value in groups[1]]
        return cls(operands=groups, result_types=[results], regions=[body], attributes=attributes)

    def verify_(self) -> None:
        block = self.body.block
        kinds = [value.type for value in self.inputs]
        expect(self, [argument.type for argument in block.args] == kinds, "its body has one argument per input, of its type")
        expect(self, all(is_block(value.type) for value in self.outputs), "writes blocks")
        last = block.last_op
        expect(self, last is not None and last.name == "ttl.yield", "ends in ttl.yield")
        assert last is not None
        expect(self, [v.type for v in last.operands] == [v.type for v in self.outputs], "yields one block per output")


class BlockComputeOp(PlainOp):
    """``ttl.block_compute { … }``: arithmetic on blocks, and nothing else."""

    name = "ttl.block_compute"
    TAKES = 0
    traits = traits_def(NoTerminator())

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_region(self.regions[0], print_empty_block=False)
        if self.attributes:
            printer.print_string(" ")
            print_attributes(printer, self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        region = parser.parse_region()
        return cls.create(regions=[region], attributes=parser.parse_optional_attr_dict())

    def verify_(self) -> None:
        super().verify_()
        expect(self, len(self.regions) == 1 and len(self.regions[0].blocks) == 1, "has one block")
        expect(self, not self.regions[0].block.args, "takes what is defined before it, not arguments")


class BlockOp(FlatOp):
    """Arithmetic on blocks under a ``block_`` name; ``{dst_reg = %d}`` names the register its result lies in."""

    COUNTS: ClassVar[tuple[int, ...]]

    @property
    def blocks(self) -> Sequence[SSAValue]:
        return self.operands[:-1] if DST_REG in self.attributes else self.operands

    @property
    def register(self) -> SSAValue | None:
        return self.operands[-1] if DST_REG in self.attributes else None

    def verify_(self) -> None:
        counts = self.COUNTS
        expect(self, len(self.blocks) in counts, f"takes {' or '.join(map(str, counts))} blocks, found {len(self.blocks)}")
        expect(self, len(self.results) == 1, "gives one block")
        for value in (*self.blocks, *self.results):
            expect(self, is_block(value.type), f"works on blocks of tiles, not on {value.type}")
        register = self.register
        expect(self, register is None or isinstance(register.type, IndexType), "dst_reg is what ttl.acquire_dst gives")


class BlockAliasOp(BlockOp):
    """A tensor-level op under its ``block_`` name."""

    ROW: ClassVar[str]

    @classmethod
    def inferred_types(cls, operands: Sequence[SSAValue], attributes: Mapping[str, Attribute]) -> Sequence[Attribute]:
        if not operands or "dtype" in attributes:
            raise ValueError("they do not follow from its operands")
        return [operands[0].type]

    def verify_(self) -> None:
        super().verify_()
        shapes = {_block_shape(value) for value in (*self.blocks, *self.results)}
        expect(self, len(shapes) == 1, f"operands and result have the same shape, found {sorted(shapes)}")
        expect_parameters(self, tile_ops.BY_NAME[self.ROW])


def _alias(row: str) -> type[BlockAliasOp]:
    words = row.title().replace("_", "")
    members = {"name": f"ttl.block_{row}", "ROW": row, "COUNTS": (tile_ops.BY_NAME[row].arity,)}
    return type(f"Block{words}Op", (BlockAliasOp,), members)


BLOCK_ALIASES = ClassTable(tile_ops.BY_NAME, _alias)


class BlockMatmulOp(BlockOp):
    """``ttl.block_matmul %a, %b``"""

    name = "ttl.block_matmul"
    COUNTS = (2,)
    lhs = Operand(0)
    rhs = Operand(1)

    @classmethod
    def inferred_types(cls, operands: Sequence[SSAValue], attributes: Mapping[str, Attribute]) -> Sequence[Attribute]:
        left, right = (_block_shape(value) for value in operands[:2])
        if len(left) != 2 or len(right) != 2:
            raise ValueError("a product of blocks has two dimensions")
        return [_reshaped(operands[0], (left[0], right[1]))]


def _axis(attributes: Mapping[str, Attribute], default: int) -> int:
    given = attributes.get(AXIS)
    return given.value.data if isinstance(given, IntegerAttr) else default


LAST_AXIS = 1  # the listings of reductions name none, and mean the columns


class BlockReduceOp(BlockOp):
    """``ttl.block_reduce_sum %x, %ones {axis = 1 : i64}``"""

    KIND: ClassVar[str]
    COUNTS = (1, 2)
    source = Operand(0)
    scaler = Operand(1)  # if there is one

    @property
    def axis(self) -> int:
        return int_value(self, AXIS, LAST_AXIS)

    @classmethod
    def inferred_types(cls, operands: Sequence[SSAValue], attributes: Mapping[str, Attribute]) -> Sequence[Attribute]:
        shape = list(_block_shape(operands[0]))
        axis = _axis(attributes, LAST_AXIS)
        if not 0 <= axis < len(shape):
            raise ValueError(f"there is no axis {axis}")
        shape[axis] = 1
        return [_reshaped(operands[0], shape)]

    def verify_(self) -> None:
        super().verify_()
        source, found = _block_shape(self.source), _block_shape(self.results[0])
        expect(self, 0 <= self.axis < len(source), f"axis lies in 0..{len(source) - 1}")
        wanted = tuple(1 if axis == self.axis else size for axis, size in enumerate(source))
        expect(self, found == wanted, f"reducing {source} over {self.axis} gives {wanted}")
        scaling = self.blocks[1] if len(self.blocks) > 1 else None
        expect(self, scaling is None or set(_block_shape(scaling)) == {1}, "the scaling block has one tile")


class BlockReduceSumOp(BlockReduceOp):
    name = "ttl.block_reduce_sum"
    KIND = "sum"


class BlockReduceMaxOp(BlockReduceOp):
    name = "ttl.block_reduce_max"
    KIND = "max"


class BlockBcastOp(BlockOp):
    """``ttl.block_bcast %x {axis = 1 : i64}``

    Without a type it undoes the reduction that its operand comes from: it has that block's shape, and its axis unless one is
    given.
    """

    name = "ttl.block_bcast"
    COUNTS = (1,)
    source = Operand(0)

    @property
    def axis(self) -> int:
        reduction = reduction_below(self.source)
        return int_value(self, AXIS, LAST_AXIS if reduction is None else reduction.axis)

    @classmethod
    def inferred_types(cls, operands: Sequence[SSAValue], attributes: Mapping[str, Attribute]) -> Sequence[Attribute]:
        reduction = reduction_below(operands[0])
        return [operands[0].type if reduction is None else reduction.source.type]

    def verify_(self) -> None:
        super().verify_()
        rank = len(_block_shape(self.results[0]))
        expect(self, 0 <= self.axis < rank, f"axis lies in 0..{rank - 1}")


def reduction_below(value: SSAValue) -> BlockReduceOp | None:
    """The reduction that a value is computed from, through arithmetic that keeps its shape."""
    owner = value.owner
    while isinstance(owner, BlockAliasOp) and owner.operands:
        owner = owner.operands[0].owner
    return owner if isinstance(owner, BlockReduceOp) else None


class BlockStoreOp(FlatOp):
    """``ttl.block_store %block, %value``: the destination comes first."""

    name = "ttl.block_store"
    TAKES = 2
    target = Operand(0)
    value = Operand(1)

    def verify_(self) -> None:
        super().verify_()
        expect(self, not self.results, "gives nothing")
        for operand in self.operands:
            expect(self, is_block(operand.type), f"stores blocks, not {operand.type}")
        shapes = {_block_shape(operand) for operand in self.operands}
        expect(self, len(shapes) == 1, f"value and block have the same shape, found {sorted(shapes)}")


class RequireDstOp(FlatOp):
    """``ttl.require_dst %value``: this value must be in DST. It is an error if a unit can read it from a buffer only."""

    name = "ttl.require_dst"
    TAKES = 1
    value = Operand(0)

    def verify_(self) -> None:
        super().verify_()
        kind = self.value.type
        expect(self, is_block(kind) or isinstance(kind, TileType), "marks a block or a tile")


class AcquireDstOp(FlatOp):
    """``%d = ttl.acquire_dst {index = 2 : i32} : index``: a DST register; without an index the compiler chooses one."""

    name = "ttl.acquire_dst"
    TAKES = 0
    TAKES_OPERANDS = False
    GIVES = (IndexType, "gives a register number")

    @property
    def number(self) -> int | None:
        given = self.attributes.get("index")
        return given.value.data if isinstance(given, IntegerAttr) else None

    def verify_(self) -> None:
        super().verify_()
        given = self.attributes.get("index")
        expect(self, given is None or (isinstance(given, IntegerAttr) and given.value.data >= 0), "index is a register number")


class ReleaseDstOp(FlatOp):
    """``ttl.release_dst %d : index``: what lies in the register is not used after this."""

    name = "ttl.release_dst"
    TAKES = 1
    register = Operand(0)

    def verify_(self) -> None:
        super().verify_()
        expect(self, isinstance(self.register.owner, AcquireDstOp), "releases what ttl.acquire_dst gave")


class GetTileOp(FlatOp):
    """``%t = ttl.get_tile %cb, %i : <…>, index -> type``: tile ``%i`` of the block that was waited for, in DST."""

    name = "ttl.get_tile"
    TAKES = 2
    buffer = Operand(0)
    index = Operand(1)

    @classmethod
    def inferred_types(cls, operands: Sequence[SSAValue], attributes: Mapping[str, Attribute]) -> Sequence[Attribute]:
        kind = operands[0].type
        if not isinstance(kind, CBType):
            raise ValueError(f"{kind} is no buffer")
        return [kind.element]

    def verify_(self) -> None:
        super().verify_()
        kind = self.buffer.type
        expect(self, isinstance(kind, CBType) and isinstance(kind.element, TileType), "takes a tile of a circular buffer")
        assert isinstance(kind, CBType)
        expect(self, isinstance(self.index.type, IndexType), "the number of the tile is of type index")
        expect(self, len(self.results) == 1 and self.results[0].type == kind.element, "gives a tile of the buffer")


class PackTileOp(FlatOp):
    """``ttl.pack_tile %d, %cb, %i : index, <…>, index``: what lies in register ``%d`` becomes tile ``%i`` of the block."""

    name = "ttl.pack_tile"
    TAKES = 3
    register = Operand(0)
    buffer = Operand(1, CBType, "packs into a circular buffer")
    index = Operand(2)

    def verify_(self) -> None:
        super().verify_()
        expect(self, all(isinstance(self.operands[n].type, IndexType) for n in (0, 2)), "register and tile are of type index")


TILE_ACCESS = (GetTileOp, PackTileOp)
MARKERS = (RequireDstOp, AcquireDstOp, ReleaseDstOp)

REGION_OPS: tuple[type[Operation], ...] = (  # and the aliases
    ComputeRegionOp, BlockComputeOp, BlockMatmulOp, BlockReduceSumOp, BlockReduceMaxOp, BlockBcastOp, BlockStoreOp, *MARKERS,
    *TILE_ACCESS,
)  # fmt: skip


# ``linalg.fill`` on tiles: xDSL's own reads blocks of numbers only.

class FillOp(PlainOp):
    """``linalg.fill ins(%number : f32) outs(%block : memref<…>)``; on tensors it gives the filled block: ``-> tensor<…>``."""

    name = "linalg.fill"
    TAKES = 2
    number = Operand(0)
    target = Operand(1)

    def print(self, printer: Printer) -> None:
        print_groups(printer, self.operands[:1], self.operands[1:])
        if self.results:
            printer.print_string(" -> ")
            printer.print_attribute(self.results[0].type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        inputs, outputs = parse_groups(parser)
        results: list[Attribute] = [parser.parse_type()] if parser.parse_optional_punctuation("->") else []
        return cls.create(operands=[*inputs, *outputs], result_types=results)

    def verify_(self) -> None:
        super().verify_()
        kind = self.target.type
        tiles = is_shaped_type(kind) and isinstance(kind.element_type, TileType)
        expect(self, tiles, f"fills a block of tiles, not {kind}")
        wanted = [kind] if is_tensor_type(kind) else []
        expect(self, [result.type for result in self.results] == wanted, "gives the filled tensor; a memref is filled in place")


TILE_LINALG = Dialect(
    "linalg", [*(op for op in Linalg.operations if op.name != FillOp.name), FillOp], list(Linalg.attributes)
)
