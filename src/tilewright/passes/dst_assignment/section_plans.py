"""Allocates the regions of a section, which share one acquire: values that stay in DST from one to the next have fixed places.

The allocator sees a resident as an op without operands. Its answer is renamed so that every resident has its own slot from the
start (slot 0, 1, …, tile by tile at the bottom of DST) and what replaces it ends there; everything else lies above. The renamed
answer goes through ``dst/checker.py`` like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.dialects.attributes import int_list
from tilewright.dialects.ttl_compute import ComputeOp, ResidentTileOp
from tilewright.dst.allocate import allocate
from tilewright.dst.checker import CheckError, check
from tilewright.dst.linear_scan import DoesNotFit
from tilewright.dst.problem import Allocation, Copy, Execute, Layout, Load, Op, Part, Plan, Problem, ResultRule, Step, on_slots
from tilewright.passes.context import PassContext
from tilewright.passes.dst_assignment.dst_problem import RegionProblem, region_problem
from tilewright.passes.dst_assignment.fused_forms import FormUse
from tilewright.passes.dst_assignment.running_values import PACKED, RESIDENTS, RESULTS
from tilewright.program import ComputeConfig
from tilewright.records import record


@record
class RegionPlan:
    region: RegionProblem
    part: Part
    plan: Plan


def plan_region(compute: ComputeOp, config: ComputeConfig, context: PassContext, *, first: bool) -> RegionPlan | None:
    """None if it does not fit beside the residents. Only the ``first`` region finds DST empty."""
    sizes = int_list(compute, RESIDENTS)
    targets = [None if number == PACKED else number for number in int_list(compute, RESULTS)]
    region = region_problem(compute, config, context)
    if not first:
        region = _on_used_slots(region)
    problem = region.problem
    if not all(op.forms for op in problem.ops):
        return None
    residents = {index: op.number for index, op in enumerate(region.ops) if isinstance(op, ResidentTileOp)}
    tiles, free = compute.tiles, problem.capacity - sum(sizes)
    own = len({*residents.values(), *(target for target in targets if target is not None)})
    for layout, spare in ((Layout.OP_MAJOR, free // tiles), (Layout.TILE_MAJOR, free)):
        if spare < 0 or own + spare < 1:
            return None
        single = replace(problem, capacity=own + spare, tiles=1)
        try:
            plan = allocate(single)
        except DoesNotFit:
            continue
        if len(plan.parts) != 1 or (not first and _needs_zero(single, plan.parts[0].allocation)):
            continue
        packed_anywhere = layout is Layout.OP_MAJOR or tiles == 1
        allocation = _pinned(single, plan.parts[0].allocation, residents, targets, len(sizes), spare, packed_anywhere)
        shared = len(sizes) if layout is Layout.TILE_MAJOR and tiles > 1 else None  # from here on, tiles use a slot in turn
        if allocation is None or (shared is not None and _needs_zero(single, allocation, shared)):
            continue
        part = replace(plan.parts[0], allocation=allocation)
        proof = replace(single, capacity=len(sizes) + spare)
        try:
            check(proof, replace(plan, parts=(part,)))
        except CheckError:
            continue
        final = replace(part, allocation=replace(allocation, layout=layout, tiles_per_acquire=tiles))
        return RegionPlan(region, final, replace(plan, parts=(final,)))
    return None


def _on_used_slots(region: RegionProblem) -> RegionProblem:
    """Without the forms that add to their slot: it is zero after an acquire only, and loops come by again. An op that has no
    other (a matmul) may still be part of one that adds to a running value."""
    uses: dict[tuple[int, int], FormUse] = {}
    ops: list[Op] = []
    for index, op in enumerate(region.problem.ops):
        numbers = range(len(op.forms))
        kept = [number for number in numbers if op.forms[number].result is not ResultRule.ZEROED] or numbers
        uses |= {(index, place): region.uses[index, number] for place, number in enumerate(kept)}
        ops.append(replace(op, forms=tuple(op.forms[number] for number in kept)))
    return replace(region, problem=replace(region.problem, ops=tuple(ops)), uses=uses)


def _needs_zero(problem: Problem, allocation: Allocation, above: int = 0) -> bool:
    """Whether a step adds to a slot, from number ``above`` on, that it takes for untouched."""
    executed = [step for step in allocation.steps if isinstance(step, Execute)]
    return any(_rule(problem, step) is ResultRule.ZEROED and step.target >= above for step in executed)


def _pinned(
    problem: Problem,
    allocation: Allocation,
    residents: dict[int, int],
    targets: Sequence[int | None],
    count: int,
    spare: int,
    packed_anywhere: bool,
) -> Allocation | None:
    steps, places = _renamed(allocation.steps, residents, count)
    outputs = [places[slot] for slot in allocation.output_slots]
    for position, target in enumerate(targets):
        wanted = target
        if wanted is None:  # packed: every tile needs its own place
            if packed_anywhere or outputs[position] < count:
                continue
            taken = {*(t for t in targets if t is not None), *outputs}
            wanted = next((number for number in range(count) if number not in taken), None)
            if wanted is None:
                return None
        if outputs[position] == wanted:
            continue
        if wanted in outputs[position + 1 :] or outputs.count(outputs[position]) > 1:
            return None
        if not _retarget(problem, steps, outputs[position], wanted):
            value = problem.outputs[position]
            steps.append(Copy(value, outputs[position], wanted))
        outputs[position] = wanted
    highest = max((slot for step in steps for slot in _touched(step)), default=-1)
    if highest >= count + spare:
        return None
    front = [step for step in steps if isinstance(step, Execute) and step.op in residents]
    rest = [step for step in steps if step not in front]
    slots = max(highest + 1, count)
    return replace(
        allocation, steps=(*front, *rest), output_slots=tuple(outputs), slots=slots, footprint=0, layout=Layout.OP_MAJOR,
        tiles_per_acquire=1,
    )  # fmt: skip


def _renamed(steps: Sequence[Step], residents: dict[int, int], count: int) -> tuple[list[Step], dict[int, int]]:
    """Steps on final slots: a resident has its own number, other values a slot above all residents."""
    places: dict[int, int] = {}
    made = 0
    found: list[Step] = []
    for step in steps:
        if isinstance(step, Execute):
            read = tuple(None if slot is None else places[slot] for slot in step.slots)
            if step.op in residents:
                places[step.target] = residents[step.op]
            elif step.target not in places:
                places[step.target] = count + made
                made += 1
            found.append(replace(step, slots=read, target=places[step.target]))
            continue
        target = step.slot if isinstance(step, Load) else step.target
        source = places[step.source] if isinstance(step, Copy) else 0
        if target not in places:
            places[target] = count + made
            made += 1
        if isinstance(step, Load):
            found.append(replace(step, slot=places[target]))
        else:
            found.append(replace(step, source=source, target=places[target]))
    return found, places


def _touched(step: Step) -> list[int]:
    if isinstance(step, Load):
        return [step.slot]
    if isinstance(step, Copy):
        return [step.source, step.target]
    return [*(slot for slot in step.slots if slot is not None), step.target]


def _written(step: Step) -> int:
    return step.slot if isinstance(step, Load) else step.target


def _retarget(problem: Problem, steps: list[Step], old: int, new: int) -> bool:
    """Lets the value that ends in ``old`` be made in ``new`` from the start, if nobody needs ``new`` by then."""
    first = None
    for index in range(len(steps) - 1, -1, -1):
        step = steps[index]
        if _written(step) == old and not (isinstance(step, Execute) and _rule(problem, step) in IN_PLACE):
            first = index
            break
    if first is None or any(new in _touched(step) for step in steps[first + 1 :]):
        return False
    step = steps[first]
    fresh = isinstance(step, Execute) and _rule(problem, step) is ResultRule.ZEROED
    if fresh and any(new in _touched(earlier) for earlier in steps[: first + 1]):
        return False
    if isinstance(step, Copy) and step.source == new:
        return False
    steps[first] = replace(step, slot=new) if isinstance(step, Load) else replace(step, target=new)
    for index in range(first + 1, len(steps)):
        steps[index] = on_slots(steps[index], lambda slot: new if slot == old else slot)
    return True


IN_PLACE = (ResultRule.IN_PLACE, ResultRule.ACCUMULATE)


def _rule(problem: Problem, step: Execute) -> ResultRule:
    return problem.ops[step.op].forms[step.form].result


def only_added_to(plan: RegionPlan) -> bool:
    """Every resident of the region is only ever added to by the unit itself, so that it may start as DST's zero."""
    problem = plan.region.problem
    values = {problem.result_of(i) for i, op in enumerate(plan.region.ops) if isinstance(op, ResidentTileOp)}
    for step in plan.part.allocation.steps:
        if isinstance(step, Copy) and step.value in values:
            return False
        if isinstance(step, Execute):
            form = problem.ops[step.op].forms[step.form]
            for position, operand in enumerate(form.operands):
                if operand.value in values and not (form.result is ResultRule.ACCUMULATE and form.reuses == position):
                    return False
    return bool(values)
