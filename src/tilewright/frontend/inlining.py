"""Calls in an operation that is one body: helpers that hold copies, acquires or stores, and other operations, are written out.

One body is cut into threads statement by statement, and a call may hold statements of several threads. So the statements of the
helper stand in place of the call, under names of their own, before anything is cut. Of an operation the part before its first
action runs on the host, once for each call that is written: that makes its buffers.
"""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

from tilewright.diagnostics import fail
from tilewright.dialects.walking import span_of_node
from tilewright.frontend.syntax import assigned_names, known_definition, own_nodes
from tilewright.lang.kernel import Arguments, KernelFunction, outer_names
from tilewright.lang.names import is_of_language

MOST_NESTED = 32
Acts = Callable[[ast.AST], bool]
HostPart = Callable[[KernelFunction, Arguments], "tuple[list[ast.stmt], Mapping[str, Any]]"]


def called_helper(statement: ast.stmt, names: Mapping[str, Any]) -> tuple[ast.Call, Any] | None:
    """The call that is all of a statement, or all that it assigns, and the function of the user's it names."""
    value = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
    if not isinstance(value, ast.Call):
        return None
    if isinstance(statement, ast.Assign) and len(statement.targets) > 1:
        return None
    base = value.func
    while isinstance(base, ast.Attribute):
        base = base.value
    if not isinstance(base, ast.Name):
        return None  # to look at it would be to run it
    try:
        found: Any = eval(compile(ast.Expression(value.func), "", "eval"), {}, _Scope(names))
    except Exception:
        return None
    users = isinstance(found, FunctionType) and not is_of_language(found)
    return (value, found) if users or isinstance(found, KernelFunction) else None


