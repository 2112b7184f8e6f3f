"""What names in a thread may stand for, besides plain Python values, integers (`integers`) and blocks (`builder/values.py`)."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from xdsl.dialects.scf import ForOp
from xdsl.ir import Block as IRBlock
from xdsl.ir import Operation

from tilewright.builder.elements import Element
from tilewright.builder.network import RemoteSemaphore
from tilewright.builder.values import Block, CountedLoop, TensorSlice, Transfer, TransferGroup, described
from tilewright.diagnostics import Span
from tilewright.integers import Value
from tilewright.lang.buffers import CircularBuffer
from tilewright.records import record


@record
class Text:
    """An f-string with parts that are known per core or iteration only; ``print`` takes it."""

    parts: tuple[Any, ...]

    def describe(self) -> str:
        return "text with a number that is known per core or iteration only"


@record
class Signpost:
    """``with ttl.signpost("load"):``: a profile tells the time that is spent below it."""

    name: str

    def describe(self) -> str:
        return f"signpost '{self.name}'"


@record(eq=False)
class BoundMethod:
    """``block.store``, ``buffer.wait`` … before it is called."""

    owner: Any
    name: str

    def describe(self) -> str:
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

    def describe(self) -> str:
        return f"function '{self.name}'"


@record(frozen=False, eq=False)
class Carried:
    """A name that loops change, over all loops nested around the change."""

    name: str
    loop: ForOp  # the outermost
    span: Span
    start: Block | float
    buffer: CircularBuffer | None = None


@record(frozen=False, eq=False)
class Scope:
    """A carried name as the body of one loop (or branch) sees it. The value is in the buffer unless ``waited`` says otherwise."""

    carried: Carried
    body: IRBlock
    waited: Block | None = None

    def describe(self) -> str:
        return f"'{self.carried.name}', which the loop changes"


@record(eq=False)
class Branches:
    """Both ways of an ``if`` that each core decides."""

    condition: Value
    ways: tuple[IRBlock, IRBlock]
    node: ast.AST

    @property
    def op(self) -> Operation:
        op = self.ways[0].parent_op()
        assert op is not None
        return op


@record(frozen=False, eq=False)
class Parted:
    """A block value, or a copy, of which each branch has its own."""

    name: str
    branches: Branches
    values: tuple[Any, Any]
    found: Block | Transfer | None = None  # behind the branches, once somebody asks

    def describe(self) -> str:
        return described(self.values[0])


MISSING = object()  # a branch that does not assign the name


@record(frozen=False, eq=False)
class Generated:
    """A call of such a helper, before a loop runs it."""

    name: str
    node: ast.AST
    run: Callable[[Callable[[Any, ast.AST], None]], None]  # inlines the helper; its argument is called at every yield

    def describe(self) -> str:
        return f"what '{self.name}' yields"


@record
class DynamicRange:
    """``range`` with a bound that is known per core or iteration only."""

    start: Any
    stop: Any
    step: Any


class LeaveBody(Exception):
    """``break`` or ``continue`` in a loop that is unrolled; the ``with``s on the way out release their blocks."""

    def __init__(self, kind: type[ast.stmt]) -> None:
        super().__init__(kind.__name__)
        self.kind = kind


RUNTIME_VALUES = (Block, Element, Transfer, TransferGroup, TensorSlice, BoundMethod, RemoteSemaphore, Scope)
