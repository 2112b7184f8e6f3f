"""Block values that change from one iteration of a loop to the next: ``total += a @ b``.

Between iterations such a value lies in a buffer the compiler makes, exactly as if the source had one: stored and pushed before
the loop, waited for, stored anew, pushed and popped in every iteration, waited for behind it. Whether the buffer is needed in the
end is decided later: `ttl-raise-running-values` makes one op of such a value, and a sum that fits stays in DST.

A name that starts as a bare number (``ttl.math.fill(0)``) has no shape or dtype until it meets a block, so the buffer is
made when the name is first read beside one.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.scf import ForOp
from xdsl.ir import Block as IRBlock
from xdsl.ir import Operation, SSAValue

from tilewright.builder.blocks import BareFill, filled, whole
from tilewright.builder.buffers import acquired, first_release, new_buffer, store_in
from tilewright.builder.values import Block, described
from tilewright.dialects.ttl_buffers import CBPopOp, CBPushOp
from tilewright.frontend.thread import Carried, Scope, Thread
from tilewright.lang.buffers import CircularBuffer


def may_carry(thread: Thread, value: Any) -> bool:
    """Whether a loop can change this value. Whole numbers are carried as integers."""
    return thread.kind == "compute" and isinstance(value, (Block, Scope, float))


def enter(thread: Thread, name: str, value: Any, loop: ForOp, node: ast.For) -> Scope:
    """What the name stands for in the body of ``loop``, which has just been opened."""
    if isinstance(value, Scope) and value.waited is None:
        return Scope(value.carried, loop.body.block)
    if isinstance(value, Scope):
        value = value.waited
    carried = Carried(name, loop, thread.span(node), value)
    if isinstance(value, Block) and value.weak is None:
        _make_buffer(thread, carried, value.shape, value.dtype, node)
    return Scope(carried, loop.body.block)


def enter_branch(thread: Thread, scope: Scope, node: ast.AST) -> None:
    """Before an ``if`` that changes the name: its value goes back to the buffer, where both branches find it."""
    if scope.waited is not None:
        leave(thread, [scope], [scope], node)
        scope.waited = None


def read(thread: Thread, scope: Scope, like: Block | None, node: ast.AST) -> Block | Scope:
    """The value of a carried name; the scope itself while its type is open and ``like`` does not give it."""
    carried = scope.carried
    if carried.buffer is None:
        if like is None:
            return scope
        start = carried.start
        shape = start.shape if isinstance(start, Block) else like.shape
        _make_buffer(thread, carried, shape, like.dtype, node)
    if scope.waited is None:
        _wait(thread, scope, node)
    assert scope.waited is not None
    return scope.waited


def typed(thread: Thread, values: Sequence[Any], node: ast.AST) -> list[Any]:
    """Operands that meet: names and fills whose type was open take that of the block beside them."""
    like = next((value for value in values if isinstance(value, Block) and value.weak is None), None)
    like = like or next((value for value in values if isinstance(value, Block)), None)
    found: list[Any] = []
    for value in values:
        if isinstance(value, Scope):
            start = value.carried.start
            value = read(thread, value, like or (start if isinstance(start, Block) else None), node)
        if isinstance(value, Block) and value.weak is not None and like is not None and value.dtype != like.dtype:
            thread.at(node)
            value = filled(thread, value.weak, value.shape, like.dtype)
        found.append(value)
    return found


def for_store(thread: Thread, value: Any, target: Block, node: ast.AST) -> Any:
    """What is stored: a bare fill or an open name becomes a block like the target."""
    if isinstance(value, BareFill):
        thread.at(node)
        return filled(thread, value.number, target.shape, target.dtype)
    return typed(thread, [value, Block(target.ssa, target.shape, target.dtype)], node)[0]


def leave(thread: Thread, scopes: Sequence[Scope], values: Sequence[Any], node: ast.AST) -> None:
    """The end of a body: what each name stands for now goes to its buffer."""
    ends: list[type[Operation]] = []
    released: list[SSAValue] = []
    for scope, value in zip(scopes, values, strict=True):
        value = scope.waited if value is scope else value
        if value is None or (isinstance(value, Scope) and value.waited is None):
            continue  # it is in the buffer
        value = value.waited if isinstance(value, Scope) else value
        _store(thread, scope, value, node)
        queue = thread.buffer(_buffer(scope.carried))
        ends += [CBPushOp, CBPopOp]
        released += [queue, queue]
    for kind in (CBPushOp, CBPopOp):
        for end, queue in zip(ends, released, strict=True):
            if end is kind:
                thread.emitter.add(kind, [queue])


def after(thread: Thread, scope: Scope, outer: Any, node: ast.AST) -> Any:
    """What the name stands for behind the loop: still in the buffer for a loop around it, else a block."""
    carried = scope.carried
    if isinstance(outer, Scope) and outer.carried is carried:
        return outer
    if carried.buffer is None:  # nobody used it
        return carried.start
    thread.at(node)
    last = Scope(carried, thread.emitter.block)
    _wait(thread, last, node)
    return last.waited


def _store(thread: Thread, scope: Scope, value: Any, node: ast.AST) -> None:
    carried = scope.carried
    if not isinstance(value, Block):
        before = "a number" if isinstance(carried.start, float) else described(carried.start)
        message = f"'{carried.name}' is {before} before the loop and {described(value)} in it"
        raise thread.error("TW012", message, node)
    value = whole(thread, value)
    if carried.buffer is None:
        read(thread, scope, value, node)
    if scope.waited is None:
        _wait(thread, scope, node)
    buffer = _buffer(carried)
    if value.weak is not None and value.dtype != buffer.dtype:
        value = filled(thread, value.weak, value.shape, buffer.dtype)
    if (value.shape, value.dtype) != (buffer.shape, buffer.dtype):
        start = Block(value.ssa, buffer.shape, buffer.dtype)
        raise thread.error(
            "TW012",
            f"'{carried.name}' is {described(start)} before the loop and {described(value)} in it",
            node,
            help="a value that a loop changes keeps its shape and dtype",
        )
    with thread.emitter.aside() as ops:
        store_in(thread, _buffer(carried), value)
    release = first_release(value.ssa, scope.body)
    if release is None:
        scope.body.add_ops(ops)
    else:
        scope.body.insert_ops_before(ops, release)


def _make_buffer(thread: Thread, carried: Carried, shape: tuple[int, ...], dtype: str, node: ast.AST) -> None:
    thread.at(node)
    buffer = carried.buffer = new_buffer(thread, carried.name, shape, dtype, carried.span)
    start = carried.start
    with thread.emitter.aside() as ops:
        value = whole(thread, start) if isinstance(start, Block) else None
        if value is None or (value.weak is not None and value.dtype != dtype):
            number = value.weak if value is not None else start
            value = filled(thread, number, shape, dtype)
        store_in(thread, buffer, value)
        thread.emitter.add(CBPushOp, [thread.buffer(buffer)])
    before = carried.loop.parent
    assert before is not None
    before.insert_ops_before(ops, carried.loop)


def _wait(thread: Thread, scope: Scope, node: ast.AST) -> None:
    """The value out of the buffer, in the scope's own block: a branch inside it may or may not run."""
    carried = scope.carried
    buffer = _buffer(carried)
    thread.at(node)
    with thread.emitter.aside() as ops:
        ssa, site = acquired(thread, buffer, "wait")
    ssa.name_hint = carried.name
    around: Operation | None = None
    current: IRBlock | None = thread.emitter.block
    while current is not None and current is not scope.body:
        around = current.parent_op()
        current = around.parent if around is not None else None
    if around is None:
        scope.body.add_ops(ops)
    else:
        scope.body.insert_ops_before(ops, around)
    scope.waited = Block(ssa, buffer.shape, buffer.dtype).with_extent(site.assumed, thread.sites.kernel.reason("wait", site))


def _buffer(carried: Carried) -> CircularBuffer:
    assert carried.buffer is not None
    return carried.buffer
