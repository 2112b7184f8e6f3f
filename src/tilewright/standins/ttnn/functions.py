"""ttnn stand-in: new tensors; tensors from and to torch and NumPy, and between layouts, types and memories."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.standins.ttnn.devices import Device
from tilewright.standins.ttnn.placement import Layout, MemoryConfig
from tilewright.standins.ttnn.tensor import DataType, Tensor, as_data_type, as_numpy

_random = np.random.default_rng(0)
_default_dtype = [DataType.BFLOAT16]  # of new tensors whose dtype nobody gives


def set_default_dtype(name: str) -> None:
    """``tilewright run --default-dtype``."""
    _default_dtype[0] = as_data_type(name, DataType.BFLOAT16)


def full(
    shape: Sequence[int],
    fill_value: float | int = 0,
    *,
    dtype: Any = None,
    layout: Layout | None = None,
    device: Device | None = None,
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    chosen = as_data_type(dtype, _default_dtype[0])
    values = np.full(tuple(shape), fill_value, dtype=np.float64 if isinstance(fill_value, float) else None)
    return Tensor(values, chosen, device, layout or Layout.TILE, memory_config)


def zeros(shape: Sequence[int], dtype: Any = None, layout: Layout | None = None, **settings: Any) -> Tensor:
    return full(shape, 0, dtype=dtype, layout=layout, **settings)


def ones(shape: Sequence[int], dtype: Any = None, layout: Layout | None = None, **settings: Any) -> Tensor:
    return full(shape, 1, dtype=dtype, layout=layout, **settings)


def empty(
    shape: Sequence[int],
    dtype: Any = None,
    layout: Layout | None = None,
    device: Device | None = None,
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    """Filled with a number nobody means, so that a kernel that forgets to write shows."""
    chosen = as_data_type(dtype, _default_dtype[0])
    garbage = float("nan") if np.dtype(chosen.storage).kind not in "iu" else 0x5A
    return full(shape, garbage, dtype=chosen, layout=layout, device=device, memory_config=memory_config)


allocate_tensor_on_device = empty


def full_like(tensor: Tensor, fill_value: float | int, *, dtype: Any = None, **settings: Any) -> Tensor:
    settings.setdefault("layout", tensor.layout)
    settings.setdefault("device", tensor.device())
    settings.setdefault("memory_config", tensor.memory_config())
    return full(tensor.shape, fill_value, dtype=as_data_type(dtype, tensor.dtype), **settings)


def zeros_like(tensor: Tensor, **settings: Any) -> Tensor:
    return full_like(tensor, 0, **settings)


def ones_like(tensor: Tensor, **settings: Any) -> Tensor:
    return full_like(tensor, 1, **settings)


def empty_like(tensor: Tensor, *, dtype: Any = None, **settings: Any) -> Tensor:
    settings.setdefault("layout", tensor.layout)
    settings.setdefault("device", tensor.device())
    settings.setdefault("memory_config", tensor.memory_config())
    return empty(tensor.shape, as_data_type(dtype, tensor.dtype), **settings)


def rand(
    shape: Sequence[int],
    device: Device | None = None,
    *,
    dtype: Any = None,
    layout: Layout | None = None,
    memory_config: MemoryConfig | None = None,
    low: float = 0.0,
    high: float = 1.0,
    seed: int = 0,
) -> Tensor:
    """Uniform in [low, high); ``seed`` 0 continues the module's stream."""
    generator = np.random.default_rng(seed) if seed else _random
    values = generator.uniform(low, high, tuple(shape))
    chosen = as_data_type(dtype, _default_dtype[0])
    return Tensor(values, chosen, device, layout or Layout.TILE, memory_config)


