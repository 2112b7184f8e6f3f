"""Binds the parts of a split region to blocks; values travel between parts through buffers the compiler makes."""

from __future__ import annotations

from dataclasses import field

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.attributes import i32_list, int_list, int_value
from tilewright.dialects.ir_types import TileType
from tilewright.dialects.ttl_buffers import CBPopOp, CBPushOp
from tilewright.dialects.ttl_compute import ComputeOp
from tilewright.dst.allocation import Part, Plan
from tilewright.passes import compiler_buffers
from tilewright.passes.dst_assignment.dst_problem import RegionProblem
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
        self.buffers = _create(plan.spills, region, compute, function) if len(plan.parts) > 1 else {}
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


def _create(spills: tuple[int, ...], region: RegionProblem, compute: ComputeOp, function: FuncOp) -> dict[int, SSAValue]:
    """One buffer per spilled value, one block of the region's shape deep; it never leaves the core."""
    wide = int_value(function, "ttl.fp32_dest_acc_en", 0) != 0
    buffers: dict[int, SSAValue] = {}
    first = compiler_buffers.next_index(function)
    for index, number in enumerate(spills, start=first):
        tile = region.value(number).type
        assert isinstance(tile, TileType)
        # A 32-bit DST value survives only in a 32-bit buffer that is read back unchanged.
        dtype = "f32" if wide and tile.dtype in ("bf16", "bfp8_b", "bfp4_b") else tile.dtype
        name = f"spill_{index}"
        buffers[number] = compiler_buffers.bind(function, index, compute.output_shape, dtype, name, compute.location)
    if wide:
        lossless = {*int_list(function, "ttl.unpack_to_dest"), *range(first, first + len(spills))}
        function.attributes["ttl.unpack_to_dest"] = i32_list(sorted(lossless))
    return buffers
