"""The tensors of a program in text: those its accessors name."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilewright.diagnostics import Span, fail
from tilewright.dialects.attributes import AccessorType, int_value, text_value
from tilewright.dialects.ttl_buffers import TensorAccessorOp
from tilewright.dialects.walking import operations, place_of
from tilewright.hardware import TILE_COLS, TILE_ROWS
from tilewright.program import ROW_MAJOR, TensorSpec


def tensors_of(module: ModuleOp) -> tuple[TensorSpec, ...]:
    found: dict[int, TensorSpec] = {}
    last: Span | None = None
    for op in operations(module):
        kind = _kind(op)
        if kind is None:
            continue
        index = int_value(op, "tensor_index")
        spec, last = _spec(op, kind, index), place_of(op)
        known = found.setdefault(index, spec)
        if known != spec:
            message = f"tensor {index} is '{known.name}', {known.shape} of {known.dtype}, at another accessor"
            raise fail("TW603", message, place_of(op), help="accessors of one tensor agree")
    missing = [number for number in range(max(found, default=-1) + 1) if number not in found]
    if missing:
        raise fail("TW603", f"no accessor names tensor {missing[0]}, but one names tensor {max(found)}", last)
    return tuple(found[number] for number in sorted(found))


def _kind(op: Operation) -> AccessorType | None:
    """The type an accessor has; once it is a call, the type it was made from."""
    if isinstance(op, TensorAccessorOp):
        kind = op.results[0].type
    else:
        kind = op.attributes.get("tensor") if op.name == "ttkernel.tensor_accessor" else None
    return kind if isinstance(kind, AccessorType) else None


def _spec(op: Operation, kind: AccessorType, index: int) -> TensorSpec:
    if len(kind.dims) < 2:
        raise fail("TW603", f"{op.name}: a tensor has two dimensions or more", place_of(op))
    rows, columns = kind.dims[-2] * TILE_ROWS, kind.dims[-1] * TILE_COLS
    return TensorSpec(
        name=op.tensor_name if isinstance(op, TensorAccessorOp) else text_value(op, "name", f"tensor{index}"),
        shape=(*kind.dims[:-2], rows, columns),
        dtype=kind.tile.dtype,
        layout=ROW_MAJOR if (op.by_rows if isinstance(op, TensorAccessorOp) else "page_bytes" in op.attributes) else "tile",
        memory="l1" if kind.memory.data == "l1" else "dram",
    )