def arange(
    start: int,
    end: int | None = None,
    step: int = 1,
    *,
    dtype: Any = None,
    layout: Layout | None = None,
    device: Device | None = None,
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    values = np.arange(start, end, step) if end is not None else np.arange(0, start, step)
    chosen = as_data_type(dtype, _default_dtype[0])
    return Tensor(values, chosen, device, layout or Layout.ROW_MAJOR, memory_config)


def from_torch(
    tensor: Any,
    dtype: Any = None,
    *,
    tile: Any = None,
    layout: Layout | None = None,
    device: Device | None = None,
    memory_config: MemoryConfig | None = None,
    mesh_mapper: Any = None,
    **_settings: Any,
) -> Tensor:
    """A tensor with a copy of ``tensor``'s values (torch or NumPy); row-major by default, tiled for block formats."""
    values = as_numpy(tensor)
    if dtype is None and values.dtype == np.float16:
        print("note: ttnn holds float16 as bfloat16; dtype=ttnn.float32 keeps its bits", file=sys.stderr)
    chosen = as_data_type(dtype, as_data_type(values.dtype.name, DataType.FLOAT32))
    if layout is None:
        layout = Layout.TILE if chosen.is_block_format else Layout.ROW_MAJOR
    return Tensor(values, chosen, device, layout, memory_config, tile=tile)


def to_torch(tensor: Tensor, dtype: Any = None, **_settings: Any) -> Any:
    result = tensor.to_torch()
    if dtype is None:
        return result
    return result.astype(dtype) if hasattr(result, "astype") else result.to(dtype)


def as_tensor(tensor: Any, dtype: Any = None, **settings: Any) -> Tensor:
    return from_torch(tensor, dtype, **settings)


def to_device(tensor: Tensor, device: Device, memory_config: MemoryConfig | None = None, **_settings: Any) -> Tensor:
    return tensor.with_(device=device, memory_config=memory_config or tensor.memory_config())


def from_device(tensor: Tensor, **_settings: Any) -> Tensor:
    return tensor.cpu()


def to_layout(tensor: Tensor, layout: Layout, dtype: Any = None, **_settings: Any) -> Tensor:
    return tensor.with_(layout=layout, dtype=as_data_type(dtype, tensor.dtype))


def to_dtype(tensor: Tensor, dtype: Any) -> Tensor:
    return tensor.with_(dtype=as_data_type(dtype, tensor.dtype))


def typecast(tensor: Tensor, dtype: Any, **_settings: Any) -> Tensor:
    return to_dtype(tensor, dtype)


def to_memory_config(tensor: Tensor, memory_config: MemoryConfig, dtype: Any = None, **_settings: Any) -> Tensor:
    return tensor.with_(memory_config=memory_config, dtype=as_data_type(dtype, tensor.dtype))


def get_memory_config(tensor: Tensor) -> MemoryConfig:
    return tensor.memory_config()


def clone(tensor: Tensor, *, dtype: Any = None, memory_config: MemoryConfig | None = None, **_settings: Any) -> Tensor:
    config = memory_config or tensor.memory_config()
    return tensor.with_(dtype=as_data_type(dtype, tensor.dtype), memory_config=config)


def copy(source: Tensor, target: Tensor) -> None:
    target.array[...] = source.array.astype(target.array.dtype)


def reshape(tensor: Tensor, shape: Any, **_settings: Any) -> Tensor:
    return tensor.reshape(tuple(shape))


def deallocate(tensor: Tensor, force: bool = True) -> None:
    tensor.deallocate(force)


def is_tensor_storage_on_device(tensor: Tensor) -> bool:
    return tensor.device() is not None


def pearson_correlation_coefficient(expected: Any, actual: Any) -> float:
    """Correlation of two tensors of any kind; 1 for equal constants, 0 if only one of them is constant or has NaN."""
    left = as_numpy(expected).astype(np.float64).ravel()
    right = as_numpy(actual).astype(np.float64).ravel()
    if left.shape != right.shape:
        raise ValueError(f"tensors of {left.size} and {right.size} elements cannot be compared")
    if np.array_equal(left, right, equal_nan=True):
        return 1.0
    with np.errstate(all="ignore"):
        coefficient = float(np.corrcoef(left, right)[0, 1])
    return 0.0 if np.isnan(coefficient) else coefficient
