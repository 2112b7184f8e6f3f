"""Semaphores in a thread: waits on this core's counter, changes of it or of another core's."""

from __future__ import annotations

import ast
from typing import Any

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, SSAValue

from tilewright.dialects.attributes import SemaphoreType
from tilewright.dialects.ttl_network import (
    GetRemoteMulticastSemaphoreOp,
    GetRemoteSemaphoreOp,
    SemaphoreIncOp,
    SemaphoreSetOp,
    SemaphoreWaitOp,
    nested_attr,
)
from tilewright.frontend.describe import described
from tilewright.frontend.thread import Thread
from tilewright.integers import Value, bounds, is_int_like, make
from tilewright.lang.pipes import Pipe
from tilewright.lang.semaphores import Semaphore
from tilewright.network import folded_grid
from tilewright.records import record

REMOTE_METHODS = ("set", "inc")


@record(frozen=False, eq=False)
class RemoteSemaphore:
    """A semaphore of another core, or of a range of cores."""

    semaphore: Semaphore
    ssa: SSAValue
    multicast: bool

    def describe(self) -> str:
        return f"semaphore '{self.semaphore.name}' of {'a range of cores' if self.multicast else 'another core'}"


def method(
    thread: Thread, owner: Semaphore | RemoteSemaphore, name: str, args: list[Any], named: dict[str, Any], node: ast.expr
) -> Any:
    if thread.kind == "compute":
        raise thread.error(
            "TW014",
            f"semaphore in compute thread '{thread.function.name}'",
            node,
            help="only data-movement threads reach semaphores; the compute thread waits for blocks of buffers",
        )
    values = [*args, *named.values()]
    thread.at(node)
    if isinstance(owner, Semaphore) and name == "get_remote":
        return _remote(thread, owner, values, node)
    if isinstance(owner, Semaphore) and name == "get_remote_multicast":
        return _multicast(thread, owner, values, node)
    if isinstance(owner, RemoteSemaphore) and owner.multicast and name == "inc":
        raise thread.error(
            "TW004", "a range of semaphores can be set, not increased", node, help="get_remote(core).inc(1) for each core"
        )
    if name == "inc" and not values:
        values = [1]
    if len(values) != 1 or not is_int_like(values[0]):
        found = described(values[0]) if len(values) == 1 else f"{len(values)} values"
        raise thread.error("TW004", f"{name}() takes one integer, not {found}", node)
    if bounds(values[0])[0] < 0:
        raise thread.error("TW004", f"{name}() of a value that may be negative", node, help="semaphores count from 0 up")
    ssa = owner.ssa if isinstance(owner, RemoteSemaphore) else thread.semaphore(owner)
    kind = {"set": SemaphoreSetOp, "inc": SemaphoreIncOp}.get(name, SemaphoreWaitOp)
    attributes: dict[str, Attribute] = {"at_least": UnitAttr()} if name == "wait_ge" else {}
    thread.emitter.add(kind, [ssa, thread.emitter.integer(values[0])], [], attributes)
    return None


def _remote(thread: Thread, semaphore: Semaphore, values: list[Any], node: ast.expr) -> RemoteSemaphore:
    core = tuple(values[0]) if len(values) == 1 and isinstance(values[0], (tuple, list)) else tuple(values)
    if not 1 <= len(core) <= 3 or not all(is_int_like(place) for place in core):
        raise thread.error("TW004", "get_remote takes the coordinates of a core", node, help="get_remote((x, y))")
    places = _full_rank(thread, core, node)
    operands = [thread.semaphore(semaphore), *(thread.emitter.integer(place) for place in places)]
    op = thread.emitter.add(GetRemoteSemaphoreOp, operands, [SemaphoreType()])
    return RemoteSemaphore(semaphore, op.results[0], False)


def _full_rank(thread: Thread, core: tuple[Value, ...], node: ast.AST) -> list[Value]:
    """Coordinates with as many dimensions as the grid; checked where they are known."""
    grid = thread.build.grid
    for place, size in zip(core, folded_grid(grid, len(core)), strict=True):
        low, high = bounds(place)
        if low >= size or high < 0:
            raise thread.error(
                "TW110", f"core {described(place)} of the semaphore is outside the grid {grid}", node, help="cores count from 0"
            )
    if len(core) >= len(grid):
        return list(core[: len(grid)])
    places = list(core[:-1])
    rest: Value = core[-1]
    tail: list[Value] = []
    for size in reversed(grid[len(core) :]):
        tail.append(make("%", rest, size))
        rest = make("//", rest, size)
    return [*places, rest, *reversed(tail)]


def _multicast(thread: Thread, semaphore: Semaphore, values: list[Any], node: ast.expr) -> RemoteSemaphore:
    attributes: dict[str, Attribute] = {}
    if len(values) > 1:
        raise thread.error("TW004", "get_remote_multicast takes one range of cores", node, help="(slice(0, 8), 0)")
    if values and values[0] is not None:
        spec = Pipe(src=(0,) * len(thread.build.grid), dst=values[0]).spec(thread.build.grid)
        attributes["core_range"] = nested_attr(spec.targets)
    op = thread.emitter.add(GetRemoteMulticastSemaphoreOp, [thread.semaphore(semaphore)], [SemaphoreType()], attributes)
    return RemoteSemaphore(semaphore, op.results[0], True)
