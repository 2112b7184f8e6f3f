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
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.attributes import text_attr
from tilewright.dialects.tile_op import ALL_FACES, COLUMN, FACES, FIRST, MEMBERS, ROW, mode_text
from tilewright.dialects.ttl import TileOpBase, YieldOp, compute_functions
from tilewright.dialects.ttl_compute import ComputeOp, TileBcastOp
from tilewright.dialects.walking import block_ops, line_of, of_kind, operations
from tilewright.passes.buffers import memory_of, readers_by_memory
from tilewright.passes.context import PassContext

NAME = "ttl-mark-demanded-faces"
Dims = frozenset[int]  # dimensions along which only the first place counts
EVERYWHERE: Dims = frozenset()
NOWHERE: Dims = frozenset((0, 1))
REPEATED = {"row": frozenset((1,)), "col": frozenset((0,)), "scalar": NOWHERE}
PARTS = {frozenset((1,)): COLUMN, frozenset((0,)): ROW, NOWHERE: FIRST}


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
        if part is None or FACES in op.attributes or not op.results[0].uses:
            continue  # marks in text are its author's: `ttl-validate-faces` judges them
        op.attributes[FACES] = text_attr(part)
        title = f"{op.SPEC.name} on {len(MEMBERS[part])} of {len(ALL_FACES)} faces"
        what = "element" if part == FIRST else part
        context.trace.decide(NAME, title, f"only the first {what} of its result is looked at", place=f"line {line_of(op)}")


class DemandedFaces:
    """``dims(value)`` of every tile value and ``kept(memory)`` of every buffer: the most that all readers leave out."""

    def __init__(self, function: FuncOp, module: ModuleOp) -> None:
        self.computes = of_kind(function, ComputeOp)
        self.readers = readers_by_memory(function, module)
        self.found: dict[SSAValue, Dims] = {}
        changed = True
        while changed:
            changed = False
            for compute in reversed(self.computes):
                for value in _values_backwards(compute):
                    dims = self._of(value, compute)
                    changed = changed or dims != self.dims(value)
                    self.found[value] = dims

    def dims(self, value: SSAValue) -> Dims:
        return self.found.get(value, NOWHERE)

    def kept(self, block: SSAValue) -> Dims:
        """Of a block that is written."""
        readers = self.readers.get(memory_of(block))
        if not readers:
            return EVERYWHERE
        return frozenset[int].intersection(*(self.dims(value) for value in readers))

    def _of(self, value: SSAValue, compute: ComputeOp) -> Dims:
        dims = NOWHERE
        for use in value.uses:
            dims &= self._by(use.operation, use.index, compute)
        return dims

    def _by(self, user: Operation, position: int, compute: ComputeOp) -> Dims:
        if isinstance(user, TileBcastOp):
            return REPEATED[user.dim] | self.dims(user.results[0])
        if isinstance(user, TileOpBase):
            return self.dims(user.results[0])
        if isinstance(user, YieldOp) and not any(result.uses for result in compute.results):
            return self.kept(compute.outputs[position])
        return EVERYWHERE


def _values_backwards(compute: ComputeOp) -> Iterator[SSAValue]:
    for op in reversed(block_ops(compute.block)):
        yield from op.results
    yield from compute.block.args
