"""What cores say to each other, as kernel calls: copies through pipes and semaphores."""

from __future__ import annotations

from xdsl.dialects.arith import CmpiOp
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import IfOp, YieldOp
from xdsl.ir import Block, Operation, Region, SSAValue

from tilewright.diagnostics import fail
from tilewright.dialects.attributes import I1, INDEX, PipeType, buffer_type_of, i32_attr, text_attr
from tilewright.dialects.ttl_buffers import CopyOp, WaitOp
from tilewright.dialects.ttl_network import (
    CreateSemaphoreOp,
    GetRemoteMulticastSemaphoreOp,
    GetRemoteSemaphoreOp,
    NetPipeOp,
    SemaphoreIncOp,
    SemaphoreSetOp,
    SemaphoreWaitOp,
    WaitAnyOp,
    nested_value,
)
from tilewright.dialects.walking import erase, insert_before, operations, place_of
from tilewright.grid import COUNT_SHIFT, Core, Field, NetSpec, PipeSpec, cores_of, rectangle
from tilewright.passes.context import PassContext
from tilewright.passes.kernel_calls.buffers import IndexBuilder, Number, block_place, block_pointer, call
from tilewright.passes.kernel_calls.places import Places, Words, insert, numbered, put
from tilewright.records import record

# Pipes --------------------------------------------------------------------------------------------------------------------
# Copies through pipes as NoC writes with a handshake.
#
# The receiver tells the source that a block is reserved, and where; the source writes into it and then tells the receiver. Both
# words are semaphores of the net:
#
# * ``ready``, at the source: every receiver adds 2^24 and the place of its block (distance from the semaphore, in units of 16
#   bytes). When the count is complete, the mean of the places is where the data goes: it is the same on all receivers.
# * ``valid``, at each receiver: 1 when the data has arrived.
#
# Data and signal take the same way on the same virtual channel, so the signal need not wait for the data's acknowledgement: it
# follows when the data has left, and then the source's block is free too. A multicast is linked to its signal, which then
# does not reserve the way again. What is under way when a thread ends is awaited there.


