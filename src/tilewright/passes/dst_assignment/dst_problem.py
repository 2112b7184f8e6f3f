"""Translates the body of a ``ttl.compute`` into a plain allocation problem. No algorithm lives here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from xdsl.ir import Operation, SSAValue

from tilewright import timing_constants
from tilewright.diagnostics import Span
from tilewright.dialects.attributes import TileType, defining_op
from tilewright.dialects.tile_op import FLOAT_DTYPES, Unit
from tilewright.dialects.ttkernel import STATELESS
from tilewright.dialects.ttl import name_of
from tilewright.dialects.ttl_buffers import BindCBOp
from tilewright.dialects.ttl_compute import ComputeOp
from tilewright.dialects.walking import span_of
from tilewright.dst.allocate import allocate
from tilewright.dst.linear_scan import DoesNotFit
from tilewright.dst.problem import Costs, Leaf, Op, Plan, Problem
from tilewright.hardware import Chip, dst_tiles
from tilewright.passes.buffers import buffer_of, fits_source
from tilewright.passes.context import PassContext
from tilewright.passes.dst_assignment import intermediate_buffers
from tilewright.passes.dst_assignment.dst_forms import FormBuilder, is_tile_math
from tilewright.passes.dst_assignment.fused_forms import FormUse
from tilewright.passes.dst_assignment.intermediate_buffers import Taken
from tilewright.passes.dst_assignment.running_values import accumulates
from tilewright.program import ComputeConfig
from tilewright.records import record


@record
class RegionProblem:
    problem: Problem
    ops: tuple[Operation, ...]
    leaves: tuple[SSAValue, ...]
    uses: dict[tuple[int, int], FormUse]  # (op, form) -> how to write it
    buffers: tuple[str, ...] = ()  # that the leaves lie in
    span: Span | None = None  # of the region as a whole: one that only copies computes no value

    def value(self, number: int) -> SSAValue:
        if self.problem.is_leaf(number):
            return self.leaves[number]
        return self.ops[self.problem.op_of(number)].results[0]

    def name(self, number: int) -> str:
        """What a person calls a value: the buffer it comes from, or the name in the source it goes to; "" if it has none."""
        if self.problem.is_leaf(number):
            return self.buffers[number] if number < len(self.buffers) else ""
        return self.value(number).name_hint or ""

    def place(self, number: int) -> Span | None:
        """Where the source computes a value."""
        return None if self.problem.is_leaf(number) else span_of(self.ops[self.problem.op_of(number)])


def capacity_of(config: ComputeConfig, context: PassContext) -> int:
    hardware_tiles = dst_tiles(fp32_dest_acc=config.fp32_dest_acc_en, full_sync=config.dst_full_sync_en)
    return min(context.options.dst_capacity or hardware_tiles, hardware_tiles)


def region_problem(
    compute: ComputeOp, config: ComputeConfig, context: PassContext, *, packed: bool = False, beside: Taken | None = None
) -> RegionProblem:
    """``packed``: what the region yields is packed and not kept in DST. ``beside``: what buffers take, if the caller knows it."""
    block = compute.block
    leaves = tuple(block.args[: len(compute.inputs)])
    ops = tuple(op for op in block.ops if is_tile_math(op))
    last = block.last_op
    assert last is not None
    numbers: dict[SSAValue, int] = {value: index for index, value in enumerate(leaves)}
    numbers.update({op.results[0]: len(leaves) + index for index, op in enumerate(ops)})
    outputs = tuple(numbers[value] for value in last.operands)
    straight = frozenset(index for index, value in enumerate(compute.inputs) if _unpacked_to_dst(value, config))
    clipped = _clipped(compute, outputs) if packed else frozenset[int]()
    halves = frozenset(index for index, value in enumerate(compute.inputs) if fits_source(buffer_of(value)))
    formats = [intermediate_buffers.storage_of(_dtype(op.results[0]), wide=config.fp32_dest_acc_en) for op in ops]
    # No plan uses more buffers than there are values: so the problem, and its answer, stay the same while others are added.
    room = trips = 0
    if packed:
        beside = beside or intermediate_buffers.taken(compute, context)
        room = min(intermediate_buffers.room(compute, formats, context, beside), len(ops))
        if intermediate_buffers.may_travel_by_choice(compute, ops, config, context):
            share = intermediate_buffers.SHARE_OF_L1
            trips = min(intermediate_buffers.room(compute, formats, context, beside, share), len(ops))
    builder = FormBuilder(
        numbers, len(leaves), frozenset(outputs), config, context, straight, clipped, halves, round_trips=trips > 0
    )
    tiles = 1
    for extent in compute.output_shape:
        tiles *= extent
    chip = context.chip
    sync = timing_constants.sync_cost(chip.name)
    copy = timing_constants.copy_dest_values_cost(config.fp32_dest_acc_en, chip.name)
    pack = max((timing_constants.pack_cost(_dtype(value), chip.name).pack_cycles for value in last.operands), default=0)
    costs = Costs(
        sync=round(sync.math_cycles),
        copy=round(copy.math_cycles),
        copy_init_cycles=round(copy.init_math_cycles),
        pack=round(pack),
        spill_unpack=max((_unpack_cycles(kind, config, chip) for kind in set(formats)), default=0),
        spill_overhead=timing_constants.BUFFER_HANDSHAKE,
    )
    loads = tuple(_leaf(value, config, chip) for value in leaves)
    problem_ops = tuple(replace(builder.op(index, op), storage=formats[index]) for index, op in enumerate(ops))
    problem = Problem(
        leaves=loads,
        ops=problem_ops,
        outputs=outputs,
        capacity=capacity_of(config, context),
        tiles=tiles,
        full_sync=config.dst_full_sync_en,
        costs=costs,
        lasting_inits=_lasting_inits(loads, problem_ops, builder.uses),
        spill_limit=room,
        round_trips=trips,
        round_trip_saving=0.0 if context.options.round_trips else timing_constants.UNCERTAINTY,
    )
    buffers = tuple(name_of(defining_op(buffer_of(value)), "") for value in compute.inputs)
    return RegionProblem(problem, ops, leaves, builder.uses, buffers, span_of(compute))


def plans_under(
    config: ComputeConfig, computes: Sequence[ComputeOp], context: PassContext, *, whole: bool = False
) -> list[tuple[Problem, Plan]] | None:
    """What the allocator would answer for regions under a configuration, each on its own; None if one could not run, or if one
    would be split where only ``whole`` ones are asked for.

    This is how `ttl-set-compute-config` asks what a configuration costs before it chooses one. Nothing is decided by asking:
    `ttl-tile-and-assign-dst` asks again, of the regions there are then, and the allocator remembers what it answered.
    """
    beside = intermediate_buffers.taken(computes[0], context) if computes else None
    problems = [region_problem(compute, config, context, packed=True, beside=beside).problem for compute in computes]
    if not all(op.forms for problem in problems for op in problem.ops):
        return None
    try:
        return [(problem, allocate(problem, whole=whole)) for problem in problems]
    except DoesNotFit:
        return None


def _clipped(compute: ComputeOp, outputs: tuple[int, ...]) -> frozenset[int]:
    """Outputs that the packer may clip at zero: floats that replace what is in their block."""
    adding = {number for number, block in zip(outputs, compute.outputs, strict=True) if accumulates(block)}
    last = compute.block.last_op
    assert last is not None
    floats = {number for number, value in zip(outputs, last.operands, strict=True) if _dtype(value) in FLOAT_DTYPES}
    return frozenset(floats - adding)


def _unpacked_to_dst(block: SSAValue, config: ComputeConfig) -> bool:
    bind = buffer_of(block).owner
    return isinstance(bind, BindCBOp) and bind.cb_index in config.unpack_to_dest


def _dtype(value: SSAValue) -> str:
    assert isinstance(value.type, TileType)
    return value.type.dtype


def _unpack_cycles(dtype: str, config: ComputeConfig, chip: Chip) -> int:
    cost = timing_constants.copy_tile_cost(dtype, config.fp32_dest_acc_en, _is_wide(dtype, config), chip.name)
    return round(cost.unpack_cycles)


def _is_wide(dtype: str, config: ComputeConfig) -> bool:
    return dtype in ("f32", "i32", "u32") and config.fp32_dest_acc_en


def _leaf(value: SSAValue, config: ComputeConfig, chip: Chip) -> Leaf:
    dtype = _dtype(value)
    cost = timing_constants.copy_tile_cost(dtype, config.fp32_dest_acc_en, _is_wide(dtype, config), chip.name)
    return Leaf(
        name=value.name_hint or "",
        load_math_cycles=round(cost.math_cycles),
        load_unpack_cycles=round(cost.unpack_cycles),
        init=f"copy_tile_init:{dtype}",
        init_cycles=round(cost.init_math_cycles),
    )


def _lasting_inits(leaves: Sequence[Leaf], ops: Sequence[Op], uses: Mapping[tuple[int, int], FormUse]) -> frozenset[str]:
    """Inits that stay in force over the tiles of an acquire: the only one of their unit, whatever forms are chosen.

    Loads and the matrix unit share their state, the vector unit has its own.
    """
    matrix, vector = {leaf.init for leaf in leaves}, set[str]()
    for (op, form), use in uses.items():
        units = {call.unit for call in use.calls} or {use.unit}
        states = vector if units == {Unit.SFPU.value} else matrix
        states.add(ops[op].forms[form].init)
        if len(units) > 1:
            return frozenset()  # two inits in one form
    alone = [states for states in (matrix, vector - {STATELESS}) if len(states) == 1]
    return frozenset({STATELESS}.union(*alone))
