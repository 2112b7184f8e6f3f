"""Which buffer a block value lives in, and which tile of that buffer an element of it is."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase
from xdsl.dialects.tensor import CollapseShapeOp, ExtractSliceOp
from xdsl.ir import SSAValue

from tilewright.dialects.attributes import block_type_of
from tilewright.dialects.ttl_buffers import AttachCBOp, BindCBOp
from tilewright.records import record

SIGNIFICANT_BITS = "significant_bits"  # on a buffer: its values have no more than these
DYNAMIC = -(2**63)  # MLIR's marker for an offset given as an operand


@record
class TileView:
    """Tile number = ``base`` + sum of offset * stride over ``offsets`` + sum of index * stride over ``strides``."""

    buffer: SSAValue
    base: int
    offsets: tuple[tuple[SSAValue, int], ...]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    out_of_order: bool = False  # tiles of the block are packed by number, not one after the other


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides: list[int] = []
    stride = 1
    for extent in reversed(shape):
        strides.append(stride)
        stride *= extent
    return tuple(reversed(strides))


def view_of(value: SSAValue) -> TileView:
    owner = value.owner
    kind = block_type_of(value)
    shape = kind.get_shape()
    if isinstance(owner, AttachCBOp):
        out_of_order = owner.tile_offset != 0 or not {"out_of_order", "first_tile"}.isdisjoint(owner.attributes)
        return TileView(owner.buffer, owner.tile_offset + owner.first_tile, (), shape, row_major(shape), out_of_order)
    if isinstance(owner, CollapseShapeOp):
        inner = view_of(owner.src)
        return TileView(inner.buffer, inner.base, inner.offsets, shape, (1,), inner.out_of_order)
    if isinstance(owner, ExtractSliceOp):
        return _cut(owner, view_of(owner.source), shape)
    raise AssertionError(f"{value} is not a view of a buffer")


def _cut(cut: ExtractSliceOp, inner: TileView, shape: tuple[int, ...]) -> TileView:
    static = cut.properties["static_offsets"]
    assert isinstance(static, DenseArrayBase)
    dynamic = iter(cut.operands[1:])
    base, offsets = inner.base, list(inner.offsets)
    for offset, stride in zip(static.get_values(), inner.strides, strict=True):
        if offset == DYNAMIC:
            offsets.append((next(dynamic), stride))
        else:
            base += int(offset) * stride
    return TileView(inner.buffer, base, tuple(offsets), shape, inner.strides, inner.out_of_order)


def block_start(value: SSAValue) -> int:
    """Tile of the buffer at which the whole block starts that ``value`` is a part of."""
    attachment = _attachment(value)
    return attachment.tile_offset + attachment.first_tile


def buffer_of(value: SSAValue) -> SSAValue:
    return _attachment(value).buffer


def _attachment(value: SSAValue) -> AttachCBOp:
    owner = value.owner
    while not isinstance(owner, AttachCBOp):
        assert isinstance(owner, (CollapseShapeOp, ExtractSliceOp)), f"{value} is not a view of a buffer"
        owner = owner.operands[0].owner
    return owner


def fits_source(buffer: SSAValue) -> bool:
    """Whether the source registers hold every value of an f32 buffer (`ttl-mark-half-buffers` says so)."""
    assert isinstance(buffer.owner, BindCBOp)
    return SIGNIFICANT_BITS in buffer.owner.attributes
