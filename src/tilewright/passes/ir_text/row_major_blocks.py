"""Buffers whose shape counts elements (``!ttl.cb<[64, 32], f32, 2>``) hold tiles: arithmetic reads nothing else.

Their blocks are put together from rows on the way in and taken apart on the way out, as for every tensor that lies row by row. So
the types change to tiles, such tensors say that they lie row by row, and slices start at tiles.
"""

from __future__ import annotations

from xdsl.dialects.arith import AddiOp, MuliOp
from xdsl.dialects.builtin import ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from tilewright.diagnostics import KernelError, fail
from tilewright.dialects.attributes import (
    AccessorType,
    CBType,
    SliceType,
    add,
    constant,
    constant_of,
    int_array,
    multiply,
    scalar_format,
    tile_type,
)
from tilewright.dialects.ttl_buffers import TensorAccessorOp, TensorSliceOp
from tilewright.dialects.walking import operations, place_of
from tilewright.hardware import TILE_COLS, TILE_ROWS
from tilewright.program import ROW_MAJOR


def hold_tiles(module: ModuleOp) -> None:
    ops = [op for function in module.ops if isinstance(function, FuncOp) for op in operations(function)]
    if not any(_counts_elements(result.type) for op in ops for result in op.results):
        return
    for op in ops:
        if isinstance(op, TensorSliceOp) and _counts_elements(op.operands[0].type):
            for position in range(len(op.operands) - 2, len(op.operands)):
                op.operands[position] = _in_tiles(op.operands[position], op)
    for op in ops:
        if isinstance(op, TensorAccessorOp) and _counts_elements(op.results[0].type):
            op.attributes["layout"] = StringAttr(ROW_MAJOR)
        arguments = [argument for region in op.regions for block in region.blocks for argument in block.args]
        for value in (*op.results, *arguments):
            if _counts_elements(value.type):
                Rewriter.replace_value_with_new_type(value, _tiled(value.type, op))


def _counts_elements(kind: Attribute) -> bool:
    if isinstance(kind, TensorType):
        return scalar_format(kind.element_type) != ""
    return isinstance(kind, (CBType, AccessorType, SliceType)) and not kind.tiled


def _tiled(kind: Attribute, op: Operation) -> Attribute:
    if isinstance(kind, TensorType):
        return TensorType(tile_type(scalar_format(kind.element_type)), _sizes(kind.get_shape(), op))
    assert isinstance(kind, (CBType, AccessorType, SliceType))
    return _reshaped(kind, op)


def _reshaped(kind: CBType | AccessorType | SliceType, op: Operation) -> Attribute:
    first, tile, last = int_array(_sizes(kind.dims, op)), tile_type(_format(kind, op)), kind.parameters[2]
    return type(kind).new([first, tile, last])


def _format(kind: CBType | AccessorType | SliceType, op: Operation) -> str:
    found = scalar_format(kind.element)
    if not found:
        raise fail("TW603", f"{op.name}: {kind.element} is no element of a tile", place_of(op))
    return found


def _sizes(dims: tuple[int, ...], op: Operation) -> tuple[int, ...]:
    if len(dims) < 2 or dims[-2] % TILE_ROWS or dims[-1] % TILE_COLS:
        raise _uneven(f"{list(dims)} elements", op)
    return (*dims[:-2], dims[-2] // TILE_ROWS, dims[-1] // TILE_COLS)


def _uneven(what: str, op: Operation) -> KernelError:
    message = f"{op.name}: {what}: not a whole number of tiles"
    return fail("TW106", message, place_of(op), help=f"rows in multiples of {TILE_ROWS}, columns of {TILE_COLS}")


def _in_tiles(value: SSAValue, op: TensorSliceOp) -> SSAValue:
    """An offset in elements as one in tiles."""
    number, owner = constant_of(value), value.owner
    made: Operation | None = None
    if number is not None and number % TILE_ROWS == 0:
        made = constant(number // TILE_ROWS)
    elif isinstance(owner, AddiOp):
        made = add(_in_tiles(owner.lhs, op), _in_tiles(owner.rhs, op))
    elif isinstance(owner, MuliOp):
        for factor, other in ((owner.lhs, owner.rhs), (owner.rhs, owner.lhs)):
            number = constant_of(factor)
            if number is not None and number % TILE_ROWS == 0:
                size = constant(number // TILE_ROWS)
                assert op.parent is not None
                op.parent.insert_op_before(size, op)
                made = multiply(other, size.results[0])
                break
    if made is None:
        raise _uneven("a slice starts at an element that may lie inside a tile", op)
    assert op.parent is not None
    op.parent.insert_op_before(made, op)
    return made.results[0]
