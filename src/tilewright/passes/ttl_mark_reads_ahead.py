"""Loops that read block after block are marked to ask for later blocks before earlier ones have arrived.

Attribute ``ttl.reads_ahead`` of a loop says how many blocks more than one may be under way; `ttkernel-read-ahead` takes as many
as gain time, with a transaction id for each.

A thread that pushes a block when it has reserved the k-th behind it waits for as much room, with n blocks pushed, as it would in
a buffer of k blocks less to reserve block n; then it pushes block n. All others see the same. So if nobody stops for ever with
that much less room, nobody does with k blocks under way. Of blocks that move in batches (`ttl-mark-batches`), k counts batches.
A tensor that the kernel writes is read where the author reads it. Requires: a kernel that ends. Ensures: every loop with
``ttl.reads_ahead`` is one whose threads still end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp, YieldOp
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.attributes import SliceType, buffer_type_of, constant_of, i32_attr, int_value, trip_count
from tilewright.dialects.ttl import thread_kind
from tilewright.dialects.ttl_buffers import (
    ALIAS_OF,
    AttachCBOp,
    BindCBOp,
    CBPushOp,
    CBReserveOp,
    CopyOp,
    TensorAccessorOp,
    TensorSliceOp,
    WaitOp,
)
from tilewright.dialects.walking import of_kind
from tilewright.passes.buffers import bind_of, functions_of
from tilewright.passes.census import MOST_PAGES
from tilewright.passes.context import PassContext
from tilewright.passes.read_pace import MOST_AHEAD, ReadPace
from tilewright.passes.validation.communication import surely_ends
from tilewright.records import record

NAME = "ttl-mark-reads-ahead"
AHEAD, BATCH = "ttl.reads_ahead", "ttl.batch"
SINCE = (0, 78)  # the oldest release whose headers were seen to have the calls

STEPS: tuple[tuple[type[Operation], ...], ...] = (  # of a turn, in this order
    (CBReserveOp, AttachCBOp, TensorSliceOp, CopyOp),
    (WaitOp,),
    (CBPushOp,),
    (YieldOp,),
)


@record(frozen=False, eq=False)
class Reading:
    """A loop whose turns do nothing but read blocks and hand them over."""

    loop: ForOp
    batch: int
    buffers: dict[int, BindCBOp] = field(default_factory=dict[int, BindCBOp])
    copies: list[CopyOp] = field(default_factory=list[CopyOp])

    @property
    def depths(self) -> list[int]:
        """Of its buffers, in batches."""
        return [buffer_type_of(bind.results[0]).factor.data // self.batch for bind in self.buffers.values()]

    @property
    def turns(self) -> int | None:
        count = trip_count(self.loop)
        return None if count is None else count // self.batch

    def most(self) -> int:
        """Blocks ahead for which there is room, and blocks to read. The end of a loop of unknown length has one at most."""
        turns = self.turns
        found = min(*self.depths, MOST_AHEAD + 1) - 1
        return min(found, 1) if turns is None else min(found, turns - 1)

    def pace(self, context: PassContext) -> ReadPace:
        kinds = [copy.source.type for copy in self.copies]
        slices = [kind for kind in kinds if isinstance(kind, SliceType)]
        pages = [self.batch * math.prod(kind.dims) for kind in slices]
        return ReadPace(
            chip=context.options.arch,
            cores=math.prod(context.grid),
            pages=sum(pages),
            bytes=sum(count * kind.tile.bytes for count, kind in zip(pages, slices, strict=True)),
            buffers=len(self.buffers),
            in_dram=any(kind.memory.data == "dram" for kind in slices),
        )


def run(module: ModuleOp, context: PassContext) -> None:
    for loop in of_kind(module, ForOp):
        loop.attributes.pop(AHEAD, None)  # text may say so of any loop
    release = tuple(int(part) for part in context.options.metal.split(".")[:2])
    if not context.options.reads_ahead or context.options.inits == "each" or release < SINCE:
        return
    threads = functions_of(module)
    movers = [function for function in threads if thread_kind(function) != "compute"]
    written = {_tensor(copy.target) for function in movers for copy in of_kind(function, CopyOp) if _is_slice(copy.target)}
    for function in movers:
        for loop in of_kind(function, ForOp):
            reading = _reading(loop, written)
            if reading is not None and _alone(reading, threads) and _starts_at_front(reading):
                _mark(reading, module, context)


def _mark(reading: Reading, module: ModuleOp, context: PassContext) -> None:
    pace, depth = reading.pace(context), min(reading.depths)
    ahead = pace.best(reading.most(), depth, 0.0) if pace.pages < MOST_PAGES else 0
    while ahead and not surely_ends(module, context.grid, _rooms(reading, ahead)):
        ahead -= 1
    if ahead:
        reading.loop.attributes[AHEAD] = i32_attr(ahead)


def _rooms(reading: Reading, ahead: int) -> dict[int, int]:
    """What is left of each buffer without the blocks under way; a batch takes all but one of its blocks besides."""
    taken = ahead * reading.batch + reading.batch - 1
    return {index: buffer_type_of(bind.results[0]).factor.data - taken for index, bind in reading.buffers.items()}


def _is_slice(value: SSAValue) -> bool:
    return isinstance(value.type, SliceType)


def _cut(value: SSAValue) -> TensorSliceOp:
    cut = value.owner
    assert isinstance(cut, TensorSliceOp)
    return cut


def _tensor(value: SSAValue) -> int:
    accessor = _cut(value).accessor.owner
    assert isinstance(accessor, TensorAccessorOp)
    return accessor.tensor_index


def _reading(loop: ForOp, written: set[int]) -> Reading | None:
    step = constant_of(loop.step)
    if loop.results or step is None or step < 1:
        return None
    found = Reading(loop, int_value(loop, BATCH, 1))
    at, waited, pushed = 0, 0, set[int]()
    for op in loop.body.block.ops:
        if op.name.startswith("arith."):
            continue
        while at < len(STEPS) and not isinstance(op, STEPS[at]):
            at += 1
        if at == len(STEPS):
            return None
        if isinstance(op, (CBReserveOp, CBPushOp)):
            bind = bind_of(op.operands[0])
            if "tiles" in op.attributes or bind.backed or ALIAS_OF in bind.attributes:
                return None
            if isinstance(op, CBPushOp):
                pushed.add(bind.cb_index)
            elif found.buffers.setdefault(bind.cb_index, bind) is not bind:
                return None
        elif isinstance(op, CopyOp):
            if not _is_slice(op.source) or not _whole_pages(op.source) or _tensor(op.source) in written:
                return None
            found.copies.append(op)
        elif isinstance(op, WaitOp):
            waited += len(op.operands)
    whole = pushed == found.buffers.keys() and waited == len(found.copies) and len(found.copies) > 0
    return found if whole and math.lcm(*found.depths) <= MOST_AHEAD + 1 else None


def _whole_pages(part: SSAValue) -> bool:
    """Whether each tile of a slice is one page that is certainly there: the others need more than a read."""
    cut = _cut(part)
    accessor = cut.accessor.owner
    return isinstance(accessor, TensorAccessorOp) and not cut.clipped and not accessor.by_rows and not accessor.page_elements


def _alone(reading: Reading, threads: Sequence[FuncOp]) -> bool:
    """Whether nobody else fills its buffers: then the ring's next block is known from the turn."""
    reserves = [bind_of(op.buffer).cb_index for function in threads for op in of_kind(function, CBReserveOp)]
    return all(reserves.count(index) == 1 for index in reading.buffers)


def _starts_at_front(reading: Reading) -> bool:
    """Whether the first block of the loop is the first of each ring, whenever the loop begins."""
    count, around = trip_count(reading.loop), reading.loop.parent_op()
    while around is not None and not isinstance(around, ForOp):
        around = around.parent_op()
    return around is None or (count is not None and all(count % (depth * reading.batch) == 0 for depth in reading.depths))
