"""A running value: what it starts from, the steps of a loop that update it, and its result behind the loop.

A running value is a ``ttl.running``. Names that a loop changes are written so; `ttl-raise-running-values` makes one of buffers
and sums that are used alike. After fusion:

    %v = ttl.running              one block, from here to the push; regions see it through views
    region(…) -> %v               what the value starts from; without it, from nothing
    for …:                        one or several loops, perhaps a branch
        region(%v, …) -> %v       the step; in several branches or loops further inside, each its own
    push                          the result; this thread may take it back: wait, …, pop

Where the value is while the loop runs is decided once: in DST (``ttl-form-accumulation-sections``) or, for what cannot stay
there, in L1 (``ttl-accumulate-in-l1``: the packer adds to the block, or every step reads it back).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from xdsl.dialects.arith import CmpiOp, OrIOp, SelectOp
from xdsl.dialects.builtin import AffineMapAttr, FloatAttr, IntegerAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp
from xdsl.dialects.tensor import EmptyOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from tilewright.dialects.attributes import (
    INDEX,
    CBType,
    constant,
    constant_of,
    i32_list,
    int_list,
    int_value,
    text_array,
    text_attr,
    text_value,
)
from tilewright.dialects.ttkernel import reduce_template
from tilewright.dialects.ttl import StoreOp, TileOpBase
from tilewright.dialects.ttl_buffers import (
    IN_DST,
    AttachCBOp,
    BindCBOp,
    CBPopOp,
    CBPushOp,
    CBReserveOp,
    CBWaitOp,
    RunningOp,
)
from tilewright.dialects.ttl_compute import ComputeOp, L1AccumulateOp, ResidentTileOp, TileReduceOp
from tilewright.dialects.walking import ancestor_in, block_ops, erase, insert_before, of_kind
from tilewright.dst.allocate import allocate
from tilewright.dst.checker import CheckError, check
from tilewright.dst.linear_scan import DoesNotFit
from tilewright.dst.problem import Allocation, Copy, Execute, Layout, Load, Op, Part, Plan, Problem, ResultRule, Step, on_slots
from tilewright.passes.buffers import ACCUMULATE, PACKER_ADDS, accumulates, attachment_of, bind_of, buffer_of
from tilewright.passes.context import PassContext
from tilewright.passes.dst_assignment.dst_problem import RegionProblem, region_problem
from tilewright.passes.dst_assignment.fused_forms import FormUse
from tilewright.program import ComputeConfig
from tilewright.records import record

HANDOVERS = (CBReserveOp, CBPushOp, CBWaitOp, CBPopOp)  # in the order of one trip through the buffer
LEAVES_DST = "ttl.leaves_dst"  # on a running value: why it cannot stay in DST across the loop


@record(frozen=False, eq=False)
class RunningValue:
    """A ``ttl.running`` with the regions that write to its block."""

    op: RunningOp
    start: ComputeOp | None  # None: it starts from nothing
    steps: list[ComputeOp]  # in the order of the program

    @property
    def buffer(self) -> SSAValue:
        return self.op.buffer

    @property
    def block(self) -> Block:
        assert self.op.parent is not None
        return self.op.parent

    @property
    def loop(self) -> Operation:
        return _around(self.op, self.steps[0])

    @property
    def shape(self) -> tuple[int, ...]:
        """In tiles."""
        return self.steps[0].output_shape

    @property
    def tiles(self) -> int:
        return self.op.tiles

    @property
    def adds(self) -> bool:
        """Written as ``block += x``."""
        return any(ACCUMULATE in view.attributes for view in self.op.views)

    @property
    def steps_always(self) -> bool:
        """The first step runs at least once, in the first iteration of every loop around it."""
        around = self.steps[0].parent_op()
        while isinstance(around, ForOp) and runs(around) and around is not self.loop:
            around = around.parent_op()
        return isinstance(around, ForOp) and runs(around)

    @property
    def push(self) -> Operation:
        op = next_handover(self.buffer, self.loop)
        assert isinstance(op, CBPushOp)
        return op

    @property
    def taken_back(self) -> list[Operation]:
        """Push, wait and pop of a result that this thread itself takes back, in the same piece of code; else none."""
        wait = next_handover(self.buffer, self.push)
        pop = next_handover(self.buffer, wait) if isinstance(wait, CBWaitOp) else None
        return [self.push, wait, pop] if wait is not None and isinstance(pop, CBPopOp) else []

    def readers(self) -> list[ComputeOp]:
        """Regions behind the loop that read the result."""
        views = [use.operation for use in self.buffer.uses if isinstance(use.operation, AttachCBOp)]
        users = dict.fromkeys(use.operation for view in views for use in view.results[0].uses)
        readers = [op for op in users if isinstance(op, ComputeOp) and any(value.owner in views for value in op.inputs)]
        return [op for op in readers if ancestor_in(op, self.block) not in (None, self.loop)]


def find(function: FuncOp) -> dict[Operation, list[RunningValue]]:
    """All of a function, by loop."""
    values = [value_of(op) for op in of_kind(function, RunningOp)]
    found: dict[Operation, list[RunningValue]] = {}
    for value in sorted(values, key=lambda value: (value.adds, bind_of(value.buffer).cb_index)):
        found.setdefault(value.loop, []).append(value)
    return found


def leaving_dst(function: FuncOp) -> list[RunningValue]:
    """Those that ``ttl-form-accumulation-sections`` found no room for."""
    return [value for values in find(function).values() for value in values if LEAVES_DST in value.op.attributes]


def value_of(op: RunningOp) -> RunningValue:
    regions = [region for region in op.writers if isinstance(region, ComputeOp)]
    steps = [region for region in regions if region.parent is not op.parent]
    starts = [region for region in regions if region.parent is op.parent]
    if len(steps) > 1:
        steps = [region for region in of_kind(_around(op, steps[0]), ComputeOp) if region in steps]
    return RunningValue(op, starts[0] if starts else None, steps)


def _around(op: RunningOp, step: Operation) -> Operation:
    """The loop of a step, beside the running value."""
    loop = ancestor_in(step, op.parent) if op.parent is not None else None
    assert loop is not None
    return loop


def next_handover(buffer: SSAValue, after: Operation) -> Operation | None:
    """The next op of the same piece of code that hands the buffer over."""
    op = after.next_op
    while op is not None and not (isinstance(op, HANDOVERS) and op.buffer is buffer):
        op = op.next_op
    return op


def runs(loop: ForOp) -> bool:
    low, high = constant_of(loop.lb), constant_of(loop.ub)
    return low is not None and high is not None and low < high


def attached_buffer(block: SSAValue) -> SSAValue | None:
    return block.owner.buffer if isinstance(block.owner, AttachCBOp) else None


def without_input(compute: ComputeOp, argument: BlockArgument) -> ComputeOp:
    """The region in its place without an input that its body does not read."""
    position = argument.index
    compute.block.erase_arg(argument)
    kept = [index for index in range(len(compute.inputs)) if index != position]
    return with_inputs(compute, [compute.inputs[index] for index in kept], [compute.maps[index] for index in kept])


def with_inputs(compute: ComputeOp, inputs: Sequence[SSAValue], maps: Sequence[AffineMapAttr]) -> ComputeOp:
    """The region in its place with other inputs, for which its body has arguments already."""
    maps = [*maps, *compute.maps[len(compute.inputs) :]]
    body = compute.detach_region(compute.body)
    new = ComputeOp(inputs, list(compute.outputs), maps, ["parallel"] * len(compute.output_shape), body)
    new.location = compute.location
    insert_before(new, compute)
    erase(compute)
    return new


def is_zero(start: ComputeOp, buffer: SSAValue) -> bool:
    """Whether a region stores zeros into the buffer."""
    last = start.block.last_op
    assert last is not None
    stored = next(v for v, block in zip(last.operands, start.outputs, strict=True) if attached_buffer(block) is buffer)
    owner = stored.owner
    if not isinstance(owner, TileOpBase) or owner.SPEC.name not in ("fill", "fill_int"):
        return False
    value = owner.attributes["value"]
    return isinstance(value, (FloatAttr, IntegerAttr)) and value.value.data == 0


def final_sums(steps: Sequence[ComputeOp], buffer: SSAValue) -> list[tuple[TileOpBase, SSAValue]]:
    """`final_sum` of every step, or nothing."""
    found = [final_sum(step, buffer) for step in steps]
    return [each for each in found if each is not None] if None not in found else []


def final_sum(step: ComputeOp, buffer: SSAValue) -> tuple[TileOpBase, SSAValue] | None:
    """The addition that ends a step, and what it adds to the old value, if the packer can do that."""
    kind, last, view = buffer.type, step.block.last_op, step.outputs[0].owner
    if not isinstance(kind, CBType) or len(step.outputs) != 1 or last is None:
        return None
    if kind.tile.dtype not in PACKER_ADDS and not (isinstance(view, AttachCBOp) and ACCUMULATE in view.attributes):
        return None
    add = last.operands[0].owner
    olds = [step.block.args[place] for place, value in enumerate(step.inputs) if attached_buffer(value) is buffer]
    old = olds[0] if olds else None
    if old is None or not isinstance(add, TileOpBase) or add.SPEC.name != "add" or len(list(old.uses)) != 1:
        return None
    others = [operand for operand in add.operands if operand is not old]
    if len(others) != 1 or len(list(add.results[0].uses)) != 1:
        return None
    return add, others[0]


def result_copy(value: RunningValue) -> ComputeOp | None:
    """The only reader of the result, if it just copies it into a block of the same kind that nothing else is put into."""
    readers = value.readers()
    if len(readers) != 1 or readers[0].parent is not value.block or len(readers[0].outputs) != 1 or len(readers[0].inputs) != 1:
        return None
    copy = readers[0]
    target = attached_buffer(copy.outputs[0])
    if len(block_ops(copy.block)) != 1 or target is None or copy.outputs[0].type != value.steps[0].outputs[0].type:
        return None
    views = [view for view in target.uses if isinstance(view.operation, AttachCBOp) and view.operation.results[0].uses]
    return copy if value.start is not None and len(value.start.outputs) == 1 and len(views) == 1 else None


def reserved_before(value: RunningValue, copy: ComputeOp) -> bool:
    """Whether the last thing done before the loop with the buffer that is copied to is to reserve one block of it."""
    target = attached_buffer(copy.outputs[0])
    op = value.loop.prev_op
    while op is not None and not (isinstance(op, CBReserveOp) and op.buffer is target):
        op = op.prev_op
    return op is not None and "tiles" not in op.attributes


# Lowered --------------------------------------------------------------------------------------------------------------


def erase_acquire(op: Operation) -> None:
    """Views of a block that is not acquired any more say only which value is meant."""
    for view in [use.operation for result in op.results for use in result.uses]:
        if view.results[0].uses:
            empty = EmptyOp.create(result_types=[view.operands[0].type], location=view.location)
            insert_before(empty, view)
            view.operands[0] = empty.results[0]
        else:
            erase(view)
    erase(op)


def reserve_block(op: RunningOp) -> None:
    """The block of the running value is one like any other, which regions write to."""
    reserve = CBReserveOp.create(
        operands=[op.buffer], result_types=[op.results[0].type], attributes=dict(op.attributes), location=op.location
    )
    reserve.attributes.pop(LEAVES_DST, None)
    insert_before(reserve, op)
    erase_acquire(op)


def drop_unused(buffer: SSAValue, function: FuncOp) -> None:
    """A buffer nobody hands over any more needs no memory; it goes when the loops are written."""
    bind = bind_of(buffer)
    if any(isinstance(use.operation, HANDOVERS) for use in buffer.uses):
        return
    bind.attributes[IN_DST] = UnitAttr()
    left = [index for index in int_list(function, "ttl.unpack_to_dest") if index != bind.cb_index]
    function.attributes["ttl.unpack_to_dest"] = i32_list(left)


def erase_dropped(function: FuncOp) -> None:
    """Buffers that were kept in DST, once nothing names them."""
    for bind in [op for op in block_ops(function.body.block) if isinstance(op, BindCBOp) and IN_DST in op.attributes]:
        for view in [use.operation for use in bind.results[0].uses]:
            if not any(result.uses for result in view.results):
                erase(view)
        if not bind.results[0].uses:
            erase(bind)


# Added by the packer --------------------------------------------------------------------------------------------------


def flag(store: StoreOp, compute: ComputeOp) -> list[Operation] | None:
    """Ops that switch the packer to adding where this is not the block's first store; None for a plain store.

    The first store of a block surely happens (the front end sees to it), so every one behind it adds; the first one itself adds
    in all turns of its loops but the first.
    """
    target = store.target
    if not accumulates(target):
        return None
    buffer, view = buffer_of(target), attachment_of(target)
    written = False
    later: list[SSAValue] = []
    ops: list[Operation] = []
    current: Operation = compute
    while current.parent is not None:
        block = current.parent
        written = written or _written_before(buffer, view, current)
        if _reserve_of(buffer, current) is not None:
            break
        loop = block.parent_op()
        if isinstance(loop, ForOp) and "ttl.sub_blocks" not in loop.attributes:
            compare = CmpiOp(block.args[0], loop.lb, "ne")
            ops.append(compare)
            later.append(compare.results[0])
        if loop is None:
            break
        current = loop
    if written:
        one = constant(1)
        return [one, L1AccumulateOp.create(operands=[one.results[0]], location=store.location)]
    if not later:
        return None
    condition = later[0]
    for other in later[1:]:
        either = OrIOp(condition, other)
        ops.append(either)
        condition = either.results[0]
    one, zero = constant(1), constant(0)
    choice = SelectOp(condition, one.results[0], zero.results[0])
    assert choice.results[0].type == INDEX
    return [*ops, one, zero, choice, L1AccumulateOp.create(operands=[choice.results[0]], location=store.location)]


def _reserve_of(buffer: SSAValue, before: Operation) -> CBReserveOp | None:
    op = before.prev_op
    while op is not None:
        if isinstance(op, CBReserveOp) and op.buffer is buffer:
            return op
        op = op.prev_op
    return None


def _written_before(buffer: SSAValue, view: AttachCBOp, before: Operation) -> bool:
    """Whether another store to the block stands in front; what a region was cut into stores through one view, tile by tile."""
    op = before.prev_op
    while op is not None and not (isinstance(op, CBReserveOp) and op.buffer is buffer):
        stores = [inner for inner in op.walk() if isinstance(inner, StoreOp) and buffer_of(inner.target) is buffer]
        if any(attachment_of(inner.target) is not view for inner in stores):
            return True
        op = op.prev_op
    return False


def packed_edge(op: Operation) -> Attribute | None:
    """The part of a tile that the packer writes under the reduction which made it, or a running value it was added to."""
    if isinstance(op, TileReduceOp):
        return _edge_attr(op.kind, op.dim)
    return op.attributes.get("edge") if isinstance(op, ResidentTileOp) else None


@lru_cache(maxsize=64)
def _edge_attr(kind: str, dim: str) -> Attribute:
    return text_attr(str(text_array(reduce_template(kind, dim))))


# Sections ---------------------------------------------------------------------------------------------------------------------
# Allocates the regions of a section, which share one acquire: values that stay in DST from one to the next have fixed places.
#
# A region says in attributes which section it is of (``ttl.section``), its role there, how many tiles each *resident* of the
# section has (``ttl.residents``) and which resident each of its results becomes (``ttl.results``, -1 for a result that is
# packed).
#
# The allocator sees a resident as an op without operands. Its answer is renamed so that every resident has its own slot from the
# start (slot 0, 1, …, tile by tile at the bottom of DST) and what replaces it ends there; everything else lies above. The renamed
# answer goes through ``dst/checker.py`` like any other.

SECTION, ROLE, RESIDENTS, RESULTS = "ttl.section", "ttl.role_in_section", "ttl.residents", "ttl.results"
START, STEP, END = "start", "step", "end"
PACKED = -1  # instead of a resident: the result leaves DST


def sections_of(regions: Sequence[ComputeOp]) -> list[list[ComputeOp]]:
    """Regions around and in a loop that share one acquire."""
    sections: dict[int, list[ComputeOp]] = {}
    for region in regions:
        if SECTION in region.attributes:
            sections.setdefault(int_value(region, SECTION), []).append(region)
    return list(sections.values())


def ends_of(section: Sequence[ComputeOp]) -> list[ComputeOp]:
    """The regions of a section that are packed."""
    return [region for region in section if text_value(region, ROLE) == END]


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
