"""The statements a kernel may have: each is handed to the reader's part that knows what it means."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tilewright.frontend.tilelang.domains import Counted, KernelDomain, ParallelDomain, PersistentDomain, Returned
from tilewright.frontend.tilelang.loops import counted_loop, parallel_loop, persistent_loop
from tilewright.frontend.tilelang.symbols import is_symbolic
from tilewright.frontend.tilelang.trouble import Trouble

if TYPE_CHECKING:
    from tilewright.frontend.tilelang.reader import Reader

OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
}  # fmt: skip


def _expression(reader: Reader, node: ast.Expr) -> None:
    if not isinstance(node.value, ast.Constant):
        reader.evaluate(node.value)


def _assign(reader: Reader, node: ast.Assign) -> None:
    value = reader.evaluate(node.value)
    for target in node.targets:
        reader.bind(target, value)


def _annotated(reader: Reader, node: ast.AnnAssign) -> None:
    if node.value is not None:
        reader.bind(node.target, reader.evaluate(node.value))
        return
    declare = getattr(reader, "declare", None)
    if declare is None or not isinstance(node.target, ast.Name):
        raise Trouble("TW001", "an annotation without a value", help="annotate parameters")
    declare(node.target.id, reader.evaluate(node.annotation))


def _augmented(reader: Reader, node: ast.AugAssign) -> None:
    symbol = OPERATORS.get(type(node.op))
    if symbol is None:
        raise Trouble("TW003", "this operator", help="use + - * / // % **")
    target = node.target
    if isinstance(target, ast.Subscript):
        current: ast.expr = ast.copy_location(ast.Subscript(target.value, target.slice, ast.Load()), target)
    elif isinstance(target, ast.Name):
        current = ast.copy_location(ast.Name(target.id, ast.Load()), target)
    else:
        raise Trouble("TW001", "this kind of assignment", help="assign to names and to elements of fragments")
    joined = ast.copy_location(ast.BinOp(current, node.op, node.value), node)
    reader.bind(target, reader.evaluate(ast.fix_missing_locations(joined)))


def _for(reader: Reader, node: ast.For) -> None:
    if node.orelse:
        raise Trouble("TW001", "'else' of a for loop", help="put it after the loop")
    domain = reader.evaluate(node.iter)
    if isinstance(domain, ParallelDomain):
        parallel_loop(reader, node, domain)
    elif isinstance(domain, PersistentDomain):
        persistent_loop(reader, node, domain)
    elif reader.parallel and isinstance(domain, Counted):
        _unrolled(reader, node, domain)
    elif isinstance(domain, range) and reader.bodies:
        counted_loop(reader, node, Counted(domain.start, domain.stop, domain.step))
    elif isinstance(domain, Counted):
        counted_loop(reader, node, domain)
    else:
        for item in domain:
            reader.bind(node.target, item)
            reader.execute(node.body)


def _unrolled(reader: Reader, node: ast.For, domain: Counted) -> None:
    """A loop inside T.Parallel: its body once per iteration, for all elements at once."""
    if is_symbolic(domain.start) or is_symbolic(domain.stop):
        raise Trouble(
            "TW001",
            "a loop inside T.Parallel whose length only the device knows",
            help="elements are computed all at once; put the loop around T.Parallel",
        )
    for number in range(domain.start, domain.stop, domain.step):
        reader.bind(node.target, number)
        reader.execute(node.body)


def _words(node: ast.stmt) -> list[str]:
    """``["If", "Then"]`` of ``with T.If(condition), T.Then():``."""
    calls = [item.context_expr for item in node.items] if isinstance(node, ast.With) else []
    functions = [call.func if isinstance(call, ast.Call) else None for call in calls]
    return [function.attr if isinstance(function, ast.Attribute) else "" for function in functions]


def _as_if(node: ast.With) -> ast.If:
    """``with T.If(…): with T.Then(): … with T.Else(): …``, the builder's way to write an if."""
    call = node.items[0].context_expr
    if not isinstance(call, ast.Call) or len(call.args) != 1:
        raise Trouble("TW004", "T.If takes one condition", help="with T.If(condition):", word="If")
    otherwise: list[ast.stmt] = []
    then: list[ast.stmt] = node.body if _words(node)[1:] == ["Then"] else []
    for part in node.body if len(node.items) == 1 else ():
        if _words(part) not in (["Then"], ["Else"]):
            raise Trouble("TW001", "this in T.If", help="with T.Then(): … and with T.Else(): … stand in it", word="If")
        assert isinstance(part, ast.With)
        if _words(part) == ["Then"]:
            then = part.body
        else:
            otherwise = part.body
    return ast.fix_missing_locations(ast.copy_location(ast.If(call.args[0], then or [ast.Pass()], otherwise), node))


def _with(reader: Reader, node: ast.With) -> None:
    if _words(node)[0] == "If":
        reader.branch(_as_if(node))
        return
    domain = reader.evaluate(node.items[0].context_expr)
    if not isinstance(domain, KernelDomain):
        raise Trouble("TW001", "this 'with'", help="with T.Kernel(grid_x, grid_y) as (bx, by):")
    reader.launch_kernel(node, domain)


def _if(reader: Reader, node: ast.If) -> None:
    reader.branch(node)


def _return(reader: Reader, node: ast.Return) -> None:
    if len(reader.bodies) > 1 and reader.depth == 0:
        raise Trouble("TW001", "return inside a loop or a branch", help="let every path reach the end")
    raise Returned(None if node.value is None else reader.evaluate(node.value))


def _assert(reader: Reader, node: ast.Assert) -> None:
    if not is_symbolic(condition := reader.evaluate(node.test)) and not condition:
        raise Trouble("TW017", f"assertion failed{'' if node.msg is None else f': {reader.evaluate(node.msg)}'}")


def _function(reader: Reader, node: ast.FunctionDef) -> None:
    from tilewright.lang.tilelang_macro import LocalMacro

    reader.names[node.name] = LocalMacro(node, reader.place.file, reader.names)


def _nothing(reader: Reader, node: ast.stmt) -> None:
    del reader, node


HANDLERS: dict[type[ast.stmt], Callable[[Reader, Any], None]] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.For: _for,
    ast.With: _with,
    ast.If: _if,
    ast.Return: _return,
    ast.Assert: _assert,
    ast.FunctionDef: _function,
    ast.Pass: _nothing,
}
HELP: dict[type[ast.stmt], str] = {
    ast.While: "use for k in T.serial(…) with a bound",
    ast.Break: "give the loop the right bound",
    ast.Continue: "put the rest of the body under an if",
    ast.Try: "errors do not exist on the device",
    ast.Import: "import at the top of the file",
    ast.ImportFrom: "import at the top of the file",
}
