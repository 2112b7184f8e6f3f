"""Copies through pipes as NoC writes with a handshake.

The receiver tells the source that a block is reserved, and where; the source writes into it and then tells the receiver. Both
words are semaphores of the net:

* ``ready``, at the source: every receiver adds 2^24 and the place of its block (distance from the semaphore, in units of 16
  bytes). When the count is complete, the mean of the places is where the data goes: it is the same on all receivers.
* ``valid``, at each receiver: 1 when the data has arrived.
"""

from __future__ import annotations

from xdsl.dialects.arith import CmpiOp
from xdsl.dialects.builtin import IntegerAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import IfOp, YieldOp
from xdsl.ir import Block, Operation, Region, SSAValue

from tilewright.dialects.attributes import I1, INDEX, CBType, PipeType, i32_attr, text_attr
from tilewright.dialects.ttl_buffers import CopyOp, WaitOp
from tilewright.dialects.ttl_network import NetPipeOp
from tilewright.dialects.walking import erase, operations
from tilewright.grid import COUNT_SHIFT, Core, Field, NetSpec, rectangle
from tilewright.passes.kernel_calls.buffers import block_place, block_pointer, call
from tilewright.passes.kernel_calls.index_arithmetic import IndexBuilder, Number
from tilewright.passes.kernel_calls.places import Places, insert
from tilewright.records import record


@record(kw_only=True)
class NetSemaphores:
    """Numbers of a net's semaphores; ``ready`` is the first of as many as a source has pipes."""

    ready: int
    valid: int
    one: int  # a word that is always 1


@record(kw_only=True)
class NetPlan:
    """What all threads must agree on about one net."""

    net: NetSpec
    semaphores: NetSemaphores
    several: bool  # a source has more than one pipe
    meets: bool  # the source tells the destination whose turn it is
    posts_own: frozenset[str]  # threads that send and receive in the net: they announce their own block before they send


Key = tuple[Core, int]  # a core, and which of its pipes


@record(kw_only=True)
class Sending:
    """One copy into a pipe: from where, how much, and to where on whom."""

    pipe: NetPipeOp
    plan: NetPlan
    receivers: dict[Key, tuple[Core, ...]]
    pointer: SSAValue
    size: int
    target: SSAValue  # L1 address on every receiver


def is_pipe_copy(op: CopyOp) -> bool:
    return any(isinstance(operand.type, PipeType) for operand in op.operands)


def pipe_of(op: CopyOp) -> NetPipeOp:
    owner = next(operand.owner for operand in op.operands if isinstance(operand.type, PipeType))
    assert isinstance(owner, NetPipeOp)
    return owner


def is_send(op: CopyOp) -> bool:
    return isinstance(op.operands[1].type, PipeType)


