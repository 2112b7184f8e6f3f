"""Python's syntax trees: of which function, which names a piece of code assigns and reads, and returns that end it early."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CodeType
from typing import Any

from tilewright.diagnostics import Span, fail
from tilewright.dialects.walking import parsed_file, span_of_node

FunctionNode = ast.FunctionDef | ast.Lambda
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def own_nodes(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes and all below them, without what stands in functions: that runs when they are called."""
    pending = list(body)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, DEFINITIONS):
            pending += ast.iter_child_nodes(node)


def known_definition(function: Callable[..., Any]) -> ast.FunctionDef | None:
    """The ``def`` of a function where its file can be read and has only one."""
    code = function.__code__
    parsed = parsed_file(code.co_filename)
    found = parsed.functions.get((function.__name__, code.co_firstlineno), []) if parsed is not None else []
    return found[0] if len(found) == 1 and isinstance(found[0], ast.FunctionDef) else None


TIMED = "<timed exec>"  # IPython's name for the text of a cell under %%time, which it does not keep


def has_threads(definition: ast.FunctionDef) -> bool:
    """Whether a kernel's body has functions that are marked as threads; else it is one body."""
    return any(node.decorator_list for node in definition.body if isinstance(node, ast.FunctionDef))


def function_node(function: Callable[..., Any]) -> FunctionNode:
    """The definition of ``function``. Parsing the whole file keeps positions right however deep it is nested."""
    code = function.__code__
    name = function.__name__
    parsed = parsed_file(code.co_filename)
    found = parsed.functions.get((name, code.co_firstlineno), []) if parsed is not None else []
    if found and isinstance(found[0], ast.AsyncFunctionDef):
        place = span_of_node(code.co_filename, found[0])
        raise fail("TW001", f"'{name}' is async", place, help="kernel code is ordinary functions")
    if len(found) > 1:
        found = [node for node in found if isinstance(node, ast.Lambda) and _is_code_of(node, code)][:1]
    if not found:
        raise fail(
            "TW006",
            f"the source of '{name}' cannot be read",
            Span(code.co_filename, code.co_firstlineno),
            help="define the kernel in a cell of its own, without %%time, and call it in the next one"
            if code.co_filename == TIMED
            else "define the kernel in a file; text run with exec() needs an entry in linecache",
        )
    assert isinstance(found[0], (ast.FunctionDef, ast.Lambda))
    return found[0]


def _is_code_of(node: ast.Lambda, code: CodeType) -> bool:
    """Whether ``code`` was compiled from ``node``, where one line has several lambdas."""
    if sys.version_info >= (3, 11):
        start, end = (node.body.lineno, node.body.col_offset), (node.body.end_lineno, node.body.end_col_offset)
        places = [place for place in code.co_positions() if place[2] and place[3]]
        return any((line, column) == start and (last, stop) == end for line, last, column, stop in places)
    compiled = next(part for part in compile(ast.Expression(node), "", "eval").co_consts if isinstance(part, CodeType))
    names = {*code.co_names, *code.co_freevars}
    return (compiled.co_varnames, compiled.co_consts, {*compiled.co_names}) == (code.co_varnames, code.co_consts, names)


NAMES = "tilewright_names"


def loop_names(loop: ast.For | ast.While) -> tuple[set[str], set[str]]:
    """What a loop's body assigns, and what it may read before that; kept with the node."""
    known = loop.__dict__.get(NAMES)
    if known is None:
        known = loop.__dict__[NAMES] = (assigned_names(loop.body), read_before_assigned(loop.body))
    return known


REPLACED = "tilewright_replaced"


