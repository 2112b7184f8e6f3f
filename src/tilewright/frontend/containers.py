"""What is made of several values: tuples, lists, tables, text, slices of tensors; what is taken out of them, and what names and
elements are assigned.
"""

from __future__ import annotations

import ast
import itertools
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from tilewright.builder.buffers import part_of, require_tiles
from tilewright.builder.movement import Range, write_slice
from tilewright.builder.network import number
from tilewright.builder.values import Block, Choice, Region, TensorSlice, described
from tilewright.diagnostics import counted
from tilewright.frontend import carried
from tilewright.frontend.choices import chosen
from tilewright.frontend.debugging import spelt
from tilewright.frontend.thread import RUNTIME_VALUES, Scope, Text, Thread, native, truth
from tilewright.grid import Field, cores_of
from tilewright.integers import Leaf, Value, bounds, constant_difference, is_dynamic, is_int_like, leaves, make, replaced
from tilewright.lang.buffers import CircularBuffer
from tilewright.lang.tensors import KernelTensor
from tilewright.narrowing import class_of, is_dict, is_list, is_row, is_slice, is_tuple
from tilewright.program import ROWS

UNROLL_LIMIT = 4096


TURNS_LIMIT = 4096  # of the loops around a table, looked at for each core
SELECT_LIMIT = 64  # entries of a table that is a chain of selects
ARGUMENTS_LIMIT = 128  # numbers of a table that one core is given
Comprehension = ast.ListComp | ast.GeneratorExp | ast.DictComp | ast.SetComp
CONVERSIONS: dict[int, Callable[[Any], str]] = {ord("r"): repr, ord("a"): ascii, ord("s"): str}  # {x!r} in an f-string


def sequence(thread: Thread, node: ast.Tuple | ast.List) -> Any:
    values: list[Any] = []
    for element in node.elts:
        if isinstance(element, ast.Starred):
            values += list(static_sequence(thread, thread.evaluate(element.value), element))
        else:
            values.append(thread.evaluate(element))
    return tuple(values) if isinstance(node, ast.Tuple) else thread.remember(values)


def table(thread: Thread, node: ast.Dict) -> dict[Any, Any]:
    """A table of this thread, known at compile time."""
    found: dict[Any, Any] = {}
    thread.remember(found)
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            found.update(native(thread, value, dict, thread.evaluate(value)))
            continue
        name = thread.evaluate(key)
        if is_dynamic(name):
            raise thread.error("TW007", "a dictionary's keys must be known at compile time", key, help="use an if, or a tuple")
        native(thread, key, found.__setitem__, name, thread.evaluate(value))
    return found


def set_element(thread: Thread, target: ast.Subscript, value: Any, node: ast.AST) -> None:
    """``values[i] = x``. Containers exist at compile time, so one may change only where it was made."""
    owner = thread.evaluate(target.value)
    if not isinstance(owner, (list, dict)):
        what = described(owner)
        raise thread.error("TW001", f"assignment to an element of {what}", target, help="store into a block with block.store(x)")
    _check_changeable(thread, owner, target)
    index = thread.evaluate(target.slice)
    if is_dynamic(index):
        raise thread.error("TW007", f"the index into {described(owner)} must be known at compile time", target)
    native(thread, node, operator.setitem, owner, index, value)


def delete_element(thread: Thread, target: ast.Subscript) -> None:
    owner = thread.evaluate(target.value)
    if not isinstance(owner, (list, dict)):
        remedy = "del removes elements of lists and tables"
        raise thread.error("TW001", f"del of an element of {described(owner)}", target, help=remedy)
    _check_changeable(thread, owner, target)
    native(thread, target, operator.delitem, owner, thread.evaluate(target.slice))


def _check_changeable(thread: Thread, owner: Any, target: ast.Subscript) -> None:
    if not thread.made_here(owner):
        raise thread.error(
            "TW012",
            f"'{ast.unparse(target.value)}' was made outside of this loop or branch, or in the kernel's body, and changes here",
            target,
            help="make it in the same loop body, or iterate over a tuple, which is unrolled",
        )


