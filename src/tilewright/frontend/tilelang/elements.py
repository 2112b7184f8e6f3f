"""Element expressions of ``T.Parallel`` as expressions on whole fragments, by the pattern of their indices.

``[i, j]`` is the fragment as it lies, ``[j, i]`` its transpose, ``[i]`` of a vector a column that is repeated, ``[j]`` a row.
Integers that depend on the element (masks) are in `positions`.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tilewright.frontend.tilelang.compute import summand
from tilewright.frontend.tilelang.dtypes import (
    FLOATS,
    fitted,
    promoted,
    simplified,
)
from tilewright.frontend.tilelang.made_tensors import PositionWriter, beyond_bounds, gathered, is_window, refuse_data, sum_of
from tilewright.frontend.tilelang.reading import Reading, wrong_index_count
from tilewright.frontend.tilelang.symbols import (
    ALONG,
    COLUMN_FORM,
    ROW_FORM,
    SAME,
    TRANSPOSED,
    Apply,
    Cast,
    Expression,
    Fragment,
    Number,
    Position,
    Read,
    Reduction,
    Tensor,
    TensorElement,
    Total,
    Trouble,
    expression,
    rebuilt,
    whole,
)
from tilewright.frontend.tilelang.tile_program import Assign, Branch, Load, Loop, Statement, Store, Window, walk
from tilewright.integers import Leaf, Node, Value, is_truth, linear, make
from tilewright.narrowing import is_tuple

Axes = tuple[Leaf | None, Leaf | None]  # variables of the target's rows and columns


def assign_whole(reading: Reading, target: Fragment, value: Any) -> None:
    """``C = A + B`` on fragments, outside ``T.Parallel``."""
    new = fitted(target.dtype, _whole(expression(value), target))
    reading.emit(Assign(target, simplified(new, target.format), reading.place))


def _whole(value: Expression, target: Fragment) -> Expression:
    if isinstance(value, TensorElement) or (isinstance(value, Read) and value.indices is not None):
        raise Trouble("TW001", "an element outside T.Parallel", help="use whole fragments here, or write the loop as T.Parallel")
    if isinstance(value, Read):
        if value.fragment.shape != target.shape:
            message = f"fragment '{value.fragment.name}' {value.fragment.shape} does not fit '{target.name}' {target.shape}"
            raise Trouble("TW101", message, help="both sides need the same shape; T.Parallel loops can broadcast")
        return promoted(whole(value.fragment))
    if isinstance(value, (Position, Total)):
        raise Trouble("TW007", "a number that only the device knows in an expression on fragments", help="use T.Parallel")
    return rebuilt(value, partial(_whole, target=target))


def store_element(reading: Reading, target: Any, key: Any, value: Any) -> None:
    """``target[i, j] = value`` inside ``T.Parallel``."""
    keys = key if is_tuple(key) else (key,)
    if isinstance(target, Tensor):
        _store_to_tensor(reading, target, keys, value)
        return
    if not isinstance(target, Fragment):
        raise Trouble("TW001", "an assignment to an element of this", help="assign to elements of fragments or tensors")
    indices = tuple(reading.integer(one) for one in keys)
    if len(indices) != len(target.shape):
        raise wrong_index_count(target, len(indices))
    part = None if _covers(reading, target, indices) else reading.parts.written(reading, target, indices)
    _assign(reading, *(part or (target, indices)), expression(value))


def _covers(reading: Reading, target: Fragment, indices: tuple[Value, ...]) -> bool:
    extents: dict[Any, int] = reading.parallel
    return all(size in (1, extents.get(index)) for index, size in zip(indices, target.shape, strict=True))


def element_assigned(reading: Reading, target: Fragment, variables: dict[Leaf, int], value: Expression) -> None:
    """An assignment that the reader makes itself: ``for variables in T.Parallel(…): target[variables] = value``."""
    around = reading.parallel, reading.loaded, reading.conditions
    reading.parallel, reading.loaded, reading.conditions = dict(variables), {}, []
    _assign(reading, target, tuple(variables), value)
    reading.parallel, reading.loaded, reading.conditions = around


def _assign(reading: Reading, target: Fragment, indices: tuple[Value, ...], value: Expression) -> None:
    axes = _target_axes(reading, target, indices)
    resolver = Resolver(reading, axes, target)
    new = fitted(target.dtype, resolver.resolve(value))
    for condition in reading.conditions:
        old = whole(target)
        new = Apply("where", (resolver.resolve(condition), new, old))
    reading.emit(Assign(target, simplified(new, target.format), reading.place))
    for known in [k for k, fragment in reading.loaded.items() if fragment is target]:
        del reading.loaded[known]


def _target_axes(reading: Reading, target: Fragment, indices: tuple[Value, ...]) -> Axes:
    used = [index for index in indices if index in reading.parallel]
    fixed = [index for index in indices if index not in reading.parallel]
    sizes = [size for size, index in zip(target.shape, indices, strict=True) if index in reading.parallel]
    covered = all(reading.parallel[leaf] == size for leaf, size in zip(used, sizes, strict=True))
    if any(index != 0 for index in fixed) or len(set(used)) != len(used) or len(used) + target.shape.count(1) < len(target.shape):
        remedy = "index it with the variables of T.Parallel themselves, as in C[i, j]"
        raise Trouble("TW001", f"this store does not address '{target.name}' element by element", help=remedy)
    if not covered:
        extents = tuple(reading.parallel[leaf] for leaf in used)
        remedy = "loop over the whole fragment, or allocate one of that size"
        raise Trouble("TW104", f"T.Parallel covers {extents} of fragment '{target.name}' {target.shape}", help=remedy)
    return (used[0], used[1]) if len(used) == 2 else (used[0], None)


def depends(value: Value, leaves: Container[Any]) -> bool:
    if isinstance(value, Node):
        return any(depends(argument, leaves) for argument in value.args)
    return value in leaves


class Resolver:
    def __init__(self, reading: Reading, axes: Axes, target: Fragment) -> None:
        self.reading, self.axes, self.target = reading, axes, target
        self.vector = axes[1] is None
        self.positions = PositionWriter(reading, axes, self._read)

    def resolve(self, value: Expression) -> Expression:
        if isinstance(value, Read):
            return promoted(self._read(value))
        if isinstance(value, TensorElement):
            if not any(depends(index, self.reading.parallel) for index in value.indices):
                refuse_data(value.indices, f"a single element of tensor '{value.tensor.name}'")
                return self.positions.element(value.tensor, value.indices)
            return promoted(self._read(_loaded(self.reading, value)))
        if isinstance(value, Apply) and value.op == "where" and (element := _inside_bounds(self.reading, value)) is not None:
            return self.resolve(element)
        if isinstance(value, Total):
            return self._read(_spread(self.reading, value, self.axes[1] or self.axes[0]))
        if isinstance(value, Position):
            return self.positions.truth(value.value) if is_truth(value.value) else self.positions.value(value.value)
        if isinstance(value, Cast) and isinstance(value.argument, Position) and value.dtype in FLOATS:
            return self.resolve(value.argument)  # positions are whole numbers in float32
        return rebuilt(value, self.resolve)

    def _read(self, value: Read) -> Read:
        fragment, indices = value.fragment, value.indices
        if indices is None:
            raise Trouble("TW004", f"the whole of fragment '{fragment.name}' inside T.Parallel", help="read an element of it")
        leaves = [index for index in indices if index in self.reading.parallel]
        sizes = [size for index, size in zip(indices, fragment.shape, strict=True) if index in self.reading.parallel]
        if leaves != list(indices) or sizes != [self.reading.parallel[leaf] for leaf in leaves]:
            part = self.reading.parts.read(self.reading, fragment, indices)
            if part is not None:
                return self._read(part)
        known = all(index in self.reading.parallel or index == 0 for index in indices)
        if not known or len(leaves) + fragment.shape.count(1) < len(fragment.shape) or not leaves:
            found = self.reading.parts.gathered(self.reading, fragment, indices) if leaves or not known else None
            if found is not None:
                return self._read(found)
            message = f"this index of '{fragment.name}' is neither the element itself, nor its transpose, nor its row or column"
            remedy = "offsets, strides and gathers are not supported: copy the part you need to a fragment of its own"
            raise Trouble("TW001", message, help=remedy)
        for leaf, size in zip(leaves, sizes, strict=True):
            if self.reading.parallel[leaf] != size:
                extent = self.reading.parallel[leaf]
                raise Trouble("TW101", f"T.Parallel runs over {extent} entries, '{fragment.name}' has {fragment.shape}")
        return Read(fragment, None, self._form(fragment, leaves))

    def _form(self, fragment: Fragment, leaves: Sequence[Value]) -> str:
        row, column = self.axes
        if len(leaves) == 1:
            if self.vector:
                return self._required(ALONG, leaves[0] == row, fragment)
            return COLUMN_FORM if leaves[0] == row else self._required(ROW_FORM, leaves[0] == column, fragment)
        if list(leaves) == [row, column]:
            return SAME
        return self._required(TRANSPOSED, list(leaves) == [column, row], fragment)

    def _required(self, form: str, fits: bool, fragment: Fragment) -> str:
        if not fits:
            message = f"'{fragment.name}' is read along a dimension that '{self.target.name}' does not have"
            raise Trouble("TW001", message, help="reduce it first: T.reduce_sum, T.reduce_max, T.reduce_min")
        return form


def _spread(reading: Reading, value: Total, leaf: Leaf | None) -> Read:
    """A single number as a vector along a parallel variable: columns of it, whose rows are all the same."""
    assert leaf is not None
    extent, key = reading.parallel[leaf], (value.repeated, leaf)
    if key not in reading.loaded:
        name, rows = value.repeated.name, value.repeated.length
        square = reading.fragment((rows, extent), value.repeated.dtype, "fragment", name)
        row, column = reading.leaf("i", 0, rows - 1), reading.leaf("j", 0, extent - 1)
        element_assigned(reading, square, {row: rows, column: extent}, Read(value.repeated, (row,)))
        vector = reading.fragment((extent,), value.repeated.dtype, "fragment", name)
        reading.emit(Assign(vector, Reduction("max", 0, Read(square, None, SAME), square.shape), reading.place))
        reading.loaded[key] = vector
    return Read(reading.loaded[key], (leaf,))


# Elements of tensors ------------------------------------------------------------------------------------------------------


def _window(reading: Reading, tensor: Tensor, indices: tuple[Value, ...]) -> tuple[Window, tuple[Leaf, ...]]:
    """The rectangle that a tensor's indices run over, and the parallel variables along its dimensions."""
    starts: list[Value] = []
    extents: list[int] = []
    leaves: list[Leaf] = []
    for index in indices:
        terms, _ = linear(index)
        own = [(term, factor) for term, factor in terms if term in reading.parallel]
        if len(own) > 1 or any(factor != 1 for _, factor in own):
            remedy = "index it with start + variable"
            raise Trouble("TW001", f"a stride or a gather in an index of tensor '{tensor.name}'", help=remedy)
        if own:
            leaf = own[0][0]
            assert isinstance(leaf, Leaf)
            leaves.append(leaf)
            extents.append(reading.parallel[leaf])
            index = make("-", index, leaf)
            index = _rebased(index)
        else:
            extents.append(1)
        starts.append(index)
    if not leaves:
        remedy = "read whole blocks: scalars do not reach the tile units"
        raise Trouble("TW001", f"a single element of tensor '{tensor.name}'", help=remedy)
    return Window(tensor, tuple(starts), tuple(extents)), tuple(leaves)


