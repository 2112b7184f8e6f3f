"""Python statements of a thread."""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import Any

from tilewright.frontend import carried, containers, early_ends, expressions, loop_forms, movement, pipes
from tilewright.frontend.assigned import assigned_names, loop_names
from tilewright.frontend.blocks import whole
from tilewright.frontend.calls import UNROLL_LIMIT, bind_target, local_function
from tilewright.frontend.describe import described
from tilewright.frontend.early_values import kept
from tilewright.frontend.expressions import BINARY, evaluate
from tilewright.frontend.generators import Generated, run_loop
from tilewright.frontend.host_calls import DynamicRange
from tilewright.frontend.integers import UNBOUNDED, Value, bounds, is_dynamic, is_int_like, is_truth, make
from tilewright.frontend.known_values import truth
from tilewright.frontend.thread import Thread
from tilewright.frontend.unrolling import CountedLoop, LeaveBody
from tilewright.frontend.values import Block, Unusable
from tilewright.lang.buffers import CircularBuffer

HELP: dict[type[ast.stmt], str] = {
    ast.Try: "kernels cannot raise; test with an if on integers",
    ast.Raise: "kernels cannot raise; check before the kernel is called",
    ast.Import: "import at the top of the file",
    ast.ImportFrom: "import at the top of the file",
    ast.Global: "kernels cannot change values outside the thread",
    ast.Nonlocal: "kernels cannot change values outside the thread",
    ast.Delete: "names end by themselves; release blocks with push() or pop()",
    ast.ClassDef: "define classes outside the kernel",
    ast.AsyncFor: "use a plain for",
    ast.AsyncWith: "use a plain with",
}


