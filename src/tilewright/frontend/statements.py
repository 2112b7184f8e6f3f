"""Python statements of a thread."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from typing import Any, cast

from tilewright.builder import movement
from tilewright.builder.values import Block, Choice, described
from tilewright.frontend import carried, choices, containers, loops
from tilewright.frontend.calls import local_function
from tilewright.frontend.containers import bind_name, bind_target
from tilewright.frontend.expressions import BINARY
from tilewright.frontend.syntax import assigned_names
from tilewright.frontend.thread import MISSING, RUNTIME_VALUES, Branches, LeaveBody, Scope, Signpost, Thread, native, truth
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


def _assign(thread: Thread, node: ast.Assign) -> None:
    value = thread.evaluate(node.value)
    for target in node.targets:
        bind_target(thread, target, value, node)


def _annotated(thread: Thread, node: ast.AnnAssign) -> None:
    if node.value is not None:
        bind_target(thread, node.target, thread.evaluate(node.value), node)


def _augmented(thread: Thread, node: ast.AugAssign) -> None:
    current = thread.evaluate(node.target)  # the target's context is not looked at
    value = thread.evaluate(node.value)
    held = current.held if isinstance(current, Block) else None
    if held is not None and (held.kind == "reserve" or isinstance(node.op, ast.Add)):
        if not isinstance(node.op, ast.Add):
            symbol = BINARY[type(node.op)]
            remedy = "block += x accumulates; otherwise use store()"
            raise thread.error("TW204", f"{symbol}= on a reserved block", node, help=remedy)
        thread.at(node)
        movement.store(thread, current, carried.for_store(thread, value, current, node), True)
        return
    bind_target(thread, node.target, thread.combine(BINARY[type(node.op)], current, value, node), node)


def _with(thread: Thread, node: ast.With) -> None:
    guarded = _guarded(node)
    if guarded is not None:
        _if(thread, guarded)
        return
    held: list[tuple[Block, ast.expr]] = []
    around = list(thread.emitter.posts)
    for item in node.items:
        value = thread.evaluate(item.context_expr)
        if isinstance(value, Signpost):
            thread.emitter.posts.append(value.name)
        elif isinstance(value, Block) and value.held is not None:
            value.held.scoped = True
            held.append((value, item.context_expr))
        elif value is not None:
            remedy = "with buffer.wait() as a, buffer.reserve() as b:"
            raise thread.error("TW001", f"'with' on {described(value)}", item.context_expr, help=remedy)
        if item.optional_vars is not None:
            bind_target(thread, item.optional_vars, value, item.context_expr)
    leaving: LeaveBody | None = None
    try:
        execute(thread, node.body)
    except LeaveBody as found:
        leaving = found
    for block, expression in reversed(held):
        assert block.held is not None
        thread.at(expression)
        movement.release_buffer(thread, block.held.buffer, movement.RELEASE_OF[block.held.kind])
    thread.emitter.posts = around
    if leaving is not None:
        raise leaving


def _if(thread: Thread, node: ast.If) -> None:
    condition = truth(thread, thread.evaluate(node.test), node.test)
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
    names = {name: value for name, value in frame.names.items() if name in changed and isinstance(value, Scope)}
    second = [name for name, value in names.items() if value.of is not None]
    frame.names.update({name: carried.resolved(thread, names.pop(name), None, node) for name in second})
    scopes = names
    before, held = dict(frame.names), list(thread.held)
    contents = [choices.contents(held)]
    ways = thread.emitter.branch(condition)
    branch = ways[0].parent_op()
    assert branch is not None
    for scope in scopes.values():
        scope.value = None  # read anew behind the branches
        scope.changes_at(branch)
    results: list[dict[str, Any]] = []
    for block, (chosen, body) in zip(ways, (then, otherwise), strict=True):
        frame.names, thread.held = dict(before), list(held)
        choices.put_back(contents[0])
        thread.emitter.enter(block)
        inner = {name: Scope(scope.carried, block) for name, scope in scopes.items()}
        frame.names.update(inner)
        frame.names.update({name: choices.localised(thread, value) for name, value in chosen.items()})
        execute(thread, body)
        thread.at(node)
        carried.leave(thread, list(inner.values()), [choices.settled(thread, frame.names[name], node) for name in inner], node)
        frame.names.update(scopes)
        for name in changed:
            if isinstance(value := frame.names.get(name), Scope) and value.of is not None:
                frame.names[name] = carried.resolved(thread, value, None, node)
        thread.emitter.close_branch()
        results.append(frame.names)
        contents.append(choices.contents(held))
    thread.held = held
    branches = Branches(condition, ways, node)
    choices.merge_contents(thread, branches, *contents)
    frame.names = _merged(thread, branches, before, *results)


def _merged(
    thread: Thread, branches: Branches, before: dict[str, Any], left: dict[str, Any], right: dict[str, Any]
) -> dict[str, Any]:
    """Names after an if."""
    merged = dict(before)
    for name in {**left, **right}:
        first, second = left.get(name, MISSING), right.get(name, MISSING)
        merged[name] = choices.merged(thread, name, branches, first, second)
    return merged


def _return(thread: Thread, node: ast.Return) -> None:
    frame = thread.frame
    if len(thread.frames) == 1 and node.value is not None and thread.evaluate(node.value) is not None:
        raise thread.error("TW001", "a thread returns a value", node, help="results leave through buffers and ttl.copy")
    if thread.depth != frame.depth:
        message = "return inside a loop, or inside a with under an if that is decided per core"
        raise thread.error("TW001", message, node, help="put the rest of the work under an if instead")
    frame.returned = None if node.value is None else _returned(thread, node.value)
    frame.has_returned = True


def _returned(thread: Thread, node: ast.expr) -> Any:
    """A choice is handed on as it is."""
    value = thread.frame.names.get(node.id) if isinstance(node, ast.Name) else None
    return value if isinstance(value, Choice) else thread.evaluate(node)


def _assert(thread: Thread, node: ast.Assert) -> None:
    condition = truth(thread, thread.evaluate(node.test), node.test)
    if is_dynamic(condition):
        raise thread.error("TW007", "assert on a value that is known per core only", node, help="assert on Python values")
    if not condition:
        message = "" if node.msg is None else f": {thread.evaluate(node.msg)}"
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


def _guarded(node: ast.With) -> ast.If | None:
    """``with pipe.if_src():``, as the first generation writes it, is ``if pipe.is_src():``."""
    call = node.items[0].context_expr
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in ("if_src", "if_dst")):
        return None
    if call.args or call.keywords or node.items[0].optional_vars is not None:
        return None
    body: list[ast.stmt] = node.body if len(node.items) == 1 else [ast.copy_location(ast.With(node.items[1:], node.body), node)]
    asked = ast.Attribute(call.func.value, call.func.attr.replace("if_", "is_"), ast.Load())
    test = ast.copy_location(ast.Call(ast.copy_location(asked, call.func), [], []), call)
    return ast.copy_location(ast.If(test, body, []), node)


SUBJECT = "subject of match"  # no name of the user's can be that
Captured = dict[str, Any]


def _match(thread: Thread, node: ast.Match) -> None:
    subject = thread.evaluate(node.subject)
    if is_dynamic(subject):
        thread.frame.names[SUBJECT] = subject
        thread.execute(_as_ifs(thread, node.cases, node))
        return
    for case in node.cases:
        found = _fits(thread, case.pattern, subject)
        if found is None:
            continue
        for name, value in found.items():
            bind_name(thread, name, value, case.pattern)
        if case.guard is not None:
            holds = truth(thread, thread.evaluate(case.guard), case.guard)
            if is_dynamic(holds):
                remedy = "put the condition into an if inside the case"
                raise thread.error("TW007", "the guard of a case must be known at compile time", case.guard, help=remedy)
            if not holds:
                continue
        thread.execute(case.body)
        return


def _fits(thread: Thread, pattern: ast.pattern, value: Any) -> Captured | None:
    """Names the pattern binds, if ``value`` has its form."""
    if isinstance(pattern, ast.MatchAs):
        found = {} if pattern.pattern is None else _fits(thread, pattern.pattern, value)
        return found if found is None or pattern.name is None else {**found, pattern.name: value}
    if isinstance(pattern, ast.MatchOr):
        return next((found for part in pattern.patterns if (found := _fits(thread, part, value)) is not None), None)
    if isinstance(pattern, ast.MatchSequence):
        return _fits_sequence(thread, pattern, value)
    if isinstance(pattern, ast.MatchMapping):
        return _fits_mapping(thread, pattern, value)
    if isinstance(pattern, ast.MatchClass):
        return _fits_class(thread, pattern, value)
    if is_dynamic(value) or isinstance(value, RUNTIME_VALUES):
        raise thread.error("TW007", f"a case compares {described(value)}", pattern, help="use an if")
    if isinstance(pattern, ast.MatchSingleton):
        return {} if value is pattern.value else None
    assert isinstance(pattern, ast.MatchValue)
    return {} if native(thread, pattern, lambda: bool(value == thread.evaluate(pattern.value))) else None


def _fits_sequence(thread: Thread, pattern: ast.MatchSequence, value: Any) -> Captured | None:
    if not isinstance(value, (list, tuple, range)):
        return None
    items = list(cast("list[Any]", value))
    star = next((place for place, part in enumerate(pattern.patterns) if isinstance(part, ast.MatchStar)), None)
    fixed = len(pattern.patterns) - (star is not None)
    if len(items) < fixed or (star is None and len(items) != fixed):
        return None
    found: Captured = {}
    if star is not None:
        behind = len(items) - (fixed - star)
        part = pattern.patterns[star]
        assert isinstance(part, ast.MatchStar)
        found = {} if part.name is None else {part.name: items[star:behind]}
        items = [*items[:star], *items[behind:]]
    parts = [part for part in pattern.patterns if not isinstance(part, ast.MatchStar)]
    return _fit_all(thread, list(zip(parts, items, strict=True)), found)


def _fits_mapping(thread: Thread, pattern: ast.MatchMapping, value: Any) -> Captured | None:
    if not isinstance(value, dict):
        return None
    table = cast("dict[Any, Any]", value)
    keys = [thread.evaluate(key) for key in pattern.keys]
    if not all(key in table for key in keys):
        return None
    rest = {key: item for key, item in table.items() if key not in keys}
    pairs = [(part, table[key]) for part, key in zip(pattern.patterns, keys, strict=True)]
    return _fit_all(thread, pairs, {pattern.rest: rest} if pattern.rest else {})


def _fits_class(thread: Thread, pattern: ast.MatchClass, value: Any) -> Captured | None:
    kind = thread.evaluate(pattern.cls)
    if not native(thread, pattern, isinstance, value, kind) or is_dynamic(value):
        return None
    names: tuple[str, ...] = getattr(kind, "__match_args__", ())
    if len(pattern.patterns) == 1 and kind in (bool, bytes, dict, float, frozenset, int, list, set, str, tuple):
        return _fits(thread, pattern.patterns[0], value)
    if len(pattern.patterns) > len(names):
        found = f"{kind.__name__} has {len(names)} fields to match by position"
        raise thread.error("TW004", found, pattern, help="name the fields")
    wanted = [*zip(names, pattern.patterns, strict=False), *zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True)]
    if not all(hasattr(value, name) for name, _ in wanted):
        return None
    return _fit_all(thread, [(part, getattr(value, name)) for name, part in wanted], {})


def _fit_all(thread: Thread, pairs: list[tuple[ast.pattern, Any]], found: Captured) -> Captured | None:
    for part, item in pairs:
        more = _fits(thread, part, item)
        if more is None:
            return None
        found = {**found, **more}
    return found


def _as_ifs(thread: Thread, cases: list[ast.match_case], node: ast.Match) -> list[ast.stmt]:
    """The cases from here on for an integer that is known per core: comparisons, names, and what is left."""
    if not cases:
        return []
    case = cases[0]
    test, bound = _case_test(thread, case.pattern)
    target: list[ast.stmt] = []
    if bound:
        named = ast.Assign([ast.Name(bound, ast.Store())], ast.Name(SUBJECT, ast.Load()))
        target = [ast.fix_missing_locations(ast.copy_location(named, case.pattern))]
    if case.guard is not None:
        if bound:
            remedy = "put the condition into an if inside the case"
            raise thread.error("TW007", "a guard on a name of its case, on an integer of this core", case.guard, help=remedy)
        test = case.guard if test is None else ast.copy_location(ast.BoolOp(ast.And(), [test, case.guard]), case.guard)
    if test is None:
        return [*target, *case.body]
    rest = _as_ifs(thread, cases[1:], node)
    return [ast.copy_location(ast.If(test, [*target, *case.body], rest), case.pattern)]


def _case_test(thread: Thread, pattern: ast.pattern) -> tuple[ast.expr | None, str | None]:
    """A condition, None for one that always holds, and the name that is bound."""
    if isinstance(pattern, ast.MatchAs):
        test = None if pattern.pattern is None else _case_test(thread, pattern.pattern)[0]
        return test, pattern.name
    read = ast.copy_location(ast.Name(SUBJECT, ast.Load()), pattern)
    if isinstance(pattern, ast.MatchValue):
        return ast.copy_location(ast.Compare(read, [ast.Eq()], [pattern.value]), pattern), None
    if isinstance(pattern, ast.MatchOr):
        tests = [test for part in pattern.patterns if (test := _case_test(thread, part)[0]) is not None]
        return ast.copy_location(ast.BoolOp(ast.Or(), tests), pattern), None
    remedy = "write cases of integers, and case _"
    raise thread.error("TW007", "this case on an integer that is known per core only", pattern, help=remedy)


HANDLERS: dict[type[ast.stmt], Callable[[Thread, Any], None]] = {
    ast.Expr: lambda thread, node: thread.evaluate(node.value),
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
    ast.Pass: lambda thread, node: None,
    ast.Import: _import,
    ast.ImportFrom: _import,
    ast.Delete: _delete,
    ast.Nonlocal: _nonlocal,
    ast.Match: _match,
}