def _rebased(value: Value) -> Value:
    """``(base + i) - i`` written as ``base``."""
    terms, constant = linear(value)
    return make("+", sum_of(sorted(terms, key=lambda item: str(item[0]))), constant)


def _inside_bounds(reading: Reading, value: Apply) -> TensorElement | None:
    """``T.if_then_else(inside, A[…], 0)`` of gathered elements, which are zero outside in any case."""
    condition, element, otherwise = value.arguments
    if not isinstance(element, TensorElement) or not isinstance(otherwise, Number) or otherwise.value != 0:
        return None
    if is_window(reading.parallel, element.indices) or beyond_bounds([condition], element.tensor, element.indices):
        return None
    return element


def _loaded(reading: Reading, element: TensorElement) -> Read:
    if not is_window(reading.parallel, element.indices):
        return gathered(reading, element.tensor, element.indices)
    window, leaves = _window(reading, element.tensor, element.indices)
    key = (element.tensor.index, element.indices)
    shape = tuple(reading.parallel[leaf] for leaf in leaves)
    return Read(reading.loaded_once(key, window, f"{element.tensor.name}_block", shape), tuple(leaves))


def _store_to_tensor(reading: Reading, tensor: Tensor, keys: tuple[Any, ...], value: Any) -> None:
    indices = tuple(reading.integer(one) for one in keys)
    if len(indices) != len(tensor.shape):
        raise wrong_index_count(tensor, len(indices))
    refuse_data(indices, f"a store to tensor '{tensor.name}'")
    if beyond_bounds(reading.conditions, tensor, indices):
        remedy = "blocks are stored whole: choose the values with T.if_then_else (bounds of the tensor may stand as conditions)"
        raise Trouble("TW001", f"a store to tensor '{tensor.name}' under a condition on elements", help=remedy)
    window, leaves = _window(reading, tensor, indices)
    shape = tuple(reading.parallel[leaf] for leaf in leaves)
    fragment = reading.fragment(shape, tensor.dtype, "fragment", f"{tensor.name}_block")
    conditions, reading.conditions = reading.conditions, []
    _assign(reading, fragment, tuple(leaves), expression(value))
    reading.conditions = conditions
    reading.emit(Store(fragment, window, reading.place))


