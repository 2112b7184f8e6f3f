"""reduce_tile against the recordings; everything outside the result is packed as 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.sim.numerics import fpu
from tilewright.sim.numerics.formats import from_bits, scalar_bits, to_bits
from tilewright.sim.numerics.fpu import packed_mask


@pytest.mark.recorded(r"reduce_(sum|avg|max)_(row|col|scalar)_.*")
def test_recorded_reductions(entry: Any) -> None:
    kind, dim = entry.name.split("_")[1:3]
    per_call = entry.record["in_tiles"][0]
    data, scaler = (entry.src(index).reshape(-1, per_call, 32, 32) for index in (0, 1))
    src_format = "tf32" if entry.in_dtypes[0] == "f32" and entry.dst32 else "bf16"
    dst = np.zeros((len(data), 32, 32), dtype=np.uint32)
    for tile in range(per_call):
        dst = fpu.reduce(
            kind, dim, data[:, tile], scaler[:, tile], dst,
            dst32=entry.dst32, erratum=fpu.Erratum(), fidelity=entry.fidelity, src_format=src_format, fresh=tile == 0,
        )  # fmt: skip
    entry.assert_equal(entry.pack(np.where(packed_mask(dim), dst, np.uint32(0))))


def scaler_tile(value: float) -> np.ndarray:
    tile = np.zeros((32, 32), dtype=np.uint32)
    tile[[0, 16], :] = scalar_bits(value)
    return tile


@pytest.mark.parametrize("dim", ["row", "col", "scalar"])
def test_sum_is_near_the_true_sum(dim: Any) -> None:
    random = np.random.default_rng(2)
    data = to_bits(random.uniform(0.5, 1.5, size=(32, 32))) & np.uint32(0xFFFF0000)
    result = fpu.reduce("sum", dim, data, scaler_tile(1.0), np.zeros((32, 32), dtype=np.uint32), dst32=True, erratum=fpu.Erratum())
    axis = {"row": 1, "col": 0, "scalar": None}[dim]
    true = from_bits(data).astype(np.float64).sum(axis=axis)
    got = from_bits(result)[packed_mask(dim)]
    assert np.abs(got / true - 1).max() < 6e-3
