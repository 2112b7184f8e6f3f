"""``ttl`` ops on single elements of a block that a thread holds: numbers that come from data.

Rows and columns count elements of the block, whatever its tiles look like in memory.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation

from tilewright.dialects.assembly import FlatOp, Operand, expect, expect_operands
from tilewright.dialects.attributes import int_value, is_tensor_type, text_value

LARGEST = 2**31 - 1
NUMBER, BITS = "number", "bits"  # an element as an integer, or as the bits it is stored as


class ReadElementOp(FlatOp):
    """``%n = ttl.read_element %block, %row, %column {form = "number", low = 0, high = 63} : … -> index``

    ``number``: the element as an integer, fractions cut off. ``bits``: as it is stored. ``low`` and ``high`` are what the author
    says about it; without ``high`` nothing is known.
    """

    name = "ttl.read_element"
    block = Operand(0)
    row = Operand(1)
    column = Operand(2)

    def verify_(self) -> None:
        expect_operands(self, 3)
        expect(self, is_tensor_type(self.block.type), "takes a block")
        expect(self, len(self.results) == 1 and isinstance(self.results[0].type, IndexType), "gives one index")
        expect(self, text_value(self, "form") in (NUMBER, BITS), "form is number or bits")
        low, high = self.bounds
        expect(self, low <= high, "low is at most high")

    @property
    def bounds(self) -> tuple[int, int]:
        return int_value(self, "low", 0), int_value(self, "high", LARGEST)

    @property
    def declared(self) -> bool:
        """Whether the author said how large it can be."""
        return "high" in self.attributes


class WriteElementOp(FlatOp):
    """``ttl.write_element %block, %row, %column, %value {form = "bits"} : …``: a number, or bits as they are stored."""

    name = "ttl.write_element"
    block = Operand(0)
    row = Operand(1)
    column = Operand(2)
    value = Operand(3)

    def verify_(self) -> None:
        expect_operands(self, 4)
        expect(self, is_tensor_type(self.block.type), "takes a block")
        expect(self, text_value(self, "form") in (NUMBER, BITS), "form is number or bits")


ELEMENT_OPS: tuple[type[Operation], ...] = (ReadElementOp, WriteElementOp)
