"""Stages of the specification and the passes each is made of, in order. Listing them must not load the compiler.

The last pass of a stage bears its name: the IR after it is the IR the specification shows. A stage's name, given to
``tilewright opt -p`` or to ``pipeline.run``, stands for all of its passes.
"""

from __future__ import annotations

TEXT_FORMS = "ttl-expand-text-forms"

STAGES: dict[str, tuple[str, ...]] = {
    TEXT_FORMS: (TEXT_FORMS,),
    "ttl-validate": (
        "ttl-complete-releases",
        "ttl-store-in-branches",
        "ttl-compute-before-release",
        "ttl-place-blocks",
        "ttl-publish-shards",
        "ttl-start-receives-early",
        "ttl-validate",
    ),
    "convert-ttl-to-compute": (
        "ttl-forward-stores",
        "ttl-fold-transposes",
        "ttl-fold-broadcasts",
        "ttl-divide-before-broadcast",
        "ttl-drop-undemanded-broadcasts",
        "ttl-hoist-invariants",
        "ttl-choose-exact-reductions",
        "convert-ttl-to-compute",
    ),
    "ttl-set-compute-config": (
        "ttl-mark-demanded-faces",
        "ttl-split-at-spills",
        "ttl-mark-half-buffers",
        "ttl-alias-exact-readers",
        "ttl-set-compute-config",
    ),
    "ttl-tile-and-assign-dst": (
        "ttl-validate-faces",
        "ttl-start-sums-from-bias",
        "ttl-form-accumulation-sections",
        "ttl-hoist-reserves",
        "ttl-accumulate-in-l1",
        "ttl-tile-and-assign-dst",
    ),
    "ttl-insert-tile-regs-sync": ("ttl-insert-tile-regs-sync",),
    "ttl-lower-to-loops": ("ttl-lower-to-loops",),
    "ttl-unroll-compute-loops": ("ttl-unroll-compute-loops",),
    "convert-ttl-to-ttkernel": ("convert-ttl-to-ttkernel",),
    "ttkernel-place-inits": ("ttkernel-place-inits",),
    "ttkernel-combine-pack-tiles": ("ttkernel-combine-pack-tiles",),
    "lower-affine": ("lower-affine",),
}
PASS_NAMES = tuple(name for passes in STAGES.values() for name in passes)
STAGE_OF = {name: stage for stage, passes in STAGES.items() for name in passes}

# Text may enter at these stages: a pass of theirs is preceded by the one that turns text into what the front end writes.
FIRST_STAGES = ("ttl-validate", "convert-ttl-to-compute")