@record(kw_only=True)
class NetPlan:
    """What all threads must agree on about one net."""

    net: NetSpec
    ready: int  # number of the first semaphore for announcements; there are as many as a source has pipes
    valid: int  # number of the semaphore that says that data has arrived
    one: int  # number of a word that is always 1
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
    return isinstance(op.target.type, PipeType)


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
        if isinstance(op, WaitAnyOp):
            copies = [operand.owner for operand in op.operands[1:]]
            arrived = [self._valid(self.plans[pipe_of(copy).net.number]) for copy in copies if isinstance(copy, CopyOp)]
            ready = insert(call("wait_any", [op.start, *arrived], [INDEX], like=op), op)
            ready.name_hint = "ready"
            op.results[0].replace_all_uses_with(ready)
            return True
        return isinstance(op, NetPipeOp)

    # Numbers of a pipe ------------------------------------------------------------------------------------------------------

    def _entries(self, pipe: NetPipeOp) -> dict[Key, int]:
        """Pipe number by core and position among the core's pipes."""
        ends = pipe.net.ends(pipe.side, self.places.grid)
        return {(core, position): number for core, pipes in ends.items() for position, number in enumerate(pipes)}

    def _number(self, pipe: NetPipeOp, field: Field, name: str, before: Operation) -> Number:
        position = pipe.number if pipe.operands else None
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
        first, name = plan.ready, f"{plan.net.name}_ready"
        if not plan.several:
            return self.semaphore(first, name)
        ranks = {number: rank for pipes in plan.net.by_source(self.places.grid).values() for rank, number in enumerate(pipes)}
        field = {key: ranks[number] for key, number in self._entries(pipe).items()}
        rank = self._number(pipe, field, f"{plan.net.name}_rank", before)
        count = plan.valid - first
        attributes = {"index": i32_attr(first), "count": i32_attr(count), "name": text_attr(name)}
        op = call("get_semaphore", [self.indices.value(rank)], [INDEX], attributes, before)
        op.results[0].name_hint = name
        return insert(op, before)

    def _valid(self, plan: NetPlan) -> SSAValue:
        return self.semaphore(plan.valid, f"{plan.net.name}_valid")

    # Sending ----------------------------------------------------------------------------------------------------------------

    def _send(self, op: CopyOp) -> None:
        pipe = pipe_of(op)
        plan = self.plans[pipe.net.number]
        grid = self.places.grid
        receivers = {key: plan.net.pipes[number].target_cores(grid) for key, number in self._entries(pipe).items()}
        pointer, size = self._block(op.source, op)
        ready = self._ready(plan, pipe, op)
        if self.function.sym_name.data in plan.posts_own:
            self._post_own(op, pipe, plan, ready)
        if plan.meets:
            place = self._only_receiver(pipe, receivers, op)
            put("noc_semaphore_inc", [self.places.address(*place, self._valid(plan), op), self.indices.value(1)], op)
        count = self._number(pipe, {key: len(cores) for key, cores in receivers.items()}, "receivers", op)
        wanted = self.indices.multiply(count, 1 << COUNT_SHIFT, op)
        put("noc_semaphore_wait_min", [ready, self.indices.value(wanted)], op)
        target = insert(call("pipe_target", [ready, self.indices.value(count)], [INDEX], like=op), op)
        target.name_hint = "target"
        put("noc_semaphore_set", [ready, self.indices.value(0)], op)
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
        put("noc_async_write", [sending.pointer, address, self.indices.value(sending.size)], op)
        put("noc_async_writes_flushed", [], op)
        valid = self.places.address(*place, self._valid(sending.plan), op)
        put("noc_semaphore_inc", [valid, self.indices.value(1)], op)

    def _multicast(self, op: Operation, sending: Sending, boxes: dict[Key, tuple[int, int, int, int]], own: bool) -> None:
        pipe, plan, receivers = sending.pipe, sending.plan, sending.receivers
        names = ("first_x", "first_y", "last_x", "last_y")
        x0, y0, x1, y1 = (
            self._number(pipe, {key: box[corner] for key, box in boxes.items()}, names[corner], op) for corner in range(4)
        )
        corners = (x0, y0, x1, y1)
        receiving = {key: len(cores) for key, cores in receivers.items()}
        count = self.indices.value(self._number(pipe, receiving, "receivers", op))
        address = self.places.multicast_address(corners, sending.target, op)
        suffix = "_loopback_src" if own else ""
        operands = [sending.pointer, address, self.indices.value(sending.size), count]
        insert_before(call(f"noc_async_write_multicast{suffix}", operands, attributes={"linked": UnitAttr()}, like=op), op)
        put("noc_async_writes_flushed", [], op)
        valid = self.places.multicast_address(corners, self._valid(plan), op)
        put(f"noc_semaphore_set_multicast{suffix}", [self.semaphore(plan.one, "one", 1), valid, count], op)

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
        pointer, _ = self._block(op.target, op)
        ready = self._ready(plan, pipe, op)
        if plan.meets:
            put("noc_semaphore_wait", [self._valid(plan), self.indices.value(1)], op)
            put("noc_semaphore_set", [self._valid(plan), self.indices.value(0)], op)
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
        put("noc_semaphore_inc", [self.places.address(*place, ready, before), amount], before)

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
        buffer, _, _ = block_place(receive.target)
        kind = buffer_type_of(buffer)
        handle = self.buffers[buffer]
        put("cb_reserve_back", [handle, self.indices.value(kind.block_tiles)], op)
        pointer = insert(call("get_write_ptr", [handle], [INDEX], like=op), op)
        pointer.name_hint = "own_block"
        self._announce(op, self._place(pipe, {key: key[0] for key in self._entries(pipe)}, "own_{}", op), ready, pointer)

    def _wait(self, op: WaitOp) -> None:
        for copy in _copies(op):
            assert is_pipe_copy(copy), "a wait is for one copy"
            if is_send(copy):  # the block has left already: who receives it is told behind it
                continue
            valid = self._valid(self.plans[pipe_of(copy).net.number])
            put("noc_semaphore_wait", [valid, self.indices.value(1)], op)
            put("noc_semaphore_set", [valid, self.indices.value(0)], op)

    # Pieces -----------------------------------------------------------------------------------------------------------------

    def _block(self, value: SSAValue, op: Operation) -> tuple[SSAValue, int]:
        """L1 address and bytes of a block."""
        buffer, offset, written = block_place(value)
        kind = buffer_type_of(buffer)
        pointer = block_pointer(self.buffers[buffer], op, written=written)
        place = self.indices.add(pointer, offset * kind.tile.bytes, op)
        return self.indices.value(place), kind.block_tiles * kind.tile.bytes

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
        insert_before(branch, op)
        return anchor


