"""Loads the benchmark bodies, the problem generator and the exhaustive oracle by path: they are no packages."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]


def load(path: Path) -> ModuleType:
    name = f"loaded_{path.stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture(scope="session")
def bodies() -> ModuleType:
    return load(ROOT / "benchmarks" / "dst_dags.py")


@pytest.fixture(scope="session")
def fuzz() -> ModuleType:
    return load(ROOT / "benchmarks" / "fuzz_dst.py")


@pytest.fixture(scope="session")
def exhaustive() -> ModuleType:
    return load(Path(__file__).parent / "exhaustive.py")


@pytest.fixture(scope="session")
def constraint_oracle() -> ModuleType:
    return load(Path(__file__).parent / "constraint_oracle.py")
