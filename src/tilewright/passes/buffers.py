"""Buffers in the IR: what each op does to them, where a block lives, and which tile of a buffer an element of a block is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from xdsl.dialects.builtin import DenseArrayBase, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.tensor import CollapseShapeOp, ExtractSliceOp
from xdsl.ir import Operation, SSAValue

from tilewright.diagnostics import Diagnostic, Note, Span
from tilewright.dialects.attributes import CBType, block_type_of, buffer_type_of, int_value
from tilewright.dialects.ttl import ExternCallOp, StoreOp, name_of
from tilewright.dialects.ttl_buffers import (
    ALIAS_OF,
    IN_DST,
    AttachCBOp,
    BindCBOp,
    CBPopOp,
    CBPushOp,
    CBReserveOp,
    CBWaitOp,
    CopyOp,
    PublishCBOp,
    ReadElementOp,
    RunningOp,
    WaitOp,
    WriteElementOp,
)
from tilewright.dialects.ttl_compute import ComputeOp
from tilewright.dialects.values import is_result
from tilewright.dialects.walking import block_ops, functions, inherits, of_kind, operations, place_of, users, uses_in
from tilewright.records import record

# Sets of classes: isinstance() is slow on the classes of ops, and these questions are asked about every op.
ACQUIRES: frozenset[type[Operation]] = frozenset({CBWaitOp, CBReserveOp, RunningOp})
RELEASES: frozenset[type[Operation]] = frozenset({CBPopOp, CBPushOp})
HANDOVERS: frozenset[type[Operation]] = ACQUIRES | RELEASES | {PublishCBOp}
WORDS: dict[type[Operation], str] = {
    CBWaitOp: "wait",
    CBReserveOp: "reserve",
    RunningOp: "reserve",
    CBPopOp: "pop",
    CBPushOp: "push",
    PublishCBOp: "push",
}
SIDES = {kind: {"pop": "wait", "push": "reserve"}.get(word, word) for kind, word in WORDS.items()}
is_access = inherits(StoreOp, ReadElementOp, WriteElementOp, ExternCallOp)
NO_MEMORY = -1  # of a block that lies in no buffer
RELEASE_OF: dict[str, type[Operation]] = {"wait": CBPopOp, "reserve": CBPushOp}


@record(frozen=False, eq=False)
class Buffer:
    index: int
    name: str
    kind: CBType
    binds: list[BindCBOp] = field(default_factory=list[BindCBOp])
    producers: list[FuncOp] = field(default_factory=list[FuncOp])
    consumers: list[FuncOp] = field(default_factory=list[FuncOp])
    nothing_lost: bool = False  # if nobody takes its blocks: the kernel only reads

    @property
    def span(self) -> Span | None:
        return place_of(self.binds[0])

    @property
    def backed(self) -> bool:
        return self.binds[0].backed

    @property
    def runs(self) -> bool:
        """Whether it is for a running value: it may turn out to need no memory."""
        return any(type(user) is RunningOp for bind in self.binds for user in users(bind.results[0]))

    @property
    def staging(self) -> bool:
        """Whether a data-movement thread fills its blocks and copies or reads them itself; then nobody needs to wait for them."""
        uses = [op for thread in self.producers for op in operations(thread) if isinstance(op, (CopyOp, ReadElementOp))]
        sources = (acquire_of(op.source if isinstance(op, CopyOp) else op.block) for op in uses)
        return not self.consumers and any(source is not None and key_of(source) == (self.index, "reserve") for source in sources)

    @property
    def last_stop(self) -> bool:
        """Whether blocks that nobody takes are no mistake: a shard keeps them, or their own thread copies them on."""
        return self.backed or self.staging or self.nothing_lost


def problem(
    code: str, message: str, op: Operation, *, help: str = "", label: str = "", notes: tuple[Note, ...] = ()
) -> Diagnostic:
    return Diagnostic(code=code, message=message, span=place_of(op), label=label, notes=notes, help=help)


def functions_of(module: ModuleOp) -> list[FuncOp]:
    """The threads. Functions without a thread, which only text can have, are not ours to judge."""
    return [op for op in functions(module) if "ttl.kernel_thread" in op.attributes]


def bind_of(queue: SSAValue) -> BindCBOp:
    bind = queue.owner
    assert isinstance(bind, BindCBOp)
    return bind


def buffer_name(op: Operation) -> str:
    """Name of the buffer an acquire or release works on."""
    bind = bind_of(op.operands[0])
    return name_of(bind, f"cb{bind.cb_index}")


def key_of(op: Operation) -> tuple[int, str]:
    """Buffer index and side (``wait`` or ``reserve``) of an acquire or release."""
    return bind_of(op.operands[0]).cb_index, SIDES[type(op)]


def buffers_of(module: ModuleOp) -> dict[int, Buffer]:
    found: dict[int, Buffer] = {}
    for function in functions_of(module):
        for op in operations(function):
            if type(op) is BindCBOp:
                index = op.cb_index
                if index not in found:
                    found[index] = Buffer(index, name_of(op, f"cb{index}"), buffer_type_of(op.results[0]))
                found[index].binds.append(op)
            elif type(op) in HANDOVERS:
                index, side = key_of(op)
                threads = found[index].consumers if side == "wait" else found[index].producers
                if function not in threads:
                    threads.append(function)
    return dict(sorted(found.items()))


def binds_of(function: FuncOp) -> list[BindCBOp]:
    return [op for op in block_ops(function.body.block) if isinstance(op, BindCBOp)]


def users_of(buffer: SSAValue) -> list[Operation]:
    """What reads or writes blocks of a buffer."""
    views = [user for user in users(buffer) if type(user) is AttachCBOp]
    return list(dict.fromkeys([user for view in views for user in users(view.results[0])]))


def only_store(reserve: Operation) -> StoreOp | None:
    """The store that fills a block, if nothing else is done with it, in the same piece of code."""
    views = users(reserve.results[0]) if type(reserve) is CBReserveOp else []
    found = [user for view in views for result in view.results for user in users(result)]
    if len(views) != 1 or len(found) != 1 or not isinstance(found[0], StoreOp) or found[0].parent is not reserve.parent:
        return None
    return found[0] if found[0].target.owner is views[0] and ACCUMULATE not in found[0].attributes else None


def attached(acquire: Operation) -> list[AttachCBOp]:
    """The blocks an acquire gives, as the thread uses them."""
    return [user for user in users(acquire.results[0]) if type(user) is AttachCBOp]


def acquire_of(value: SSAValue) -> Operation | None:
    """The wait or reserve a block comes from; None for an expression."""
    owner = value.owner
    while isinstance(owner, AttachCBOp):
        owner = owner.block.owner
    return owner if type(owner) in ACQUIRES else None  # pyright: ignore[reportReturnType]


def held_block(value: SSAValue, queues: Mapping[tuple[int, str], Sequence[Operation]]) -> Operation | None:
    """The wait or reserve behind a block, also behind the views that regions work on. Such a view of the block a region fills
    names the buffer only; which of the blocks held it is, its offset says."""
    owner = _attachment(value)
    found = acquire_of(value if owner is None else owner.results[0])
    if found is not None or owner is None or not isinstance(owner.buffer.type, CBType):
        return found
    queue = queues.get((bind_of(owner.buffer).cb_index, "reserve"), ())
    number = owner.tile_offset // owner.buffer.type.block_tiles
    return queue[number] if number < len(queue) else None


def stays_in_dst(value: SSAValue) -> bool:
    """What a region leaves in DST for the next one is written to no block."""
    owner = _attachment(value)
    return owner is not None and IN_DST in bind_of(owner.buffer).attributes


def _attachment(value: SSAValue) -> AttachCBOp | None:
    owner = value.owner
    while not isinstance(owner, AttachCBOp):
        if not isinstance(owner, (CollapseShapeOp, ExtractSliceOp)):
            return None
        owner = owner.operands[0].owner
    return owner


def effects(value: SSAValue) -> Iterator[Operation]:
    """Ops that read or write a block for good: stores, copies, elements and regions, through any expression; waits of copies."""
    seen: set[Operation] = set()
    pending = [value]
    while pending:
        for user in users(pending.pop()):
            if user in seen:
                continue
            seen.add(user)
            if is_access(type(user)):
                yield user
            elif isinstance(user, ComputeOp):
                yield user
                pending += user.results
            elif isinstance(user, CopyOp):
                yield user
                yield from (wait for wait in users(user.results[0]) if isinstance(wait, WaitOp))
            elif user.results:
                pending += user.results


def sources(value: SSAValue) -> list[SSAValue]:
    """Blocks of buffers an expression reads, in order."""
    found: dict[SSAValue, None] = {}
    seen: set[SSAValue] = set()
    pending = [value]
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        if acquire_of(current) is not None:
            found[current] = None
        elif is_result(current):
            pending += reversed(current.op.operands)
    return list(found)


def readers_by_memory(function: FuncOp, module: ModuleOp) -> dict[int, list[SSAValue] | None]:
    """For each buffer memory the values inside compute regions that stand for its tiles; ``None`` if anybody else reads it."""
    found: dict[int, list[SSAValue] | None] = dict.fromkeys(_memory_elsewhere(function, module))
    for op in operations(function):
        if type(op) is AttachCBOp:
            _add_readers(op.results[0], memory_of(op.results[0]), found)
    return found


def _add_readers(block: SSAValue, memory: int, found: dict[int, list[SSAValue] | None]) -> None:
    for user, place in uses_in(block):
        known = found.setdefault(memory, [])
        if type(user) is ComputeOp:
            if known is not None and (place < len(user.inputs) or user.block.args[place].first_use is not None):
                known.append(user.block.args[place])
        elif isinstance(user, (ExtractSliceOp, CollapseShapeOp)):
            _add_readers(user.results[0], memory, found)
        else:
            found[memory] = None


def memory_of(block: SSAValue) -> int:
    """Index of the buffer whose memory a block lies in; a block of text input may lie in none."""
    view = _attachment(block)
    bind = view.buffer.owner if view is not None else None
    if not isinstance(bind, BindCBOp):
        return NO_MEMORY
    return int_value(bind, ALIAS_OF) if ALIAS_OF in bind.attributes else bind.cb_index


def _memory_elsewhere(function: FuncOp, module: ModuleOp) -> set[int]:
    """Buffers that another thread binds, or that are a tensor's own memory."""
    found = {NO_MEMORY}
    for other in functions(module):
        binds = of_kind(other, BindCBOp)
        found |= {int_value(op, ALIAS_OF, op.cb_index) for op in binds if other is not function or op.backed}
    return found