def static_sequence(thread: Thread, value: Any, node: ast.AST) -> list[Any]:
    """Items that are known now, for unrolling."""
    if isinstance(value, (*RUNTIME_VALUES, CircularBuffer, KernelTensor)) or is_dynamic(value) or not hasattr(value, "__iter__"):
        raise thread.error("TW001", f"{described(value)} cannot be iterated", node, help="iterate over range(…) or a tuple")
    items = native(thread, node, list, value[: UNROLL_LIMIT + 1] if isinstance(value, range) else value)
    if len(items) > UNROLL_LIMIT:
        message = f"more than {UNROLL_LIMIT} items would be unrolled"
        raise thread.error("TW001", message, node, help="iterate over range(…)")
    return items


def subscript(thread: Thread, node: ast.Subscript) -> Any:
    owner = thread.evaluate(node.value)
    if isinstance(owner, Scope):
        owner = carried.resolved(thread, owner, None, node)
    if isinstance(owner, KernelTensor):
        return tensor_slice(thread, owner, node)
    if isinstance(owner, Block) and owner.region is None:
        thread.at(node)
        require_tiles(thread, "a part", [owner])
        return _block_part(thread, owner, node)
    if isinstance(owner, (*RUNTIME_VALUES, CircularBuffer)) or is_dynamic(owner):
        remedy = "a block is used as a whole; choose its size with shape="
        raise thread.error("TW001", f"{described(owner)} cannot be indexed", node, help=remedy)
    if isinstance(node.slice, ast.Slice):
        parts = [
            None if part is None else thread.evaluate(part) for part in (node.slice.lower, node.slice.upper, node.slice.step)
        ]
        index: Any = slice(*parts)
        dynamic = any(is_dynamic(part) for part in parts)
    else:
        index = thread.evaluate(node.slice)
        dynamic = is_dynamic(index)
    if dynamic:
        return _choose(thread, owner, index, node)
    return native(thread, node, operator.getitem, owner, index)


def _block_part(thread: Thread, block: Block, node: ast.Subscript) -> Block:
    """``blk[0:1, k]``: rows and columns of tiles; a row alone takes all its columns."""
    indices = _indices(thread, node.slice)
    if len(block.shape) != 2 or len(indices) > 2:
        remedy = "rows and columns of tiles: blk[0:1, 2:4]; of more dimensions, make blocks of one matrix"
        raise thread.error("TW109", f"{len(indices)} indices into {described(block)}", node, help=remedy)
    ranges: list[tuple[Value, int]] = []
    for (index, place), size in itertools.zip_longest(indices, block.shape, fillvalue=(slice(None), node)):
        assert isinstance(size, int)
        ranges.append(_tiles_of(thread, index, place, size))
    (row, rows), (column, columns) = ranges
    width = block.shape[-1]
    thread.at(node)
    if isinstance(row, int) and isinstance(column, int):
        return part_of(thread, block, Region(row, column, rows, columns, width))
    # Where it begins is an integer of this core or iteration: one of the parts that it can be.
    begins = itertools.product(_firsts(row), _firsts(column))
    parts = {r * width + c: part_of(thread, block, Region(r, c, rows, columns, width)) for r, c in begins}
    return _entry(thread, parts, make("+", make("*", row, width), column), node)


def _firsts(first: Value) -> Iterable[int]:
    low, high = bounds(first)
    return range(low, high + 1)


def _tiles_of(thread: Thread, index: Any, place: ast.AST, size: int) -> tuple[Value, int]:
    """First tile and number of tiles."""
    parts = (index.start, index.stop, index.step) if is_slice(index) else (index, None, None)
    if any(part is not None and is_dynamic(part) for part in parts):
        return _chosen_tiles(thread, parts, is_slice(index), place, size)
    if any(part is not None and not is_int_like(part) for part in parts):
        remedy = "whole numbers: blk[0:1, 2:4]"
        raise thread.error("TW007", "which tiles of a block are meant is not known here", place, help=remedy)
    first, stop, step = parts
    if is_slice(index):
        first, stop, step = index.start or 0, size if index.stop is None else index.stop, index.step or 1
    else:
        stop, step = index + 1, 1
    if step != 1 or not 0 <= first < stop <= size:
        text = str(index) if not is_slice(index) else f"{first}:{stop}" + (f":{step}" if step != 1 else "")
        raise _outside(thread, text, place, size)
    return int(first), int(stop) - int(first)


