"""Values in the words of a message."""

from __future__ import annotations

from typing import Any

from tilewright.frontend.integers import is_dynamic, is_truth
from tilewright.frontend.values import Block, BoundMethod, TensorSlice, Transfer, TransferGroup
from tilewright.lang.buffers import CircularBuffer
from tilewright.lang.tensors import KernelTensor


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
    if isinstance(value, BoundMethod):
        return f"the method {value.name}"
    if is_dynamic(value):
        return (
            "a condition that is known per core only"
            if is_truth(value)
            else "an integer that is known per core or iteration only"
        )
    text = repr(value)
    return text if len(text) <= 40 else f"a {type(value).__name__}"
