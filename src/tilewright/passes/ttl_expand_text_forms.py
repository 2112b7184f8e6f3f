"""What only IR text writes becomes what the front end writes: programs, regions, ``block_`` names, structured ops, DST markers.

Requires: a module that verifies. Ensures: one function per thread, each with the resources it uses at its head; every block says
which buffer it lives in; only tensor-level ops, stores and ``ttl.compute``; coordinates have as many dimensions as the grid; no
op stands in a thread that cannot run it. The context knows grid and tensors. A module of the front end passes through.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from tilewright.dialects.ttl import thread_kind
from tilewright.dialects.walking import operations
from tilewright.passes.context import PassContext
from tilewright.passes.ir_text.block_attachment import attach_blocks
from tilewright.passes.ir_text.program_forms import expand_programs
from tilewright.passes.ir_text.thread_rules import check_threads, name_threads

NAME = "ttl-expand-text-forms"

# Ops that only text contains, beside the ``block_`` names; what turns them into ours is loaded when one is met.
TEXT_FORMS = frozenset(
    {
        "linalg.generic",
        "linalg.fill",
        "ttl.compute_region",
        "ttl.get_tile",
        "ttl.pack_tile",
        "ttl.require_dst",
        "ttl.acquire_dst",
        "ttl.release_dst",
        "ttl.spill_tile_to_l1",
    }
)


def run(module: ModuleOp, context: PassContext) -> None:
    expand_programs(module, context)
    name_threads(module)
    check_threads(module)
    _expand_types(module)
    for function in module.ops:
        if not isinstance(function, FuncOp):
            continue
        if any(op.name in TEXT_FORMS or op.name.startswith("ttl.block_") for op in operations(function)):
            _expand_function(function)
        else:
            attach_blocks(function)
    if context.options.math_approx_mode:
        _approximate(module)
    if not context.tensors:
        from tilewright.passes.ir_text.form_rules import check_forms
        from tilewright.passes.ir_text.text_tensors import tensors_of

        check_forms(module, context)
        context.tensors = tensors_of(module)


def _expand_types(module: ModuleOp) -> None:
    from tilewright.passes.ir_text.row_major_blocks import hold_tiles

    hold_tiles(module)


def _expand_function(function: FuncOp) -> None:
    from tilewright.passes.ir_text import dst_markers, linalg_forms, spilled_tiles, text_forms, tile_access

    text_forms.inline_regions(function)
    attach_blocks(function)
    tile_access.expand_tile_access(function)
    dst_markers.bind_registers(function)
    dst_markers.remove_markers(function)
    text_forms.rename(function)
    linalg_forms.expand_linalg(function)
    spilled_tiles.expand_spills(function)
    attach_blocks(function)  # tiles became blocks: these say where they live as well


def _approximate(module: ModuleOp) -> None:
    from tilewright.passes.ir_text.text_forms import approximate

    for function in module.ops:
        if isinstance(function, FuncOp) and thread_kind(function) == "compute":
            approximate(function)
