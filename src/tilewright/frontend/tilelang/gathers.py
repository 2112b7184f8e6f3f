"""Elements of a tensor at places that follow from integers alone, but are no rectangle of tiles: strides, shifts, patches.

Reader and writer move whole tiles. The launcher therefore adds a tensor that holds these elements in order, one block for every
value of the block and loop variables they depend on; outside the tensor there is zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Any

from tilewright import hardware
from tilewright.frontend.tilelang.data_indices import ELEMENT, is_data
from tilewright.frontend.tilelang.symbols import Read, Tensor
from tilewright.frontend.tilelang.tile_program import Load, Window
from tilewright.frontend.tilelang.trouble import Trouble
from tilewright.integers import ARITHMETIC, COMPARISONS, UNBOUNDED, Leaf, Node, Value, leaves, linear, make
from tilewright.records import record

if TYPE_CHECKING:
    from tilewright.frontend.tilelang.reading import Reading

GATHERED = "gathered"
MOST_GATHERED = 2**24  # elements
TILE = hardware.TILE_ROWS


@record
class Gather:
    """Where the elements of a made tensor are: indices of the tensor with this number, by the variables of its dimensions."""

    tensor: int
    indices: tuple[Value, ...]
    variables: tuple[Leaf, ...]


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


# On the host ---------------------------------------------------------------------------------------------------------------


def gathered_values(values: Any, gather: Gather, tensor: Callable[[int], Any]) -> Any:
    """The contents of a made tensor, from the tensor's own; ``tensor`` gives those of another by its number."""
    import numpy as np

    ranges = [np.arange(leaf.low, leaf.high + 1) for leaf in gather.variables]
    places = dict(zip(gather.variables, np.meshgrid(*ranges, indexing="ij", sparse=True), strict=True))
    shape = tuple(len(each) for each in ranges)
    positions = [np.broadcast_to(_evaluated(index, places, tensor), shape) for index in gather.indices]
    inside = np.logical_and.reduce([(at >= 0) & (at < size) for at, size in zip(positions, values.shape, strict=True)])
    clipped = tuple(np.clip(at, 0, size - 1) for at, size in zip(positions, values.shape, strict=True))
    return np.where(inside, values[clipped], np.zeros((), values.dtype))


def _evaluated(value: Value, places: dict[Leaf, Any], tensor: Callable[[int], Any]) -> Any:
    import numpy as np

    if isinstance(value, Leaf):
        return places[value]
    if not isinstance(value, Node):
        return np.asarray(value)
    arguments = [_evaluated(argument, places, tensor) for argument in value.args]
    if value.op == ELEMENT:
        table = tensor(int(arguments[0]))
        return table[tuple(np.clip(at, 0, size - 1) for at, size in zip(arguments[1:], table.shape, strict=True))].astype(
            np.int64
        )
    logic = {"and": np.logical_and, "or": np.logical_or, "not": np.logical_not}
    named = {"min": np.minimum, "max": np.maximum, "select": np.where, **logic}
    return (named.get(value.op) or ARITHMETIC.get(value.op) or COMPARISONS[value.op])(*arguments)
