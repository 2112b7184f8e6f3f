"""A running value: what it starts from, the steps of a loop that update it, and its result behind the loop.

A running value is a ``ttl.running``. Names that a loop changes are written so; `ttl-raise-running-values` makes one of buffers
and sums that are used alike. After fusion:

    %v = ttl.running              one block, from here to the push; regions see it through views
    region(…) -> %v               what the value starts from
    for …:                        one or several loops, perhaps a branch
        region(%v, …) -> %v       the step; in several branches or loops further inside, each its own
    push                          the result; this thread may take it back: wait, …, pop

Where the value is while the loop runs is decided once: in DST (``ttl-form-accumulation-sections``) or, for what cannot stay
there, in L1 (``ttl-accumulate-in-l1``: the packer adds to the block, or every step reads it back).
"""

from __future__ import annotations

from collections.abc import Sequence
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
    CBPopOp,
    CBPushOp,
    CBReserveOp,
    CBWaitOp,
    RunningOp,
)
from tilewright.dialects.ttl_compute import ComputeOp, L1AccumulateOp, ResidentTileOp, TileReduceOp
from tilewright.dialects.walking import ancestor_in, block_ops, erase, insert_before, of_kind
from tilewright.passes.buffers import PACKER_ADDS, accumulates, attachment_of, bind_of, binds_of, buffer_of, users_of
from tilewright.records import record

HANDOVERS = (CBReserveOp, CBPushOp, CBWaitOp, CBPopOp)  # in the order of one trip through the buffer
LEAVES_DST = "ttl.leaves_dst"  # on a running value: why it cannot stay in DST across the loop


@record(frozen=False, eq=False)
class RunningValue:
    """A ``ttl.running`` with the regions that write to its block."""

    op: RunningOp
    start: ComputeOp
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
    def steps_always(self) -> bool:
        """Whichever way branches go, a step runs that no other step may come before."""
        return self._surely_steps([self.loop])

    def _surely_steps(self, ops: Sequence[Operation]) -> bool:
        first = next((op for op in ops if any(op.is_ancestor(step) for step in self.steps)), None)
        if first is None or first in self.steps:
            return first is not None
        if isinstance(first, ForOp) and not runs(first):
            return False
        bodies = [region.blocks[0] if region.blocks else None for region in first.regions]
        return all(body is not None and self._surely_steps(block_ops(body)) for body in bodies)

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
        regions = [op for op in users_of(self.buffer) if isinstance(op, ComputeOp)]
        readers = [op for op in regions if any(attached_buffer(value) is self.buffer for value in op.inputs)]
        return [op for op in readers if ancestor_in(op, self.block) not in (None, self.loop)]


def find(function: FuncOp) -> dict[Operation, list[RunningValue]]:
    """All of a function, by loop."""
    values = [value_of(op) for op in of_kind(function, RunningOp)]
    found: dict[Operation, list[RunningValue]] = {}
    for value in sorted(values, key=lambda value: bind_of(value.buffer).cb_index):
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
    return RunningValue(op, starts[0], steps)


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


def last_handover(buffer: SSAValue, before: Operation) -> Operation | None:
    op = before.prev_op
    while op is not None and not (isinstance(op, HANDOVERS) and op.buffer is buffer):
        op = op.prev_op
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
    kind, last = buffer.type, step.block.last_op
    if not isinstance(kind, CBType) or kind.tile.dtype not in PACKER_ADDS or len(step.outputs) != 1 or last is None:
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
    return copy if len(value.start.outputs) == 1 and _alone(copy, target) else None


def _alone(copy: ComputeOp, target: SSAValue) -> bool:
    """Whether nothing else is put into the block that a region copies to, as long as it is reserved."""
    others = [op for op in users_of(target) if op is not copy]
    first, last = last_handover(target, copy), next_handover(target, copy)
    if not others or first is None or last is None or copy.parent is None:
        return not others
    tops = [ancestor_in(op, copy.parent) for op in others]
    return not any(top is not None and first.is_before_in_block(top) and top.is_before_in_block(last) for top in tops)


def reserved_before(value: RunningValue, copy: ComputeOp) -> bool:
    """Whether the last thing done before the loop with the buffer that is copied to is to reserve one block of it."""
    target = attached_buffer(copy.outputs[0])
    op = last_handover(target, value.loop) if target is not None else None
    return isinstance(op, CBReserveOp) and "tiles" not in op.attributes


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
    for bind in [op for op in binds_of(function) if IN_DST in op.attributes]:
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
# Regions that share one acquire: values that stay in DST from one to the next have fixed places (`section_plans.py`).
#
# A region says in attributes which section it is of (``ttl.section``), its role there, how many tiles each *resident* of the
# section has (``ttl.residents``) and which resident each of its results becomes (``ttl.results``, -1 for a result that is
# packed).

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
