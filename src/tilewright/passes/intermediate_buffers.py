"""Buffers the compiler makes to carry tiles from one part of a split region to the next."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.tensor import EmptyOp
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.attributes import i32_attr, int_list, int_value, text_attr
from tilewright.dialects.ir_types import CBType, TileType, cb_type
from tilewright.dialects.ttl_buffers import AttachCBOp, BindCBOp, CBPopOp, CBPushOp, CBReserveOp, CBWaitOp
from tilewright.dialects.ttl_compute import ComputeOp
from tilewright.dst.allocation import Part, Plan
from tilewright.passes.dst_problem import RegionProblem


@dataclass
class PartOperands:
    """Blocks a part reads and writes, with the number of the value each holds, and the buffer calls around it."""

    inputs: list[tuple[SSAValue, int]] = field(default_factory=list)
    outputs: list[SSAValue] = field(default_factory=list)
    before: list[Operation] = field(default_factory=list)
    after: list[Operation] = field(default_factory=list)


class Intermediates:
    """Binds every part of a plan to blocks. A plan with one part needs no buffers and uses the region's own blocks."""

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
        kind = _kind(buffer)
        wait = CBWaitOp.create(operands=[buffer], result_types=[kind.block_type], location=location)
        bound.before += [wait, self._attach(wait.results[0], buffer)]
        bound.inputs.append((bound.before[-1].results[0], number))
        if self.last_reader[number] is part:
            bound.after.append(CBPopOp.create(operands=[buffer], location=location))

    def _write(self, number: int, bound: PartOperands) -> None:
        buffer, location = self.buffers[number], self.compute.location
        kind = _kind(buffer)
        reserve = CBReserveOp.create(operands=[buffer], result_types=[kind.block_type], location=location)
        empty = EmptyOp.create(result_types=[kind.block_type], location=location)
        bound.before += [reserve, empty, self._attach(empty.results[0], buffer)]
        bound.outputs.append(bound.before[-1].results[0])
        bound.after.append(CBPushOp.create(operands=[buffer], location=location))

    def _attach(self, block: SSAValue, buffer: SSAValue) -> Operation:
        return AttachCBOp.create(operands=[block, buffer], result_types=[block.type], location=self.compute.location)


def _kind(buffer: SSAValue) -> CBType:
    assert isinstance(buffer.type, CBType)
    return buffer.type


def _create(spills: tuple[int, ...], region: RegionProblem, compute: ComputeOp, function: FuncOp) -> dict[int, SSAValue]:
    """One buffer per spilled value, one block of the region's shape deep; it never leaves the core."""
    module = function.parent_op()
    assert isinstance(module, ModuleOp)
    first_free = max((op.cb_index for op in module.walk() if isinstance(op, BindCBOp)), default=-1) + 1
    entry = function.body.blocks[0]
    wide = int_value(function, "ttl.fp32_dest_acc_en", 0) != 0
    buffers: dict[int, SSAValue] = {}
    lossless: list[int] = []
    for index, number in enumerate(spills, start=first_free):
        tile = region.value(number).type
        assert isinstance(tile, TileType)
        # A 32-bit DST value survives only in a 32-bit buffer that is read back unchanged.
        dtype = "f32" if wide and tile.dtype in ("bf16", "bfp8_b") else tile.dtype
        if wide:
            lossless.append(index)
        attributes = {
            "cb_index": i32_attr(index),
            "buffer_factor": i32_attr(1),
            "name": text_attr(f"spill_{index}"),
            "origin": text_attr("compiler"),
        }
        kind = cb_type(compute.output_shape, dtype, 1)
        bind = BindCBOp.create(result_types=[kind], attributes=attributes, location=compute.location)
        first = entry.first_op
        assert first is not None
        entry.insert_op_before(bind, first)
        buffers[number] = bind.results[0]
    if lossless:
        everything = sorted({*int_list(function, "ttl.unpack_to_dest"), *lossless})
        function.attributes["ttl.unpack_to_dest"] = ArrayAttr([i32_attr(index) for index in everything])
    return buffers
