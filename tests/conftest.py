"""What tests share: kernels from text, compiled, checked and simulated."""

from __future__ import annotations

import signal
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import block_kernels
import call_sequence
import init_states
import kernel_text
import rounding
from native_twin import NativeTwin
from tilewright import execution
from tilewright.lang import tensors
from tilewright.native import driver
from tilewright.sim import run as sim_run

DTYPES = {"bf16": ml_dtypes.bfloat16, "f32": np.float32}
TWIN = NativeTwin()

# The suite says the same about the same tree. Who looks for new cases asks for it: `make fuzz-tilelang`.
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("pinned", max_examples=60, derandomize=True, deadline=None, suppress_health_check=SLOW)
settings.register_profile("explore", max_examples=1_000_000, deadline=None, suppress_health_check=SLOW)
settings.load_profile("pinned")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started in the background: what tests start would ignore interrupts too
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Any:
    """What the test only simulated runs natively, as a part of the test."""
    try:
        result = yield
        if item.get_closest_marker("simulated_only") is None:
            TWIN.settle()
        return result
    finally:
        TWIN.pending.clear()


class Kernels:
    """Kernels from text. Every program that goes through here has its inits checked on all paths."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.text = kernel_text

    def load(self, source: str) -> Any:
        return kernel_text.load(source, self.folder)

    def compile(self, source: str, *arrays: Any, **options: Any) -> Any:
        program = self.load(source).compile(*arrays, **options)
        checked = init_states.check_module(program.module, arch=program.options.arch)
        assert checked > 0 or "compute" not in program.cpp  # what only moves blocks has no inits
        return program

    def run(self, source: str, *arrays: Any, **options: Any) -> Any:
        """Simulates in place, runs the emitted C++ natively too and demands the same bits."""
        program = self.compile(source, *arrays, **options)
        simulated = [tensors.to_array(array).copy() for array in arrays]
        native = [array.copy() for array in simulated]
        sim_run.simulate(program, simulated)
        found = driver.run(program, native)
        assert not found.errors
        for array, value, other in zip(arrays, simulated, native, strict=True):
            assert value.tobytes() == other.tobytes()
            tensors.from_array(array, value)
        return program

    run_everywhere = run

    def simulate(self, source: str, *arrays: Any, **options: Any) -> Any:
        """Only simulates; the native run, once per text, is left to `NativeTwin`."""
        program = self.compile(source, *arrays, **options)
        execution.run(program, arrays)
        return program

    def elementwise(self, outputs: dict[str, str], inputs: dict[str, Any], **choices: Any) -> tuple[Any, dict[str, Any]]:
        """Runs an elementwise kernel on arrays by name; gives the program and the outputs. Compiler options pass through."""
        layout = {key: choices.pop(key) for key in ("lets", "block", "blocks", "grid", "count", "spelling") if key in choices}
        source = kernel_text.elementwise(outputs, tuple(inputs), **layout)
        first = next(iter(inputs.values()))
        results = {name: np.full(first.shape, np.nan, first.dtype) for name in outputs}
        run = self.run if choices.pop("native", True) else self.simulate
        program = run(source, *inputs.values(), *results.values(), **choices)
        return program, results


@pytest.fixture(scope="session")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Kernels:
    return Kernels(tmp_path_factory.mktemp("kernels"))


@pytest.fixture(scope="session")
def native_twin() -> Any:
    return TWIN


@pytest.fixture(scope="session", name="rounding")
def rounding_module() -> ModuleType:
    return rounding


@pytest.fixture(scope="session", name="block_kernels")
def block_kernels_module() -> ModuleType:
    return block_kernels


@pytest.fixture(scope="session", name="call_sequence")
def call_sequence_module() -> ModuleType:
    return call_sequence


@pytest.fixture(scope="session", name="init_states")
def init_states_module() -> ModuleType:
    return init_states


@pytest.fixture
def make_array() -> Any:
    """Random arrays of tiles: ``make_array((rows, columns) in tiles, "bf16", low, high)``."""
    generator = np.random.default_rng(5)

    def make(tiles: tuple[int, int], dtype: str, low: float = -2.0, high: float = 2.0) -> Any:
        return generator.uniform(low, high, (tiles[0] * 32, tiles[1] * 32)).astype(DTYPES[dtype])

    return make
