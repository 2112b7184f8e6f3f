"""Of two data-movement threads, the one with more reads of DRAM than writes becomes the reader, whichever stands first.

The reader's network is NoC 0, the writer's NoC 1. All DRAM lies in few columns of the die. Answers to reads travel along these
columns on NoC 1, writes do so on NoC 0, and there they hold each other up (`docs/decisions/0035-networks-by-direction.md`). Each
thread has one network for all it does, so what counts is what it moves on all cores together. Requires: every acquire has its
release. Ensures: the reader does not move more of its bytes against the better direction than the writer would.
"""

from __future__ import annotations

from collections import Counter

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.attributes import SliceType, text_attr, text_value
from tilewright.dialects.ttl import ExternCallOp, thread_kind
from tilewright.dialects.ttl_buffers import CopyOp
from tilewright.dialects.walking import of_kind
from tilewright.passes.buffers import acquire_of, functions_of
from tilewright.passes.context import PassContext
from tilewright.passes.validation.communication_trace import Unpredictable, trace_thread, traces_of_cores
from tilewright.records import record

NAME = "ttl-assign-networks"
ROLE, GIVEN, READER, WRITER = "ttl.role", "ttl.role_given", "reader", "writer"


@record
class Traffic:
    """Bytes between DRAM and all cores."""

    read: int
    written: int

    @property
    def balance(self) -> int:
        return self.read - self.written


def run(module: ModuleOp, context: PassContext) -> None:
    movers = {text_value(function, ROLE): function for function in functions_of(module) if thread_kind(function) != "compute"}
    if movers.keys() != {READER, WRITER} or context.options.inits == "each":
        return  # one thread has nobody to change with; the specification's listings have the order they were written in
    if any(GIVEN in function.attributes for function in movers.values()):
        return  # the author says who is who
    reader, writer = movers[READER], movers[WRITER]
    if not _writes(reader) and not _reads(writer):
        return
    if any(of_kind(function, ExternCallOp) for function in movers.values()):
        return  # nobody knows what it moves
    try:
        own, other = (_traffic(function, context.grid) for function in (reader, writer))
    except Unpredictable:
        own, other = (Traffic(len(_reads(function)), len(_writes(function))) for function in (reader, writer))
        if not own.balance < 0 < other.balance or own.read or other.written:
            return
    if other.balance > own.balance:
        reader.attributes[ROLE], writer.attributes[ROLE] = text_attr(WRITER), text_attr(READER)
        first, second = reader.sym_name.data, writer.sym_name.data
        moved = f"it reads {other.read:,} and writes {other.written:,} bytes of DRAM, '{first}' {own.read:,} and {own.written:,}"
        context.trace.decide(NAME, f"'{second}' is the reader, on NoC 0, and '{first}' the writer", moved)


def _in_dram(value: SSAValue) -> bool:
    return isinstance(value.type, SliceType) and value.type.memory.data == "dram"


def _reads(function: FuncOp) -> list[CopyOp]:
    return [copy for copy in of_kind(function, CopyOp) if _in_dram(copy.source)]


def _writes(function: FuncOp) -> list[CopyOp]:
    return [copy for copy in of_kind(function, CopyOp) if _in_dram(copy.target)]


def _traffic(function: FuncOp, grid: tuple[int, ...]) -> Traffic:
    """What the thread moves, by how often all cores acquire the blocks that it copies."""
    acquired: Counter[Operation] = Counter()
    trace = trace_thread(function)
    if trace.numbers:
        raise Unpredictable
    for (items,), cores in Counter(traces_of_cores([trace], grid).values()).items():
        for chunk, count in items:
            for event in chunk:
                acquired[event.op] += count * cores
    read = sum(acquired[_acquire(copy.target)] * _bytes(copy.source) for copy in _reads(function))
    return Traffic(read, sum(acquired[_acquire(copy.source)] * _bytes(copy.target) for copy in _writes(function)))


def _acquire(block: SSAValue) -> Operation:
    found = acquire_of(block)
    if found is None:
        raise Unpredictable
    return found


def _bytes(part: SSAValue) -> int:
    kind = part.type
    assert isinstance(kind, SliceType)
    tiles = 1
    for extent in kind.dims:
        tiles *= extent
    return tiles * kind.tile.bytes
