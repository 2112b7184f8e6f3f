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
    indices = _indices(thread, node.slice)
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
    for axis, ((index, place), size) in enumerate(zip(indices, sizes, strict=True)):
        start, extent = _range(thread, index, place, size, tensor)
        if axis < len(sizes) - 2 and extent != 1:
            raise thread.error(
                "TW109",
                f"dimension {axis} of '{tensor.name}' is sliced with {extent} entries",
                place,
                help="only the last two dimensions are tiled; take one entry of the others and loop over them",
            )
        _check_constant(thread, start, extent, size, axis, tensor, place)
        starts.append(start)
        extents.append(extent)
    thread.at(node)
    origin = not any(isinstance(index, slice) for index, _ in indices) and all(start == 0 for start in starts)
    return emit_slice(thread, tensor, starts, tuple(extents[-2:]), origin)


def _indices(thread: Thread, written: ast.expr) -> list[tuple[Any, ast.expr]]:
    """One index per dimension and where it stands: ``a:b``, an integer, a ``slice`` made before, or a tuple of these."""
    if isinstance(written, ast.Tuple):
        return [index for part in written.elts for index in _indices(thread, part)]
    if isinstance(written, ast.Starred):
        written = written.value
    if not isinstance(written, ast.Slice):
        value = thread.evaluate(written)
        return [(item, written) for item in value] if isinstance(value, (tuple, list)) else [(value, written)]  # pyright: ignore
    parts = [None if part is None else thread.evaluate(part) for part in (written.lower, written.upper, written.step)]
    return [(slice(*parts), written)]


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


def _range(thread: Thread, index: Any, place: ast.expr, size: int, tensor: KernelTensor) -> tuple[Value, int]:
    if not isinstance(index, slice):
        return _integer(thread, index, place), 1
    if index.step not in (None, 1):
        raise thread.error("TW008", "slices with a step are not supported yet", place, help="loop over the tiles instead")
    lower, upper = (place.lower or place, place.upper or place) if isinstance(place, ast.Slice) else (place, place)
    start = 0 if index.start is None else _integer(thread, index.start, lower)
    stop = size if index.stop is None else _integer(thread, index.stop, upper)
    extent = constant_difference(stop, start)
    if extent is None:
        raise thread.error(
            "TW104",
            f"the size of this slice of '{tensor.name}' is not a constant",
            place,
            label="stop - start varies",
            help="write the stop as start + size, with the same size on every core and iteration",
        )
    if extent < 1:
        raise thread.error("TW103", f"this slice of '{tensor.name}' has {extent} tiles", place, help="stop must be above start")
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
