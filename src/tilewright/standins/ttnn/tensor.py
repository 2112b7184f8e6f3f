"""The tensor of the ttnn stand-in: a NumPy array in the storage type of its data type, with a layout and a place; how tensors
are made, and go from and to torch and NumPy, and between layouts, types and memories.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import ml_dtypes
import numpy as np

from tilewright.standins.ttnn.devices import DRAM_MEMORY_CONFIG, Device, Layout, MemoryConfig, Shape, Tile, padded


class DataType(Enum):
    """A ttnn data type; ``value`` is Tilewright's name for it."""

    BFLOAT16 = "bf16"
    FLOAT32 = "f32"
    BFLOAT8_B = "bfp8_b"
    BFLOAT4_B = "bfp4_b"
    INT32 = "i32"
    UINT32 = "u32"
    UINT16 = "u16"
    UINT8 = "u8"

    @property
    def storage(self) -> np.dtype[Any]:
        """Block formats have no NumPy type: they are held as the float32 numbers they can represent."""
        return STORAGE[self]

    @property
    def is_block_format(self) -> bool:
        return self in (DataType.BFLOAT8_B, DataType.BFLOAT4_B)

    def __repr__(self) -> str:
        return f"DataType.{self.name}"

    __str__ = __repr__


STORAGE: dict[DataType, np.dtype[Any]] = {
    kind: np.dtype(np.float32 if kind.is_block_format else getattr(np, kind.name.lower(), ml_dtypes.bfloat16))
    for kind in DataType
}
# What a tensor made from an array without an explicit dtype becomes; types the chip lacks go to the nearest it has.
FROM_NUMPY: dict[str, DataType] = {
    **{kind.name.lower(): kind for kind in DataType if not kind.is_block_format},
    "float16": DataType.BFLOAT16,
    "float64": DataType.FLOAT32,
    **dict.fromkeys(("int64", "int16", "int8"), DataType.INT32),
    "uint64": DataType.UINT32,
    "bool": DataType.UINT8,
}


def as_data_type(dtype: Any, default: DataType) -> DataType:
    """A `DataType` from ttnn's, NumPy's or torch's spelling; ``None`` is ``default``."""
    if dtype is None:
        return default
    if isinstance(dtype, DataType):
        return dtype
    name = str(dtype).removeprefix("torch.") if not isinstance(dtype, type) else np.dtype(dtype).name
    found = FROM_NUMPY.get(name)
    if found is None:
        raise TypeError(f"ttnn has no data type for {dtype!r}")
    return found


def as_numpy(values: Any) -> np.ndarray[Any, Any]:
    """A NumPy array from a torch tensor, a stand-in tensor or anything NumPy understands."""
    if type(values).__module__.partition(".")[0] != "torch":
        return np.asarray(getattr(values, "array", values))
    held = values.detach().cpu().contiguous()
    if str(held.dtype) != "torch.bfloat16":
        return held.numpy()
    import torch  # pyright: ignore[reportMissingImports]

    return held.view(torch.int16).numpy().view(DataType.BFLOAT16.storage)  # NumPy has no bfloat16 of its own


def stored(values: Any, dtype: DataType) -> np.ndarray[Any, Any]:
    """A new array that holds ``values`` as ``dtype`` stores them."""
    array = np.array(as_numpy(values), dtype=dtype.storage)
    if not dtype.is_block_format or array.ndim == 0:
        return array
    return block_rounded(array, MAGNITUDE_BITS[dtype])


MAGNITUDE_BITS = {DataType.BFLOAT8_B: 7, DataType.BFLOAT4_B: 3}
BLOCK = 16  # neighbours of a row that share one exponent


