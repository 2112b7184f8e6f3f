"""What tests of the specification share: the listings that a test's marker names."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import documents
import pytest
from worked_examples import compile_example

from tilewright.native import driver
from tilewright.sim import run as sim_run


class Listings:
    """The listings of one item, by their number in the section: ``listings[1]``."""

    def __init__(self, document: str, section: str, numbers: tuple[int, ...]) -> None:
        self.document, self.section, self.numbers = document, section, numbers
        self.unread = set(numbers)

    def __getitem__(self, number: int) -> str:
        if number not in self.numbers:
            raise KeyError(f"the marker of this test does not name listing {number} of {self.section}")
        self.unread.discard(number)
        return documents.listing(self.document, self.section, number)


@pytest.fixture
def listings(request: pytest.FixtureRequest) -> Iterator[Listings]:
    """A listing that a marker names is one that the test reads."""
    marker = request.node.get_closest_marker("spec")
    found = Listings(marker.kwargs["document"], marker.kwargs["section"], tuple(marker.kwargs["listings"]))
    yield found
    assert not found.unread, f"listing {sorted(found.unread)} of {found.section} is named and not read"


@pytest.fixture
def run_both() -> Any:
    """Simulates a program and runs its C++ natively, on arrays that are changed in place; demands the same bits."""

    def run(program: Any, arrays: list[Any]) -> None:
        native = [array.copy() for array in arrays]
        sim_run.simulate(program, arrays)
        assert not driver.run(program, native).errors
        for array, other in zip(arrays, native, strict=True):
            assert array.tobytes() == other.tobytes()

    return run


@pytest.fixture
def compiled(kernels: Any) -> Any:
    """A worked example of the DST document, by its number."""
    return functools.partial(compile_example, kernels)
