"""Data types of the ttnn stand-in and the NumPy type that stores each."""

from __future__ import annotations

from enum import Enum
from typing import Any

import ml_dtypes
import numpy as np


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
    DataType.BFLOAT16: np.dtype(ml_dtypes.bfloat16),
    DataType.FLOAT32: np.dtype(np.float32),
    DataType.BFLOAT8_B: np.dtype(np.float32),
    DataType.BFLOAT4_B: np.dtype(np.float32),
    DataType.INT32: np.dtype(np.int32),
    DataType.UINT32: np.dtype(np.uint32),
    DataType.UINT16: np.dtype(np.uint16),
    DataType.UINT8: np.dtype(np.uint8),
}

# What a tensor made from an array without an explicit dtype becomes; types the chip lacks go to the nearest it has.
FROM_NUMPY: dict[str, DataType] = {
    "bfloat16": DataType.BFLOAT16,
    "float16": DataType.BFLOAT16,
    "float32": DataType.FLOAT32,
    "float64": DataType.FLOAT32,
    "int32": DataType.INT32,
    "int64": DataType.INT32,
    "uint32": DataType.UINT32,
    "uint64": DataType.UINT32,
    "int16": DataType.INT32,
    "uint16": DataType.UINT16,
    "uint8": DataType.UINT8,
    "int8": DataType.INT32,
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
