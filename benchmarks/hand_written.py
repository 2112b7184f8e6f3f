"""Programs as a person writes them in C++, call by call, for the timeline: threads of kernel-API calls with loops.

The published measurements were made with such programs. ``zone()`` marks the calls whose time was measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from xdsl.builder import Builder
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import ArrayAttr, IndexType, IntAttr, IntegerAttr, ModuleOp, StringAttr, UnitAttr, i32
from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import InsertPoint

from tilewright.dialects.attributes import KernelCBType, ThreadAttr, TileType
from tilewright.dialects.ttkernel import CALLS, KernelAccessorType
from tilewright.hardware import tile_bytes
from tilewright.options import Options
from tilewright.program import BufferSpec, ComputeConfig, Program, TensorSpec, ThreadSpec
from tilewright.timing import timeline
from tilewright.trace import Trace

INDEX = IndexType()


def tile_type(dtype: str) -> TileType:
    return TileType(IntAttr(32), IntAttr(32), StringAttr(dtype))


class Thread:
    """One function under construction."""

    def __init__(self, kernel: Kernel, role: str) -> None:
        self.kernel = kernel
        self.role = role
        self.block = Block()
        self.builder = Builder(InsertPoint.at_end(self.block))
        self._buffers: dict[int, SSAValue] = {}
        self._zone = False

    def number(self, value: int | SSAValue) -> SSAValue:
        if isinstance(value, SSAValue):
            return value
        return self.builder.insert(arith.ConstantOp(IntegerAttr(value, INDEX), INDEX)).results[0]

    def buffer(self, index: int) -> SSAValue:
        if index not in self._buffers:
            spec = self.kernel.buffers[index]
            op = CALLS["get_compile_time_arg_val"].create(
                result_types=[KernelCBType(ArrayAttr([IntAttr(size) for size in spec.shape]), tile_type(spec.dtype), IntAttr(1))],
                attributes={"cb_index": IntegerAttr(index, i32), "name": StringAttr(spec.name)},
            )
            first = self.block.first_op
            if first is None:
                self.block.add_op(op)
            else:
                self.block.insert_op_before(op, first)
            self._buffers[index] = op.results[0]
        return self._buffers[index]

    def accessor(self, tensor: int) -> SSAValue:
        attributes = {"tensor_index": IntegerAttr(tensor, i32)}
        op = CALLS["tensor_accessor"].create(result_types=[KernelAccessorType()], attributes=attributes)
        return self.builder.insert(op).results[0]

    def value(self, name: str, *operands: Any, **attributes: Any) -> SSAValue:
        op = CALLS[name].create(
            operands=[self.number(operand) for operand in operands],
            result_types=[INDEX],
            attributes={key: _attribute(value) for key, value in attributes.items()},
        )
        return self.builder.insert(op).results[0]

    def call(self, name: str, *operands: Any, **attributes: Any) -> None:
        """``operands``: numbers, values, or buffers as ``Cb(index)``."""
        given = [self.buffer(operand.index) if isinstance(operand, Cb) else self.number(operand) for operand in operands]
        found = {key: _attribute(value) for key, value in attributes.items()}
        if self._zone:
            found["zone"] = UnitAttr()
        self.builder.insert(CALLS[name].create(operands=given, attributes=found))

    def value_of_buffer(self, name: str, buffer: int) -> SSAValue:
        return self.builder.insert(CALLS[name].create(operands=[self.buffer(buffer)], result_types=[INDEX])).results[0]

    def read_page(self, page: int, tensor: int, start: SSAValue, tile: int) -> None:
        size = self.number(self.kernel.tile_bytes(tensor) * tile)
        address = self.builder.insert(arith.AddiOp(start, size)).results[0]
        self.builder.insert(CALLS["noc_async_read_page"].create(operands=[self.number(page), self.accessor(tensor), address]))

    @contextmanager
    def zone(self) -> Iterator[None]:
        self._zone = True
        yield
        self._zone = False

    @contextmanager
    def loop(self, turns: int) -> Iterator[SSAValue]:
        if turns == 1:
            yield self.number(0)
            return
        bounds = [self.number(0), self.number(turns), self.number(1)]
        body = Block(arg_types=[INDEX])
        outer = self.builder
        outer.insert(scf.ForOp(*bounds, [], Region(body)))
        self.builder = Builder(InsertPoint.at_end(body))
        yield body.args[0]
        self.builder.insert(scf.YieldOp())
        self.builder = outer


class Cb:
    def __init__(self, index: int) -> None:
        self.index = index


def _attribute(value: Any) -> Any:
    if isinstance(value, bool):
        return IntegerAttr(int(value), i32)
    if isinstance(value, int):
        return IntegerAttr(value, i32)
    return StringAttr(value) if isinstance(value, str) else value


class Kernel:
    """``buffers``: (tiles, dtype) each; ``tensors``: (rows, columns) of tiles each."""

    def __init__(
        self, arch: str, buffers: Sequence[tuple[int, str]], tensors: Sequence[tuple[int, int]] = (), *,
        fp32: bool = False, full_sync: bool = False, fidelity: str = "HiFi4", grid: tuple[int, int] = (1, 1),
    ) -> None:  # fmt: skip
        self.arch = arch
        self.grid = grid
        self.buffers = [
            BufferSpec(index=index, name=f"cb{index}", shape=(1, tiles), dtype=dtype, block_count=1)
            for index, (tiles, dtype) in enumerate(buffers)
        ]
        dtype = buffers[0][1] if buffers else "bf16"
        self.tensors = tuple(
            TensorSpec(name=f"t{index}", shape=(rows * 32, columns * 32), dtype=dtype)
            for index, (rows, columns) in enumerate(tensors)
        )
        self.config = ComputeConfig(fp32_dest_acc_en=fp32, dst_full_sync_en=full_sync, math_fidelity=fidelity)
        self.threads: list[Thread] = []
        self.resident: dict[int, int] = {}  # tiles that lie in a buffer before the start

    def tile_bytes(self, tensor: int) -> int:
        return tile_bytes(self.tensors[tensor].dtype)

    def thread(self, role: str) -> Thread:
        self.threads.append(Thread(self, role))
        return self.threads[-1]

    def program(self) -> Program:
        functions: list[func.FuncOp] = []
        for thread in self.threads:
            thread.builder.insert(func.ReturnOp())
            function = func.FuncOp(thread.role, ((), ()), Region(thread.block))
            function.attributes["ttl.kernel_thread"] = ThreadAttr(StringAttr("compute" if thread.role == "compute" else "noc"))
            functions.append(function)
        return Program(
            name="hand_written", options=Options(arch=self.arch), module=ModuleOp(functions), grid=self.grid, tensors=self.tensors,
            buffers=tuple(self.buffers),
            threads=tuple(ThreadSpec(name=thread.role, role=thread.role, function=thread.role) for thread in self.threads),
            config=self.config, cpp={}, trace=Trace(),
        )  # fmt: skip

    def run(self) -> timeline.Timeline:
        return timeline.run(self.program(), record=True, resident=self.resident)


MARKER = 18  # cycles a profiler zone adds to what it measures
COMPUTE = ("unpack", "math", "pack")


def zone_cycles(found: timeline.Timeline, engines: Sequence[str] = COMPUTE) -> float:
    """The longest of the zones of the given engines."""
    inside = {site.number for site in found.sites if "zone" in site.attributes}
    longest = 0.0
    for name in engines:
        slices = [entry for entry in found.cores[0].engines[name].slices or () if entry[2] in inside]
        if slices:
            longest = max(longest, slices[-1][1] - slices[0][0])
    return longest + MARKER
