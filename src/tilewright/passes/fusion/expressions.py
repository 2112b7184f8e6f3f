"""What is known about block expressions: how they fall into regions (what shares one pass through DST, and what must go through a
buffer), which of their elements anybody looks at, and which values cannot be negative.

The units that multiply matrices, reduce, transpose or broadcast read buffers, so what they read and somebody computed must be
materialised. Everything else stays in DST. Each op gets a *level*: how many materialised values lie below it at most. Ops of one
level that are joined by values in DST form a region; a value that crosses levels is materialised, so regions never wait for
each other in a circle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from xdsl.dialects.builtin import FloatAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from tilewright.dialects.assembly import parameters_of
from tilewright.dialects.attributes import defining_op, text_value
from tilewright.dialects.ttl import (
    DEBUG_OPS,
    KEEP_IN_DST,
    BcastOp,
    FillBlockOp,
    MatmulOp,
    ReduceOp,
    ReshapeOp,
    StoreOp,
    TensorMathOp,
    TransposeOp,
    shape_of,
    thread_kind,
)
from tilewright.dialects.ttl_buffers import (
    AttachCBOp,
    BindCBOp,
    CBReserveOp,
    CBWaitOp,
    RunningOp,
    TensorAccessorOp,
    TensorSliceOp,
)
from tilewright.dialects.walking import block_ops, discard, inherits, operations
from tilewright.passes.buffers import ACQUIRES, RELEASES, acquire_of, buffer_of
from tilewright.records import record

BLOCK_MATH = (TensorMathOp, MatmulOp, ReduceOp, BcastOp, ReshapeOp, TransposeOp, FillBlockOp)
READS_BUFFERS = (MatmulOp, ReduceOp, BcastOp, ReshapeOp, TransposeOp)
is_block_math = inherits(*BLOCK_MATH)


def reads_buffers(op: Operation) -> bool:
    """Needs its operands in L1. An exact reduction of a single tile works on DST, and so does a broadcast that may be part of the
    arithmetic which reads it."""
    if isinstance(op, ReduceOp):
        return not (op.exact and op.tiles == 1)
    return isinstance(op, READS_BUFFERS) and not (isinstance(op, BcastOp) and _joins_its_reader(op))


def _joins_its_reader(op: BcastOp) -> bool:
    """Kept in DST by its text: the vector unit repeats a row or a column as part of a sum, a difference or a product."""
    if KEEP_IN_DST not in op.attributes or len(op.dims) != 1 or op.source.type != op.results[0].type:
        return False
    uses = list(op.results[0].uses)
    reader = uses[0].operation if len(uses) == 1 else None
    if not isinstance(reader, TensorMathOp) or reader.lhs is reader.operands[-1]:
        return False
    return reader.SPEC.name in ("add", "mul") or (reader.SPEC.name == "sub" and uses[0].index == 1)


def is_masked(op: Operation) -> bool:
    """A reduction on the matrix unit: the packer writes zeros outside its result."""
    return isinstance(op, ReduceOp) and not op.exact


def is_math(value: SSAValue) -> bool:
    return is_block_math(type(value.owner))


@record(frozen=False)
class FusedRegion:
    """Ops that run together, each after its operands, and the values that leave."""

    shape: tuple[int, ...]
    level: int
    ops: list[Operation] = field(default_factory=list[Operation])
    outputs: list[SSAValue] = field(default_factory=list[SSAValue])


@record(frozen=False)
class Partition:
    regions: list[FusedRegion]  # in an order that respects their dependences
    materialised: list[SSAValue]  # computed values that travel between regions


def math_below(roots: Sequence[SSAValue]) -> list[Operation]:
    """Math ops the roots are computed from, each after its operands, otherwise in source order."""
    order: list[Operation] = []
    seen: set[Operation] = set()
    for root in roots:
        stack: list[tuple[Operation, bool]] = [(defining_op(root), False)] if is_math(root) else []
        while stack:
            op, ready = stack.pop()
            if ready:
                order.append(op)
            elif op not in seen:
                seen.add(op)
                stack.append((op, True))
                stack += [(defining_op(operand), False) for operand in reversed(op.operands) if is_math(operand)]
    return order


def partition(stored: Sequence[SSAValue]) -> Partition:
    order = math_below(stored)
    wanted = set(stored)
    cut = read_from_buffers(order)
    size, level = len(cut), levels_with(order, cut)
    if any(map(is_masked, order)):
        _separate_masked(order, cut, wanted)
        size, level = len(cut), levels_with(order, cut)
    while len(cut) > size:  # what was cut may be why more is: its other readers come later than it, too
        size, level = len(cut), levels_with(order, cut)
    regions = _regions(order, cut, level)
    owners = {op: region for region in regions for op in region.ops}
    for op in order:
        result = op.results[0]
        if result in cut or result in wanted:
            owners[op].outputs.append(result)
    materialised: list[SSAValue] = [op.results[0] for op in order if op.results[0] in cut]
    return Partition(regions, materialised)


def read_from_buffers(order: list[Operation]) -> set[SSAValue]:
    return {o for op in order if reads_buffers(op) for o in op.operands if is_math(o)}


def levels_with(order: list[Operation], cut: set[SSAValue]) -> dict[Operation, int]:
    """Levels under a set of cut values, each op as late as its readers allow; what is read above its level is cut as well."""
    earliest: dict[Operation, int] = {}
    below = {op: [(o, defining_op(o)) for o in op.operands if is_math(o)] for op in order}
    for op, values in below.items():
        earliest[op] = max([earliest[owner] + (value in cut) for value, owner in values], default=0)
    latest: dict[Operation, int] = {}
    level: dict[Operation, int] = {}
    for op in reversed(order):
        own = level[op] = latest.get(op, earliest[op])
        for value, owner in below[op]:
            bound = own - (value in cut)
            latest[owner] = min(latest.get(owner, bound), bound)
    for op, values in below.items():
        cut.update([value for value, owner in values if level[owner] < level[op]])
    return level


def _regions(order: list[Operation], cut: set[SSAValue], level: dict[Operation, int]) -> list[FusedRegion]:
    leader: dict[Operation, Operation] = {op: op for op in order}

    def find(op: Operation) -> Operation:
        while leader[op] is not op:
            leader[op] = leader[leader[op]]
            op = leader[op]
        return op

    for op in order:
        for value in op.operands:
            if is_math(value) and value not in cut:
                leader[find(defining_op(value))] = find(op)
    found: dict[Operation, FusedRegion] = {}
    for op in order:
        root = find(op)
        if root not in found:
            found[root] = FusedRegion(shape_of(op.results[0].type), level[op])
        found[root].ops.append(op)
    return sorted(found.values(), key=lambda region: region.level)


def _separate_masked(order: list[Operation], cut: set[SSAValue], wanted: set[SSAValue]) -> None:
    """While a reduction is set up the packer writes zeros outside its result, so nothing else may be packed beside it,
    a reduction of another kind neither: where a region mixes them, the reduced values go through buffers, all but the last
    kind if nothing else is packed."""
    reduced: set[SSAValue] = set()
    for op in order:
        if is_masked(op) or any(value in reduced and value not in cut for value in op.operands):
            reduced.add(op.results[0])
    packed = cut | wanted
    for region in _regions(order, cut, levels_with(order, cut)):
        heads = [op for op in region.ops if is_masked(op)]
        masks = [(op.attributes["kind"], op.attributes["dims"]) for op in heads]
        others = any(op.results[0] in packed and op.results[0] not in reduced for op in region.ops)
        cut |= {op.results[0] for op, mask in zip(heads, masks, strict=True) if others or mask != masks[-1]}


# Which stores become regions together ------------------------------------------------------------------------------------------


def store_groups(block: Block) -> list[list[StoreOp]]:
    """Stores that are carried out together because they share math, in order."""
    groups: list[list[StoreOp]] = []
    stores: list[StoreOp] = []
    math: set[Operation] = set()
    released = False

    def close() -> None:
        nonlocal stores, math, released
        if stores:
            groups.append(stores)
        stores, math, released = [], set[Operation](), False

    for op in block_ops(block):
        kind = type(op)
        if kind is StoreOp:
            assert isinstance(op, StoreOp)
            below = set(math_below([op.value]))
            if isinstance(op.value.owner, FillBlockOp) and isinstance(acquire_of(op.target), RunningOp):
                below = set[Operation]()  # a value that starts from a number may not have to be stored at all
            if stores and (not math & below or _adds_to_one_of(op, stores)):
                close()
            stores.append(op)
            math |= below
        elif kind in RELEASES:
            released = released or bool(stores)
        elif kind in ACQUIRES:
            # An acquire after a release may wait for whoever the release wakes: the region must run before it.
            if released:
                close()
        elif kind in DEBUG_OPS or op.regions:
            close()  # what is printed or inspected has been stored before it
    close()
    return groups


def _adds_to_one_of(store: StoreOp, earlier: list[StoreOp]) -> bool:
    """A region packs each of its values once; what is added to a block must find there what was stored before."""
    return "accumulate" in store.attributes and any(store.target is other.target for other in earlier)


READS_ONLY = (*BLOCK_MATH, AttachCBOp, TensorSliceOp, TensorAccessorOp)  # a helper cuts the slice, another thread copies it
only_reads = inherits(*READS_ONLY)


def erase_dead_math(function: FuncOp) -> int:
    """Takes out math and names of places (``READS_ONLY``) without readers; says how many ops of math went."""
    pending = [op for op in operations(function) if only_reads(type(op)) and op.results[0].first_use is None]
    gone: set[Operation] = set()
    count = 0
    while pending:
        op = pending.pop()
        if op in gone or op.results[0].first_use is not None:
            continue
        gone.add(op)
        count += is_block_math(type(op))
        pending += [defining_op(o) for o in op.operands if only_reads(type(o.owner))]
        discard(op)
    return count


def blocks_of(op: Operation) -> list[Block]:
    """All blocks inside an op, outer ones first."""
    return [block for inner in operations(op) for region in inner.regions for block in region.blocks]


# Demanded elements ------------------------------------------------------------------------------------------------------------
# Which values of a compute thread are only ever looked at in their first column, row or element.
#
# A broadcast looks at the first place of the dimensions it repeats; elementwise ops look where their readers look; a block in a
# buffer is looked at where every block taken out of that buffer is. What leaves the compute thread is looked at everywhere.

EVERY = frozenset((0, 1))
Dims = frozenset[int]


class DemandedElements:
    """``dims(value)``: the dimensions along which only the first place of every tile counts."""

    def __init__(self, function: FuncOp, module: ModuleOp) -> None:
        self.found: dict[SSAValue, Dims] = {}
        self.shared = shared_buffers(module)  # filled or read by another thread
        ops = operations(function)
        self.taken: dict[SSAValue, list[SSAValue]] = {}  # buffer -> blocks that were waited for, or are read while they run
        for op in ops:
            if isinstance(op, AttachCBOp) and isinstance(op.block.owner, CBWaitOp):
                self.taken.setdefault(op.buffer, []).append(op.results[0])
            elif isinstance(op, RunningOp):
                self.taken.setdefault(op.buffer, []).extend(view.results[0] for view in op.reads)
        values = [op.results[0] for op in ops if isinstance(op, (TensorMathOp, BcastOp)) or _is_block(op)]
        changed = True
        while changed:
            changed = False
            for value in reversed(values):
                dims = self._demanded_by_users(value)
                changed = changed or dims != self.dims(value)
                self.found[value] = dims

    def dims(self, value: SSAValue) -> Dims:
        return self.found.get(value, EVERY)

    def stored(self, store: StoreOp) -> Dims:
        """Where a stored value is looked at after it was taken out of the buffer."""
        buffer = buffer_of(store.target)
        bind = buffer.owner
        assert isinstance(bind, BindCBOp)
        if bind.cb_index in self.shared or buffer not in self.taken:
            return frozenset()
        return frozenset[int].intersection(*(self.dims(block) for block in self.taken[buffer]))

    def _demanded_by_users(self, value: SSAValue) -> Dims:
        dims = EVERY
        for use in value.uses:
            dims &= self._by(use.operation, use.index)
        return dims

    def _by(self, user: Operation, position: int) -> Dims:
        if isinstance(user, BcastOp):
            return frozenset(user.dims) | self.dims(user.results[0])
        if isinstance(user, TensorMathOp):
            return self.dims(user.results[0])
        if isinstance(user, StoreOp) and position == 0:
            return self.stored(user)
        return frozenset()


def _is_block(op: Operation) -> bool:
    return isinstance(op, AttachCBOp) and isinstance(op.block.owner, (CBWaitOp, CBReserveOp))


def shared_buffers(module: ModuleOp) -> set[int]:
    found: set[int] = set()
    for function in module.ops:
        if isinstance(function, FuncOp) and thread_kind(function) != "compute":
            found |= {op.cb_index for op in operations(function) if isinstance(op, BindCBOp)}
    return found


# Signs ------------------------------------------------------------------------------------------------------------------------
# Which values cannot be negative, by the rows that compute them.
ALWAYS = frozenset(("abs", "square", "relu", "exp", "exp2", "sigmoid", "sqrt"))  # whatever their operand is
IF_ALL = frozenset(("add", "mul", "div", "min"))  # if none of their operands is
IF_ANY = frozenset(("max",))  # if one of their operands is not
BY_NUMBER = frozenset(("add_scalar", "mul_scalar", "div_scalar"))  # if operand and number are not


def never_negative(value: SSAValue) -> bool:
    """A number that is not one may have any sign."""
    op = value.owner
    if isinstance(op, FillBlockOp):
        content = op.attributes["value"]
        return isinstance(content, FloatAttr) and content.value.data >= 0.0
    if isinstance(op, BcastOp):
        return never_negative(op.source)
    if isinstance(op, ReduceOp):
        return len(op.operands) == 1 and text_value(op, "kind") in ("sum", "max") and never_negative(op.source)
    if not isinstance(op, TensorMathOp):
        return False
    name = op.SPEC.name
    if name in IF_ALL:
        return (name == "mul" and op.lhs is op.rhs) or all(map(never_negative, op.operands))
    if name in BY_NUMBER:
        return parameters_of(op, op.SPEC)["scalar"] >= 0.0 and never_negative(op.operands[0])
    return name in ALWAYS or (name in IF_ANY and any(map(never_negative, op.operands)))
