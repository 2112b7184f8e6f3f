"""Compiles under watch: every pass that its conditions (``Pass.on``) leave out is run as well and must change nothing, and so must
``ttl-validate``, which only judges."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tilewright import pipeline
from tilewright.dialects.walking import operations
from tilewright.passes.census import Census
from tilewright.passes.context import PassContext

JUDGES = "ttl-validate"
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
    original = pipeline.run_pass
    counts: dict[str, int] = {}
    wrong: set[str] = set()

    def run_pass(name: str, module: ModuleOp, context: PassContext, census: Census | None = None) -> None:
        if not pipeline.applies(name, Census(module), context):
            counts[name] = counts.get(name, 0) + 1
            if name not in BY_CHOICE:
                before = state(module, context)
                pipeline.loaded(name)(module, context)
                wrong.update([name] if state(module, context) != before else [])
        text = str(module) if name == JUDGES else ""
        original(name, module, context, census)
        wrong.update([name] if text and str(module) != text else [])

    pipeline.run_pass = run_pass
    try:
        yield counts
    finally:
        pipeline.run_pass = original
    assert not wrong, "they would have done something, or did"
