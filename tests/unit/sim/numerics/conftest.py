"""The recordings module as a fixture, and parametrisation over recorded tags."""

from __future__ import annotations

from types import ModuleType

import pytest
import recordings

from tilewright.sim.numerics import accelerator


@pytest.fixture(scope="session", name="recordings")
def recordings_module() -> ModuleType:
    return recordings


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """``@pytest.mark.recorded(pattern)``: one test per recorded tag, given as ``entry``."""
    marker = metafunc.definition.get_closest_marker("recorded")
    if marker is None:
        return
    chosen = recordings.tags(marker.args[0])
    wanted = marker.kwargs.get("where")
    if wanted is not None:
        chosen = [tag for tag in chosen if getattr(recordings, wanted)(tag)]
    assert chosen, f"no recording matches {marker.args[0]}"
    metafunc.parametrize("entry", [recordings.recording(tag) for tag in chosen], ids=chosen)


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
