"""What only IR text writes becomes what the front end writes: programs, regions, ``block_`` names, structured ops, DST markers.

Requires: a module that verifies. Ensures: one function per thread, each with the resources it uses at its head; every block says
which buffer it lives in; only tensor-level ops, stores and ``ttl.compute``; coordinates have as many dimensions as the grid; no
op stands in a thread that cannot run it. The context knows grid and tensors.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from tilewright.dialects.walking import operations
from tilewright.passes.context import PassContext
from tilewright.passes.ir_text import blocks, linalg, tile_code
from tilewright.passes.ir_text.programs import expand_programs, tensors_of
from tilewright.passes.ir_text.rules import check_ends, check_forms, check_threads, name_threads

NAME = "ttl-expand-text-forms"

# Ops that only text contains, beside the ``block_`` names.
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
    check_ends(module)
    expand_programs(module, context)
    name_threads(module)
    check_threads(module)
    blocks.hold_tiles(module)
    for function in module.ops:
        if isinstance(function, FuncOp):
            if any(op.name in TEXT_FORMS or op.name.startswith("ttl.block_") for op in operations(function)):
                _expand_function(function)
            else:
                blocks.attach_blocks(function)
    check_forms(module, context)
    context.tensors, context.from_text = tensors_of(module), True


def _expand_function(function: FuncOp) -> None:
    blocks.inline_regions(function)
    blocks.attach_blocks(function)
    tile_code.expand_tile_access(function)
    blocks.bind_registers(function)
    blocks.remove_markers(function)
    blocks.rename(function)
    linalg.expand_linalg(function)
    tile_code.expand_spills(function)
    blocks.attach_blocks(function)  # tiles became blocks: these say where they live as well
