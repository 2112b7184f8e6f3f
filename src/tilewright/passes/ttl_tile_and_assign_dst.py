"""Decides everything about DST: op order, unit, slot of every value, copies, loads, tiles per acquire, sub-blocks, splits.

Requires: ``ttl.compute`` regions, alone or in sections, and the compute configuration. Ensures: bodies are in execution order;
each op has ``dst_idx`` (a slot; ``ttl.dst_layout`` and ``ttl.unroll_factor`` of its compute map slot and tile to a DST index)
and ``ttl.unit``; a region that has more tiles than one acquire holds stands in a loop over runs of tiles, its remainder peeled;
a region that does not fit is several regions with buffers between. The algorithm is in ``dst/``; its answer has passed
``dst/checker.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from tilewright.diagnostics import KernelError, counted, fail
from tilewright.dialects.attributes import (
    INDEX,
    PINNED,
    REQUIRED,
    DstType,
    block_type_of,
    constant,
    i32_attr,
    identity_map,
    int_value,
    number_attr,
    text_attr,
    text_value,
)
from tilewright.dialects.stages import ASSIGNED
from tilewright.dialects.tile_op import FACES, NARROW, release_key
from tilewright.dialects.ttkernel import SFPU_BCAST, SFPU_BCAST_SINCE
from tilewright.dialects.ttl import TILE_OPS, TileOpBase, YieldOp, compute_functions
from tilewright.dialects.ttl_buffers import CBReserveOp
from tilewright.dialects.ttl_compute import (
    AccumulateBcastOp,
    AccumulateMatmulOp,
    ComputeOp,
    CopyDestValuesOp,
    CopyTileOp,
    LinearizedIndexOp,
    MulAccumulateOp,
    TileBcastOp,
    TileBinaryBcastOp,
    TileMatmulOp,
    TileReduceOp,
)
from tilewright.dialects.walking import block_ops, discard, erase, insert_before, line_of, of_kind, span_of, users
from tilewright.dst.allocate import allocate, tiles_handed_over
from tilewright.dst.checker import check
from tilewright.dst.linear_scan import DoesNotFit, LinearScanTrace
from tilewright.dst.model import step_cost
from tilewright.dst.problem import Allocation, Copy, Execute, Layout, Load, Part, Place, Plan, on_slots
from tilewright.passes.buffers import buffer_of, buffers_of
from tilewright.passes.compiler_buffers import Taken, taken
from tilewright.passes.context import PassContext, config_of
from tilewright.passes.dst_assignment import sub_blocks
from tilewright.passes.dst_assignment.dst_problem import ACCUMULATE, FPU_BCAST, ROWS_BY_SFPU, RegionProblem, region_problem
from tilewright.passes.dst_assignment.fused_forms import PACK_RELU, PREVIOUS, FormUse
from tilewright.passes.dst_assignment.running_values import RESULTS, ROLE, SECTION, START
from tilewright.passes.dst_assignment.section_plans import plan_region
from tilewright.passes.dst_assignment.sub_blocks import Intermediates, PartOperands
from tilewright.passes.validation.blocks import check_limits
from tilewright.program import ComputeConfig

NAME = "ttl-tile-and-assign-dst"
EPILOGUES = {
    PACK_RELU: "relu by the packer, which clips on its way to L1 for nothing",
    "exp_scaled": "the factor is part of the exponential's init",
    NARROW: "a function to the bits of its bf16 result, as a 16-bit DST has it; the sums keep 32",
}


def run(module: ModuleOp, context: PassContext) -> None:
    for function in compute_functions(module):
        regions = of_kind(function, ComputeOp)
        if all(ASSIGNED in region.attributes for region in regions):
            continue  # text of a later stage
        begun: set[int] = set()
        for region in [region for region in regions if SECTION in region.attributes]:
            _assign_in_section(region, config_of(function), begun, context)
        beside: Taken | None = None
        for region in [region for region in regions if SECTION not in region.attributes]:
            beside = beside or taken(region, context)
            if _assign(region, function, context, beside).buffers:
                beside = None  # the region has got buffers of its own
    # The passes up to here added buffers of their own.
    problems = check_limits(buffers_of(module), context)
    if problems:
        raise KernelError(*problems)


def _assign_in_section(draft: ComputeOp, config: ComputeConfig, begun: set[int], context: PassContext) -> None:
    """A region that shares its acquire is never cut: `ttl-form-accumulation-sections` asked whether it fits."""
    section = int_value(draft, SECTION)
    found = plan_region(draft, config, context, first=text_value(draft, ROLE) == START and section not in begun)
    assert found is not None, "a section is formed of regions that fit"
    begun.add(section)
    _report(found.region, found.plan, draft, context)
    inputs = [(value, number) for number, value in enumerate(draft.inputs)]
    bound = PartOperands(inputs=inputs, outputs=list(draft.outputs))
    allocation = found.part.allocation
    attributes = {
        **{key: value for key, value in draft.attributes.items() if key not in ("indexing_maps", "iterator_types", RESULTS)},
        "ttl.dst_footprint": i32_attr(0),
        "ttl.unroll_factor": i32_attr(allocation.tiles_per_acquire),
        "ttl.dst_layout": text_attr(allocation.layout.value),
    }
    body = Region(_body(found.part, found.region, draft, bound))
    iterators = ["parallel"] * len(draft.output_shape)
    new = ComputeOp(list(draft.inputs), list(draft.outputs), list(draft.maps), iterators, body, attributes)
    new.location = draft.location
    insert_before(new, draft)
    erase(draft)


def _assign(compute: ComputeOp, function: FuncOp, context: PassContext, beside: Taken) -> Plan:
    region = region_problem(compute, config_of(function), context, packed=True, beside=beside)
    region, plan = _bound_registers(region, lambda problem: _plan(problem, compute, context))
    if plan.allocator == "optimal" and len(plan.parts) == 1 and _is_read_next(compute):
        plan = _handed_over(region, plan, compute)
    _report(region, plan, compute, context)
    intermediates = Intermediates(plan, region.problem, compute, function)
    for part in plan.parts:
        bound = intermediates.operands(part)
        allocation = part.allocation
        attributes: dict[str, Attribute] = {
            "ttl.dst_footprint": i32_attr(allocation.footprint),
            "ttl.unroll_factor": i32_attr(allocation.tiles_per_acquire),
            "ttl.dst_layout": text_attr(allocation.layout.value),
        }
        inputs = [value for value, _ in bound.inputs]
        rank = len(compute.output_shape)
        identity = identity_map(rank)
        maps = [compute.maps[number] if region.problem.is_leaf(number) else identity for _, number in bound.inputs]
        maps += [identity] * len(bound.outputs)
        iterators = ["parallel"] * rank
        body = Region(_body(part, region, compute, bound))
        new = ComputeOp(inputs, bound.outputs, maps, iterators, body, attributes)
        new.location = compute.location
        insert_before([*bound.before, new, *bound.after], compute)
        sub_blocks.tile(new, allocation.tiles_per_acquire)
    for result in compute.results:
        assert result.first_use is None, "results of ttl.compute travel through buffers"
    discard(compute)
    return plan


def _plan(region: RegionProblem, compute: ComputeOp, context: PassContext) -> Plan:
    options = context.options
    for op, problem_op in zip(region.ops, region.problem.ops, strict=True):
        if not problem_op.forms:
            message = f"no unit can run '{problem_op.name}' on these operands"
            raise fail("TW405", message, span_of(op), help=_missing(op, options.metal))
    try:
        return allocate(region.problem, allocator=options.allocator, schedule=options.schedule)  # pyright: ignore
    except DoesNotFit as error:
        place = span_of(compute) or next((span_of(op) for op in region.ops if span_of(op) is not None), None)
        if error.buffers:
            advice = "store some of its values in buffers of your own that are free by then, or use smaller blocks"
            raise fail("TW301", str(error), place, help=advice) from None
        if error.op is not None:
            place = span_of(region.ops[error.op]) or place
        advice = "full_sync=True" if options.dst_capacity is None else f"dst_capacity={error.needed} or more, or leave it out"
        raise fail("TW401", str(error), place, help=advice) from None


def _is_read_next(compute: ComputeOp) -> bool:
    """Whether the next region of the thread reads what this one packs, and nothing else can be computed meanwhile."""
    if compute.tiles == 1 or any(isinstance(op, (TileMatmulOp, TileReduceOp)) for op in block_ops(compute.block)):
        return False  # a product call makes a whole block; reductions leave the packer masked
    walked = [block for block in compute.inputs if math.prod(block_type_of(block).get_shape()) == compute.tiles]
    if any(_is_packed_here(buffer_of(block)) for block in walked):
        return False  # in one acquire it takes tile by tile what the region before it packs
    packed = {buffer_of(block) for block in compute.outputs}
    following = compute.next_op
    while following is not None and not following.regions:
        following = following.next_op
    return isinstance(following, ComputeOp) and any(buffer_of(block) in packed for block in following.inputs)


def _is_packed_here(buffer: SSAValue) -> bool:
    return any(type(user) is CBReserveOp for user in users(buffer))


def _handed_over(region: RegionProblem, plan: Plan, compute: ComputeOp) -> Plan:
    """The plan in smaller runs, where the next region then waits less for its tiles."""
    (part,) = plan.parts
    if region.problem.full_sync or part.allocation.tiles_per_acquire < compute.tiles:
        return plan
    tiles = tiles_handed_over(region.problem, part.allocation, sub_blocks.even_runs(compute), _repeated_inits(region, part))
    return replace(plan, parts=(replace(part, allocation=replace(part.allocation, tiles_per_acquire=tiles)),))


def _repeated_inits(region: RegionProblem, part: Part) -> int:
    """Cycles of inits that every acquire repeats: those of an engine that is set up for more than one kind of call."""
    matrix, vector = dict[str, int](), dict[str, int]()
    for step in part.allocation.steps:
        _, _, key, cycles = step_cost(region.problem, step)
        operands = region.problem.ops[step.op].forms[step.form].operands if isinstance(step, Execute) else ()
        reads = isinstance(step, Load) or any(operand.place is Place.BUFFER for operand in operands)
        (matrix if reads else vector)[key] = cycles
    return sum(sum(keys.values()) for keys in (matrix, vector) if len(keys) > 1)


def _missing(op: Operation, metal: str) -> str:
    """Which release brings the call, if the chosen one lacks it."""
    if isinstance(op, TileBcastOp):
        needed = ".".join(map(str, SFPU_BCAST_SINCE))
        return f"ttnn {metal} cannot repeat a row into a 32-bit DST: choose {needed} or newer, or fp32_dest_acc=False"
    forms = op.SPEC.forms if isinstance(op, TileOpBase) else ()
    if not forms or any(form.exists_in(metal) for form in forms):
        return ""
    return f"ttnn {metal} has no call for it: choose {min((form.since for form in forms), key=release_key)} or newer"


def _report(region: RegionProblem, plan: Plan, compute: ComputeOp, context: PassContext) -> None:
    first = plan.parts[0].allocation
    cycles = sum(part.allocation.cycles_per_tile for part in plan.parts)
    proof = "least cost, proven" if plan.exact else "heuristic"
    context.trace.decide(
        NAME,
        f"{first.slots} of {region.problem.capacity} DST slots per tile, {counted(first.tiles_per_acquire, 'tile')} per acquire",
        f"{plan.allocator} ({proof}), {first.layout.value}, {cycles:.0f} cycles per tile; "
        f"{counted(sum(p.allocation.loads for p in plan.parts), 'load')}, {counted(plan.copies, 'copy', 'copies')}",
        place=f"line {line_of(compute)}",
        remedies=[(remedy.kind, remedy.detail, remedy.cycles) for remedy in plan.remedies],
        notes=list(plan.notes),
    )
    if isinstance(plan.explanation, LinearScanTrace) and plan.explanation.schedule_reason:
        context.trace.decide(NAME, plan.explanation.schedule_reason, place=f"line {line_of(compute)}")
    for step in (step for part in plan.parts for step in part.allocation.steps if isinstance(step, Execute)):
        used, place = region.uses[step.op, step.form].unit, f"line {line_of(region.ops[step.op])}"
        if used in EPILOGUES:
            context.trace.decide(NAME, EPILOGUES[used], place=place)
        form = region.problem.ops[step.op].forms[step.form]
        if form.repeats:
            detail = f"{form.math_cycles} cycles with the sum; a copy of it in DST takes {region.problem.costs.copy}"
            context.trace.decide(NAME, "a shared product is multiplied once more, onto the sum", detail, place=place)
    context.trace.plans.append((region, plan))


def _body(part: Part, region: RegionProblem, compute: ComputeOp, bound: PartOperands) -> Block:
    blocks = [*(value for value, _ in bound.inputs), *bound.outputs]
    block = Block(arg_types=[block_type_of(value).element_type for value in blocks])
    arguments: dict[int, BlockArgument] = {number: block.args[position] for position, (_, number) in enumerate(bound.inputs)}
    held: dict[int, SSAValue] = {}
    for step in part.allocation.steps:
        if isinstance(step, Load):
            argument = arguments[step.leaf]
            position = argument.index
            shape = block_type_of(blocks[position]).get_shape()
            map_ = compute.maps[step.leaf] if region.problem.is_leaf(step.leaf) else identity_map(len(shape))
            linear = sub_blocks.operand_map(map_, shape)
            index = LinearizedIndexOp.create(result_types=[INDEX], attributes={"map": linear})
            slot = constant(step.slot)
            load = CopyTileOp.create(
                operands=[argument, index.results[0], slot.results[0]],
                result_types=[DstType(), argument.type],
                location=compute.location,
            )
            block.add_ops([index, slot, load])
            held[step.slot] = load.results[1]
        elif isinstance(step, Copy):
            source = held[step.source]
            copy = CopyDestValuesOp.create(
                operands=[source],
                result_types=[source.type],
                attributes={"dst_idx": i32_attr(step.target)},
                location=compute.location,
            )
            block.add_op(copy)
            held[step.target] = copy.results[0]
        else:
            ops = _execute(step, region, arguments, held)
            block.add_ops(ops)
            held[step.target] = ops[-1].results[0]
    block.add_op(YieldOp.create(operands=[held[slot] for slot in part.allocation.output_slots]))
    return block


def _execute(
    step: Execute, region: RegionProblem, arguments: dict[int, BlockArgument], held: dict[int, SSAValue]
) -> list[Operation]:
    source = region.ops[step.op]
    form = region.problem.ops[step.op].forms[step.form]
    use = region.uses[step.op, step.form]
    operands: list[SSAValue] = []
    for operand, slot in zip(form.operands, step.slots, strict=True):
        if operand.place is Place.BUFFER:
            operands.append(arguments[operand.value])
        else:
            assert slot is not None
            operands.append(held[slot])
    result = source.results[0]
    placed: dict[str, Attribute] = {"dst_idx": i32_attr(step.target)}
    if use.calls:
        return _several(use, operands, source, placed)
    if use.unit == ROWS_BY_SFPU:
        return _added_to_zeros(operands[0], source, placed)
    kind, attributes = _written(source, use)
    if kind is TileReduceOp and use.unit == ACCUMULATE:
        operands = operands[1:]  # it adds to whatever is in its slot
    attributes |= {**placed, "ttl.unit": text_attr(use.unit)}
    op = kind.create(operands=operands, result_types=[result.type], attributes=attributes, location=source.location)
    op.results[0].name_hint = result.name_hint
    return [op]


def _several(use: FormUse, operands: list[SSAValue], source: Operation, placed: dict[str, Attribute]) -> list[Operation]:
    """A form that is other rows of the table, one after the other in one slot."""
    result = source.results[0]
    ops: list[Operation] = []
    for call in use.calls:
        taken = [ops[-1].results[0] if position == PREVIOUS else operands[position] for position in call.operands]
        attributes = {**{name: number_attr(value) for name, value in call.params}, **placed, "ttl.unit": text_attr(call.unit)}
        if call.faces:
            attributes[FACES] = text_attr(call.faces)
        kind = TILE_OPS[call.row]
        ops.append(kind.create(operands=taken, result_types=[result.type], attributes=attributes, location=source.location))
    ops[-1].results[0].name_hint = result.name_hint
    return ops


def _added_to_zeros(vector: SSAValue, source: Operation, placed: dict[str, Attribute]) -> list[Operation]:
    """A broadcast on the vector unit, which has it only as part of a sum."""
    kinds = [source.results[0].type]
    unit = {**placed, "ttl.unit": text_attr("sfpu"), "value": number_attr(0.0)}
    zeros = TILE_OPS["fill"].create(result_types=kinds, attributes=unit, location=source.location)
    unit = {**placed, "ttl.unit": text_attr(SFPU_BCAST), "kind": text_attr("add"), "dim": source.attributes["dim"]}
    total = TileBinaryBcastOp.create(
        operands=[zeros.results[0], vector], result_types=kinds, attributes=unit, location=source.location
    )
    total.results[0].name_hint = source.results[0].name_hint
    return [zeros, total]


def _written(source: Operation, use: FormUse) -> tuple[type[Operation], dict[str, Attribute]]:
    """Class and attributes of the op that a chosen form stands for."""
    absorbed = use.absorbed
    if use.unit == ACCUMULATE:
        # The sum's operands are (addend, factor, factor): what is absorbed says how the factors combine.
        if isinstance(absorbed, TileMatmulOp):
            return AccumulateMatmulOp, dict(absorbed.attributes)
        if isinstance(absorbed, TileReduceOp):
            return TileReduceOp, dict(absorbed.attributes)
        if isinstance(absorbed, TileBcastOp):
            return AccumulateBcastOp, {"kind": text_attr("mul"), "dim": text_attr(absorbed.dim)}
        return MulAccumulateOp, {}
    if use.unit in (FPU_BCAST, SFPU_BCAST):
        assert isinstance(absorbed, TileBcastOp) and isinstance(source, TileOpBase)
        return TileBinaryBcastOp, {"kind": text_attr(source.SPEC.name), "dim": text_attr(absorbed.dim)}
    return type(source), dict(source.attributes)


# Pinned registers ------------------------------------------------------------------------------------------------------
# Registers that text names (``ttl.dst_reg``): the allocator's slots are renamed so that each value lies where it was asked for.
#
# Slots are alike, so a renaming of a right allocation is right; ``dst/checker.py`` sees the renamed one like any other. A region
# with such values takes one tile per acquire: a register is one tile.

def _bound_registers(
    region: RegionProblem, allocate: Callable[[RegionProblem], Plan]
) -> tuple[RegionProblem, Plan]:
    """The problem to use and its plan, which ``allocate`` makes."""
    wanted = {number: int_value(op, PINNED) for number, op in enumerate(region.ops) if PINNED in op.attributes}
    required = [number for number, op in enumerate(region.ops) if REQUIRED in op.attributes]
    if wanted:
        region = replace(region, problem=replace(region.problem, tiles=1, round_trips=0))
    plan = allocate(region)
    for number in required:
        if region.problem.result_of(number) in plan.spills:
            raise _refused(region, number, "ttl.require_dst: DST has no room for the value, it goes through a buffer")
    if not wanted:
        return region, plan
    for number, register in wanted.items():
        if not 0 <= register < region.problem.capacity:
            raise _refused(region, number, f"DST register {register} is asked for, an acquire has {region.problem.capacity}")
    parts = tuple(replace(part, allocation=_renamed(part, region, wanted)) for part in plan.parts)
    plan = replace(plan, parts=parts)
    check(region.problem, plan)
    return region, plan


def _refused(region: RegionProblem, number: int, message: str) -> KernelError:
    return fail("TW401", message, span_of(region.ops[number]), help="leave the register out: the compiler chooses one")


def _renamed(part: Part, region: RegionProblem, wanted: dict[int, int]) -> Allocation:
    allocation = part.allocation
    places: dict[int, int] = {}
    made = {step.op: step.target for step in allocation.steps if isinstance(step, Execute)}
    for number, register in wanted.items():
        if number not in made:
            if number in part.ops or len(wanted) == 1:
                raise _refused(region, number, f"DST register {register} is asked for a value that is part of another call")
            continue
        slot = made[number]
        if places.setdefault(slot, register) != register or list(places.values()).count(register) > 1:
            other = places[slot]
            raise _refused(
                region, number,
                f"DST register {register} is asked for, but the call works in place and leaves its result in register {other}"
                if other != register else f"DST register {register} is asked for two values that are needed at the same time",
            )  # fmt: skip
    free = (register for register in range(region.problem.capacity) if register not in places.values())
    for slot in range(allocation.slots):
        if slot not in places:
            places[slot] = next(free)
    steps = tuple(on_slots(step, places.__getitem__) for step in allocation.steps)
    outputs = tuple(places[slot] for slot in allocation.output_slots)
    slots = max(places.values()) + 1
    return replace(allocation, steps=steps, output_slots=outputs, slots=slots, footprint=0, layout=Layout.OP_MAJOR)
