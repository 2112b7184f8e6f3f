"""What tests share: kernels from text, compiled, checked and simulated."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright import execution
from tilewright.lang import tensors
from tilewright.native import driver
from tilewright.sim.run import simulate

DTYPES = {"bf16": ml_dtypes.bfloat16, "f32": np.float32}


def _load(name: str) -> ModuleType:
    """A module beside this file. Tests are imported without a package, so it is found by path."""
    spec = importlib.util.spec_from_file_location(f"tilewright_tests_{name}", Path(__file__).parent / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


KERNEL_TEXT = _load("kernel_text")
INIT_STATES = _load("init_states")
ROUNDING = _load("rounding")
CALL_SEQUENCE = _load("call_sequence")
OP_KERNELS = _load("op_kernels")
BLOCK_KERNELS = _load("block_kernels")


class Kernels:
    """Kernels from text. Every program that goes through here has its inits checked on all paths."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.text = KERNEL_TEXT

    def load(self, source: str) -> Any:
        return KERNEL_TEXT.load(source, self.folder)

    def compile(self, source: str, *arrays: Any, **options: Any) -> Any:
        program = self.load(source).compile(*arrays, **options)
        assert INIT_STATES.check_module(program.module) > 0
        return program

    def run(self, source: str, *arrays: Any, **options: Any) -> Any:
        """Simulates in place, runs the emitted C++ natively too and demands the same bits."""
        program = self.compile(source, *arrays, **options)
        simulated = [tensors.to_array(array).copy() for array in arrays]
        native = [array.copy() for array in simulated]
        simulate(program, simulated)
        found = driver.run(program, native)
        assert not found.errors
        for array, value, other in zip(arrays, simulated, native, strict=True):
            assert value.tobytes() == other.tobytes()
            tensors.from_array(array, value)
        return program

    run_everywhere = run

    def simulate(self, source: str, *arrays: Any, **options: Any) -> Any:
        """Only simulates: for tests with very many kernels, where a part of them also goes through ``run``."""
        program = self.compile(source, *arrays, **options)
        execution.run(program, arrays)
        return program

    def elementwise(self, outputs: dict[str, str], inputs: dict[str, Any], **choices: Any) -> tuple[Any, dict[str, Any]]:
        """Runs an elementwise kernel on arrays by name; gives the program and the outputs. Compiler options pass through."""
        layout = {key: choices.pop(key) for key in ("lets", "block", "blocks", "grid", "count", "spelling") if key in choices}
        source = KERNEL_TEXT.elementwise(outputs, tuple(inputs), **layout)
        first = next(iter(inputs.values()))
        results = {name: np.full(first.shape, np.nan, first.dtype) for name in outputs}
        run = self.run if choices.pop("native", True) else self.simulate
        program = run(source, *inputs.values(), *results.values(), **choices)
        return program, results


@pytest.fixture(scope="session")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Kernels:
    return Kernels(tmp_path_factory.mktemp("kernels"))


@pytest.fixture(scope="session")
def rounding() -> ModuleType:
    return ROUNDING


@pytest.fixture(scope="session")
def block_kernels() -> ModuleType:
    return BLOCK_KERNELS


@pytest.fixture(scope="session")
def call_sequence() -> ModuleType:
    return CALL_SEQUENCE


@pytest.fixture(scope="session")
def init_states() -> ModuleType:
    return INIT_STATES


@pytest.fixture
def make_array() -> Any:
    """Random arrays of tiles: ``make_array((rows, columns) in tiles, "bf16", low, high)``."""
    generator = np.random.default_rng(5)

    def make(tiles: tuple[int, int], dtype: str, low: float = -2.0, high: float = 2.0) -> Any:
        return generator.uniform(low, high, (tiles[0] * 32, tiles[1] * 32)).astype(DTYPES[dtype])

    return make