class Predication:
    """``if Mask[bx, k] != 0:`` outside ``T.Parallel``: a branch on data that only the device has.

    Threads of a core cannot branch on it together, so what stands under the ``if`` is done in any case, and each fragment that
    had a value before (``known``) keeps it where the condition does not hold.
    """

    def __init__(self, reading: Reading, condition: Expression, known: set[Fragment]) -> None:
        self.reading, self.condition, self.known = reading, condition, known
        self.flags: dict[tuple[int, ...], Fragment] = {}

    def emit(self, statements: Sequence[Statement]) -> None:
        changed = [s.target for s in walk(statements) if isinstance(s, (Load, Assign)) and s.target in self.known]
        for shape in dict.fromkeys(target.shape for target in changed):
            self.flags[shape] = self._flag(shape)
        self._all(statements)

    def _all(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            self._one(statement)

    def _nested(self, statements: Sequence[Statement]) -> list[Statement]:
        body: list[Statement] = []
        self.reading.bodies.append(body)
        self._all(statements)
        self.reading.bodies.pop()
        return body

    def _one(self, statement: Statement) -> None:
        reading = self.reading
        reading.place = statement.place
        if isinstance(statement, Store):
            remedy = "store in any case, behind the if; what the fragment holds by then may depend on the condition"
            raise Trouble("TW007", "a store to a tensor under an if on data", help=remedy)
        if isinstance(statement, Loop):
            statement = replace(statement, body=self._nested(statement.body))
        elif isinstance(statement, Branch):
            then, otherwise = self._nested(statement.then), self._nested(statement.otherwise)
            statement = replace(statement, then=then, otherwise=otherwise)
        elif isinstance(statement, Load) and statement.target in self.known:
            target = statement.target
            loaded = reading.fragment(target.shape, target.dtype, target.scope, f"{target.name}_new")
            reading.emit(replace(statement, target=loaded))
            chosen = self._chosen(Assign(target, whole(loaded), statement.place))
            statement = Assign(target, chosen, statement.place)
        elif isinstance(statement, Assign) and statement.target in self.known:
            statement = replace(statement, value=self._chosen(statement))
        reading.emit(statement)

    def _chosen(self, statement: Assign) -> Expression:
        target = statement.target
        old, flag = whole(target), whole(self.flags[target.shape])
        added = summand(statement)
        if added is not None:  # a sum stays one, so that it can stay in DST
            return Apply("+", (old, Apply("where", (flag, added, Number(0.0)))))
        return Apply("where", (flag, statement.value, old))

    def _flag(self, shape: tuple[int, ...]) -> Fragment:
        """The condition, repeated over a fragment of this shape."""
        reading = self.reading
        flag = reading.fragment(shape, "float32", "fragment", "holds")
        variables = {reading.leaf(name, 0, size - 1): size for name, size in zip("ij", shape, strict=False)}
        element_assigned(reading, flag, variables, self.condition)
        return flag
