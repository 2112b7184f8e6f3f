"""Width of DST and sync mode by modelled cost, where precision leaves the choice open.

A 32-bit DST holds half as many tiles and makes transcendental functions dearer, but a multiplication of two tiles that are
both in DST costs a quarter: the vector unit rounds to 16 bits in software.
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument

from tilewright.dialects.ttl import TileOpBase
from tilewright.dialects.ttl_compute import ComputeOp
from tilewright.dialects.walking import operations
from tilewright.dst.allocate import allocate
from tilewright.dst.linear_scan import DoesNotFit
from tilewright.passes.context import PassContext
from tilewright.passes.dst_problem import region_problem
from tilewright.program import ComputeConfig

WORTH_IT = 0.97  # a change must save at least this much of the modelled cost


def cheapest(function: FuncOp, config: ComputeConfig, context: PassContext) -> tuple[ComputeConfig, str]:
    """The configuration to use and why it differs from ``config``; the reason is empty if it does not."""
    options = context.options
    computes = [op for op in operations(function) if isinstance(op, ComputeOp)]
    if options.allocator != "optimal" or options.dst_capacity is not None:
        return config, ""
    candidates: list[tuple[str, ComputeConfig]] = []
    if options.fp32_dest_acc is None and not config.fp32_dest_acc_en and any(map(_multiplies_in_dst, computes)):
        candidates.append(("32-bit DST", replace(config, fp32_dest_acc_en=True)))
    if not candidates:
        return config, ""
    best, cost, reason = config, _cost(computes, config, context), ""
    for name, candidate in candidates:
        other = _cost(computes, candidate, context)
        if other < WORTH_IT * cost:
            best, reason = candidate, f"{name} saves cycles: {other:.0f} against {cost:.0f} per tile of every region"
            cost = other
    return best, reason


def _multiplies_in_dst(compute: ComputeOp) -> bool:
    """A product of two computed tiles: only the vector unit can do it."""
    return any(
        isinstance(op, TileOpBase)
        and op.SPEC.name == "mul"
        and not any(isinstance(operand, BlockArgument) for operand in op.operands)
        for op in compute.block.ops
    )


def _cost(computes: list[ComputeOp], config: ComputeConfig, context: PassContext) -> float:
    total = 0.0
    for compute in computes:
        problem = region_problem(compute, config, context).problem
        if not all(op.forms for op in problem.ops):
            return float("inf")
        try:
            plan = allocate(problem)
        except DoesNotFit:
            return float("inf")
        total += sum(part.allocation.cycles_per_tile for part in plan.parts)
    return total