def _copies(op: WaitOp) -> list[CopyOp]:
    return [operand.owner for operand in op.operands if isinstance(operand.owner, CopyOp)]


def drop_anchor(anchor: Operation) -> None:
    if anchor.name == "ttkernel.noc_async_read_barrier":
        erase(anchor)


# Semaphores ---------------------------------------------------------------------------------------------------------------
# Semaphores of the language as kernel calls, and the numbers of all semaphores of a kernel.


@record(kw_only=True)
class NetworkPlan:
    """Semaphore numbers of a whole kernel."""

    nets: dict[int, NetPlan]
    outboxes: dict[str, int]  # by thread: a word that holds a value on its way to another core


def plan_network(module: ModuleOp, context: PassContext) -> NetworkPlan:
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    threads = {function.sym_name.data: operations(function) for function in functions}
    created = [op for ops in threads.values() for op in ops if isinstance(op, CreateSemaphoreOp)]
    copies = {name: [op for op in ops if isinstance(op, CopyOp) and is_pipe_copy(op)] for name, ops in threads.items()}
    following = 1 + max((op.number for op in created), default=-1)
    nets, following = _plan_nets(copies, context.grid, following, context.chip.max_semaphores)
    outboxes: dict[str, int] = {}
    for name, ops in threads.items():
        if any(isinstance(op, SemaphoreSetOp) and _is_remote(op) for op in ops):
            outboxes[name] = following
            following += 1
    limit = context.chip.max_semaphores
    if following > limit:
        op = created[0] if created else next(op for ops in copies.values() for op in ops)
        raise fail(
            "TW305",
            f"the kernel needs {following} semaphores, a core of {context.chip.name} has {limit}",
            place_of(op),
            help="each net takes one per pipe of its busiest source, and one more; let a tree or ring pass data on",
        )
    return NetworkPlan(nets=nets, outboxes=outboxes)


def _plan_nets(copies: dict[str, list[CopyOp]], grid: Core, following: int, limit: int) -> tuple[dict[int, NetPlan], int]:
    """``copies``: those into and out of pipes, by thread."""
    plans: dict[int, NetPlan] = {}
    nets = dict(sorted({pipe_of(op).net.number: pipe_of(op).net for ops in copies.values() for op in ops}.items()))
    one = following
    if any(not pipe.single for net in nets.values() for pipe in net.pipes):
        following += 1
    words: list[Words] = []
    for net in nets.values():
        sources = net.by_source(grid)
        most = 1 if net.meets(grid) else max(len(pipes) for pipes in sources.values())
        words.append(Words(most, frozenset(sources)))
        words.append(Words(1, frozenset(core for pipe in net.pipes for core in pipe.target_cores(grid))))
    numbers, following = numbered(words, following, limit)
    for index, (number, net) in enumerate(nets.items()):
        loops = any(pipe.source_core(grid) in pipe.target_cores(grid) for pipe in net.pipes)
        both = {name for name, ops in copies.items() if len({is_send(op) for op in ops if pipe_of(op).net.number == number}) == 2}
        own = frozenset(both if loops else ())
        ready, valid = numbers[2 * index : 2 * index + 2]
        several = words[2 * index].count > 1
        plans[number] = NetPlan(
            net=net, ready=ready, valid=valid, one=one, several=several, meets=net.meets(grid), posts_own=own
        )  # fmt: skip
    return plans, following


def _is_remote(op: Operation) -> bool:
    return not isinstance(op.operands[0].owner, CreateSemaphoreOp)


