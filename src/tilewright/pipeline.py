"""THE list of passes: every rewrite of the IR, in order, one reason each. No pass is scheduled anywhere else.

The passes are grouped into the stages of the specification. The last pass of a stage bears the stage's name, and that name stands
for the whole stage wherever passes are chosen: ``opt -p convert-ttl-to-compute`` runs the simplifications first,
``--print-ir-after convert-ttl-to-compute`` prints what the whole stage made, and ``remaining`` counts in stages. Any other pass
can be chosen by its own name. Which passes a stage has is said in ``dialects/pass_names.py``, which loads nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from xdsl.dialects.builtin import ModuleOp

from tilewright.dialects.pass_names import FIRST_STAGES, PASS_NAMES, STAGE_OF, STAGES, TEXT_FORMS
from tilewright.dialects.stages import check_stage, passes_done
from tilewright.passes import (
    convert_ttl_to_compute,
    convert_ttl_to_ttkernel,
    lower_affine,
    ttkernel_combine_pack_tiles,
    ttkernel_place_inits,
    ttl_accumulate_in_l1,
    ttl_alias_exact_readers,
    ttl_choose_exact_reductions,
    ttl_complete_releases,
    ttl_compute_before_release,
    ttl_divide_before_broadcast,
    ttl_drop_undemanded_broadcasts,
    ttl_expand_text_forms,
    ttl_fold_broadcasts,
    ttl_fold_transposes,
    ttl_form_accumulation_sections,
    ttl_forward_stores,
    ttl_hoist_invariants,
    ttl_hoist_reserves,
    ttl_insert_tile_regs_sync,
    ttl_lower_to_loops,
    ttl_mark_demanded_faces,
    ttl_mark_half_buffers,
    ttl_place_blocks,
    ttl_publish_shards,
    ttl_set_compute_config,
    ttl_split_at_spills,
    ttl_start_receives_early,
    ttl_start_sums_from_bias,
    ttl_store_in_branches,
    ttl_tile_and_assign_dst,
    ttl_unroll_compute_loops,
    ttl_validate,
    ttl_validate_faces,
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
    # IR text
    Pass("ttl-expand-text-forms", ttl_expand_text_forms.run, "text says more than the front end; what follows sees one form"),
    # ttl-validate: complete what has one right answer, then judge
    Pass("ttl-complete-releases", ttl_complete_releases.run, "first: what follows relies on every acquire having its release"),
    Pass("ttl-store-in-branches", ttl_store_in_branches.run, "a value that branches have apart needs no buffer to join in"),
    Pass("ttl-compute-before-release", ttl_compute_before_release.run, "a value means what it was where it was written"),
    Pass("ttl-place-blocks", ttl_place_blocks.run, "needs all releases, also of buffers made just now"),
    Pass("ttl-publish-shards", ttl_publish_shards.run, "what a shard holds is there: its reader may wait for it"),
    Pass("ttl-start-receives-early", ttl_start_receives_early.run, "a ring that sends first would stand still"),
    Pass("ttl-validate", ttl_validate.run, "reject what would hang or read garbage while the source is still visible"),
    # convert-ttl-to-compute: simplify whole expressions, then make regions of them
    Pass("ttl-forward-stores", ttl_forward_stores.run, "a value read back by its own thread needs no trip through L1"),
    Pass("ttl-fold-transposes", ttl_fold_transposes.run, "the matrix unit turns its right operand as it reads it"),
    Pass("ttl-fold-broadcasts", ttl_fold_broadcasts.run, "a broadcast of a broadcast is one"),
    Pass("ttl-divide-before-broadcast", ttl_divide_before_broadcast.run, "one reciprocal per row, not a division per element"),
    Pass(
        "ttl-drop-undemanded-broadcasts",
        ttl_drop_undemanded_broadcasts.run,
        "nobody looks at what they repeat; folding shows it",
    ),
    Pass("ttl-hoist-invariants", ttl_hoist_invariants.run, "before regions form, or the math would be part of each of them"),
    Pass("ttl-choose-exact-reductions", ttl_choose_exact_reductions.run, "the unit decides whether a reduction can be fused"),
    Pass("convert-ttl-to-compute", convert_ttl_to_compute.run, "fuse first: allocation must see whole expressions"),
    # ttl-set-compute-config
    Pass("ttl-mark-demanded-faces", ttl_mark_demanded_faces.run, "calls on fewer faces cost less: before anything is priced"),
    Pass("ttl-split-at-spills", ttl_split_at_spills.run, "the packer takes a tile only when a region ends"),
    Pass("ttl-mark-half-buffers", ttl_mark_half_buffers.run, "float16 in f32 tiles loses nothing in the source registers"),
    Pass("ttl-alias-exact-readers", ttl_alias_exact_readers.run, "a buffer is unpacked one way; which one is configuration"),
    Pass("ttl-set-compute-config", ttl_set_compute_config.run, "DST width and sync decide how many slots there are"),
    # ttl-tile-and-assign-dst: where running values are, then everything else about DST
    Pass("ttl-validate-faces", ttl_validate_faces.run, "while blocks still go through their buffers, where readers are seen"),
    Pass("ttl-start-sums-from-bias", ttl_start_sums_from_bias.run, "before the sum gets its place: what it starts from is part"),
    Pass("ttl-form-accumulation-sections", ttl_form_accumulation_sections.run, "what stays in DST takes slots from all others"),
    Pass("ttl-hoist-reserves", ttl_hoist_reserves.run, "the packer can add to a block only if it is there before the loop"),
    Pass("ttl-accumulate-in-l1", ttl_accumulate_in_l1.run, "sums that DST has no room for, while their loops are whole"),
    Pass("ttl-tile-and-assign-dst", ttl_tile_and_assign_dst.run, "order, units, slots, sub-blocks, splits"),
    # one pass each
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
BY_NAME = {each.name: each for each in PASSES}


def passes_of(names: Iterable[str]) -> list[str]:
    """The passes that names of stages, passes and aliases stand for."""
    return [each for name in names for each in STAGES.get(ALIASES.get(name, name), (ALIASES.get(name, name),))]


def remaining(module: ModuleOp) -> list[str]:
    """The stages left to do with a module in text. The loops come before the sync if the text has loops without it."""
    done = passes_done(module)
    names = [stage for stage in STAGES if stage not in done]
    sync, unroll = "ttl-insert-tile-regs-sync", "ttl-unroll-compute-loops"
    if "ttl-lower-to-loops" in done and sync in names:
        names.remove(sync)
        names.insert(names.index(unroll) + 1, sync)
    return names


def run_pass(name: str, module: ModuleOp, context: PassContext) -> None:
    """One pass alone; `run` is what knows stages."""
    each = BY_NAME[name]
    started = time.perf_counter()
    try:
        each.run(module, context)
    except Exception:
        if context.trace.keep_ir:
            context.trace.stages.append(Stage(name=f"{name}, as far as it came", seconds=0.0, ir=str(module)))
        raise
    elapsed = time.perf_counter() - started
    text = str(module) if context.trace.keep_ir else ""
    context.trace.stages.append(Stage(name=name, seconds=elapsed, ir=text))


def run(module: ModuleOp, context: PassContext, names: Iterable[str] | None = None, *, check: bool = True) -> None:
    """All passes, or those the names stand for. ``check`` holds the result of each stage against what may exist after it."""
    chosen = list(PASS_NAMES) if names is None else passes_of(names)
    expanded = any(each.name == TEXT_FORMS for each in context.trace.stages)
    if not expanded and any(STAGE_OF[name] in FIRST_STAGES for name in chosen):
        chosen = [TEXT_FORMS, *(name for name in chosen if name != TEXT_FORMS)]
    for name in chosen:
        run_pass(name, module, context)
        if check and name in STAGES:
            check_stage(name, module)
