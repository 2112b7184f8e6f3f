"""Pages in headless Chromium."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from headless import Browser, headless


@pytest.fixture(scope="session")
def browser() -> Generator[Browser, None, None]:
    with headless() as started:
        yield started
