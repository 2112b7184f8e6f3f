"""Which buffer a block value lives in, and which tile of that buffer an element of it is."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType
from xdsl.dialects.tensor import CollapseShapeOp, ExtractSliceOp
from xdsl.ir import SSAValue

from tilewright.dialects.ttl_buffers import AttachCBOp


@dataclass(frozen=True)
class TileView:
    """Tile number = ``base`` + the sum of ``offsets`` + row-major index in ``shape``."""

    buffer: SSAValue
    base: int
    offsets: tuple[SSAValue, ...]
    shape: tuple[int, ...]
    out_of_order: bool = False  # tiles of the block are packed by number, not one after the other


def view_of(value: SSAValue) -> TileView:
    owner = value.owner
    kind = value.type
    assert isinstance(kind, TensorType)
    if isinstance(owner, AttachCBOp):
        out_of_order = owner.tile_offset != 0 or "out_of_order" in owner.attributes
        return TileView(owner.operands[1], owner.tile_offset, (), kind.get_shape(), out_of_order)
    if isinstance(owner, CollapseShapeOp):
        inner = view_of(owner.operands[0])
        return TileView(inner.buffer, inner.base, inner.offsets, kind.get_shape(), inner.out_of_order)
    if isinstance(owner, ExtractSliceOp):
        inner = view_of(owner.operands[0])
        assert len(inner.shape) == 1, "only runs of a flattened block are cut"
        offsets = (*inner.offsets, owner.operands[1])
        return TileView(inner.buffer, inner.base, offsets, kind.get_shape(), inner.out_of_order)
    raise AssertionError(f"{value} is not a view of a buffer")


def buffer_of(value: SSAValue) -> SSAValue:
    return view_of(value).buffer