class PipeConverter:
    def __init__(
        self,
        function: FuncOp,
        indices: IndexBuilder,
        buffers: dict[SSAValue, SSAValue],
        places: Places,
        plans: dict[int, NetPlan],
    ) -> None:
        self.function = function
        self.indices = indices
        self.buffers = buffers
        self.places = places
        self.plans = plans
        self._semaphores: dict[int, SSAValue] = {}

    def convert(self, op: Operation) -> bool:
        if isinstance(op, CopyOp) and is_pipe_copy(op):
            (self._send if is_send(op) else self._receive)(op)
            return True
        if isinstance(op, WaitOp) and any(is_pipe_copy(copy) for copy in _copies(op)):
            self._wait(op)
            return True
        return isinstance(op, NetPipeOp)

    # Numbers of a pipe ------------------------------------------------------------------------------------------------------

    def _entries(self, pipe: NetPipeOp) -> dict[Key, int]:
        """Pipe number by core and position among the core's pipes."""
        ends = pipe.net.ends(pipe.side, self.places.grid)
        return {(core, position): number for core, pipes in ends.items() for position, number in enumerate(pipes)}

    def _number(self, pipe: NetPipeOp, field: Field, name: str, before: Operation) -> Number:
        position = pipe.operands[0] if pipe.operands else None
        return self.places.number(field, position, name, before)

    def _place(self, pipe: NetPipeOp, cores: dict[Key, Core], name: str, before: Operation) -> tuple[Number, Number]:
        """Column and row on the chip of a core per pipe, in numbers called ``name`` with x and y in it."""
        places = {key: self.places.chip[core] for key, core in cores.items()}
        x, y = (
            self._number(pipe, {key: place[axis] for key, place in places.items()}, name.format("xy"[axis]), before)
            for axis in range(2)
        )
        return x, y

    def semaphore(self, number: int, name: str, initial: int = 0) -> SSAValue:
        if number not in self._semaphores:
            attributes = {"index": i32_attr(number), "initial": i32_attr(initial), "name": text_attr(name)}
            op = call("get_semaphore", (), [INDEX], attributes)
            op.results[0].name_hint = name
            entry = self.function.body.block
            assert entry.first_op is not None
            entry.insert_op_before(op, entry.first_op)
            self._semaphores[number] = op.results[0]
        return self._semaphores[number]

    def _ready(self, plan: NetPlan, pipe: NetPipeOp, before: Operation) -> SSAValue:
        """The ready word of this pipe; a source with several pipes has one for each."""
        first, name = plan.semaphores.ready, f"{plan.net.name}_ready"
        if not plan.several:
            return self.semaphore(first, name)
        ranks = {number: rank for pipes in plan.net.by_source(self.places.grid).values() for rank, number in enumerate(pipes)}
        field = {key: ranks[number] for key, number in self._entries(pipe).items()}
        rank = self._number(pipe, field, f"{plan.net.name}_rank", before)
        count = plan.semaphores.valid - first
        attributes = {"index": i32_attr(first), "count": i32_attr(count), "name": text_attr(name)}
        op = call("get_semaphore", [self.indices.value(rank)], [INDEX], attributes, before)
        op.results[0].name_hint = name
        return insert(op, before)

    def _valid(self, plan: NetPlan) -> SSAValue:
        return self.semaphore(plan.semaphores.valid, f"{plan.net.name}_valid")

    # Sending ----------------------------------------------------------------------------------------------------------------

    def _send(self, op: CopyOp) -> None:
        pipe = pipe_of(op)
        plan = self.plans[pipe.net.number]
        grid = self.places.grid
        receivers = {key: plan.net.pipes[number].target_cores(grid) for key, number in self._entries(pipe).items()}
        pointer, size = self._block(op.operands[0], op)
        ready = self._ready(plan, pipe, op)
        if self.function.sym_name.data in plan.posts_own:
            self._post_own(op, pipe, plan, ready)
        if plan.meets:
            place = self._only_receiver(pipe, receivers, op)
            self._call("noc_semaphore_inc", [self.places.address(*place, self._valid(plan), op), self.indices.value(1)], op)
        count = self._number(pipe, {key: len(cores) for key, cores in receivers.items()}, "receivers", op)
        wanted = self.indices.multiply(count, 1 << COUNT_SHIFT, op)
        self._call("noc_semaphore_wait_min", [ready, self.indices.value(wanted)], op)
        target = insert(call("pipe_target", [ready, self.indices.value(count)], [INDEX], like=op), op)
        target.name_hint = "target"
        self._call("noc_semaphore_set", [ready, self.indices.value(0)], op)
        self._deliver(op, Sending(pipe=pipe, plan=plan, receivers=receivers, pointer=pointer, size=size, target=target))

    def _deliver(self, op: CopyOp, sending: Sending) -> None:
        chip, receivers = self.places.chip, sending.receivers
        boxes = {key: rectangle([chip[core] for core in cores]) for key, cores in receivers.items()}
        own = [chip[key[0]] in [chip[core] for core in cores] for key, cores in receivers.items()]
        if all(len(cores) == 1 for cores in receivers.values()):
            self._unicast(op, sending, self._only_receiver(sending.pipe, receivers, op))
            return
        plain = all(box is not None for box in boxes.values()) and (all(own) or not any(own))
        if plain and all(len(cores) - mine >= 1 for cores, mine in zip(receivers.values(), own, strict=True)):
            self._multicast(op, sending, {key: box for key, box in boxes.items() if box}, own[0])
            return
        self._one_by_one(op, sending)

    def _only_receiver(self, pipe: NetPipeOp, receivers: dict[Key, tuple[Core, ...]], op: Operation) -> tuple[Number, Number]:
        return self._place(pipe, {key: cores[0] for key, cores in receivers.items()}, "to_{}", op)

    def _unicast(self, op: Operation, sending: Sending, place: tuple[Number, Number]) -> None:
        address = self.places.address(*place, sending.target, op)
        self._call("noc_async_write", [sending.pointer, address, self.indices.value(sending.size)], op)
        self._call("noc_async_write_barrier", [], op)
        valid = self.places.address(*place, self._valid(sending.plan), op)
        self._call("noc_semaphore_inc", [valid, self.indices.value(1)], op)

    def _multicast(self, op: Operation, sending: Sending, boxes: dict[Key, tuple[int, int, int, int]], own: bool) -> None:
        pipe, plan, receivers = sending.pipe, sending.plan, sending.receivers
        names = ("first_x", "first_y", "last_x", "last_y")
        x0, y0, x1, y1 = (
            self._number(pipe, {key: box[corner] for key, box in boxes.items()}, names[corner], op) for corner in range(4)
        )
        corners = (x0, y0, x1, y1)
        count = self.indices.value(self._number(pipe, {k: len(cores) for k, cores in receivers.items()}, "receivers", op))
        others = self.indices.value(
            self._number(pipe, {k: len(cores) - own for k, cores in receivers.items()}, "other_receivers", op)
        )
        address = self.places.multicast_address(corners, sending.target, op)
        name = "noc_async_write_multicast_loopback_src" if own else "noc_async_write_multicast"
        self._call(name, [sending.pointer, address, self.indices.value(sending.size), count], op)
        self._call("noc_async_writes_flushed", [], op)
        valid = self.places.multicast_address(corners, self._valid(plan), op)
        one = self.semaphore(plan.semaphores.one, "one", 1)
        self._call("noc_semaphore_set_multicast", [one, valid, others], op)
        if own:
            self._call("noc_async_write_barrier", [], op)
            self._call("noc_semaphore_set", [self._valid(plan), self.indices.value(1)], op)

    def _one_by_one(self, op: CopyOp, sending: Sending) -> None:
        """Receivers that form no rectangle: one write each."""
        receivers = sending.receivers
        for turn in range(max(len(cores) for cores in receivers.values())):
            reached = {key: cores[turn] for key, cores in receivers.items() if turn < len(cores)}
            place = self._place(sending.pipe, reached, f"to_{{}}{turn}", op)
            if len(reached) == len(receivers):
                self._unicast(op, sending, place)
                continue
            flags = {key: int(key in reached) for key in receivers}
            anchor = self.guarded(op, self._number(sending.pipe, flags, f"has_target{turn}", op))
            self._unicast(anchor, sending, place)
            drop_anchor(anchor)

    # Receiving --------------------------------------------------------------------------------------------------------------

    def _receive(self, op: CopyOp) -> None:
        pipe = pipe_of(op)
        plan = self.plans[pipe.net.number]
        pointer, _ = self._block(op.operands[1], op)
        ready = self._ready(plan, pipe, op)
        if plan.meets:
            self._call("noc_semaphore_wait", [self._valid(plan), self.indices.value(1)], op)
            self._call("noc_semaphore_set", [self._valid(plan), self.indices.value(0)], op)
        anchor: Operation = op
        if self.function.sym_name.data in plan.posts_own:
            # The source has announced its own block already.
            flags = {key: int(source != key[0]) for key, source in self._sources(pipe, plan).items()}
            anchor = self.guarded(op, self._number(pipe, flags, "not_own", op))
        self._post(anchor, pipe, plan, ready, pointer)
        if anchor is not op:
            drop_anchor(anchor)

    def _post(self, before: Operation, pipe: NetPipeOp, plan: NetPlan, ready: SSAValue, pointer: SSAValue) -> None:
        self._announce(before, self._place(pipe, self._sources(pipe, plan), "from_{}", before), ready, pointer)

    def _sources(self, pipe: NetPipeOp, plan: NetPlan) -> dict[Key, Core]:
        return {key: plan.net.pipes[number].source_core(self.places.grid) for key, number in self._entries(pipe).items()}

    def _announce(self, before: Operation, place: tuple[Number, Number], ready: SSAValue, pointer: SSAValue) -> None:
        amount = insert(call("pipe_announcement", [pointer, ready], [INDEX], like=before), before)
        self._call("noc_semaphore_inc", [self.places.address(*place, ready, before), amount], before)

    def _post_own(self, op: CopyOp, pipe: NetPipeOp, plan: NetPlan, ready: SSAValue) -> None:
        """A source that receives from itself later in the same thread reserves that block now and announces it."""
        receive = next(
            other
            for other in operations(self.function)
            if isinstance(other, CopyOp)
            and is_pipe_copy(other)
            and not is_send(other)
            and pipe_of(other).net.number == plan.net.number
        )
        buffer, _, _ = block_place(receive.operands[1])
        kind = buffer.type
        assert isinstance(kind, CBType)
        handle = self.buffers[buffer]
        self._call("cb_reserve_back", [handle, self.indices.value(kind.block_tiles)], op)
        pointer = insert(call("get_write_ptr", [handle], [INDEX], like=op), op)
        pointer.name_hint = "own_block"
        self._announce(op, self._place(pipe, {key: key[0] for key in self._entries(pipe)}, "own_{}", op), ready, pointer)

    def _wait(self, op: WaitOp) -> None:
        for copy in _copies(op):
            assert is_pipe_copy(copy), "a wait is for one copy"
            if is_send(copy):
                if not _written_and_awaited(op):
                    self._call("noc_async_write_barrier", [], op)
                continue
            valid = self._valid(self.plans[pipe_of(copy).net.number])
            self._call("noc_semaphore_wait", [valid, self.indices.value(1)], op)
            self._call("noc_semaphore_set", [valid, self.indices.value(0)], op)

    # Pieces -----------------------------------------------------------------------------------------------------------------

    def _block(self, value: SSAValue, op: Operation) -> tuple[SSAValue, int]:
        """L1 address and bytes of a block."""
        buffer, offset, written = block_place(value)
        kind = buffer.type
        assert isinstance(kind, CBType)
        pointer = block_pointer(self.buffers[buffer], op, written=written)
        place = self.indices.add(pointer, offset * kind.tile.bytes, op)
        return self.indices.value(place), kind.block_tiles * kind.tile.bytes

    def _call(self, name: str, operands: list[SSAValue], before: Operation) -> None:
        block = before.parent
        assert block is not None
        block.insert_op_before(call(name, operands, like=before), before)

    def guarded(self, op: Operation, flag: Number) -> Operation:
        """An anchor inside ``if flag``; the op itself if the flag is always set."""
        if flag == 1:
            return op
        test = CmpiOp.create(
            operands=[self.indices.value(flag), self.indices.value(0)],
            result_types=[I1],
            properties={"predicate": IntegerAttr(1, 64)},
        )
        insert(test, op)
        body = Block()
        anchor = call("noc_async_read_barrier", like=op)
        body.add_op(anchor)
        body.add_op(YieldOp.create())
        branch = IfOp.create(operands=[test.results[0]], regions=[Region(body), Region()])
        branch.location = op.location
        block = op.parent
        assert block is not None
        block.insert_op_before(branch, op)
        return anchor


def _copies(op: WaitOp) -> list[CopyOp]:
    return [operand.owner for operand in op.operands if isinstance(operand.owner, CopyOp)]


def _written_and_awaited(op: Operation) -> bool:
    """A barrier stands before ``op`` and no write after it; increments are none, and have a barrier of their own at the end."""
    earlier = op.prev_op
    while earlier is not None and not earlier.regions:
        if earlier.name == "ttkernel.noc_async_write_barrier":
            return True
        if earlier.name.startswith(("ttkernel.noc_async_write", "ttkernel.noc_semaphore_set_")):
            return False
        earlier = earlier.prev_op
    return False


def drop_anchor(anchor: Operation) -> None:
    if anchor.name == "ttkernel.noc_async_read_barrier":
        erase(anchor)
