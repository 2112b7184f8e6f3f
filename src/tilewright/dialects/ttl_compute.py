"""``ttl.compute`` and what lives in it: loads, copies between DST slots, linear tile indices, and tile ops that are no rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from struct import Struct
from typing import Any, ClassVar

from typing_extensions import Self
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    IndexType,
    IntegerAttr,
    StringAttr,
    UnitAttr,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    opt_attr_def,
    region_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer

from tilewright.dialects.assembly import (
    DST_REG,
    FlatOp,
    InheritedKind,
    Operand,
    PlainOp,
    TileMathOp,
    expect,
    integer,
    mark,
    parse_groups,
    parse_operands,
    parse_types,
    parser_value_type,
    print_attributes,
    print_groups,
    print_types,
    text,
)
from tilewright.dialects.attributes import (
    DstType,
    TileType,
    block_type_of,
    int_value,
    is_tensor_type,
    segments,
    text_array,
)
from tilewright.dialects.ttl import TRANSPOSE_B, TURNED_B

# The first of numbers of 32 bits, from their bytes. Passes ask this more often than anything else about regions.
_first_size: Callable[[Any], tuple[int]] = Struct("<i").unpack_from


@irdl_op_definition
class ComputeOp(IRDLOperation, metaclass=InheritedKind):
    """Runs its body once for every tile of the outputs; the maps say which tile of each operand that is."""

    name = "ttl.compute"

    read = var_operand_def()  # inputs and outputs, under names of their own: those of IRDL decode the sizes at every access
    written = var_operand_def()
    res = var_result_def()
    indexing_maps = opt_attr_def(ArrayAttr[AffineMapAttr])
    iterator_types = opt_attr_def(ArrayAttr[StringAttr])
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        inputs: Sequence[SSAValue],
        outputs: Sequence[SSAValue],
        maps: Sequence[AffineMapAttr],
        iterators: Sequence[str],
        body: Region,
        attributes: dict[str, Attribute] | None = None,
    ) -> None:
        Operation.__init__(  # not the constructor IRDL makes, which costs five times as much
            self,
            operands=[*inputs, *outputs],
            result_types=[value.type for value in outputs],
            properties={"operandSegmentSizes": segments((len(inputs), len(outputs)))},
            attributes={
                "indexing_maps": ArrayAttr(maps),
                "iterator_types": text_array(tuple(iterators)),
                **(attributes or {}),
            },
            regions=[body],
        )

    @property
    def inputs(self) -> Sequence[SSAValue]:
        (count,) = _first_size(self.properties["operandSegmentSizes"].data.data)  # pyright: ignore
        return tuple(self._operands)[:count]

    @property
    def outputs(self) -> Sequence[SSAValue]:
        (count,) = _first_size(self.properties["operandSegmentSizes"].data.data)  # pyright: ignore
        return tuple(self._operands)[count:]

    @property
    def block(self) -> Block:
        block = self.regions[0]._first_block  # the one it has; what IRDL generates looks that up each time  # pyright: ignore
        assert block is not None
        return block

    @property
    def maps(self) -> tuple[AffineMapAttr, ...]:
        return tuple(self.indexing_maps or ())

    @property
    def output_shape(self) -> tuple[int, ...]:
        return tuple([size.data for size in block_type_of(self.outputs[0]).shape.data])

    @property
    def tiles(self) -> int:
        """How many tiles of each output it computes."""
        return prod(self.output_shape)

    def print(self, printer: Printer) -> None:
        print_groups(printer, self.inputs, self.outputs)
        printer.print_string(" ")
        print_attributes(printer, self.attributes)
        printer.print_string(" ")
        printer.print_region(self.body, print_empty_block=False)
        if self.results:
            printer.print_string(" -> ")
            print_types(printer, [result.type for result in self.results])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        groups = parse_groups(parser)
        # The listings write attributes added by later passes in a second dictionary.
        attributes: dict[str, Attribute] = {}
        while more := _attribute_dictionary(parser):
            attributes.update(more)
        body = parser.parse_region()
        result_types = parse_types(parser) if parser.parse_optional_punctuation("->") else [v.type for v in groups[1]]
        maps, iterators = attributes.pop("indexing_maps", None), attributes.pop("iterator_types", None)
        op = cls(groups[0], groups[1], [], [], body, attributes)
        for key, value in (("indexing_maps", maps), ("iterator_types", iterators)):
            if value is None:
                parser.raise_error(f"ttl.compute needs {key}")
            op.attributes[key] = value
        if [result.type for result in op.results] != result_types:
            parser.raise_error("results of ttl.compute have the types of its outputs")
        return op

    def verify_(self) -> None:
        expect(self, bool(self.outputs), "has at least one output")
        operands = (*self.inputs, *self.outputs)
        expect(self, len(self.maps) == len(operands), "needs one indexing map per operand")
        expect(self, len(self.block.args) == len(operands), "its body has one argument per operand")
        for value, argument in zip(operands, self.block.args, strict=True):
            tile = value.type.element_type if is_tensor_type(value.type) else None
            expect(self, isinstance(tile, TileType) and tile == argument.type, "body arguments are tiles of the operands")
        dims = len(self.iterator_types or ())
        for value, map_ in zip(operands, self.maps, strict=True):
            expect(self, map_.data.num_dims == dims, "each map has as many dimensions as there are iterators")
            rank = block_type_of(value).get_num_dims()
            expect(self, len(map_.data.results) == rank, "a map gives one index per operand dimension")
        last = self.block.last_op
        expect(self, last is not None and last.name == "ttl.yield", "ends in ttl.yield")
        assert last is not None
        expect(self, len(last.operands) == len(self.outputs), "yields one tile per output")


def _attribute_dictionary(parser: Parser) -> dict[str, Attribute]:
    """One ``{key = value}``; the brace of the region, which starts with a block label or an op, is left alone."""
    state = parser._parser_state  # pyright: ignore
    saved = (state.current_token, state.lexer.pos)
    if parser.parse_optional_punctuation("{") is None:
        return {}
    is_key = parser.parse_optional_identifier() is not None or parser.parse_optional_str_literal() is not None
    is_entry = is_key and parser.parse_optional_punctuation("=") is not None
    state.current_token, state.lexer.pos = saved
    return dict(parser.parse_optional_attr_dict()) if is_entry else {}


BY_POSITION = "by_position"


class CopyTileOp(FlatOp):
    """``%token, %tile = ttl.copy_tile %arg, %index, %dst``: bring tile ``%index`` of a buffer into a DST slot.

    With ``by_position`` the place that ``%arg`` was taken from says which tile it is.
    """

    name = "ttl.copy_tile"
    TAKES = 3
    tile = Operand(0, TileType, "loads a tile")
    index = Operand(1)
    slot = Operand(2)

    def verify_(self) -> None:
        super().verify_()
        expect(self, all(isinstance(o.type, IndexType) for o in self.operands[1:]), "tile index and DST index are of type index")
        expect(self, len(self.results) == 2 and isinstance(self.results[0].type, DstType), "gives a token and the tile")


class CopyDestValuesOp(TileMathOp):
    """``%c = ttl.copy_dest_values %v {dst_idx = 3 : i32}``: a second copy of a DST tile, source to destination."""

    name = "ttl.copy_dest_values"
    TAKES = 1
    source = Operand(0)

    def verify_(self) -> None:
        super().verify_()
        expect(self, self.results[0].type == self.source.type, "gives the same tile")


class LinearizedIndexOp(PlainOp):
    """``%i = ttl.linearized_index affine_map<(d0, d1) -> (d0 * 2 + d1)> : index``, over the iterators of its compute.

    Operands fill the map's symbols: ``affine_map<(d0)[s0] -> (d0 + s0)>[%offset]``.
    """

    name = "ttl.linearized_index"

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.attributes["map"])
        if self.operands:
            printer.print_string("[")
            printer.print_list(self.operands, printer.print_ssa_value)
            printer.print_string("]")
        printer.print_string(" : index")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        map_ = parser.parse_attribute()
        operands: Sequence[SSAValue] = ()
        if parser.parse_optional_punctuation("["):
            unresolved = parse_operands(parser)
            parser.parse_punctuation("]")
            operands = parser.resolve_operands(unresolved, [IndexType()] * len(unresolved), parser.pos)
        parser.parse_punctuation(":")
        return cls.create(operands=operands, result_types=[parser.parse_type()], attributes={"map": map_})

    def verify_(self) -> None:
        map_ = self.attributes.get("map")
        expect(self, isinstance(map_, AffineMapAttr) and len(map_.data.results) == 1, "needs a map with one result")
        assert isinstance(map_, AffineMapAttr)
        expect(self, map_.data.num_symbols == len(self.operands), "has one operand per symbol")


class DstTileOp(TileMathOp):
    """``%t = ttl.dst_tile {dst_idx = 2 : i32} : type``: the tile an earlier loop left in this slot, for the current tile."""

    name = "ttl.dst_tile"
    TAKES = 0

    def verify_(self) -> None:
        super().verify_()
        expect(self, isinstance(self.attributes.get("dst_idx"), IntegerAttr), "names a slot")


class MulAccumulateOp(TileMathOp):
    """``%r = ttl.tile_mul_accumulate %acc, %a, %b``: acc + a * b, where the multiplier adds onto the slot of acc."""

    name = "ttl.tile_mul_accumulate"
    TAKES = 3
    accumulator = Operand(0)
    lhs = Operand(1)
    rhs = Operand(2)


class L1AccumulateOp(FlatOp):
    """``ttl.l1_accumulate %flag : index``: from here on the packer adds to L1 (1) or replaces what is there (0)."""

    name = "ttl.l1_accumulate"
    TAKES = 1
    flag = Operand(0, IndexType, "takes 0 or 1")


class SpillTileOp(FlatOp):
    """``%s = ttl.spill_tile_to_l1 %tile, %d : type, index -> type``: this tile leaves DST for a buffer of one tile.

    ``%d``, which may be left out or be a number, is the register that the tile lies in.
    """

    name = "ttl.spill_tile_to_l1"
    tile = Operand(0)
    register = Operand(1)  # if given

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        unresolved = [parser.parse_unresolved_operand()]
        attributes: dict[str, Attribute] = {}
        if parser.parse_optional_punctuation(","):
            number = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
            if number is None:
                unresolved.append(parser.parse_unresolved_operand())
                attributes[DST_REG] = UnitAttr()
            else:
                attributes["index"] = IntegerAttr(number, 32)
        attributes |= parser.parse_optional_attr_dict()
        types, result = [parser_value_type(parser, operand) for operand in unresolved], None
        if parser.parse_optional_punctuation(":"):
            types = parse_types(parser)
            types += [IndexType()] * (len(unresolved) - len(types))
            result = parser.parse_type() if parser.parse_optional_punctuation("->") else None
        operands = parser.resolve_operands(unresolved, types, parser.pos)
        return cls.create(operands=operands, result_types=[result or types[0]], attributes=attributes)

    def verify_(self) -> None:
        expect(self, len(self.operands) in (1, 2), "takes a tile and perhaps its register")
        expect(self, isinstance(self.tile.type, TileType), "puts a tile away")
        expect(self, len(self.operands) == 1 or isinstance(self.register.type, IndexType), "a register is of type index")
        expect(self, len(self.results) == 1 and self.results[0].type == self.tile.type, "gives the tile that is away")
        for use in self.results[0].uses:
            expect(self, isinstance(use.operation, RestoreTileOp), "what is away is restored before it is used")


class RestoreTileOp(FlatOp):
    """``%t = ttl.restore_tile_from_l1 %s : type -> type``: and comes back."""

    name = "ttl.restore_tile_from_l1"
    TAKES = 1
    spilled = Operand(0)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        unresolved = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        kind = parser_value_type(parser, unresolved)
        if parser.parse_optional_punctuation(":"):
            kind = parser.parse_type()
            if parser.parse_optional_punctuation("->"):
                parser.parse_type()
        operand = parser.resolve_operand(unresolved, kind)
        return cls.create(operands=[operand], result_types=[kind], attributes=attributes)

    def verify_(self) -> None:
        super().verify_()
        owner = self.spilled.owner
        expect(self, isinstance(owner, SpillTileOp), "restores what ttl.spill_tile_to_l1 put away")
        expect(self, len(self.results) == 1 and self.results[0].type == self.spilled.type, "gives that tile")


COMPUTE_OPS: tuple[type[Operation], ...] = (
    ComputeOp, CopyTileOp, CopyDestValuesOp, LinearizedIndexOp, DstTileOp, MulAccumulateOp, L1AccumulateOp, SpillTileOp,
    RestoreTileOp,
)  # fmt: skip


# Tile ops that are not elementwise: they read buffers, not DST, and some of them run over several tiles. Each works on the tile
# its operand's map names. ``ttl.tile_matmul`` and ``ttl.tile_reduce`` add up over further tiles of their operands: the op
# states how many, so that a region stays one body over its output tiles.

DIMS = ("row", "col", "scalar")  # what is left: a column of row results, a row of column results, one element


class IrregularTileOp(TileMathOp):
    """Base of the ops that are not rows of the op table."""

    KINDS: ClassVar[tuple[str, ...]] = ()  # words of ``kind`` and ``dim``, if the op has them
    DIMS: ClassVar[tuple[str, ...]] = ()
    kind = text("kind")
    dim = text("dim")

    def verify_(self) -> None:
        super().verify_()
        words = " or ".join(filter(None, (", ".join(self.KINDS[:-1]), *self.KINDS[-1:])))
        expect(self, not self.KINDS or self.kind in self.KINDS, f"kind is {words}")
        expect(self, not self.DIMS or self.dim in self.DIMS, f"dim is one of {self.DIMS}")

    @property
    def counts(self) -> tuple[int, int]:
        """Rows and columns of tiles that one result is made of."""
        return int_value(self, "rows", 1), int_value(self, "cols", 1)


class TileMatmulOp(IrregularTileOp):
    """``%r = ttl.tile_matmul %a, %b {k = 4 : i32, columns = 2 : i32}``: sum over k of a[k] @ b[k * columns]."""

    name = "ttl.tile_matmul"
    TAKES = 2
    lhs = Operand(0)
    rhs = Operand(1)
    k = integer("k")
    transposed = mark(TRANSPOSE_B)
    turned = mark(TURNED_B)  # tiles of the right operand that follow each other along the product's depth lie in a row

    def verify_(self) -> None:
        super().verify_()
        expect(self, isinstance(self.attributes.get("k"), IntegerAttr), "needs k, the number of tiles to add up")


class AccumulateMatmulOp(TileMatmulOp):
    """``%r = ttl.tile_matmul_accumulate %acc, %a, %b {k, columns}``: acc + the product, added onto the slot of acc."""

    name = "ttl.tile_matmul_accumulate"
    TAKES = 3
    accumulator = Operand(0)
    lhs = Operand(1)
    rhs = Operand(2)


class TileReduceOp(IrregularTileOp):
    """``%r = ttl.tile_reduce %x, %scaler {kind = "sum", dim = "row", rows, cols}``: over that many tiles, then within them.

    A third operand is one tile more.
    """

    name = "ttl.tile_reduce"
    DIMS = DIMS
    source = Operand(0)
    scaler = Operand(1)

    def verify_(self) -> None:
        expect(self, len(self.operands) in (2, 3), "takes a tile, its scaler and perhaps one tile more")
        expect(self, isinstance(self.attributes.get("kind"), StringAttr), "needs kind, sum or max")
        super().verify_()


class TileScratchOp(IrregularTileOp):
    """``%s = ttl.tile_scratch``: a DST slot that a later op may use on its way; it holds nothing."""

    name = "ttl.tile_scratch"
    TAKES = 0


class TileFoldOp(IrregularTileOp):
    """``%r = ttl.tile_fold %x, %scratch {kind = "sum", rows, cols}``: that many tiles joined element by element, in DST."""

    name = "ttl.tile_fold"
    TAKES = 2
    KINDS = ("sum", "max")
    source = Operand(0)
    scratch = Operand(1)


class TileVectorReduceOp(IrregularTileOp):
    """``%r = ttl.tile_vector_reduce %x {kind = "sum", dim = "row"}``: within a tile in DST; the rest of it is left undefined."""

    name = "ttl.tile_vector_reduce"
    TAKES = 1
    KINDS = ("sum", "max")
    DIMS = DIMS[:2]
    source = Operand(0)


class TileBcastOp(IrregularTileOp):
    """``%r = ttl.tile_bcast %x {dim = "col"}``: column 0, row 0 or element (0, 0) repeated over the tile."""

    name = "ttl.tile_bcast"
    TAKES = 1
    DIMS = DIMS
    source = Operand(0)


class TileTransposeOp(IrregularTileOp):
    """``%r = ttl.tile_transpose %x``"""

    name = "ttl.tile_transpose"
    TAKES = 1
    source = Operand(0)


class TileBinaryBcastOp(IrregularTileOp):
    """``%r = ttl.tile_binary_bcast %x, %v {kind = "add", dim = "col"}``: x with v repeated over the tile, in one call."""

    name = "ttl.tile_binary_bcast"
    TAKES = 2
    KINDS = ("add", "sub", "mul")
    DIMS = DIMS
    source = Operand(0)
    vector = Operand(1)


class AccumulateBcastOp(TileBinaryBcastOp):
    """``%r = ttl.tile_bcast_accumulate %acc, %x, %v {kind = "mul", dim = "col"}``: acc + the product, onto the slot of acc."""

    name = "ttl.tile_bcast_accumulate"
    TAKES = 3
    KINDS = ("mul",)
    accumulator = Operand(0)
    source = Operand(1)
    vector = Operand(2)


class ResidentTileOp(IrregularTileOp):
    """``%r = ttl.tile_resident {resident = 0 : i32}``: a tile that earlier code of the same acquire left in DST."""

    name = "ttl.tile_resident"
    TAKES = 0
    number = integer("resident")


MATRIX_OPS = (TileMatmulOp, TileReduceOp)  # the matrix unit reads their tiles through the source registers
TILE_BLOCK_OPS: tuple[type[Operation], ...] = (
    TileMatmulOp, AccumulateMatmulOp, TileReduceOp, TileScratchOp, TileFoldOp, TileVectorReduceOp, TileBcastOp, TileTransposeOp,
    TileBinaryBcastOp, AccumulateBcastOp, ResidentTileOp,
)  # fmt: skip
