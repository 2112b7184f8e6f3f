"""Loads xDSL in less time. Importing it takes as long as everything else that a first compilation loads: half of that is
dataclasses, a fifth the assembly formats of ops that nobody prints.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

from tilewright.records import defined_quickly

FIRST = "xdsl.dialects.builtin"
FROZEN_BY_PYTHON = 1000  # more than Python freezes itself (3.12: 375 objects); somebody who freezes a program freezes more
PARTS = (FIRST, "xdsl.dialects.func", "xdsl.dialects.scf", "xdsl.dialects.arith", "xdsl.dialects.tensor")
OURS = "tilewright.dialects.attributes"  # xDSL makes dataclasses of them


def load_xdsl() -> None:
    """The parts that every compilation and every simulation needs; whoever is about to load the compiler calls this first."""
    if FIRST in sys.modules:
        return
    with collection_paused(), defined_quickly("xdsl", "tilewright.dialects"), formats_read_late():
        for part in (*PARTS, OURS):
            import_module(part)


@contextmanager
def collection_paused() -> Generator[None, None, None]:
    """No cyclic collection inside: IR is all cycles and stays alive, so a collection finds nothing and costs its size.

    What was loaded inside stays for good: it becomes old without a collection that looks at it first.
    """
    if not gc.isenabled():
        yield
        return
    is_loaded = FIRST in sys.modules
    gc.disable()
    try:
        yield
    finally:
        if not is_loaded and FIRST in sys.modules and gc.get_freeze_count() < FROZEN_BY_PYTHON:
            gc.freeze()
            gc.unfreeze()
        gc.enable()


@contextmanager
def formats_read_late() -> Generator[None, None, None]:
    """Assembly formats of ops that are defined inside are read when such an op is first printed or parsed."""
    operations: Any = import_module("xdsl.irdl.operations")
    original = operations.get_accessors_from_op_def

    def accessors(definition: Any, custom_verify: Any) -> dict[str, Any]:
        text = definition.assembly_format
        if text is None:
            return original(definition, custom_verify)
        definition.assembly_format = None
        try:
            found = original(definition, custom_verify)
        finally:
            definition.assembly_format = text
        return found | _by_format(definition)

    operations.get_accessors_from_op_def = accessors
    try:
        yield
    finally:
        operations.get_accessors_from_op_def = original


def _by_format(definition: Any) -> dict[str, Any]:
    """How ops of this definition are parsed and printed."""

    @cache
    def program() -> Any:
        from xdsl.irdl.declarative_assembly_format import FormatProgram

        return FormatProgram.from_str(definition.assembly_format, definition)

    def parse(cls: Any, parser: Any) -> Any:
        return program().parse(parser, cls)

    def print_with_format(self: Any, printer: Any) -> None:
        program().print(printer, self)

    return {"parse": classmethod(parse), "print": print_with_format}
