"""``linalg.fill`` on tiles: xDSL's own reads blocks of numbers only."""

from __future__ import annotations

from typing_extensions import Self
from xdsl.dialects.builtin import MemRefType, TensorType
from xdsl.dialects.linalg import Linalg
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from tilewright.dialects.assembly import PlainOp, parse_groups, print_groups
from tilewright.dialects.ir_types import TileType
from tilewright.dialects.verify import expect, expect_operands


class FillOp(PlainOp):
    """``linalg.fill ins(%number : f32) outs(%block : memref<…>)``; on tensors it gives the filled block: ``-> tensor<…>``."""

    name = "linalg.fill"

    @property
    def number(self) -> SSAValue:
        return self.operands[0]

    @property
    def target(self) -> SSAValue:
        return self.operands[1]

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
        expect_operands(self, 2)
        kind = self.target.type
        tiles = isinstance(kind, (MemRefType, TensorType)) and isinstance(kind.element_type, TileType)
        expect(self, tiles, f"fills a block of tiles, not {kind}")
        wanted = [kind] if isinstance(kind, TensorType) else []
        expect(self, [result.type for result in self.results] == wanted, "gives the filled tensor; a memref is filled in place")


TILE_LINALG = Dialect(
    "linalg", [*(op for op in Linalg.operations if op.name != FillOp.name), FillOp], list(Linalg.attributes)
)
