"""bfloat16 tensors in and out of ttnn bit for bit, by DLPack.

NumPy has no such type, and ttnn's conversion from float32 makes one NaN, without a sign, of all of them.

``runner.py`` contains this file, so it imports nothing of ours.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy

CPU, BFLOAT, NAME = 1, 4, b"dltensor"  # of the DLPack specification


class Device(ctypes.Structure):
    _fields_ = (("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32))


class DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class DlTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("dtype", DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    """A tensor, and the function that its user calls when he is done with it."""

    _fields_ = (("tensor", DlTensor), ("manager_ctx", ctypes.c_void_p), ("deleter", DELETER))


lent: dict[int, Bfloat16Array] = {}  # by the address of their `Managed`: they live until they are given back


@DELETER
def give_back(address: int) -> None:
    lent.pop(address, None)


class Bfloat16Array:
    """Bits of bfloat16 numbers as an array of them."""

    def __init__(self, bits: Any) -> None:
        self.bits = numpy.ascontiguousarray(bits, dtype=numpy.uint16)
        self.sizes = (ctypes.c_int64 * self.bits.ndim)(*self.bits.shape)
        place, kind = Device(CPU, 0), DataType(BFLOAT, 16, 1)
        tensor = DlTensor(self.bits.ctypes.data, place, self.bits.ndim, kind, self.sizes, None, 0)
        self.managed = Managed(tensor, None, give_back)

    def __dlpack__(self, **_wishes: Any) -> Any:
        lent[ctypes.addressof(self.managed)] = self
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return make(ctypes.addressof(self.managed), NAME, None)

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU, 0


def bits_of(array: Any) -> Any:
    """The bits of what a host tensor's ``to_numpy`` gives for bfloat16: NumPy wraps it as an object that it does not know."""
    exported = (array.item() if getattr(getattr(array, "dtype", None), "kind", "") == "O" else array).__dlpack__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    tensor = Managed.from_address(pointer(exported, NAME)).tensor
    assert (tensor.dtype.code, tensor.dtype.bits) == (BFLOAT, 16)
    shape = tuple(tensor.shape[place] for place in range(tensor.ndim))
    steps = [2 * tensor.strides[place] for place in range(tensor.ndim)] if tensor.strides else None
    memory: Any = (ctypes.c_uint16 * int(numpy.prod(shape))).from_address(tensor.data + tensor.byte_offset)
    return numpy.ndarray(shape, numpy.uint16, memory, strides=steps).copy()


def rounded_bits(array: Any) -> Any:
    """Numbers as bits of bfloat16, to nearest even. bfloat16 arrays of ml_dtypes give theirs; a NaN stays one, with its sign."""
    if array.dtype.name == "bfloat16":
        return array.view(numpy.uint16)
    words: numpy.typing.NDArray[numpy.uint32] = array.astype(numpy.float32).view(numpy.uint32)
    rounded = (words + 0x7FFF + ((words >> 16) & 1)) >> 16
    return numpy.where(numpy.isnan(words.view(numpy.float32)), words >> 16 | 0x40, rounded).astype(numpy.uint16)


def widened(bits: Any) -> Any:
    """Bits of bfloat16 as float32."""
    return (bits.astype(numpy.uint32) << 16).view(numpy.float32)