def _outside(thread: Thread, text: str, place: ast.AST, size: int) -> Exception:
    message = f"tiles {text} of a dimension of a block that has {counted(size, 'tile')}"
    return thread.error("TW103", message, place, help=f"tiles 0 to {size - 1}, without a step")


def _chosen_tiles(thread: Thread, parts: tuple[Any, ...], several: bool, place: ast.AST, size: int) -> tuple[Value, int]:
    """The same for a place that a core or an iteration decides: the number of tiles is known, and where they can begin."""
    first = parts[0] if parts[0] is not None else 0
    count = make("-", parts[1] if parts[1] is not None else size, first) if several else 1
    if not isinstance(count, int) or parts[2] not in (None, 1):
        remedy = "as many tiles on every core and in every iteration: blk[i : i + 2, :]"
        raise thread.error("TW007", "how many tiles of a block are meant is not known here", place, help=remedy)
    if thread.emitter.varies(first) and thread.unrolling.next_loop() is not None:
        remedy = "numbers known at compile time; a short loop over them is unrolled"
        raise thread.error("TW007", "which tiles of a block are meant is not known here", place, help=remedy)
    low, high = bounds(first)
    if count < 1 or low < 0 or high + count > size:
        raise _outside(thread, f"{low}:{high + count}", place, size)
    if high - low >= SELECT_LIMIT:
        message = f"a part of a block that begins at one of {high - low + 1} tiles"
        raise thread.error("TW007", message, place, help=f"up to {SELECT_LIMIT} places; loop over smaller blocks instead")
    return first, count


def _choose(thread: Thread, owner: Any, index: Any, node: ast.Subscript) -> Any:
    """``table[i]`` of integers with an index of this core or iteration: a chain of selects, or numbers each core is given."""
    if getattr(owner, "ndim", 0) == 1 and hasattr(owner, "tolist"):
        owner = owner.tolist()  # of NumPy
    items: list[Any] = list(owner) if is_row(owner) else []
    table = owner if is_dict(owner) else dict(enumerate(items))
    if not is_slice(index) and _reached(thread, table, index, is_list=bool(items), node=node):
        index = make("select", make("<", index, 0), make("+", index, len(items)), index)
    if not is_slice(index) and not thread.emitter.varies(index) and _is_table(table):
        return _entry(thread, table, index, node)
    if is_slice(index) or not items or not all(is_int_like(item) for item in items):
        remedy = "loop over the items themselves: for item in items"
        raise thread.error("TW007", f"the index into {described(owner)} must be known at compile time", node, help=remedy)
    if len(items) > SELECT_LIMIT:
        return _of_cores(thread, items, index, node)
    result: Any = items[-1]
    for position in range(len(items) - 2, -1, -1):
        result = make("select", make("==", index, position), items[position], result)
    return result


def _reached(thread: Thread, table: dict[Any, Any], index: Value, *, is_list: bool, node: ast.Subscript) -> bool:
    """Whether a list is read from its end: some core comes here with a negative index. Raises if one reads what is not there.

    Where it is not known which cores come here, or with what, nothing is said.
    """
    low, high = bounds(index)
    if high - low < len(table) and all(place in table for place in range(low, high + 1)):
        return False
    reached = thread.emitter.reached()
    if reached is None:
        return False
    from_end = False
    for core in cores_of(thread.build.grid):
        own = {leaf: place for leaf, place in zip(thread.coordinates_read, core, strict=False) if isinstance(leaf, Leaf)}
        for place in _values_of(thread, replaced(index, own), replaced(reached, own), own):
            from_end = from_end or (is_list and place < 0)
            if place not in table and not (is_list and place + len(table) in table):
                what = "IndexError: the index" if is_list else "KeyError: the key"
                message = f"{what} is {place} on core {core}, of {counted(len(table), 'entry', 'entries')}"
                raise thread.error("TW017", message, node, help="guard the statement with an if, or make the table longer")
    return from_end


