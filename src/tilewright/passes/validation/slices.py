"""Every slice lies inside its tensor, on every core and in every iteration, given the ifs around it; rows can be copied.

First by intervals, which is enough for most kernels; where that leaves doubt, by trying all values at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from xdsl.dialects import scf
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from tilewright.diagnostics import Diagnostic
from tilewright.dialects.attributes import I1, AccessorType, SliceType, constant_of
from tilewright.dialects.ttl import CoreOp, WorkOp
from tilewright.dialects.ttl_buffers import CopyOp, ReadElementOp, TensorAccessorOp, TensorSliceOp
from tilewright.dialects.ttl_network import CoreTableOp, RuntimeArgumentOp, WaitAnyOp
from tilewright.dialects.values import is_result
from tilewright.dialects.walking import line_of, operations
from tilewright.hardware import FACE_COLS, TILE_COLS, TILE_ELEMENTS, TILE_ROWS
from tilewright.integers import FORMS, interval
from tilewright.passes.buffers import acquire_of, buffer_name, problem
from tilewright.passes.context import PassContext
from tilewright.records import record

NAME = "ttl-validate"
PARTED = ", which the reader then parts into faces, because the chip reads no less from DRAM"


def check_slices(function: FuncOp, context: PassContext) -> list[Diagnostic]:
    problems: list[Diagnostic] = []
    ranges = Ranges(context.grid)
    for op in operations(function):
        if not isinstance(op, TensorSliceOp) or ranges.hold(op):
            continue
        from tilewright.passes.validation.slice_points import Points, Unknown  # late: few kernels need it, and it needs NumPy

        try:
            points = Points(op, context.grid)
        except Unknown:
            numbers = numbers_below(op.operands[1:])
            context.trace.decide(
                NAME,
                "slice assumed to lie inside its tensor" if numbers else "slice not checked before the run",
                f"its start follows from a number {place_text(numbers)}; every run checks it, high= would let the compiler"
                if numbers
                else "its start depends on a value carried by a loop",
                place=f"line {line_of(op)}",
            )
            continue
        problems += points.outside(op)
    return problems


def numbers_below(values: Iterable[SSAValue]) -> list[ReadElementOp]:
    """The elements of blocks that values, or the loops that count them, are computed from."""
    found: dict[Operation, None] = {}
    pending = list(values)
    while pending:
        owner = pending.pop().owner
        loop = None if isinstance(owner, Operation) else owner.parent_op()
        owner = loop if isinstance(loop, scf.ForOp) else owner
        if isinstance(owner, Operation) and owner not in found:
            found[owner] = None
            pending += [] if isinstance(owner, ReadElementOp) else owner.operands
    return [op for op in found if isinstance(op, ReadElementOp)]


def place_text(numbers: Sequence[ReadElementOp]) -> str:
    """``read from 'pos_cb' in line 12``"""
    reads = [(acquire, op) for op in numbers if (acquire := acquire_of(op.block)) is not None]
    places = {f"'{buffer_name(acquire)}' in line {line_of(op)}" for acquire, op in reads}
    return f"read from {' and '.join(sorted(places))}"


def _inside(bounds: tuple[int, int] | None, extent: int, size: int) -> bool:
    return bounds is not None and bounds[0] >= 0 and bounds[1] + extent <= size


@record(frozen=False)
class Ranges:
    """Inclusive bounds of integers by interval arithmetic; None where nothing is known."""

    grid: tuple[int, ...]
    known: dict[SSAValue, tuple[int, int] | None] = field(default_factory=dict[SSAValue, "tuple[int, int] | None"])

    def hold(self, op: TensorSliceOp) -> bool:
        """Whether a slice surely lies inside its tensor."""
        return all(_inside(self.of(start), extent, size) for start, extent, size in op.axes)

    def of(self, value: SSAValue) -> tuple[int, int] | None:
        if value not in self.known:
            self.known[value] = self._compute(value)
        return self.known[value]

    def _compute(self, value: SSAValue) -> tuple[int, int] | None:
        number = constant_of(value)
        if number is not None:
            return number, number
        owner = value.owner
        if is_result(value) and isinstance(owner, CoreOp):
            return 0, self.grid[value.index] - 1
        if isinstance(owner, WorkOp):
            return 0, owner.argument.largest
        if isinstance(owner, (RuntimeArgumentOp, ReadElementOp, WaitAnyOp)):
            return owner.bounds
        if isinstance(owner, CoreTableOp):
            numbers = [number for row in owner.values for number in row]
            return min(numbers), max(numbers)
        if isinstance(value, BlockArgument):
            loop = value.block.parent_op()
            if not isinstance(loop, scf.ForOp) or value.index != 0:
                return None
            low, high = self.of(loop.lb), self.of(loop.ub)
            return None if low is None or high is None else (low[0], max(low[0], high[1] - 1))
        assert isinstance(owner, Operation)
        return self._arithmetic(owner)

    def _arithmetic(self, op: Operation) -> tuple[int, int] | None:
        form = FORMS.get(op.name)
        pairs = [(0, 1) if operand.type == I1 else self.of(operand) for operand in op.operands]
        known = [pair for pair in pairs if pair is not None]
        if form is None or len(known) < len(pairs) or (form.divides and known[0][0] < 0):  # the chip divides unsigned
            return None
        return interval(form.symbol, *known)


def check_rows(function: FuncOp, context: PassContext) -> list[Diagnostic]:
    """Writes may start at any 16 elements; reads from DRAM only where the NoC is aligned."""
    problems: list[Diagnostic] = []
    chip = context.chip
    for op in operations(function):
        accessor = _row_major(op) if isinstance(op, CopyOp) else None
        if accessor is None:
            continue
        kind = accessor.results[0].type
        assert isinstance(kind, AccessorType)
        part = FACE_COLS * kind.tile.bytes // TILE_ELEMENTS
        reads = isinstance(op.operands[0].type, SliceType)
        moved = chip.row_read_bytes(part, kind.memory.data) if reads else part
        if not moved:
            problems.append(
                problem(
                    "TW106",
                    f"tensor '{accessor.tensor_name}' is stored row by row: {TILE_COLS} {kind.tile.dtype} elements "
                    f"are {2 * part} bytes, and {chip.name} reads DRAM in steps of {chip.dram_read_alignment}",
                    op,
                    help="ttnn.to_layout(tensor, ttnn.TILE_LAYOUT) first, or keep the tensor in L1 (ttnn.L1_MEMORY_CONFIG)",
                )
            )
        else:
            context.trace.decide(
                NAME,
                f"'{accessor.tensor_name}' moves by rows",
                f"it is stored row by row: {TILE_ROWS * 2 * part // moved} transfers of {moved} bytes per tile"
                f"{PARTED if moved > part else ''}; a tiled tensor needs one",
                place=f"line {line_of(op)}",
            )
    return problems


def _row_major(op: CopyOp) -> TensorAccessorOp | None:
    cut = next((side.owner for side in op.operands if isinstance(side.type, SliceType)), None)
    accessor = cut.accessor.owner if isinstance(cut, TensorSliceOp) else None
    return accessor if isinstance(accessor, TensorAccessorOp) and accessor.by_rows else None
