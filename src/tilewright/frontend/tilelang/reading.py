"""What is known while a kernel is read: names, the statements so far, the parallel loop one is in."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from tilewright.diagnostics import Diagnostic, KernelError, Note, Span, fail
from tilewright.frontend.tilelang.data_indices import HELP, integer_of
from tilewright.frontend.tilelang.dtypes import element_name, tile_dtype
from tilewright.frontend.tilelang.fragment_parts import FragmentParts
from tilewright.frontend.tilelang.symbols import (
    Arithmetic,
    Expression,
    Fragment,
    Index,
    Read,
    Tensor,
    is_integer,
    raw,
)
from tilewright.frontend.tilelang.tile_program import Assign, Load, Place, Statement, Window
from tilewright.frontend.tilelang.trouble import Trouble
from tilewright.frontend.tilelang.workspaces import Workspaces
from tilewright.integers import Leaf, Value, constant_difference, is_int_like
from tilewright.records import record
from tilewright.source_places import span_of_node

_reading: ContextVar[Reading | None] = ContextVar("tilewright_tilelang_reading", default=None)


def wrong_index_count(owner: Fragment | Tensor, count: int, remedy: str = "one index per dimension") -> Trouble:
    kind = "fragment" if isinstance(owner, Fragment) else "tensor"
    return Trouble("TW109", f"{kind} '{owner.name}' has {len(owner.shape)} dimensions, found {count} indices", help=remedy)


def _part_of(fragment: Fragment) -> Trouble:
    return Trouble("TW109", f"part of fragment '{fragment.name}'", help="copy or compute whole fragments; allocate smaller ones")


def current(what: str) -> Reading:
    found = _reading.get()
    if found is None:
        from tilewright.lang.building import caller_span

        raise fail(
            "TW009", f"{what} outside a kernel", caller_span(), help="use it in a function marked @T.prim_func or @tilelang.jit"
        )
    return found


@record(eq=False)
class Corner(Arithmetic):
    """``A[by * 64, bx * 64]``: where a copy starts, and the other side says how much; or, in an expression, that element."""

    tensor: Tensor
    starts: tuple[Value, ...]

    def as_expression(self) -> Expression:
        return TensorElement(self.tensor, self.starts)


@dataclass(frozen=True, eq=False, slots=True)
class TensorElement(Expression):
    """An element of a tensor inside ``T.Parallel``."""

    tensor: Tensor
    indices: tuple[Value, ...]


@record(frozen=False)
class Launch:
    """``T.Kernel(…)``."""

    grid: tuple[int, ...]
    variables: tuple[Leaf, ...]
    body: list[Statement] = field(default_factory=list[Statement])


class Reading:
    def __init__(self, file: str, node: ast.AST) -> None:
        self.place = Place(file, node)
        self.tensors: list[Tensor] = []
        self.launch: Launch | None = None
        self.bodies: list[list[Statement]] = []
        self.loop_variables: list[Leaf] = []  # of the loops around the current statement
        self.parts = FragmentParts()
        self.workspaces = Workspaces()
        self.valued: set[Fragment] = set()  # fragments that were given a value so far
        self.parallel: dict[Leaf, int] = {}  # variables of the T.Parallel loop one is in, and their extents
        self.conditions: list[Expression] = []  # of the ifs inside it
        self.scalars: dict[Fragment, Any] = {}  # what buffers of one element hold
        self.loaded: dict[Any, Fragment] = {}  # tensor elements read in this T.Parallel body
        self.stages = 2  # of the innermost T.Pipelined
        self.pipelined = False  # in one
        self.notes: list[Diagnostic] = []
        self.depth = 0  # of macros
        self.returned: Any = None
        self._leaves = 0
        self._fragments = 0

    # Making things ----------------------------------------------------------------------------------------------------

    def leaf(self, name: str, low: int, high: int) -> Leaf:
        self._leaves += 1
        return Leaf(self._leaves, name, low, max(low, high))

    def fragment(self, shape: Any, dtype: Any, scope: str, name: str = "") -> Fragment:
        sizes: tuple[Any, ...] = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        if not sizes or not all(is_integer(size) and not isinstance(size, Index) for size in sizes):
            raise Trouble(
                "TW108", f"the shape {shape!r} is not known at compile time", help="give constants", word=f"alloc_{scope}"
            )
        self._fragments += 1
        kept = tuple(int(size) for size in sizes)
        element = element_name(dtype)
        return Fragment(name, kept, element, tile_dtype(element, self), scope, self.place, self._fragments)

    def emit(self, statement: Statement) -> None:
        if not self.bodies:
            raise Trouble("TW009", "an operation on blocks outside 'with T.Kernel(…)'", help="put it inside the launch")
        statement = self.workspaces.replaced(self, statement)
        self.bodies[-1].append(statement)
        self.parts.note(statement, self.bodies[-1])
        if isinstance(statement, (Load, Assign)):
            self.valued.add(statement.target)

    # Indexing ---------------------------------------------------------------------------------------------------------

    def read_fragment(self, fragment: Fragment, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        if all(isinstance(one, slice) for one in keys):
            self._whole(fragment, keys)
            return fragment
        if len(keys) != len(fragment.shape) and not any(isinstance(one, slice) for one in keys):
            raise wrong_index_count(fragment, len(keys))
        if any(isinstance(one, slice) for one in keys):
            raise _part_of(fragment)
        if is_scalar(fragment) and fragment in self.scalars:
            return self.scalars[fragment]
        if not self.parallel:
            raise Trouble(
                "TW001",
                f"one element of fragment '{fragment.name}' outside T.Parallel",
                help="threads are not visible here: write the loop as T.Parallel, or use a whole-fragment operation",
            )
        return Read(fragment, tuple(self.integer(one) for one in keys))

    def _whole(self, fragment: Fragment, keys: Sequence[slice]) -> None:
        for size, one in zip(fragment.shape, keys, strict=False):
            start, extent = self._slice(one, size)
            if start != 0 or extent != size:
                raise _part_of(fragment)

    def read_tensor(self, tensor: Tensor, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) > len(tensor.shape):
            raise wrong_index_count(tensor, len(keys), "one index per dimension at most")
        if any(isinstance(one, slice) for one in keys) or len(keys) < len(tensor.shape):
            keys = (*keys, *([slice(None)] * (len(tensor.shape) - len(keys))))
            ranges = [self._range(one, size) for one, size in zip(keys, tensor.shape, strict=True)]
            return Window(tensor, tuple(start for start, _ in ranges), tuple(extent for _, extent in ranges))
        indices = tuple(self.integer(one) for one in keys)
        return TensorElement(tensor, indices) if self.parallel else Corner(tensor, indices)

    def _range(self, one: Any, size: int) -> tuple[Value, int]:
        return self._slice(one, size) if isinstance(one, slice) else (self.integer(one), 1)

    def _slice(self, one: slice, size: int) -> tuple[Value, int]:
        if one.step not in (None, 1):
            raise Trouble("TW008", "a slice with a step", help="copy whole blocks")
        start = 0 if one.start is None else self.integer(one.start)
        stop = size if one.stop is None else self.integer(one.stop)
        extent = constant_difference(stop, start)
        if extent is None:
            raise Trouble("TW104", "the size of this slice varies", help="write its end as start + constant")
        if extent < 1:
            raise Trouble("TW103", f"this slice has {extent} entries", help="its end must be above its start")
        return start, extent

    def integer(self, value: Any) -> Value:
        if isinstance(value, Corner):
            value = value.as_expression()
        if isinstance(value, Fragment):
            raise Trouble("TW001", "an index that is data", help=HELP)
        if isinstance(value, Expression):
            return integer_of(value)
        if not is_integer(value) or not is_int_like(raw(value)):
            raise Trouble("TW004", f"{value!r} as an index", help="indices are integers")
        return raw(value) if isinstance(value, Index) else int(value)

    # Errors -----------------------------------------------------------------------------------------------------------

    def span(self, word: str = "") -> Span:
        """The current statement, or the call of ``word`` in it."""
        node = self.place.node
        if word:
            for inner in ast.walk(node):
                function = inner.func if isinstance(inner, ast.Call) else None
                if isinstance(function, ast.Attribute) and function.attr == word:
                    return span_of_node(self.place.file, inner)
        return span_of_node(self.place.file, node)

    def located(self, trouble: Trouble) -> KernelError:
        return fail(trouble.code, trouble.message, self.span(trouble.word), help=trouble.help)

    def note(self, message: str, help: str = "") -> None:
        if all(note.message != message for note in self.notes):
            note = Diagnostic(
                code="TW106", message=message, span=self.span(), help=help, severity="note", notes=tuple[Note, ...]()
            )
            self.notes.append(note)


def is_scalar(fragment: Fragment) -> bool:
    """``T.alloc_local((1,), dtype)``: one number, which only names a value."""
    return fragment.length == 1


def bound(reading: Reading) -> Any:
    return _reading.set(reading)


def unbound(token: Any) -> None:
    _reading.reset(token)
