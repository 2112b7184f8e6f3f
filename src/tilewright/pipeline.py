"""THE list of passes: every rewrite of the IR, in order, one reason each. No pass is scheduled anywhere else.

The passes are grouped into the stages of the specification. The last pass of a stage bears the stage's name, and that name stands
for the whole stage wherever passes are chosen: ``opt -p convert-ttl-to-compute`` runs the simplifications first,
``--print-ir-after convert-ttl-to-compute`` prints what the whole stage made, and ``remaining`` counts in stages. Any other pass
can be chosen by its own name.

A pass is the file of its name: ``ttl-fold-transposes`` is ``run`` of ``passes/ttl_fold_transposes.py``, loaded when it first
runs, so that listing the passes loads none of them. What a pass looks at stands in the list too (`on`: ops, attributes, options,
and the facts of ``passes/census.py``): in a kernel without broadcasts, those about broadcasts are neither loaded nor entered.
A pass that knows that it left the module as it was says so (``run`` gives False), and the next one is asked the same census.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from functools import cache
from importlib import import_module

from xdsl.dialects.builtin import ModuleOp

from tilewright.dialects.stages import StageRules
from tilewright.dialects.ttl import MEAN
from tilewright.passes.census import (
    AGAINST_THE_STREAM,
    BATCH_ROOM,
    CROWDED,
    EXPLAINED,
    OUTER_MATH,
    OWN_BUFFER,
    PADDED,
    READ_LOOP,
    RETURNED,
    SAME_MATH,
    SECOND_BLOCK,
    SECOND_STORE,
    SHARD,
    TEXT,
    UNREAD,
    Census,
)
from tilewright.passes.context import PassContext
from tilewright.records import record
from tilewright.trace import Stage


@record
class Pass:
    name: str
    reason: str
    first: tuple[str, ...] = ()  # passes that have always run before it: text may enter behind their place in the list
    on: tuple[str, ...] = ()  # ops, attributes, options, facts: where none of them is, the pass has nothing to do


FILL = "ttkernel.fill_scaler"
TEXT_FORMS = "ttl-expand-text-forms"
DST_INDICES = "ttl-complete-dst-indices"
PLACE_STORES = "ttl-place-stores"

PIPELINE: dict[str, tuple[Pass, ...]] = {
    "ttl-expand-text-forms": (
        Pass("ttl-expand-text-forms", "text says more than the front end; what follows sees one form", on=(TEXT,)),
    ),
    "ttl-validate": (  # complete what has one right answer, then judge
        Pass(
            "ttl-approximate-math", "an option of the kernel, on every op that can be approximate",
            on=("--math-approx-mode", "--approximate", EXPLAINED),
        ),
        Pass("ttl-complete-releases", "first: what follows relies on every acquire having its release"),
        Pass("ttl-store-in-branches", "a value that branches have apart needs no buffer to join in", on=("scf.if",)),
        Pass("ttl-raise-sums", "branches store what they add; the next pass sees that sums survive releases", on=("accumulate",)),
        Pass("ttl-compute-before-release", "a value means what it was where it was written"),
        Pass("ttl-place-blocks", "needs all releases, also of buffers made just now", on=(SECOND_BLOCK,)),
        Pass("ttl-share-buffers", "blocks know their places; what follows counts buffers", on=("allocation_group", CROWDED)),
        Pass("ttl-deepen-buffers", "all buffers are there; what is judged next is their depth", on=("tiles", "ttl.cb_publish")),
        Pass("ttl-publish-shards", "what a shard holds is there: its reader may wait for it", on=(SHARD,)),
        Pass("ttl-start-receives-early", "a ring that sends first would stand still", on=("ttl.net_pipe",)),
        Pass("ttl-clip-slices", "a block at the edge is no mistake: judged by where it starts", on=("ttl.tensor_slice",)),
        Pass("ttl-validate", "reject what would hang or read garbage while the source is still visible"),
    ),
    "convert-ttl-to-compute": (  # simplify whole expressions, then make regions of them
        Pass("ttl-unswitch-loops", "threads are judged: what a core does may be written anew for its part", on=("scf.if",)),
        Pass("ttl-fold-branches", "loops stand under their conditions now, which decide what is asked inside", on=("scf.if",)),
        Pass("ttl-place-patterns", "from here on the compiler makes buffers without asking", on=("ttl.pattern_block",)),
        Pass("ttl-assign-networks", "what threads move is still as it was written", on=(AGAINST_THE_STREAM,)),
        Pass("ttl-join-reads", "before batches: a barrier that they share is one for the whole batch", on=("ttl.copy",)),
        Pass(
            "ttl-mark-batches", "what threads wait for is still as it was written and checked",
            on=("ttl.batch", "--deep-buffers", BATCH_ROOM),
        ),
        Pass(
            "ttl-mark-reads-ahead", "batches are known: they are under way as one block",
            on=("ttl.reads_ahead", READ_LOOP),
        ),
        Pass("ttl-forward-stores", "a value read back by its own thread needs no trip through L1", on=(OWN_BUFFER,)),
        Pass(
            "ttl-mask-padding", "reductions must not see it; values that buffers no longer hide show where it is",
            on=(MEAN, "clipped", PADDED),
        ),
        Pass("ttl-fold-transposes", "the matrix unit turns its right operand as it reads it", on=("ttl.transpose",)),
        Pass("ttl-fold-broadcasts", "a broadcast of a broadcast is one", on=("ttl.bcast",)),
        Pass("ttl-divide-before-broadcast", "one reciprocal per row, not a division per element", on=("ttl.bcast",)),
        Pass("ttl-simplify", "whole expressions are visible, and what divides before a broadcast has become a reciprocal"),
        Pass("ttl-drop-undemanded-broadcasts", "nobody looks at what they repeat; folding shows it", on=("ttl.bcast",)),
        Pass("ttl-widen-broadcasts", "units repeat floats, and not all; what is left is really repeated", on=("ttl.bcast",)),
        Pass("ttl-scale-before-products", "factors are parameters now; the next pass holds what it leaves", on=("ttl.matmul",)),
        Pass("ttl-hoist-invariants", "before regions form, or the math would be part of each of them", on=(OUTER_MATH,)),
        Pass("ttl-choose-exact-reductions", "the unit decides whether a reduction can be fused", on=("ttl.reduce",)),
        Pass("ttl-eliminate-dead-math", "expressions have their final form: what nobody stores is known", on=(UNREAD,)),
        Pass(
            "ttl-eliminate-dead-stores", "two stores into one block would be two results of a region, without an order",
            on=(SECOND_STORE,),
        ),
        Pass("ttl-share-subexpressions", "regions form around stores that share math: equal math must be one", on=(SAME_MATH,)),
        Pass(
            "ttl-delay-releases", "stores that share math become one region, and releases between them must wait for it",
            on=(SECOND_STORE,),
        ),
        Pass(
            "ttl-rematerialize-broadcasts", "a broadcast is cheaper than its trip through a buffer; levels are known now",
            on=("ttl.bcast", "ttl.reshape"),
        ),
        Pass("ttl-place-scalers", "reductions are final; a region reads its scaler as any other block", on=("ttl.reduce",)),
        Pass("convert-ttl-to-compute", "fuse first: allocation must see whole expressions"),
    ),
    "ttl-set-compute-config": (
        Pass("ttl-mark-demanded-faces", "calls on fewer faces cost less: before anything is priced", on=("ttl.tile_bcast",)),
        Pass("ttl-split-at-spills", "the packer takes a tile only when a region ends", on=("ttl.spill_tile_to_l1",)),
        Pass("ttl-mark-half-buffers", "float16 in f32 tiles loses nothing in the source registers", on=("significant_bits",)),
        Pass(
            "ttl-alias-exact-readers", "a buffer is unpacked one way; which one is configuration",
            on=("ttl.tile_matmul", "ttl.tile_reduce"),
        ),
        Pass("ttl-set-compute-config", "DST width and sync decide how many slots there are"),
    ),
    "ttl-tile-and-assign-dst": (  # where running values are, then everything else about DST
        Pass("ttl-validate-faces", "while blocks still go through their buffers, where readers are seen", on=("ttl.faces",)),
        Pass(
            "ttl-raise-running-values", "one op for every spelling: its place is chosen next",
            on=("ttl.running", "accumulate", OWN_BUFFER),
        ),
        Pass("ttl-start-sums-from-bias", "before the sum gets its place: what it starts from is part", on=("ttl.running",)),
        Pass("ttl-form-accumulation-sections", "what stays in DST takes slots from all others", on=("ttl.running",)),
        Pass("ttl-hoist-reserves", "the packer can add to a block only if it is there before the loop", on=("ttl.leaves_dst",)),
        Pass("ttl-accumulate-in-l1", "sums that DST has no room for, while their loops are whole", on=("ttl.leaves_dst",)),
        Pass("ttl-tile-and-assign-dst", "order, units, slots, sub-blocks, splits"),
    ),
    "ttl-insert-tile-regs-sync": (
        Pass("ttl-place-stores", "what a region computes is packed behind it, inside the lifecycle"),
        Pass("ttl-insert-tile-regs-sync", "regions fit one acquire now; still one op to bracket", (PLACE_STORES,)),
    ),
    "ttl-lower-to-loops": (
        Pass("ttl-complete-dst-indices", "text may leave out what follows from a slot per value", on=(TEXT,)),
        Pass("ttl-lower-to-loops", "compute nest and pack nest, DST index from tile number", (PLACE_STORES, DST_INDICES)),
    ),
    "ttl-unroll-compute-loops": (
        Pass(
            "ttl-unroll-compute-loops", "optional; needs tile loops, before indices become calls", (DST_INDICES,),
            on=("--enable-unroll",),
        ),
    ),
    "convert-ttl-to-ttkernel": (Pass("convert-ttl-to-ttkernel", "only hardware calls from here on", (DST_INDICES,)),),
    "ttkernel-place-inits": (
        Pass("ttkernel-batch-transfers", "a block is a number of tiles and bytes now", on=("ttl.batch",)),
        Pass("ttkernel-read-ahead", "batches have their tiles, and all math is calls with known cycles", on=("ttl.reads_ahead",)),
        Pass(
            "ttkernel-prefetch-blocks", "batches have their tiles: a ring holds as many turns as are left",
            on=("ttkernel.noc_async_write", "ttkernel.noc_async_write_multicast"),
        ),
        Pass("ttkernel-defer-write-barriers", "what reads a tensor is a call now, whoever made it"),
        Pass(
            "ttkernel-share-tables", "equal numbers per core are one argument; before arguments are counted",
            on=("ttkernel.core_table",),
        ),
        Pass(
            "ttkernel-start-broadcasts", "releases before 0.81 need a copy in front; inits stand before calls yet",
            on=("ttkernel.unary_bcast",),
        ),
        Pass("ttkernel-place-inits", "needs every call in place to know which inits are needed"),
    ),
    "ttkernel-combine-pack-tiles": (
        Pass("ttkernel-stream-blocks", "sections have their final order; packs are not yet one call", on=(RETURNED, FILL)),
        Pass("ttkernel-combine-pack-tiles", "runs of packs become block packs", on=("--combine-packs",)),
    ),
    "lower-affine": (Pass("lower-affine", "last, because earlier passes build affine indices", on=("affine.apply",)),),
}  # fmt: skip
PASSES = tuple(each for passes in PIPELINE.values() for each in passes)
STAGES = {stage: tuple(each.name for each in passes) for stage, passes in PIPELINE.items()}
PASS_NAMES = tuple(each.name for each in PASSES)
STAGE_OF = {each.name: stage for stage, passes in PIPELINE.items() for each in passes}
RULES = StageRules(PASS_NAMES)

# Text may enter at these stages: a pass of theirs is preceded by the one that turns text into what the front end writes.
FIRST_STAGES = ("ttl-validate", "convert-ttl-to-compute")

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


@cache
def loaded(name: str) -> Callable[[ModuleOp, PassContext], bool | None]:
    """What a pass does: ``run`` of the file that bears its name."""
    return import_module(f"tilewright.passes.{name.replace('-', '_')}").run


def passes_of(names: Iterable[str], done: Collection[str] = ()) -> list[str]:
    """The passes that names of stages, passes and aliases stand for, each behind those it needs first and that are not done."""
    chosen: list[str] = []
    for name in names:
        own = ALIASES.get(name, name)
        for each in STAGES.get(own, (own,)):
            chosen += [first for first in BY_NAME[each].first if first not in chosen and first not in done]
            chosen.append(each)
    return chosen


def remaining(module: ModuleOp) -> list[str]:
    """The stages left to do with a module in text. The loops come before the sync if the text has loops without it."""
    done = RULES.done(module)
    names = [stage for stage in STAGES if stage not in done]
    sync, unroll = "ttl-insert-tile-regs-sync", "ttl-unroll-compute-loops"
    if "ttl-lower-to-loops" in done and sync in names:
        names.remove(sync)
        names.insert(names.index(unroll) + 1, sync)
    return names


def applies(name: str, census: Census, context: PassContext) -> bool:
    wanted = BY_NAME[name].on
    for word in wanted:
        if census.holds(word, context):
            return True
    return not wanted


def run_pass(name: str, module: ModuleOp, context: PassContext, census: Census | None = None) -> None:
    """One pass alone; `run` is what knows stages."""
    census = census or Census(module)
    seconds = 0.0
    if applies(name, census, context):
        seconds, changed = _timed(name, module, context)
        if changed:
            census.forget()
            context.threads.clear()
    text = census.text if context.trace.keep_ir else ""
    context.trace.stages.append(Stage(name=name, seconds=seconds, ir=text))


def _timed(name: str, module: ModuleOp, context: PassContext) -> tuple[float, bool]:
    """Runs a pass; says how long it took, and whether it may have changed something."""
    run_it = loaded(name)
    started = time.perf_counter()
    try:
        changed = run_it(module, context) is not False
    except Exception:
        if context.trace.keep_ir:
            context.trace.stages.append(Stage(name=f"{name}, as far as it came", seconds=0.0, ir=str(module)))
        raise
    return time.perf_counter() - started, changed


def run(module: ModuleOp, context: PassContext, names: Iterable[str] | None = None, *, check: bool = True) -> None:
    """All passes, or those the names stand for. ``check`` holds the result of each stage against what may exist after it."""
    done = {each.name for each in context.trace.stages}
    chosen = list(PASS_NAMES) if names is None else passes_of(names, done)
    if TEXT_FORMS not in done and any(STAGE_OF[name] in FIRST_STAGES for name in chosen):
        chosen = [TEXT_FORMS, *(name for name in chosen if name != TEXT_FORMS)]
    census = Census(module)
    for name in chosen:
        run_pass(name, module, context, census)
        if check and name in STAGES:
            RULES.check(name, census.names)
