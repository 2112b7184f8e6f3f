"""``ttl.compute_region`` and the ``ttl.block_*`` names of the specification, and the DST markers of its IR.

The block ops are the tensor-level ops under the specification's names. They exist for text; the first pass that meets them turns
them into the ops the front end writes.
"""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import Self
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, Operation
from xdsl.irdl import AttrSizedOperandSegments, IRDLOperation, irdl_op_definition, region_def, var_operand_def, var_result_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from tilewright.dialects import tile_ops
from tilewright.dialects.assembly import FlatOp, TileMathOp, parse_groups, print_attributes, print_groups
from tilewright.dialects.class_table import ClassTable
from tilewright.dialects.verify import expect, expect_operands


@irdl_op_definition
class ComputeRegionOp(IRDLOperation):
    """``%r = ttl.compute_region ins(%x, … : …) outs(%o : …) { ^bb0(…): … ttl.yield … } {keep_in_dst = true}``"""

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
        body = parser.parse_region()
        attributes: dict[str, Attribute] = dict(parser.parse_optional_attr_dict())
        results = [value.type for value in groups[1]]
        return cls(operands=groups, result_types=[results], regions=[body], attributes=attributes)

    def verify_(self) -> None:
        block = self.body.block
        kinds = [value.type for value in self.inputs]
        expect(self, [argument.type for argument in block.args] == kinds, "its body has one argument per input, of its type")
        last = block.last_op
        expect(self, last is not None and last.name == "ttl.yield", "ends in ttl.yield")
        assert last is not None
        expect(self, [v.type for v in last.operands] == [v.type for v in self.outputs], "yields one block per output")


class BlockAliasOp(FlatOp):
    """A tensor-level op under its ``block_`` name."""

    ROW: ClassVar[str]


def _alias(row: str) -> type[BlockAliasOp]:
    words = row.title().replace("_", "")
    return type(f"Block{words}Op", (BlockAliasOp,), {"name": f"ttl.block_{row}", "ROW": row})


BLOCK_ALIASES = ClassTable(tile_ops.BY_NAME, _alias)


class BlockMatmulOp(FlatOp):
    """``ttl.block_matmul %a, %b``"""

    name = "ttl.block_matmul"


class _BlockReduceOp(FlatOp):
    """``ttl.block_reduce_sum %x, %ones {axis = 1 : i64}``"""

    KIND: ClassVar[str]


class BlockReduceSumOp(_BlockReduceOp):
    name = "ttl.block_reduce_sum"
    KIND = "sum"


class BlockReduceMaxOp(_BlockReduceOp):
    name = "ttl.block_reduce_max"
    KIND = "max"


class BlockBcastOp(FlatOp):
    """``ttl.block_bcast %x {axis = 1 : i64}``"""

    name = "ttl.block_bcast"


class BlockStoreOp(FlatOp):
    """``ttl.block_store %block, %value``: the destination comes first."""

    name = "ttl.block_store"

    def verify_(self) -> None:
        expect_operands(self, 2)


class RequireDstOp(FlatOp):
    """``ttl.require_dst %tile``: this value must be in DST. A hint; removed when slots are assigned."""

    name = "ttl.require_dst"

    def verify_(self) -> None:
        expect_operands(self, 1)


class AcquireDstOp(FlatOp):
    """``%d = ttl.acquire_dst : index``: marks where a DST register's life begins; removed when slots are assigned."""

    name = "ttl.acquire_dst"

    def verify_(self) -> None:
        expect_operands(self, 0)
        expect(self, len(self.results) == 1 and isinstance(self.results[0].type, IndexType), "gives a register number")


class ReleaseDstOp(FlatOp):
    """``ttl.release_dst %d : index``"""

    name = "ttl.release_dst"

    def verify_(self) -> None:
        expect_operands(self, 1)


class SpillTileOp(TileMathOp):
    """``%s = ttl.spill_tile_to_l1 %tile : type``: this tile leaves DST for a buffer of one tile."""

    name = "ttl.spill_tile_to_l1"

    def verify_(self) -> None:
        expect_operands(self, 1)


class RestoreTileOp(TileMathOp):
    """``%t = ttl.restore_tile_from_l1 %s : type``: and comes back."""

    name = "ttl.restore_tile_from_l1"

    def verify_(self) -> None:
        expect_operands(self, 1)
        owner = self.operands[0].owner
        expect(self, isinstance(owner, SpillTileOp), "restores what ttl.spill_tile_to_l1 put away")


MARKERS = (RequireDstOp, AcquireDstOp, ReleaseDstOp)

REGION_OPS: tuple[type[Operation], ...] = (  # and the aliases
    ComputeRegionOp,
    BlockMatmulOp,
    BlockReduceSumOp,
    BlockReduceMaxOp,
    BlockBcastOp,
    BlockStoreOp,
    *MARKERS,
    SpillTileOp,
    RestoreTileOp,
)
