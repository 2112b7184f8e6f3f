"""The statements a kernel may have, the loops among them, and what those run over."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tilewright.frontend.syntax import assigned_names, read_before_assigned
from tilewright.frontend.tilelang.symbols import Fragment, Index, Trouble, is_integer, is_symbolic, plain, raw
from tilewright.frontend.tilelang.tile_program import Branch, Loop, Statement
from tilewright.integers import Leaf, Value, bounds, make
from tilewright.records import record

if TYPE_CHECKING:
    from tilewright.frontend.tilelang.reader import Reader


@record
class Counted:
    """``range``, ``T.serial``, ``T.Pipelined``, ``T.unroll``: one variable."""

    start: Any
    stop: Any
    step: Any = 1
    stages: int = 0


@record
class PersistentDomain:
    """``T.Persistent(sizes, wave_size, index)``: of all tiles, every ``wave_size``-th from ``index`` on."""

    sizes: tuple[int, ...]
    wave_size: int
    index: Any


@record
class ParallelDomain:
    """``T.Parallel(M, N)``."""

    extents: tuple[int, ...]


@record
class KernelDomain:
    """``T.Kernel(gx, gy)`` before its ``with``."""

    grid: tuple[int, ...]


class Returned(Exception):
    """Ends a macro or the kernel."""


def counted_range(*arguments: Any) -> Any:
    if not any(isinstance(argument, Index) for argument in arguments):
        return range(*arguments)
    start, stop = (0, arguments[0]) if len(arguments) == 1 else arguments[:2]
    return Counted(start, stop, arguments[2] if len(arguments) > 2 else 1)


MOST_UNROLLED = 64  # iterations that are written out where a number changes from one to the next


class Changed(Exception):
    """A number that an iteration leaves for the next one: statements of a loop are read once, so it would be lost."""

    def __init__(self, name: str) -> None:
        self.trouble = Trouble(
            "TW012",
            f"'{name}' changes from one iteration to the next",
            help="compute it from the loop variable, or keep it in a fragment of 32 elements",
        )


def counted_loop(reader: Reader, node: ast.For, domain: Counted) -> None:
    if not isinstance(node.target, ast.Name):
        raise Trouble("TW004", "this loop has one variable", help="for k in T.Pipelined(…)")
    if not is_integer(domain.start) or not is_integer(domain.stop):
        remedy = "loop to the largest length, with `if k < length[bx]:` inside"
        raise Trouble("TW007", "the length of this loop is data", help=remedy)
    start, stop, step = raw(domain.start), raw(domain.stop), domain.step
    if not isinstance(step, int) or step < 1:
        raise Trouble("TW008", f"a loop with step {step!r}", help="count up, and compute the index from the variable")
    if step != 1:
        start, stop = 0, make("//", make("+", make("-", stop, start), step - 1), step)
    around, reader.stages = (reader.stages, reader.pipelined), domain.stages or reader.stages
    reader.pipelined = reader.pipelined or domain.stages > 0
    name = node.target.id

    def give(number: Value) -> None:
        reader.names[name] = plain(number if step == 1 else make("+", make("*", number, step), raw(domain.start)))

    if make("-", stop, start) == 1:
        give(start)
        reader.execute(node.body)
    elif not isinstance(stop, int) or not isinstance(start, int) or stop > start:
        variable = reader.leaf(name, bounds(start)[0], bounds(stop)[1] - 1)
        give(variable)
        tensors, names, scalars = len(reader.tensors), dict(reader.names), dict(reader.scalars)
        try:
            body = _iteration(reader, node.body, variable)
            reader.emit(Loop(variable, start, stop, body, reader.place))
        except Changed as changed:
            if not isinstance(start, int) or not isinstance(stop, int) or stop - start > MOST_UNROLLED:
                raise changed.trouble from None
            del reader.tensors[tensors:]
            reader.names.clear()
            reader.names.update(names)
            reader.scalars = scalars
            for number in range(start, stop):
                give(number)
                reader.execute(node.body)
        reader.names.pop(name, None)
    reader.stages, reader.pipelined = around


def _iteration(reader: Reader, statements: list[ast.stmt], variable: Leaf) -> list[Statement]:
    """The body of a loop. What it gives a buffer of one element is gone after it."""
    carried = assigned_names(statements) & read_before_assigned(statements)
    known: dict[str, Any] = {each: reader.names[each] for each in carried if each in reader.names}
    scalars = dict(reader.scalars)
    reader.loop_variables.append(variable)
    body = reader.nested(statements)
    reader.loop_variables.pop()
    for name, value in known.items():
        if reader.names.get(name) is not value and not isinstance(value, Fragment):
            raise Changed(name)
    for fragment, value in scalars.items():
        if reader.scalars.get(fragment) is not value:
            raise Changed(fragment.name)
    reader.scalars = scalars
    return body


def persistent_loop(reader: Reader, node: ast.For, domain: PersistentDomain) -> None:
    targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
    if len(targets) != len(domain.sizes):
        raise Trouble("TW004", f"{len(targets)} variables for {len(domain.sizes)} sizes", word="Persistent")
    total = math.prod(domain.sizes)
    waves = -(-total // domain.wave_size)
    wave = reader.leaf("wave", 0, waves - 1)
    tile = make("+", make("*", wave, domain.wave_size), reader.integer(domain.index))
    rest = tile
    for target, size in zip(targets, domain.sizes, strict=True):
        reader.bind(target, plain(make("%", rest, size) if target is not targets[-1] else rest))
        rest = make("//", rest, size)
    try:
        body = _iteration(reader, node.body, wave)
    except Changed as changed:
        raise changed.trouble from None
    inside: list[Statement] = [Branch(make("<", tile, total), body, [], reader.place)]
    reader.emit(Loop(wave, 0, waves, body if bounds(tile)[1] < total else inside, reader.place))


def parallel_loop(reader: Reader, node: ast.For, domain: ParallelDomain) -> None:
    if reader.parallel:
        raise Trouble("TW001", "T.Parallel inside T.Parallel", help="give all extents to one: T.Parallel(M, N)")
    targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
    if len(domain.extents) > 2:
        remedy = "blocks are matrices of tiles: put a serial loop around T.Parallel(M, N), with fragments of two dimensions"
        raise Trouble("TW001", f"T.Parallel over {len(domain.extents)} dimensions", help=remedy, word="Parallel")
    if len(targets) != len(domain.extents):
        raise Trouble("TW004", f"{len(targets)} variables for {len(domain.extents)} extents", word="Parallel")
    for target, extent in zip(targets, domain.extents, strict=True):
        if not isinstance(target, ast.Name):
            raise Trouble("TW004", f"T.Parallel counts '{ast.unparse(target)}'", help="give its variables plain names")
        leaf = reader.leaf(target.id, 0, extent - 1)
        reader.parallel[leaf] = extent
        reader.names[target.id] = plain(leaf)
    reader.loaded = {}
    before = dict(reader.names)
    reader.execute(node.body)
    reader.parallel, reader.loaded = {}, {}
    for name in [name for name, value in reader.names.items() if is_symbolic(value) and before.get(name) is not value]:
        if not isinstance(reader.names[name], Fragment):  # elements exist inside only
            del reader.names[name]
    for target in targets:
        reader.names.pop(target.id, None)  # pyright: ignore


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
        remedy = "elements are computed all at once; put the loop around T.Parallel"
        raise Trouble("TW001", "a loop inside T.Parallel whose length only the device knows", help=remedy)
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


def _return(reader: Reader, node: ast.Return) -> None:
    if len(reader.bodies) > 1 and reader.depth == 0:
        raise Trouble("TW001", "return inside a loop or a branch", help="let every path reach the end")
    raise Returned(None if node.value is None else reader.evaluate(node.value))


def _assert(reader: Reader, node: ast.Assert) -> None:
    if not is_symbolic(condition := reader.evaluate(node.test)) and not condition:
        raise Trouble("TW017", f"assertion failed{'' if node.msg is None else f': {reader.evaluate(node.msg)}'}")


def _function(reader: Reader, node: ast.FunctionDef) -> None:
    from tilewright.frontend.tilelang.reader import LocalMacro

    reader.names[node.name] = LocalMacro(node, reader.place.file, reader.names)


HANDLERS: dict[type[ast.stmt], Callable[[Reader, Any], None]] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.For: _for,
    ast.With: _with,
    ast.If: lambda reader, node: reader.branch(node),
    ast.Return: _return,
    ast.Assert: _assert,
    ast.FunctionDef: _function,
    ast.Pass: lambda reader, node: None,
}
HELP: dict[type[ast.stmt], str] = {
    ast.While: "use for k in T.serial(…) with a bound",
    ast.Break: "give the loop the right bound",
    ast.Continue: "put the rest of the body under an if",
    ast.Try: "errors do not exist on the device",
    ast.Import: "import at the top of the file",
    ast.ImportFrom: "import at the top of the file",
}
