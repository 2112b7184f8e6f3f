"""Block values that change from one iteration of a loop to the next: ``total += a @ b``.

Such a name is a running value (`builder/running.py`): it starts from what it is before the loop, and the end of the body says
what it is in the next iteration. Where it lies meanwhile is decided by the passes.

A name that starts as a bare number (``ttl.math.fill(0)``) has no shape or dtype until it meets a block, so the value is
started when the name is first read beside one.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects.scf import ForOp
from xdsl.ir import Block as IRBlock
from xdsl.ir import Operation

from tilewright.builder import running
from tilewright.builder.blocks import BareFill, computed, filled, retyped, whole
from tilewright.builder.buffers import first_release, new_buffer
from tilewright.builder.running import Running
from tilewright.builder.values import Block, described
from tilewright.dtypes import COMPUTED_AS
from tilewright.frontend.thread import Carried, Scope, Thread, Unusable, without_value


def may_carry(thread: Thread, value: Any) -> bool:
    """Whether a loop can change this value. Whole numbers are carried as integers."""
    return thread.kind == "compute" and isinstance(value, (Block, Scope, float))


def enter(thread: Thread, name: str, value: Any, loop: ForOp, node: ast.For) -> Scope:
    """What the name stands for in the body of ``loop``, which has just been opened."""
    if isinstance(value, Scope) and value.value is None and value.of is None:
        value.changes_at(loop)
        return Scope(value.carried, loop.body.block)
    if isinstance(value, Scope):
        value = resolved(thread, value, None, node)
    carried = Carried(name, loop, thread.span(node), value)
    if isinstance(value, Block) and value.weak is None:
        _start(thread, carried, value.shape, COMPUTED_AS[value.dtype], node)
    return Scope(carried, loop.body.block)


def read(thread: Thread, scope: Scope, like: Block | None, node: ast.AST) -> Block | Scope:
    """The value of a carried name; something that stands for it while its type is open and ``like`` does not give it."""
    carried = scope.carried
    if carried.running is None:
        if like is None:
            return _second_name(scope.of or scope, scope.until)
        start = carried.start
        shape = start.shape if isinstance(start, Block) else like.shape
        _start(thread, carried, shape, COMPUTED_AS[like.dtype], node)
    if scope.value is None and scope.of is not None and scope.until is None:  # one value, under however many names
        found = read(thread, scope.of, like, node)
        assert isinstance(found, Block)
        scope.value = found
    elif scope.value is None:
        _read(thread, scope, node)
    assert scope.value is not None
    return scope.value


def _second_name(scope: Scope, until: Operation | None) -> Scope:
    other = Scope(scope.carried, scope.body, of=scope, until=until)
    if until is None:
        scope.others.append(other)
    return other


def typed(thread: Thread, values: Sequence[Any], node: ast.AST) -> list[Any]:
    """Operands that meet: names and fills whose type was open take that of the block beside them."""
    if not any(isinstance(value, Scope) or (isinstance(value, Block) and value.weak is not None) for value in values):
        return list(values)
    like = next((value for value in values if isinstance(value, Block) and value.weak is None), None)
    like = like or next((value for value in values if isinstance(value, Block)), None)
    found: list[Any] = []
    for value in values:
        if isinstance(value, Scope):
            start = value.carried.start
            value = read(thread, value, like or (start if isinstance(start, Block) else None), node)
        if isinstance(value, Block) and value.weak is not None and like is not None and value.dtype != like.dtype:
            thread.at(node)
            value = retyped(thread, value, like.dtype)
        found.append(value)
    return found


def for_store(thread: Thread, value: Any, target: Block, node: ast.AST) -> Any:
    """What is stored: a bare fill or an open name becomes a block like the target."""
    if isinstance(value, BareFill):
        thread.at(node)
        return filled(thread, value.number, target.shape, target.dtype)
    return typed(thread, [value, Block(target.ssa, target.shape, target.dtype)], node)[0]


def leave(thread: Thread, scopes: Sequence[Scope], values: Sequence[Any], node: ast.AST) -> None:
    """The end of a body: what each name stands for now is its next value."""
    values = [_at_end(thread, scope, value, node) for scope, value in zip(scopes, values, strict=True)]
    for scope, value in zip(scopes, values, strict=True):
        if value is not None:
            _step(thread, scope, value, node)


def _at_end(thread: Thread, scope: Scope, value: Any, node: ast.AST) -> Any:
    """What a name stands for at the end of a body; None if that is what it was at its begin."""
    if value is scope and scope.body is scope.carried.loop.body.block and _never_steps(scope.carried):
        return read(thread, scope, None, node)  # changed in code that does not run
    if isinstance(value, Unusable):
        raise without_value(thread, scope.carried.name, value, node)
    if value is scope or not isinstance(value, Scope):
        return None if value is scope else value
    if value.carried is scope.carried:
        return value.value
    return resolved(thread, value, scope, node)


def resolved(thread: Thread, value: Scope, beside: Scope | None, node: ast.AST) -> Block:
    """The value of a name whose type may still be open: it is that of ``beside``, if that is known."""
    if value.value is not None:
        return value.value
    known = [] if beside is None else [read(thread, beside, None, node)]
    found = typed(thread, [value, *(each for each in known if isinstance(each, Block))], node)[0]
    if isinstance(found, Block):
        return found
    name = value.carried.name
    remedy = f"{name} = ttl.block.fill(0.0, shape=(1, 1))"
    raise thread.error("TW012", f"'{name}' is a number, and no block says of how many tiles", node, help=remedy)


def after(thread: Thread, scopes: Mapping[str, Scope], outside: Mapping[str, Any], node: ast.AST) -> dict[str, Any]:
    """What the names stand for behind the loop: the same for a loop around it that changes them too, else a block."""
    ended: dict[str, Running] = {}
    found: dict[str, Any] = {}
    thread.at(node)
    for name, scope in scopes.items():
        carried, outer = scope.carried, outside[name]
        if isinstance(outer, Scope) and outer.carried is carried:
            found[name] = outer
        elif carried.running is None:  # nobody used it
            found[name] = carried.start
        else:
            ended[name] = carried.running
            running.ended(thread, carried.running)
    for name, each in ended.items():
        found[name] = running.result(thread, each)
        found[name].ssa.name_hint = name
    return found


def _never_steps(carried: Carried) -> bool:
    return carried.running is not None and not carried.running.steps


def _step(thread: Thread, scope: Scope, value: Any, node: ast.AST) -> None:
    carried = scope.carried
    if not isinstance(value, Block):
        before = "a number" if isinstance(carried.start, float) else described(carried.start)
        message = f"'{carried.name}' is {before} before the loop and {described(value)} in it"
        raise thread.error("TW012", message, node)
    value = computed(thread, whole(thread, value))
    read(thread, scope, value, node)
    buffer = _running(carried).buffer
    if value.weak is not None and value.dtype != buffer.dtype:
        value = filled(thread, value.weak, value.shape, buffer.dtype)
    if (value.shape, value.dtype) != (buffer.shape, buffer.dtype):
        start = Block(value.ssa, buffer.shape, buffer.dtype)
        message = f"'{carried.name}' is {described(start)} before the loop and {described(value)} in it"
        raise thread.error("TW012", message, node, help="a value that a loop changes keeps its shape and dtype")
    with thread.emitter.aside() as ops:
        running.step(thread, _running(carried), value)
    release = first_release(value.ssa, scope.body)
    if release is None:
        scope.body.add_ops(ops)
    else:
        scope.body.insert_ops_before(ops, release)


def _start(thread: Thread, carried: Carried, shape: tuple[int, ...], dtype: str, node: ast.AST) -> None:
    thread.at(node)
    buffer = new_buffer(thread, carried.name, shape, dtype, carried.span)
    start = carried.start
    with thread.emitter.aside() as ops:
        value = computed(thread, whole(thread, start)) if isinstance(start, Block) else None
        if value is None or (value.weak is not None and value.dtype != dtype):
            number = value.weak if value is not None else start
            value = filled(thread, number, shape, dtype)
        carried.running = running.started(thread, buffer, value)
    before = carried.loop.parent
    assert before is not None
    before.insert_ops_before(ops, carried.loop)


def _read(thread: Thread, scope: Scope, node: ast.AST) -> None:
    """The value, in the scope's own block: a branch inside it may or may not run. And before it changes."""
    carried = scope.carried
    thread.at(node)
    with thread.emitter.aside() as ops:
        scope.value = running.read(thread, _running(carried))
    scope.value.ssa.name_hint = carried.name
    around: Operation | None = scope.until
    current: IRBlock | None = thread.emitter.block if around is None else around.parent
    while current is not None and current is not scope.body:
        around = current.parent_op()
        current = around.parent if around is not None else None
    if around is None:
        scope.body.add_ops(ops)
    else:
        scope.body.insert_ops_before(ops, around)


def _running(carried: Carried) -> Running:
    assert carried.running is not None
    return carried.running
