"""``match``: on values known at compile time the case is chosen now; on an integer of this core it is a chain of ifs."""

from __future__ import annotations

import ast
from typing import Any, cast

from tilewright.frontend.calls import bind_name
from tilewright.frontend.describe import described
from tilewright.frontend.known_values import RUNTIME_VALUES, native, truth
from tilewright.frontend.thread import Thread
from tilewright.integers import is_dynamic

SUBJECT = "subject of match"  # no name of the user's can be that
Captured = dict[str, Any]


def match(thread: Thread, node: ast.Match) -> None:
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
        return _sequence(thread, pattern, value)
    if isinstance(pattern, ast.MatchMapping):
        return _mapping(thread, pattern, value)
    if isinstance(pattern, ast.MatchClass):
        return _class(thread, pattern, value)
    if is_dynamic(value) or isinstance(value, RUNTIME_VALUES):
        raise thread.error("TW007", f"a case compares {described(value)}", pattern, help="use an if")
    if isinstance(pattern, ast.MatchSingleton):
        return {} if value is pattern.value else None
    assert isinstance(pattern, ast.MatchValue)
    return {} if native(thread, pattern, lambda: bool(value == thread.evaluate(pattern.value))) else None


def _sequence(thread: Thread, pattern: ast.MatchSequence, value: Any) -> Captured | None:
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
    return _all(thread, list(zip(parts, items, strict=True)), found)


def _mapping(thread: Thread, pattern: ast.MatchMapping, value: Any) -> Captured | None:
    if not isinstance(value, dict):
        return None
    table = cast("dict[Any, Any]", value)
    keys = [thread.evaluate(key) for key in pattern.keys]
    if not all(key in table for key in keys):
        return None
    rest = {key: item for key, item in table.items() if key not in keys}
    pairs = [(part, table[key]) for part, key in zip(pattern.patterns, keys, strict=True)]
    return _all(thread, pairs, {pattern.rest: rest} if pattern.rest else {})


def _class(thread: Thread, pattern: ast.MatchClass, value: Any) -> Captured | None:
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
    return _all(thread, [(part, getattr(value, name)) for name, part in wanted], {})


def _all(thread: Thread, pairs: list[tuple[ast.pattern, Any]], found: Captured) -> Captured | None:
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
    test, bound = _test(thread, case.pattern)
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


def _test(thread: Thread, pattern: ast.pattern) -> tuple[ast.expr | None, str | None]:
    """A condition, None for one that always holds, and the name that is bound."""
    if isinstance(pattern, ast.MatchAs):
        test = None if pattern.pattern is None else _test(thread, pattern.pattern)[0]
        return test, pattern.name
    read = ast.copy_location(ast.Name(SUBJECT, ast.Load()), pattern)
    if isinstance(pattern, ast.MatchValue):
        return ast.copy_location(ast.Compare(read, [ast.Eq()], [pattern.value]), pattern), None
    if isinstance(pattern, ast.MatchOr):
        tests = [test for part in pattern.patterns if (test := _test(thread, part)[0]) is not None]
        return ast.copy_location(ast.BoolOp(ast.Or(), tests), pattern), None
    remedy = "write cases of integers, and case _"
    raise thread.error("TW007", "this case on an integer that is known per core only", pattern, help=remedy)
