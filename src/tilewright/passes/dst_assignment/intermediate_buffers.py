"""Binds the parts of a split region to blocks; values travel between parts through buffers the compiler makes."""

from __future__ import annotations

from dataclasses import field

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.attributes import i32_list, int_list, int_value
from tilewright.dialects.ttl_buffers import CBPopOp, CBPushOp
from tilewright.dialects.ttl_compute import ComputeOp
from tilewright.dst.allocation import Part, Plan
from tilewright.passes import compiler_buffers
from tilewright.passes.dst_assignment.dst_problem import RegionProblem
from tilewright.passes.validation.events import bind_of
from tilewright.records import record


@record(frozen=False)
class PartOperands:
    """Blocks a part reads and writes, with the number of the value each holds, and the buffer calls around it."""

    inputs: list[tuple[SSAValue, int]] = field(default_factory=list)
    outputs: list[SSAValue] = field(default_factory=list)
    before: list[Operation] = field(default_factory=list)
    after: list[Operation] = field(default_factory=list)


class Intermediates:
    """A plan with one part needs no buffers and uses the region's own blocks."""

    def __init__(self, plan: Plan, region: RegionProblem, compute: ComputeOp, function: FuncOp) -> None:
        self.region = region
        self.compute = compute
        self.last_reader = {number: part for part in plan.parts for number in part.leaves}
        self.buffers = _create(plan, region, compute, function)
        # A value may be stored in several places: hand the region's outputs out one by one.
        self.outputs: dict[int, list[SSAValue]] = {}
        for number, block in zip(region.problem.outputs, compute.outputs, strict=True):
            self.outputs.setdefault(number, []).append(block)
        self.spilled: set[int] = set()

    def operands(self, part: Part) -> PartOperands:
        bound = PartOperands()
        for number in part.leaves:
            if self.region.problem.is_leaf(number):
                bound.inputs.append((self.compute.inputs[number], number))
            else:
                self._read(number, part, bound)
        for number in part.outputs:
            if number in self.buffers and number not in self.spilled:
                self.spilled.add(number)
                self._write(number, bound)
            else:
                bound.outputs.append(self.outputs[number].pop(0))
        return bound

    def _read(self, number: int, part: Part, bound: PartOperands) -> None:
        buffer, location = self.buffers[number], self.compute.location
        bound.before += compiler_buffers.waited(buffer, location)
        bound.inputs.append((bound.before[-1].results[0], number))
        if self.last_reader[number] is part:
            bound.after.append(CBPopOp.create(operands=[buffer], location=location))

    def _write(self, number: int, bound: PartOperands) -> None:
        buffer, location = self.buffers[number], self.compute.location
        bound.before += compiler_buffers.reserved(buffer, location)
        bound.outputs.append(bound.before[-1].results[0])
        bound.after.append(CBPushOp.create(operands=[buffer], location=location))


def _create(plan: Plan, region: RegionProblem, compute: ComputeOp, function: FuncOp) -> dict[int, SSAValue]:
    """The buffer of every spilled value, one block of the region's shape deep; values the plan says take turns in one."""
    formats = {number: region.problem.ops[region.problem.op_of(value)].storage for value, number in plan.buffers}
    made: dict[int, SSAValue] = {}
    for dtype in dict.fromkeys(formats.values()):
        numbers = [number for number, other in formats.items() if other == dtype]
        buffers = compiler_buffers.scratch(compute, compute.output_shape, dtype, len(numbers), compute.location)
        made.update(zip(numbers, buffers, strict=True))
    if made and int_value(function, "ttl.fp32_dest_acc_en", 0):
        lossless = {*int_list(function, "ttl.unpack_to_dest"), *(bind_of(buffer).cb_index for buffer in made.values())}
        function.attributes["ttl.unpack_to_dest"] = i32_list(sorted(lossless))
    return {value: made[number] for value, number in plan.buffers}
