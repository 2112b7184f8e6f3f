"""MLIR text in: parsed with our dialects, checked, and compiled."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.diagnostics import Span, fail

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def read_text(source: str) -> str:
    """The file, or stdin for ``-``."""
    if source == "-":
        return sys.stdin.read()
    return Path(source).read_text(encoding="utf-8")


def dialect_context() -> Any:
    """A context that knows the dialects our passes meet."""
    from xdsl.context import Context
    from xdsl.dialects.affine import Affine
    from xdsl.dialects.arith import Arith
    from xdsl.dialects.builtin import Builtin
    from xdsl.dialects.func import Func
    from xdsl.dialects.scf import Scf
    from xdsl.dialects.tensor import Tensor

    from tilewright.dialects.ir_types import TTCore
    from tilewright.dialects.ttkernel import TTKernel
    from tilewright.dialects.ttl import TTL

    context = Context()
    for dialect in (Builtin, Func, Arith, Scf, Affine, Tensor, TTL, TTKernel, TTCore):
        context.load_dialect(dialect)
    return context


def parse(text: str, name: str, *, first_line: int = 1) -> ModuleOp:
    """The module in ``text``; TW603 with the line if it is not valid."""
    from xdsl.parser import Parser
    from xdsl.utils.exceptions import ParseError, VerifyException

    try:
        return Parser(dialect_context(), text, name).parse_module()
    except ParseError as error:
        raise located(error, text, name, first_line) from None
    except VerifyException as error:
        raise fail("TW603", f"the module does not verify: {error}", help="see the op's rule in the message") from None


def located(error: Any, text: str, name: str, first_line: int) -> Exception:
    start = error.span.start
    line = text.count("\n", 0, start)
    column = start - (text.rfind("\n", 0, start) + 1) + 1
    width = max(1, error.span.end - start)
    span = Span(name, first_line + line, column, column + width)
    return fail("TW603", str(error.msg).strip() or "cannot be parsed", span)


def verify(module: ModuleOp) -> None:
    from xdsl.utils.exceptions import VerifyException

    try:
        module.verify()
    except VerifyException as error:
        raise fail("TW603", f"the module does not verify: {first_paragraph(str(error))}") from None


def first_paragraph(text: str) -> str:
    return text.strip().split("\n\n")[-1].strip()
