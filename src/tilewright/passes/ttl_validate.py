"""Rejects what would hang or read garbage, while the source is still visible. Changes nothing.

Requires: the ``ttl`` module of a front end, or text of that shape.
Ensures: every reserve has its push and every wait its pop, one producer and one consumer per buffer, shapes and dtypes
agree, slices are inside their tensor, buffers fit the chip, and no core deadlocks with these buffer depths.
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp

from tilewright.diagnostics import Diagnostic, KernelError
from tilewright.passes.buffers import buffers_of, functions_of
from tilewright.passes.context import PassContext
from tilewright.passes.validation.blocks import (
    check_blocks,
    check_ends,
    check_in_place,
    check_lifecycle,
    check_limits,
    only_reads,
)
from tilewright.passes.validation.communication import check_communication, check_core_ranges
from tilewright.passes.validation.slices import check_rows, check_slices

NAME = "ttl-validate"


def run(module: ModuleOp, context: PassContext) -> bool:
    problems: list[Diagnostic] = []
    for function in functions_of(module):
        incomplete = context.unresolved.get(function.sym_name.data, [])
        problems += incomplete or check_blocks(function, context.grid)
        problems += check_slices(function, context)
        problems += check_in_place(function)
        problems += check_rows(function, context)
        problems += check_lifecycle(function)
    buffers = buffers_of(module)
    if only_reads(module, len(context.tensors)):
        buffers = {index: replace(buffer, nothing_lost=True) for index, buffer in buffers.items()}
    problems += check_limits(buffers, context)
    problems += [] if problems else check_core_ranges(module, buffers, context)
    if not problems and not _is_fragment(module, context):
        # What threads say to each other makes sense only if each makes sense by itself.
        problems = check_ends(buffers) or check_communication(module, buffers, context)
    if problems:
        raise KernelError(*_unique(problems))
    return False


def _is_fragment(module: ModuleOp, context: PassContext) -> bool:
    """Text with one thread and no tensors, as in the specification's listings: its partners are elsewhere."""
    return not context.tensors and len(functions_of(module)) == 1


def _unique(problems: list[Diagnostic]) -> list[Diagnostic]:
    """One message per place and code, in the order of the source."""
    found = {(p.code, p.span, p.message): p for p in problems}
    return sorted(found.values(), key=lambda p: (p.span.file, p.span.line) if p.span else ("", 0))
