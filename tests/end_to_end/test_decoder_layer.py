"""A decoder layer as one kernel made of operations (`examples/15_decoder_layer.py`), for several positions of the token."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from tilewright import execution
from tilewright.timing import timeline

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "15_decoder_layer.py"
HEADS, SIZE = 8, 64


@pytest.fixture(scope="module")
def layer():
    spec = importlib.util.spec_from_file_location("decoder_layer_example", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def by_the_book(given, pages, position):
    """Head by head; pairs of elements are turned as complex numbers. Also gives the new rows of the cache."""
    numbers = {name: array.astype(np.float64) for name, array in given.items()}

    def scaled(row, gain):
        return gain * row * (np.dot(row, row) / row.size + 1e-5) ** -0.5

    def rotated(row):
        table = numbers["angles"][position]
        found = (row[: SIZE // 2] + 1j * row[SIZE // 2 :]) * (table[:32] + 1j * table[32:])
        return np.concatenate([found.real, found.imag])

    x = numbers["x"]
    row = scaled(x, numbers["norm 1"]) @ numbers["qkv"]
    attended, fresh = [], {"keys": [], "values": []}
    for head in range(HEADS):
        q, k, v = (row[part * HEADS * SIZE + head * SIZE :][:SIZE] for part in range(3))
        fresh["keys"].append(rotated(k))
        fresh["values"].append(v)
        columns = slice(head * SIZE, (head + 1) * SIZE)
        before = [32 * pages[p // 32] + p % 32 for p in range(position)]
        keys = np.vstack([numbers["keys"][before, columns], rotated(k)])
        values = np.vstack([numbers["values"][before, columns], v])
        weights = np.exp(keys @ rotated(q) / 8.0)
        attended.append(weights @ values / weights.sum())
    y = x + np.concatenate(attended) @ numbers["output"]
    row = scaled(y, numbers["norm 2"])
    gate, up = row @ numbers["gate"], row @ numbers["up"]
    return y + (gate * up / (1.0 + np.exp(-gate))) @ numbers["down"], {name: np.concatenate(f) for name, f in fresh.items()}


@pytest.mark.parametrize("position", [0, 31, 32, 255])
def test_the_layer_is_right_at_every_kind_of_position(layer, position):
    """The first position, the last and first row of a page, the last that the pages hold. The program is the same for all."""
    given, pages = layer.numbers(np.random.default_rng(position))
    expected, fresh = by_the_book(given, pages, position)
    before = {name: given[name].copy() for name in fresh}
    with execution.session(mode="native"):
        found = layer.decode(given, pages, position)
    assert np.abs(found - expected).max() <= 1e-2 * np.abs(expected).max()
    for name, row in fresh.items():
        place = 32 * pages[position // 32] + position % 32
        assert np.abs(given[name][place].astype(np.float64) - row).max() <= 1e-2 * np.abs(row).max()
        others = np.arange(len(before[name])) != place
        assert (given[name][others] == before[name][others]).all()


def test_what_the_compiler_says_about_it(layer):
    given, pages = layer.numbers(np.random.default_rng(1))
    found = []
    with execution.session(mode="compile", on_compiled=(found.append,)):
        layer.decode(given, pages, 3)
    (program,) = found
    told = [f"{decision}" for decision in program.trace.decisions]
    assert any("numbers from data" in text and "'position'" in text for text in told)
    assert any("buffers became" in text for text in told) and len(program.buffers) <= 32
    assert program.grid == (8, 8)
    # Cores that a barrier lets go share banks and links from then on; one after the other they would take 1,600,000 cycles.
    assert 100_000 < timeline.run(program).cycles < 300_000
