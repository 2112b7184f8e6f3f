"""Confines vector calls to the faces that somebody looks at: a column after a sum along rows, a row after one along columns.

A broadcast looks at the first place of the dimensions it repeats, an elementwise op where its readers look, and a buffer is
looked at where the compute thread looks at its blocks. Everything else (matmul, reductions, other threads) looks everywhere.
`ttl-validate-faces` proves the marks the other way round.

Requires: regions. Ensures: ``ttl.faces`` on every vector op whose result is looked at in its first row, column or element only.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from tilewright.dialects.attributes import text_attr
from tilewright.dialects.tile_op import ALL_FACES, COLUMN, FACES, FIRST, MEMBERS, ROW, mode_text
from tilewright.dialects.ttl import TileOpBase, YieldOp, compute_functions
from tilewright.dialects.ttl_compute import ComputeOp, TileBcastOp
from tilewright.dialects.walking import block_ops, line_of, of_kind, operations, uses_in
from tilewright.passes.buffers import memory_of, readers_by_memory
from tilewright.passes.context import PassContext

NAME = "ttl-mark-demanded-faces"
Dims = int  # mask of the dimensions along which only the first place counts
EVERYWHERE, ROWS, COLUMNS = 0, 1, 2
NOWHERE = ROWS | COLUMNS
REPEATED = {"row": COLUMNS, "col": ROWS, "scalar": NOWHERE}
PARTS = {COLUMNS: COLUMN, ROWS: ROW, NOWHERE: FIRST}


def run(module: ModuleOp, context: PassContext) -> None:
    options = context.options
    if not options.skip_faces or mode_text(COLUMN, options.metal) is None:
        return
    for function in compute_functions(module):
        _confine(function, module, context)


def _confine(function: FuncOp, module: ModuleOp, context: PassContext) -> None:
    ops = operations(function)
    candidates = [op for op in ops if isinstance(op, TileOpBase) and any(form.by_faces for form in op.SPEC.forms)]
    if not candidates or not any(isinstance(op, TileBcastOp) for op in ops):
        return
    demanded = DemandedFaces(function, module)
    for op in candidates:
        part = PARTS.get(demanded.dims(op.results[0]))
        if part is None or FACES in op.attributes or op.results[0].first_use is None:
            continue  # marks in text are its author's: `ttl-validate-faces` judges them
        op.attributes[FACES] = text_attr(part)
        title = f"{op.SPEC.name} on {len(MEMBERS[part])} of {len(ALL_FACES)} faces"
        what = "element" if part == FIRST else part
        context.trace.decide(NAME, title, f"only the first {what} of its result is looked at", place=f"line {line_of(op)}")


class DemandedFaces:
    """``dims(value)`` of every tile value: the most that all readers leave out."""

    def __init__(self, function: FuncOp, module: ModuleOp) -> None:
        self.readers = readers_by_memory(function, module)
        self.found: dict[SSAValue, Dims] = {}
        # Of the other values: those that look at what they do, each with what it leaves out of it.
        lookers: dict[SSAValue, list[tuple[Dims, SSAValue]]] = {}
        for compute in reversed(of_kind(function, ComputeOp)):
            kept = all(result.first_use is None for result in compute.results)
            for value in _values_backwards(compute):
                found = self._lookers(value, compute if kept else None)
                self.found[value] = EVERYWHERE if found is None else NOWHERE
                if found:
                    lookers[value] = found
        changed = True
        while changed:
            changed = False
            for value, others in lookers.items():
                known = dims = self.found[value]
                for repeated, other in others:
                    dims &= repeated | self.found.get(other, NOWHERE)
                if dims != known:
                    self.found[value], changed = dims, True

    def dims(self, value: SSAValue) -> Dims:
        return self.found.get(value, NOWHERE)

    def _lookers(self, value: SSAValue, compute: ComputeOp | None) -> list[tuple[Dims, SSAValue]] | None:
        """None if somebody looks everywhere. What a region yields is looked at where its blocks are, or else everywhere."""
        found: list[tuple[Dims, SSAValue]] = []
        for user, place in uses_in(value):
            if type(user) is TileBcastOp:
                found.append((REPEATED[user.dim], user.results[0]))
            elif isinstance(user, TileOpBase):
                found.append((EVERYWHERE, user.results[0]))
            elif type(user) is YieldOp and compute and (readers := self.readers.get(memory_of(compute.outputs[place]))):
                found += [(EVERYWHERE, reader) for reader in readers]
            else:
                return None
        return found


def _values_backwards(compute: ComputeOp) -> Iterator[SSAValue]:
    for op in reversed(block_ops(compute.block)):
        yield from op.results
    yield from compute.block.args
