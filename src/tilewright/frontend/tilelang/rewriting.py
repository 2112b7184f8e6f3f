"""Python's ``and``, ``or``, ``not`` and ``a if c else b`` need truth values; they become calls that also take symbols."""

from __future__ import annotations

import ast
import copy
from types import CodeType

REWRITTEN = (ast.BoolOp, ast.Not, ast.IfExp, ast.Compare)
CODE = "tilewright_code"


class _Rewriter(ast.NodeTransformer):
    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        symbol = "and" if isinstance(node.op, ast.And) else "or"
        return _call(node, "__tw_join", ast.Constant(symbol), *(_later(value) for value in node.values))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return _call(node, "__tw_not", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        return _call(node, "__tw_choose", node.test, _later(node.body), _later(node.orelse))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """``a < b < c`` is ``a < b and b < c``."""
        self.generic_visit(node)
        if len(node.ops) == 1:
            return node
        sides = [node.left, *node.comparators]
        pairs: list[ast.expr] = [
            ast.copy_location(ast.Compare(left, [op], [right]), node)
            for left, op, right in zip(sides, node.ops, sides[1:], strict=False)
        ]
        return _call(node, "__tw_join", ast.Constant("and"), *(_later(pair) for pair in pairs))


def _later(value: ast.expr) -> ast.expr:
    arguments = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.copy_location(ast.Lambda(arguments, value), value)


def _call(node: ast.expr, name: str, *arguments: ast.expr) -> ast.expr:
    call = ast.copy_location(ast.Call(ast.Name(name, ast.Load()), list(arguments), []), node)
    return ast.fix_missing_locations(call)


def code_of(node: ast.expr, file: str) -> CodeType:
    """The expression, compiled; kept at its node, since a file is parsed once and its kernels are read many times."""
    known = getattr(node, CODE, None)
    if known is None:
        written = node
        if any(isinstance(inner, REWRITTEN) for inner in ast.walk(node)):
            written = ast.fix_missing_locations(_Rewriter().visit(copy.deepcopy(node)))
        known = compile(ast.Expression(written), file, "eval")
        setattr(node, CODE, known)
    return known
