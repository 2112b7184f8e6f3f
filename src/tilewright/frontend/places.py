"""Where this core is: coordinates, number in the grid, its share of a tensor; and integers given at the call."""

from __future__ import annotations

import ast
from typing import Any

from xdsl.dialects.builtin import StringAttr

from tilewright.dialects.attributes import INDEX, i64_attr
from tilewright.dialects.ttl_network import RuntimeArgumentOp
from tilewright.dialects.walking import location
from tilewright.frontend.describe import described
from tilewright.frontend.slices import emit_slice
from tilewright.frontend.thread import Thread
from tilewright.frontend.values import TensorSlice
from tilewright.integers import Leaf, Value, make
from tilewright.lang.runtime_integers import RuntimeInteger
from tilewright.lang.tensors import KernelTensor


def core_linear(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> Value:
    """``y * columns + x`` on a two-dimensional grid, row-major on others."""
    if args or named:
        raise thread.error("TW004", "core_linear() takes no arguments", node)
    thread.at(node)
    places, grid = list(thread.coordinates()), list(thread.build.grid)
    if len(grid) == 2:
        places, grid = places[::-1], grid[::-1]
    number: Value = 0
    for place, size in zip(places, grid, strict=True):
        number = make("+", make("*", number, size), place)
    return number


def grid_slice(thread: Thread, args: list[Any], named: dict[str, Any], node: ast.Call) -> TensorSlice:
    """The block of a tensor that has this core's coordinates: ``grid_slice(a, (2, 2))`` is ``a[2*i : 2*i+2, 2*j : 2*j+2]``."""
    values = [*args, *named.values()]
    if len(values) != 2 or not isinstance(values[0], KernelTensor):
        raise thread.error("TW004", "grid_slice takes a tensor and tiles per core", node, help="ttl.grid_slice(a, (1, 1))")
    tensor, factors = values
    sizes = tensor.tile_shape
    if not isinstance(factors, (tuple, list)) or len(factors) != len(sizes) or len(sizes) != 2:
        raise thread.error(
            "TW109",
            f"'{tensor.name}' has {len(sizes)} dimensions, block_factors is {described(factors)}",
            node,
            help="one number of tiles for each of two dimensions",
        )
    if not all(isinstance(factor, int) and not isinstance(factor, bool) and factor >= 1 for factor in factors):
        raise thread.error("TW004", "block_factors are integers of at least 1, known at compile time", node)
    thread.at(node)
    places = [*thread.coordinates(), 0, 0][:2]
    for factor, size, cores in zip(factors, sizes, (*thread.build.grid, 1, 1), strict=False):
        if factor * cores > size:
            raise thread.error(
                "TW103",
                f"{cores} cores take {factor} tiles each of a dimension of '{tensor.name}' that has {size}",
                node,
                help="smaller block_factors, or a smaller grid",
            )
    starts = [make("*", place, factor) for place, factor in zip(places, factors, strict=True)]
    return emit_slice(thread, tensor, starts, tuple(factors))


def runtime_integer(thread: Thread, argument: RuntimeInteger) -> Leaf:
    place = thread.function.span
    attributes = {
        "name": StringAttr(argument.name),
        "low": i64_attr(argument.low),
        "high": i64_attr(argument.high),
        "given": i64_attr(argument.given),
    }
    op = RuntimeArgumentOp.create(
        result_types=[INDEX], attributes=attributes, location=location(place.file, place.line, place.column)
    )
    op.results[0].name_hint = argument.name
    return thread.entry_leaf(op, argument.name, argument.low, argument.high)
