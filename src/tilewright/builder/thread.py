"""The function of one thread while it is written: its ops, what it uses of the outside, what it holds, where we are in the
source.

``Emitter`` writes the ops: insertion point, locations, and integers written out where they are first needed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FunctionType, IntegerAttr, IntegerType, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.ir import Block as IRBlock

from tilewright import hardware
from tilewright.builder.extents import ThreadSites
from tilewright.builder.values import Acquisition, CountedLoop, folded
from tilewright.diagnostics import KernelError, Note, Span, fail
from tilewright.dialects.attributes import (
    COMPUTE_THREAD,
    I1,
    INDEX,
    NOC_THREAD,
    AccessorType,
    SemaphoreType,
    cb_type,
    constant,
    created,
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
from tilewright.dialects.walking import append, block_ops, erase, insert_before, location_of, remember
from tilewright.integers import (
    COMPARISONS,
    PREDICATES,
    SYMBOLS,
    UNBOUNDED,
    Dynamic,
    Leaf,
    Node,
    Value,
    bounds,
    is_dynamic,
    is_truth,
    make,
)
from tilewright.lang.buffers import CircularBuffer
from tilewright.lang.cores import Semaphore
from tilewright.lang.kernel import Build, ThreadFunction
from tilewright.lang.tensors import KernelTensor
from tilewright.program import ROW_MAJOR, ROWS
from tilewright.records import record
from tilewright.tile_pages import has_own_pages, page_elements

OPS: dict[str, type[Operation]] = {op.name: op for op in arith.Arith.operations}
PLAIN_OPS = {symbol: OPS[name] for symbol, name in SYMBOLS.items()}
FUNCTION_TYPE = FunctionType.from_lists([], [])
FREE_OPS = frozenset[type[Operation]]((arith.ConstantOp, *PLAIN_OPS.values(), arith.CmpiOp, arith.XOrIOp))


@record
class Turns:
    """A loop over a range, of which a core may know the ends only when it runs."""

    body: IRBlock
    start: Value
    stop: Value
    step: int


class Emitter:
    def __init__(self) -> None:
        self.entry = IRBlock()
        self.block = self.entry
        self.span = Span("", 1)
        self._open: list[tuple[IRBlock, dict[object, SSAValue]]] = [(self.entry, {})]
        self._leaves: dict[int, tuple[SSAValue, IRBlock]] = {}
        self.posts: list[str] = []  # signposts around the insertion point
        self.post_lines: dict[str, set[tuple[str, int]]] = {}  # places of the ops below each
        self._conditions: dict[IRBlock, Value] = {}  # under which a branch runs
        self._given: list[Value] = []  # what holds where an expression is evaluated, without a branch
        self.counters: dict[Leaf, Turns] = {}  # of loops over ranges

    def add(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue] = (),
        results: Sequence[Attribute] = (),
        attributes: Mapping[str, Attribute] | None = None,
        *,
        properties: Mapping[str, Attribute] | None = None,
        regions: Sequence[Region] = (),
        span: Span | None = None,
    ) -> Operation:
        """Appends an op that carries the current place of the source."""
        place = span or self.span
        op = kind.create(
            operands=operands,
            result_types=results,
            attributes=attributes or {},
            properties=properties or {},
            regions=regions,
            location=location_of(place),
        )
        append(op, self.block)
        remember(op, place)
        for post in self.posts:
            self.post_lines.setdefault(post, set()).add((place.file, place.line))
        return op

    def leaf(self, ssa: SSAValue, name: str, low: int, high: int, home: IRBlock | None = None) -> Leaf:
        """An integer that the IR computes, known in ``home`` (by default the code we are in) and all that it holds."""
        ident = len(self._leaves)
        self._leaves[ident] = (ssa, self.block if home is None else home)
        return Leaf(ident, name, low, high)

    def is_of_loop(self, leaf: Leaf) -> bool:
        """Whether a loop gives the leaf its value: its counter, or what it carries and leaves behind."""
        owner = self._leaves[leaf.ident][0].owner
        return isinstance(owner, (IRBlock, scf.ForOp))

    @property
    def depth(self) -> int:
        """Of loops and branches around the insertion point."""
        return len(self._open) - 1

    def enter(self, block: IRBlock) -> None:
        self._open.append((block, {}))
        self.block = block

    def leave(self) -> None:
        self._open.pop()
        self.block = self._open[-1][0]

    @contextmanager
    def aside(self) -> Generator[list[Operation], None, None]:
        """Ops added meanwhile end up in the list, and the caller puts them where they belong."""
        scratch, block = IRBlock(), self.block
        self.block = scratch
        ops: list[Operation] = []
        try:
            yield ops
        finally:
            self.block = block
        for op in block_ops(scratch):
            op.detach()
            ops.append(op)

    def open_blocks(self) -> list[IRBlock]:
        """The pieces of code we are in, outermost first."""
        return [block for block, _ in self._open]

    def is_open(self, ssa: SSAValue) -> bool:
        """Whether a value still exists here: its region has not ended."""
        owner = ssa.owner
        home = owner.parent if isinstance(owner, Operation) else owner
        return any(home is block for block, _ in self._open)

    @contextmanager
    def given(self, condition: Value) -> Generator[None, None, None]:
        """Python would evaluate what follows only if this holds."""
        self._given.append(condition)
        try:
            yield
        finally:
            self._given.pop()

    def reached(self) -> Value | None:
        """The condition under which a core comes here in a turn of the `counters`; None if a loop around counts otherwise."""
        counted = {turns.body for turns in self.counters.values()}
        result: Value = True
        for block, _ in self._open[1:]:
            if block not in counted and block not in self._conditions:
                return None
            result = make("and", result, self._conditions.get(block, True))
        for condition in self._given:
            result = make("and", result, condition)
        return result

    def varies(self, value: Value) -> bool:
        """Whether a value may be another one in another iteration of a loop; a core's own numbers are not."""
        if isinstance(value, Leaf):
            return self._leaves[value.ident][1] is not self.entry
        return isinstance(value, Node) and any(self.varies(arg) for arg in value.args)

    @contextmanager
    def on_trial(self) -> Generator[Callable[[], None], None, None]:
        """Gives a function that takes back the branches and integers written meanwhile."""
        block, last, (_, known) = self.block, self.block.last_op, self._open[-1]
        before = dict(known)

        def take_back() -> None:
            known.clear()
            known.update(before)
            op = block.last_op
            while op is not None and op is not last:
                previous = op.prev_op
                if isinstance(op, scf.IfOp) or (type(op) in FREE_OPS and not any(result.uses for result in op.results)):
                    erase(op)
                op = previous

        yield take_back

    def integer(self, value: Value) -> SSAValue:
        """The SSA value of an integer or truth; computed once per region."""
        key: object = value if is_dynamic(value) else ("truth" if isinstance(value, bool) else "int", value)
        for _, known in self._open:
            if key in known:
                return known[key]
        result = self._dynamic(value) if isinstance(value, (Leaf, Node)) else self._constant(value)
        self._open[-1][1][key] = result
        return result

    def _constant(self, value: int | bool) -> SSAValue:
        place = location_of(self.span)
        if isinstance(value, bool):
            attribute = IntegerAttr(int(value), IntegerType(1))
            op: Operation = arith.ConstantOp.create(result_types=[I1], properties={"value": attribute}, location=place)
        elif not -UNBOUNDED <= value < 2 * UNBOUNDED:
            message = f"a number of {value.bit_length()} bits; integers of the device have 32"
            raise fail("TW004", message, self.span, help="compute with smaller numbers")
        else:
            op = constant(value)
            op.location = place
        append(op, self.block)
        return op.results[0]

    def _dynamic(self, value: Dynamic) -> SSAValue:
        if isinstance(value, Leaf):
            ssa, home = self._leaves[value.ident]
            if not any(home is block for block, _ in self._open):
                message = f"'{value.name}' has no value here: the loop or branch that gives it one has ended"
                raise fail("TW012", message, self.span, help="use it inside that loop or branch, or compute it again")
            return ssa
        if value.op in ("//", "%"):
            return self._division(value)
        if value.op == "not":
            return self._result(arith.XOrIOp, [self.integer(value.args[0]), self.integer(True)], I1)
        operands = [self.integer(arg) for arg in value.args]
        if value.op in COMPARISONS:
            predicate = {"predicate": IntegerAttr(PREDICATES.index(value.op), 64)}
            return self.add(arith.CmpiOp, operands, [I1], properties=predicate).results[0]
        kind = I1 if is_truth(value) else INDEX
        return self._result(PLAIN_OPS[value.op], operands, kind)

    def _result(self, kind: type[Operation], operands: Sequence[SSAValue], result: Attribute) -> SSAValue:
        return self.add(kind, operands, [result]).results[0]

    def _division(self, node: Node) -> SSAValue:
        """Python rounds down. The hardware divides unsigned: a numerator that may be negative is shifted up by whole divisors."""
        numerator, divisor = node.args
        low, high = bounds(divisor)
        if low <= 0 <= high or low < 0:
            zero = low == high == 0
            remedy = "divide by a positive number, or guard with an if on constants"
            raise fail("TW016", "division by zero" if zero else "the divisor may be zero or negative", self.span, help=remedy)
        shift = 0
        least = bounds(numerator)[0]
        if least < 0:
            if not isinstance(divisor, int) or least < -(2**30):
                remedy = "add a multiple of the divisor first"
                raise fail("TW016", f"the left side of {node.op} may be negative ({least} at least)", self.span, help=remedy)
            shift = -(least // divisor)
        shifted = make("+", numerator, shift * divisor) if shift else numerator
        result = self._result(PLAIN_OPS[node.op], [self.integer(shifted), self.integer(divisor)], INDEX)
        if node.op == "//" and shift:
            return self._result(arith.SubiOp, [result, self.integer(shift)], INDEX)
        return result

    def for_loop(self, start: Value, stop: Value, step: Value, carried: Sequence[Value], name: str) -> scf.ForOp:
        """An ``scf.for`` with an open body; `close_loop` ends it."""
        operands = [self.integer(value) for value in (start, stop, step, *carried)]
        body = IRBlock(arg_types=[INDEX] * (1 + len(carried)))
        body.args[0].name_hint = name if name.isidentifier() and name.isascii() and name != "_" else None
        loop = self.add(scf.ForOp, operands, [INDEX] * len(carried), regions=[Region(body)])
        self.enter(body)
        assert isinstance(loop, scf.ForOp)
        return loop

    def close_loop(self, carried: Sequence[Value]) -> None:
        self.add(scf.YieldOp, [self.integer(value) for value in carried])
        self.leave()

    def branch(self, condition: Value) -> tuple[IRBlock, IRBlock]:
        """An ``scf.if``; its two blocks are still to be entered and closed by the caller."""
        then, otherwise = IRBlock(), IRBlock()
        self.add(scf.IfOp, [self.integer(condition)], regions=[Region(then), Region(otherwise)])
        self._conditions[then], self._conditions[otherwise] = condition, make("not", condition)
        return then, otherwise

    def close_branch(self) -> None:
        self.add(scf.YieldOp)
        self.leave()


def erase_unused_arithmetic(block: IRBlock) -> None:
    """Integers the source computes but no op needs: the end of a slice, for one."""
    for op in reversed(block_ops(block)):
        for region in op.regions:
            for inner in region.blocks:
                erase_unused_arithmetic(inner)
        if type(op) in FREE_OPS:
            if all(result.first_use is None for result in op.results):
                erase(op)
        elif type(op) is scf.IfOp:
            _drop_empty_else(op)


def _drop_empty_else(op: scf.IfOp) -> None:
    otherwise = op.false_region
    if otherwise.blocks and isinstance(otherwise.block.first_op, scf.YieldOp) and not op.results:
        block = otherwise.block
        otherwise.detach_block(block)
        block.erase()


COPIES_LIMIT = 128  # of the innermost body, over all loops unrolled around it


@record(frozen=False)
class Unrolling:
    """Which loops one translation of a thread unrolls, and what it learns about the others."""

    chosen: set[Span] = field(default_factory=set[Span])
    kept: set[tuple[Span, str]] = field(default_factory=set[tuple[Span, str]])  # by loop: names it only assigns, which outlive it
    outlives: tuple[Span, str] | None = None  # such a name was read, and its loop did not know
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
        self.tiles: set[tuple[int, int]] = set()  # sizes of those of the author's buffers that the thread uses
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
            else:
                self.tiles.add(buffer.tile)
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
            insert_before(head, first)

    def finish(self, name: str, place: Span) -> FuncOp:
        """The thread as a function, once all of it is written."""
        self.finish_entry()
        del self.sites.kernel  # which names them: else only a collection would free either
        erase_unused_arithmetic(self.emitter.entry)
        self.emitter.add(ReturnOp)
        function = created(FuncOp, body=Region(self.emitter.entry))
        function.properties = {"sym_name": StringAttr(name), "function_type": FUNCTION_TYPE}
        function.attributes["ttl.kernel_thread"] = COMPUTE_THREAD if self.kind == "compute" else NOC_THREAD
        function.location = location_of(place)
        if self.emitter.post_lines:
            rows = {name: sorted(lines) for name, lines in self.emitter.post_lines.items()}
            function.attributes[SIGNPOSTS] = signposts_attr(rows)
        return function
