"""Integers that are given when a kernel is called and do not make it another kernel."""

from __future__ import annotations

import re
from dataclasses import field
from typing import Any

from tilewright.diagnostics import Span, fail
from tilewright.records import record

LARGEST = 2**31 - 1
WRITTEN = re.compile(r"(?:\w+\.)?runtime_int(?:\(\s*(\d+)\s*,\s*(\d+)\s*\))?$")


@record
class RuntimeInteger:
    """What the kernel's body sees in place of such an argument. ``given`` is the value of the call that compiles it."""

    name: str
    low: int
    high: int
    given: int = field(default=0, compare=False)

    def key_parts(self) -> tuple[Any, ...]:
        return self.name, self.low, self.high


@record
class RuntimeIntAnnotation:
    """``n: ttl.runtime_int`` or, with bounds that slices are checked against, ``n: ttl.runtime_int(0, 64)``."""

    low: int = 0
    high: int = LARGEST

    def __call__(self, low: int, high: int) -> RuntimeIntAnnotation:
        return RuntimeIntAnnotation(low, high)


runtime_int = RuntimeIntAnnotation()


def annotation_of(annotation: Any) -> RuntimeIntAnnotation | None:
    """Also as text, which is what annotations are under ``from __future__ import annotations``."""
    if isinstance(annotation, RuntimeIntAnnotation):
        return annotation
    found = WRITTEN.match(annotation) if isinstance(annotation, str) else None
    if found is None:
        return None
    return RuntimeIntAnnotation(int(found[1]), int(found[2])) if found[1] else RuntimeIntAnnotation()


def checked(name: str, wanted: RuntimeIntAnnotation, value: Any, span: Span) -> RuntimeInteger:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise fail("TW004", f"argument '{name}' is {value!r}", span, help="it is annotated as ttl.runtime_int: give an integer")
    number = int(value)
    if not wanted.low <= number <= wanted.high:
        raise fail("TW004", f"argument '{name}' is {number}", span, help=f"it must lie between {wanted.low} and {wanted.high}")
    return RuntimeInteger(name, wanted.low, wanted.high, number)
