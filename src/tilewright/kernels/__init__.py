"""Kernels that many programs need, with parameters that are tuned for both chips (``docs/kernels.md``)."""

from tilewright.kernels.attention import flash_attention
from tilewright.kernels.batched import batched_matmul
from tilewright.kernels.matmul import matmul
from tilewright.kernels.planes import rope, swiglu, transpose
from tilewright.kernels.rows import layernorm, reduce, rmsnorm, softmax

__all__ = [
    "batched_matmul", "flash_attention", "layernorm", "matmul", "reduce", "rmsnorm", "rope", "softmax", "swiglu", "transpose",
]  # fmt: skip
