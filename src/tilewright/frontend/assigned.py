"""Which names a piece of Python assigns, and which it may read before it has assigned them."""

from __future__ import annotations

import ast

from tilewright.frontend.source import own_nodes

NAMES = "tilewright_names"


def loop_names(loop: ast.For | ast.While) -> tuple[set[str], set[str]]:
    """What a loop's body assigns, and what it may read before that; kept with the node."""
    known = loop.__dict__.get(NAMES)
    if known is None:
        known = loop.__dict__[NAMES] = (assigned_names(loop.body), read_before_assigned(loop.body))
    return known


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
