"""Values in the words of a message."""

from __future__ import annotations

from typing import Any, cast

from tilewright.frontend.values import Block, BoundMethod, LocalFunction, TensorSlice, Transfer, TransferGroup
from tilewright.integers import is_dynamic, is_truth
from tilewright.lang.buffers import CircularBuffer
from tilewright.lang.tensors import KernelTensor

PLAIN = (int, float, complex, str, bytes, bool, type(None))


def described(value: Any) -> str:
    if isinstance(value, Block):
        return f"a block of {value.describe()}"
    if isinstance(value, CircularBuffer):
        return f"buffer '{value.name}'"
    if isinstance(value, KernelTensor):
        return f"tensor '{value.name}'"
    if isinstance(value, TensorSlice):
        return f"a slice of tensor '{value.name}'"
    if isinstance(value, (Transfer, TransferGroup)):
        return "a copy" if isinstance(value, Transfer) else "a group of copies"
    if hasattr(value, "describe"):
        return str(value.describe())
    if isinstance(value, LocalFunction):
        return f"function '{value.name}'"
    if isinstance(value, BoundMethod):
        return f"the method {value.name}"
    if is_dynamic(value):
        return (
            "a condition that is known per core only"
            if is_truth(value)
            else "an integer that is known per core or iteration only"
        )
    if isinstance(value, (list, tuple, dict)):
        items = cast("list[Any]", list(value.values() if isinstance(value, dict) else value))  # pyright: ignore[reportUnknownArgumentType]
        if not all(isinstance(item, PLAIN) for item in items):
            return f"a {type(value).__name__} of {len(items)} value{'s' * (len(items) != 1)}"  # what they are may be long
    try:
        text = repr(value)
    except Exception:  # of a class of the user's
        text = ""
    return text if 0 < len(text) <= 40 and " at 0x" not in text else f"a {type(value).__name__}"