def _values_of(thread: Thread, index: Value, reached: Value, own: Mapping[Leaf, Value]) -> Iterable[int]:
    """The values that an index takes on a core, in all turns of the loops around; none if they are not known."""
    around = thread.emitter.open_blocks()
    loops = [(leaf, turns) for leaf, turns in thread.emitter.counters.items() if turns.body in around]
    needed = leaves(index) | leaves(reached)
    states: list[dict[Leaf, Value]] = [{}]
    for leaf, turns in loops:
        entered: list[dict[Leaf, Value]] = []
        decides = leaf in needed or any(leaf in leaves(end) for _, other in loops for end in (other.start, other.stop))
        for known in states:
            start, stop = (replaced(end, {**own, **known}) for end in (turns.start, turns.stop))
            if not isinstance(start, int) or not isinstance(stop, int) or len(entered) > TURNS_LIMIT:
                return
            counts = range(start, stop, turns.step)
            entered += [{**known, leaf: count} for count in (counts if decides else counts[:1])]
        states = entered
    for known in states if len(states) <= TURNS_LIMIT else ():
        if replaced(reached, known) is True and isinstance(place := replaced(index, known), int):
            yield place


def _is_table(table: dict[Any, Any]) -> bool:
    """Whether a core's own index may choose among these things, of which some are no integers."""
    whole = all(isinstance(key, int) for key in table)
    return whole and 0 < len(table) <= SELECT_LIMIT and not all(is_int_like(item) for item in table.values())


def _entry(thread: Thread, table: dict[Any, Any], index: Value, node: ast.Subscript) -> Any:
    """``[a, b, c][node]`` is ``a if node == 0 else b if node == 1 else c``."""
    names: dict[str, Any] = {}
    chain: ast.expr | None = None
    for key, item in reversed(table.items()):
        names[f"entry {key}"], names[f"is {key}"] = item, make("==", index, key)
        entry, test = (ast.copy_location(ast.Name(f"{word} {key}", ast.Load()), node) for word in ("entry", "is"))
        chain = entry if chain is None else ast.copy_location(ast.IfExp(test, entry, chain), node)
    assert chain is not None
    thread.frame.names.update(names)
    found = thread.evaluate(chain)
    for name in names:
        del thread.frame.names[name]
    return found


def _of_cores(thread: Thread, items: list[Any], index: Any, node: ast.Subscript) -> Any:
    """A large table: the launcher gives each core its entry, or, if iterations choose too, the entries that they reach."""
    if any(is_dynamic(item) for item in items):
        raise thread.error("TW007", f"a table of {len(items)} computed integers", node, help="compute the entry itself")
    first: Value | None = None  # the index on the first core, where only iterations vary it
    field: Field = {}
    for core in cores_of(thread.build.grid):
        places = zip(thread.coordinates(), core, strict=True)
        own = replaced(index, {leaf: place for leaf, place in places if isinstance(leaf, Leaf)})
        first = own if first is None else first
        ahead = constant_difference(own, first)
        low, high = bounds(first)
        if ahead is None or high - low >= ARGUMENTS_LIMIT:
            message = f"an index that reaches more than {ARGUMENTS_LIMIT} of {len(items)} integers"
            remedy = "choose by coordinates of the core, or by them plus the number of an iteration"
            raise thread.error("TW007", message, node, help=remedy)
        for position in range(high - low + 1):
            place = ahead + low + position
            field[core, position] = items[place] if -len(items) <= place < len(items) else items[-1]
    assert first is not None
    thread.at(node)
    return number(thread, field, make("-", first, bounds(first)[0]), re.sub(r"\W", "_", ast.unparse(node.value)))


def comprehension(thread: Thread, node: ast.ListComp | ast.GeneratorExp) -> list[Any]:
    results: list[Any] = []
    _expanded(thread, node, lambda: results.append(thread.evaluate(node.elt)))
    return thread.remember(results)


def table_comprehension(thread: Thread, node: ast.DictComp) -> dict[Any, Any]:
    results: dict[Any, Any] = {}

    def add() -> None:
        key = thread.evaluate(node.key)
        if is_dynamic(key):
            raise thread.error("TW007", "a dictionary's keys must be known at compile time", node.key)
        native(thread, node, results.__setitem__, key, thread.evaluate(node.value))

    _expanded(thread, node, add)
    return thread.remember(results)


