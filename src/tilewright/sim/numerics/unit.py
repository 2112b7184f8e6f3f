"""The chip whose vector unit computes.

Every function of the vector unit ends in its multiply-add, and that differs by chip, so the chip is no parameter of each
step: the entry points (``sfpu``) say on which chip a call computes, and the few rules that differ ask here.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from tilewright.hardware import BLACKHOLE, WORMHOLE_B0

Given = ParamSpec("Given")
Result = TypeVar("Result")

_chip: ContextVar[str] = ContextVar("chip", default=WORMHOLE_B0.name)


def chip() -> str:
    return _chip.get()


def on_blackhole() -> bool:
    return _chip.get() == BLACKHOLE.name


def on_chip(function: Callable[Given, Result]) -> Callable[Concatenate[str, Given], Result]:
    """The function with the chip it computes on as its first argument."""

    @wraps(function)
    def computed(chip: str, /, *arguments: Given.args, **choices: Given.kwargs) -> Result:
        token = _chip.set(chip)
        try:
            return function(*arguments, **choices)
        finally:
            _chip.reset(token)

    return computed
