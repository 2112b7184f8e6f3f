"""Loads xDSL. Importing it takes as long as everything else that a first compilation loads, and half of that is dataclasses."""

from __future__ import annotations

import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module

from tilewright.records import defined_quickly

FIRST = "xdsl.dialects.builtin"
PARTS = (FIRST, "xdsl.dialects.func", "xdsl.dialects.scf", "xdsl.dialects.arith", "xdsl.dialects.tensor")


def load_xdsl() -> None:
    """The parts that every compilation and every simulation needs; whoever is about to load the compiler calls this first."""
    if FIRST in sys.modules:
        return
    with collection_paused(), defined_quickly("xdsl"):
        for part in PARTS:
            import_module(part)


@contextmanager
def collection_paused() -> Generator[None, None, None]:
    """No cyclic collection inside: IR is all cycles and stays alive, so a collection finds nothing and costs its size."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