def handovers_between(buffer: SSAValue, first: Operation, last: Operation) -> list[Operation]:
    """Ops of a block that hand over a buffer, or contain such ops."""
    return [op for op in _between(first, last) if any(_hands_over(inner, buffer) for inner in op.walk())]


def _between(first: Operation, last: Operation) -> list[Operation]:
    found: list[Operation] = []
    op: Operation | None = first
    while op is not None and op is not last:
        found.append(op)
        op = op.next_op
    return found if op is last else []


def _hands_over(op: Operation, buffer: SSAValue) -> bool:
    return type(op) in HANDOVERS and op.operands[0] is buffer


# Views ------------------------------------------------------------------------------------------------------------------------
# Which buffer a block value lives in, and which tile of that buffer an element of it is.

ACCUMULATE = "accumulate"  # on a store, later on a view of a reserved block: what is stored is added to it
PACKER_ADDS = ("bf16", "f32")  # formats the packer can add to
SIGNIFICANT_BITS = "significant_bits"  # on a buffer: its values have no more than these
DYNAMIC = -(2**63)  # MLIR's marker for an offset given as an operand


@record
class TileView:
    """Tile number = ``base`` + sum of offset * stride over ``offsets`` + sum of index * stride over ``strides``."""

    buffer: SSAValue
    base: int
    offsets: tuple[tuple[SSAValue, int], ...]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    out_of_order: bool = False  # tiles of the block are packed by number, not one after the other


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides: list[int] = []
    stride = 1
    for extent in reversed(shape):
        strides.append(stride)
        stride *= extent
    return tuple(reversed(strides))


