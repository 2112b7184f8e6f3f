"""What a thread works on: blocks of tiles, slices of tensors, copies under way; and how messages call them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from functools import lru_cache
from typing import Any

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir import Block as IRBlock

from tilewright.builder.extents import Count, Extent, Site
from tilewright.diagnostics import Span
from tilewright.dialects.attributes import block_type
from tilewright.integers import Value, is_dynamic, is_truth
from tilewright.lang.buffers import CircularBuffer
from tilewright.lang.tensors import KernelTensor
from tilewright.narrowing import is_dict, is_list
from tilewright.records import record


@record
class Region:
    """Rows and columns of tiles of a block."""

    row: int
    column: int
    rows: int
    columns: int
    width: int  # of the whole block

    @property
    def runs(self) -> list[tuple[int, tuple[int, int]]]:
        """First tile and shape of each run of tiles; tiles of a block lie row by row."""
        if self.rows == 1 or self.columns == self.width:
            return [(self.row * self.width + self.column, (self.rows, self.columns))]
        return [((self.row + n) * self.width + self.column, (1, self.columns)) for n in range(self.rows)]


@record
class CountedLoop:
    """A loop over a range that is known."""

    place: Span
    count: int


@record(frozen=False, eq=False)
class Acquisition:
    """One ``wait()`` or ``reserve()`` of a buffer."""

    buffer: CircularBuffer
    kind: str  # wait or reserve
    ssa: SSAValue  # the block
    span: Span
    released: bool = False
    scoped: bool = False  # by a ``with``, which releases it
    stored: Block | None = None  # what a reserved block holds, once stored; what stands for a waited one
    joined: Callable[[], Block] | None = None  # gives that, where branches stored values of their own
    replaced: Span | None = None  # where the value of a waited block was replaced, until it is read
    store: Operation | None = None  # the last store to it
    loop: CountedLoop | None = None  # the loop it stands in
    read_by: set[IRBlock] = field(default_factory=set[IRBlock])  # bodies of loops that read what was stored before them
    site: Site | None = None  # where blocks of its buffer are followed

    def __repr__(self) -> str:
        return f"{self.buffer.name}.{self.kind}()"


@record(frozen=False, eq=False)
class Block:
    """A block of tiles: held from a buffer, or the value of an expression."""

    ssa: SSAValue
    shape: tuple[int, ...]
    dtype: str
    held: Acquisition | None = None
    reduced: tuple[int, ...] = ()  # dimensions a reduction left one element of; they repeat like NumPy's size 1
    uniform: tuple[int, ...] = ()  # those of ``reduced`` along which that element is in all places: it may be taken for all
    unknown: tuple[int, ...] = ()  # dimensions of which one or all elements count, depending on the iteration or the core
    differ: tuple[Span, ...] = ()  # where blocks of either kind are made
    open: bool = False  # its one element per row or column grows to what it meets, in a store too: an unsized broadcast, a fill
    weak: float | None = None  # the number of a fill that named no dtype: it takes that of what it meets
    region: Region | None = None  # which tiles of the held block are meant, if not all; ``ssa`` is the whole

    @property
    def size_text(self) -> str:
        return "x".join(str(dim) for dim in self.shape)

    def describe(self) -> str:
        return f"{self.size_text} tiles of {self.dtype}"

    @property
    def extent(self) -> Extent:
        """Which elements count, of rows and of columns."""
        rank = len(self.shape)
        return self._count(rank - 2), self._count(rank - 1)

    def _count(self, dim: int) -> Count:
        if dim in self.unknown:
            return Count.UNKNOWN
        return Count.EITHER if dim in self.uniform else Count.ONE if dim in self.reduced else Count.ALL

    @property
    def grows(self) -> bool:
        """Whether elements are missing that ``open`` promises: one number everywhere is all of them."""
        return self.open and any(dim not in self.uniform for dim in self.reduced)

    def with_extent(self, extent: Extent, differ: tuple[Span, ...] = ()) -> Block:
        dims = [dim for dim in range(len(self.shape) - 2, len(self.shape)) if dim >= 0 and self.shape[dim] == 1]
        counts = {dim: extent[dim - len(self.shape)] for dim in dims}
        self.reduced = tuple(dim for dim in dims if counts[dim] in (Count.EITHER, Count.ONE))
        self.uniform = tuple(dim for dim in dims if counts[dim] == Count.EITHER)
        self.unknown = tuple(dim for dim in dims if counts[dim] == Count.UNKNOWN)
        self.differ = differ if self.unknown else ()
        return self

    def counting_as(self, other: Block, dims: Callable[[Sequence[int]], Iterable[int]] = tuple) -> Block:
        """The same elements count as in ``other``; ``dims`` says which dimensions of this block its dimensions are."""
        self.reduced, self.uniform, self.unknown = (tuple(dims(each)) for each in (other.reduced, other.uniform, other.unknown))
        self.differ = other.differ
        return self

    def __repr__(self) -> str:
        return f"a block of {self.describe()}"


@record(frozen=False, eq=False)
class TensorSlice:
    """A rectangle of tiles of a tensor argument."""

    ssa: SSAValue
    shape: tuple[int, ...]
    dtype: str
    tensor: KernelTensor
    origin: bool = False  # written as tensor[0, 0]: a place, which the oldest form of copy takes for a block
    parts: tuple[tuple[TensorSlice, int], ...] = ()  # of a gathered one: rectangles, and the tile of the block each starts at
    again: Callable[[], TensorSlice] | None = None  # writes the same slice where the thread is then

    @property
    def name(self) -> str:
        return self.tensor.name

    def describe(self) -> str:
        return f"a slice of tensor '{self.name}'"


@record(eq=False)
class Choice:
    """One of two things that exist at compile time."""

    condition: Value
    when_true: Any
    when_false: Any

    @property
    def numbers(self) -> list[float] | None:
        """The numbers to choose from, if that is all there is."""
        found: list[float] = []
        for side in (self.when_true, self.when_false):
            inner = side.numbers if isinstance(side, Choice) else [side] if isinstance(side, (int, float)) else None
            if inner is None:
                return None
            found += inner
        return found

    def describe(self) -> str:
        return f"{described(self.when_true)} or, on other cores, {described(self.when_false)}"


@record(frozen=False, eq=False)
class Transfer:
    """A copy that was started."""

    ops: list[Operation]
    span: Span
    waited: bool = False

    def describe(self) -> str:
        return "a copy"


@record(eq=False)
class ReadyReceive:
    """What ``ttl.wait_any`` gives: the receive that has arrived first."""

    number: Value

    def describe(self) -> str:
        return "the receive that has arrived first"


@record(frozen=False, eq=False)
class TransferGroup:
    """``ttl.GroupTransfer()``: copies that are waited for together."""

    depth: int  # of loops and branches where it was made
    transfers: list[Transfer] = field(default_factory=list[Transfer])

    def describe(self) -> str:
        return "a group of copies"


def folded(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Rows and columns of tiles of a block, see `folding`."""
    return shape if len(shape) <= 2 else (math.prod(shape[:-1]), shape[-1])