def _expanded(thread: Thread, node: Comprehension, add: Callable[[], None]) -> None:
    frame = thread.frame
    targets = {name.id for part in node.generators for name in ast.walk(part.target) if isinstance(name, ast.Name)}
    saved = {name: frame.names[name] for name in targets if name in frame.names}

    def expand(level: int) -> None:
        if level == len(node.generators):
            add()
            return
        part = node.generators[level]
        for item in static_sequence(thread, thread.evaluate(part.iter), part.iter):
            bind_target(thread, part.target, item, part.target)
            conditions = [truth(thread, thread.evaluate(test), test) for test in part.ifs]
            if any(is_dynamic(condition) for condition in conditions):
                raise thread.error("TW007", "a comprehension's condition must be known at compile time", node)
            if all(conditions):
                expand(level + 1)

    expand(0)
    for name in targets:  # they are the comprehension's own
        frame.names.pop(name, None)
    frame.names.update(saved)


def collection(thread: Thread, node: ast.Set | ast.SetComp) -> Any:
    """A set of values that are known at compile time."""
    items: list[Any] = []
    if isinstance(node, ast.SetComp):
        _expanded(thread, node, lambda: items.append(thread.evaluate(node.elt)))
    else:
        items = [thread.evaluate(element) for element in node.elts]
    for item in items:
        if is_dynamic(item) or isinstance(item, RUNTIME_VALUES):
            remedy = "a set holds values known at compile time; use a tuple"
            raise thread.error("TW007", f"{described(item)} in a set", node, help=remedy)
    return frozenset(native(thread, node, set, items))


def joined(thread: Thread, node: ast.JoinedStr) -> str | Text:
    parts: list[Any] = []
    for part in node.values:
        if not isinstance(part, ast.FormattedValue):
            parts.append(str(getattr(part, "value", "")))
            continue
        value = spelt(thread.evaluate(part.value))
        if is_dynamic(value) or isinstance(value, Text):
            parts.append(value)  # a format of it would be decided on the device
            continue
        if isinstance(value, (*RUNTIME_VALUES, CircularBuffer, KernelTensor)):
            raise thread.error("TW004", f"{described(value)} in text", part.value, help="give it to print as an argument")
        if part.conversion in CONVERSIONS:
            value = CONVERSIONS[part.conversion](value)
        spec = joined(thread, part.format_spec) if isinstance(part.format_spec, ast.JoinedStr) else ""
        parts.append(native(thread, node, format, value, spec))
    return "".join(parts) if all(isinstance(part, str) for part in parts) else Text(tuple(parts))


Index = tuple[Any, ast.expr]  # of one dimension, and where it is written


def tensor_slice(thread: Thread, tensor: KernelTensor, node: ast.Subscript) -> TensorSlice:
    indices = _indices(thread, node.slice)
    if tensor.spec.layout == ROWS:
        indices = _of_rows(thread, tensor, indices, node)
    sizes = tensor.tile_shape
    if len(indices) != len(sizes):
        message = f"tensor '{tensor.name}' has {len(sizes)} dimensions, the slice gives {len(indices)}"
        remedy = f"for example {tensor.name}[{', '.join(['0'] * (len(sizes) - 2) + ['0:1', '0:1'])}], in tiles"
        raise thread.error("TW109", message, node, help=remedy)
    ranges: list[Range] = []
    for axis, ((index, place), size) in enumerate(zip(indices, sizes, strict=True)):
        found = _range(thread, index, place, size, tensor)
        _check_constant(thread, found, size, axis, tensor, place)
        ranges.append(found)
    origin = not any(is_slice(index) for index, _ in indices) and all(found.start == 0 for found in ranges)
    return _written(thread, tensor, ranges, origin, node)


def _written(thread: Thread, tensor: KernelTensor, ranges: list[Range], origin: bool, node: ast.Subscript) -> TensorSlice:
    thread.at(node)
    part = write_slice(thread, tensor, ranges, origin)
    part.again = partial(_written, thread, tensor, ranges, origin, node)  # no closure that names itself: it would keep the thread
    return part