class _Scope(dict[str, Any]):
    """Names for ``eval``, whatever mapping they stand in."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        super().__init__()
        self.names = names

    def __missing__(self, name: str) -> Any:
        return self.names[name]


def acts_in_helpers(statement: ast.stmt, names: Mapping[str, Any], acts: Acts, depth: int = 0) -> bool:
    """Whether a statement calls a helper that copies, acquires or stores."""
    for node in own_nodes([statement]):
        found = called_helper(node, names) if isinstance(node, ast.stmt) else None
        if found is None or depth > MOST_NESTED or not isinstance(found[1], FunctionType):
            continue
        definition = known_definition(found[1])
        if definition is None or definition.decorator_list:
            continue
        inner = {**names, **outer_names(found[1])}
        if any(acts(part) for part in own_nodes(definition.body)):
            return True
        if any(acts_in_helpers(part, inner, acts, depth + 1) for part in definition.body):
            return True
    return False


class Inliner:
    """Writes calls out. ``names`` grows by what the written statements need of the outside."""

    def __init__(self, file: str, names: Mapping[str, Any], acts: Acts, host_part: HostPart) -> None:
        self.file = file
        self.names: dict[str, Any] = dict(names)
        self.acts = acts
        self.host_part = host_part
        self.calls = 0
        self.depth = 0

    def written(self, body: list[ast.stmt], names: Mapping[str, Any] | None = None) -> list[ast.stmt]:
        scope = self.names if names is None else names
        found: list[ast.stmt] = []
        for statement in body:
            found += self._statement(statement, scope)
        return found

    def _statement(self, statement: ast.stmt, scope: Mapping[str, Any]) -> list[ast.stmt]:
        call = called_helper(statement, scope)
        if call is not None:
            node, function = call
            if isinstance(function, KernelFunction):
                return self._operation(statement, node, function, scope)
            if acts_in_helpers(statement, scope, self.acts):
                definition = known_definition(function)
                if definition is not None and _ends_with_return(definition):
                    return self._helper(statement, node, function, definition, scope)
        new = copy.copy(statement)
        for field in ("body", "orelse"):
            inner = getattr(statement, field, None)
            if isinstance(inner, list) and not isinstance(statement, ast.ClassDef):
                setattr(new, field, self.written(inner, scope))  # pyright: ignore[reportUnknownArgumentType]
        return [new]

    def _helper(
        self, statement: ast.stmt, node: ast.Call, function: FunctionType, definition: ast.FunctionDef, scope: Mapping[str, Any]
    ) -> list[ast.stmt]:
        arguments, keywords = _plain_arguments(node)
        if arguments is None:
            return [statement]
        try:
            bound = inspect.signature(function).bind(*arguments, **keywords)
        except TypeError as error:
            place = span_of_node(self.file, node)
            remedy = f"it is {function.__name__}{inspect.signature(function)}"
            raise fail("TW004", f"{function.__name__}: {error}", place, help=remedy) from None
        bound.apply_defaults()
        outer, file = dict(outer_names(function)), function.__code__.co_filename
        return self._body(statement, definition.body, bound.arguments, outer, file, scope)

    def _operation(
        self, statement: ast.stmt, node: ast.Call, kernel: KernelFunction, scope: Mapping[str, Any]
    ) -> list[ast.stmt]:
        place = span_of_node(self.file, node)
        given, named = _host_arguments(node, kernel, scope, self.file)
        bound = kernel.bind(given, named)
        body, names = self.host_part(kernel, bound)
        if not body:
            remedy = f"call '{kernel.name}' before the first block is acquired, or write it as one body too"
            raise fail("TW001", f"operation '{kernel.name}', which has threads, is called between actions", place, help=remedy)
        return self._body(statement, body, {}, names, kernel.function.__code__.co_filename, scope)

    def _body(
        self,
        statement: ast.stmt,
        body: list[ast.stmt],
        arguments: Mapping[str, Any],
        outer: Mapping[str, Any],
        file: str,
        scope: Mapping[str, Any],
    ) -> list[ast.stmt]:
        """The statements under names of their own; arguments that are names or constants stand for the parameters."""
        self.depth += 1
        if self.depth > MOST_NESTED:
            remedy = "helpers are written out where they are called: what ends the recursion must be known at compile time"
            raise fail("TW005", "a helper calls itself without end", span_of_node(self.file, statement), help=remedy)
        self.calls += 1
        number = self.calls
        before: list[ast.stmt] = []
        meanings: dict[str, ast.expr] = {}
        for name, argument in arguments.items():
            if isinstance(argument, (ast.Name, ast.Constant)):
                meanings[name] = argument
            elif isinstance(argument, ast.expr):
                meanings[name] = self._temporary(before, f"{name}_{number}", argument, statement)
            else:
                meanings[name] = self._constant(f"{name}_{number}", argument, statement)
        own = assigned_names(body) | {node.name for part in body for node in ast.walk(part) if isinstance(node, ast.FunctionDef)}
        for name in own:
            if isinstance(meanings.get(name), ast.Constant) or name in arguments:  # a parameter that is assigned to
                before.append(_assigned(f"{name}_{number}", meanings[name], statement))
            meanings[name] = ast.Name(f"{name}_{number}", ast.Load())
        used = {node.id for part in body for node in ast.walk(part) if isinstance(node, ast.Name)}
        for name in used - meanings.keys():
            if name in outer and not (name in scope and scope[name] is outer[name]):
                meanings[name] = self._constant(f"{name}_{number}", outer[name], statement)
        renamed = [_Renamer(meanings).visit(copy.deepcopy(part)) for part in body]
        if file != self.file:
            for part in renamed:
                for node in ast.walk(part):
                    ast.copy_location(node, statement)
        last = renamed[-1] if renamed and isinstance(renamed[-1], ast.Return) else None
        result = renamed[:-1] if last is not None else renamed
        inner = {**scope, **self.names}
        result = [new for part in result for new in self._statement(part, inner)]
        if isinstance(statement, ast.Assign):
            value = last.value if last is not None and last.value is not None else ast.Constant(None)
            result += self._statement(ast.copy_location(ast.Assign(statement.targets, value), statement), inner)
        self.depth -= 1
        return [ast.fix_missing_locations(part) for part in (*before, *result)]

    def _temporary(self, before: list[ast.stmt], name: str, value: ast.expr, place: ast.stmt) -> ast.expr:
        before.append(_assigned(name, value, place))
        return ast.Name(name, ast.Load())

    def _constant(self, name: str, value: Any, place: ast.stmt) -> ast.expr:
        self.names[name] = value
        return ast.copy_location(ast.Name(name, ast.Load()), place)


def call_between(node: ast.Call, kernel: Any, scope: Mapping[str, Any], file: str) -> None:
    """A call of an operation between the actions of a body: it is made when the body runs."""
    given, named = _host_arguments(node, kernel, scope, file)
    kernel(*given, **named)


def _host_arguments(
    node: ast.Call, kernel: KernelFunction, scope: Mapping[str, Any], file: str
) -> tuple[list[Any], dict[str, Any]]:
    arguments, keywords = _plain_arguments(node)
    try:
        return [_value(argument, scope) for argument in arguments or ()], {
            name: _value(argument, scope) for name, argument in keywords.items()
        }
    except Exception:
        remedy = "its arguments are tensors, buffers and numbers that the body knows before its first action"
        message = f"operation '{kernel.name}' is called with a value of this thread"
        raise fail("TW001", message, span_of_node(file, node), help=remedy) from None


def _plain_arguments(node: ast.Call) -> tuple[list[ast.expr] | None, dict[str, ast.expr]]:
    keywords = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg is not None}
    if any(isinstance(argument, ast.Starred) for argument in node.args) or len(keywords) < len(node.keywords):
        return None, {}
    return list(node.args), keywords


def _value(node: ast.expr, scope: Mapping[str, Any]) -> Any:
    return eval(compile(ast.Expression(node), "", "eval"), {}, _Scope(scope))


def _assigned(name: str, value: ast.expr, place: ast.stmt) -> ast.stmt:
    return ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], value), place)


def _ends_with_return(definition: ast.FunctionDef) -> bool:
    """Whether nothing returns but its last statement; and it is no generator."""
    nodes = list(own_nodes(definition.body))
    returns = [node for node in nodes if isinstance(node, ast.Return)]
    if any(isinstance(node, (ast.Yield, ast.YieldFrom, ast.Nonlocal, ast.Global)) for node in nodes):
        return False
    return all(node is definition.body[-1] for node in returns)


class _Renamer(ast.NodeTransformer):
    def __init__(self, meanings: Mapping[str, ast.expr]) -> None:
        self.meanings = meanings

    def visit_Name(self, node: ast.Name) -> ast.AST:
        found = self.meanings.get(node.id)
        if found is None:
            return node
        if isinstance(found, ast.Name):
            return ast.copy_location(ast.Name(found.id, node.ctx), node)
        return ast.copy_location(copy.deepcopy(found), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        own = {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)} | assigned_names(node.body)
        inner = _Renamer({name: value for name, value in self.meanings.items() if name not in own})
        node.body = [inner.visit(part) for part in node.body]
        renamed = self.meanings.get(node.name)
        node.name = renamed.id if isinstance(renamed, ast.Name) else node.name
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        own = {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
        node.body = _Renamer({name: value for name, value in self.meanings.items() if name not in own}).visit(node.body)
        return node


def distinct_blocks(body: list[ast.stmt], acquires: Sequence[str]) -> list[ast.stmt]:
    """The same statements with a name of its own for each block that a ``with`` acquires; it ends there."""
    return _DistinctBlocks(acquires).each(body)


class _DistinctBlocks(ast.NodeTransformer):
    def __init__(self, acquires: Sequence[str]) -> None:
        self.acquires = acquires
        self.count = 0

    def each(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [self.visit(copy.deepcopy(statement)) for statement in body]

    def visit_With(self, node: ast.With) -> ast.AST:
        meanings: dict[str, ast.expr] = {}
        for item in node.items:
            called = item.context_expr.func if isinstance(item.context_expr, ast.Call) else None
            target = item.optional_vars
            if isinstance(called, ast.Attribute) and called.attr in self.acquires and isinstance(target, ast.Name):
                self.count += 1
                meanings[target.id] = ast.Name(f"{target.id}_{self.count}", ast.Load())
                item.optional_vars = ast.copy_location(ast.Name(f"{target.id}_{self.count}", ast.Store()), target)
        node.body = [_Renamer(meanings).visit(statement) for statement in node.body]
        return self.generic_visit(node)
