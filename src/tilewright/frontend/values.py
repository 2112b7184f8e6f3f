"""What names in a thread may stand for, besides plain Python values and `integers` expressions."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from xdsl.ir import Block as IRBlock
from xdsl.ir import Operation, SSAValue

from tilewright.diagnostics import Span
from tilewright.frontend.extents import Count, Extent, Site
from tilewright.frontend.unrolling import CountedLoop
from tilewright.lang.buffers import CircularBuffer
from tilewright.lang.tensors import KernelTensor
from tilewright.records import record


@record(frozen=False, eq=False)
class Acquisition:
    """One ``wait()`` or ``reserve()`` of a buffer."""

    buffer: CircularBuffer
    kind: str  # wait or reserve
    span: Span
    released: bool = False
    scoped: bool = False  # by a ``with``, which releases it
    stored: Block | None = None  # what a reserved block holds, once stored
    store: Operation | None = None  # the last store to it
    loop: CountedLoop | None = None  # the loop it stands in
    read_by: set[IRBlock] = field(default_factory=set[IRBlock])  # bodies of loops that read what was stored before them
    block: Block | None = None  # what the acquire gave
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
    open: bool = False  # a broadcast that named no size: its one element per row or column grows to what it meets, in a store too
    weak: float | None = None  # the number of a fill that named no dtype: it takes that of what it meets

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

    def with_extent(self, extent: Extent, differ: tuple[Span, ...] = ()) -> Block:
        dims = [dim for dim in range(len(self.shape) - 2, len(self.shape)) if dim >= 0 and self.shape[dim] == 1]
        counts = {dim: extent[dim - len(self.shape)] for dim in dims}
        self.reduced = tuple(dim for dim in dims if counts[dim] in (Count.EITHER, Count.ONE))
        self.uniform = tuple(dim for dim in dims if counts[dim] == Count.EITHER)
        self.unknown = tuple(dim for dim in dims if counts[dim] == Count.UNKNOWN)
        self.differ = differ if self.unknown else ()
        return self

    def counting_as(self, other: Block) -> Block:
        """The same elements count as in ``other``, which has the same dimensions."""
        self.reduced, self.uniform, self.unknown, self.differ = other.reduced, other.uniform, other.unknown, other.differ
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

    def __repr__(self) -> str:
        return f"a slice of tensor '{self.name}'"


@record(frozen=False, eq=False)
class Transfer:
    """A copy that was started."""

    ops: list[Operation]
    span: Span
    waited: bool = False

    def __repr__(self) -> str:
        return "a copy"


@record(frozen=False, eq=False)
class TransferGroup:
    """``ttl.GroupTransfer()``: copies that are waited for together."""

    depth: int  # of loops and branches where it was made
    transfers: list[Transfer] = field(default_factory=list[Transfer])


@record
class Text:
    """An f-string with parts that are known per core or iteration only; ``print`` takes it."""

    parts: tuple[Any, ...]

    def describe(self) -> str:
        return "text with a number that is known per core or iteration only"


@record(eq=False)
class BoundMethod:
    """``block.store``, ``buffer.wait`` … before it is called."""

    owner: Any
    name: str

    def __repr__(self) -> str:
        return f"the method {self.name}"


@record
class Unusable:
    """A name that has no single value here. ``reason`` completes the sentence "'x' …"."""

    reason: str
    help: str
    loop: CountedLoop | None = None  # the one that assigned it


@record(frozen=False)
class Frame:
    """Names of one function: the thread itself, or a helper being inlined."""

    function_name: str
    file: str
    names: dict[str, Any] = field(default_factory=dict[str, Any])
    outer: Mapping[str, Any] = field(default_factory=dict[str, Any])  # captured and global names
    depth: int = 0  # of loops and branches around the call
    code: Any = None  # of the function, to notice recursion
    returned: Any = None
    has_returned: bool = False
    at_yield: Callable[[Any, ast.AST], None] | None = None  # of a helper that yields: the body of the loop over it
    parent: Frame | None = None  # of a function written inside another: that one's
    shared: dict[str, Frame] = field(default_factory=dict[str, "Frame"])  # names declared ``nonlocal``, and whose they are


@record(frozen=False, eq=False)
class LocalFunction:
    """A function or lambda written inside a thread."""

    node: ast.FunctionDef | ast.Lambda
    name: str
    frame: Frame
    signature: inspect.Signature

    def __repr__(self) -> str:
        return f"function '{self.name}'"
