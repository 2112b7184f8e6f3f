"""Elements of a tensor at places that are no rectangle of tiles: strides, shifts, patches, and indices that are data.

Reader and writer move whole tiles. The launcher therefore adds a tensor that holds these elements in order, one block for every
value of the block and loop variables they depend on; outside the tensor there is zero.
"""

from __future__ import annotations

import math
from collections.abc import Container
from typing import TYPE_CHECKING, Any

from tilewright import hardware
from tilewright.frontend.tilelang.symbols import Apply, Cast, Expression, Number, Position, Read, Tensor, Trouble
from tilewright.frontend.tilelang.tile_program import Load, Window
from tilewright.integers import COMPARISONS, UNBOUNDED, Node, Value, is_truth, leaves, linear, make
from tilewright.lang.tilelang_tensors import ELEMENT, GATHERED, Gather

if TYPE_CHECKING:
    from tilewright.frontend.tilelang.reading import Reading


OPERATORS = {"+": "+", "-": "-", "*": "*", "floordiv": "//", "remainder": "%", "min": "min", "max": "max", "where": "select"}
HELP = "indices come from block, loop and parallel variables, and from integer tensors that are only read"


def integer_of(value: Expression) -> Value:
    """An expression of elements of integer tensors as an integer."""
    if isinstance(value, Number) and value.value == int(value.value):
        return int(value.value)
    if isinstance(value, Position):
        return value.value
    if isinstance(value, Cast) and value.dtype == "i32":
        return integer_of(value.argument)
    if isinstance(value, Apply) and (value.op in OPERATORS or value.op in COMPARISONS):
        return make(OPERATORS.get(value.op, value.op), *(integer_of(argument) for argument in value.arguments))
    tensor: Any = getattr(value, "tensor", None)
    if tensor is None or tensor.format not in ("i32", "u32", "u16"):
        raise Trouble("TW001", "an index that is data", help=HELP)
    return Node(ELEMENT, (tensor.index, *value.indices))  # pyright: ignore


def is_data(value: Value) -> bool:
    return isinstance(value, Node) and (value.op == ELEMENT or any(is_data(argument) for argument in value.args))


def refuse_data(values: tuple[Value, ...], what: str) -> None:
    if any(is_data(value) for value in values):
        raise Trouble("TW001", f"{what} at a place that data decides", help=HELP)


OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def beyond_bounds(conditions: list[Expression], tensor: Tensor, indices: tuple[Value, ...]) -> list[Expression]:
    """Conditions that say more than that the element lies inside the tensor."""
    return [condition for condition in conditions if not _only_bounds(condition, tensor, indices)]


def _only_bounds(condition: Expression, tensor: Tensor, indices: tuple[Value, ...]) -> bool:
    if isinstance(condition, Position) and is_truth(condition.value):
        return _holds(condition.value, tensor, indices)
    if not isinstance(condition, Apply) or condition.op != "*":  # no conditions joined by `and`
        return False
    return all(_only_bounds(part, tensor, indices) for part in condition.arguments)


def _holds(value: Value, tensor: Tensor, indices: tuple[Value, ...]) -> bool:
    """Whether the condition is true for every element inside the tensor."""
    if not isinstance(value, Node):
        return bool(value)
    if value.op == "and":
        return all(_holds(argument, tensor, indices) for argument in value.args)
    if value.op == "or":
        return any(_holds(argument, tensor, indices) for argument in value.args)
    if value.op == "not" and isinstance(inner := value.args[0], Node) and inner.op in OPPOSITE:
        return _holds(make(OPPOSITE[inner.op], *inner.args), tensor, indices)
    if value.op not in COMPARISONS:
        return False
    left, right = value.args
    return any(_compared(value.op, left, right, index, size) for index, size in zip(indices, tensor.shape, strict=True))


def _compared(symbol: str, left: Value, right: Value, index: Value, size: int) -> bool:
    """``left ? right`` for all values of an index from 0 to ``size - 1``, if their difference is that index and a number."""
    terms, constant = linear(make("-", left, right))
    own, offset = linear(index)
    if terms == own:
        low, high = constant - offset, constant - offset + size - 1
    elif terms == frozenset((term, -factor) for term, factor in own):
        low, high = constant + offset - size + 1, constant + offset
    else:
        return False
    holds = {"<": high < 0, "<=": high <= 0, ">": low > 0, ">=": low >= 0, "!=": low > 0 or high < 0, "==": low == high == 0}
    return holds[symbol]


MOST_GATHERED = 2**24  # elements
TILE = hardware.TILE_ROWS


def is_window(parallel: Container[Any], indices: tuple[Value, ...]) -> bool:
    """Whether the elements are a rectangle that starts at a tile."""
    seen: list[Any] = []
    for index in indices:
        terms, constant = linear(index)
        own = [(term, factor) for term, factor in terms if term in parallel]
        rest = [(term, factor) for term, factor in terms if term not in parallel]
        if is_data(index) or any(leaf in parallel for term, _ in rest for leaf in leaves(term)):
            return False
        if len(own) > 1 or any(factor != 1 for _, factor in own):
            return False
        if own and (constant % TILE or any(factor % TILE for _, factor in rest)):
            return False
        seen += [term for term, _ in own]
    return len(set(seen)) == len(seen)


def gathered(reading: Reading, tensor: Tensor, indices: tuple[Value, ...]) -> Read:
    used = sorted({leaf for index in indices for leaf in leaves(index)}, key=lambda leaf: leaf.ident)
    around = [leaf for leaf in used if leaf not in reading.parallel]
    inside = [leaf for leaf in reading.parallel if leaf in used]
    sizes = [leaf.high - leaf.low + 1 for leaf in (*around, *inside)]
    if any(leaf.high >= UNBOUNDED for leaf in around) or math.prod(sizes) > MOST_GATHERED:
        raise Trouble(
            "TW001",
            f"a stride or a gather in an index of tensor '{tensor.name}' that needs {math.prod(sizes)} elements",
            help=f"index it with start + variable, or gather on the host; up to {MOST_GATHERED} elements are gathered for you",
        )
    gather = Gather(tensor.index, indices, (*around, *inside))
    same = [each for each in reading.tensors if each.origin == gather]
    holder = same[0] if same else _holder(reading, tensor, tuple(sizes), gather)
    if gather not in reading.loaded:
        shape = tuple(reading.parallel[leaf] for leaf in inside)
        block = reading.fragment(shape, tensor.dtype, "fragment", holder.name)
        starts = (*(make("-", leaf, leaf.low) for leaf in around), *(0 for _ in inside))
        window = Window(holder, starts, (*(1 for _ in around), *shape))
        reading.emit(Load(block, window, reading.place))
        reading.loaded[gather] = block
    return Read(reading.loaded[gather], tuple(inside))


def _holder(reading: Reading, tensor: Tensor, shape: tuple[int, ...], gather: Gather) -> Tensor:
    taken, number = {each.name for each in reading.tensors}, 0
    while (name := f"{tensor.name}_gathered{number or ''}") in taken:
        number += 1
    holder = Tensor(name, shape, tensor.dtype, tensor.format, len(reading.tensors), GATHERED)
    holder.origin = gather
    reading.tensors.append(holder)
    return holder
