"""Loops that move small blocks one by one are marked to move several at a time, where their buffers have room for it.

A block costs a barrier, a hand-over and, through a pipe, a handshake; each takes as long as many tiles on their way. Attribute
``ttl.batch`` of a loop says how many of its turns become one; `ttkernel-batch-transfers` does it. Blocks of a batch lie in one
piece, so a batch divides the depth of each buffer. Half of a buffer stays with who shares it; one that only this loop fills and
empties can be one batch.

With ``deep_buffers`` a buffer that a loop fills from a tensor first gets room for two batches, if L1 has it. More room stops
nobody.

A thread that reserves g blocks at once needs at a block what it would need with g - 1 blocks less in the buffer, and hands over
more. So if nobody stops for ever with that much less room, nobody does with batches. Requires: a kernel that ends. Ensures: every
loop with ``ttl.batch`` is one whose threads still end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace
from math import gcd

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp, YieldOp
from xdsl.ir import Operation

from tilewright.dialects.attributes import SliceType, buffer_type_of, constant_of, i32_attr, text_value
from tilewright.dialects.ttl import thread_kind
from tilewright.dialects.ttl_buffers import (
    ALIAS_OF,
    AttachCBOp,
    BindCBOp,
    CBPopOp,
    CBPushOp,
    CBReserveOp,
    CBWaitOp,
    CopyOp,
    TensorAccessorOp,
    TensorSliceOp,
    WaitOp,
)
from tilewright.dialects.ttl_network import NetPipeOp
from tilewright.dialects.walking import block_ops, erase, insert_before, of_kind, operations
from tilewright.grid import Core, NetSpec
from tilewright.passes.branches import exclude_each_other
from tilewright.passes.buffers import bind_of, functions_of
from tilewright.passes.compiler_buffers import rebound
from tilewright.passes.context import PassContext
from tilewright.passes.read_pace import BATCH_BYTES, FEWEST_BATCHES
from tilewright.passes.validation.communication import surely_ends
from tilewright.passes.validation.communication_trace import pipe_of
from tilewright.records import record

NAME = "ttl-mark-batches"
BATCH = "ttl.batch"

KINDS: tuple[type[Operation], ...] = (
    CBReserveOp, CBWaitOp, CBPushOp, CBPopOp, AttachCBOp, TensorSliceOp, CopyOp, WaitOp, NetPipeOp, YieldOp,
)  # fmt: skip


@record(frozen=False, eq=False)
class Candidate:
    """A loop of a data-movement thread whose turns are alike but for the tiles they name."""

    loop: ForOp
    turns: int
    filled: dict[int, BindCBOp] = field(default_factory=dict[int, BindCBOp])  # buffers it reserves and pushes
    emptied: dict[int, BindCBOp] = field(default_factory=dict[int, BindCBOp])  # those it waits for and pops
    nets: dict[int, NetSpec] = field(default_factory=dict[int, NetSpec])
    reads: bool = False

    @property
    def most(self) -> int:
        """The largest batch that its turns and buffers allow."""
        found = self.turns
        for index, bind in self.filled.items():
            kind = buffer_type_of(bind.results[0])
            depth = kind.factor.data
            room = depth if index in self.emptied else depth // 2
            bytes_ = kind.block_tiles * kind.tile.bytes
            fitting = max(1, min(room, BATCH_BYTES // bytes_, self.turns // FEWEST_BATCHES))
            found = gcd(found, max(size for size in range(1, fitting + 1) if depth % size == 0 and found % size == 0))
        return found


def run(module: ModuleOp, context: PassContext) -> bool:
    known = len(context.trace.decisions)  # every batch and deeper buffer is one
    unsaid = [loop.attributes.pop(BATCH, None) for loop in of_kind(module, ForOp)]  # text may say so of any loop
    threads = [function for function in functions_of(module) if thread_kind(function) != "compute"]
    candidates = [_candidate(loop) for function in threads for loop in of_kind(function, ForOp)]
    found = [candidate for candidate in candidates if candidate is not None and _alone(candidate, threads)]
    if context.options.deep_buffers:
        found = [_with_room(candidate, module, context) for candidate in found]
    nets = _whole_nets(found, threads, context.grid)
    for group in _groups(found, nets):
        size = gcd(*(candidate.most for candidate in group))
        if size < 2 or not any(candidate.reads for candidate in group):
            continue
        rooms = {index: _depth(bind) - size + 1 for candidate in group for index, bind in candidate.filled.items()}
        if not surely_ends(module, context.grid, rooms):
            continue
        for candidate in group:
            candidate.loop.attributes[BATCH] = i32_attr(size)
        names = ", ".join(f"'{bind.attributes['name'].data}'" for candidate in group for bind in candidate.filled.values())  # pyright: ignore
        context.trace.decide(NAME, f"{size} blocks of {names} move at a time", "one barrier and one hand-over for all of them")
    return any(each is not None for each in unsaid) or len(context.trace.decisions) > known


def _with_room(candidate: Candidate, module: ModuleOp, context: PassContext) -> Candidate:
    """The candidate, with buffers that hold two of its batches where they may be deeper."""
    if not candidate.reads or candidate.nets:
        return candidate
    for index, bind in candidate.filled.items():
        kind = buffer_type_of(bind.results[0])
        bytes_ = kind.block_tiles * kind.tile.bytes
        fitting = min(BATCH_BYTES // bytes_, candidate.turns // FEWEST_BATCHES)
        depth = 2 * max((size for size in range(2, fitting + 1) if candidate.turns % size == 0), default=0)
        more = (depth - kind.factor.data) * bytes_
        # One block of room is a choice of the author's; a block that is waited for in two places has its number in the text.
        if not 2 <= kind.factor.data < depth or more > context.l1_left // 4 or not _waited_for_once(index, module):
            continue
        candidate.filled[index] = _deepen(index, depth, candidate, module)
        memory, name = context.trace.memory, text_value(bind, "name")
        if memory is not None:
            context.trace.memory = replace(memory, buffers={**memory.buffers, name: memory.buffers.get(name, 0) + more})
        title = f"'{name}' holds {depth} blocks instead of {kind.factor.data}"
        context.trace.decide(NAME, title, f"room for two batches, {more} bytes of L1")
    return candidate


def _waited_for_once(index: int, module: ModuleOp) -> bool:
    waits = [op for op in of_kind(module, CBWaitOp) if bind_of(op.buffer).cb_index == index]
    attached = [op for op in of_kind(module, AttachCBOp) if bind_of(op.buffer).cb_index == index]
    return len(waits) == 1 and not any(op.tile_offset or op.first_tile for op in attached)


def _deepen(index: int, depth: int, candidate: Candidate, module: ModuleOp) -> BindCBOp:
    """Binds the buffer anew in all threads; gives the bind of the candidate's."""
    found: BindCBOp | None = None
    for bind in [op for op in of_kind(module, BindCBOp) if op.cb_index == index]:
        deeper = rebound(bind, depth, index)
        insert_before([deeper], bind)
        bind.results[0].replace_all_uses_with(deeper.results[0])
        if bind is candidate.filled[index]:
            found = deeper
        erase(bind)
    assert found is not None
    return found


