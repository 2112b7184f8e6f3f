"""What can be said without asking who waits for whom. Every held block is followed through its thread: who may read it, who may
write it, and that pushed blocks were written. So is DST, where text says who holds it: acquire, commit, wait, release, in this
order on every path. Buffers have one producer and one consumer, fit the chip, and overwrite nothing that is still needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import cache
from typing import Any

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.tensor import ExtractOp
from xdsl.ir import Block, Operation, Region, SSAValue

from tilewright.diagnostics import Diagnostic, Note
from tilewright.dialects.attributes import buffer_type_of, constant_of, int_value, is_tensor_type
from tilewright.dialects.ttl import ExternCallOp, StoreOp, TensorMathOp, both_float, thread_kind
from tilewright.dialects.ttl_buffers import (
    ALIAS_OF,
    IN_DST,
    BindCBOp,
    CopyOp,
    ReadElementOp,
    RunningOp,
    TensorAccessorOp,
    TensorSliceOp,
    WaitOp,
    WriteElementOp,
)
from tilewright.dialects.ttl_compute import ComputeOp
from tilewright.dialects.walking import block_ops, operations, place_of
from tilewright.grid import Core
from tilewright.passes.buffers import (
    ACQUIRES,
    HANDOVERS,
    RELEASES,
    Buffer,
    acquire_of,
    bind_of,
    binds_of,
    buffer_name,
    buffers_of,
    held_block,
    key_of,
    problem,
    sources,
    stays_in_dst,
)
from tilewright.passes.context import PassContext
from tilewright.passes.validation.communication_trace import Ways, ways_of_cores
from tilewright.records import record
from tilewright.tile_pages import shard_bytes
from tilewright.trace import MemoryUse

NEVER, SOMETIMES, ALWAYS = 0, 1, 2


@record(frozen=False)
class Held:
    """State along one path."""

    queues: dict[tuple[int, str], list[Operation]] = field(default_factory=dict[tuple[int, str], list[Operation]])
    written: dict[Operation, int] = field(default_factory=dict[Operation, int])
    released: dict[Operation, Operation] = field(default_factory=dict[Operation, Operation])
    filling: dict[Operation, Operation] = field(default_factory=dict[Operation, Operation])  # blocks a copy is under way to

    def copy(self) -> Held:
        queues = {key: list(queue) for key, queue in self.queues.items()}
        return Held(queues, dict(self.written), dict(self.released), dict(self.filling))


def check_blocks(function: FuncOp, grid: tuple[int, ...]) -> list[Diagnostic]:
    checker = BlockChecker(thread_kind(function))
    checker.walk(function.body.block, Held())
    if not checker.doubtful:
        return checker.problems
    # Some path leaves a block unwritten. It counts only if a core takes it: `if_src` and `if_dst` exclude each other, for one.
    unwritten: set[Operation] = set()
    for ways in ways_of_cores(function, grid):
        single = BlockChecker(thread_kind(function), ways)
        single.walk(function.body.block, Held())
        unwritten |= single.doubtful.keys()
    return checker.problems + [found for op, found in checker.doubtful.items() if op in unwritten]


class BlockChecker:
    def __init__(self, thread: str, ways: Ways | None = None) -> None:
        self.thread = thread
        self.ways = ways or {}
        self.problems: list[Diagnostic] = []
        self.doubtful: dict[Operation, Diagnostic] = {}  # pushes of blocks that may be unwritten

    def report(self, code: str, message: str, op: Operation, **words: object) -> None:
        self.problems.append(problem(code, message, op, **words))  # pyright: ignore

    def walk(self, block: Block, state: Held) -> Held:
        for op in block_ops(block):
            step = _step_of(type(op))
            if step is not None:
                state = step(self, op, state) or state
        return state

    def acquire(self, op: Operation, state: Held) -> None:
        state.queues.setdefault(key_of(op), []).append(op)
        state.written[op] = NEVER

    def extern(self, op: ExternCallOp, state: Held) -> None:
        for value in op.blocks:
            acquire = acquire_of(value)
            reserved = acquire is not None and key_of(acquire)[1] == "reserve"
            (self.write if reserved else self.read)(value, op, state)

    def extract(self, op: ExtractOp, state: Held) -> None:
        self.read(op.tensor, op, state)

    def region(self, op: ComputeOp, state: Held) -> None:
        """A region in text: it reads and writes blocks as a store does."""
        for value in op.inputs:
            self.read(value, op, state)
        for value in op.outputs:
            self.write(value, op, state)

    def copy_end(self, op: WaitOp, state: Held) -> None:
        copy = op.transfer.owner
        if not isinstance(copy, CopyOp):
            return
        filled = acquire_of(copy.target)
        if filled is not None and state.filling.get(filled) is copy:
            del state.filling[filled]
        for acquire in filter(None, map(acquire_of, copy.operands)):
            released = state.released.get(acquire)
            if released is not None:
                word = "popped" if key_of(released)[1] == "wait" else "pushed"
                self.report(
                    "TW214",
                    f"block of '{buffer_name(acquire)}' is {word} before its copy has ended",
                    released,
                    notes=(Note("the copy is waited for here", place_of(op)),),
                    help="wait() for the copy first",
                )

    def release(self, op: Operation, state: Held) -> None:
        queue = state.queues.get(key_of(op), [])
        if not queue:  # reported when releases were matched
            return
        acquire = queue.pop(0)
        state.released[acquire] = op
        if key_of(op)[1] != "reserve" or state.written[acquire] == ALWAYS:
            return
        if ALIAS_OF in bind_of(op.operands[0]).attributes:  # another view of memory that was filled under its first name
            return
        reason = "not every path writes it" if state.written[acquire] == SOMETIMES else "nothing was written to it"
        self.doubtful[op] = problem(
            "TW205",
            f"block of '{buffer_name(op)}' is pushed, but {reason}",
            op,
            notes=(Note("it was reserved here", place_of(acquire)),),
            help="copy tiles into it before the push" if self.thread == "noc" else "store to it before the push",
        )

    def store(self, op: StoreOp, state: Held) -> None:
        value, target = op.operands
        if self.thread != "compute":
            self.report("TW013", "store in a data-movement thread", op, help="only the compute thread stores")
        if is_tensor_type(value.type) and not isinstance(value.owner, ComputeOp):  # else the region has read them
            for read in sources(value):
                self.read(read, op, state)
        self.write(target, op, state)

    def copy(self, op: CopyOp, state: Held) -> None:
        if self.thread == "compute":
            self.report("TW014", "copy in a compute thread", op, help="copy in a data-movement thread")
        source, target = op.operands
        if acquire_of(source) is not None:
            self.read_where_filled(source, op, state)
        acquire = acquire_of(target)
        if acquire is not None:
            self.write(target, op, state)
            state.filling[acquire] = op

    def read_where_filled(self, value: SSAValue, op: Operation, state: Held) -> None:
        """As data movement reads: also what its own thread has filled and not pushed yet."""
        filled = acquire_of(value)
        assert filled is not None
        if not self.copies_written(filled, state):
            self.read(value, op, state)
        else:
            self.while_filling(filled, op, state, "read")

    def while_filling(self, acquire: Operation, op: Operation, state: Held, word: str) -> None:
        if acquire in state.filling:
            self.report(
                "TW214",
                f"block of '{buffer_name(acquire)}' is {word} before the copy that fills it has ended",
                op,
                notes=(Note("the copy is started here", place_of(state.filling[acquire])),),
                help="wait() for the copy first",
            )

    def element(self, op: ReadElementOp | WriteElementOp, state: Held) -> None:
        """Whoever waited for a block owns it until the pop, and may change elements of it."""
        acquire = acquire_of(op.block)
        assert acquire is not None
        if isinstance(op, ReadElementOp):
            return self.read_where_filled(op.block, op, state)
        if key_of(acquire)[1] == "wait" and acquire not in state.released:
            return None
        self.while_filling(acquire, op, state, "written")
        return self.write(op.block, op, state)

    def copies_written(self, acquire: Operation, state: Held) -> bool:
        """A block that was filled may be sent or copied on before it is pushed: both only read it."""
        return acquire not in state.released and key_of(acquire)[1] == "reserve" and state.written[acquire] == ALWAYS

    def read(self, value: SSAValue, op: Operation, state: Held) -> None:
        acquire = held_block(value, state.queues)
        if acquire is None:  # a view of a buffer that holds nothing
            self.report("TW203", "a block is read that nobody waited for", op, help="wait() for a block to read it")
            return
        side = key_of(acquire)[1]
        if (side == "wait" or type(acquire) is RunningOp) and acquire not in state.released:
            return
        name = buffer_name(acquire)
        since = (Note(f"acquired with {side}() here", place_of(acquire)),)
        if side == "reserve":
            self.report(
                "TW203",
                f"block of '{name}' is read, but it was only reserved",
                op,
                notes=since,
                help=f"wait() for a block of '{name}' to read it",
            )
        else:
            self.report(
                "TW206",
                f"block of '{name}' is used after it was popped",
                op,
                label="stored here",
                notes=(Note("it was popped here", place_of(state.released[acquire])), *since),
                help="use the block before its pop; what was computed from it by then (y = x * 2) may be used after it",
            )

    def write(self, value: SSAValue, op: Operation, state: Held) -> None:
        acquire = held_block(value, state.queues)
        if acquire is None:
            if stays_in_dst(value):
                return
            self.report("TW204", "write to an expression", op, help="write to a block from reserve()")
            return
        state.written[acquire] = ALWAYS
        waited = key_of(acquire)[1] == "wait"
        if not waited and acquire not in state.released:
            return
        name = buffer_name(acquire)
        since = (Note("acquired here", place_of(acquire)),)
        if waited:
            self.report(
                "TW204",
                f"write to a block of '{name}' that was waited for",
                op,
                notes=since,
                help="wait() gives a block to read; reserve() one to write",
            )
        else:
            self.report(
                "TW206",
                f"block of '{name}' is written after it was pushed",
                op,
                notes=(Note("it was pushed here", place_of(state.released[acquire])), *since),
                help="push after the last write",
            )

    def math(self, op: TensorMathOp, _state: Held) -> None:
        if self.thread != "compute":
            self.report("TW013", f"arithmetic ({op.name}) in a data-movement thread", op, help="compute in the compute thread")
        kinds = [operand.type for operand in op.operands if is_tensor_type(operand.type)]
        for kind in kinds[1:]:
            if kind.get_shape() != kinds[0].get_shape():
                self.report("TW101", f"blocks of {kinds[0].get_shape()} and {kind.get_shape()} tiles do not combine", op)
            elif kind != kinds[0] and not both_float(kind, kinds[0]):
                self.report("TW102", f"blocks of {kinds[0].element_type} and {kind.element_type} do not combine", op)

    def branch(self, op: scf.IfOp, state: Held) -> Held:
        if op in self.ways:
            region = op.true_region if self.ways[op] else op.false_region
            return self.walk(region.block, state) if region.blocks else state
        then = self.walk(op.true_region.block, state.copy())
        otherwise = self.walk(op.false_region.block, state.copy()) if op.false_region.blocks else state
        for acquire in state.written:
            ways = then.written[acquire], otherwise.written[acquire]
            then.written[acquire] = ways[0] if ways[0] == ways[1] else SOMETIMES
        then.released = {**otherwise.released, **then.released}
        then.filling = {**otherwise.filling, **then.filling}
        return then

    def loop(self, op: scf.ForOp, state: Held) -> Held:
        low, high = constant_of(op.lb), constant_of(op.ub)
        if low is not None and high is not None and low >= high:
            return state
        return self.walk(op.body.block, state)


STEPS_OF: dict[type[Operation], Callable[[BlockChecker, Any, Held], Held | None]] = {
    **dict.fromkeys(ACQUIRES, BlockChecker.acquire),
    **dict.fromkeys(RELEASES, BlockChecker.release),
    StoreOp: BlockChecker.store,
    CopyOp: BlockChecker.copy,
    WaitOp: BlockChecker.copy_end,
    ReadElementOp: BlockChecker.element,
    WriteElementOp: BlockChecker.element,
    ExternCallOp: BlockChecker.extern,
    TensorMathOp: BlockChecker.math,
    scf.IfOp: BlockChecker.branch,
    scf.ForOp: BlockChecker.loop,
    ComputeOp: BlockChecker.region,
    ExtractOp: BlockChecker.extract,
}


@cache
def _step_of(kind: type[Operation]) -> Callable[[BlockChecker, Any, Held], Held | None] | None:
    """Rows of the op table have a class each, which derives from the one that is named."""
    return next((step for known, step in STEPS_OF.items() if issubclass(kind, known)), None)


ORDER = ("acquire", "commit", "wait", "release")
STEPS = {f"{dialect}.tile_regs_{word}": number for dialect in ("ttl", "ttkernel") for number, word in enumerate(ORDER)}


def check_lifecycle(function: FuncOp) -> list[Diagnostic]:
    problems: list[Diagnostic] = []
    due = _walk(function.body.block, 0, problems)
    last = function.body.block.last_op
    if due and not problems and last is not None:
        problems.append(problem("TW404", f"the thread ends where tile_regs_{ORDER[due]} is due", last, help=HELP))
    return problems


HELP = "tile_regs_acquire, the math, tile_regs_commit, tile_regs_wait, the packs, tile_regs_release"


def _walk(block: Block, due: int, problems: list[Diagnostic]) -> int:
    """The step that is due behind ``block``, if ``due`` is in front of it. A loop or a branch leaves it as it finds it."""
    for op in block_ops(block):
        step = STEPS.get(op.name)
        if step is not None:
            if step != due:
                found = f"tile_regs_{ORDER[step]} where tile_regs_{ORDER[due]} is due"
                problems.append(problem("TW404", found, op, help=HELP))
            due = (step + 1) % len(ORDER)
        for region in op.regions:
            for inner in region.blocks:
                if _walk(inner, due, problems) != due and not problems:
                    found = "a loop or a branch ends at another point of the life of DST than it begins"
                    problems.append(problem("TW404", found, op, help=HELP))
    return due


# Buffers ----------------------------------------------------------------------------------------------------------------------


def check_ends(buffers: dict[int, Buffer]) -> list[Diagnostic]:
    """Every buffer has somebody who fills it and somebody who reads it."""
    problems: list[Diagnostic] = []
    for buffer in buffers.values():
        problems += _agreement(buffer)
        if buffer.consumers and not buffer.producers:
            problems.append(_nobody(buffer, "wait", buffer.consumers[0]))
        if buffer.producers and not buffer.consumers and not buffer.last_stop:
            problems.append(_nobody(buffer, "reserve", buffer.producers[0]))
    return problems


def only_reads(module: ModuleOp, tensors: int) -> bool:
    """Whether a kernel reads each of so many tensors, writes none and computes nothing: blocks that it leaves are no loss."""
    ops = list(operations(module))
    copies = [op for op in ops if isinstance(op, CopyOp)]
    read = [copy.source.owner for copy in copies if isinstance(copy.source.owner, TensorSliceOp)]
    places = {cut.accessor.owner for cut in read}
    numbers = {place.tensor_index for place in places if isinstance(place, TensorAccessorOp)}
    return (
        len(numbers) == tensors > 0
        and len(read) == len(copies)
        and not any(isinstance(op, (StoreOp, ExternCallOp)) for op in ops)
    )


def first_use(buffer: Buffer, side: str, function: FuncOp) -> Operation:
    return next(op for op in operations(function) if type(op) in HANDOVERS and key_of(op) == (buffer.index, side))


def _agreement(buffer: Buffer) -> list[Diagnostic]:
    """Every thread must see the same buffer. The front end guarantees it; text may not."""
    different = [bind for bind in buffer.binds if bind.results[0].type != buffer.kind]
    return [problem("TW101", f"threads disagree about the type of buffer {buffer.index}", bind) for bind in different[:1]]


def several_users(
    buffer: Buffer, producers: list[FuncOp] | None = None, consumers: list[FuncOp] | None = None, core: Core | None = None
) -> list[Diagnostic]:
    """More than one producer or consumer, of the whole kernel or of one core."""
    sides = (
        ("reserve", buffer.producers if producers is None else producers),
        ("wait", buffer.consumers if consumers is None else consumers),
    )
    return [_several(buffer, side, threads, core) for side, threads in sides if len(threads) > 1]


def _several(buffer: Buffer, side: str, threads: list[FuncOp], core: Core | None) -> Diagnostic:
    where = "" if core is None else f" on core {core}"
    word = "fill" if side == "reserve" else "read"
    uses = [first_use(buffer, side, thread) for thread in threads]
    notes = tuple(
        Note(f"thread '{t.sym_name.data}' {side}s it here", place_of(use)) for t, use in zip(threads, uses, strict=True)
    )
    return problem(
        "TW207",
        f"{len(threads)} threads {word} buffer '{buffer.name}'{where}",
        uses[1],
        notes=notes[:1],
        label=f"second thread that {word}s it",
        help="one producer and one consumer per buffer and core; make a second buffer, or give each core one of the threads",
    )


def _nobody(buffer: Buffer, side: str, thread: FuncOp) -> Diagnostic:
    use = first_use(buffer, side, thread)
    note = (Note("the buffer is made here", buffer.span),)
    if side == "wait":
        message = f"'{thread.sym_name.data}' waits for buffer '{buffer.name}', but no thread fills it"
        return problem(
            "TW208", message, use, notes=note, help=f"reserve() and push() blocks of '{buffer.name}' in another thread"
        )
    message = f"'{thread.sym_name.data}' fills buffer '{buffer.name}', but no thread waits for its blocks"
    return problem("TW209", message, use, notes=note, help=f"wait() and pop() blocks of '{buffer.name}' in another thread")


def check_limits(buffers: dict[int, Buffer], context: PassContext) -> list[Diagnostic]:
    """As many buffers, and as many bytes, as a core has."""
    chip = context.chip
    problems: list[Diagnostic] = []
    beyond = [buffer for index, buffer in buffers.items() if index >= chip.max_buffers]
    if beyond:
        problems.append(
            problem(
                "TW301",
                f"the kernel has {max(buffers) + 1} buffers, {chip.name} has room for {chip.max_buffers}",
                beyond[0].binds[0],
                label=f"buffer number {beyond[0].index + 1}",
                help="reuse buffers of the same shape, or store fewer intermediate values",
            )
        )
    buffers = {index: buffer for index, buffer in buffers.items() if ALIAS_OF not in buffer.binds[0].attributes}
    table = bytes_in_l1(buffers, context)
    context.trace.memory = MemoryUse(buffers=table, limit=chip.l1_usable_bytes)
    surely = sum(table.values()) - sum(table.get(buffer.name, 0) for buffer in buffers.values() if buffer.runs)
    if surely > chip.l1_usable_bytes:  # running values get their places later, and this question is asked again
        problems.append(_too_large(buffers, table, context))
    return problems


def l1_is_full(module: ModuleOp, context: PassContext) -> bool:
    return sum(bytes_in_l1(buffers_of(module), context).values()) > context.chip.l1_usable_bytes


def bytes_in_l1(buffers: dict[int, Buffer], context: PassContext) -> dict[str, int]:
    """What takes L1 of a core: buffers with memory of their own, and shards of tensors."""
    elsewhere = {ALIAS_OF, IN_DST}
    own = [buffer for buffer in buffers.values() if not buffer.backed and elsewhere.isdisjoint(buffer.binds[0].attributes)]
    shards = [spec for spec in context.tensors if spec.memory == "l1" and spec.shard_cores]
    table = {buffer.name: buffer.kind.total_tiles * buffer.kind.tile.bytes for buffer in own}
    return table | {f"shard of {spec.name}": shard_bytes(spec) for spec in shards}


def _too_large(buffers: dict[int, Buffer], table: dict[str, int], context: PassContext) -> Diagnostic:
    limit = context.chip.l1_usable_bytes
    ordered = sorted(buffers.values(), key=lambda buffer: -buffer.kind.total_tiles * buffer.kind.tile.bytes)
    shapes = {buffer.name: buffer.kind for buffer in ordered if not buffer.backed}
    width = max(len(name) for name in table)
    notes: list[Note] = []
    for name, size in sorted(table.items(), key=lambda row: -row[1]):
        kind = shapes.get(name)
        parts = "" if kind is None else f"{'x'.join(map(str, kind.dims))} tiles x {kind.factor.data} x {kind.tile.bytes} B = "
        notes.append(Note(f"{name:<{width}}  {parts}{size // 1024} KB"))
    return problem(
        "TW302",
        f"buffers need {sum(table.values()) // 1024} KB of L1, {context.chip.name} has {limit // 1024} KB",
        ordered[0].binds[0],
        label="the largest buffer",
        notes=tuple(notes),
        help="smaller blocks (shape=) or fewer of them (block_count=)",
    )


def check_in_place(function: FuncOp) -> list[Diagnostic]:
    """A store that overwrites a block of another buffer in the same shard: it must not be needed any more."""
    if sum(bind.backed for bind in binds_of(function)) < 2:
        return []
    problems: list[Diagnostic] = []
    order = {op: place for place, op in enumerate(operations(function))}
    stores: list[tuple[StoreOp, BindCBOp]] = []  # so far, into shards
    for op in order:
        target = acquire_of(op.target) if isinstance(op, StoreOp) else None
        if not isinstance(op, StoreOp) or target is None:
            continue
        into = bind_of(target.operands[0])
        for value in sources(op.value):
            read = acquire_of(value)
            assert read is not None
            source = bind_of(read.operands[0])
            earlier = [store for store, bind in stores if order[read] < order[store] and _overlap(source, bind)]
            late = next((store for store in earlier if not _in_other_branch(store, op, read)), None)
            if late is not None:
                problems.append(_late(op, read, late))
            elif _overlap(source, into) and not _tile_by_tile(op, read, target):
                problems.append(_not_alike(op, read))
        if into.backed:
            stores.append((op, into))
    return problems


def _in_other_branch(store: Operation, op: Operation, read: Operation) -> bool:
    """Whether no core comes to ``op`` after ``store`` with the block that ``read`` gave it."""
    ways = dict(_around(store))
    loops = {around for around, _ in _around(read)}
    for around, region in _around(op):
        if isinstance(around, scf.IfOp) and ways.get(around, region) is not region:
            repeats = (outer for outer, _ in _around(around) if isinstance(outer, scf.ForOp))
            return all(loop in loops for loop in repeats)  # else a later iteration may go the other way
    return False


def _around(op: Operation) -> list[tuple[Operation, Region]]:
    """The ops around an op, from the inside, with the region it is in."""
    found: list[tuple[Operation, Region]] = []
    region = op.parent_region()
    while region is not None and (around := region.parent_op()) is not None:
        found.append((around, region))
        region = around.parent_region()
    return found


def _tiles(bind: BindCBOp) -> range:
    kind = buffer_type_of(bind.results[0])
    first = int_value(bind, "first_tile", 0)
    return range(first, first + kind.total_tiles)


def _overlap(one: BindCBOp, other: BindCBOp) -> bool:
    if one.cb_index == other.cb_index or not one.backed or not other.backed:
        return False
    if one.attributes["tensor_index"] != other.attributes["tensor_index"]:
        return False
    return max(_tiles(one).start, _tiles(other).start) < min(_tiles(one).stop, _tiles(other).stop)


def _tile_by_tile(op: StoreOp, read: Operation, target: Operation) -> bool:
    """Whether each tile of the result depends on the same tile of the shard only."""
    ours, theirs = bind_of(read.operands[0]), bind_of(target.operands[0])
    if ours.results[0].type != theirs.results[0].type or _tiles(ours) != _tiles(theirs):
        return False
    return _elementwise(op.value, read)


def _elementwise(value: SSAValue, read: Operation) -> bool:
    owner = value.owner
    if acquire_of(value) is not None or not isinstance(owner, Operation):
        return True
    if all(acquire_of(source) is not read for source in sources(value)):
        return True
    return isinstance(owner, TensorMathOp) and all(_elementwise(operand, read) for operand in owner.operands)


def _late(op: StoreOp, read: Operation, store: StoreOp) -> Diagnostic:
    return problem(
        "TW219",
        f"block of '{buffer_name(read)}' is read after a store has overwritten it",
        op,
        notes=(Note("the store into the same shard is here", place_of(store)),),
        help="store into the shard last, or keep the result in a buffer of its own",
    )


def _not_alike(op: StoreOp, read: Operation) -> Diagnostic:
    return problem(
        "TW219",
        f"this store overwrites '{buffer_name(read)}' tile by tile, but its tiles depend on other tiles of it",
        op,
        notes=(Note("the block was waited for here", place_of(read)),),
        help="in place, each tile may depend on the same tile only: same shape and byte_offset, elementwise functions",
    )
