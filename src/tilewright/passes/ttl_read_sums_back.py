"""Sums onto a block whose format the packer cannot add to: the sum lies in a buffer of its own and is read back.

The packer adds bf16 and f32. A sum of integers or block floats starts as a zero in a buffer of two blocks; every statement takes
the old value out and puts the new one in, in whatever loop or branch it stands, and the last value is stored to the block. Values
that need no trip are forwarded by the passes that follow, and running values may stay in DST.

Requires: every acquire has its release, threads are checked as they were written.
Ensures: no accumulating store of such a format; a block that another piece of code releases is refused (TW107).
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tilewright.diagnostics import counted, fail
from tilewright.dialects.attributes import number_attr
from tilewright.dialects.tile_op import INTEGER_DTYPES
from tilewright.dialects.tile_ops import BY_NAME
from tilewright.dialects.ttl import TENSOR_OPS, FillBlockOp, StoreOp, compute_functions, dtype_of, name_of, shape_of
from tilewright.dialects.ttl_buffers import CBPopOp, CBPushOp
from tilewright.dialects.walking import block_ops, erase, insert_after, insert_before, line_of, of_kind, place_of
from tilewright.passes import compiler_buffers
from tilewright.passes.buffers import ACCUMULATE, ACQUIRES, PACKER_ADDS, RELEASES, acquire_of, bind_of, key_of
from tilewright.passes.context import PassContext

NAME = "ttl-read-sums-back"
TWO = 2  # blocks: the old value is held while the new one is written
ADDED = " and ".join(PACKER_ADDS)


def run(module: ModuleOp, context: PassContext) -> None:
    for function in compute_functions(module):
        for reserve, stores in _sums(function).items():
            push = _release_of(reserve)
            if push is None:
                message = f"+= does not work on {dtype_of(stores[0].target.type)} here; the packer adds {ADDED}"
                remedy = "keep the sum in a name (total = total + x) and store that, or push the block where it was reserved"
                raise fail("TW107", message, place_of(stores[0]), help=remedy)
            name = name_of(bind_of(reserve.operands[0]), "block")
            place, what = f"line {line_of(stores[0])}", counted(len(stores), "statement")
            _read_back(function, stores, push)
            why = f"the packer adds {ADDED}; {what} take it out of a buffer and put it in again"
            context.trace.decide(NAME, f"the sum in '{name}' is read back", why, place=place)


def _sums(function: FuncOp) -> dict[Operation, list[StoreOp]]:
    """Reserved blocks that are added to in a format the packer has no sum for, and all stores to them."""
    found: dict[Operation, list[StoreOp]] = {}
    for store in of_kind(function, StoreOp):
        reserve = acquire_of(store.target)
        if reserve is not None and dtype_of(store.target.type) not in PACKER_ADDS:
            found.setdefault(reserve, []).append(store)
    return {reserve: stores for reserve, stores in found.items() if any(ACCUMULATE in store.attributes for store in stores)}


def _release_of(reserve: Operation) -> Operation | None:
    """The release of a block, if it stands in the same piece of code."""
    waiting: list[Operation] = []
    assert reserve.parent is not None
    for op in block_ops(reserve.parent):
        if type(op) in ACQUIRES and key_of(op) == key_of(reserve):
            waiting.append(op)
        elif type(op) in RELEASES and key_of(op) == key_of(reserve) and waiting and waiting.pop(0) is reserve:
            return op
    return None


def _read_back(function: FuncOp, stores: list[StoreOp], push: Operation) -> None:
    block, place = stores[0].target, stores[0].location
    dtype, view = dtype_of(block.type), block.owner
    assert isinstance(view, Operation)
    index = compiler_buffers.next_index(function)
    buffer = compiler_buffers.bind(function, index, shape_of(block.type), dtype, f"sum_{index}", place, TWO)
    zero = FillBlockOp.create(
        result_types=[block.type], attributes={"value": number_attr(0 if dtype in INTEGER_DTYPES else 0.0)}, location=place
    )
    insert_after([zero, *_put(buffer, zero.results[0], stores[0])], view)
    for store in stores:
        old = compiler_buffers.waited(buffer, store.location)
        value, math = store.operands[0], list[Operation]()
        if ACCUMULATE in store.attributes:
            row = TENSOR_OPS[dict(BY_NAME["add"].by_dtype).get(dtype, "add")]
            math = [row.create(operands=[old[-1].results[0], value], result_types=[block.type], location=store.location)]
            value = math[0].results[0]
        insert_before(
            [*old, *math, *_put(buffer, value, store), CBPopOp.create(operands=[buffer], location=store.location)], store
        )
        erase(store)
    last = compiler_buffers.waited(buffer, push.location)
    result = StoreOp.create(operands=[last[-1].results[0], block], location=place)
    insert_before([*last, result, CBPopOp.create(operands=[buffer], location=push.location)], push)


def _put(buffer: SSAValue, value: SSAValue, like: Operation) -> list[Operation]:
    reserve, view = compiler_buffers.stored_to(buffer, like.location)
    store = StoreOp.create(operands=[value, view.results[0]], location=like.location)
    return [reserve, view, store, CBPushOp.create(operands=[buffer], location=like.location)]