def _depth(bind: BindCBOp) -> int:
    kind = buffer_type_of(bind.results[0])
    return kind.factor.data


def _candidate(loop: ForOp) -> Candidate | None:
    bounds = [constant_of(value) for value in (loop.lb, loop.ub, loop.step)]
    if loop.results or bounds[0] != 0 or bounds[1] is None or bounds[1] < 2 or bounds[2] != 1:
        return None
    found = Candidate(loop, bounds[1])
    seen: set[tuple[type[Operation], int]] = set()
    moved: dict[bool, set[int]] = {True: set(), False: set()}  # tensors that are read, and written
    for op in block_ops(loop.body.block):
        if op.name.startswith("arith."):
            continue
        if not isinstance(op, KINDS) or (isinstance(op, NetPipeOp) and op.operands):
            return None
        if isinstance(op, (CBReserveOp, CBWaitOp, CBPushOp, CBPopOp)):
            bind = bind_of(op.operands[0])
            key = (type(op), bind.cb_index)
            if key in seen or "tiles" in op.attributes or bind.backed or ALIAS_OF in bind.attributes:
                return None
            seen.add(key)
            (found.filled if isinstance(op, (CBReserveOp, CBPushOp)) else found.emptied)[bind.cb_index] = bind
        elif isinstance(op, CopyOp):
            pipe = pipe_of(op)
            found.reads = found.reads or (pipe is None and isinstance(op.source.type, SliceType))
            if pipe is not None:
                found.nets[pipe.net.number] = pipe.net
            for value in op.operands:
                if isinstance(value.owner, TensorSliceOp) and isinstance(value.owner.accessor.owner, TensorAccessorOp):
                    moved[value is op.source].add(value.owner.accessor.owner.tensor_index)
    if not moved[True].isdisjoint(moved[False]):
        return None  # a turn may read what the one before it wrote
    whole = all((kind, index) in seen for index in found.filled for kind in (CBReserveOp, CBPushOp))
    whole = whole and all((kind, index) in seen for index in found.emptied for kind in (CBWaitOp, CBPopOp))
    return found if whole and found.filled and found.emptied.keys() <= found.filled.keys() else None


def _alone(candidate: Candidate, threads: Iterable[FuncOp]) -> bool:
    """Whether nobody else fills its buffers on a core that runs it: else a batch might lie around the end of one."""
    turns = candidate.loop.body.block
    for op in (op for function in threads for op in operations(function) if op.parent is not turns):
        used = candidate.filled if isinstance(op, CBReserveOp) else candidate.emptied if isinstance(op, CBWaitOp) else {}
        if used and bind_of(op.operands[0]).cb_index in used and not exclude_each_other(op, candidate.loop):
            return False
    return True


def _whole_nets(found: list[Candidate], threads: Iterable[FuncOp], grid: Core) -> set[int]:
    """Nets all of whose copies stand in candidates, one into each pipe and one out of it."""
    loops = {id(candidate.loop.body.block) for candidate in found}
    copies: dict[int, list[CopyOp]] = {}
    specs: dict[int, NetSpec] = {}
    for function in threads:
        for copy in of_kind(function, CopyOp):
            pipe = pipe_of(copy)
            if pipe is not None:
                copies.setdefault(pipe.net.number, []).append(copy)
                specs[pipe.net.number] = pipe.net
    whole: set[int] = set()
    for number, uses in copies.items():
        net = specs[number]
        returns = any(pipe.source_core(grid) in pipe.target_cores(grid) for pipe in net.pipes)
        if len(uses) == 2 and all(id(use.parent) in loops for use in uses) and not net.meets(grid) and not returns:
            whole.add(number)
    return whole


def _groups(found: list[Candidate], nets: set[int]) -> list[list[Candidate]]:
    """Loops that must take batches of the same size: the two ends of a net, and what these have in common with others."""
    groups: list[list[Candidate]] = []
    for candidate in found:
        if not candidate.nets.keys() <= nets:
            continue
        joined = [group for group in groups if any(candidate.nets.keys() & other.nets.keys() for other in group)]
        groups = [group for group in groups if group not in joined]
        groups.append([candidate, *(other for group in joined for other in group)])
    ends = {number: sum(number in candidate.nets for candidate in found) for number in nets}
    return [group for group in groups if all(ends[number] == 2 for candidate in group for number in candidate.nets)]
