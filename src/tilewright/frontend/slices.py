"""``tensor[r0:r1, c0:c1]`` in tiles: start coordinates may vary, sizes are constants."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import StringAttr

from tilewright.dialects.ir_types import SliceType, int_array, tile_type
from tilewright.dialects.ttl_movement import TensorSliceOp
from tilewright.frontend.describe import described
from tilewright.frontend.integers import Value, constant_difference, is_dynamic, is_int_like
from tilewright.frontend.thread import Thread
from tilewright.frontend.values import TensorSlice
from tilewright.lang.tensors import KernelTensor


def tensor_slice(thread: Thread, tensor: KernelTensor, node: ast.Subscript) -> TensorSlice:
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    sizes = tensor.tile_shape
    if len(indices) != len(sizes):
        raise thread.error(
            "TW109",
            f"tensor '{tensor.name}' has {len(sizes)} dimensions, the slice gives {len(indices)}",
            node,
            help=f"for example {tensor.name}[{', '.join(['0'] * (len(sizes) - 2) + ['0:1', '0:1'])}], in tiles",
        )
    starts: list[Value] = []
    extents: list[int] = []
    for axis, (index, size) in enumerate(zip(indices, sizes, strict=True)):
        start, extent = _range(thread, index, size, tensor)
        if axis < len(sizes) - 2 and extent != 1:
            raise thread.error(
                "TW109",
                f"dimension {axis} of '{tensor.name}' is sliced with {extent} entries",
                index,
                help="only the last two dimensions are tiled; take one entry of the others and loop over them",
            )
        _check_constant(thread, start, extent, size, axis, tensor, index)
        starts.append(start)
        extents.append(extent)
    thread.at(node)
    origin = not any(isinstance(index, ast.Slice) for index in indices) and all(start == 0 for start in starts)
    return emit_slice(thread, tensor, starts, tuple(extents[-2:]), origin)


def emit_slice(
    thread: Thread, tensor: KernelTensor, starts: Sequence[Value], shape: tuple[int, ...], origin: bool = False
) -> TensorSlice:
    kind = SliceType(int_array(shape), tile_type(tensor.spec.dtype), StringAttr(tensor.spec.memory))
    operands = [thread.accessor(tensor), *(thread.emitter.integer(start) for start in starts)]
    op = thread.emitter.add(TensorSliceOp, operands, [kind])
    return TensorSlice(op.results[0], shape, tensor.spec.dtype, tensor, origin)


def erase_slice(part: TensorSlice) -> None:
    """Takes back a slice that another one replaces."""
    op = part.ssa.owner
    assert isinstance(op, TensorSliceOp)
    op.detach()
    op.erase()


def _range(thread: Thread, index: ast.expr, size: int, tensor: KernelTensor) -> tuple[Value, int]:
    if not isinstance(index, ast.Slice):
        return _integer(thread, thread.evaluate(index), index), 1
    if index.step is not None:
        step = thread.evaluate(index.step)
        if step != 1:
            raise thread.error("TW008", "slices with a step are not supported yet", index, help="loop over the tiles instead")
    start = 0 if index.lower is None else _integer(thread, thread.evaluate(index.lower), index.lower)
    stop = size if index.upper is None else _integer(thread, thread.evaluate(index.upper), index.upper)
    extent = constant_difference(stop, start)
    if extent is None:
        raise thread.error(
            "TW104",
            f"the size of this slice of '{tensor.name}' is not a constant",
            index,
            label="stop - start varies",
            help="write the stop as start + size, with the same size on every core and iteration",
        )
    if extent < 1:
        raise thread.error("TW103", f"this slice of '{tensor.name}' has {extent} tiles", index, help="stop must be above start")
    return start, extent


def _integer(thread: Thread, value: Any, node: ast.AST) -> Value:
    if not is_int_like(value):
        raise thread.error("TW004", f"a tile index is an integer, not {described(value)}", node, help="indices count tiles")
    return value


def _check_constant(thread: Thread, start: Value, extent: int, size: int, axis: int, tensor: KernelTensor, node: ast.AST) -> None:
    """Starts that vary are checked by ttl-validate, which knows the loops and guards around them."""
    if is_dynamic(start):
        return
    assert isinstance(start, int)
    if start < 0 or start + extent > size:
        found = str(start) if extent == 1 else f"{start}:{start + extent}"
        raise thread.error(
            "TW103",
            f"tiles {found} lie outside dimension {axis} of '{tensor.name}', which has {size} tile{'s' if size != 1 else ''}",
            node,
            label=f"valid: 0 to {size - 1}",
            help="indices count tiles of 32x32, not elements",
        )
