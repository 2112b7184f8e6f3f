"""What the specification's listings may write in a compute thread and the front end does not: regions and ``block_`` names.

Afterwards there are only tensor-level ops, stores and ``ttl.compute``.
"""

from __future__ import annotations

from xdsl.dialects.builtin import BoolAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.diagnostics import fail
from tilewright.dialects.attributes import i64_list, number_attr, pins_of, text_attr
from tilewright.dialects.tile_ops import BY_NAME
from tilewright.dialects.ttl import KEEP_IN_DST, TENSOR_OPS, BcastOp, MatmulOp, ReduceOp, StoreOp, TensorMathOp
from tilewright.dialects.ttl_regions import (
    BlockAliasOp,
    BlockBcastOp,
    BlockComputeOp,
    BlockOp,
    BlockReduceOp,
    BlockStoreOp,
    ComputeRegionOp,
)
from tilewright.dialects.walking import erase, operations, place_of
from tilewright.passes.ir_text.thread_rules import computation


def inline_regions(function: FuncOp) -> None:
    for op in reversed(operations(function)):  # inner ones first
        if isinstance(op, ComputeRegionOp):
            _inline(op)
        elif isinstance(op, BlockComputeOp):
            _inline_block_compute(op)


def _inline(region: ComputeRegionOp) -> None:
    """The body in place of the region; what it yields is stored into its outputs."""
    block = region.parent
    body = region.body.block
    assert block is not None
    for argument, value in zip(body.args, region.inputs, strict=True):
        argument.replace_all_uses_with(value)
    last = body.last_op
    assert last is not None
    kept = region.attributes.get(KEEP_IN_DST)
    for op in [op for op in body.ops if op is not last]:
        op.detach()
        if kept is not None and isinstance(op, (BlockOp, TensorMathOp, ReduceOp, BcastOp, MatmulOp)):
            op.attributes[KEEP_IN_DST] = kept
        block.insert_op_before(op, region)
    for value, target in zip(last.operands, region.outputs, strict=True):
        block.insert_op_before(StoreOp.create(operands=[value, target], location=region.location), region)
    for result, target in zip(region.results, region.outputs, strict=True):
        result.replace_all_uses_with(target)
    region.detach()
    region.erase(safe_erase=False)


def _inline_block_compute(region: BlockComputeOp) -> None:
    block = region.parent
    assert block is not None
    for op in list(region.regions[0].block.ops):
        structural = op.name in ("ttl.yield", "ttl.attach_cb", "tensor.empty") or op.name.startswith("arith.")
        if not computation(op.name) and not structural:
            raise fail("TW603", f"{op.name} in ttl.block_compute", place_of(op), help="it holds arithmetic on blocks and stores")
        op.detach()
        if op.name != "ttl.yield":
            block.insert_op_before(op, region)
        elif op.operands:
            raise fail("TW603", "ttl.block_compute gives no result", place_of(op), help="ttl.block_store what it computes")
    region.detach()
    region.erase(safe_erase=False)


def rename(function: FuncOp) -> None:
    """``ttl.block_add`` and its kind become the ops the front end writes."""
    for op in operations(function):
        if isinstance(op, BlockStoreOp):
            _replace(op, StoreOp, list(op.operands)[::-1], {})
        elif isinstance(op, BlockOp):
            _rename(op)


def _rename(op: BlockOp) -> None:
    attributes: dict[str, Attribute] = dict(op.attributes)
    kind: type[Operation] = MatmulOp
    if isinstance(op, BlockAliasOp):
        kind = TENSOR_OPS[op.ROW]
    elif isinstance(op, BlockReduceOp):
        kind, attributes = ReduceOp, {"kind": text_attr(op.KIND), "dims": i64_list([op.axis])}
    elif isinstance(op, BlockBcastOp):
        kind, attributes = BcastOp, {"dims": i64_list([op.axis])}
    _replace(op, kind, list(op.operands), {**attributes, **pins_of(op), **_hint(op)})


def _hint(op: Operation) -> dict[str, Attribute]:
    """``keep_in_dst = false`` is what an op without it means."""
    return {KEEP_IN_DST: UnitAttr()} if op.attributes.pop(KEEP_IN_DST, None) in (BoolAttr.from_bool(True), UnitAttr()) else {}


def _replace(op: Operation, kind: type[Operation], operands: list[SSAValue], attributes: dict[str, Attribute]) -> None:
    attributes = {key: value for key, value in attributes.items() if key != KEEP_IN_DST or isinstance(value, UnitAttr)}
    block = op.parent
    assert block is not None
    results = [result.type for result in op.results]
    new = kind.create(operands=operands, result_types=results, attributes=attributes, location=op.location)
    block.insert_op_before(new, op)
    for old, result in zip(op.results, new.results, strict=True):
        result.name_hint = old.name_hint
        old.replace_all_uses_with(result)
    erase(op)


def approximate(function: FuncOp) -> None:
    """``math_approx_mode``: every function that has an approximate form uses it, unless it says otherwise itself."""
    for op in operations(function):
        row = BY_NAME.get(op.name.removeprefix("ttl.").removeprefix("tile_").removeprefix("block_"))
        if row is not None and any(param.name == "approx" for param in row.params) and "approx" not in op.attributes:
            op.attributes["approx"] = number_attr(True)
