"""Elements that fill up the last tiles of a tensor must not count: reductions and products see their identity there.

A tensor whose sides are no multiples of 32 is padded with zeros, and a block may stick out of it. Elementwise math may do as it
likes with the padding: it is cut off when the tensor is read back. A maximum, or a sum of what is no longer zero there, is given
``where(inside, value, identity)`` instead of the value: minus infinity for a maximum, zero for a sum. (The minimum is the negated
maximum of the negated block, so what it sees is plus infinity.) The count of a mean is that of the elements inside.

``inside`` is a block of ones and zeros that a data-movement thread makes: once, if the edge is at the same place in every block
the buffer hands over; else with each block, in a buffer that goes beside it.

Requires: values that a thread reads back itself are forwarded; slices that stick out are marked.
Ensures: nothing that is reduced depends on elements outside of tensors.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from tilewright.dialects.ttl import MEAN, TENSOR_OPS
from tilewright.dialects.ttl_buffers import TensorSliceOp
from tilewright.dialects.walking import of_kind
from tilewright.passes.context import PassContext

NAME = "ttl-mask-padding"


def run(module: ModuleOp, context: PassContext) -> None:
    means = [op for op in of_kind(module, TENSOR_OPS["mul_scalar"]) if MEAN in op.attributes]
    padded = any(spec.logical_shape for spec in context.tensors)
    if padded or any(op.clipped for op in of_kind(module, TensorSliceOp)):
        from tilewright.passes.fusion.padding import mask_padding  # late: most tensors are whole tiles, and this needs NumPy

        mask_padding(module, means, context)
    for op in means:
        del op.attributes[MEAN]
