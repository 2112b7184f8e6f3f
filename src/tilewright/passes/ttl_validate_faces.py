"""Refuses a call confined to faces (``ttl.faces``) of which somebody else reads the others.

The marks are the compiler's own or those of text. The computed faces of every tile are followed forwards, through regions and
buffers. `ttl-mark-demanded-faces` asks backwards where values are looked at; the two have in common only which buffer a block
lies in and who reads it.

Requires: regions that nothing has been moved out of yet. Ensures: every mark is proved; nothing is changed.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tilewright.diagnostics import Diagnostic, KernelError
from tilewright.dialects.attributes import text_value
from tilewright.dialects.stages import ASSIGNED
from tilewright.dialects.tile_op import ALL_FACES, FACES, MEMBERS
from tilewright.dialects.ttl import TileOpBase, YieldOp, compute_functions
from tilewright.dialects.ttl_compute import ComputeOp, TileBcastOp
from tilewright.dialects.walking import block_ops, of_kind, operations, span_of
from tilewright.passes.buffers import memory_of, readers_by_memory
from tilewright.passes.context import PassContext

NAME = "ttl-validate-faces"

Faces = frozenset[int]
# The face each face of a broadcast comes from.
SOURCES = {"row": (0, 0, 2, 2), "col": (0, 1, 0, 1), "scalar": (0, 0, 0, 0)}


def run(module: ModuleOp, context: PassContext) -> bool:
    for function in compute_functions(module):
        if not all(ASSIGNED in region.attributes for region in of_kind(function, ComputeOp)):  # else text of a later stage
            check_faces(function, module)
    return False


def check_faces(function: FuncOp, module: ModuleOp) -> None:
    ops = operations(function)
    if any(FACES in op.attributes for op in ops):
        _Computed(function, module, [op for op in ops if isinstance(op, ComputeOp)]).check()


class _Computed:
    """Faces of every value and buffer that hold what the source asks for; they only ever get fewer."""

    def __init__(self, function: FuncOp, module: ModuleOp, computes: list[ComputeOp]) -> None:
        self.readers = readers_by_memory(function, module)
        self.computes = computes
        self.memories = {compute: [memory_of(block) for block in compute.operands] for compute in computes}
        # Regions in which some value lacks faces: by a mark, or by what they read.
        self.partial = {compute for compute in computes if any(FACES in op.attributes for op in block_ops(compute.block))}
        self.buffers: dict[int, Faces] = {}
        self.values: dict[SSAValue, Faces] = {}

    def check(self) -> None:
        following = self.computes
        while following:
            before = dict(self.buffers)
            for compute in following:
                self._follow(compute)
            fewer = {memory for memory, faces in self.buffers.items() if before.get(memory, ALL_FACES) != faces}
            following = [compute for compute in self.computes if not fewer.isdisjoint(self.memories[compute])]
        problems = [problem for compute in self.computes if compute in self.partial for problem in self._problems(compute)]
        if problems:
            raise KernelError(*problems)

    def _follow(self, compute: ComputeOp) -> None:
        memories = self.memories[compute]
        if any(self.buffers.get(memory, ALL_FACES) != ALL_FACES for memory in memories):
            self.partial.add(compute)
        if compute not in self.partial:
            return
        for memory, argument in zip(memories, compute.block.args, strict=True):
            self.values[argument] = self.buffers.get(memory, ALL_FACES)
        for op in block_ops(compute.block):
            if isinstance(op, YieldOp):
                for value, memory in zip(op.operands, memories[len(compute.inputs) :], strict=True):
                    self.buffers[memory] = self.buffers.get(memory, ALL_FACES) & self.values[value]
            elif op.results:
                self.values[op.results[0]] = self._result(op)

    def _result(self, op: Operation) -> Faces:
        if isinstance(op, TileBcastOp):
            given = self.values[op.source]
            return frozenset(face for face, source in enumerate(SOURCES[op.dim]) if source in given)
        if not isinstance(op, TileOpBase):
            return ALL_FACES  # it reads whole tiles, or is a problem
        computed = MEMBERS.get(text_value(op, FACES), ALL_FACES)
        return computed.intersection(*(self.values[operand] for operand in op.operands))

    def _problems(self, compute: ComputeOp) -> list[Diagnostic]:
        found: list[Diagnostic] = []
        for op in block_ops(compute.block):
            if isinstance(op, YieldOp):
                for value, memory in zip(op.operands, self.memories[compute][len(compute.inputs) :], strict=True):
                    if self.values[value] != ALL_FACES and self.readers.get(memory) is None:
                        found.append(_problem(_maker(value, compute), self.values[value], "what another reader takes whole"))
            elif not isinstance(op, (TileOpBase, TileBcastOp)):
                found += [
                    _problem(op, self.values[operand], f"an operand of '{op.name}', which reads whole tiles")
                    for operand in op.operands
                    if self.values[operand] != ALL_FACES
                ]
        return found


def _maker(value: SSAValue, compute: ComputeOp) -> Operation:
    return value.owner if isinstance(value.owner, Operation) else compute


def _problem(op: Operation, faces: Faces, what: str) -> Diagnostic:
    missing = sorted(ALL_FACES - faces)
    words = f"face{'s' if len(missing) > 1 else ''} {', '.join(map(str, missing))}"
    return Diagnostic(code="TW403", message=f"nobody computed {words} of {what}", span=span_of(op))