def _of_rows(thread: Thread, tensor: KernelTensor, indices: list[Index], node: ast.expr) -> list[Index]:
    """Indices of elements: the last one takes the whole row."""
    columns = tensor.spec.shape[-1]
    last, place = indices[-1] if indices else (None, node)
    whole = is_slice(last) and last.start in (None, 0) and last.stop in (None, columns) and last.step in (None, 1)
    if not whole:
        remedy = f"copy whole rows: {tensor.name}[{', '.join(['0'] * (len(tensor.spec.shape) - 1) + [':'])}]"
        raise thread.error("TW114", f"a part of a row of '{tensor.name}', whose blocks count elements", place, help=remedy)
    lead: list[Index] = [(0, node)] if len(tensor.spec.shape) == 1 else []
    return [*lead, *indices[:-1], (slice(0, 1), place)]


def _indices(thread: Thread, written: ast.expr) -> list[Index]:
    """One index per dimension and where it stands: ``a:b``, an integer, integers to gather, a ``slice`` made before. A name may
    stand for all of them, and ``*name`` for several."""
    if isinstance(written, ast.Tuple):
        return [index for part in written.elts for index in _index(thread, part)]
    if isinstance(written, ast.Slice):
        return _index(thread, written)
    value = thread.evaluate(written)
    return [(item, written) for item in value] if is_tuple(value) else _spread(value, written)


def _index(thread: Thread, written: ast.expr) -> list[Index]:
    if isinstance(written, ast.Slice):
        parts = [None if part is None else thread.evaluate(part) for part in (written.lower, written.upper, written.step)]
        return [(slice(*parts), written)]
    if isinstance(written, ast.Starred):
        return [(item, written) for item in thread.evaluate(written.value)]
    return _spread(thread.evaluate(written), written)


def _spread(value: Any, written: ast.expr) -> list[Index]:
    """Slices in a list are one per dimension, integers are gathered along one."""
    if is_list(value) and any(is_slice(item) for item in value):
        return [(item, written) for item in value]
    return [(value, written)]