WORDS: dict[type[ast.stmt], str] = {
    ast.ImportFrom: "import",
    ast.ClassDef: "class",
    ast.Delete: "del",
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
        handler(thread, statement)


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
    thread.at(node)
    frame = thread.frame
    changed = assigned_names([*node.body, *node.orelse])
    scopes = {name: value for name, value in frame.names.items() if name in changed and isinstance(value, carried.Scope)}
    for scope in scopes.values():
        carried.enter_branch(thread, scope, node)
    before, held = dict(frame.names), list(thread.held)
    then, otherwise = thread.emitter.branch(condition)
    results: list[dict[str, Any]] = []
    for block, body in ((then, node.body), (otherwise, node.orelse)):
        frame.names, thread.held = dict(before), list(held)
        thread.emitter.enter(block)
        inner = {name: carried.Scope(scope.carried, block) for name, scope in scopes.items()}
        frame.names.update(inner)
        thread.depth += 1
        execute(thread, body)
        thread.depth -= 1
        thread.at(node)
        carried.leave(thread, list(inner.values()), [frame.names[name] for name in inner], node)
        frame.names.update(scopes)
        thread.emitter.close_branch()
        results.append(frame.names)
    thread.held = held
    frame.names = _merged(condition, before, *results)


def _merged(condition: Value, before: dict[str, Any], left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    """Names after an if: integers are chosen by the condition, others must be the same on both ways."""
    merged = dict(before)
    for name in {**left, **right}:
        first, second = left.get(name, _MISSING), right.get(name, _MISSING)
        if first is second or (type(first) is type(second) and _equal(first, second)):
            merged[name] = first
        elif is_int_like(first) and is_int_like(second):
            merged[name] = make("select", condition, first, second)
        elif is_truth(first) and is_truth(second):
            merged[name] = make("or", make("and", condition, first), make("and", make("not", condition), second))
        else:
            merged[name] = Unusable(
                "depends on which branch of an if ran, which is known per core only",
                "use it inside the branch, or give it a value before",
            )
    return merged


_MISSING = object()


def _equal(first: Any, second: Any) -> bool:
    plain = (int, float, str, tuple, bool, type(None))
    return (isinstance(first, plain) or is_dynamic(first)) and first == second


def _for(thread: Thread, node: ast.For) -> None:
    if node.orelse:
        raise thread.error("TW001", "'else' of a for loop", node.orelse[0], help="put it after the loop")
    other = loop_forms.rewritten(thread, node)
    if other is not None:
        _for(thread, other)
        return
    sequence = evaluate(thread, node.iter)
    if isinstance(sequence, Generated):
        body = early_ends.loop_body(node.body)
        run_loop(thread, node, sequence, lambda item: bind_target(thread, node.target, item, node), body)
        return
    if isinstance(sequence, DynamicRange) and isinstance(node.target, ast.Name):
        _counted_loop(thread, node, sequence, node.target.id, None)
        return
    if not isinstance(sequence, range) or not isinstance(node.target, ast.Name):
        items = containers.static_sequence(thread, sequence, node.iter)
        _unrolled(thread, node, (partial(bind_target, thread, node.target, item, node) for item in items))
        return
    if not sequence:
        return
    loop = CountedLoop(thread.span(node), len(sequence))
    thread.unrolling.around.append(loop)
    if loop.place in thread.unrolling.chosen:
        _unrolled(thread, node, (partial(bind_target, thread, node.target, item, node) for item in sequence))
    else:
        _counted_loop(thread, node, sequence, node.target.id, loop)
    thread.unrolling.around.pop()


def _unrolled(thread: Thread, node: ast.For | ast.While, starts: Iterable[Callable[[], None]]) -> None:
    """The body once per start; ``break`` and ``continue`` are exceptions on their way here."""
    body = early_ends.loop_body(node.body)
    thread.loops.append(thread.depth)
    buffers: dict[str, CircularBuffer | None] = {}
    for start in starts:
        start()
        try:
            execute(thread, body)
        except LeaveBody as leaving:
            if leaving.kind is ast.Break:
                break
        _keep_blocks(thread, node, buffers)
    thread.loops.pop()


def _keep_blocks(thread: Thread, node: ast.For | ast.While, buffers: dict[str, CircularBuffer | None]) -> None:
    """Block values that the next copy of the body reads are computed before blocks they come from are released."""
    if thread.kind != "compute":
        return
    assigned, exposed = loop_names(node)
    for name in sorted(assigned & exposed):
        value = thread.frame.names.get(name)
        if isinstance(value, Block) and value.held is None:
            thread.at(node)
            value = whole(thread, value, node)
            buffers[name], thread.frame.names[name] = kept(thread, name, buffers.get(name), value, thread.span(node))


def _while(thread: Thread, node: ast.While) -> None:
    """A ``while`` whose condition is known every time it is asked; the body is repeated here, not on the device."""
    if node.orelse:
        raise thread.error("TW001", "'else' of a while loop", node.orelse[0], help="put it after the loop")
    _unrolled(thread, node, _known_rounds(thread, node))


def _known_rounds(thread: Thread, node: ast.While) -> Generator[Callable[[], None], None, None]:
    for _ in range(UNROLL_LIMIT):
        condition = truth(thread, evaluate(thread, node.test), node.test)
        if is_dynamic(condition):
            remedy = "use `for … in range(…)`: the number of iterations must be known on every core"
            raise thread.error("TW001", "'while' on a condition that is known per core or iteration only", node, help=remedy)
        if not condition:
            return
        yield lambda: None
    raise thread.error(
        "TW001",
        f"'while' does not end within {UNROLL_LIMIT} iterations, which are unrolled",
        node,
        help="change what the condition asks for in the body, or use `for … in range(…)`",
    )


def _leave(thread: Thread, node: ast.Break | ast.Continue) -> None:
    if thread.loops and thread.loops[-1] == thread.depth:
        raise LeaveBody(type(node))
    word = "break" if isinstance(node, ast.Break) else "continue"
    remedy = "put the rest of the loop body under an if"
    if isinstance(node, ast.Break):
        remedy += ", or choose the range: the number of iterations must be known on every core"
    raise thread.error("TW001", f"'{word}' in a loop that runs on the device", node, help=remedy)


def _counted_loop(
    thread: Thread, node: ast.For, sequence: range | DynamicRange, name: str, counted: CountedLoop | None
) -> None:
    frame = thread.frame
    assigned, exposed = loop_names(node)
    assigned = assigned - _accumulated(thread, node, assigned)
    changed = [n for n in sorted(assigned & exposed) if n in frame.names and n != name]
    blocks = [n for n in changed if carried.may_carry(thread, frame.names[n])]
    integers = _carried_integers(thread, [n for n in changed if n not in blocks], node)
    outside = dict(frame.names)
    before = {n: frame.names[n] for n in integers}
    thread.at(node)
    start, stop, step = sequence.start, sequence.stop, sequence.step
    backwards = step < 0
    if backwards:  # run forwards and count down from the start
        count = make("//", make("+", make("-", start, stop), -step - 1), -step)
        loop = thread.emitter.for_loop(0, make("max", count, 0), 1, list(before.values()), name)
    else:
        loop = thread.emitter.for_loop(start, stop, step, list(before.values()), name)
    body = loop.body.block
    frame.names[name] = _counter(thread, body.args[0], name, start, stop, step, backwards)
    for index, carried_name in enumerate(integers):
        body.args[1 + index].name_hint = carried_name if carried_name.isascii() else None
        frame.names[carried_name] = thread.emitter.leaf(body.args[1 + index], carried_name, -UNBOUNDED, UNBOUNDED)
    scopes = {n: carried.enter(thread, n, outside[n], loop, node) for n in blocks}
    frame.names.update(scopes)
    held = list(thread.held)
    thread.depth += 1
    execute(thread, early_ends.loop_body(node.body))
    thread.depth -= 1
    thread.held = held
    results = [frame.names[carried_name] for carried_name in integers]
    for carried_name, value in zip(integers, results, strict=True):
        if not is_int_like(value):
            raise thread.error("TW012", f"'{carried_name}' is an integer before the loop and {described(value)} in it", node)
    thread.at(node)
    carried.leave(thread, list(scopes.values()), [frame.names[n] for n in blocks], node)
    thread.emitter.close_loop(results)
    for ended in assigned | {name}:
        frame.names[ended] = Unusable(
            "was assigned in a loop that has ended",
            "use it inside the loop, or give it a value before the loop and update it there",
            counted,
        )
    for index, carried_name in enumerate(integers):
        loop.results[index].name_hint = carried_name if carried_name.isascii() else None
        frame.names[carried_name] = thread.emitter.leaf(loop.results[index], carried_name, -UNBOUNDED, UNBOUNDED)
    for carried_name, scope in scopes.items():
        frame.names[carried_name] = carried.after(thread, scope, outside[carried_name], node)


def _accumulated(thread: Thread, loop: ast.For, assigned: set[str]) -> set[str]:
    """Blocks the loop only adds to: ``block += x`` stores into the block, the name stays."""
    reserved = {
        name
        for name in assigned
        if isinstance(block := thread.frame.names.get(name), Block) and block.held is not None and block.held.kind == "reserve"
    }
    targets = [n.target for s in loop.body for n in ast.walk(s) if isinstance(n, ast.AugAssign) and isinstance(n.op, ast.Add)]
    stores = [n for s in loop.body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return reserved - {node.id for node in stores if node not in targets}


def _counter(thread: Thread, argument: Any, name: str, start: Value, stop: Value, step: int, backwards: bool) -> Value:
    low, high = bounds(start)[0], bounds(stop)[1] - 1
    if not backwards:
        return thread.emitter.leaf(argument, name, low, max(low, high))
    most = max(0, (bounds(start)[1] - bounds(stop)[0] - 1) // -step)
    return make("-", start, make("*", thread.emitter.leaf(argument, name, 0, most), -step))


def _carried_integers(thread: Thread, names: list[str], node: ast.For) -> list[str]:
    """The names of integers; anything else that is left cannot change in a loop."""
    for name in names:
        value = thread.frame.names[name]
        if isinstance(value, Unusable) or is_int_like(value):
            continue
        help_text = "only blocks (in the compute thread) and integers can change from one iteration to the next"
        raise thread.error("TW012", f"'{name}' ({described(value)}) changes from one iteration to the next", node, help=help_text)
    return [name for name in names if not isinstance(thread.frame.names[name], Unusable)]


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
    frame.returned = None if node.value is None else evaluate(thread, node.value)
    frame.has_returned = True


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


def _nothing(thread: Thread, node: ast.stmt) -> None:
    del thread, node


HANDLERS: dict[type[ast.stmt], Callable[[Thread, Any], None]] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.With: _with,
    ast.If: _if,
    ast.For: _for,
    ast.While: _while,
    ast.Break: _leave,
    ast.Continue: _leave,
    ast.Return: _return,
    ast.Assert: _assert,
    ast.FunctionDef: _function,
    ast.Pass: _nothing,
}
