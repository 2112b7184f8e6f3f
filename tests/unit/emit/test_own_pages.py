"""Tensors whose pages are no tiles of 32x32: from which release of ttnn on they are read."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tilewright import ttl
from tilewright.diagnostics import KernelError
from tilewright.standins.ttnn import names

ttnn = SimpleNamespace(**names.build())


@ttl.operation(grid=(1, 1))
def copied(a, out):
    blocks = ttl.make_dataflow_buffer_like(a, shape=(1, 1) if a.shape[0] == 16 else (1, 40))

    @ttl.datamovement()
    def read():
        with blocks.reserve() as block:
            ttl.copy(a[0:1, :], block).wait()

    @ttl.datamovement()
    def write():
        with blocks.wait() as block:
            ttl.copy(block, out[0:1, :]).wait()


@pytest.mark.parametrize("kind", ["rows", "halves"])
def test_the_first_release(kind):
    if kind == "rows":
        tensors = [ttnn.from_torch(np.zeros((3, 40), np.float32), layout=ttnn.ROW_MAJOR_LAYOUT) for _ in range(2)]
    else:
        tile = ttnn.Tile((16, 32))
        tensors = [ttnn.from_torch(np.zeros((16, 32), np.float32), layout=ttnn.TILE_LAYOUT, tile=tile) for _ in range(2)]
    with pytest.raises(KernelError, match="TW115"):
        copied.compile(*tensors, metal="0.62")
    assert "noc_async_read_page(" in copied.compile(*tensors, metal="0.69").cpp["reader"]
