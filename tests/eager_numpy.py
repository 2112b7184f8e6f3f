"""Kernels read as plain Python on NumPy arrays: every statement does what it says, when it says so.

``ttl`` here is a class whose buffers are Python lists and whose blocks are float64 arrays. A kernel's text runs in it by ``exec``,
core by core: the reader to its end, then compute, then the writer. Nothing is compiled, nothing is lazy, and nothing of the compiler
is used; a block that was popped is full of NaN. Beside each array goes a bound on the error that rounding explains.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

TILE = 32
# One rounding step of the widest format a value of that dtype passes through: the matrix unit reads f32 as tf32.
STEP = {"bf16": 2.0**-8, "f32": 2.0**-10}

Array = Any


@dataclass(eq=False)
class Block:
    """A block of a buffer, or a value. A dimension that was reduced has one element."""

    step: float
    array: Array
    error: float = 0.0
    tiles: tuple[int, int] = (1, 1)
    buffer: Buffer | None = None
    writable: bool = False

    @property
    def size(self) -> float:
        return float(np.abs(self.array).max())

    @property
    def shape(self) -> tuple[int, int]:
        return self.tiles

    def made(self, array: Array, error: float, tiles: tuple[int, int] | None = None) -> Block:
        """A result: it is rounded once more."""
        assert not np.isnan(array).any(), "the kernel reads a block that was released or never written"
        return Block(self.step, array, error + 2 * self.step * max(float(np.abs(array).max()), 1e-3), tiles or self.tiles)

    def _with(self, other: Any, function: Any, error: Any) -> Block:
        if not isinstance(other, Block):
            other = Block(self.step, np.full((1, 1), float(other)), 0.0)
        tiles = (max(self.tiles[0], other.tiles[0]), max(self.tiles[1], other.tiles[1]))
        return self.made(function(self.array, other.array), error(self, other), tiles)

    def __add__(self, other: Any) -> Block:
        return self._with(other, np.add, _sum)

    def __radd__(self, other: Any) -> Block:
        return self._with(other, np.add, _sum)

    def __sub__(self, other: Any) -> Block:
        return self._with(other, np.subtract, _sum)

    def __rsub__(self, other: Any) -> Block:
        return self._with(other, lambda x, y: y - x, _sum)

    def __mul__(self, other: Any) -> Block:
        return self._with(other, np.multiply, _product)

    def __rmul__(self, other: Any) -> Block:
        return self._with(other, np.multiply, _product)

    def __neg__(self) -> Block:
        return self.made(-self.array, self.error)

    def __matmul__(self, other: Block) -> Block:
        inner = self.array.shape[1]
        error = inner * (_product(self, other) + 4 * self.step * self.size * other.size)
        return self.made(self.array @ other.array, error, (self.tiles[0], other.tiles[1]))

    def __iadd__(self, other: Any) -> Block:
        if not self.writable:
            return self + other
        before = Block(self.step, np.where(np.isnan(self.array), 0.0, self.array), self.error, self.tiles)
        self.store(before + other)
        return self

    def store(self, value: Block) -> None:
        assert self.writable
        self.array = np.broadcast_to(value.array, self.array.shape).copy()
        self.error = value.error + 2 * self.step * value.size

    def push(self) -> None:
        assert self.buffer is not None
        self.buffer.push()

    def pop(self) -> None:
        assert self.buffer is not None
        self.buffer.pop()

    def __enter__(self) -> Block:
        return self

    def __exit__(self, *_: Any) -> None:
        if self.writable:
            self.push()
        else:
            self.pop()


def _sum(left: Block, right: Block) -> float:
    return left.error + right.error


def _product(left: Block, right: Block) -> float:
    return left.error * right.size + right.error * left.size + left.error * right.error


@dataclass(eq=False)
class Buffer:
    """A queue without end."""

    step: float
    tiles: tuple[int, int]
    filled: list[Block] = field(default_factory=list)
    reserved: list[Block] = field(default_factory=list)
    waited: list[Block] = field(default_factory=list)

    def reserve(self) -> Block:
        array = np.full((self.tiles[0] * TILE, self.tiles[1] * TILE), np.nan)
        self.reserved.append(Block(self.step, array, 0.0, self.tiles, self, writable=True))
        return self.reserved[-1]

    def push(self) -> None:
        done = self.reserved.pop(0)
        assert not np.isnan(done.array).any()
        self.filled.append(Block(self.step, done.array.copy(), done.error, self.tiles, self))
        done.array = np.full_like(done.array, np.nan)

    def wait(self) -> Block:
        self.waited.append(self.filled.pop(0))
        return self.waited[-1]

    def pop(self) -> None:
        done = self.waited.pop(0)
        done.array = np.full_like(done.array, np.nan)


@dataclass(eq=False)
class Tensor:
    """An argument: its values, and for results the error of each tile row."""

    array: Array
    errors: dict[int, float] = field(default_factory=dict)

    def __getitem__(self, index: tuple[slice, slice]) -> Part:
        rows, columns = index
        return Part(self, slice(rows.start * TILE, rows.stop * TILE), slice(columns.start * TILE, columns.stop * TILE))


@dataclass(eq=False)
class Part:
    tensor: Tensor
    rows: slice
    columns: slice


class Copy:
    def wait(self) -> None:
        pass


class Functions:
    """``ttl.math`` and ``ttl.block``: what the random kernels use of them."""

    def __init__(self, step: float) -> None:
        self.step = step

    def exp(self, x: Block) -> Block:
        return x.made(np.exp(x.array), x.error * float(np.exp(x.size)))

    def tanh(self, x: Block) -> Block:
        return x.made(np.tanh(x.array), x.error + self.step)

    def sigmoid(self, x: Block) -> Block:
        return x.made(1 / (1 + np.exp(-x.array)), x.error + self.step)

    def abs(self, x: Block) -> Block:
        return x.made(np.abs(x.array), x.error)

    def relu(self, x: Block) -> Block:
        return x.made(np.maximum(x.array, 0), x.error)

    def max(self, x: Block, y: Block) -> Block:
        return x._with(y, np.maximum, _sum)

    def min(self, x: Block, y: Block) -> Block:
        return x._with(y, np.minimum, _sum)

    def reduce_max(self, x: Block, dims: list[int]) -> Block:
        return self._reduced(x, np.max, dims, 1)

    def reduce_sum(self, x: Block, dims: list[int]) -> Block:
        count = int(np.prod([x.array.shape[dim] for dim in dims]))
        return self._reduced(x, np.sum, dims, count)

    def _reduced(self, x: Block, function: Any, dims: list[int], count: int) -> Block:
        tiles = tuple(1 if dim in dims else size for dim, size in enumerate(x.tiles))
        array = function(x.array, axis=tuple(dims), keepdims=True)
        return x.made(array, count * (x.error + 4 * self.step * x.size), tiles)  # pyright: ignore

    def transpose(self, x: Block) -> Block:
        return x.made(x.array.T.copy(), x.error, x.tiles[::-1])

    def fill(self, number: float, shape: tuple[int, int]) -> Block:
        return Block(self.step, np.full((shape[0] * TILE, shape[1] * TILE), float(number)), 0.0, shape)


class Language:
    """``ttl`` on one core."""

    def __init__(self, core: int, dtype: str) -> None:
        self.core, self.step = core, STEP[dtype]
        self.math = self.block = Functions(self.step)
        self.threads: list[Any] = []
        self.compute_thread: Any = None

    def operation(self, grid: tuple[int, int]) -> Any:
        del grid
        return lambda function: function

    def node(self, dims: int) -> tuple[int, ...]:
        return (self.core, *([0] * (dims - 1)))

    def make_dataflow_buffer_like(self, tensor: Tensor, shape: tuple[int, int], block_count: int) -> Buffer:
        del tensor, block_count
        return Buffer(self.step, shape)

    def compute(self) -> Any:
        def keep(function: Any) -> None:
            self.compute_thread = function

        return keep

    def datamovement(self) -> Any:
        return self.threads.append

    def copy(self, source: Any, target: Any) -> Copy:
        if isinstance(source, Part):
            target.array = source.tensor.array[source.rows, source.columns].astype(np.float64)
            target.error = 0.0
        else:
            target.tensor.array[target.rows, target.columns] = source.array
            for row in range(target.rows.start // TILE, target.rows.stop // TILE):
                target.tensor.errors[row] = source.error
        return Copy()


def run(text: str, arrays: list[Array], cores: int, dtype: str) -> list[Tensor]:
    """Every argument of the kernel in ``text`` as it is after the run. Reader first, writer last."""
    tensors = [Tensor(array.astype(np.float64)) for array in arrays]
    body = text.replace("from tilewright import ttl\n", "")
    for core in range(cores):
        language = Language(core, dtype)
        scope: dict[str, Any] = {"ttl": language}
        exec(body, scope)
        scope["kernel"](*tensors)
        reader, writer = language.threads
        for thread in (reader, language.compute_thread, writer):
            thread()
    return tensors
