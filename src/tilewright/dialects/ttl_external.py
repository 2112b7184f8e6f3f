"""``ttl`` ops for C++ of the author's own. What it does to buffers stands around it as ops of the dialect, marked `EXTERNAL`."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, StringAttr, TensorType
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.assembly import FlatOp, expect
from tilewright.dialects.attributes import AccessorType, CBType, is_tensor_type

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
