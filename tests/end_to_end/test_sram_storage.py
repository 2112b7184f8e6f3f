"""State that stays in L1 between operations."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.diagnostics import KernelError
from tilewright.standins import finder

OPERATIONS = """
import ttl


@ttl.operation(grid=(2, 1))
def accumulate(x, state):
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=2)
    old_cb = ttl.make_dataflow_buffer_like(state, shape=(1, 1), block_count=2)
    new_cb = ttl.make_dataflow_buffer_like(state, shape=(1, 1), block_count=2)

    @ttl.compute()
    def add():
        with x_cb.wait() as a, old_cb.wait() as b, new_cb.reserve() as o:
            o.store(a + b * 0.5)

    @ttl.datamovement()
    def read():
        row = ttl.node(dims=1)
        with x_cb.reserve() as a, old_cb.reserve() as b:
            ttl.copy(x[row, 0], a).wait()
            ttl.copy(state[row, 0], b).wait()

    @ttl.datamovement()
    def write():
        with new_cb.wait() as blk:
            ttl.copy(blk, state[ttl.node(dims=1), 0]).wait()


@ttl.operation(grid=(2, 1))
def shown(state, out):
    s_cb = ttl.make_tensor_backed_dfb(state, shape=(1, 1))
    o_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)

    @ttl.compute()
    def double():
        with s_cb.wait() as s, o_cb.reserve() as o:
            o.store(s + s)

    @ttl.datamovement()
    def read():
        s_cb.publish()

    @ttl.datamovement()
    def write():
        with o_cb.wait() as blk:
            ttl.copy(blk, out[ttl.node(dims=1), 0]).wait()


kernel = accumulate
"""


@pytest.fixture
def ttnn():
    with finder.installed():
        import ttnn

        yield ttnn


def declared(ttnn, storage, **changes):
    settings = {
        "shape": (64, 32), "shard_shape": (32, 32), "nodes": ((0, 0), (1, 0)), "dtype": ttnn.float32,
        "layout": ttnn.TILE_LAYOUT, "sharding": ttnn.TensorMemoryLayout.HEIGHT_SHARDED, "addressing": "per-node",
    }  # fmt: skip
    return storage.tensor(**{**settings, **changes})


def test_what_one_operation_leaves_the_next_one_finds(kernels, ttnn):
    from tilewright import ttl

    module = kernels.load(OPERATIONS)
    accumulate, shown = module, module.function.__globals__["shown"]
    device = ttnn.open_device(device_id=0)
    with ttl.SRAMStorage(device=device) as storage:
        state = declared(ttnn, storage)
        inputs = [np.random.default_rng(seed).uniform(-1, 1, (64, 32)).astype(np.float32) for seed in range(3)]
        out = ttnn.zeros((64, 32), dtype=ttnn.float32, layout=ttnn.TILE_LAYOUT, device=device)
        storage.prepare_operation(shown, state, out)
        storage.allocate()
        expected = np.zeros((64, 32), np.float32)
        for x in inputs:
            storage.submit(accumulate, ttnn.from_torch(x, layout=ttnn.TILE_LAYOUT, device=device), state)
            expected = x + expected / 2
            shown(state, out)
            assert np.abs(out.array - 2 * expected).max() <= 1e-6
        assert state.memory_config().is_sharded()
    assert not state.is_allocated()


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"nodes": ((0, 0),)}, "1 shards of 32x32 for a tensor of 64x32"),
        ({"addressing": "anywhere"}, "addressing is 'anywhere'"),
        ({"initialize": "ones"}, "initialize is 'ones'"),
    ],
)
def test_wrong_declarations(ttnn, changes, found):
    from tilewright import ttl

    with pytest.raises(KernelError) as caught:
        declared(ttnn, ttl.SRAMStorage(), **changes)
    assert "TW004" in str(caught.value) and found in str(caught.value) and "help" in str(caught.value)


def test_wrong_order(ttnn):
    from tilewright import ttl

    storage = ttl.SRAMStorage()
    with pytest.raises(KernelError, match="nothing to allocate"):
        storage.allocate()
    storage.close()
    with pytest.raises(KernelError, match="TW009"):
        declared(ttnn, storage)
