"""Tensors in and out of the compiler's view of them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright import ttl
from tilewright.diagnostics import KernelError
from tilewright.lang.tensors import KernelTensor, check_aligned, describe, from_array, from_bits, tiles_of, to_array, to_bits
from tilewright.standins.ttnn import devices
from tilewright.standins.ttnn.tensor import DataType, Tensor

VALUES = np.array([1.0, -2.5, 1.00390625, 3.14159274, -0.0, 65536.0], np.float32)


def grid_of(values: np.ndarray) -> np.ndarray:
    return np.resize(values, (32, 64))


@pytest.mark.parametrize(
    ("dtype", "name"),
    [(np.float32, "f32"), (ml_dtypes.bfloat16, "bf16"), (np.int32, "i32"), (np.uint32, "u32"), (np.uint16, "u16")],
)
def test_numpy(dtype, name):
    array = grid_of(VALUES).astype(dtype)
    spec = describe(array, "x")
    assert (spec.name, spec.shape, spec.dtype, spec.memory) == ("x", (32, 64), name, "dram")
    copy = np.zeros_like(array)
    from_array(copy, to_array(array))
    np.testing.assert_array_equal(copy, array)
    again = np.zeros_like(array)
    from_bits(again, to_bits(array))
    np.testing.assert_array_equal(again, array)
    assert to_bits(array).dtype.itemsize == array.dtype.itemsize


def test_float32_array_as_bfloat16():
    array = grid_of(VALUES)
    view = ttl.bf16(array)
    assert describe(view, "x").dtype == "bf16"
    rounded = array.astype(ml_dtypes.bfloat16).astype(np.float32)
    np.testing.assert_array_equal(to_array(view), rounded)
    assert array[0, 2] == VALUES[2], "reading changes nothing"
    from_array(view, array * 2)
    np.testing.assert_array_equal(array, grid_of(VALUES * 2).astype(ml_dtypes.bfloat16).astype(np.float32))
    with pytest.raises(KernelError, match="TW106"):
        ttl.bf16(np.zeros((32, 32)))


def test_standin_tensors():
    tensor = Tensor(grid_of(VALUES), DataType.BFLOAT16, memory_config=devices.L1_MEMORY_CONFIG)
    spec = describe(tensor, "x")
    assert (spec.shape, spec.dtype, spec.memory, spec.layout) == ((32, 64), "bf16", "l1", "tile")
    from_array(tensor, np.ones((32, 64), np.float32))
    np.testing.assert_array_equal(to_array(tensor), 1.0)


def test_tiled_tensors_are_padded_in_memory():
    column = np.arange(1.0, 41.0).reshape(40, 1)
    tensor = Tensor(column, DataType.BFLOAT16)
    assert describe(tensor, "x").shape == (64, 32)
    assert KernelTensor(describe(tensor, "x"), 0, tensor).shape == (40, 1)
    memory_image = to_array(tensor)
    assert memory_image.shape == (64, 32) and memory_image.sum() == column.sum()
    from_array(tensor, memory_image + 1)
    np.testing.assert_array_equal(to_array(tensor)[:40, :1], column + 1)


def test_what_is_refused():
    shards = devices.create_sharded_memory_config((64, 32), devices.CoreGrid(x=2, y=1), devices.ShardStrategy.HEIGHT)
    with pytest.raises(KernelError, match=r"TW106.*sharded and stored row by row"):
        describe(Tensor(np.zeros((64, 32)), DataType.BFLOAT16, None, devices.Layout.ROW_MAJOR, shards), "x")
    rows = describe(Tensor(np.zeros((40, 32)), DataType.BFLOAT16, None, devices.Layout.ROW_MAJOR), "x")
    with pytest.raises(KernelError, match="TW105"):
        check_aligned(rows, None)  # unless the kernel's blocks count elements, which is known later
    for value in (3, "x", None):
        with pytest.raises(KernelError, match="TW106"):
            describe(value, "x")
    with pytest.raises(KernelError, match="float64"):
        describe(np.zeros((32, 32)), "x")
    for shape in ((32,), (0, 32), (40, 0)):
        with pytest.raises(KernelError, match="TW105"):
            describe(np.zeros(shape, np.float32), "x")


def test_arrays_are_padded_by_the_host():
    array = np.arange(1.0, 100 * 33 + 1, dtype=np.float32).reshape(100, 33)
    spec = describe(array, "x")
    assert (spec.shape, spec.logical_shape) == ((128, 64), (100, 33))
    image = to_array(array)
    assert image.shape == (128, 64) and image.sum() == array.sum(dtype=np.float64).astype(np.float32)
    wanted = array * 2
    from_array(array, image * 2)
    np.testing.assert_array_equal(array, wanted)
    assert describe(np.zeros((3, 32, 64), np.float32), "x").logical_shape == ()


def test_view_of_the_body():
    array = np.zeros((2, 64, 96), np.float32)
    tensor = KernelTensor(describe(array, "x"), 0, array)
    assert (tensor.shape, tensor.ndim, len(tensor), tensor.dtype) == ((2, 64, 96), 3, 2, np.float32)
    assert tiles_of(tensor.spec) == tensor.tile_shape == (2, 2, 3)
    assert tensor.nbytes == array.nbytes
    with pytest.raises(AttributeError):
        tensor.colour  # noqa: B018