def _range(thread: Thread, index: Any, place: ast.expr, size: int, tensor: KernelTensor) -> Range:
    if is_row(index) and len(index):
        return Range(tuple(_integer(thread, item, place) for item in index))
    if not is_slice(index):
        return Range((_integer(thread, index, place),))
    step = 1 if index.step is None else index.step
    if not isinstance(step, int) or step < 1:
        remedy = "a constant of at least 1"
        raise thread.error("TW007", f"the step of this slice of '{tensor.name}' is {described(step)}", place, help=remedy)
    lower, upper = (place.lower or place, place.upper or place) if isinstance(place, ast.Slice) else (place, place)
    start = 0 if index.start is None else _integer(thread, index.start, lower)
    stop = size if index.stop is None else _integer(thread, index.stop, upper)
    extent = constant_difference(stop, start)
    if extent is None:
        message = f"the size of this slice of '{tensor.name}' is not a constant"
        remedy = "write the stop as start + size, with the same size on every core and iteration"
        raise thread.error("TW104", message, place, label="stop - start varies", help=remedy)
    if extent < 1:
        raise thread.error("TW103", f"this slice of '{tensor.name}' has {extent} tiles", place, help="stop must be above start")
    return Range((start,), -(-extent // step), step)


def _integer(thread: Thread, value: Any, node: ast.AST) -> Value:
    if not is_int_like(value):
        raise thread.error("TW004", f"a tile index is an integer, not {described(value)}", node, help="indices count tiles")
    return value


def _check_constant(thread: Thread, found: Range, size: int, axis: int, tensor: KernelTensor, node: ast.AST) -> None:
    """Starts that vary are checked by ttl-validate, which knows the loops and guards around them. A rectangle that starts inside
    may stick out."""
    length = 1 if len(found.starts) > 1 else (found.size - 1) * found.step + 1
    for start in found.starts:
        inside = size if found.step == 1 and len(found.starts) == 1 and axis >= len(tensor.tile_shape) - 2 else size - length + 1
        if is_dynamic(start) or not isinstance(start, int) or 0 <= start < inside:
            continue
        place = str(start) if length == 1 else f"{start}:{start + length}"
        message = f"tiles {place} lie outside dimension {axis} of '{tensor.name}', which has {counted(size, 'tile')}"
        remedy = "indices count tiles of 32x32, not elements"
        raise thread.error("TW103", message, node, label=f"valid: 0 to {size - 1}", help=remedy)


def is_object_of(thread: Thread, value: Any) -> bool:
    """Whether the thread has made this object."""
    return id(value) in thread.containers and not isinstance(value, (list, dict))


def set_attribute(thread: Thread, target: ast.Attribute, value: Any) -> None:
    """``object.name = value`` on an object that the thread has made."""
    owner = thread.evaluate(target.value)
    if not is_object_of(thread, owner):
        remedy = "kernels cannot change values outside the thread; assign to a plain name"
        raise thread.error("TW001", f"assignment to an attribute of {described(owner)}", target, help=remedy)
    if not thread.made_here(owner):
        remedy = "make the object in the same loop body, or iterate over a tuple, which is unrolled"
        found = f"'{ast.unparse(target.value)}' was made outside of this loop or branch and changes here"
        raise thread.error("TW012", found, target, help=remedy)
    found = getattr(class_of(owner), target.attr, None)
    if isinstance(found, property) and found.fset is not None:
        thread.invoke(found.fset, [owner, value], {}, ast.copy_location(ast.Call(target, [], []), target))
        return
    native(thread, target, setattr, owner, target.attr, value)


def bind_target(thread: Thread, target: ast.expr, value: Any, node: ast.AST) -> None:
    """``target = value`` for names, elements of lists and tables, and nested tuples of them."""
    if isinstance(target, ast.Name):
        bind_name(thread, target.id, value, node)
        return
    if isinstance(target, ast.Subscript):
        set_element(thread, target, value, node)
        return
    if isinstance(target, (ast.Tuple, ast.List)):
        items = _starred(target, _row(thread, value))
        if items is None or len(items) != len(target.elts):
            found = described(value) if items is None else f"{len(items)} values"
            count = len(target.elts)
            raise thread.error("TW004", f"{found} cannot be unpacked into {count} names", node, help=f"give {count} values")
        for part, item in zip(target.elts, items, strict=True):
            bind_target(thread, part.value if isinstance(part, ast.Starred) else part, item, node)
        return
    if isinstance(target, ast.Attribute):
        set_attribute(thread, target, value)
        return
    raise thread.error("TW001", "assignment to this", target, help="assign to a plain name")


def _row(thread: Thread, value: Any) -> Any:
    """The items of a row; of a choice between rows of one length, the choices between their items."""
    if not isinstance(value, Choice):
        return value if is_row(value) else None
    first, second = _row(thread, value.when_true), _row(thread, value.when_false)
    if first is None or second is None or len(first) != len(second):
        return None
    return [chosen(thread, value.condition, *pair) for pair in zip(first, second, strict=True)]


def _starred(target: ast.Tuple | ast.List, items: Any) -> Any:
    """``first, *rest = items``: what the star takes is one item."""
    place = next((index for index, part in enumerate(target.elts) if isinstance(part, ast.Starred)), None)
    if place is None or items is None or len(items) < len(target.elts) - 1:
        return items
    behind = len(items) - (len(target.elts) - 1 - place)
    return [*items[:place], list(items[place:behind]), *items[behind:]]


def bind_name(thread: Thread, name: str, value: Any, node: ast.AST) -> None:
    owner = thread.frame.shared.get(name)
    if owner is not None and owner.depth != thread.depth:
        remedy = "change it outside of loops and of branches that are decided per core, or return the new value"
        raise thread.error("TW012", f"'{name}' of the function around this one changes here", node, help=remedy)
    (owner or thread.frame).names[name] = value
    if is_dynamic(value):
        thread.at(node)
        ssa = thread.emitter.integer(value)  # here, where the source computes it
        ssa.name_hint = ssa.name_hint or _hint(name)
    elif isinstance(value, Block) and value.held is None:
        value.ssa.name_hint = value.ssa.name_hint or _hint(name)


def _hint(name: str) -> str | None:
    """Names in IR and C++ are ASCII; Python's need not be."""
    return name if name.isascii() else None
