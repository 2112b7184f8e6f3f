"""The small ttnn that scripts meet on a machine without one."""

from __future__ import annotations

import sys

import ml_dtypes
import numpy as np
import pytest

from tilewright.diagnostics import KernelError
from tilewright.lang import tensors
from tilewright.standins.ttnn import names
from tilewright.standins.ttnn.tensor import block_rounded

NAMES = names.build()


class Namespace:
    def __getattr__(self, name: str):
        return NAMES[name]


ttnn = Namespace()


def tiled(values, dtype=None, **settings):
    return ttnn.from_torch(np.asarray(values), dtype=dtype or ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, **settings)


def test_a_tensor_holds_its_storage_type():
    device = ttnn.open_device(device_id=0)
    tensor = tiled(np.full((64, 96), 1 / 3), device=device, memory_config=ttnn.L1_MEMORY_CONFIG)
    assert tensor.array.dtype == ml_dtypes.bfloat16
    assert float(tensor.array[0, 0]) == 0.333984375
    assert (tuple(tensor.shape), tensor.dtype, tensor.layout) == ((64, 96), ttnn.bfloat16, ttnn.TILE_LAYOUT)
    assert tensor.memory_config() == ttnn.L1_MEMORY_CONFIG
    assert tensor.device() is device
    ttnn.close_device(device)
    assert not device.is_open


def test_the_compiler_understands_it():
    spec = tensors.describe(tiled(np.zeros((64, 64)), memory_config=ttnn.L1_MEMORY_CONFIG), "a")
    assert (spec.shape, spec.dtype, spec.layout, spec.memory) == ((64, 64), "bf16", "tile", "l1")
    spec = tensors.describe(tiled(np.zeros((32, 32)), dtype=ttnn.float32), "b")
    assert (spec.dtype, spec.memory) == ("f32", "dram")
    spec = tensors.describe(tiled(np.zeros((32, 32)), dtype=ttnn.bfloat8_b), "c")
    assert spec.dtype == "bfp8_b"


def test_results_are_written_into_it():
    tensor = tiled(np.zeros((32, 32)))
    tensors.from_array(tensor, np.full((32, 32), 1.5, dtype=np.float32))
    assert np.array_equal(tensors.to_array(tensor), np.full((32, 32), 1.5, dtype=np.float32))


def test_dtype_is_taken_from_the_array_when_none_is_given():
    assert ttnn.from_torch(np.zeros((2, 2), dtype=np.float32)).dtype is ttnn.float32
    assert ttnn.from_torch(np.zeros((2, 2), dtype=np.int64)).dtype is ttnn.int32
    assert ttnn.from_torch(np.zeros((2, 2), dtype=ml_dtypes.bfloat16)).dtype is ttnn.bfloat16


def test_padding_rounds_up_to_tiles():
    tensor = tiled(np.zeros((3, 33, 70)))
    assert tuple(tensor.padded_shape) == (3, 64, 96)
    assert tensor.volume() == 3 * 64 * 96
    assert tensor.logical_volume() == 3 * 33 * 70
    assert tuple(ttnn.from_torch(np.zeros((33, 70))).padded_shape) == (33, 70)


def test_addresses_differ():
    first, second = tiled(np.zeros((32, 32))), tiled(np.zeros((32, 32)))
    assert second.buffer_address() - first.buffer_address() >= first.array.nbytes


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "maximum", "minimum"])
def test_arithmetic_rounds_once(name: str):
    random = np.random.default_rng(0)
    left = random.uniform(1, 2, (32, 32)).astype(ml_dtypes.bfloat16)
    right = random.uniform(1, 2, (32, 32)).astype(ml_dtypes.bfloat16)
    exact = getattr(np, name)(left.astype(np.float32), right.astype(np.float32))
    result = getattr(ttnn, name)(tiled(left), tiled(right))
    assert np.array_equal(result.array, exact.astype(ml_dtypes.bfloat16))


def test_operators_and_scalars():
    tensor = tiled(np.full((32, 32), 3.0))
    assert float((tensor + 1).array[0, 0]) == 4
    assert float((10 - tensor).array[0, 0]) == 7
    assert float((2 * tensor).array[0, 0]) == 6
    assert float((-tensor).array[0, 0]) == -3
    assert float((tensor**2).array[0, 0]) == 9
    assert float((tensor @ tensor).array[0, 0]) == 288


