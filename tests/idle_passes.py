"""Compiles under watch: every pass that its conditions (``Pass.on``) leave out is run as well and must change nothing, and so must
one that says of itself that it has changed nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tilewright import pipeline
from tilewright.dialects.walking import operations
from tilewright.passes.census import Census
from tilewright.passes.context import PassContext

JUDGES = "ttl-validate"  # it has nothing to change
# Left out by an option, or because a front end made the module: they would do something. xDSL's own one erases constants on the way.
BY_CHOICE = {"ttl-expand-text-forms", "ttl-unroll-compute-loops", "ttkernel-combine-pack-tiles", "lower-affine"}


def state(module: ModuleOp, context: PassContext) -> Any:
    """All that a pass can change. Ops stand for themselves: one that is made anew is another."""
    ops = [(op, list(op.operands), dict(op.attributes), [(each.type, each.name_hint) for each in op.results]) for op in operations(module)]
    found = {name: list(problems) for name, problems in context.unresolved.items()}
    return ops, found, len(context.trace.decisions), context.grid, context.tensors


@contextmanager
def watched() -> Iterator[dict[str, int]]:
    """Yields how often each pass was left out."""
    original, original_timed = pipeline.run_pass, pipeline._timed
    counts: dict[str, int] = {}
    wrong, unchanged = set[str](), set[str]()

    def run_pass(name: str, module: ModuleOp, context: PassContext, census: Census | None = None) -> None:
        if not pipeline.applies(name, Census(module), context):
            counts[name] = counts.get(name, 0) + 1
            if name not in BY_CHOICE:
                before = state(module, context)
                pipeline.loaded(name)(module, context)
                wrong.update([name] if state(module, context) != before else [])
        original(name, module, context, census)

    def timed(name: str, module: ModuleOp, context: PassContext) -> tuple[float, bool]:
        before, *_ = state(module, context)
        seconds, changed = original_timed(name, module, context)
        if not changed:  # the module: what it decided, it may have told the trace
            unchanged.add(name)
            wrong.update([name] if state(module, context)[0] != before else [])
        return seconds, changed

    pipeline.run_pass, pipeline._timed = run_pass, timed
    try:
        yield counts
    finally:
        pipeline.run_pass, pipeline._timed = original, original_timed
    assert JUDGES in unchanged
    assert not wrong, f"they would have done something, or did: {sorted(wrong)}"
