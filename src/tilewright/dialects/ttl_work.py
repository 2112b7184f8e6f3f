"""``ttl.work``: what a core is to do, from the launcher."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, IntegerAttr, StringAttr
from xdsl.ir import Operation
from xdsl.irdl import traits_def
from xdsl.traits import Pure

from tilewright.dialects.assembly import FlatOp
from tilewright.dialects.attributes import int_value, text_value
from tilewright.dialects.verify import expect, expect_operands
from tilewright.work import PARTS, WorkArgument


class WorkOp(FlatOp):
    """``%n = ttl.work {part = "count", amount = 64 : i32, name = "count"} : index``: this core's share of 64 blocks."""

    name = "ttl.work"
    traits = traits_def(Pure())

    def verify_(self) -> None:
        expect_operands(self, 0)
        expect(self, len(self.results) == 1 and isinstance(self.results[0].type, IndexType), "gives one index")
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
