"""How long a thread keeps a block that it takes, roughly: cycles of the calls around its wait, on the busiest engine."""

from __future__ import annotations

from collections import Counter

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp, IfOp
from xdsl.ir import Block, Operation

from tilewright.dialects.attributes import KernelCBType, constant_of, int_value, is_array_attr, text_value, trip_count
from tilewright.dialects.ttkernel import KernelCallOp
from tilewright.dialects.walking import operations
from tilewright.hardware import tile_bytes
from tilewright.passes.context import config_of
from tilewright.program import ComputeConfig
from tilewright.timing_constants import call_cost, constants_of, pack_cost, product_cycles

UNCOUNTED = 500.0  # cycles of a vector call that nobody counted: the median of the table
WAIT = "ttkernel.cb_wait_front"


def cycles_per_block(function: FuncOp, index: int, tiles: int, chip: str) -> float:
    """For ``tiles`` of the buffer with this index; 0 if the thread does not wait for it."""
    for wait in (op for op in operations(function) if op.name == WAIT):
        handle = wait.operands[0].owner
        count = constant_of(wait.operands[1])
        if not isinstance(handle, Operation) or int_value(handle, "cb_index") != index or not count:
            continue
        around = wait.parent_op()
        while around is not None and not isinstance(around, (ForOp, FuncOp)):
            around = around.parent_op()
        body = around.regions[0].block if around is not None else function.body.block
        busy = _busy(body, config_of(function), chip)
        return max(busy.values(), default=0.0) * tiles / count
    return 0.0


def _busy(body: Block, config: ComputeConfig, chip: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for op in body.ops:
        if isinstance(op, ForOp):
            inner, times = _busy(op.body.block, config, chip), trip_count(op) or 1
            found.update({engine: cycles * times for engine, cycles in inner.items()})  # pyright: ignore[reportArgumentType]
        elif isinstance(op, IfOp):
            arms = [_busy(block, config, chip) for region in op.regions for block in region.blocks]
            found.update(max(arms, key=lambda arm: arm.total(), default=Counter[str]()))
        elif isinstance(op, KernelCallOp):
            found.update(_cycles(op, config, chip))  # pyright: ignore[reportArgumentType]
    return found


def _template(op: KernelCallOp) -> tuple[str, ...]:
    given = op.attributes.get("template")
    return tuple(word.data for word in given if isinstance(word, StringAttr)) if is_array_attr(given) else ()


def _cycles(op: KernelCallOp, config: ComputeConfig, chip: str) -> dict[str, float]:
    name, constants = op.CALL.name, constants_of(chip)
    if name == "noc_async_write_page":
        accessor = op.operands[1].owner
        size = tile_bytes(text_value(accessor, "dtype", "bf16")) if isinstance(accessor, Operation) else 0
        return {"mover": max(constants.write_page_issue, size / (constants.flit_bytes * constants.write_efficiency))}
    if name == "tile_regs_acquire":
        return {"math": constants.math_sync, "pack": constants.pack_sync}
    if not set(op.CALL.runs_on) & {"m", "p"} or "init" in name or name.startswith("tile_regs") or "reconfig" in name:
        return {}
    dtypes = [operand.type.tile.dtype for operand in op.operands if isinstance(operand.type, KernelCBType)]
    dtype = dtypes[0] if dtypes else "bf16"
    if name.startswith("pack_tile"):
        count = constant_of(op.operands[2]) if name == "pack_tile_block" else 1
        return {"pack": pack_cost(dtype, chip).pack_cycles * (count or 1)}
    if name == "matmul_block":
        return {"math": product_cycles(config.math_fidelity, int_value(op, "rt", 1), int_value(op, "ct", 1))}
    try:
        cost = call_cost(
            name, dst32=config.fp32_dest_acc_en, fidelity=config.math_fidelity, chip=chip, dtype=dtype,
            template=_template(op),
        )  # fmt: skip
    except KeyError:
        return {"math": UNCOUNTED} if op.FORM is not None else {}
    return {"math": cost.math_cycles, "unpack": cost.unpack_cycles}
