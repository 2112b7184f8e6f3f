"""THE list of passes, in order, one reason each. No pass is scheduled anywhere else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from xdsl.dialects.builtin import ModuleOp

from tilewright.dialects.stages import check_stage, passes_done
from tilewright.passes import (
    convert_ttl_to_compute,
    convert_ttl_to_ttkernel,
    lower_affine,
    ttkernel_combine_pack_tiles,
    ttkernel_place_inits,
    ttl_expand_text_forms,
    ttl_insert_tile_regs_sync,
    ttl_lower_to_loops,
    ttl_set_compute_config,
    ttl_tile_and_assign_dst,
    ttl_unroll_compute_loops,
    ttl_validate,
)
from tilewright.passes.context import PassContext
from tilewright.records import record
from tilewright.trace import Stage


@record
class Pass:
    name: str
    run: Callable[[ModuleOp, PassContext], None]
    reason: str


PASSES: tuple[Pass, ...] = (
    Pass("ttl-expand-text-forms", ttl_expand_text_forms.run, "text says more than the front end; what follows sees one form"),
    Pass("ttl-validate", ttl_validate.run, "reject what would hang or read garbage while the source is still visible"),
    Pass("convert-ttl-to-compute", convert_ttl_to_compute.run, "fuse first: allocation must see whole expressions"),
    Pass("ttl-set-compute-config", ttl_set_compute_config.run, "DST width and sync decide how many slots there are"),
    Pass("ttl-tile-and-assign-dst", ttl_tile_and_assign_dst.run, "order, units, slots, sub-blocks, splits"),
    Pass("ttl-insert-tile-regs-sync", ttl_insert_tile_regs_sync.run, "regions fit one acquire now; still one op to bracket"),
    Pass("ttl-lower-to-loops", ttl_lower_to_loops.run, "compute nest and pack nest, DST index from tile number"),
    Pass("ttl-unroll-compute-loops", ttl_unroll_compute_loops.run, "optional; needs the tile loops, before indices become calls"),
    Pass("convert-ttl-to-ttkernel", convert_ttl_to_ttkernel.run, "only hardware calls from here on"),
    Pass("ttkernel-place-inits", ttkernel_place_inits.run, "needs every call in place to know which inits are needed"),
    Pass("ttkernel-combine-pack-tiles", ttkernel_combine_pack_tiles.run, "runs of packs become block packs"),
    Pass("lower-affine", lower_affine.run, "last, because earlier passes build affine indices"),
)

ALIASES = {
    "ttl-assign-dst": "ttl-tile-and-assign-dst",
    # What the document on the dialect calls the passes.
    "TTLValidatePass": "ttl-validate",
    "TTLLowerCompute": "convert-ttl-to-compute",
    "TTLInferDSTRequirements": "ttl-tile-and-assign-dst",
    "TTLAssignDSTRegisters": "ttl-tile-and-assign-dst",
    "LowerCompute": "convert-ttl-to-compute",
    "InferDSTRequirements": "ttl-tile-and-assign-dst",
    "AssignDSTRegisters": "ttl-tile-and-assign-dst",
}
BY_NAME = {stage.name: stage for stage in PASSES}


def remaining(module: ModuleOp) -> list[str]:
    """What is left to do with a module in text. The loops come before the sync if the text has loops without it."""
    done = passes_done(module)
    names = [stage.name for stage in PASSES if stage.name not in done]
    sync, unroll = "ttl-insert-tile-regs-sync", "ttl-unroll-compute-loops"
    if "ttl-lower-to-loops" in done and sync in names:
        names.remove(sync)
        names.insert(names.index(unroll) + 1, sync)
    return names


def run_pass(name: str, module: ModuleOp, context: PassContext) -> None:
    stage = BY_NAME[ALIASES.get(name, name)]
    started = time.perf_counter()
    try:
        stage.run(module, context)
    except Exception:
        if context.trace.keep_ir:
            context.trace.stages.append(Stage(name=f"{stage.name}, as far as it came", seconds=0.0, ir=str(module)))
        raise
    elapsed = time.perf_counter() - started
    text = str(module) if context.trace.keep_ir else ""
    context.trace.stages.append(Stage(name=stage.name, seconds=elapsed, ir=text))


def run(module: ModuleOp, context: PassContext, names: Iterable[str] | None = None, *, check: bool = True) -> None:
    """All passes, or the named ones. ``check`` holds each result against what may exist after that pass."""
    for name in (stage.name for stage in PASSES) if names is None else names:
        run_pass(name, module, context)
        if check:
            check_stage(ALIASES.get(name, name), module)
