"""What Python itself computes while a thread is translated, and which values it cannot touch."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from tilewright.frontend import carried
from tilewright.frontend.describe import described
from tilewright.frontend.semaphores import RemoteSemaphore
from tilewright.frontend.thread import Thread
from tilewright.frontend.values import Block, BoundMethod, TensorSlice, Transfer, TransferGroup
from tilewright.integers import is_dynamic, is_truth, make
from tilewright.lang.tensors import KernelTensor

RUNTIME_VALUES = (Block, Transfer, TransferGroup, TensorSlice, BoundMethod, RemoteSemaphore, carried.Scope)


def native(thread: Thread, node: ast.AST, function: Callable[..., Any], *args: Any) -> Any:
    """Plain Python on plain values; what Python raises is an error of the kernel at this place."""
    try:
        return function(*args)
    except Exception as error:
        raise thread.error(
            "TW017", f"{type(error).__name__}: {error}", node, help="this expression is evaluated at compile time"
        ) from None


def truth(thread: Thread, value: Any, node: ast.AST) -> Any:
    """``bool(value)``: a Python bool, or a condition of this core."""
    if isinstance(value, (*RUNTIME_VALUES, KernelTensor)):
        raise thread.error(
            "TW004",
            f"{described(value)} is used as a condition",
            node,
            help="conditions are about integers; (x > 0) * (x < 1) is 1 where both hold, ttl.math.where chooses by element",
        )
    if is_dynamic(value):
        return value if is_truth(value) else make("!=", value, 0)
    return bool(value)
