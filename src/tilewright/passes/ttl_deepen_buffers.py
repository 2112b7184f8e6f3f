"""A ring whose held blocks would pass its end gets as many blocks as keep them in one piece.

Blocks of one buffer that a thread holds together are addressed from the oldest one on, so they must not pass the end of the ring.
Where they would is known from the depth alone. More blocks than the author asked for change nothing else: a thread that went on
before goes on now, and blocks come in the same order. The smallest depth that helps is taken, if L1 has room for it; otherwise
the validation that follows refuses the kernel (TW307). Shards and buffers of external code have the depth they were given. A ring
that the compiler made itself may hold more blocks at once than it has; then it needs that many.

Requires: blocks that are held together know their places. Ensures: no held blocks pass the end of a ring that may be deeper.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp

from tilewright.dialects.ttl import ExternCallOp
from tilewright.dialects.ttl_buffers import ALIAS_OF
from tilewright.dialects.walking import erase, insert_before
from tilewright.machine.threads import Trace
from tilewright.passes import compiler_buffers
from tilewright.passes.buffers import Buffer, buffers_of, functions_of
from tilewright.passes.context import PassContext
from tilewright.passes.validation.blocks import bytes_in_l1
from tilewright.passes.validation.communication import Assumptions, first_wrap
from tilewright.passes.validation.communication_trace import Unpredictable, trace_thread, traces_of_cores

NAME = "ttl-deepen-buffers"
MOST_BLOCKS = 64  # of a ring that was made deeper


def run(module: ModuleOp, context: PassContext) -> None:
    if context.unresolved:
        return
    try:
        traces = _traces(module, context)
    except Unpredictable:
        return
    buffers = buffers_of(module)
    for buffer in buffers.values():
        depth = buffer.kind.factor.data
        if not _wraps(traces, buffer.index, depth) or not _may_be_deeper(buffer):
            continue
        room = context.chip.l1_usable_bytes - sum(bytes_in_l1(buffers_of(module), context).values())
        most = min(MOST_BLOCKS, depth + max(0, room) // (buffer.kind.block_tiles * buffer.kind.tile.bytes))
        deeper = next((tried for tried in range(depth + 1, most + 1) if not _wraps(traces, buffer.index, tried)), None)
        if deeper is not None:
            _deepen(buffer, deeper)
            why = "blocks held together would pass the end of the ring"
            context.trace.decide(NAME, f"'{buffer.name}' has {deeper} blocks instead of {depth}", why, place=_line(buffer))


def _traces(module: ModuleOp, context: PassContext) -> list[Trace]:
    """What threads do on any core, with numbers from data in every way that the validation tries."""
    threads = [trace_thread(function) for function in functions_of(module)]
    found: dict[Trace, None] = {}
    for _ in Assumptions(threads).each():
        for traces in traces_of_cores(threads, context.grid).values():
            found |= dict.fromkeys(traces)
    return list(found)


def _wraps(traces: Sequence[Trace], index: int, depth: int) -> bool:
    return any(first_wrap(trace, {index: depth}) is not None for trace in traces)


def _may_be_deeper(buffer: Buffer) -> bool:
    users = [use.operation for bind in buffer.binds for use in bind.results[0].uses]
    foreign = any(isinstance(user, ExternCallOp) for user in users)
    return not foreign and not buffer.backed and all(ALIAS_OF not in bind.attributes for bind in buffer.binds)


def _deepen(buffer: Buffer, depth: int) -> None:
    for bind in buffer.binds:
        new = compiler_buffers.rebound(bind, depth, buffer.index)
        insert_before([new], bind)
        bind.results[0].replace_all_uses_with(new.results[0])
        erase(bind)


def _line(buffer: Buffer) -> str:
    return f"line {buffer.span.line}" if buffer.span is not None else ""
