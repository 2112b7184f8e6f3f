"""What is made of several values: tuples, lists, tables, text; and what is taken out of them."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from typing import Any, cast

from tilewright.frontend import calls, pipes, prints, slices
from tilewright.frontend.describe import described
from tilewright.frontend.known_values import RUNTIME_VALUES, native, truth
from tilewright.frontend.thread import Thread
from tilewright.frontend.values import Text
from tilewright.integers import Leaf, Value, bounds, constant_difference, is_dynamic, is_int_like, make, replaced
from tilewright.lang.buffers import CircularBuffer
from tilewright.lang.tensors import KernelTensor
from tilewright.network import Field, cores_of

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
    return tuple(values) if isinstance(node, ast.Tuple) else new_container(thread, values)


def table(thread: Thread, node: ast.Dict) -> dict[Any, Any]:
    """A table of this thread, known at compile time."""
    found: dict[Any, Any] = {}
    new_container(thread, found)
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            found.update(native(thread, value, dict, thread.evaluate(value)))
            continue
        name = thread.evaluate(key)
        if is_dynamic(name):
            raise thread.error("TW007", "a dictionary's keys must be known at compile time", key, help="use an if, or a tuple")
        native(thread, key, found.__setitem__, name, thread.evaluate(value))
    return found


def new_container(thread: Thread, values: Any) -> Any:
    """Remembers a list or table this thread has made: it may be changed where it was made."""
    thread.containers[id(values)] = (values, thread.depth)
    return values


def set_element(thread: Thread, target: ast.Subscript, value: Any, node: ast.AST) -> None:
    """``values[i] = x``. Containers exist at compile time, so one may change only where it was made."""
    owner = thread.evaluate(target.value)
    if not isinstance(owner, (list, dict)):
        what = described(owner)
        raise thread.error(
            "TW001", f"assignment to an element of {what}", target, help="store into a block with block.store(x)"
        )
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
    items = native(thread, node, list, value[: calls.UNROLL_LIMIT + 1] if isinstance(value, range) else value)
    if len(items) > calls.UNROLL_LIMIT:
        message = f"more than {calls.UNROLL_LIMIT} items would be unrolled"
        raise thread.error("TW001", message, node, help="iterate over range(…)")
    return items


def subscript(thread: Thread, node: ast.Subscript) -> Any:
    owner = thread.evaluate(node.value)
    if isinstance(owner, KernelTensor):
        return slices.tensor_slice(thread, owner, node)
    if isinstance(owner, (*RUNTIME_VALUES, CircularBuffer)) or is_dynamic(owner):
        raise thread.error(
            "TW001", f"{described(owner)} cannot be indexed", node, help="a block is used as a whole; choose its size with shape="
        )
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


def _choose(thread: Thread, owner: Any, index: Any, node: ast.Subscript) -> Any:
    """``table[i]`` of integers with an index of this core or iteration: a chain of selects, or numbers each core is given."""
    if getattr(owner, "ndim", 0) == 1 and hasattr(owner, "tolist"):
        owner = owner.tolist()  # of NumPy
    items = cast("list[Any]", list(owner) if isinstance(owner, (tuple, list, range)) else [])  # pyright: ignore
    table: dict[Any, Any] = cast("dict[Any, Any]", owner) if isinstance(owner, dict) else dict(enumerate(items))
    if not isinstance(index, slice) and not thread.emitter.varies(index) and _is_table(table):
        return _entry(thread, table, index, node)
    if isinstance(index, slice) or not items or not all(is_int_like(item) for item in items):
        raise thread.error(
            "TW007",
            f"the index into {described(owner)} must be known at compile time",
            node,
            help="loop over the items themselves: for item in items",
        )
    if len(items) > SELECT_LIMIT:
        return _of_cores(thread, items, index, node)
    result: Any = items[-1]
    for position in range(len(items) - 2, -1, -1):
        result = make("select", make("==", index, position), items[position], result)
    return result


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
    return pipes.number(thread, field, make("-", first, bounds(first)[0]), re.sub(r"\W", "_", ast.unparse(node.value)))


def comprehension(thread: Thread, node: ast.ListComp | ast.GeneratorExp) -> list[Any]:
    results: list[Any] = []
    _expanded(thread, node, lambda: results.append(thread.evaluate(node.elt)))
    return new_container(thread, results)


def table_comprehension(thread: Thread, node: ast.DictComp) -> dict[Any, Any]:
    results: dict[Any, Any] = {}

    def add() -> None:
        key = thread.evaluate(node.key)
        if is_dynamic(key):
            raise thread.error("TW007", "a dictionary's keys must be known at compile time", node.key)
        native(thread, node, results.__setitem__, key, thread.evaluate(node.value))

    _expanded(thread, node, add)
    return new_container(thread, results)


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
            calls.bind_target(thread, part.target, item, part.target)
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
        value = prints.spelt(thread.evaluate(part.value))
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
