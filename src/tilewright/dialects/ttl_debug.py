"""``ttl.print``: what a kernel says while it runs."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, StringAttr
from xdsl.ir import Operation

from tilewright.dialects.assembly import FlatOp
from tilewright.dialects.ir_types import AccessorType, CBType
from tilewright.dialects.verify import expect


class PrintOp(FlatOp):
    """``ttl.print %cb, %i {text = "row {}", subject = "waited", processor = "unpack"}``.

    ``text`` has one ``{}`` per index operand. ``subject`` is empty, or says what the first operand stands for: the block that is
    ``waited`` for or ``reserved``, the state of the ``buffer``, or the first pages of a ``tensor``. ``processor`` names one of
    the three of a compute thread.
    """

    name = "ttl.print"

    def verify_(self) -> None:
        expect(self, isinstance(self.attributes.get("text"), StringAttr), "needs a text")
        numbers = [operand for operand in self.operands if isinstance(operand.type, IndexType)]
        others = [operand for operand in self.operands if isinstance(operand.type, (CBType, AccessorType))]
        expect(self, len(numbers) + len(others) == len(self.operands) and len(others) <= 1, "prints numbers and one object")


DEBUG_OPS: tuple[type[Operation], ...] = (PrintOp,)
