"""Buffers that values of a region travel through: how many there is room for, and how the parts of a split region use them.

Room is counted, in free indices and free L1, before a remedy is chosen; no plan uses more. The parts of a plan are then bound
to blocks of buffers that the compiler makes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.attributes import TileType, buffer_type_of, i32_list, int_list, int_value
from tilewright.dialects.ttl import TileOpBase
from tilewright.dialects.ttl_buffers import ALIAS_OF, BindCBOp, CBPopOp, CBPushOp
from tilewright.dialects.ttl_compute import ComputeOp
from tilewright.dialects.walking import module_of, of_kind
from tilewright.dst.problem import Part, Plan, Problem
from tilewright.hardware import SOURCE_FORMATS, tile_bytes
from tilewright.passes import compiler_buffers
from tilewright.passes.buffers import bind_of
from tilewright.passes.context import PassContext
from tilewright.passes.dst_assignment import running_values
from tilewright.passes.dst_assignment.sub_blocks import is_identity
from tilewright.program import ComputeConfig
from tilewright.records import record
from tilewright.tile_pages import shard_bytes

DTYPE = "bf16"  # what a 16-bit DST holds without loss, so packing and unpacking change nothing
MOST_OPS = 64
SHARE_OF_L1 = 0.5  # of what is free; the rest is for regions that must be split


@record(frozen=False)
class PartOperands:
    """Blocks a part reads and writes, with the number of the value each holds, and the buffer calls around it."""

    inputs: list[tuple[SSAValue, int]] = field(default_factory=list[tuple[SSAValue, int]])
    outputs: list[SSAValue] = field(default_factory=list[SSAValue])
    before: list[Operation] = field(default_factory=list[Operation])
    after: list[Operation] = field(default_factory=list[Operation])


class Intermediates:
    """A plan with one part needs no buffers and uses the region's own blocks."""

    def __init__(self, plan: Plan, problem: Problem, compute: ComputeOp, function: FuncOp) -> None:
        self.problem = problem
        self.compute = compute
        self.last_reader = {number: part for part in plan.parts for number in part.leaves}
        self.buffers = _create(plan, problem, compute, function)
        # A value may be stored in several places: hand the region's outputs out one by one.
        self.outputs: dict[int, list[SSAValue]] = {}
        for number, block in zip(problem.outputs, compute.outputs, strict=True):
            self.outputs.setdefault(number, []).append(block)
        self.spilled: set[int] = set()

    def operands(self, part: Part) -> PartOperands:
        bound = PartOperands()
        for number in part.leaves:
            if self.problem.is_leaf(number):
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


def _create(plan: Plan, problem: Problem, compute: ComputeOp, function: FuncOp) -> dict[int, SSAValue]:
    """The buffer of every spilled value, one block of the region's shape deep; values the plan says take turns in one."""
    formats = {number: problem.ops[problem.op_of(value)].storage for value, number in plan.buffers}
    made: dict[int, SSAValue] = {}
    for dtype in dict.fromkeys(formats.values()):
        numbers = [number for number, other in formats.items() if other == dtype]
        buffers = compiler_buffers.scratch(compute, compute.output_shape, dtype, len(numbers), compute.location)
        made.update(zip(numbers, buffers, strict=True))
    if made and int_value(function, "ttl.fp32_dest_acc_en", 0):
        lossless = {*int_list(function, "ttl.unpack_to_dest"), *(bind_of(buffer).cb_index for buffer in made.values())}
        function.attributes["ttl.unpack_to_dest"] = i32_list(sorted(lossless))
    return {value: made[number] for value, number in plan.buffers}


# Room -----------------------------------------------------------------------------------------------------------------


def storage_of(dtype: str, *, wide: bool) -> str:
    """The format a value travels in: a 32-bit DST value survives only in a 32-bit buffer that is read back unchanged."""
    return "f32" if wide and dtype in SOURCE_FORMATS else dtype


@record
class Taken:
    """What the buffers of a kernel leave for others."""

    indices: int  # of buffers, up to the last that is used
    bytes: int  # of L1


def taken(compute: ComputeOp, context: PassContext) -> Taken:
    """By the buffers there are now, and the shards in L1."""
    binds = {op.cb_index: op for op in reversed(of_kind(module_of(compute), BindCBOp))}
    used = sum(shard_bytes(spec) for spec in context.tensors if spec.memory == "l1" and spec.shard_cores)
    for op in binds.values():
        if not (op.backed or ALIAS_OF in op.attributes):
            kind = buffer_type_of(op.results[0])
            used += kind.total_tiles * kind.tile.bytes
    return Taken(max(binds, default=-1) + 1, used)


def room(compute: ComputeOp, formats: Sequence[str], context: PassContext, beside: Taken, share_of_l1: float = 1.0) -> int:
    """Buffers of the region's shape, in any of these formats, that fit beside those there are.

    Buffers of earlier regions that nothing is in between regions count as free, if all values could use them.
    """
    tiles = 1
    for extent in compute.output_shape:
        tiles *= extent
    free = int(share_of_l1 * (context.chip.l1_usable_bytes - beside.bytes))
    fit = max(free, 0) // (tiles * max(map(tile_bytes, formats), default=1))
    idle = compiler_buffers.idle(compute, compute.output_shape, formats[0]) if len(set(formats)) == 1 else []
    return max(0, min(context.chip.max_buffers - beside.indices, fit)) + len(idle)


def may_travel_by_choice(compute: ComputeOp, ops: Sequence[Operation], config: ComputeConfig, context: PassContext) -> bool:
    """Whether values of the region may go through a buffer although nothing forces it: where it loses no bits."""
    options = context.options
    if options.round_trips is False or options.allocator != "optimal" or config.fp32_dest_acc_en or not 2 <= len(ops) <= MOST_OPS:
        return False
    if not is_identity(compute) or any(running_values.accumulates(block) for block in compute.outputs):
        return False
    last = compute.block.last_op
    assert last is not None
    tiles = [value.type for op in ops for value in (*op.operands, *op.results)] + [value.type for value in last.operands]
    return all(isinstance(op, TileOpBase) for op in ops) and all(isinstance(t, TileType) and t.dtype == DTYPE for t in tiles)
