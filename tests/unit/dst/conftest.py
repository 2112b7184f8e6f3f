"""The benchmark bodies, the problem generator and the oracles, as fixtures."""

from __future__ import annotations

from types import ModuleType

import dst_dags
import exhaustive
import fuzz_dst
import pytest


@pytest.fixture(scope="session")
def bodies() -> ModuleType:
    return dst_dags


@pytest.fixture(scope="session")
def fuzz() -> ModuleType:
    return fuzz_dst


@pytest.fixture(scope="session", name="exhaustive")
def exhaustive_module() -> ModuleType:
    return exhaustive


@pytest.fixture(scope="session", name="constraint_oracle")
def constraint_oracle_module() -> ModuleType:
    import constraint_oracle  # only what asks for it loads ortools

    return constraint_oracle
