"""A slice tried on every core and in every iteration at once, where intervals leave doubt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects import arith, scf
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from tilewright.diagnostics import Diagnostic, counted
from tilewright.dialects.attributes import constant_of
from tilewright.dialects.ttl import CoreOp, WorkOp
from tilewright.dialects.ttl_buffers import ReadElementOp, TensorAccessorOp, TensorSliceOp
from tilewright.dialects.ttl_network import CoreTableOp, RuntimeArgumentOp
from tilewright.grid import core_number
from tilewright.integers import FORMS, NUMPY_COMPARISONS, PREDICATES
from tilewright.passes.buffers import problem

POINT_LIMIT = 2_000_000  # combinations of core and iteration tried per slice; about 0.1 s

ARITHMETIC: dict[str, Callable[..., Any]] = {name: getattr(np, form.numpy) for name, form in FORMS.items() if form.numpy}


class Unknown(Exception):
    """A value that depends on something other than cores, loop counters and constants."""


class Points:
    """All combinations of core and iteration in which an op runs."""

    def __init__(self, op: Operation, grid: tuple[int, ...]) -> None:
        self.values: dict[SSAValue, Any] = {}
        self.count = 1
        chain = _around(op)
        needed = self._needed(op, chain)
        cores = [leaf for leaf in needed if isinstance(leaf.owner, CoreOp)]
        works = [leaf for leaf in needed if isinstance(leaf.owner, (WorkOp, CoreTableOp))]
        if cores or works:
            self.count = int(np.prod(grid))
            places = np.indices(grid).reshape(len(grid), -1)
            for leaf in works:
                self.values[leaf] = _shares(leaf, places, grid)
            for leaf in cores:
                self.values[leaf] = places[leaf.owner.results.index(leaf)]  # pyright: ignore
        for leaf in needed:
            if isinstance(leaf.owner, ReadElementOp):
                self._every(leaf, *leaf.owner.bounds)
        for outer, inner in chain:
            if isinstance(outer, scf.ForOp):
                self._loop(outer, outer.body.block.args[0] in needed)
            elif isinstance(outer, scf.IfOp):
                holds = np.broadcast_to(self.of(outer.cond), (self.count,)).astype(bool)
                self._keep(holds if inner is outer.true_region.block else ~holds)

    def _needed(self, op: Operation, chain: list[tuple[Operation, Any]]) -> set[SSAValue]:
        needed = set[SSAValue]().union(*(leaves(operand) for operand in op.operands[1:]))
        for outer, _ in reversed(chain):
            if isinstance(outer, scf.IfOp):
                needed |= leaves(outer.cond)
            elif isinstance(outer, scf.ForOp):
                needed |= leaves(outer.lb) | leaves(outer.ub) | leaves(outer.step)
        return needed

    def _loop(self, loop: scf.ForOp, expand: bool) -> None:
        low, high, step = (np.broadcast_to(self.of(v), (self.count,)) for v in (loop.lb, loop.ub, loop.step))
        trips = np.maximum(0, -(-(high - low) // step))
        if not expand:
            self._keep(trips > 0)
            return
        total = int(trips.sum())
        if total > POINT_LIMIT:
            raise Unknown
        rows = np.repeat(np.arange(self.count), trips)
        first = np.repeat(np.cumsum(trips) - trips, trips)
        counter = low[rows] + step[rows] * (np.arange(total) - first)
        self.values = {leaf: array[rows] for leaf, array in self.values.items()}
        self.values[loop.body.block.args[0]] = counter
        self.count = total

    def _every(self, leaf: SSAValue, low: int, high: int) -> None:
        """Each number that the author allows, with all that came before."""
        numbers = high - low + 1
        if self.count * numbers > POINT_LIMIT:
            raise Unknown
        self.values = {known: np.repeat(array, numbers) for known, array in self.values.items()}
        self.values[leaf] = np.tile(np.arange(low, high + 1), self.count)
        self.count *= numbers

    def _keep(self, mask: Any) -> None:
        self.values = {leaf: array[mask] for leaf, array in self.values.items()}
        self.count = int(mask.sum())

    def of(self, value: SSAValue) -> Any:
        if value in self.values:
            return self.values[value]
        number = constant_of(value)
        if number is not None:
            return number
        owner = value.owner
        if isinstance(owner, RuntimeArgumentOp):
            return owner.checked_value
        if isinstance(owner, arith.CmpiOp):
            compare = getattr(np, NUMPY_COMPARISONS[PREDICATES[owner.predicate.value.data]])
            return compare(self.of(owner.lhs), self.of(owner.rhs))
        function = ARITHMETIC.get(owner.name) if isinstance(owner, Operation) else None
        if function is None or not isinstance(owner, Operation):
            raise Unknown
        return function(*(self.of(operand) for operand in owner.operands))

    def starts(self, value: SSAValue) -> Any:
        return np.broadcast_to(self.of(value), (self.count,))

    def sticking_out(self, op: TensorSliceOp) -> tuple[int, ...]:
        """Dimensions in which the slice somewhere starts inside its tensor and ends outside."""
        found = [
            axis
            for axis, (start, extent, size) in enumerate(op.axes)
            if ((starts := self.starts(start)) < size).any() and (starts[starts < size] + extent > size).any()
        ]
        return tuple(found)

    def outside(self, op: TensorSliceOp) -> list[Diagnostic]:
        """One example per dimension in which the slice leaves its tensor."""
        problems: list[Diagnostic] = []
        accessor = op.accessor.owner
        name = accessor.tensor_name if isinstance(accessor, TensorAccessorOp) else "tensor"
        for axis, (start, extent, size) in enumerate(op.axes):
            starts = self.starts(start)
            needed = 1 if axis in op.clipped else extent
            wrong = np.flatnonzero((starts < 0) | (starts + needed > size))
            if not len(wrong):
                continue
            at = int(starts[wrong[0]])
            found = str(at) if extent == 1 else f"{at}:{at + extent}"
            problems.append(
                problem(
                    "TW103",
                    f"tiles {found} lie outside dimension {axis} of '{name}', which has {counted(size, 'tile')}"
                    f"{self._example(int(wrong[0]))}",
                    op,
                    label=f"dimension {axis}: 0 to {size - 1}",
                    help="choose other bounds, or guard the copy with an if, in every thread that handles the block",
                )
            )
        return problems

    def _example(self, point: int) -> str:
        cores = [
            (leaf.name_hint or "core", array[point]) for leaf, array in self.values.items() if isinstance(leaf.owner, CoreOp)
        ]
        loops = [
            (leaf.name_hint or "i", array[point]) for leaf, array in self.values.items() if not isinstance(leaf.owner, CoreOp)
        ]
        words = ", ".join(f"{name} = {value}" for name, value in (*sorted(cores), *loops))
        return f" (when {words})" if words else ""


def _shares(leaf: SSAValue, places: Any, grid: tuple[int, ...]) -> Any:
    if isinstance(leaf.owner, CoreTableOp):
        values = leaf.owner.values
        return np.array([values[core_number(place, grid)][0] for place in places.T.tolist()])
    assert isinstance(leaf.owner, WorkOp)
    argument = leaf.owner.argument
    return np.array([argument.value(core_number(place, grid), int(np.prod(grid))) for place in places.T.tolist()])


def _around(op: Operation) -> list[tuple[Operation, Any]]:
    """Ops around ``op``, outermost first, each with the block of it that ``op`` is in."""
    chain: list[tuple[Operation, Any]] = []
    block = op.parent
    while block is not None and (parent := block.parent_op()) is not None and not isinstance(parent, FuncOp):
        chain.append((parent, block))
        block = parent.parent
    return chain[::-1]


def leaves(value: SSAValue) -> set[SSAValue]:
    """Loop counters and core coordinates a value is computed from."""
    if constant_of(value) is not None:
        return set()
    owner = value.owner
    if isinstance(value, BlockArgument):
        loop = value.block.parent_op()
        if not isinstance(loop, scf.ForOp) or value.index != 0:
            raise Unknown
        return {value}
    if isinstance(owner, RuntimeArgumentOp) and owner.checked_value is not None:
        return set()
    if isinstance(owner, CoreTableOp) and owner.operands:
        raise Unknown
    if isinstance(owner, (CoreOp, WorkOp, CoreTableOp)) or (isinstance(owner, ReadElementOp) and owner.declared):
        return {value}
    assert isinstance(owner, Operation)
    if owner.name not in ARITHMETIC and not isinstance(owner, arith.CmpiOp):
        raise Unknown
    return set[SSAValue]().union(*(leaves(operand) for operand in owner.operands))
