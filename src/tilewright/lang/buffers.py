"""Circular (dataflow) buffers as the user's code makes them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tilewright.diagnostics import Span, fail
from tilewright.lang.building import caller_span, current_build
from tilewright.lang.names import BUFFER_ARGUMENTS
from tilewright.lang.tensors import KernelTensor, describe, is_tensor, not_a_tensor


class CircularBuffer:
    """A queue of blocks between threads of one core. ``shape`` is the block's, in tiles."""

    def __init__(
        self,
        *,
        shape: tuple[int, ...],
        dtype: str,
        block_count: int,
        index: int,
        span: Span,
        tensor: KernelTensor | None = None,
        first_tile: int = 0,
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.block_count = block_count
        self.index = index
        self.span = span
        self.tensor = tensor  # the argument whose shard is its memory
        self.first_tile = first_tile  # of that shard
        self.name = ""
        self.origin = "user"  # or "compiler"

    @property
    def buffer_factor(self) -> int:
        return self.block_count

    @property
    def tiles(self) -> int:
        return self.block_count * prod(self.shape)

    def _in_thread_only(self, word: str) -> Any:
        raise fail(
            "TW009",
            f"{word}() of a buffer runs inside a thread only",
            caller_span(word),
            help="call it in a function marked @ttl.compute() or @ttl.datamovement()",
        )

    def wait(self) -> Any:
        return self._in_thread_only("wait")

    def reserve(self) -> Any:
        return self._in_thread_only("reserve")

    def push(self) -> Any:
        return self._in_thread_only("push")

    def pop(self) -> Any:
        return self._in_thread_only("pop")

    def publish(self) -> Any:
        return self._in_thread_only("publish")

    def __repr__(self) -> str:
        return f"CircularBuffer({self.name or self.index}, shape={self.shape}, block_count={self.block_count})"


def make_circular_buffer_like(
    tensor: Any, shape: Sequence[int] | None = None, buffer_factor: int | None = None, **arguments: Any
) -> CircularBuffer:
    """A buffer for blocks of ``shape`` tiles with the dtype of ``tensor``; ``block_count`` blocks (``buffer_factor`` before)."""
    build = current_build("make_circular_buffer_like(…)")
    span = caller_span("make_circular_buffer_like", "make_dataflow_buffer_like")
    count = buffer_factor
    for name, value in arguments.items():
        if BUFFER_ARGUMENTS.get(name) != "buffer_factor":
            raise fail("TW004", f"a buffer has no argument '{name}'", span, help="shape= and block_count=")
        if count is not None:
            raise fail("TW004", "block_count and buffer_factor are two names of one argument", span, help="give one of them")
        count = value
    if shape is None:
        raise fail("TW004", "the buffer needs shape=, the size of one block in tiles", span, help="for example shape=(2, 2)")
    if not is_tensor(tensor):
        raise not_a_tensor("a buffer is made like a tensor, not like", tensor, span)
    dims = checked_shape(shape, span)
    buffer = CircularBuffer(
        shape=dims,
        dtype=describe(tensor, "tensor", span).dtype if not isinstance(tensor, KernelTensor) else tensor.spec.dtype,
        block_count=checked_count(2 if count is None else count, span),
        index=len(build.buffers),
        span=span,
    )
    return build.add_buffer(buffer)


def checked_shape(shape: Any, span: Span) -> tuple[int, ...]:
    dims = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if not dims or not all(is_integer(dim) for dim in dims):
        raise fail("TW108", f"block shape {shape!r} is not a tuple of integers", span, help="give whole tiles, e.g. shape=(2, 2)")
    if any(dim < 1 for dim in dims):
        raise fail("TW108", f"block shape {tuple(dims)} has a dimension below 1", span, help="a block is at least one tile")
    whole = tuple(int(dim) for dim in dims)
    return (1, *whole) if len(whole) == 1 else whole


def checked_count(count: Any, span: Span) -> int:
    if not is_integer(count) or count < 1:
        raise fail(
            "TW213",
            f"block_count is {count!r}",
            span,
            help="a buffer holds at least one block; two let producer and consumer work at the same time",
        )
    return int(count)


def is_integer(value: Any) -> bool:
    return not isinstance(value, bool) and hasattr(value, "__index__")
