"""What calls between cores name: where other cores are, and the numbers of semaphores."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from xdsl.dialects.arith import DivUIOp, RemUIOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.attributes import INDEX, i32_attr, text_attr, text_value
from tilewright.dialects.ttl_network import nested_attr
from tilewright.dialects.walking import insert_before
from tilewright.grid import Core, Field, chip_place, cores_of, form_of, table_of
from tilewright.passes.kernel_calls.buffers import IndexBuilder, Number, call
from tilewright.records import record

# Places -------------------------------------------------------------------------------------------------------------------
# Where other cores are, in kernel calls: numbers that differ from core to core, and NoC coordinates.


class Places:
    """Builds coordinates before an anchor op of one function."""

    def __init__(self, function: FuncOp, indices: IndexBuilder, grid: Core, columns: int) -> None:
        self.function = function
        self.indices = indices
        self.grid = grid
        self.columns = columns
        # The writer's NoC runs the other way round: its rectangles go from the last corner to the first.
        self.reversed = text_value(function, "ttl.role") == "writer"
        self._coordinates: dict[int, SSAValue] = {}

    @cached_property
    def chip(self) -> dict[Core, tuple[int, int]]:
        return {core: chip_place(core, self.grid, self.columns) for core in cores_of(self.grid)}

    def coordinate(self, dim: int) -> SSAValue:
        if dim not in self._coordinates:
            attributes = {"dim": i32_attr(dim), "dims": i32_attr(len(self.grid))}
            op = call("my_core", (), [INDEX], attributes)
            op.results[0].name_hint = f"core_{'xyz'[dim]}"
            self._at_entry(op)
            self._coordinates[dim] = op.results[0]
        return self._coordinates[dim]

    def _at_entry(self, op: Operation) -> None:
        entry = self.function.body.block
        first = entry.first_op
        assert first is not None
        entry.insert_op_before(op, first)

    def number(self, field: Field, position: SSAValue | None, name: str, before: Operation) -> Number:
        """A number per core (and pipe), as the plainest expression that gives it."""
        form = form_of(field)
        if form.kind == "constant":
            return form.offset
        if form.kind == "core" and self.grid[form.dim] > 1:
            return self.indices.add(self.coordinate(form.dim), form.offset, before)
        if form.kind == "pipe" and position is not None:
            return self.indices.add(position, form.offset, before)
        if form.kind in ("pipe_column", "pipe_row") and position is not None:
            place = self.indices.value(self.indices.add(position, form.offset, before))
            kind = RemUIOp if form.kind == "pipe_column" else DivUIOp
            return insert(kind.create(operands=[place, self.indices.value(form.size)], result_types=[INDEX]), before)
        values = table_of(field, self.grid)
        operands = [] if len(values[0]) == 1 or position is None else [position]
        op = call("core_table", operands, [INDEX], {"name": text_attr(name), "values": nested_attr(values)}, before)
        op.results[0].name_hint = name
        if operands:
            insert_before(op, before)
        else:
            self._at_entry(op)
        return op.results[0]

    def noc(self, axis: str, place: Number, before: Operation) -> SSAValue:
        """NoC coordinate of a column (axis x) or row (axis y) of the chip."""
        count = 1 + max(place[0 if axis == "x" else 1] for place in self.chip.values())
        op = call(f"noc_{axis}", [self.indices.value(place)], [INDEX], {"count": i32_attr(count)}, before)
        return insert(op, before)

    def address(self, x: Number, y: Number, target: SSAValue, before: Operation) -> SSAValue:
        op = call("get_noc_addr", [self.noc("x", x, before), self.noc("y", y, before), target], [INDEX], like=before)
        return insert(op, before)

    def multicast_address(self, corners: tuple[Number, Number, Number, Number], target: SSAValue, before: Operation) -> SSAValue:
        x0, y0, x1, y1 = corners
        if self.reversed:
            x0, y0, x1, y1 = x1, y1, x0, y0
        places = [self.noc(axis, place, before) for axis, place in (("x", x0), ("y", y0), ("x", x1), ("y", y1))]
        return insert(call("get_noc_multicast_addr", [*places, target], [INDEX], like=before), before)

    def of_core(self, coordinates: list[SSAValue], before: Operation) -> tuple[Number, Number]:
        """Column and row of a core whose coordinates are computed on the device."""
        if len(self.grid) == 1:
            return self._divided(coordinates[0], before)
        if len(self.grid) == 2:
            return coordinates[0], coordinates[1]
        row = self.indices.add(self.indices.multiply(coordinates[1], self.grid[2], before), coordinates[2], before)
        return coordinates[0], row

    def _divided(self, number: SSAValue, before: Operation) -> tuple[Number, Number]:
        columns = self.indices.value(self.columns)
        column = RemUIOp.create(operands=[number, columns], result_types=[INDEX])
        row = DivUIOp.create(operands=[number, columns], result_types=[INDEX])
        return insert(column, before), insert(row, before)


def put(name: str, operands: list[SSAValue], before: Operation) -> None:
    """A call without result, in front of ``before``."""
    insert_before(call(name, operands, like=before), before)


def insert(op: Operation, before: Operation) -> SSAValue:
    insert_before(op, before)
    return op.results[0]


# Numbers of semaphores --------------------------------------------------------------------------------------------------
# A core has few, and every number is a word on all cores.


@record
class Words:
    """Semaphores with numbers in a row, and the cores whose words are waited for and written."""

    count: int
    cores: frozenset[Core]


def numbered(words: Sequence[Words], first: int, limit: int) -> tuple[list[int], int]:
    """The first number of each, and the number behind the last.

    Each has numbers of its own if the core has as many. If not, two whose cores differ share: neither sees the other's word.
    """
    plain: list[int] = []
    following = first
    for one in words:
        plain.append(following)
        following += one.count
    if following <= limit:
        return plain, following
    shared, last = _shared(words, first)
    return (shared, last) if last <= limit else (plain, following)


def _shared(words: Sequence[Words], first: int) -> tuple[list[int], int]:
    taken: dict[int, set[Core]] = {}  # number -> cores that use it
    found: list[int] = []
    for one in words:
        number = first
        while any(taken.get(number + each, set[Core]()) & one.cores for each in range(one.count)):
            number += 1
        for each in range(one.count):
            taken.setdefault(number + each, set()).update(one.cores)
        found.append(number)
    return found, 1 + max(taken, default=first - 1)