def test_reductions_and_unary():
    tensor = tiled(np.arange(64 * 32).reshape(64, 32) % 7 - 3.0, dtype=ttnn.float32)
    assert tuple(ttnn.sum(tensor, dim=-1, keepdim=True).shape) == (64, 1)
    assert np.array_equal(ttnn.relu(tensor).array, np.maximum(tensor.array, 0))
    assert np.allclose(ttnn.softmax(tensor).array.sum(axis=-1), 1)
    assert np.allclose(ttnn.gelu(tensor).array[0, :3], [-0.00404951, -0.04550026, -0.15865526], atol=1e-6)


def test_output_tensor_and_dtype_arguments():
    tensor, out = tiled(np.ones((32, 32))), tiled(np.zeros((32, 32)))
    assert ttnn.add(tensor, 1, output_tensor=out) is out
    assert float(out.array[5, 5]) == 2
    assert ttnn.exp(tensor, dtype=ttnn.float32).dtype is ttnn.float32


def test_creation():
    assert float(ttnn.full((32, 32), 2.5).array[0, 0]) == 2.5
    assert np.isnan(float(ttnn.empty((32, 32)).array[0, 0])), "forgotten writes must show"
    assert ttnn.zeros_like(tiled(np.ones((32, 64)), dtype=ttnn.float32)).dtype is ttnn.float32
    assert ttnn.arange(0, 8, dtype=ttnn.int32).array.tolist() == list(range(8))
    drawn = ttnn.rand((32, 32), low=2, high=3, dtype=ttnn.float32)
    assert drawn.array.min() >= 2 and drawn.array.max() < 3


def test_block_format_is_rounded_as_the_packed_one():
    from tilewright.sim.numerics import formats

    values = np.random.default_rng(4).standard_normal((5, 32, 32)).astype(np.float32)
    packed = formats.decode(formats.encode_host(values)).view(np.float32)
    assert np.array_equal(block_rounded(values, 7), packed)


def test_block_format_keeps_three_bits():
    row = np.array([[1.0, 0.24, 0.26, -0.9] + [0.0] * 12], dtype=np.float32)
    assert block_rounded(row, 3)[0, :4].tolist() == [1.0, 0.25, 0.25, -1.0]


def test_sharding():
    config = ttnn.create_sharded_memory_config(
        shape=(64, 128), core_grid=ttnn.CoreGrid(y=1, x=2), strategy=ttnn.ShardStrategy.HEIGHT
    )
    assert config.is_sharded()
    assert config.shard_spec.shape == (32, 128)
    assert config.shard_spec.num_cores() == 2
    with pytest.raises(ValueError, match="does not divide"):
        ttnn.create_sharded_memory_config((65, 64), ttnn.CoreGrid(y=1, x=2), ttnn.ShardStrategy.HEIGHT)
    with pytest.raises(ValueError, match="needs a ShardSpec"):
        ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.BufferType.L1)


def test_core_ranges():
    cores = ttnn.CoreRangeSet(
        [
            ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(3, 1)),
            ttnn.CoreRange(ttnn.CoreCoord(5, 5), ttnn.CoreCoord(5, 5)),
        ]
    )
    assert cores.num_cores() == 9
    assert cores.contains(ttnn.CoreCoord(3, 1)) and not cores.contains(ttnn.CoreCoord(4, 0))
    assert cores.bounding_box().end == ttnn.CoreCoord(5, 5)
    with pytest.raises(ValueError, match="ends at"):
        ttnn.CoreRange(ttnn.CoreCoord(1, 0), ttnn.CoreCoord(0, 0))


def test_correlation():
    left = np.random.default_rng(0).standard_normal((32, 32))
    assert ttnn.pearson_correlation_coefficient(left, left) == 1.0
    assert ttnn.pearson_correlation_coefficient(left, tiled(left)) > 0.9999
    assert ttnn.pearson_correlation_coefficient(np.ones(4), np.arange(4.0)) == 0.0


