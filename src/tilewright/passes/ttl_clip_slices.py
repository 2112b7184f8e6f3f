"""A block at the edge may stick out of its tensor: what lies outside is read as zeros and not written.

Requires: slices with their starts, loops and guards around them. Ensures: ``clipped`` on every slice that somewhere starts inside
its tensor and ends outside, with the dimensions in which it does. Slices that start outside are left for ttl-validate to refuse.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tilewright.diagnostics import counted
from tilewright.dialects.attributes import i32_list
from tilewright.dialects.ttl_buffers import TensorAccessorOp, TensorSliceOp
from tilewright.dialects.walking import line_of, of_kind
from tilewright.passes.buffers import functions_of
from tilewright.passes.context import PassContext
from tilewright.passes.validation.slices import Ranges

NAME = "ttl-clip-slices"


def run(module: ModuleOp, context: PassContext) -> bool:
    clipped = False
    for function in functions_of(module):
        ranges = Ranges(context.grid)
        for op in of_kind(function, TensorSliceOp):
            if all(stride == 1 for stride in op.strides) and not ranges.hold(op):
                _clip(op, context)
                clipped = True
    return clipped


def _clip(op: TensorSliceOp, context: PassContext) -> None:
    from tilewright.passes.validation.slice_points import Points, Unknown  # late: few kernels need it, and it needs NumPy

    try:
        dims = Points(op, context.grid).sticking_out(op)
    except Unknown:
        return
    if not dims:
        return
    op.attributes["clipped"] = i32_list(dims)
    accessor = op.accessor.owner
    name = accessor.tensor_name if isinstance(accessor, TensorAccessorOp) else "tensor"
    sizes = " and ".join(f"{counted(op.axes[dim][2], 'tile')} in dimension {dim}" for dim in dims)
    context.trace.decide(
        NAME,
        f"blocks at the edge stick out of '{name}'",
        f"it has {sizes}: tiles outside are read as zeros and not written",
        place=f"line {line_of(op)}",
    )
