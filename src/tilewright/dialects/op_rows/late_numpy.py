"""``np`` for the meanings in the op table: NumPy is loaded when the first of them is called, because compiling calls none."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any


class LateFunction:
    """A function of NumPy by its name."""

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self._function: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if self._function is None:
            self._function = getattr(importlib.import_module("numpy"), self.__name__)
        return self._function(*arguments, **named)  # pyright: ignore[reportOptionalCall]


class LateModule:
    """NumPy itself once somebody has loaded it; before, only functions to be called later."""

    def __getattr__(self, name: str) -> Any:
        if "numpy" not in sys.modules:
            return LateFunction(name)
        found = getattr(importlib.import_module("numpy"), name)
        setattr(self, name, found)
        return found


if TYPE_CHECKING:
    import numpy as np
else:
    np = LateModule()

__all__ = ["np"]
