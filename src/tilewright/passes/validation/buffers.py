"""Checks on the buffers of a kernel: one producer, one consumer, within the chip's limits, on the cores that have them, and
nothing that is still needed overwritten where buffers share the memory of a shard."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tilewright.diagnostics import Diagnostic, Note
from tilewright.dialects.attributes import buffer_type_of, int_value
from tilewright.dialects.ttl import StoreOp, TensorMathOp
from tilewright.dialects.ttl_buffers import ALIAS_OF, CORE_RANGES, BindCBOp
from tilewright.dialects.ttl_network import nested_value
from tilewright.dialects.walking import operations, place_of
from tilewright.grid import Core, cores_in, cores_of
from tilewright.passes.context import PassContext
from tilewright.passes.validation.communication_trace import Unpredictable, trace_thread
from tilewright.passes.validation.events import (
    HANDOVERS,
    Buffer,
    acquire_of,
    bind_of,
    buffer_name,
    functions_of,
    key_of,
    problem,
    sources,
)
from tilewright.tile_pages import shard_bytes
from tilewright.trace import MemoryUse

NAME = "ttl-validate"


def check_ends(buffers: dict[int, Buffer]) -> list[Diagnostic]:
    """Every buffer has somebody who fills it and somebody who reads it."""
    problems: list[Diagnostic] = []
    for buffer in buffers.values():
        problems += _agreement(buffer)
        if buffer.consumers and not buffer.producers:
            problems.append(_nobody(buffer, "wait", buffer.consumers[0]))
        # A shard may be the last stop, and so may a block that its own thread copies on.
        if buffer.producers and not buffer.consumers and not buffer.backed and not buffer.staging:
            problems.append(_nobody(buffer, "reserve", buffer.producers[0]))
    return problems


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
    table = {buffer.name: buffer.kind.total_tiles * buffer.kind.tile.bytes for buffer in buffers.values() if not buffer.backed}
    table |= {f"shard of {spec.name}": shard_bytes(spec) for spec in context.tensors if spec.memory == "l1" and spec.shard_cores}
    context.trace.memory = MemoryUse(buffers=table, limit=chip.l1_usable_bytes)
    if sum(table.values()) > chip.l1_usable_bytes:
        problems.append(_too_large(buffers, table, context))
    return problems


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


def check_core_ranges(module: ModuleOp, buffers: dict[int, Buffer], context: PassContext) -> list[Diagnostic]:
    limited = {index: buffer for index, buffer in buffers.items() if CORE_RANGES in buffer.binds[0].attributes}
    if not limited:
        return []
    grid = context.grid
    held = {index: set(cores_in(nested_value(buffer.binds[0].attributes[CORE_RANGES]))) for index, buffer in limited.items()}
    everywhere = set(cores_of(grid))
    outside = {index: sorted(cores - everywhere) for index, cores in held.items()}
    problems = [
        problem(
            "TW110",
            f"core_ranges of '{limited[index].name}' has core {cores[0]}, which the grid {grid} does not have",
            limited[index].binds[0],
            help=f"one [start, stop, step] for each of the {len(grid)} dimensions",
        )
        for index, cores in outside.items()
        if cores
    ]
    return problems or _used_elsewhere(module, limited, held, context)


def _used_elsewhere(
    module: ModuleOp, limited: dict[int, Buffer], held: dict[int, set[tuple[int, ...]]], context: PassContext
) -> list[Diagnostic]:
    """The first use of each buffer on a core without it."""
    found: dict[int, Diagnostic] = {}
    try:
        traces = [trace_thread(function) for function in functions_of(module)]
        for core in cores_of(context.grid):
            for trace in traces:
                for event in (event for chunk, _ in trace.items(core, context.grid) for event in chunk):
                    buffer = limited.get(event.buffer)
                    if buffer is None or event.buffer in found or core in held[event.buffer]:
                        continue
                    found[event.buffer] = problem(
                        "TW220",
                        f"core {core} uses '{buffer.name}', which its core_ranges do not give it",
                        event.op,
                        notes=(Note("the buffer is made here", buffer.span),),
                        help="widen core_ranges, or put the use under an if that only cores with the buffer enter",
                    )
    except Unpredictable:
        context.trace.decide(NAME, "core_ranges not compared before the run", "a loop or if depends on values of the device")
    return list(found.values())


def _binds(function: FuncOp) -> list[BindCBOp]:
    return [op for op in function.body.block.ops if isinstance(op, BindCBOp)]


def check_in_place(function: FuncOp) -> list[Diagnostic]:
    """A store that overwrites a block of another buffer in the same shard: it must not be needed any more."""
    if sum(bind.backed for bind in _binds(function)) < 2:
        return []
    problems: list[Diagnostic] = []
    overwritten: dict[Operation, StoreOp] = {}
    for op in operations(function):
        if not isinstance(op, StoreOp):
            continue
        target = acquire_of(op.target)
        if target is None:
            continue
        shared: list[Operation] = []
        for value in sources(op.value):
            read = acquire_of(value)
            assert read is not None
            if read in overwritten:
                problems.append(_late(op, read, overwritten[read]))
            elif _overlap(bind_of(read.operands[0]), bind_of(target.operands[0])):
                shared.append(read)
                if not _tile_by_tile(op, read, target):
                    problems.append(_not_alike(op, read))
        overwritten |= dict.fromkeys(shared, op)
    return problems


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
