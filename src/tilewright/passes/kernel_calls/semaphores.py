"""Semaphores of the language as kernel calls, and the numbers of all semaphores of a kernel."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tilewright.diagnostics import fail
from tilewright.dialects.ttl_buffers import CopyOp
from tilewright.dialects.ttl_network import (
    CreateSemaphoreOp,
    GetRemoteMulticastSemaphoreOp,
    GetRemoteSemaphoreOp,
    SemaphoreIncOp,
    SemaphoreSetOp,
    SemaphoreWaitOp,
    nested_value,
)
from tilewright.dialects.walking import operations, place_of
from tilewright.grid import Core, PipeSpec, cores_of, rectangle
from tilewright.passes.context import PassContext
from tilewright.passes.kernel_calls.buffers import call
from tilewright.passes.kernel_calls.pipes import (
    NetPlan,
    NetSemaphores,
    PipeConverter,
    drop_anchor,
    is_pipe_copy,
    is_send,
    pipe_of,
)
from tilewright.records import record


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
    nets, following = _plan_nets(copies, context.grid, following)
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


def _plan_nets(copies: dict[str, list[CopyOp]], grid: Core, following: int) -> tuple[dict[int, NetPlan], int]:
    """``copies``: those into and out of pipes, by thread."""
    plans: dict[int, NetPlan] = {}
    nets = {pipe_of(op).net.number: pipe_of(op).net for ops in copies.values() for op in ops}
    one = following
    if any(not pipe.single for net in nets.values() for pipe in net.pipes):
        following += 1
    for number, net in sorted(nets.items()):
        meets = net.meets(grid)
        most = 1 if meets else max(len(pipes) for pipes in net.by_source(grid).values())
        semaphores = NetSemaphores(ready=following, valid=following + most, one=one)
        following += most + 1
        loops = any(pipe.source_core(grid) in pipe.target_cores(grid) for pipe in net.pipes)
        both = {name for name, ops in copies.items() if len({is_send(op) for op in ops if pipe_of(op).net.number == number}) == 2}
        own = frozenset(both if loops else ())
        plans[number] = NetPlan(net=net, semaphores=semaphores, several=most > 1, meets=meets, posts_own=own)
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
            self._call(name, [self._own(op.operands[0]), op.operands[1]], op)
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
            return self._own(owner.operands[0])
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
        self._call("noc_semaphore_inc", [self._address(op), op.operands[1]], op)

    def _set(self, op: SemaphoreSetOp) -> None:
        owner = op.operands[0].owner
        if isinstance(owner, CreateSemaphoreOp):
            self._call("noc_semaphore_set", [self._own(op.operands[0]), op.operands[1]], op)
            return
        assert self.outbox is not None
        outbox = self.pipes.semaphore(self.outbox, "outbox")
        self._call("noc_semaphore_set", [outbox, op.operands[1]], op)
        if isinstance(owner, GetRemoteSemaphoreOp):
            self._call("noc_semaphore_set_remote", [outbox, self._address(op)], op)
        else:
            assert isinstance(owner, GetRemoteMulticastSemaphoreOp)
            self._set_range(op, owner, outbox)
        self._call("noc_async_write_barrier", [], op)  # the word may be used again

    def _set_range(self, op: SemaphoreSetOp, owner: GetRemoteMulticastSemaphoreOp, outbox: SSAValue) -> None:
        grid = self.places.grid
        cores = cores_of(grid)
        given = owner.attributes.get("core_range")
        if given is not None:
            cores = PipeSpec((0,) * len(grid), nested_value(given), False).target_cores(grid)
        box = rectangle([self.places.chip[core] for core in cores])
        semaphore = self._own(op.operands[0])
        inside = {(core, 0): int(core in cores) for core in cores_of(grid)}
        if box is None or len(cores) == 1:  # a multicast that reaches nobody but its sender would never be acknowledged
            for core in cores:
                x, y = self.places.chip[core]
                self._call("noc_semaphore_set_remote", [outbox, self.places.address(x, y, semaphore, op)], op)
            return
        others = {key: len(cores) - own for key, own in inside.items()}
        if any(others.values()):
            count = self.places.number(others, None, "other_cores", op)
            address = self.places.multicast_address(box, semaphore, op)
            self._call("noc_semaphore_set_multicast", [outbox, address, self.indices.value(count)], op)
        if not any(inside.values()):
            return
        anchor = self.pipes.guarded(op, self.places.number(inside, None, "in_range", op))
        self._call("noc_semaphore_set", [semaphore, op.operands[1]], anchor)
        drop_anchor(anchor)

    def _call(self, name: str, operands: list[SSAValue], before: Operation) -> None:
        block = before.parent
        assert block is not None
        block.insert_op_before(call(name, operands, like=before), before)
