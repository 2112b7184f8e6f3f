"""Copies between blocks and row-major tensors: 16 elements of a row at a time, or 32 where the chip reads no less from memory."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp

from tilewright.diagnostics import Diagnostic
from tilewright.dialects.attributes import AccessorType, SliceType
from tilewright.dialects.ttl_buffers import CopyOp, TensorAccessorOp, TensorSliceOp
from tilewright.dialects.walking import line_of, operations
from tilewright.hardware import FACE_COLS, TILE_COLS, TILE_ELEMENTS, TILE_ROWS
from tilewright.passes.context import PassContext
from tilewright.passes.validation.events import problem

NAME = "ttl-validate"
PARTED = ", which the reader then parts into faces, because the chip reads no less from DRAM"


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
    accessor = cut.operands[0].owner if isinstance(cut, TensorSliceOp) else None
    return accessor if isinstance(accessor, TensorAccessorOp) and accessor.by_rows else None
