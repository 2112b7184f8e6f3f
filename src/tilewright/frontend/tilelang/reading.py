"""What is known while a kernel is read: names, the statements so far, the parallel loop one is in, parts of fragments."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import field
from typing import Any

from tilewright import hardware
from tilewright.diagnostics import Diagnostic, KernelError, Note, Span, fail
from tilewright.dialects.walking import span_of_node
from tilewright.frontend.tilelang.dtypes import tile_dtype
from tilewright.frontend.tilelang.made_tensors import HELP, integer_of
from tilewright.frontend.tilelang.symbols import (
    Corner,
    Expression,
    Fragment,
    Index,
    Read,
    Tensor,
    TensorElement,
    Trouble,
    expression,
    is_integer,
    raw,
    whole,
)
from tilewright.frontend.tilelang.tile_program import Assign, Load, Place, Statement, Store, Window, reads
from tilewright.integers import Leaf, Value, constant_difference, is_int_like, linear, make
from tilewright.lang.tilelang_tensors import element_name
from tilewright.narrowing import as_tuple, is_slice, is_tuple
from tilewright.records import record

_reading: ContextVar[Reading | None] = ContextVar("tilewright_tilelang_reading", default=None)


def wrong_index_count(owner: Fragment | Tensor, count: int, remedy: str = "one index per dimension") -> Trouble:
    kind = "fragment" if isinstance(owner, Fragment) else "tensor"
    return Trouble("TW109", f"{kind} '{owner.name}' has {len(owner.shape)} dimensions, found {count} indices", help=remedy)


def _part_of(fragment: Fragment) -> Trouble:
    return Trouble("TW109", f"part of fragment '{fragment.name}'", help="copy or compute whole fragments; allocate smaller ones")


def current(what: str) -> Reading:
    found = _reading.get()
    if found is None:
        from tilewright.diagnostics import caller_span

        remedy = "use it in a function marked @T.prim_func or @tilelang.jit"
        raise fail("TW009", f"{what} outside a kernel", caller_span(), help=remedy)
    return found


@record(frozen=False)
class Launch:
    """``T.Kernel(…)``."""

    grid: tuple[int, ...]
    variables: tuple[Leaf, ...]
    body: list[Statement] = field(default_factory=list[Statement])


class Reading:
    def __init__(self, file: str, node: ast.AST) -> None:
        self.place: Place = Place(file, node)
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
        self._leaves = 0
        self._fragments = 0

    # Making things ----------------------------------------------------------------------------------------------------

    def leaf(self, name: str, low: int, high: int) -> Leaf:
        self._leaves += 1
        return Leaf(self._leaves, name, low, max(low, high))

    def fragment(self, shape: Any, dtype: Any, scope: str, name: str = "") -> Fragment:
        sizes: tuple[Any, ...] = as_tuple(shape)
        if not sizes or not all(is_integer(size) and not isinstance(size, Index) for size in sizes):
            remedy = "give constants"
            raise Trouble("TW108", f"the shape {shape!r} is not known at compile time", help=remedy, word=f"alloc_{scope}")
        self._fragments += 1
        kept = tuple(int(size) for size in sizes)
        element = element_name(dtype)
        return Fragment(name, kept, element, tile_dtype(element, self), scope, self.place, self._fragments)

    def made_tensor(
        self, hint: str, shape: tuple[int, ...], dtype: str, format: str, made: str, origin: Any = None, joint: str = ""
    ) -> Tensor:
        """A tensor that the launcher adds; ``joint`` stands before the number of a name that is taken."""
        name, number, taken = hint, 1, {tensor.name for tensor in self.tensors}
        while name in taken:
            name, number = f"{hint}{joint}{number}", number + 1
        self.tensors.append(Tensor(name, shape, dtype, format, len(self.tensors), made, origin))
        return self.tensors[-1]

    def loaded_once(self, key: Any, window: Window, name: str, shape: tuple[int, ...]) -> Fragment:
        """A block of a tensor, loaded where this T.Parallel body first needs it."""
        if key not in self.loaded:
            fragment = self.fragment(shape, window.tensor.dtype, "fragment", name)
            self.emit(Load(fragment, window, self.place))
            self.loaded[key] = fragment
        return self.loaded[key]

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
        keys = key if is_tuple(key) else (key,)
        if all(is_slice(one) for one in keys):
            self._whole(fragment, keys)
            return fragment
        if len(keys) != len(fragment.shape) and not any(is_slice(one) for one in keys):
            raise wrong_index_count(fragment, len(keys))
        if any(is_slice(one) for one in keys):
            raise _part_of(fragment)
        if is_scalar(fragment) and fragment in self.scalars:
            return self.scalars[fragment]
        if not self.parallel:
            remedy = "threads are not visible here: write the loop as T.Parallel, or use a whole-fragment operation"
            raise Trouble("TW001", f"one element of fragment '{fragment.name}' outside T.Parallel", help=remedy)
        return Read(fragment, tuple(self.integer(one) for one in keys))

    def _whole(self, fragment: Fragment, keys: Sequence[slice]) -> None:
        for size, one in zip(fragment.shape, keys, strict=False):
            start, extent = self._slice(one, size)
            if start != 0 or extent != size:
                raise _part_of(fragment)

    def read_tensor(self, tensor: Tensor, key: Any) -> Any:
        keys = key if is_tuple(key) else (key,)
        if len(keys) > len(tensor.shape):
            raise wrong_index_count(tensor, len(keys), "one index per dimension at most")
        if any(is_slice(one) for one in keys) or len(keys) < len(tensor.shape):
            keys = (*keys, *([slice(None)] * (len(tensor.shape) - len(keys))))
            ranges = [self._range(one, size) for one, size in zip(keys, tensor.shape, strict=True)]
            return Window(tensor, tuple(start for start, _ in ranges), tuple(extent for _, extent in ranges))
        indices = tuple(self.integer(one) for one in keys)
        return TensorElement(tensor, indices) if self.parallel else Corner(tensor, indices)

    def _range(self, one: Any, size: int) -> tuple[Value, int]:
        return self._slice(one, size) if is_slice(one) else (self.integer(one), 1)

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
            value = expression(value)
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


Ranges = tuple[tuple[int, int], ...]  # start and size along each dimension
Part = tuple[Fragment, tuple[Leaf, ...]]  # and the parallel variables along it


@record(frozen=False)
class Whole:
    """What is known of a fragment: where it was loaded from, or the parts it was given, and in which piece of code."""

    body: list[Statement]
    window: Window | None = None
    parts: dict[Ranges, Fragment] = field(default_factory=dict[Ranges, Fragment])


class FragmentParts:
    """Parts of fragments: ``x[i, j + 64]`` in a loop over half of them.

    Tiles of a fragment stay together, so a part is a fragment of its own. One that is read is loaded again from where the whole
    came from; parts that are written one by one are stored one by one. Both only within one straight piece of code: behind a loop
    or a branch nobody could tell what the whole holds.
    """

    def __init__(self) -> None:
        self.wholes: dict[Fragment, Whole] = {}

    def note(self, statement: Statement, body: list[Statement]) -> None:
        """A load or an assignment gives the whole of its target another value; nothing may read a whole that has parts."""
        for fragment in reads(statement):
            if fragment in self.wholes and self.wholes[fragment].parts:
                message = f"fragment '{fragment.name}' {fragment.shape} was given values in parts and is used as a whole"
                remedy = "parts that cover all of it can be stored to a tensor; else use a fragment for each part"
                raise Trouble("TW104", message, help=remedy)
        if isinstance(statement, Load):
            self.wholes[statement.target] = Whole(body, statement.window)
        elif isinstance(statement, Assign):
            copied = self.wholes.get(statement.value.fragment) if isinstance(statement.value, Read) else None
            self.wholes.pop(statement.target, None)
            if copied is not None and copied.body is body and copied.window is not None and not copied.parts:
                self.wholes[statement.target] = Whole(body, copied.window)  # the same elements, from the same place

    def read(self, reading: Reading, fragment: Fragment, indices: tuple[Value, ...]) -> Read | None:
        found, whole = _ranges(reading, fragment, indices), self.wholes.get(fragment)
        if found is None or whole is None or whole.body is not reading.bodies[-1]:
            return None
        ranges, leaves = found
        if ranges not in whole.parts:
            if whole.window is None or whole.parts:
                return None
            if (fragment, ranges) not in reading.loaded:
                part = reading.loaded[fragment, ranges] = _part(reading, fragment, ranges)
                reading.emit(Load(part, narrowed(whole.window, ranges), reading.place))
            return Read(reading.loaded[fragment, ranges], leaves)
        return Read(whole.parts[ranges], leaves)

    def gathered(self, reading: Reading, fragment: Fragment, indices: tuple[Value, ...]) -> Read | None:
        """``x[i, j // 2]`` of a fragment that was loaded: the launcher puts these elements of the tensor in order."""
        from tilewright.frontend.tilelang.made_tensors import gathered

        whole = self.wholes.get(fragment)
        if whole is None or whole.body is not reading.bodies[-1] or whole.window is None or whole.parts:
            return None
        places = list(whole.window.starts)
        along = [axis for axis, extent in enumerate(whole.window.extents) if extent > 1]
        if len(along) != len(indices):
            return None
        for axis, index in zip(along, indices, strict=True):
            places[axis] = make("+", places[axis], index)
        return gathered(reading, whole.window.tensor, tuple(places))

    def written(self, reading: Reading, fragment: Fragment, indices: tuple[Value, ...]) -> Part | None:
        """The part that a store to these elements gives a value, and the variables along it."""
        found = _ranges(reading, fragment, indices)
        if found is None or fragment in reading.valued:
            return None
        ranges, leaves = found
        whole = self.wholes.get(fragment)
        if whole is None or whole.body is not reading.bodies[-1]:
            whole = self.wholes[fragment] = Whole(reading.bodies[-1])
        if ranges not in whole.parts:
            whole.parts[ranges] = _part(reading, fragment, ranges)
        return whole.parts[ranges], leaves

    def stored(self, reading: Reading, fragment: Fragment) -> dict[Ranges, Fragment]:
        """The parts that make up the whole; empty if it has none."""
        whole = self.wholes.get(fragment)
        if whole is None or whole.body is not reading.bodies[-1]:
            return {}
        covered = sum(math.prod(size for _, size in ranges) for ranges in whole.parts)
        apart = all(_apart(a, b) for a in whole.parts for b in whole.parts if a is not b)
        return whole.parts if covered == fragment.length and apart else {}


def _part(reading: Reading, fragment: Fragment, ranges: Ranges) -> Fragment:
    return reading.fragment(tuple(size for _, size in ranges), fragment.dtype, fragment.scope, f"{fragment.name}_part")


def narrowed(window: Window, ranges: Ranges) -> Window:
    """The part of a window that a part of its fragment lies in."""
    starts, extents = list(window.starts), list(window.extents)
    along = [axis for axis, extent in enumerate(window.extents) if extent > 1]
    for axis, (start, size) in zip(along, ranges, strict=True):
        starts[axis], extents[axis] = make("+", starts[axis], start), size
    return Window(window.tensor, tuple(starts), tuple(extents))


def _ranges(reading: Reading, fragment: Fragment, indices: tuple[Value, ...]) -> tuple[Ranges, tuple[Leaf, ...]] | None:
    """Which elements these are, if each index is a parallel variable and a number of whole tiles."""
    ranges: list[tuple[int, int]] = []
    leaves: list[Any] = []
    for index, extent in zip(indices, fragment.shape, strict=True):
        terms, start = linear(index)
        (leaf, factor), *others = terms or {(0, 0)}
        if others or factor != 1 or leaf not in reading.parallel or leaf in leaves:
            return None
        size = reading.parallel[leaf]
        if start % hardware.TILE_ROWS or start < 0 or start + size > extent:
            return None
        ranges.append((start, size))
        leaves.append(leaf)
    return tuple(ranges), tuple(leaves)


def _apart(first: Ranges, second: Ranges) -> bool:
    return any(a + n <= b or b + m <= a for (a, n), (b, m) in zip(first, second, strict=True))


WORKSPACE = "workspace"


def alloc_global(reading: Reading, shape: Any, dtype: Any = "float32", *_scope: Any, **_hints: Any) -> Tensor:
    sizes = as_tuple(shape)
    element = element_name(dtype)
    # It is no argument of the kernel, so its number means nothing.
    return Tensor("workspace", tuple(int(size) for size in sizes), element, tile_dtype(element, reading), -1, WORKSPACE)


class Workspaces:
    """``T.alloc_global``: what the blocks of each workspace hold, and in which piece of code they were stored.

    Reader and writer do not wait for each other, so nothing goes out and comes back. What a block stores there and loads again in
    the same piece of code stays in the core, as a fragment. What another block or iteration stored would need the memory, and is
    refused.
    """

    def __init__(self) -> None:
        self.blocks: dict[tuple[Tensor, tuple[Value, ...], tuple[int, ...]], tuple[list[Statement], Fragment]] = {}

    def replaced(self, reading: Reading, statement: Statement) -> Statement:
        """A store to a workspace, or a load from one, as the assignment it is; other statements as they are."""
        if not isinstance(statement, (Load, Store)) or statement.window.tensor.made != WORKSPACE:
            return statement
        window, body = statement.window, reading.bodies[-1]
        key = (window.tensor, window.starts, window.extents)
        if isinstance(statement, Store):
            for other in [other for other in self.blocks if other[0] is window.tensor and other != key]:
                del self.blocks[other]  # it may overlap
            source = statement.source
            kept = reading.fragment(source.shape, window.tensor.dtype, "fragment", f"{source.name}_kept")
            self.blocks[key] = (body, kept)
            return Assign(kept, whole(source), statement.place)
        found = self.blocks.get(key)
        if found is None or found[0] is not body:
            message = "a block of T.alloc_global is read that was not stored in the same piece of code"
            remedy = "blocks do not wait for each other: make it a parameter, and write one function per launch"
            raise Trouble("TW001", message, help=remedy, word="copy")
        return Assign(statement.target, whole(found[1]), statement.place)
