"""The function of one thread while it is written: what it uses of the outside, what it holds, where we are in the source."""

from __future__ import annotations

from dataclasses import field

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, Region, SSAValue

from tilewright import hardware
from tilewright.builder.emitter import Emitter, erase_unused_arithmetic
from tilewright.builder.extents import ThreadSites
from tilewright.builder.values import Acquisition, CountedLoop, folded
from tilewright.diagnostics import KernelError, Note, Span, fail
from tilewright.dialects.attributes import (
    COMPUTE_THREAD,
    INDEX,
    NOC_THREAD,
    AccessorType,
    SemaphoreType,
    cb_type,
    i32_attr,
    i32_list,
    i64_attr,
    int_array,
    text_attr,
    tile_type,
)
from tilewright.dialects.ttl import SIGNPOSTS, CoreOp, signposts_attr
from tilewright.dialects.ttl_buffers import BindCBOp, TensorAccessorOp
from tilewright.dialects.ttl_network import CreateSemaphoreOp
from tilewright.dialects.walking import location_of, remember
from tilewright.integers import Leaf
from tilewright.lang.buffers import CircularBuffer
from tilewright.lang.building import Build, ThreadFunction
from tilewright.lang.cores import Semaphore
from tilewright.lang.tensors import KernelTensor
from tilewright.program import ROW_MAJOR, ROWS
from tilewright.records import record
from tilewright.tile_pages import has_own_pages, page_elements

COPIES_LIMIT = 128  # of the innermost body, over all loops unrolled around it


@record(frozen=False)
class Unrolling:
    """Which loops one translation of a thread unrolls, and what it learns about the others."""

    chosen: set[Span] = field(default_factory=set[Span])
    around: list[CountedLoop] = field(default_factory=list[CountedLoop])  # open now, on the device or unrolled
    ended: CountedLoop | None = None  # a name was read that a loop behind us assigned

    def next_loop(self) -> CountedLoop | None:
        """The loop to unroll after a failure: the innermost that is open and still on the device."""
        if self.ended is not None and self.ended.place not in self.chosen:
            return self.ended if self.ended.count <= COPIES_LIMIT else None
        copies = 1
        for loop in reversed(self.around):
            copies *= loop.count
            if copies > COPIES_LIMIT:
                return None
            if loop.place not in self.chosen:
                return loop
        return None


HALF_BITS = 11  # significant ones of an IEEE float16


