"""Matrix products against the recordings, and the fast path against the plain one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.sim.numerics import accelerator, fpu, matmul
from tilewright.sim.numerics.formats import to_bits

pytestmark = pytest.mark.usefixtures("loops")


def zeros(count: int, rows: int = 32, columns: int = 32) -> np.ndarray:
    return np.zeros((count, rows, columns), dtype=np.uint32)


def run(entry: Any, a: np.ndarray, b: np.ndarray, **options: Any) -> np.ndarray:
    return fpu.matmul(a, b, zeros(len(a)), dst32=entry.dst32, erratum=fpu.Erratum(), fidelity=entry.fidelity, **options)


@pytest.mark.recorded(r"mm1_.*|mm_bfp8\..*")
def test_single_tiles(entry: Any) -> None:
    entry.assert_equal(entry.pack(run(entry, entry.src(0), entry.src(1))))


@pytest.mark.recorded(r"mm_transpose\..*")
def test_transposed_second_operand(entry: Any) -> None:
    entry.assert_equal(entry.pack(run(entry, entry.src(0), entry.src(1), transpose=True)))


@pytest.mark.recorded(r"mm4_.*")
def test_four_tiles_of_k(entry: Any) -> None:
    a, b = (entry.src(index).reshape(-1, 4, 32, 32) for index in (0, 1))
    dst = zeros(len(a))
    for k in range(4):
        dst = fpu.matmul(a[:, k], b[:, k], dst, dst32=entry.dst32, erratum=fpu.Erratum(), fidelity=entry.fidelity)
    entry.assert_equal(entry.pack(dst))
    left = np.moveaxis(a, 1, 2).reshape(-1, 32, 128)
    at_once = fpu.matmul_block(left, b.reshape(-1, 128, 32), zeros(len(a)), dst32=entry.dst32, erratum=fpu.Erratum(), fidelity=entry.fidelity)
    assert (at_once == dst).all()


@pytest.mark.recorded(r"mm_block\..*")
def test_blocks_of_two_by_two(entry: Any) -> None:
    a, b = (entry.src(i).reshape(-1, 2, 2, 32, 32).swapaxes(2, 3).reshape(-1, 64, 64) for i in (0, 1))
    product = fpu.matmul_block(a, b, zeros(len(a), 64, 64), dst32=entry.dst32, erratum=fpu.Erratum(), fidelity=entry.fidelity)
    tiles = product.reshape(-1, 2, 32, 2, 32).swapaxes(2, 3).reshape(-1, 32, 32)
    entry.assert_equal(entry.pack(tiles))


@pytest.mark.parametrize("dst32", [False, True])
@pytest.mark.parametrize("fidelity", ["LoFi", "HiFi2", "HiFi3", "HiFi4"])
def test_float32_panels_equal_the_float64_model(dst32: bool, fidelity: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values over a wide range, zeros on both sides, and a DST that is not empty: all routes give the same bits."""
    random = np.random.default_rng(11)
    mask = np.uint32(0xFFFFE000 if dst32 else 0xFFFF0000)
    a, b = (
        to_bits(random.normal(size=(3, 64, 64)) * 2.0 ** random.integers(-12, 12, size=(3, 64, 64))) & mask
        for _ in range(2)
    )
    a[random.random(a.shape) < 0.1] = 0
    b[random.random(b.shape) < 0.9] = 0  # whole groups whose products all have a zero, or two
    dst = to_bits(random.normal(size=(3, 64, 64)) * 8) & np.uint32(0xFFFFFFFF if dst32 else 0xFFFF0000)
    fast = fpu.matmul_block(a, b, dst, dst32=dst32, erratum=fpu.Erratum(), fidelity=fidelity)
    monkeypatch.setattr(accelerator, "for_products", lambda *_: None)
    assert (fpu.matmul_block(a, b, dst, dst32=dst32, erratum=fpu.Erratum(), fidelity=fidelity) == fast).all()
    monkeypatch.setattr(matmul, "_float32_is_exact", lambda *_: False)
    assert (fpu.matmul_block(a, b, dst, dst32=dst32, erratum=fpu.Erratum(), fidelity=fidelity) == fast).all()


def test_threads_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    a, b = (to_bits(random.normal(size=(4, 64, 64))) & np.uint32(0xFFFF0000) for _ in range(2))
    alone = fpu.matmul_block(a, b, np.zeros_like(a), dst32=False, erratum=None)
    monkeypatch.setattr(matmul, "_THREADED_PRODUCTS", 1)
    monkeypatch.setattr(matmul, "PANEL_ELEMENTS", 2048)
    assert (fpu.matmul_block(a, b, np.zeros_like(a), dst32=False, erratum=None) == alone).all()


def test_inner_size_must_be_whole_tiles() -> None:
    a = np.zeros((32, 48), dtype=np.uint32)
    with pytest.raises(ValueError, match="multiple of 32"):
        fpu.matmul_block(a, a.T, np.zeros((32, 32), dtype=np.uint32), dst32=False, erratum=None)
