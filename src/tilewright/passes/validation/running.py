"""A running value is a variable: ``total = total + block`` means what it says even if the block is popped before total is stored.

Expressions are evaluated where they are stored, so a block that is popped earlier would be read too late; that is an error for
plain expressions (TW206). For the value a loop has changed, the pop moves behind the store.
"""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from tilewright.dialects.attributes import text_value
from tilewright.dialects.location import line_of
from tilewright.dialects.ttl import StoreOp
from tilewright.dialects.ttl_buffers import CBPopOp, CBWaitOp
from tilewright.dialects.walking import of_kind
from tilewright.passes.context import PassContext
from tilewright.passes.validation.events import acquire_of, bind_of, buffer_name, sources

NAME = "ttl-validate"


def keep_for_running_values(function: FuncOp, context: PassContext) -> None:
    for store in of_kind(function, StoreOp):
        acquires = [acquire for value in sources(store.operands[0]) if (acquire := acquire_of(value)) is not None]
        if not any(text_value(bind_of(acquire.operands[0]), "origin", "user") == "compiler" for acquire in acquires):
            continue
        for acquire in acquires:
            pop = _pop_between(acquire, store)
            block = store.parent
            if pop is None or block is None:
                continue
            pop.detach()
            block.insert_op_after(pop, store)
            title = f"pop of '{buffer_name(acquire)}' moved behind the store of the running value that reads it"
            context.trace.decide(NAME, title, place=f"line {line_of(store)}")


def _pop_between(acquire: Operation, store: StoreOp) -> Operation | None:
    """The pop of this very block, if it stands between the wait and the store and no other block of the buffer is held."""
    if acquire.parent is not store.parent:
        return None
    op = acquire.next_op
    found: Operation | None = None
    while op is not None and op is not store:
        handovers = [inner for inner in op.walk() if isinstance(inner, (CBWaitOp, CBPopOp))]
        same = [inner for inner in handovers if inner.operands[0] is acquire.operands[0]]
        if any(isinstance(inner, CBWaitOp) or inner is not op for inner in same):
            return None
        found = found or (op if same else None)
        op = op.next_op
    return found if op is store else None
