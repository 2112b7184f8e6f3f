"""Names of our passes, in order. Not taken from the pipeline: listing them must not load the compiler."""

from __future__ import annotations

PASS_NAMES = (
    "ttl-expand-text-forms",
    "ttl-validate",
    "convert-ttl-to-compute",
    "ttl-set-compute-config",
    "ttl-tile-and-assign-dst",
    "ttl-insert-tile-regs-sync",
    "ttl-lower-to-loops",
    "ttl-unroll-compute-loops",
    "convert-ttl-to-ttkernel",
    "ttkernel-place-inits",
    "ttkernel-combine-pack-tiles",
)
