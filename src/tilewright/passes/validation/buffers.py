"""Checks on the buffers of a kernel: one producer, one consumer, within the chip's limits."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from tilewright.diagnostics import Diagnostic, Note
from tilewright.dialects.ttl_buffers import ALIAS_OF
from tilewright.dialects.walking import operations, place_of
from tilewright.grid import Core
from tilewright.passes.context import PassContext
from tilewright.passes.validation.events import HANDOVERS, Buffer, key_of, problem
from tilewright.tile_pages import shard_bytes
from tilewright.trace import MemoryUse


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
