"""Copies between tensor slices and blocks as page reads and writes, and their waits as barriers."""

from __future__ import annotations

from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilewright.dialects.attributes import INDEX, AccessorType, SliceType, for_loop, i32_attr, loop_end, text_attr
from tilewright.dialects.ttkernel import KernelAccessorType
from tilewright.dialects.ttl_buffers import CopyOp, FillScalerOp, TensorAccessorOp, TensorSliceOp, WaitOp
from tilewright.dialects.walking import erase
from tilewright.hardware import FACE_COLS, TILE_ELEMENTS, TILE_ROWS, Chip
from tilewright.passes.kernel_calls.buffers import block_place, block_pointer, call
from tilewright.passes.kernel_calls.index_arithmetic import IndexBuilder, Number

READ_BARRIER = "noc_async_read_barrier"
WRITE_BARRIER = "noc_async_write_barrier"


class MovementConverter:
    def __init__(self, indices: IndexBuilder, buffers: dict[SSAValue, SSAValue], chip: Chip) -> None:
        self.chip = chip
        self.indices = indices
        self.buffers = buffers
        self.accessors: dict[SSAValue, SSAValue] = {}

    def convert(self, op: Operation) -> bool:
        if isinstance(op, TensorAccessorOp):
            self._accessor(op)
        elif isinstance(op, CopyOp):
            self._copy(op)
        elif isinstance(op, WaitOp):
            self._wait(op)
        elif isinstance(op, FillScalerOp):
            self._fill_scaler(op)
        else:
            return isinstance(op, TensorSliceOp)
        return True

    def _accessor(self, op: TensorAccessorOp) -> None:
        kind = op.results[0].type
        assert isinstance(kind, AccessorType)
        attributes: dict[str, Attribute] = {
            "tensor_index": i32_attr(op.tensor_index),
            "name": text_attr(op.tensor_name),
            "dtype": text_attr(kind.tile.dtype),
            "memory": text_attr(kind.memory.data),
            "tensor": kind,  # for whoever reads this as text
        }
        if op.by_rows:
            attributes["page_bytes"] = i32_attr(kind.dims[-1] * kind.tile.bytes // TILE_ROWS)
        new = call("tensor_accessor", (), [KernelAccessorType()], attributes, op)
        new.results[0].name_hint = op.tensor_name
        block = op.parent
        assert block is not None
        block.insert_op_before(new, op)
        self.accessors[op.results[0]] = new.results[0]

    def _copy(self, op: CopyOp) -> None:
        reading = isinstance(op.operands[0].type, SliceType)
        slice_, place = (op.operands[0], op.operands[1]) if reading else (op.operands[1], op.operands[0])
        cut = slice_.owner
        assert isinstance(cut, TensorSliceOp)
        buffer, offset, written = block_place(place)
        pointer = block_pointer(self.buffers[buffer], op, written=written)
        self._pages(op, cut, pointer, offset, "noc_async_read" if reading else "noc_async_write")

    def _places(self, op: CopyOp, cut: TensorSliceOp) -> tuple[str, list[Number], list[tuple[int, ...]]]:
        """What a transfer names its tile by: the page it is, or its row and column among pages that are rows of elements.

        Of each number the value at the slice's start, and what a step along each dimension of the tensor adds.
        """
        tensor, starts = cut.operands[0].type, tuple(cut.operands[1:])
        assert isinstance(tensor, AccessorType)
        accessor = cut.operands[0].owner
        if not isinstance(accessor, TensorAccessorOp) or not accessor.by_rows:
            return "page", [self.indices.linear(starts, tensor.dims, op)], [_page_weights(tensor.dims)]
        rows = tensor.dims[:-1]
        weights = [(*_page_weights(rows), 0), (*(0 for _ in rows), 1)]
        return "tile_rows", [self.indices.linear(starts[:-1], rows, op), starts[-1]], weights

    def _pages(self, op: CopyOp, cut: TensorSliceOp, pointer: SSAValue, offset: int, name: str) -> None:
        """One transfer per tile, in a loop nest over the slice."""
        kind, tensor = cut.results[0].type, cut.operands[0].type
        assert isinstance(kind, SliceType) and isinstance(tensor, AccessorType)
        bytes_per_tile = kind.tile.bytes
        lead = len(tensor.dims) - len(kind.dims)
        block = op.parent
        assert block is not None
        unit, places, steps = self._places(op, cut)
        steps = [weights[lead:][::-1] if cut.turned else weights[lead:] for weights in steps]
        base = self.indices.add(pointer, offset * bytes_per_tile, op)
        scratch = Block()
        inner = scratch
        position: Number = 0
        anchors: list[tuple[Block, SSAValue, int]] = []
        for dim, extent in enumerate(kind.dims):
            if extent == 1:
                continue
            body = Block(arg_types=[INDEX])
            body.args[0].name_hint = ("row", "col")[dim - len(kind.dims)] if dim >= len(kind.dims) - 2 else f"d{dim}"
            anchors.append((body, body.args[0], dim))
        for body, _, dim in anchors:
            bounds = (self.indices.value(0), self.indices.value(kind.dims[dim]), self.indices.value(1))
            loop = for_loop(*bounds, body)
            loop.location = op.location
            inner.add_op(loop)
            inner = body
        placeholder = call(READ_BARRIER)
        inner.add_op(placeholder)
        for _, variable, dim in anchors:
            for number, weights in enumerate(steps):
                step = self.indices.multiply(variable, weights[dim] * cut.strides[dim], placeholder)
                places[number] = self.indices.add(places[number], step, placeholder)
            weight = 1
            for extent in kind.dims[dim + 1 :]:
                weight *= extent
            position = self.indices.add(position, self.indices.multiply(variable, weight, placeholder), placeholder)
        address = self.indices.add(base, self.indices.multiply(position, bytes_per_tile, placeholder), placeholder)
        operands = [*map(self.indices.value, places), self.accessors[cut.operands[0]], self.indices.value(address)]
        attributes = {}
        if unit == "tile_rows" and name == "noc_async_read":
            part = FACE_COLS * kind.tile.bytes // TILE_ELEMENTS
            attributes["row_bytes"] = i32_attr(self.chip.row_read_bytes(part, tensor.memory.data))
        inner.insert_op_before(call(f"{name}_{unit}", operands, attributes=attributes, like=op), placeholder)
        erase(placeholder)
        for body, _, _ in anchors:
            body.add_op(loop_end())
        for new in list(scratch.ops):
            new.detach()
            block.insert_op_before(new, op)

    def _fill_scaler(self, op: FillScalerOp) -> None:
        block = op.parent
        assert block is not None
        buffer, one = self.buffers[op.operands[0]], self.indices.value(1)
        calls = [
            call("cb_reserve_back", [buffer, one], like=op),
            call("fill_scaler", [buffer], attributes=dict(op.attributes), like=op),
            call("cb_push_back", [buffer, one], like=op),
        ]
        block.insert_ops_before(calls, op)

    def _wait(self, op: WaitOp) -> None:
        block = op.parent
        assert block is not None
        names: list[str] = []
        for transfer in op.operands:
            copy = transfer.owner
            assert isinstance(copy, CopyOp)
            names.append(READ_BARRIER if isinstance(copy.operands[0].type, SliceType) else WRITE_BARRIER)
        for name in dict.fromkeys(names):
            previous = op.prev_op
            while previous is not None and isinstance(previous, WaitOp):
                previous = previous.prev_op
            # One barrier covers every transfer issued before it.
            if previous is not None and previous.name == f"ttkernel.{name}":
                continue
            block.insert_op_before(call(name, like=op), op)


def _page_weights(dims: tuple[int, ...]) -> tuple[int, ...]:
    weights = [1]
    for extent in reversed(dims[1:]):
        weights.append(weights[-1] * extent)
    return tuple(reversed(weights))
