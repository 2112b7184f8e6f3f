"""Python's cyclic garbage collector, held off while a module full of cycles is built."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def paused() -> Generator[None, None, None]:
    """No cyclic collection inside: IR is all cycles and stays alive, so a collection finds nothing and costs its size."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
