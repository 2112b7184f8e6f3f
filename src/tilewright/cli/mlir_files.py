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

    from tilewright.program import Program, TensorSpec


STDIN = "<stdin>"
ACCESSORS = ("ttl.tensor_accessor", "ttkernel.tensor_accessor")
DEFINED_ALIAS = re.compile(r"^\s*(#[\w$.-]+)\s*=", re.MULTILINE)
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
    from xdsl.parser import Parser
    from xdsl.utils.exceptions import ParseError, VerifyException

    from tilewright.dialects.ir_types import KNOWN_ALIASES
    from tilewright.dialects.universe import load_dialects

    try:
        parser = Parser(load_dialects(Context()), text, name)
        defined = set(DEFINED_ALIAS.findall(text))
        parser.attribute_aliases.update({name: value for name, value in KNOWN_ALIASES.items() if name not in defined})
        return parser.parse_module()
    except ParseError as error:
        unnamed = _without_name(text, error.span.start)
        if unnamed is not None:
            return parse(unnamed, name, first_line=first_line)
        raise located(error, text, name, first_line) from None
    except VerifyException as error:
        raise fail("TW603", f"the module does not verify: {error}", help="see the op's rule in the message") from None


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
    return fail("TW603", str(error.msg).strip() or "cannot be parsed", span)


def verify(module: ModuleOp) -> None:
    from xdsl.utils.exceptions import VerifyException

    from tilewright.dialects.dominance import check_dominance

    try:
        module.verify()
        check_dominance(module)
    except VerifyException as error:
        raise fail("TW603", f"the module does not verify: {first_paragraph(str(error))}") from None


def first_paragraph(text: str) -> str:
    return text.strip().split("\n\n")[-1].strip()


def compile_file(source: str, given: dict[str, Any], *, keep_ir: bool = False) -> Program:
    """The program of one .mlir file. Its accessors name its tensors; the grid is the option's, or one core."""
    from tilewright.compiler import compile_module
    from tilewright.options import Options
    from tilewright.passes.ir_text.program_forms import grid_of
    from tilewright.pipeline import remaining

    module = parse(read_text(source), source)
    verify(module)
    options = Options(**given)
    grid = options.grid if isinstance(options.grid, tuple) else grid_of(module) or (1, 1)
    return compile_module(
        module,
        name=Path(source).stem,
        grid=grid,
        tensors=tensors_of(module),
        options=options,
        keep_ir=keep_ir,
        passes=remaining(module),
    )


def tensors_of(module: ModuleOp) -> tuple[TensorSpec, ...]:
    from tilewright.dialects.attributes import int_value, text_value
    from tilewright.dialects.ir_types import AccessorType
    from tilewright.hardware import TILE_COLS, TILE_ROWS
    from tilewright.program import ROW_MAJOR, TensorSpec

    found: dict[int, TensorSpec] = {}
    for op in module.walk():
        if op.name not in ACCESSORS:
            continue
        kind = op.attributes.get("tensor") or op.results[0].type  # the call names the type it was made from
        if not isinstance(kind, AccessorType):
            continue
        rows, columns = kind.dims[-2] * TILE_ROWS, kind.dims[-1] * TILE_COLS
        index = int_value(op, "tensor_index")
        by_rows = "page_bytes" in op.attributes or text_value(op, "layout") == ROW_MAJOR
        found[index] = TensorSpec(
            name=text_value(op, "name", f"tensor{index}"),
            shape=(*kind.dims[:-2], rows, columns),
            dtype=kind.tile.dtype,
            layout=ROW_MAJOR if by_rows else "tile",
            memory="l1" if kind.memory.data == "l1" else "dram",
        )
    missing = [number for number in range(max(found, default=-1) + 1) if number not in found]
    if missing:
        raise fail("TW603", f"no accessor names tensor {missing[0]}, but one names tensor {max(found)}")
    return tuple(found[number] for number in sorted(found))