def block_rounded(array: np.ndarray[Any, Any], magnitude_bits: int) -> np.ndarray[Any, Any]:
    """The numbers that remain of a float32 array in a block format, as the host rounds: to nearest even."""
    columns = array.shape[-1]
    padding = [(0, 0)] * (array.ndim - 1) + [(0, -columns % BLOCK)]
    padded = np.pad(array, padding)
    blocks = padded.reshape(*padded.shape[:-1], -1, BLOCK)
    largest = np.max(np.abs(blocks), axis=-1, keepdims=True)
    exponent = np.frexp(largest)[1]
    step = np.ldexp(np.float32(1), exponent - magnitude_bits)
    limit = 2**magnitude_bits - 1
    with np.errstate(invalid="ignore", over="ignore"):
        rounded = np.clip(np.rint(blocks / step), -limit, limit) * step
        shown = np.where(np.isfinite(largest), rounded, np.where(np.isfinite(blocks), np.float32(0), blocks))
    return np.ascontiguousarray(shown.reshape(padded.shape)[..., :columns], dtype=np.float32)


FIRST_ADDRESS = 0x100000  # any aligned number: addresses only have to differ
_next_address = FIRST_ADDRESS


def _operator(function: Any) -> Callable[[Tensor, Any], Tensor]:
    return lambda left, right: combine(function, left, right)


class Tensor:
    """A tensor. ``array`` is what it holds; kernels read and write it in place."""

    def __init__(
        self,
        tensor: Any,
        data_type: DataType | None = None,  # order and names of ttnn's own constructor
        device: Device | None = None,
        layout: Layout | None = None,
        mem_config: MemoryConfig | None = None,
        *,
        dtype: DataType | None = None,  # names that its other functions have
        memory_config: MemoryConfig | None = None,
        tile: Tile | None = None,
        **_settings: Any,
    ) -> None:
        if isinstance(device, Layout):
            raise TypeError(f"ttnn.Tensor takes (tensor, data_type, device, layout, mem_config), and {device!r} is no device")
        self.dtype = data_type or dtype or DataType.BFLOAT16
        self.array = stored(tensor, self.dtype)
        self.tile = tile or Tile()
        self.layout = layout or Layout.TILE
        self._device = device
        self._memory_config = mem_config or memory_config or DRAM_MEMORY_CONFIG
        self._allocated = True
        self._address = take_address(self.array.nbytes)

    @property
    def shape(self) -> Shape:
        return Shape(self.array.shape)

    @property
    def padded_shape(self) -> Shape:
        return padded(self.array.shape, self.layout, self.tile.tile_shape)

    @property
    def logical_shape(self) -> Shape:
        return self.shape

    def get_tile(self) -> Tile:
        return self.tile

    def volume(self) -> int:
        return self.padded_shape.volume()

    def logical_volume(self) -> int:
        return self.shape.volume()

    def memory_config(self) -> MemoryConfig:
        return self._memory_config

    def is_sharded(self) -> bool:
        return self._memory_config.is_sharded()

    def device(self) -> Device | None:
        return self._device

    def is_allocated(self) -> bool:
        return self._allocated

    def buffer_address(self) -> int:
        return self._address

    def element_size(self) -> int:
        return self.array.itemsize

    def get_dtype(self) -> DataType:
        return self.dtype

    def get_layout(self) -> Layout:
        return self.layout

    def storage_type(self) -> str:
        return "HOST" if self._device is None else "DEVICE"

    def deallocate(self, force: bool = True) -> None:
        self._allocated = False

    def to_numpy(self) -> np.ndarray[Any, Any]:
        return self.array.copy()

    def to_torch(self) -> Any:
        return as_torch(self.array, self.dtype)

    def to_list(self) -> Any:
        whole = self.array.dtype.kind in "iu"
        return self.array.tolist() if whole else self.array.astype(np.float64).tolist()

    def item(self) -> float | int:
        return self.array.item()

    def with_(self, **changes: Any) -> Tensor:
        """A copy with another dtype, layout, device or memory_config."""
        settings: dict[str, Any] = {
            "dtype": self.dtype,
            "layout": self.layout,
            "device": self._device,
            "memory_config": self._memory_config,
            "tile": self.tile,
        }
        settings.update(changes)
        return Tensor(self.array, **settings)

    def to(self, target: Any, memory_config: MemoryConfig | None = None) -> Tensor:
        if isinstance(target, Layout):
            return self.with_(layout=target)
        if isinstance(target, Device):
            return self.with_(device=target, memory_config=memory_config or self._memory_config)
        raise TypeError(f"Tensor.to takes a Layout or a Device, not {type(target).__name__}")

    def cpu(self, blocking: bool = True) -> Tensor:
        return self.with_(device=None)

    def reshape(self, *shape: int | Sequence[int]) -> Tensor:
        first = shape[0] if shape else ()
        sizes = tuple(first) if isinstance(first, Sequence) else tuple(int(size) for size in shape)  # type: ignore[arg-type]
        return Tensor(self.array.reshape(sizes), self.dtype, self._device, self.layout, self._memory_config)

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, index: Any) -> Tensor:
        return Tensor(self.array[index], self.dtype, self._device, self.layout, self._memory_config)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self.array, dtype=dtype)

    def __repr__(self) -> str:
        place = "host" if self._device is None else self._memory_config.buffer_type.value
        kind = f"shape={self.shape}, dtype={self.dtype}, layout={self.layout}, memory={place}"
        return f"ttnn.Tensor({self.array}, {kind})"

    # Host arithmetic, as ttnn.add and friends do it.

    __add__ = __radd__ = _operator(np.add)
    __sub__ = _operator(np.subtract)
    __mul__ = __rmul__ = _operator(np.multiply)
    __truediv__ = _operator(np.divide)
    __matmul__ = _operator(np.matmul)
    __pow__ = _operator(np.power)

    def __rsub__(self, other: Any) -> Tensor:
        return combine(np.subtract, like(self, np.broadcast_to(wide(other), self.shape)), self)

    def __neg__(self) -> Tensor:
        return like(self, -wide(self))


