"""The data-movement threads: the reader fills a buffer per load, the writer drains one per store."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.ir import Attribute

from tilewright.dialects.attributes import SliceType, TransferType, int_array, tile_type
from tilewright.dialects.ttl_buffers import CopyOp, TensorSliceOp, WaitOp
from tilewright.frontend import movement
from tilewright.frontend.tilelang.buffers import Buffers
from tilewright.frontend.tilelang.symbols import Tensor
from tilewright.frontend.tilelang.thread_writer import ThreadWriter
from tilewright.frontend.tilelang.tile_program import Load, Statement, Store, walk
from tilewright.frontend.values import TensorSlice


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
        node = self.at(statement.place)
        buffer = self.buffers.of(statement)
        block = movement.acquire(self.thread, buffer, acquire, node)
        part = self._slice(statement)
        ends = [part.ssa, block.ssa] if isinstance(statement, Load) else [block.ssa, part.ssa]
        transfer = self.emitter.add(CopyOp, ends, [TransferType()])
        self.emitter.add(WaitOp, [transfer.results[0]])
        movement.release_buffer(self.thread, buffer, release, node)

    def _slice(self, statement: Load | Store) -> TensorSlice:
        window, place = statement.window, statement.place
        tensor: Tensor = window.tensor
        layout = self.buffers.layouts[tensor]
        starts = [self.emitter.integer(self.value(start)) for start in layout.tile_starts(window, place)]
        shape = layout.tile_extents(window)
        attributes: dict[str, Attribute] = {}
        if isinstance(statement, Load) and statement.target in self.buffers.turned:
            shape = shape[::-1]
            attributes["turned"] = UnitAttr()
        kind = SliceType(int_array(shape), tile_type(tensor.format), StringAttr("dram"))
        operands = [self.thread.accessor(self.buffers.tensors[tensor]), *starts]
        op = self.emitter.add(TensorSliceOp, operands, [kind], attributes)
        return TensorSlice(op.results[0], shape, tensor.format, self.buffers.tensors[tensor])