def view_of(value: SSAValue) -> TileView:
    owner = value.owner
    kind = block_type_of(value)
    shape = kind.get_shape()
    if isinstance(owner, AttachCBOp):
        out_of_order = owner.tile_offset != 0 or not {"out_of_order", "first_tile"}.isdisjoint(owner.attributes)
        return TileView(owner.buffer, owner.tile_offset + owner.first_tile, (), shape, row_major(shape), out_of_order)
    if isinstance(owner, CollapseShapeOp):
        inner = view_of(owner.src)
        return TileView(inner.buffer, inner.base, inner.offsets, shape, (1,), inner.out_of_order)
    if isinstance(owner, ExtractSliceOp):
        return _cut(owner, view_of(owner.source), shape)
    raise AssertionError(f"{value} is not a view of a buffer")


def _cut(cut: ExtractSliceOp, inner: TileView, shape: tuple[int, ...]) -> TileView:
    static = cut.properties["static_offsets"]
    assert isinstance(static, DenseArrayBase)
    dynamic = iter(cut.operands[1:])
    base, offsets = inner.base, list(inner.offsets)
    for offset, stride in zip(static.get_values(), inner.strides, strict=True):
        if offset == DYNAMIC:
            offsets.append((next(dynamic), stride))
        else:
            base += int(offset) * stride
    return TileView(inner.buffer, base, tuple(offsets), shape, inner.strides, inner.out_of_order)


def block_start(value: SSAValue) -> int:
    """Tile of the buffer at which the whole block starts that ``value`` is a part of."""
    view = attachment_of(value)
    return view.tile_offset + view.first_tile


def buffer_of(value: SSAValue) -> SSAValue:
    return attachment_of(value).buffer


def attachment_of(value: SSAValue) -> AttachCBOp:
    """The attachment to its buffer that a view, or a part of one, comes from."""
    found = _attachment(value)
    assert found is not None, f"{value} is not a view of a buffer"
    return found


def accumulates(block: SSAValue) -> bool:
    """Whether what is stored there is added to what was stored before."""
    return ACCUMULATE in attachment_of(block).attributes


def fits_source(buffer: SSAValue) -> bool:
    """Whether the source registers hold every value of an f32 buffer (`ttl-mark-half-buffers` says so)."""
    assert isinstance(buffer.owner, BindCBOp)
    return SIGNIFICANT_BITS in buffer.owner.attributes