def take_address(size: int) -> int:
    """Addresses grow and never repeat, so that two live tensors never share one."""
    global _next_address
    address = _next_address
    _next_address += size + -size % 64
    return address


def wide(operand: Any) -> Any:
    """Values to calculate with: float32 for every float type, so that bf16 rounds once, at the end."""
    if not isinstance(operand, Tensor):
        return operand
    if operand.array.dtype.kind in "iu":
        return operand.array.astype(np.int64)
    return operand.array.astype(np.float32)


def like(pattern: Tensor, values: Any, dtype: DataType | None = None) -> Tensor:
    """``values`` as a tensor of ``pattern``'s type and place."""
    return Tensor(values, dtype or pattern.dtype, pattern.device(), pattern.layout, placed(pattern.memory_config()))


def placed(config: MemoryConfig) -> MemoryConfig:
    """Results of host arithmetic are interleaved, in the memory of the operand."""
    return MemoryConfig(buffer_type=config.buffer_type) if config.is_sharded() else config


def combine(function: Any, left: Tensor, right: Any) -> Tensor:
    with np.errstate(all="ignore"):
        return like(left, function(wide(left), wide(right)))


def as_torch(array: np.ndarray[Any, Any], dtype: DataType) -> Any:
    """``array`` as a torch tensor; where torch is not installed as a NumPy array, bfloat16 as float32."""
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError:
        return array.astype(np.float32) if dtype is DataType.BFLOAT16 else array.copy()
    if dtype is DataType.BFLOAT16:
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
    if array.dtype == np.uint32:
        return torch.from_numpy(array.astype(np.int64))  # older torch has no unsigned 32-bit type
    if array.dtype == np.uint16:
        return torch.from_numpy(array.astype(np.int32))
    return torch.from_numpy(array.copy())


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


def _as(tensor: Tensor, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a tensor, unless others are given."""
    return {"layout": tensor.layout, "device": tensor.device(), "memory_config": tensor.memory_config(), **settings}


def full_like(tensor: Tensor, fill_value: float | int, *, dtype: Any = None, **settings: Any) -> Tensor:
    return full(tensor.shape, fill_value, dtype=as_data_type(dtype, tensor.dtype), **_as(tensor, settings))


def zeros_like(tensor: Tensor, **settings: Any) -> Tensor:
    return full_like(tensor, 0, **settings)


def ones_like(tensor: Tensor, **settings: Any) -> Tensor:
    return full_like(tensor, 1, **settings)


def empty_like(tensor: Tensor, *, dtype: Any = None, **settings: Any) -> Tensor:
    return empty(tensor.shape, as_data_type(dtype, tensor.dtype), **_as(tensor, settings))


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
