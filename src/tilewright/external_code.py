"""C++ of the author's own inside a kernel: what both the front end and the simulator must know of it.

IR holds its text and what it does to buffers. What it computes, if the author says so in NumPy, is a function of this process:
programs with such code are compiled at every call, so it is always there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

MEANINGS: dict[str, Callable[..., Any]] = {}  # by the name that IR has for it


def remember_meaning(callee: str, meaning: Callable[..., Any]) -> str:
    name = next((known for known, function in MEANINGS.items() if function is meaning), f"{callee}/{len(MEANINGS)}")
    MEANINGS[name] = meaning
    return name
