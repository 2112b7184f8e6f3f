"""MLIR text in: parsed with our dialects, checked, and compiled."""

from __future__ import annotations

import linecache
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.diagnostics import Span, fail

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from tilewright.options import Options
    from tilewright.program import Program


STDIN = "<stdin>"
DEFINED_ALIAS = re.compile(r"^\s*(#[\w$.-]+)\s*=", re.MULTILINE)
TRANSFORM_HELP = "leave the script out: blocks are tiled to the capacity of DST, and --dst-capacity is its target_size"
NAMED_GENERIC = re.compile(r"%[\w$.-]+ *= *(?=linalg\.generic\b)")


def read_text(source: str) -> str:
    """The file, or stdin for ``-``."""
    if source == "-":
        text = sys.stdin.read()
        linecache.cache[STDIN] = (len(text), None, text.splitlines(keepends=True), STDIN)  # for the excerpts of errors
        return text
    return Path(source).read_text(encoding="utf-8")


def parse(text: str, name: str, *, first_line: int = 1) -> ModuleOp:
    """The module in ``text``; TW603 with the line if it is not valid."""
    from xdsl.context import Context
    from xdsl.utils.exceptions import ParseError

    from tilewright.dialects.assembly import TextParser
    from tilewright.dialects.attributes import KNOWN_ALIASES
    from tilewright.dialects.text_input import load_dialects

    parser: TextParser | None = None
    try:
        parser = TextParser(load_dialects(Context()), text, name, first_line=first_line)
        defined = set(DEFINED_ALIAS.findall(text))
        parser.attribute_aliases.update({name: value for name, value in KNOWN_ALIASES.items() if name not in defined})
        return parser.parse_module()
    except ParseError as error:
        unnamed = _without_name(text, error.span.start)
        if unnamed is not None:
            return parse(unnamed, name, first_line=first_line)
        raise located(error, text, name, first_line) from None
    except Exception as error:
        # xDSL's parsers of types, attributes and ops answer some wrong text with errors of Python.
        line, column = parser.place(min(parser.pos, len(text))) if parser is not None else (first_line, 1)
        message = f"cannot be parsed: {first_paragraph(str(error)) or type(error).__name__}"
        raise fail("TW603", message, Span(name, line, column)) from None


def _without_name(text: str, start: int) -> str | None:
    """Without the name of a ``linalg.generic`` on memrefs, which has no result: the specification's listing names one."""
    named = NAMED_GENERIC.match(text, start)
    if named is None:
        return None
    return text[: named.start()] + " " * len(named.group()) + text[named.end() :]


def located(error: Any, text: str, name: str, first_line: int) -> Exception:
    start = error.span.start
    line = text.count("\n", 0, start)
    column = start - (text.rfind("\n", 0, start) + 1) + 1
    width = max(1, error.span.end - start)
    span = Span(name, first_line + line, column, column + width)
    message = str(error.msg).strip() or "cannot be parsed"
    return fail("TW603", message, span, help=TRANSFORM_HELP if "Operation transform." in message else "")


def verify(module: ModuleOp) -> None:
    """Every op by itself, so that what is wrong has a line; then what no single op can say."""
    from xdsl.utils.exceptions import VerifyException

    from tilewright.dialects.text_input import check_attributes, check_dominance
    from tilewright.dialects.walking import operations, span_of

    for op in operations(module):
        try:
            op.verify(verify_nested_ops=False)
            check_attributes(op)
        except Exception as error:  # verifiers of xDSL's own ops do not expect every wrong type
            raise fail("TW603", f"the module does not verify: {first_paragraph(str(error))}", span_of(op)) from None
    try:
        module.verify()
        check_dominance(module)
    except VerifyException as error:
        place = getattr(error, "op", None)
        span = None if place is None else span_of(place)
        raise fail("TW603", f"the module does not verify: {first_paragraph(str(error))}", span) from None


def first_paragraph(text: str) -> str:
    return text.strip().split("\n\n")[-1].strip()


def compile_file(source: str, given: dict[str, Any], *, keep_ir: bool = False) -> Program:
    """The program of one .mlir file. Its accessors name its tensors; the grid is its own, the option's, or one core."""
    from tilewright.compiler import compile_module
    from tilewright.options import Options
    from tilewright.pipeline import remaining

    module = parse(read_text(source), source)
    verify(module)
    options = Options(**given)
    grid = grid_of(options)
    return compile_module(
        module,
        name=Path(source).stem,
        grid=grid,
        tensors=(),
        options=options,
        keep_ir=keep_ir,
        passes=remaining(module),
    )


def grid_of(options: Options) -> tuple[int, ...]:
    """The option's, which wins over what the text states, or one core."""
    if isinstance(options.grid, str):
        raise fail("TW603", f"grid {options.grid!r} of IR text", help="text has no work to share out: write sizes, such as 8x8")
    return options.grid or (1, 1)