MATRICES_APART = "matrices of a block are not told apart: loop over them, with blocks of one matrix each"


@lru_cache(maxsize=1024)
def value_type(shape: tuple[int, ...], dtype: str) -> TensorType[Attribute]:
    return block_type(folded(shape), dtype)


def fold(block: Block) -> Block:
    """The block as the IR has it."""
    if len(block.shape) <= 2:
        return block
    shift = len(block.shape) - 2
    found = Block(block.ssa, folded(block.shape), block.dtype, block.held, open=block.open, weak=block.weak)
    return _shifted(found, block, -shift)


def unfold(block: Block, shape: tuple[int, ...]) -> Block:
    """What the IR has, with the dimensions the author gave it."""
    if block.shape == shape:
        return block
    shift = len(shape) - len(block.shape)
    return _shifted(Block(block.ssa, shape, block.dtype, open=block.open, weak=block.weak), block, shift)


def _shifted(found: Block, block: Block, shift: int) -> Block:
    """The elements that count in ``block``, whose rows and columns have other numbers in ``found``."""
    return found.counting_as(block, lambda dims: (dim + shift for dim in dims if dim + shift >= 0))


def matrices(shape: Sequence[int]) -> int:
    """How many matrices of tiles a block of this shape holds."""
    return math.prod(shape[:-2])


def grows_in_place(small: Sequence[int], large: Sequence[int]) -> bool:
    """Whether repeating ``small`` to ``large``, of equal rank, is repeating rows or columns of the folded blocks."""
    if matrices(large) == 1 or tuple(small[:-1]) == tuple(large[:-1]):
        return True
    return math.prod(small[:-1]) == 1


PLAIN = (int, float, complex, str, bytes, bool, type(None))


def described(value: Any) -> str:
    if isinstance(value, Block):
        return f"a block of {value.describe()}"
    if isinstance(value, CircularBuffer):
        return f"buffer '{value.name}'"
    if isinstance(value, KernelTensor):
        return f"tensor '{value.name}'"
    if hasattr(value, "describe"):
        return str(value.describe())
    if is_dynamic(value):
        return (
            "a condition that is known per core only"
            if is_truth(value)
            else "an integer that is known per core or iteration only"
        )
    if is_list(value) or is_dict(value):
        items = list(value.values()) if is_dict(value) else list(value)
        if not all(isinstance(item, PLAIN) for item in items):
            return f"a {type(value).__name__} of {len(items)} value{'s' * (len(items) != 1)}"  # what they are may be long
    try:
        text = repr(value)
    except Exception:  # of a class of the user's
        text = ""
    return text if 0 < len(text) <= 40 and " at 0x" not in text else f"a {type(value).__name__}"