class SemaphoreConverter:
    def __init__(self, pipes: PipeConverter, plan: NetworkPlan) -> None:
        self.pipes = pipes
        self.places = pipes.places
        self.indices = pipes.indices
        self.outbox = plan.outboxes.get(pipes.function.sym_name.data)

    def convert(self, op: Operation) -> bool:
        if isinstance(op, SemaphoreWaitOp):
            name = "noc_semaphore_wait_min" if op.at_least else "noc_semaphore_wait"
            put(name, [self._own(op.semaphore), op.value], op)
        elif isinstance(op, SemaphoreIncOp):
            self._increase(op)
        elif isinstance(op, SemaphoreSetOp):
            self._set(op)
        else:
            return isinstance(op, (CreateSemaphoreOp, GetRemoteSemaphoreOp, GetRemoteMulticastSemaphoreOp))
        return True

    def _own(self, value: SSAValue) -> SSAValue:
        """The semaphore behind a value, as this core's address; every core has it at the same one."""
        owner = value.owner
        if isinstance(owner, (GetRemoteSemaphoreOp, GetRemoteMulticastSemaphoreOp)):
            return self._own(owner.semaphore)
        assert isinstance(owner, CreateSemaphoreOp)
        return self.pipes.semaphore(owner.number, owner.semaphore_name, owner.initial)

    def _address(self, op: Operation) -> SSAValue:
        """NoC address of the semaphore an op changes: another core's, or this one's."""
        owner = op.operands[0].owner
        if isinstance(owner, GetRemoteSemaphoreOp):
            given = owner.attributes.get("core")
            core = [self.indices.value(place) for place in nested_value(given)] if given is not None else list(owner.operands[1:])
            x, y = self.places.of_core(core, op)
        else:
            own = {(core, 0): place for core, place in self.places.chip.items()}
            x, y = (
                self.places.number({key: place[axis] for key, place in own.items()}, None, f"own_{'xy'[axis]}", op)
                for axis in range(2)
            )
        return self.places.address(x, y, self._own(op.operands[0]), op)

    def _increase(self, op: SemaphoreIncOp) -> None:
        put("noc_semaphore_inc", [self._address(op), op.value], op)

    def _set(self, op: SemaphoreSetOp) -> None:
        owner = op.semaphore.owner
        if isinstance(owner, CreateSemaphoreOp):
            put("noc_semaphore_set", [self._own(op.semaphore), op.value], op)
            return
        assert self.outbox is not None
        outbox = self.pipes.semaphore(self.outbox, "outbox")
        put("noc_semaphore_set", [outbox, op.value], op)
        if isinstance(owner, GetRemoteSemaphoreOp):
            put("noc_semaphore_set_remote", [outbox, self._address(op)], op)
        else:
            assert isinstance(owner, GetRemoteMulticastSemaphoreOp)
            self._set_range(op, owner, outbox)
        put("noc_async_write_barrier", [], op)  # the word may be used again

    def _set_range(self, op: SemaphoreSetOp, owner: GetRemoteMulticastSemaphoreOp, outbox: SSAValue) -> None:
        grid = self.places.grid
        cores = cores_of(grid)
        given = owner.attributes.get("core_range")
        if given is not None:
            cores = PipeSpec((0,) * len(grid), nested_value(given), False).target_cores(grid)
        box = rectangle([self.places.chip[core] for core in cores])
        semaphore = self._own(op.semaphore)
        inside = {(core, 0): int(core in cores) for core in cores_of(grid)}
        if box is None or len(cores) == 1:  # a multicast that reaches nobody but its sender would never be acknowledged
            for core in cores:
                x, y = self.places.chip[core]
                put("noc_semaphore_set_remote", [outbox, self.places.address(x, y, semaphore, op)], op)
            return
        others = {key: len(cores) - own for key, own in inside.items()}
        if any(others.values()):
            count = self.places.number(others, None, "other_cores", op)
            address = self.places.multicast_address(box, semaphore, op)
            put("noc_semaphore_set_multicast", [outbox, address, self.indices.value(count)], op)
        if not any(inside.values()):
            return
        anchor = self.pipes.guarded(op, self.places.number(inside, None, "in_range", op))
        put("noc_semaphore_set", [semaphore, op.value], anchor)
        drop_anchor(anchor)


class NetworkConverter:
    """All of it for one thread."""

    def __init__(
        self,
        function: FuncOp,
        indices: IndexBuilder,
        buffers: dict[SSAValue, SSAValue],
        plan: NetworkPlan,
        context: PassContext,
    ) -> None:
        places = Places(function, indices, context.grid, context.chip.grid[0])
        self.pipes = PipeConverter(function, indices, buffers, places, plan.nets)
        self.semaphores = SemaphoreConverter(self.pipes, plan)

    def convert(self, op: Operation) -> bool:
        return self.pipes.convert(op) or self.semaphores.convert(op)
