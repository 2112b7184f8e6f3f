"""``ttl.compute`` and what lives in it: loads, copies between DST slots, linear tile indices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from typing_extensions import Self
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, DenseArrayBase, IndexType, IntegerAttr, StringAttr, TensorType
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
    FlatOp,
    InheritedKind,
    PlainOp,
    TileMathOp,
    parse_groups,
    parse_operands,
    parse_types,
    print_attributes,
    print_groups,
    print_types,
)
from tilewright.dialects.attributes import segments, text_array
from tilewright.dialects.ir_types import DstType, TileType
from tilewright.dialects.verify import expect, expect_operands


@lru_cache(maxsize=256)
def _sizes(sizes: Attribute) -> tuple[int, ...]:
    assert isinstance(sizes, DenseArrayBase)
    return tuple(int(size) for size in sizes.get_values())


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
        return self.operands[: _sizes(self.properties["operandSegmentSizes"])[0]]

    @property
    def outputs(self) -> Sequence[SSAValue]:
        return self.operands[_sizes(self.properties["operandSegmentSizes"])[0] :]

    @property
    def block(self) -> Block:
        return self.body.block

    @property
    def maps(self) -> tuple[AffineMapAttr, ...]:
        return tuple(self.indexing_maps or ())

    @property
    def output_shape(self) -> tuple[int, ...]:
        kind = self.outputs[0].type
        assert isinstance(kind, TensorType)
        return kind.get_shape()

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
            is_tiles = isinstance(value.type, TensorType) and isinstance(value.type.element_type, TileType)
            expect(self, is_tiles and value.type.element_type == argument.type, "body arguments are tiles of the operands")  # pyright: ignore
        dims = len(self.iterator_types or ())
        for value, map_ in zip(operands, self.maps, strict=True):
            expect(self, map_.data.num_dims == dims, "each map has as many dimensions as there are iterators")
            expect(self, len(map_.data.results) == value.type.get_num_dims(), "a map gives one index per operand dimension")  # pyright: ignore
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

    def verify_(self) -> None:
        expect_operands(self, 3)
        expect(self, isinstance(self.operands[0].type, TileType), "loads a tile")
        expect(self, all(isinstance(o.type, IndexType) for o in self.operands[1:]), "tile index and DST index are of type index")
        expect(self, len(self.results) == 2 and isinstance(self.results[0].type, DstType), "gives a token and the tile")


class CopyDestValuesOp(TileMathOp):
    """``%c = ttl.copy_dest_values %v {dst_idx = 3 : i32}``: a second copy of a DST tile, source to destination."""

    name = "ttl.copy_dest_values"

    def verify_(self) -> None:
        expect_operands(self, 1)
        expect(self, self.results[0].type == self.operands[0].type, "gives the same tile")


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

    def verify_(self) -> None:
        expect_operands(self, 0)
        expect(self, isinstance(self.attributes.get("dst_idx"), IntegerAttr), "names a slot")


class MulAccumulateOp(TileMathOp):
    """``%r = ttl.tile_mul_accumulate %acc, %a, %b``: acc + a * b, where the multiplier adds onto the slot of acc."""

    name = "ttl.tile_mul_accumulate"

    def verify_(self) -> None:
        expect_operands(self, 3)


class L1AccumulateOp(FlatOp):
    """``ttl.l1_accumulate %flag : index``: from here on the packer adds to L1 (1) or replaces what is there (0)."""

    name = "ttl.l1_accumulate"

    def verify_(self) -> None:
        expect_operands(self, 1)
        expect(self, isinstance(self.operands[0].type, IndexType), "takes 0 or 1")


COMPUTE_OPS: tuple[type[Operation], ...] = (
    ComputeOp,
    CopyTileOp,
    CopyDestValuesOp,
    LinearizedIndexOp,
    DstTileOp,
    MulAccumulateOp,
    L1AccumulateOp,
)
