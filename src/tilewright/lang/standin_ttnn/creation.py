"""ttnn stand-in: new tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.lang.standin_ttnn.data_types import DataType, as_data_type
from tilewright.lang.standin_ttnn.device import Device
from tilewright.lang.standin_ttnn.memory import Layout, MemoryConfig
from tilewright.lang.standin_ttnn.tensor import Tensor

_random = np.random.default_rng(0)


def full(
    shape: Sequence[int],
    fill_value: float | int = 0,
    *,
    dtype: Any = None,
    layout: Layout | None = None,
    device: Device | None = None,
    memory_config: MemoryConfig | None = None,
) -> Tensor:
    chosen = as_data_type(dtype, DataType.BFLOAT16)
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
    chosen = as_data_type(dtype, DataType.BFLOAT16)
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
    chosen = as_data_type(dtype, DataType.BFLOAT16)
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
    chosen = as_data_type(dtype, DataType.BFLOAT16)
    return Tensor(values, chosen, device, layout or Layout.ROW_MAJOR, memory_config)
