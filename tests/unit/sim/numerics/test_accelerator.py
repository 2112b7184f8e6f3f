"""When the compiled loops are built, found and done without. That they give the same bits is in test_fpu.py and test_matmul.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tilewright import host_compiler
from tilewright.sim.numerics import accelerator, fpu
from tilewright.sim.numerics.formats import to_bits

PATTERNS = np.array([0, 1, 0x7F7F, 0x7F80, 0x7FC0, 0x0080, 0x3F80, 0x4049, 0x8000, 0x8001, 0xFF7F, 0xFF80, 0xFFC0, 0x8080, 0xBF80, 0xC049])


@pytest.fixture
def empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    accelerator.library_path.cache_clear()
    yield tmp_path
    accelerator.library_path.cache_clear()


def test_little_work_builds_nothing(empty_cache: Path) -> None:
    builder = accelerator.Builder()
    assert builder.ask(1.0) is None
    assert not accelerator.library_path().exists()


def test_much_work_builds_once_and_the_next_process_finds_it(empty_cache: Path) -> None:
    assert accelerator.Builder().ask(1e12) is not None
    path = accelerator.library_path()
    assert path.is_relative_to(empty_cache / "tilewright" / "simulator")
    stamp = path.stat().st_mtime_ns
    assert accelerator.Builder().ask(1.0) is not None
    assert path.stat().st_mtime_ns == stamp


def test_without_a_compiler_numpy_does_it(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_compiler.shutil, "which", lambda name: None)
    builder = accelerator.Builder()
    assert builder.ask(1e12) is None
    assert builder.ask(1e12) is None


def test_a_library_that_does_not_load_is_done_without(empty_cache: Path) -> None:
    accelerator.library_path().write_bytes(b"not a library")
    assert accelerator.Builder().ask(1.0) is None


def test_it_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(accelerator.SWITCH, "0")
    assert accelerator.Builder().ask(1e12) is None


@pytest.mark.parametrize("dst32", [False, True])
@pytest.mark.parametrize("fidelity", ["LoFi", "HiFi2", "HiFi3", "HiFi4"])
def test_special_values_and_wide_ranges(loops: str, dst32: bool, fidelity: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros, denormals, infinities and NaNs of both signs in every operand, and numbers over the whole range."""
    random = np.random.default_rng(5)
    shape = (4, 32, 32)
    mask = np.uint32(0xFFFFE000 if dst32 else 0xFFFF0000)
    a, b, dst = (random.integers(0, 1 << 32, shape, dtype=np.uint64).astype(np.uint32) & mask for _ in range(3))
    for operand in (a, b, dst):
        chosen = random.random(shape) < 0.4
        operand[chosen] = random.choice(PATTERNS, int(chosen.sum())).astype(np.uint32) << np.uint32(16)
    results = {}
    for name, operation in (("add", fpu.elwadd), ("sub", fpu.elwsub), ("mul", fpu.elwmul)):
        for onto in (False, True):
            results[name, onto] = operation(a, b, dst, dst32=dst32, erratum=fpu.Erratum(), fidelity=fidelity, accumulate=onto)
    monkeypatch.setattr(accelerator, "for_elements", lambda count, phases: None)
    for name, operation in (("add", fpu.elwadd), ("sub", fpu.elwsub), ("mul", fpu.elwmul)):
        for onto in (False, True):
            expected = operation(a, b, dst, dst32=dst32, erratum=fpu.Erratum(), fidelity=fidelity, accumulate=onto)
            assert (results[name, onto] == expected).all(), (loops, name, onto)


def test_odd_sizes_and_broadcast_operands(loops: str) -> None:
    """Pieces of tiles, and a vector that stands for a whole tile."""
    a = to_bits(np.arange(35, dtype=np.float32)).reshape(7, 5)
    assert (fpu.elwadd(a, a, np.zeros_like(a), dst32=True, erratum=fpu.Erratum(), accumulate=False) == to_bits(np.arange(35) * 2.0).reshape(7, 5)).all()
    tile = to_bits(np.ones((2, 32, 32), np.float32))
    row = np.broadcast_to(to_bits(np.arange(32, dtype=np.float32)), tile.shape)
    assert (fpu.elwmul(tile, row, np.zeros_like(tile), dst32=True, erratum=fpu.Erratum()) == row).all()
