"""The threads of a TileLang kernel: the loop over a core's blocks, loops, branches, integers, what reader and writer move."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp

from tilewright import grid
from tilewright.builder.extents import KernelExtents
from tilewright.builder.movement import acquire, copy, emit_slice, release_buffer, wait
from tilewright.builder.thread import ThreadBuilder
from tilewright.dialects.attributes import INDEX, i32_attr
from tilewright.dialects.ttl import WorkOp
from tilewright.dialects.walking import span_of_node
from tilewright.frontend.tilelang.layouts import Buffers, tile_extents, tile_starts
from tilewright.frontend.tilelang.tile_program import Branch, Load, Loop, Place, Statement, Store, TileProgram, walk
from tilewright.integers import Leaf, Node, Value, bounds, leaves, make, replaced
from tilewright.lang.kernel import Build, ThreadFunction


class TileThread(ThreadBuilder):
    """One thread, written from a tile program; subclasses say what its statements mean in it."""

    def __init__(self, role: str, function: Callable[..., Any], program: TileProgram, build: Build, buffers: Buffers) -> None:
        kind = "compute" if role == "compute" else "noc"
        span = span_of_node(program.place.file, program.place.node)
        super().__init__(ThreadFunction(function=function, kind=kind, span=span), build, KernelExtents().thread())
        self.role, self.program, self.buffers = role, program, buffers
        self.values: dict[Leaf, Value] = {}  # of the program's variables, in this thread
        self.pending: Sequence[Statement] = ()  # of the piece of code: what is not written yet

    def at(self, place: Place) -> None:
        """Ops made from now on carry this place."""
        self.emitter.span = span_of_node(place.file, place.node)

    def value(self, value: Value) -> Value:
        """An integer of the program in terms of this thread's own variables."""
        gone = next((leaf for leaf in leaves(value) if leaf not in self.values), None)
        if gone is not None:
            raise self.problem("TW012", f"'{gone.name}' has no value here: its loop has ended", help="use it inside its loop")
        return replaced(value, self.values)

    def write(self) -> FuncOp:
        self.at(self.program.place)
        self._blocks_loop()
        self.region(self.program.body, self.program.place)
        self.emitter.close_loop([])
        function = self.finish(self.role, self.function.span)
        if self.kind != "compute":
            function.attributes["ttl.role"] = StringAttr(self.role)
        return function

    def _argument(self, part: str, amount: int, name: str) -> Leaf:
        attributes = {"part": StringAttr(part), "amount": i32_attr(amount), "name": StringAttr(name)}
        op = self.emitter.add(WorkOp, (), [INDEX], attributes)
        op.results[0].name_hint = name
        low = amount if part == grid.FIXED else 0
        return self.emitter.leaf(op.results[0], name, low, amount)

    def _blocks_loop(self) -> None:
        """``for i in 0..count: tid = start_id + i``, and the block's coordinates from its number."""
        program, emitter = self.program, self.emitter
        start = self._argument(grid.START, program.blocks, "start_id")
        count = self._argument(grid.COUNT, program.blocks, "count")
        sizes: list[Value] = [
            self._argument(grid.FIXED, size, f"grid_{'xyzw'[axis]}") for axis, size in enumerate(program.grid[:-1])
        ]
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
        for position, statement in enumerate(statements):
            self.at(statement.place)
            self.pending = statements[position + (not isinstance(statement, (Loop, Branch))) :]
            if isinstance(statement, Loop):
                self.loop(statement, statements)
            elif isinstance(statement, Branch):
                self.branch(statement)
            else:
                self.statement(statement)

    def loop(self, statement: Loop, around: Sequence[Statement]) -> None:
        """``around``: the piece of code that the loop stands in."""
        self.open_loop(statement)
        self.region(statement.body, statement.place)
        self.emitter.close_loop([])

    def open_loop(self, statement: Loop) -> None:
        start, stop, name = self.value(statement.start), self.value(statement.stop), statement.variable.name
        loop = self.emitter.for_loop(start, stop, 1, [], name)
        low, high = bounds(start)[0], bounds(stop)[1] - 1
        self.values[statement.variable] = self.emitter.leaf(loop.body.block.args[0], name, low, max(low, high))

    def branch(self, statement: Branch) -> None:
        then, otherwise = self.emitter.branch(self.value(statement.condition))
        for block, body in ((then, statement.then), (otherwise, statement.otherwise)):
            self.emitter.enter(block)
            self.region(body, statement.place)
            self.emitter.close_branch()

    def region(self, statements: Sequence[Statement], place: Place) -> None:
        """The body of a loop or a side of a branch, or all of it, at ``place``."""
        self.body(statements)
        self.at(place)

    @abstractmethod
    def statement(self, statement: Statement) -> None:
        """Writes a load, a store or an assignment."""


class MoverThread(TileThread):
    """The reader (of loads) or the writer (of stores)."""

    def body(self, statements: Sequence[Statement]) -> None:
        wanted = Load if self.role == "reader" else Store
        super().body([each for each in statements if any(isinstance(inner, wanted) for inner in walk([each]))])

    def statement(self, statement: Statement) -> None:
        assert isinstance(statement, (Load, Store))
        loads, buffer, window = isinstance(statement, Load), self.buffers.of(statement), statement.window
        block = acquire(self, buffer, "reserve" if loads else "wait")
        layout = self.buffers.layouts[window.tensor]
        starts = [self.value(start) for start in tile_starts(layout, window, statement.place)]
        turned = isinstance(statement, Load) and statement.target in self.buffers.turned
        shape = tile_extents(layout, window)[:: -1 if turned else 1]
        part = emit_slice(self, self.buffers.tensors[window.tensor], starts, shape, turned=turned)
        wait(self, copy(self, [part, block] if loads else [block, part], {}))
        release_buffer(self, buffer, "push" if loads else "pop")
