"""Whatever a kernel can read is changed, and the caches must give what an uncached compilation gives."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import cache_changes
from tilewright import execution

CHANGES = 1000
THROUGH_PIPELINE = 12


def test_what_is_kept_is_what_an_uncached_translation_gives():
    checks, hits, wrong = cache_changes.run_changes(CHANGES, seed=1)
    assert not wrong, wrong[0]
    assert checks == CHANGES and hits > CHANGES // 20


def test_programs_of_both_caches_are_those_of_an_uncached_compilation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The same through the whole pipeline, in memory and on disk."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for seed in range(THROUGH_PIPELINE):
        world, rng = cache_changes.World(9000 + seed), random.Random(seed)
        for _ in range(3):
            kernel, arguments = world.names["kernel"], tuple(world.arguments.values())
            if not cache_changes.translated(kernel, kernel.bind(arguments, {})).startswith("TW"):
                fresh = kernel._compiled(kernel.bind(arguments, {}), kernel.options).cpp
                with execution.session(cache=True):
                    assert kernel.compile(*arguments).cpp == fresh
                    assert kernel.compile(*arguments).cpp == fresh
                    kernel._programs.clear()
                    assert kernel.compile(*arguments).cpp == fresh
            world.change(rng)


@pytest.mark.parametrize("source", cache_changes.SOURCES, ids=lambda source: source.use.strip())
def test_every_source_has_a_key(source: cache_changes.Source, monkeypatch: pytest.MonkeyPatch):
    """A change that makes the key miss is sound, but what has no key at all is never kept: none of these may be that."""
    monkeypatch.setattr(cache_changes, "SOURCES", (source,) * 4)
    world = cache_changes.World(1)
    kernel = world.names["kernel"]
    assert cache_changes.key_of(kernel, {}) is not None
    assert "builtin.module" in cache_changes.translated(kernel, kernel.bind(tuple(world.arguments.values()), {}))
