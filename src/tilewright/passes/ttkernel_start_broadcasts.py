"""Where a broadcast of 32-bit tiles starts from, in releases that do not say it themselves.

Before ttnn 0.81 such a broadcast counts from the DST tile that the math thread used last, not from the start of its half. A
vector call on two tiles always leaves that at the start, so where another tile was used a copy of the target onto itself goes in
front.

Requires: every call directly behind its init. Ensures: a broadcast of 32-bit tiles counts from the start of its half.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from tilewright.dialects.attributes import constant_of, text_attr
from tilewright.dialects.tile_op import Unit, release_key
from tilewright.dialects.ttkernel import KernelCallOp
from tilewright.dialects.ttl import compute_functions
from tilewright.dialects.walking import block_ops, operations
from tilewright.passes.context import PassContext, config_of
from tilewright.passes.kernel_calls.buffers import call
from tilewright.passes.kernel_calls.engine_state import is_init, source_format

NAME = "ttkernel-start-broadcasts"
FIXED_IN = "0.81"
NO_ADDRESS = ("reconfig_", "tile_regs_", "get_", "my_core", "core_table")
STRAIGHT = ("copy_tile", "unary_bcast")  # 32-bit tiles go from L1 to DST without the matrix unit


def run(module: ModuleOp, context: PassContext) -> None:
    if release_key(context.options.metal) >= release_key(FIXED_IN):
        return
    for function in compute_functions(module):
        if any(_is_straight(op, "unary_bcast") for op in operations(function)):
            full_sync = config_of(function).dst_full_sync_en
            _walk(function.body.block, at_start=False, full_sync=full_sync, change=True)


def _walk(block: Block, *, at_start: bool, full_sync: bool, change: bool) -> bool:
    """Whether addresses count from the start of the half behind ``block``; with ``change`` it is made so where needed."""
    for op in block_ops(block):
        if op.regions:
            inner = [nested for region in op.regions for nested in region.blocks]
            again = at_start and all(_walk(nested, at_start=at_start, full_sync=full_sync, change=False) for nested in inner)
            ends = [_walk(nested, at_start=again, full_sync=full_sync, change=change) for nested in inner]
            at_start = again and all(ends)
        if not isinstance(op, KernelCallOp):
            continue
        if _is_straight(op, "unary_bcast") and not at_start:
            at_start = True
            if change:
                _insert_copy(op)
        elif op.CALL.name == "tile_regs_acquire":
            at_start = at_start or not full_sync
        else:
            at_start = _behind(op, at_start)
    return at_start


def _behind(op: KernelCallOp, at_start: bool) -> bool:
    name = op.CALL.name
    if "m" not in op.CALL.runs_on or is_init(op) or name.startswith(NO_ADDRESS):
        return at_start
    if any(_is_straight(op, each) for each in STRAIGHT):
        return at_start
    vector = name.startswith("sfpu_") or name == "copy_dest_values" or (op.FORM is not None and op.FORM.unit is Unit.SFPU)
    if vector and (op.SPEC.arity if op.SPEC is not None else len(op.operands)) > 1:
        return True
    tile = op.operands[0] if vector else op.operands[-1]
    return constant_of(tile) == 0 and name != "matmul_block"


def _is_straight(op: Operation, name: str) -> bool:
    return isinstance(op, KernelCallOp) and op.CALL.name == name and source_format(op.operands[0]).endswith("to DST")


def _insert_copy(op: KernelCallOp) -> None:
    init, target = op.prev_op, op.operands[2]
    assert init is not None and op.parent is not None
    why = {"value": text_attr("unary_bcast counts from the start of DST after this")}
    copy = call("copy_dest_values", [target, target], attributes=why, like=op)
    op.parent.insert_ops_before([call("copy_dest_values_init", like=op), copy], init)
