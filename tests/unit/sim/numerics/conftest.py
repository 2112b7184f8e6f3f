"""The recordings module as a fixture, and parametrisation over recorded tags."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tilewright.sim.numerics import accelerator

NAME = "numeric_recordings"


def load_recordings() -> ModuleType:
    if NAME in sys.modules:
        return sys.modules[NAME]
    spec = importlib.util.spec_from_file_location(NAME, Path(__file__).with_name("recordings.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def recordings() -> ModuleType:
    return load_recordings()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """``@pytest.mark.recorded(pattern)``: one test per recorded tag, given as ``entry``."""
    marker = metafunc.definition.get_closest_marker("recorded")
    if marker is None:
        return
    module = load_recordings()
    chosen = module.tags(marker.args[0])
    wanted = marker.kwargs.get("where")
    if wanted is not None:
        chosen = [tag for tag in chosen if getattr(module, wanted)(tag)]
    assert chosen, f"no recording matches {marker.args[0]}"
    metafunc.parametrize("entry", [module.recording(tag) for tag in chosen], ids=chosen)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "recorded(pattern): run once per matching recording")


@pytest.fixture(params=["numpy", "compiled"])
def loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which of the two implementations of the innermost loops a test runs."""
    builder = accelerator.Builder()
    builder.settled = True
    if request.param == "compiled":
        path = accelerator.library_path()
        assert path.exists() or accelerator.build(path)
        builder.library = accelerator.Library(path)
    monkeypatch.setattr(accelerator, "_builder", builder)
    return request.param
