"""Python statements of a thread."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from typing import Any

from tilewright.frontend import carried, choices, containers, expressions, loops, matching, movement, pipes
from tilewright.frontend.assigned import assigned_names
from tilewright.frontend.calls import bind_name, bind_target, local_function
from tilewright.frontend.describe import described
from tilewright.frontend.expressions import BINARY, evaluate
from tilewright.frontend.known_values import native, truth
from tilewright.frontend.thread import Thread
from tilewright.frontend.unrolling import LeaveBody
from tilewright.frontend.values import Block
from tilewright.integers import Value, is_dynamic

HELP: dict[type[ast.stmt], str] = {
    ast.Try: "kernels cannot raise; test with an if on integers",
    ast.Raise: "kernels cannot raise; check before the kernel is called",
    ast.Global: "kernels cannot change values outside the thread",
    ast.ClassDef: "define classes outside the kernel",
    ast.AsyncFor: "use a plain for",
    ast.AsyncWith: "use a plain with",
}


WORDS: dict[type[ast.stmt], str] = {
    ast.ClassDef: "class",
    ast.AsyncFor: "async for",
    ast.AsyncWith: "async with",
    ast.AsyncFunctionDef: "async def",
}


def execute(thread: Thread, body: list[ast.stmt]) -> None:
    for statement in body:
        if thread.frame.has_returned:
            return
        handler = HANDLERS.get(type(statement))
        if handler is None:
            word = WORDS.get(type(statement), type(statement).__name__.lower())
            help_text = HELP.get(type(statement), "compute it before the thread, in the kernel's body")
            raise thread.error("TW001", f"'{word}' in a kernel", statement, help=help_text)
        thread.at(statement)
        statement = choices.with_names(thread, statement)
        chosen = choices.split(thread, statement)
        if chosen is None:
            handler(thread, statement)
            continue
        condition, names = chosen
        then = {name: choice.when_true for name, choice in names.items()}
        otherwise = {name: choice.when_false for name, choice in names.items()}
        _branch(thread, condition, (then, [statement]), (otherwise, [statement]), statement)


def _expression(thread: Thread, node: ast.Expr) -> None:
    evaluate(thread, node.value)


def _assign(thread: Thread, node: ast.Assign) -> None:
    value = evaluate(thread, node.value)
    for target in node.targets:
        bind_target(thread, target, value, node)


def _annotated(thread: Thread, node: ast.AnnAssign) -> None:
    if node.value is not None:
        bind_target(thread, node.target, evaluate(thread, node.value), node)


def _augmented(thread: Thread, node: ast.AugAssign) -> None:
    current = evaluate(thread, node.target)  # the target's context is not looked at
    value = evaluate(thread, node.value)
    held = current.held if isinstance(current, Block) else None
    if held is not None and (held.kind == "reserve" or isinstance(node.op, ast.Add)):
        if not isinstance(node.op, ast.Add):
            symbol = BINARY[type(node.op)]
            raise thread.error(
                "TW204", f"{symbol}= on a reserved block", node, help="block += x accumulates; otherwise use store()"
            )
        movement.store(thread, current, value, True, node)
        return
    bind_target(thread, node.target, expressions.binary(thread, BINARY[type(node.op)], current, value, node), node)


def _with(thread: Thread, node: ast.With) -> None:
    guarded = pipes.guarded(node)
    if guarded is not None:
        _if(thread, guarded)
        return
    held: list[tuple[Block, ast.expr]] = []
    for item in node.items:
        value = evaluate(thread, item.context_expr)
        if isinstance(value, Block) and value.held is not None:
            value.held.scoped = True
            held.append((value, item.context_expr))
        elif value is not None:
            raise thread.error(
                "TW001",
                f"'with' on {described(value)}",
                item.context_expr,
                help="with buffer.wait() as a, buffer.reserve() as b:",
            )
        if item.optional_vars is not None:
            bind_target(thread, item.optional_vars, value, item.context_expr)
    leaving: LeaveBody | None = None
    try:
        execute(thread, node.body)
    except LeaveBody as found:
        leaving = found
    for block, expression in reversed(held):
        assert block.held is not None
        movement.release_buffer(thread, block.held.buffer, movement.RELEASE_OF[block.held.kind], expression)
    if leaving is not None:
        raise leaving


def _if(thread: Thread, node: ast.If) -> None:
    condition = truth(thread, evaluate(thread, node.test), node.test)
    if isinstance(condition, bool):
        execute(thread, node.body if condition else node.orelse)
        return
    _branch(thread, condition, ({}, node.body), ({}, node.orelse), node)


def _branch(
    thread: Thread,
    condition: Value,
    then: tuple[dict[str, Any], list[ast.stmt]],
    otherwise: tuple[dict[str, Any], list[ast.stmt]],
    node: ast.stmt,
) -> None:
    """Statements for either outcome of a condition that each core decides, with what some names stand for there."""
    thread.at(node)
    frame = thread.frame
    changed = assigned_names([*then[1], *otherwise[1]])
    scopes = {name: value for name, value in frame.names.items() if name in changed and isinstance(value, carried.Scope)}
    for scope in scopes.values():
        carried.enter_branch(thread, scope, node)
    before, held = dict(frame.names), list(thread.held)
    ways = thread.emitter.branch(condition)
    results: list[dict[str, Any]] = []
    for block, (chosen, body) in zip(ways, (then, otherwise), strict=True):
        frame.names, thread.held = dict(before), list(held)
        thread.emitter.enter(block)
        inner = {name: carried.Scope(scope.carried, block) for name, scope in scopes.items()}
        frame.names.update(inner)
        frame.names.update({name: choices.localised(thread, value) for name, value in chosen.items()})
        thread.depth += 1
        execute(thread, body)
        thread.depth -= 1
        thread.at(node)
        carried.leave(thread, list(inner.values()), [frame.names[name] for name in inner], node)
        frame.names.update(scopes)
        thread.emitter.close_branch()
        results.append(frame.names)
    thread.held = held
    frame.names = _merged(thread, choices.Branches(condition, ways, node), before, *results)


def _merged(
    thread: Thread, branches: choices.Branches, before: dict[str, Any], left: dict[str, Any], right: dict[str, Any]
) -> dict[str, Any]:
    """Names after an if."""
    merged = dict(before)
    for name in {**left, **right}:
        first, second = left.get(name, choices.MISSING), right.get(name, choices.MISSING)
        merged[name] = choices.merged(thread, name, branches, first, second)
    return merged


def _return(thread: Thread, node: ast.Return) -> None:
    frame = thread.frame
    if len(thread.frames) == 1 and node.value is not None and evaluate(thread, node.value) is not None:
        raise thread.error("TW001", "a thread returns a value", node, help="results leave through buffers and ttl.copy")
    if thread.depth != frame.depth:
        raise thread.error(
            "TW001",
            "return inside a loop, or inside a with under an if that is decided per core",
            node,
            help="put the rest of the work under an if instead",
        )
    frame.returned = None if node.value is None else _returned(thread, node.value)
    frame.has_returned = True


def _returned(thread: Thread, node: ast.expr) -> Any:
    """A choice is handed on as it is."""
    value = thread.frame.names.get(node.id) if isinstance(node, ast.Name) else None
    return value if isinstance(value, choices.Choice) else evaluate(thread, node)


def _assert(thread: Thread, node: ast.Assert) -> None:
    condition = truth(thread, evaluate(thread, node.test), node.test)
    if is_dynamic(condition):
        raise thread.error("TW007", "assert on a value that is known per core only", node, help="assert on Python values")
    if not condition:
        message = "" if node.msg is None else f": {evaluate(thread, node.msg)}"
        raise thread.error("TW017", f"assertion failed{message}", node, help="asserts in a thread are checked at compile time")


def _function(thread: Thread, node: ast.FunctionDef) -> None:
    if node.decorator_list:
        raise thread.error("TW001", "a decorated function inside a thread", node, help="define threads in the body of the kernel")
    thread.frame.names[node.name] = local_function(thread, node, node.name)


def _import(thread: Thread, node: ast.Import | ast.ImportFrom) -> None:
    """Modules are imported when the kernel is compiled, as the functions of Python that it calls are run."""
    known = {name: thread.frame.outer.get(name) for name in ("__name__", "__package__")}
    if isinstance(node, ast.Import):
        for part in node.names:
            top = native(thread, node, __import__, part.name, known)
            whole = sys.modules[part.name] if part.asname else top
            bind_name(thread, part.asname or part.name.partition(".")[0], whole, node)
        return
    module = native(thread, node, __import__, node.module or "", known, None, [part.name for part in node.names], node.level)
    for part in node.names:
        bind_name(thread, part.asname or part.name, native(thread, node, getattr, module, part.name), node)


def _delete(thread: Thread, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Subscript):
            containers.delete_element(thread, target)
        elif isinstance(target, ast.Name) and target.id in thread.frame.names:
            del thread.frame.names[target.id]
        elif isinstance(target, (ast.Tuple, ast.List)):
            _delete(thread, ast.copy_location(ast.Delete(target.elts), node))
        else:
            remedy = "del takes names of this function and elements of lists and tables"
            raise thread.error("TW001", f"del of '{ast.unparse(target)}'", target, help=remedy)


def _nonlocal(thread: Thread, node: ast.Nonlocal) -> None:
    for name in node.names:
        owner = thread.frame.parent
        while owner is not None and name not in owner.names and name not in owner.shared:
            owner = owner.parent
        if owner is None:
            remedy = "kernels cannot change values outside the thread"
            raise thread.error("TW001", f"'nonlocal {name}', which is no variable of the thread", node, help=remedy)
        thread.frame.shared[name] = owner.shared.get(name, owner)


def _nothing(thread: Thread, node: ast.stmt) -> None:
    del thread, node


HANDLERS: dict[type[ast.stmt], Callable[[Thread, Any], None]] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.With: _with,
    ast.If: _if,
    ast.For: loops.for_loop,
    ast.While: loops.while_loop,
    ast.Break: loops.leave_loop,
    ast.Continue: loops.leave_loop,
    ast.Return: _return,
    ast.Assert: _assert,
    ast.FunctionDef: _function,
    ast.Pass: _nothing,
    ast.Import: _import,
    ast.ImportFrom: _import,
    ast.Delete: _delete,
    ast.Nonlocal: _nonlocal,
    ast.Match: matching.match,
}
