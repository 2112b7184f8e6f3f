"""Where other cores are, in kernel calls: numbers that differ from core to core, and NoC coordinates."""

from __future__ import annotations

from functools import cached_property

from xdsl.dialects.arith import DivUIOp, RemUIOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.dialects.attributes import INDEX, i32_attr, text_attr, text_value
from tilewright.dialects.ttl_network import CoreTableOp, RuntimeArgumentOp, nested_attr
from tilewright.grid import Core, Field, chip_place, cores_of, form_of, table_of
from tilewright.passes.kernel_calls.buffers import call
from tilewright.passes.kernel_calls.index_arithmetic import IndexBuilder, Number


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
        block = before.parent
        assert block is not None
        if operands:
            block.insert_op_before(op, before)
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


def insert(op: Operation, before: Operation) -> SSAValue:
    block = before.parent
    assert block is not None
    block.insert_op_before(op, before)
    return op.results[0]


def share_tables(ops: list[Operation]) -> None:
    """Tables with the same numbers are one argument, under the name of the first."""
    names: dict[Attribute, Attribute] = {}
    for op in ops:
        if op.name == "ttkernel.core_table":
            op.attributes["name"] = names.setdefault(op.attributes["values"], op.attributes["name"])


def convert_table(op: Operation) -> bool:
    """``ttl.core_table`` and ``ttl.argument`` as the kernel arguments they are."""
    if isinstance(op, RuntimeArgumentOp):
        number = call("get_arg_val", (), [INDEX], {"name": op.attributes["name"]}, op)
        number.results[0].name_hint = text_value(op, "name")
        op.results[0].replace_all_uses_with(insert(number, op))
        return True
    if not isinstance(op, CoreTableOp):
        return False
    attributes = {"name": text_attr(op.table_name), "values": op.attributes["values"]}
    new = call("core_table", list(op.operands), [INDEX], attributes, op)
    new.results[0].name_hint = op.table_name
    op.results[0].replace_all_uses_with(insert(new, op))
    return True
