"""The threads of a TileLang kernel: the loop over a core's blocks, loops, branches, integers, what reader and writer move."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Region

from tilewright.builder import movement
from tilewright.builder.emitter import erase_unused_arithmetic
from tilewright.builder.extents import KernelExtents
from tilewright.builder.thread import ThreadBuilder
from tilewright.builder.values import TensorSlice
from tilewright.diagnostics import fail
from tilewright.dialects.attributes import (
    COMPUTE_THREAD,
    INDEX,
    NOC_THREAD,
    SliceType,
    TransferType,
    i32_attr,
    int_array,
    tile_type,
)
from tilewright.dialects.ttl import WorkOp
from tilewright.dialects.ttl_buffers import CopyOp, TensorSliceOp, WaitOp
from tilewright.dialects.walking import location, span_of_node
from tilewright.frontend.tilelang.layouts import Buffers, tile_extents, tile_starts
from tilewright.frontend.tilelang.symbols import Tensor
from tilewright.frontend.tilelang.tile_program import Branch, Load, Loop, Place, Statement, Store, TileProgram, walk
from tilewright.grid import COUNT, FIXED, START
from tilewright.integers import Leaf, Node, Value, bounds, make
from tilewright.lang.building import Build, ThreadFunction


class ThreadWriter(ABC):
    """One thread; subclasses say what statements mean in it."""

    def __init__(self, role: str, function: Callable[..., Any], program: TileProgram, build: Build) -> None:
        self.role = role
        self.program = program
        kind = "compute" if role == "compute" else "noc"
        span = span_of_node(program.place.file, program.place.node)
        self.thread = ThreadBuilder(ThreadFunction(function=function, kind=kind, span=span), build, KernelExtents().thread())
        self.values: dict[Leaf, Value] = {}

    @property
    def emitter(self) -> Any:
        return self.thread.emitter

    def at(self, place: Place) -> ast.AST:
        """Ops made from now on carry this place."""
        self.emitter.span = span_of_node(place.file, place.node)
        return place.node

    def value(self, value: Value) -> Value:
        """An integer of the program in terms of this thread's own variables."""
        if isinstance(value, Leaf):
            if value not in self.values:
                message = f"'{value.name}' has no value here: its loop has ended"
                raise fail("TW012", message, self.emitter.span, help="use it inside its loop")
            return self.values[value]
        return make(value.op, *(self.value(argument) for argument in value.args)) if isinstance(value, Node) else value

    def write(self) -> FuncOp:
        program = self.program
        self.at(program.place)
        self._blocks_loop()
        self.body(program.body)
        self.at(program.place)
        self.emitter.close_loop([])
        self.thread.finish_entry()
        erase_unused_arithmetic(self.emitter.entry)
        self.emitter.add(ReturnOp)
        function = FuncOp(self.role, ([], []), Region(self.emitter.entry))
        function.attributes["ttl.kernel_thread"] = COMPUTE_THREAD if self.thread.kind == "compute" else NOC_THREAD
        if self.thread.kind != "compute":
            function.attributes["ttl.role"] = StringAttr(self.role)
        span = self.thread.function.span
        function.location = location(span.file, span.line, span.column)
        return function

    def _argument(self, part: str, amount: int, name: str) -> Leaf:
        attributes = {"part": StringAttr(part), "amount": i32_attr(amount), "name": StringAttr(name)}
        op = self.emitter.add(WorkOp, (), [INDEX], attributes)
        op.results[0].name_hint = name
        low = amount if part == FIXED else 0
        return self.emitter.leaf(op.results[0], name, low, amount)

    def _blocks_loop(self) -> None:
        """``for i in 0..count: tid = start_id + i``, and the block's coordinates from its number."""
        program, emitter = self.program, self.emitter
        start = self._argument(START, program.blocks, "start_id")
        count = self._argument(COUNT, program.blocks, "count")
        sizes: list[Value] = [self._argument(FIXED, size, f"grid_{'xyzw'[axis]}") for axis, size in enumerate(program.grid[:-1])]
        loop = emitter.for_loop(0, count, 1, [], "i")
        step = emitter.leaf(loop.body.block.args[0], "i", 0, program.blocks - 1)
        total = emitter.add(arith.AddiOp, [emitter.integer(start), emitter.integer(step)], [INDEX])
        total.results[0].name_hint = "tid"
        rest: Value = emitter.leaf(total.results[0], "tid", 0, program.blocks - 1)
        for axis, variable in enumerate(program.variables):
            own = rest if axis == len(program.variables) - 1 else make("%", rest, sizes[axis])
            self.values[variable] = self._named(own, variable.name, program.grid[axis] - 1)
            if axis < len(sizes):
                rest = make("//", rest, sizes[axis])

    def _named(self, value: Value, name: str, high: int) -> Value:
        """A value under its name in the source."""
        if not isinstance(value, Node):
            return value
        ssa = self.emitter.integer(value)
        ssa.name_hint = name
        return self.emitter.leaf(ssa, name, 0, high)

    def body(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            if isinstance(statement, Loop):
                if self.concerns(statement.body):
                    self.loop(statement)
            elif isinstance(statement, Branch):
                if self.concerns([*statement.then, *statement.otherwise]):
                    self.branch(statement)
            else:
                self.statement(statement)

    def loop(self, statement: Loop) -> None:
        self.at(statement.place)
        self.open_loop(statement)
        self.body(statement.body)
        self.at(statement.place)
        self.emitter.close_loop([])

    def open_loop(self, statement: Loop) -> None:
        start, stop = self.value(statement.start), self.value(statement.stop)
        loop = self.emitter.for_loop(start, stop, 1, [], statement.variable.name)
        low, high = bounds(start)[0], bounds(stop)[1] - 1
        self.values[statement.variable] = self.emitter.leaf(loop.body.block.args[0], statement.variable.name, low, max(low, high))

    def branch(self, statement: Branch) -> None:
        self.at(statement.place)
        then, otherwise = self.emitter.branch(self.value(statement.condition))
        for block, body in ((then, statement.then), (otherwise, statement.otherwise)):
            self.emitter.enter(block)
            self.body(body)
            self.at(statement.place)
            self.emitter.close_branch()

    @abstractmethod
    def concerns(self, statements: Sequence[Statement]) -> bool:
        """Whether this thread has something to do there."""

    @abstractmethod
    def statement(self, statement: Statement) -> None:
        """Writes a load, a store or an assignment."""


class MoverWriter(ThreadWriter):
    """The reader (of loads) or the writer (of stores)."""

    buffers: Buffers

    def concerns(self, statements: Sequence[Statement]) -> bool:
        wanted = Load if self.role == "reader" else Store
        return any(isinstance(statement, wanted) for statement in walk(statements))

    def statement(self, statement: Statement) -> None:
        if self.role == "reader" and isinstance(statement, Load):
            self._move(statement, "reserve", "push")
        elif self.role == "writer" and isinstance(statement, Store):
            self._move(statement, "wait", "pop")

    def _move(self, statement: Load | Store, acquire: str, release: str) -> None:
        self.at(statement.place)
        buffer = self.buffers.of(statement)
        block = movement.acquire(self.thread, buffer, acquire)
        part = self._slice(statement)
        ends = [part.ssa, block.ssa] if isinstance(statement, Load) else [block.ssa, part.ssa]
        transfer = self.emitter.add(CopyOp, ends, [TransferType()])
        self.emitter.add(WaitOp, [transfer.results[0]])
        movement.release_buffer(self.thread, buffer, release)

    def _slice(self, statement: Load | Store) -> TensorSlice:
        window, place = statement.window, statement.place
        tensor: Tensor = window.tensor
        layout = self.buffers.layouts[tensor]
        starts = [self.emitter.integer(self.value(start)) for start in tile_starts(layout, window, place)]
        shape = tile_extents(layout, window)
        attributes: dict[str, Attribute] = {}
        if isinstance(statement, Load) and statement.target in self.buffers.turned:
            shape = shape[::-1]
            attributes["turned"] = UnitAttr()
        kind = SliceType(int_array(shape), tile_type(tensor.format), StringAttr("dram"))
        operands = [self.thread.accessor(self.buffers.tensors[tensor]), *starts]
        op = self.emitter.add(TensorSliceOp, operands, [kind], attributes)
        return TensorSlice(op.results[0], shape, tensor.format, self.buffers.tensors[tensor])