def test_without_torch_values_come_as_numpy(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # an import of None fails as a missing package does
    values = ttnn.to_torch(tiled(np.full((32, 32), 0.1)))
    assert isinstance(values, np.ndarray) and values.dtype == np.float32
    np.testing.assert_array_equal(values, np.float32(0.10009765625))
    assert ttnn.to_torch(tiled(np.zeros((32, 32))), dtype=np.float64).dtype == np.float64


def _values(shape, seed=3):
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(np.float32)


def test_functions_of_models():
    x, w, b = _values((2, 40, 50)), _values((50,), 4), _values((50,), 5)
    tensor, weight, bias = (ttnn.from_torch(each, dtype=ttnn.float32) for each in (x, w, b))
    wide = x.astype(np.float64)
    centred = wide - wide.mean(-1, keepdims=True)
    normed = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    found = ttnn.layer_norm(tensor, epsilon=1e-5, weight=weight, bias=bias)
    np.testing.assert_allclose(found.array, normed * w + b, rtol=1e-4, atol=1e-5)
    root = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(ttnn.rms_norm(tensor, epsilon=1e-5, weight=weight).array, root * w, rtol=1e-4, atol=1e-5)
    values, places = ttnn.topk(tensor, 5)
    np.testing.assert_array_equal(values.array, -np.sort(-x, -1)[..., :5])
    np.testing.assert_array_equal(np.take_along_axis(x, places.array.astype(int), -1), values.array)
    np.testing.assert_array_equal(ttnn.argmax(tensor, dim=-1).array, x.argmax(-1))
    np.testing.assert_array_equal(ttnn.argmin(tensor, dim=1, keepdim=True).array, x.argmin(1, keepdims=True))
    np.testing.assert_allclose(ttnn.cumsum(tensor, 2).array, np.cumsum(x, 2), rtol=1e-5, atol=1e-5)
    padded = np.pad(x, ((0, 0), (0, 24), (0, 14)), constant_values=1.0)
    np.testing.assert_array_equal(ttnn.pad(tensor, ((0, 24), (0, 14)), value=1.0).array, padded)
    np.testing.assert_array_equal(ttnn.squeeze(ttnn.unsqueeze(tensor, 0), 0).array, x)
    np.testing.assert_array_equal(ttnn.concat([tensor, tensor], dim=1).array, np.concatenate([x, x], 1))


def test_embedding_and_meshes():
    table = ttnn.from_torch(_values((10, 64)), dtype=ttnn.float32)
    indices = ttnn.from_torch(np.array([[3, 1, 3]], np.int32), dtype=ttnn.uint32)
    np.testing.assert_array_equal(ttnn.embedding(indices, table).array, _values((10, 64))[[[3, 1, 3]]])
    device = ttnn.open_mesh_device(ttnn.MeshShape(1, 1))
    assert device.get_num_devices() == 1 and device.is_open
    ttnn.close_mesh_device(device)
    assert not device.is_open
    with pytest.raises(KernelError, match=r"TW602.*mesh of 2x4"):
        ttnn.open_mesh_device(ttnn.MeshShape(2, 4))


def test_shapes_as_they_are_stored():
    """Tile layout has two dimensions at least; a scalar in row-major order has one."""
    for shape, tiles in (((), (1, 1)), ((128,), (1, 4)), ((128, 1), (4, 1)), ((2, 2, 120, 30), (2, 2, 4, 1))):
        tensor = ttnn.zeros(shape, layout=ttnn.TILE_LAYOUT)
        down, across = tensor.tile.tile_shape
        padded = list(tensor.padded_shape)
        assert (*padded[:-2], padded[-2] // down, padded[-1] // across) == tiles
    assert list(ttnn.zeros((), layout=ttnn.ROW_MAJOR_LAYOUT).padded_shape) == [1]


def test_a_mesh_of_one_holds_whole_tensors():
    ttnn.set_fabric_config(ttnn.FabricConfig.FABRIC_1D)
    mesh = ttnn.open_mesh_device(ttnn.MeshShape(1, ttnn.GetNumAvailableDevices()))
    tensor = ttnn.from_torch(np.ones((32, 32), np.float32), device=mesh, mesh_mapper=ttnn.ShardTensorToMesh(mesh, dim=0))
    back = ttnn.to_torch(ttnn.all_reduce(tensor), mesh_composer=ttnn.ConcatMeshToTensor(mesh, dim=0))
    assert np.array_equal(np.asarray(back), np.ones((32, 32)))
    assert 0 < ttnn.device.get_max_worker_l1_unreserved_size() < 2**21


def test_the_dtype_that_nobody_gives(monkeypatch: pytest.MonkeyPatch):
    from tilewright.standins.ttnn import tensor

    assert ttnn.zeros((32, 32)).dtype == ttnn.bfloat16
    monkeypatch.setattr(tensor, "_default_dtype", [ttnn.bfloat16])
    tensor.set_default_dtype("float32")
    assert {ttnn.zeros((1,)).dtype, ttnn.rand((1,)).dtype, ttnn.empty((1,)).dtype} == {ttnn.float32}
    assert ttnn.zeros((1,), dtype=ttnn.bfloat16).dtype == ttnn.bfloat16
