"""Times that no run of a program beats, found without running it on all cores. They decide what is worth timing.

A program whose cores do not talk is run on its first and its last core alone: others can only slow them down, and what both
move to and from DRAM, times the number of cores, cannot come faster than the banks give it. Of other programs the products and
vector calls of a compute thread are added up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from xdsl.dialects import func, scf
from xdsl.ir import Block, Operation

from tilewright import timing_constants
from tilewright.dialects.ttkernel import KernelCallOp
from tilewright.program import Program
from tilewright.records import record
from tilewright.sim.translate import plain_attributes
from tilewright.sim.work import calls_of, turns_of
from tilewright.timing import timeline
from tilewright.timing_constants import constants_of

SKIPPED_LOOP = 2 * timeline.LEAST_TURNS + timeline.LAST_TURNS  # turns of a long loop that are run

FEW_CALLS = 1_500  # of one core, from which its long loops are cut short


@record(kw_only=True)
class Bound:
    cycles: float
    talks: bool  # whether cores wait for each other
    calls: int  # that a full run executes, all cores together
    written: float = float("inf")  # bytes to tensors, as far as two cores tell


def lower_bound(program: Program, scalars: Mapping[str, int] | None = None) -> Bound:
    calls = run_calls(program)
    if program.semaphores:
        return Bound(cycles=compute_cycles(program), talks=True, calls=calls)
    cores = timeline.cores_of(program)
    ends = dict.fromkeys((cores[0], cores[-1]))
    runs = [timeline.run(program, scalars=scalars, cores=[core], many_calls=FEW_CALLS) for core in ends]
    constants = constants_of(program.options.arch)
    read = min(run.network.bytes_read for run in runs) * len(cores) / (constants.banks * constants.bank_read)
    written = min(run.network.bytes_written for run in runs) * len(cores) / (constants.banks * constants.bank_write)
    most = max(run.network.bytes_written for run in runs) * len(cores)
    return Bound(cycles=max(read, written, *(run.cycles for run in runs)), talks=False, calls=calls, written=most)


def run_calls(program: Program) -> int:
    """Calls that a run executes; loops of large programs are not run in full."""
    calls = calls_of(program)
    if calls < timeline.MANY_CALLS:
        return calls
    return min(calls, math.prod(program.grid) * sum(_calls(block) for block in _bodies(program)))


def _bodies(program: Program) -> list[Block]:
    functions = [op for op in program.module.walk() if isinstance(op, func.FuncOp)]
    return [block for function in functions for block in function.body.blocks]


def _calls(block: Block) -> int:
    found = 0
    for op in block.ops:
        found += isinstance(op, KernelCallOp)
        inner = sum(_calls(each) for region in op.regions for each in region.blocks)
        found += inner * _run_turns(op)
    return found


def _run_turns(op: Operation) -> int:
    if not isinstance(op, scf.ForOp):
        return 1
    turns = turns_of(op)
    return turns if turns < timeline.LONG_LOOP else min(turns, SKIPPED_LOOP)


def compute_cycles(program: Program) -> float:
    """Cycles of the math engine, as far as every core certainly executes them."""
    config, chip = program.config, program.options.arch

    def cost(op: KernelCallOp) -> float:
        try:
            found = timing_constants.call_cost(
                op.CALL.name, dst32=config.fp32_dest_acc_en, fidelity=config.math_fidelity, chip=chip,
                approx=config.math_approx_mode,
            )  # fmt: skip
        except KeyError:
            return 0.0
        facts = plain_attributes(op)
        return found.math_cycles * (facts.get("rt", 1) * facts.get("ct", 1) if "matmul" in op.CALL.name else 1)

    def total(block: Block) -> float:
        found = 0.0
        for op in block.ops:
            if isinstance(op, KernelCallOp):
                found += cost(op)
            elif isinstance(op, scf.ForOp):
                found += turns_of(op) * sum(total(inner) for inner in op.body.blocks)
        return found

    return max((total(block) for block in _bodies(program)), default=0.0)
