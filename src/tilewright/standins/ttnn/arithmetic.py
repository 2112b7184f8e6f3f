"""ttnn stand-in: arithmetic of host code, on NumPy. float32 inside, rounded once to the type of the first operand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.standins.ttnn.tensor import Tensor, as_data_type, combine, like, wide

Function = Callable[..., Any]


def _erf(values: Any) -> Any:
    import math

    return np.vectorize(math.erf, otypes=[np.float64])(values)


def _sigmoid(x: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-x))


def _gelu(x: Any) -> Any:
    return 0.5 * x * (1.0 + _erf(x / np.sqrt(2.0)))


def _reciprocal(x: Any) -> Any:
    return 1.0 / x


def _relu(x: Any) -> Any:
    return np.maximum(x, 0)


def _rsqrt(x: Any) -> Any:
    return 1.0 / np.sqrt(x)


def _silu(x: Any) -> Any:
    return x * _sigmoid(x)


def _softplus(x: Any) -> Any:
    return np.logaddexp(x, 0.0)


def _rsub(left: Any, right: Any) -> Any:
    return right - left


UNARY: dict[str, Function] = {
    "abs": np.abs,
    "acos": np.arccos,
    "asin": np.arcsin,
    "atan": np.arctan,
    "ceil": np.ceil,
    "cos": np.cos,
    "erf": _erf,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "floor": np.floor,
    "gelu": _gelu,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "neg": np.negative,
    "reciprocal": _reciprocal,
    "relu": _relu,
    "rsqrt": _rsqrt,
    "sigmoid": _sigmoid,
    "sign": np.sign,
    "silu": _silu,
    "sin": np.sin,
    "softplus": _softplus,
    "sqrt": np.sqrt,
    "square": np.square,
    "tan": np.tan,
    "tanh": np.tanh,
    "trunc": np.trunc,
}

# Comparisons give 0 and 1 in the operand's type: the boolean is stored as a number.
BINARY: dict[str, Function] = {
    "add": np.add,
    "subtract": np.subtract,
    "sub": np.subtract,
    "multiply": np.multiply,
    "mul": np.multiply,
    "divide": np.divide,
    "div": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "pow": np.power,
    "rsub": _rsub,
    "matmul": np.matmul,
    "eq": np.equal,
    "ne": np.not_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
}

REDUCTIONS: dict[str, Function] = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min}


def finished(result: Tensor, dtype: Any, memory_config: Any, output_tensor: Tensor | None) -> Tensor:
    """Applies the keyword arguments that all operations share."""
    if output_tensor is not None:
        output_tensor.array[...] = result.array.astype(output_tensor.array.dtype)
        return output_tensor
    if dtype is None and memory_config is None:
        return result
    return result.with_(
        dtype=as_data_type(dtype, result.dtype), memory_config=memory_config or result.memory_config()
    )


def unary(name: str) -> Function:
    function = UNARY[name]

    def apply(
        tensor: Tensor,
        *,
        dtype: Any = None,
        memory_config: Any = None,
        output_tensor: Tensor | None = None,
        **_rest: Any,
    ) -> Tensor:
        with np.errstate(all="ignore"):
            result = like(tensor, function(wide(tensor)))
        return finished(result, dtype, memory_config, output_tensor)

    apply.__name__ = name
    return apply


def binary(name: str) -> Function:
    function = BINARY[name]

    def apply(
        left: Tensor,
        right: Any,
        *,
        dtype: Any = None,
        memory_config: Any = None,
        output_tensor: Tensor | None = None,
        **_rest: Any,
    ) -> Tensor:
        return finished(combine(function, left, right), dtype, memory_config, output_tensor)

    apply.__name__ = name
    return apply


def reduction(name: str) -> Function:
    function = REDUCTIONS[name]

    def apply(
        tensor: Tensor,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
        *,
        dtype: Any = None,
        memory_config: Any = None,
        output_tensor: Tensor | None = None,
        **_rest: Any,
    ) -> Tensor:
        axes = tuple(dim) if isinstance(dim, Sequence) else dim
        result = like(tensor, function(wide(tensor), axis=axes, keepdims=keepdim))
        return finished(result, dtype, memory_config, output_tensor)

    apply.__name__ = name
    return apply


def where(condition: Tensor, left: Any, right: Any, **_rest: Any) -> Tensor:
    return like(condition, np.where(wide(condition) != 0, wide(left), wide(right)))


def clamp(tensor: Tensor, min: Any = None, max: Any = None, **_rest: Any) -> Tensor:
    return like(tensor, np.clip(wide(tensor), min, max))


def linear(left: Tensor, right: Tensor, *, bias: Tensor | None = None, **_rest: Any) -> Tensor:
    product = wide(left) @ wide(right)
    return like(left, product if bias is None else product + wide(bias))


def softmax(tensor: Tensor, dim: int = -1, **_rest: Any) -> Tensor:
    values = wide(tensor)
    powers = np.exp(values - values.max(axis=dim, keepdims=True))
    return like(tensor, powers / powers.sum(axis=dim, keepdims=True))


def transpose(tensor: Tensor, dim1: int, dim2: int, **_rest: Any) -> Tensor:
    return like(tensor, np.swapaxes(tensor.array, dim1, dim2))


def permute(tensor: Tensor, dims: Sequence[int], **_rest: Any) -> Tensor:
    return like(tensor, np.transpose(tensor.array, tuple(dims)))


def concat(tensors: Sequence[Tensor], dim: int = 0, **_rest: Any) -> Tensor:
    return like(tensors[0], np.concatenate([tensor.array for tensor in tensors], axis=dim))


def operations() -> dict[str, Function]:
    """Every function of this file under its ttnn name."""
    made: dict[str, Function] = {name: unary(name) for name in UNARY}
    made.update((name, binary(name)) for name in BINARY)
    made.update((name, reduction(name)) for name in REDUCTIONS)
    for function in (where, clamp, linear, softmax, transpose, permute, concat):
        made[function.__name__] = function
    made["clip"] = clamp
    return made
