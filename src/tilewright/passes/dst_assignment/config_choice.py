"""Width of DST and sync mode by modelled cost, where precision leaves the choice open.

A 32-bit DST holds half as many tiles and makes transcendental functions dearer, but a multiplication of two tiles that are
both in DST costs a quarter: the vector unit rounds to 16 bits in software. Full sync doubles the tiles of an acquire, but math
waits for the packer: it pays where a region does not fit half of DST, or where inits weigh more than packing.
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument

from tilewright.dialects.ttl import TileOpBase
from tilewright.dialects.ttl_compute import ComputeOp
from tilewright.dialects.walking import of_kind
from tilewright.dst.allocate import allocate
from tilewright.dst.allocation import Allocation, Plan
from tilewright.dst.linear_scan import DoesNotFit
from tilewright.dst.problem import Problem
from tilewright.dst.round_trips import exposed_cycles
from tilewright.passes.context import PassContext
from tilewright.passes.dst_assignment.accumulation import accumulates
from tilewright.passes.dst_assignment.dst_problem import region_problem
from tilewright.program import ComputeConfig

WORTH_IT = 0.97  # a change must save at least this much of the modelled cost


def cheapest(function: FuncOp, config: ComputeConfig, context: PassContext) -> tuple[ComputeConfig, str]:
    """The configuration to use and why it differs from ``config``; the reason is empty if it does not."""
    options = context.options
    computes = of_kind(function, ComputeOp)
    if options.allocator != "optimal" or options.dst_capacity is not None:
        return config, ""
    choice = _Choice(computes, context, config)
    if options.fp32_dest_acc is None and not config.fp32_dest_acc_en and any(map(_multiplies_in_dst, computes)):
        choice.consider("32-bit DST", replace(config, fp32_dest_acc_en=True))
    if options.full_sync is None and choice.full_sync_may_win():
        choice.consider("full sync", replace(choice.best, dst_full_sync_en=True))
    return choice.best, "; ".join(choice.reasons)


class _Choice:
    """The best configuration so far, and why each change was made."""

    def __init__(self, computes: list[ComputeOp], context: PassContext, config: ComputeConfig) -> None:
        self.computes, self.context = computes, context
        self.best = config
        self.reasons: list[str] = []
        self.plans: dict[ComputeConfig, list[tuple[Problem, Plan]] | None] = {}

    def consider(self, name: str, config: ComputeConfig) -> None:
        cost, other = self._cost(self.best), self._cost(config)
        if other < WORTH_IT * cost:
            self.reasons.append(f"{name} saves cycles: {other:.0f} against {cost:.0f} for a block of every region")
            self.best = config

    def full_sync_may_win(self) -> bool:
        """A split, or more inits per tile than half of them saved would have to pay for packing that nothing hides."""
        if any(accumulates(block) for compute in self.computes for block in compute.outputs):
            return False  # sums held across a loop wait for nobody
        regions = self._allocated(self.best)
        return regions is None or any(_profits(problem, plan) for problem, plan in regions)

    def _cost(self, config: ComputeConfig) -> float:
        regions = self._allocated(config)
        if regions is None:
            return float("inf")
        return sum(exposed_cycles(problem, plan.parts) * problem.tiles for problem, plan in regions)

    def _allocated(self, config: ComputeConfig) -> list[tuple[Problem, Plan]] | None:
        """All regions under ``config``; None if one cannot run."""
        if config not in self.plans:
            self.plans[config] = self._allocate(config)
        return self.plans[config]

    def _allocate(self, config: ComputeConfig) -> list[tuple[Problem, Plan]] | None:
        problems = [region_problem(compute, config, self.context, packed=True).problem for compute in self.computes]
        if not all(op.forms for problem in problems for op in problem.ops):
            return None
        try:
            return [(problem, allocate(problem)) for problem in problems]
        except DoesNotFit:
            return None


def _profits(problem: Problem, plan: Plan) -> bool:
    if len(plan.parts) > 1 and not plan.split_by_choice:
        return True
    return any(_packing_pays(problem, part.allocation) for part in plan.parts)


def _packing_pays(problem: Problem, allocation: Allocation) -> bool:
    if allocation.tiles_per_acquire >= problem.tiles:
        return False
    return (problem.costs.sync + allocation.init_cycles) / (2 * allocation.tiles_per_acquire) > allocation.pack_cycles


def _multiplies_in_dst(compute: ComputeOp) -> bool:
    """A product of two computed tiles: only the vector unit can do it."""
    return any(
        isinstance(op, TileOpBase)
        and op.SPEC.name == "mul"
        and not any(isinstance(operand, BlockArgument) for operand in op.operands)
        for op in compute.block.ops
    )