def replaced_names(loop: ast.For) -> set[str]:
    """What a loop's body assigns by other statements than ``name += …``; kept with the node."""
    known = loop.__dict__.get(REPLACED)
    if known is None:
        nodes = [node for statement in loop.body for node in ast.walk(statement)]
        targets = [node.target for node in nodes if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add)]
        stores = [node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        known = loop.__dict__[REPLACED] = {node.id for node in stores if node not in targets}
    return known


def steps(loop: ast.For, name: str) -> list[int] | None:
    """What the statements of a loop add to ``name``, each of them a number; None if one does something else with it."""
    found: list[int] = []
    stores = 0
    for node in own_nodes(loop.body):
        stores += isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        match node:
            case ast.AugAssign(ast.Name(target), op, ast.Constant(int(number))) if target == name:
                pass
            case ast.Assign([ast.Name(target)], ast.BinOp(ast.Name(old), op, ast.Constant(int(number)))) if target == old == name:
                pass
            case _:
                continue
        if isinstance(op, (ast.Add, ast.Sub)):
            found.append(number if isinstance(op, ast.Add) else -number)
    return found if len(found) == stores else None


def assigned_names(body: list[ast.stmt]) -> set[str]:
    names: set[str] = set()
    for node in own_nodes(body):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
            names.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            names.add(node.rest)
    return names


def read_before_assigned(body: list[ast.stmt]) -> set[str]:
    """Names whose value from outside (or from the iteration before) may be read."""
    return _scan(body, set())


def _reads(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Name):
        return {node.id} if isinstance(node.ctx, ast.Load) else set()
    found = set[str]().union(*(_reads(child) for child in ast.iter_child_nodes(node)))
    if isinstance(node, (ast.FunctionDef, ast.Lambda)):
        own = {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
        return found - own - (assigned_names(node.body) if isinstance(node, ast.FunctionDef) else set())
    return found


def _scan(body: list[ast.stmt], done: set[str]) -> set[str]:
    """Adds to ``done`` the names that are assigned on every path through ``body``; returns the exposed reads."""
    exposed: set[str] = set()
    for statement in body:
        if isinstance(statement, ast.If):
            exposed |= _reads(statement.test) - done
            left, right = set(done), set(done)
            exposed |= _scan(statement.body, left) | _scan(statement.orelse, right)
            done |= left & right
        elif isinstance(statement, ast.Match):
            exposed |= _reads(statement.subject) - done
            for case in statement.cases:
                inner = done | assigned_names([ast.Match(statement.subject, [ast.match_case(case.pattern, None, [])])])
                exposed |= (_reads(case.pattern) | (_reads(case.guard) if case.guard else set())) - inner
                exposed |= _scan(case.body, inner)  # another case may run: nothing it assigns is certain afterwards
        elif isinstance(statement, ast.For):
            exposed |= _reads(statement.iter) - done
            inner = done | {n.id for n in ast.walk(statement.target) if isinstance(n, ast.Name)}
            exposed |= _scan(statement.body, inner)  # it may run zero times: nothing it assigns is certain afterwards
        elif isinstance(statement, ast.While):
            exposed |= _reads(statement.test) - done
            exposed |= _scan(statement.body, set(done))
        elif isinstance(statement, ast.With):
            for item in statement.items:
                exposed |= _reads(item.context_expr) - done
                if item.optional_vars is not None:
                    done |= {n.id for n in ast.walk(item.optional_vars) if isinstance(n, ast.Name)}
            exposed |= _scan(statement.body, done)
        else:
            exposed |= _reads(statement) - done
            if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
                exposed |= {statement.target.id} - done
            done |= assigned_names([statement])
    return exposed


LOOPS = (ast.For, ast.AsyncFor, ast.While)


def function_body(name: str, body: list[ast.stmt], *, gives_value: bool) -> list[ast.stmt]:
    """The body of a function without returns under ifs. Values returned become an assignment and one return at the end."""
    if not any(_holds(part, ast.Return) for part in body if isinstance(part, ast.If)):
        return body
    returns = [node for node in own_nodes(body) if isinstance(node, ast.Return)]
    values = [node for node in returns if node.value is not None]
    inside = [node for part in own_nodes(body) if isinstance(part, (*LOOPS, ast.With, ast.Try)) for node in own_nodes([part])]
    if any(isinstance(node, ast.Return) for node in inside) or (values and not gives_value):
        return body  # these are said to be wrong where they stand, unless the ifs are decided at compile time
    result = f"{name}_result" if name.isidentifier() else "result"
    plain = _plain(body, ast.Return, result if values else None)
    if not values:
        return plain
    last = values[-1]
    return [*plain, _at(last, ast.Return(_at(last, ast.Name(result, ast.Load()))))]


def loop_body(body: list[ast.stmt]) -> list[ast.stmt]:
    """The body of a loop without ``continue``; one inside a ``with`` stays and is refused."""
    direct = [part for part in body if isinstance(part, (ast.If, ast.Continue))]
    return _plain(body, ast.Continue, None) if any(_holds(part, ast.Continue) for part in direct) else body


def _plain(body: Sequence[ast.stmt], kind: type[ast.stmt], result: str | None) -> list[ast.stmt]:
    for position, statement in enumerate(body):
        before, rest = list(body[:position]), body[position + 1 :]
        if isinstance(statement, kind):
            value = statement.value if isinstance(statement, ast.Return) else None
            if result is None:
                return before
            given = value or _at(statement, ast.Constant(None))
            return [*before, _at(statement, ast.Assign([_at(statement, ast.Name(result, ast.Store()))], given))]
        if isinstance(statement, ast.If) and _holds(statement, kind):
            then = _plain([*statement.body, *rest], kind, result) or [_at(statement, ast.Pass())]
            otherwise = _plain([*statement.orelse, *rest], kind, result)
            return [*before, _at(statement, ast.If(statement.test, then, otherwise))]
    return list(body)


def _holds(statement: ast.stmt, kind: type[ast.stmt]) -> bool:
    """Whether a branch of ifs alone leads to a ``kind``."""
    if isinstance(statement, ast.If):
        return any(_holds(part, kind) for part in (*statement.body, *statement.orelse))
    return isinstance(statement, kind)


def _at(place: ast.AST, node: Any) -> Any:
    return ast.copy_location(node, place)