class ThreadBuilder:
    """Writes one thread. Ops and messages carry the place of the source that ``span`` names, whatever language that is in."""

    def __init__(self, function: ThreadFunction, build: Build, sites: ThreadSites, unrolling: Unrolling | None = None) -> None:
        self.function = function
        self.build = build
        self.sites = sites
        self.unrolling = unrolling or Unrolling()
        self.emitter = Emitter()
        self.held: list[Acquisition] = []  # in order, not yet released on this path
        self.skippable: set[Operation] = set()  # loops that may run no round
        self.sums: list[tuple[Acquisition, Span]] = []  # blocks that an accumulating store is the first to write
        self._buffers: dict[int, BindCBOp] = {}
        self._tensors: dict[int, TensorAccessorOp] = {}
        self._semaphores: dict[int, CreateSemaphoreOp] = {}
        self._tables: list[Operation] = []  # numbers of this core
        self._core: Operation | None = None
        self._coordinates: list[Leaf | int] = []

    @property
    def kind(self) -> str:
        return self.function.kind

    @property
    def depth(self) -> int:
        """Of loops and branches on the device."""
        return self.emitter.depth

    def problem(self, code: str, message: str, *, help: str = "", label: str = "", notes: tuple[Note, ...] = ()) -> KernelError:
        """An error of the source that is translated now."""
        return fail(code, message, self.emitter.span, help=help, label=label, notes=notes)

    def buffer(self, buffer: CircularBuffer) -> SSAValue:
        bound = self._buffers.get(buffer.index)
        if bound is None:
            attributes: dict[str, Attribute] = {
                "cb_index": i64_attr(buffer.index),
                "buffer_factor": i64_attr(buffer.block_count),
                "name": text_attr(buffer.name),
            }
            if buffer.origin != "user":
                attributes["origin"] = StringAttr(buffer.origin)
            if buffer.tile != (hardware.TILE_ROWS, hardware.TILE_COLS):
                attributes["tile_sizes"] = i32_list(buffer.tile)
            if buffer.group is not None:
                attributes["allocation_group"] = i32_attr(buffer.group)
            if buffer.tensor is not None:
                attributes["tensor_index"] = i32_attr(buffer.tensor.index)
                attributes["first_tile"] = i32_attr(buffer.first_tile)
                attributes["tensor_name"] = StringAttr(buffer.tensor.name)
            bound = BindCBOp.create(
                result_types=[cb_type(folded(buffer.shape), buffer.dtype, buffer.block_count)],
                attributes=attributes,
                location=location_of(buffer.span),
            )
            remember(bound, buffer.span)
            self._buffers[buffer.index] = bound
        return bound.results[0]

    def accessor(self, tensor: KernelTensor) -> SSAValue:
        found = self._tensors.get(tensor.index)
        if found is None:
            spec = tensor.spec
            kind = AccessorType(int_array(tensor.tile_shape), tile_type(spec.dtype), text_attr(spec.memory))
            place = self.function.span
            found = TensorAccessorOp.create(
                result_types=[kind],
                attributes={
                    "tensor_index": i32_attr(tensor.index),
                    "name": text_attr(spec.name),
                    **({"layout": StringAttr(spec.layout)} if spec.layout in (ROW_MAJOR, ROWS) else {}),
                    **({"page_elements": i32_attr(page_elements(spec))} if has_own_pages(spec) else {}),
                    **({"significant_bits": i32_attr(HALF_BITS)} if spec.element == "float16" else {}),
                },
                location=location_of(place),
            )
            self._tensors[tensor.index] = found
        return found.results[0]

    def semaphore(self, semaphore: Semaphore) -> SSAValue:
        found = self._semaphores.get(semaphore.number)
        if found is None:
            span = semaphore.span
            attributes = {
                "initial_value": i32_attr(semaphore.initial_value),
                "number": i32_attr(semaphore.number),
                "name": StringAttr(semaphore.name),
            }
            found = CreateSemaphoreOp.create(result_types=[SemaphoreType()], attributes=attributes, location=location_of(span))
            remember(found, span)
            self._semaphores[semaphore.number] = found
        return found.results[0]

    def entry_leaf(self, op: Operation, name: str, low: int, high: int) -> Leaf:
        """A number that stands at the top of the thread; asked for again, it is the same."""
        for known in self._tables:
            if known.attributes == op.attributes:
                op = known
                break
        else:
            self._tables.append(op)
        return self.emitter.leaf(op.results[0], name, low, high, self.emitter.entry)

    def coordinates(self) -> list[Leaf | int]:
        """This core's place, one per grid dimension; a dimension of size 1 has only place 0."""
        if self._core is not None or self._coordinates:
            return self._coordinates
        grid = self.build.grid
        core: Operation | None = None
        if any(size > 1 for size in grid):
            core = CoreOp.create(
                result_types=[INDEX] * len(grid),
                location=location_of(self.emitter.span),
            )
        for axis, size in enumerate(grid):
            if core is None or size == 1:
                self._coordinates.append(0)
                continue
            name = f"core_{'xyz'[axis]}"
            core.results[axis].name_hint = name
            self._coordinates.append(self.emitter.leaf(core.results[axis], name, 0, size - 1, self.emitter.entry))
        self._core = core
        return self._coordinates

    @property
    def coordinates_read(self) -> list[Leaf | int]:
        """The place, if anything of the thread has asked for it; else empty."""
        return self._coordinates

    def finish_entry(self) -> None:
        """What the thread uses of the outside stands first: buffers by index, tensors by position, coordinates."""
        head: list[Operation] = [self._buffers[index] for index in sorted(self._buffers)]
        head += [self._tensors[index] for index in sorted(self._tensors)]
        head += [self._semaphores[number] for number in sorted(self._semaphores)]
        if self._core is not None:
            head.append(self._core)
        head += self._tables
        first = self.emitter.entry.first_op
        if first is None:
            self.emitter.entry.add_ops(head)
        else:
            self.emitter.entry.insert_ops_before(head, first)

    def finish(self, name: str, place: Span) -> FuncOp:
        """The thread as a function, once all of it is written."""
        self.finish_entry()
        erase_unused_arithmetic(self.emitter.entry)
        self.emitter.add(ReturnOp)
        function = FuncOp(name, ([], []), Region(self.emitter.entry))
        function.attributes["ttl.kernel_thread"] = COMPUTE_THREAD if self.kind == "compute" else NOC_THREAD
        function.location = location_of(place)
        if self.emitter.post_lines:
            rows = {name: sorted(lines) for name, lines in self.emitter.post_lines.items()}
            function.attributes[SIGNPOSTS] = signposts_attr(rows)
        return function
