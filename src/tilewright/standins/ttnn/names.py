"""Everything ``import ttnn`` gives when the stand-in answers; among it arithmetic of host code, on NumPy.

Arithmetic is float32 inside, rounded once to the type of the first operand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from types import SimpleNamespace
from typing import Any

import numpy as np

from tilewright.hardware import TILE_COLS
from tilewright.standins.ttnn import devices, tensor
from tilewright.standins.ttnn.devices import Layout
from tilewright.standins.ttnn.tensor import DataType, Tensor, as_data_type, like, wide

Function = Callable[..., Any]


def _erf(values: Any) -> Any:
    import math

    return np.vectorize(math.erf, otypes=[np.float64])(values)


def _sigmoid(x: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-x))


UNARY: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(np, name) for name in (
        "abs", "ceil", "cos", "exp", "exp2", "expm1", "floor", "log", "log10", "log1p", "log2", "sign", "sin", "sqrt", "square",
        "tan", "tanh", "trunc",
    )},
    "acos": np.arccos,
    "asin": np.arcsin,
    "atan": np.arctan,
    "erf": _erf,
    "gelu": lambda x: 0.5 * x * (1.0 + _erf(x / np.sqrt(2.0))),
    "neg": np.negative,
    "reciprocal": lambda x: 1.0 / x,
    "relu": lambda x: np.maximum(x, 0),
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "sigmoid": _sigmoid,
    "silu": lambda x: x * _sigmoid(x),
    "softplus": lambda x: np.logaddexp(x, 0.0),
}  # fmt: skip

# Comparisons give 0 and 1 in the operand's type: the boolean is stored as a number.
BINARY: dict[str, Callable[[Any, Any], Any]] = {
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
    "rsub": lambda left, right: right - left,
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
    return result.with_(dtype=as_data_type(dtype, result.dtype), memory_config=memory_config or result.memory_config())


def elementwise(function: Function) -> Function:
    def apply(tensor: Tensor, *others: Any, **_rest: Any) -> Tensor:
        with np.errstate(all="ignore"):
            return like(tensor, function(wide(tensor), *map(wide, others)))

    return apply


def reduction(function: Function) -> Function:
    def apply(tensor: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, **_rest: Any) -> Tensor:
        axes = tuple(dim) if isinstance(dim, Sequence) else dim
        return like(tensor, function(wide(tensor), axis=axes, keepdims=keepdim))

    return apply


def operation(name: str, function: Function) -> Function:
    """With the keyword arguments that all operations share."""

    def apply(
        *args: Any, dtype: Any = None, memory_config: Any = None, output_tensor: Tensor | None = None, **named: Any
    ) -> Tensor:
        return finished(function(*args, **named), dtype, memory_config, output_tensor)

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


def norm(*, centred: bool) -> Function:
    def apply(
        tensor: Tensor, *, epsilon: float = 1e-12, weight: Tensor | None = None, bias: Tensor | None = None,
        residual_input_tensor: Tensor | None = None, **_rest: Any,
    ) -> Tensor:  # fmt: skip
        values = wide(tensor) if residual_input_tensor is None else wide(tensor) + wide(residual_input_tensor)
        values = values - values.mean(axis=-1, keepdims=True) if centred else values
        result = values / np.sqrt((values**2).mean(axis=-1, keepdims=True) + epsilon)
        return like(tensor, _affine(result, weight, bias))

    return apply


def _affine(values: Any, weight: Tensor | None, bias: Tensor | None) -> Any:
    """Weights may lie in rows of tiles, (1, 1, n / 32, 32): what counts is how many there are."""
    for factor, function in ((weight, np.multiply), (bias, np.add)):
        values = values if factor is None else function(values, wide(factor).reshape(-1)[: values.shape[-1]])
    return values


def embedding(indices: Tensor, weight: Tensor, *, layout: Any = None, dtype: Any = None, **_rest: Any) -> Tensor:
    table = weight.array.reshape(-1, weight.shape[-1])
    result = like(weight, table[indices.array.astype(np.int64)])
    result = result if layout is None else result.with_(layout=layout)
    return finished(result, dtype, None, None)


def topk(
    tensor: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True, **_rest: Any
) -> tuple[Tensor, Tensor]:
    """Values and their places, in order; of equal values the first."""
    values = wide(tensor)
    places = np.argsort(-values if largest else values, axis=dim, kind="stable").take(np.arange(k), axis=dim)
    chosen = like(tensor, np.take_along_axis(values, places, axis=dim))
    return chosen, Tensor(places, DataType.UINT16, tensor.device(), tensor.layout)


def place(function: Function) -> Function:
    def apply(tensor: Tensor, dim: int | None = None, keepdim: bool = False, **_rest: Any) -> Tensor:
        places = np.asarray(function(wide(tensor), axis=dim, keepdims=keepdim))
        return Tensor(places, DataType.UINT32, tensor.device(), Layout.ROW_MAJOR)

    return apply


def cumsum(tensor: Tensor, dim: int, *, dtype: Any = None, **_rest: Any) -> Tensor:
    return finished(like(tensor, np.cumsum(wide(tensor), axis=dim)), dtype, None, None)


def pad(tensor: Tensor, padding: Sequence[Any], value: float = 0.0, **_rest: Any) -> Tensor:
    """``padding``: (before, after) of the last dimensions, as many as are given."""
    given = [tuple(pair) for pair in padding]
    missing = len(tensor.shape) - len(given)
    return like(tensor, np.pad(wide(tensor), [(0, 0)] * missing + given, constant_values=value))


def squeeze(tensor: Tensor, dim: int | Sequence[int] | None = None, **_rest: Any) -> Tensor:
    rank = len(tensor.shape)
    given = range(rank) if dim is None else [dim] if isinstance(dim, int) else dim
    axes = tuple(axis for axis in given if tensor.shape[axis] == 1)
    return like(tensor, np.squeeze(tensor.array, axes))


def unsqueeze(tensor: Tensor, dim: int, **_rest: Any) -> Tensor:
    return like(tensor, np.expand_dims(tensor.array, dim))


def operations() -> dict[str, Function]:
    """Every function of this file under its ttnn name."""
    made = {name: operation(name, elementwise(function)) for name, function in {**UNARY, **BINARY}.items()}
    made |= {name: operation(name, reduction(function)) for name, function in REDUCTIONS.items()}
    plain = (where, clamp, linear, softmax, transpose, permute, concat, embedding, topk, cumsum, pad, squeeze, unsqueeze)
    made |= {function.__name__: function for function in plain}
    made |= {"clip": clamp, "layer_norm": norm(centred=True), "rms_norm": norm(centred=False)}
    return {**made, "argmax": place(np.argmax), "argmin": place(np.argmin)}


class MathFidelity(Enum):
    LoFi = "LoFi"
    HiFi2 = "HiFi2"
    HiFi3 = "HiFi3"
    HiFi4 = "HiFi4"


CONSTANTS: dict[str, Any] = {
    "Tensor": Tensor,
    "DataType": DataType,
    **{kind.name.lower(): kind for kind in DataType},
    "TILE_LAYOUT": devices.Layout.TILE,
    "ROW_MAJOR_LAYOUT": devices.Layout.ROW_MAJOR,
    "TILE_SIZE": TILE_COLS,
    "MathFidelity": MathFidelity,
    "CreateDevice": devices.open_device,
    "CloseDevice": devices.close_device,
    "MeshDevice": devices.Device,
}


def build() -> dict[str, Any]:
    """The names, by defining file; only what a file defines itself is taken from it."""
    names: dict[str, Any] = {
        name: value
        for module in (devices, tensor)
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    }
    names["DRAM_MEMORY_CONFIG"] = devices.DRAM_MEMORY_CONFIG
    names["L1_MEMORY_CONFIG"] = devices.L1_MEMORY_CONFIG
    names.update(operations())
    names.update(CONSTANTS)
    names["device"] = SimpleNamespace(**{name: value for name, value in vars(devices).items() if not name.startswith("_")})
    for internal in ("folded", "padded", "set_default_dtype"):
        names.pop(internal, None)
    return names
