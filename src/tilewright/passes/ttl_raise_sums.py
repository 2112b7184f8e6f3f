"""``block += x`` as the running value it is: it starts from zero or from what was stored, and its result is stored to the block.

The packer adds bf16 and f32. So a sum in these formats is raised only where a loop adds to it once per piece of code: the place
of that sum is worth choosing. Other statements add to the block as they were written. Sums of integers and block floats are
always raised: statements of one piece of code are one expression, and a loop or branch with more of them is a running value.

Requires: every acquire has its release. Ensures: accumulating stores are those of the packer; a block of another format that
another piece of code releases is refused (TW107).
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import Block, Operation, SSAValue

from tilewright.diagnostics import counted, fail
from tilewright.dialects.attributes import buffer_type_of, number_attr
from tilewright.dialects.tile_op import INTEGER_DTYPES
from tilewright.dialects.tile_ops import BY_NAME
from tilewright.dialects.ttl import TENSOR_OPS, FillBlockOp, StoreOp, compute_functions, dtype_of, name_of, shape_of
from tilewright.dialects.ttl_buffers import AttachCBOp, CBPopOp, CBPushOp, RunningOp
from tilewright.dialects.walking import ancestor_in, block_ops, erase, insert_after, insert_before, line_of, of_kind, place_of
from tilewright.passes import compiler_buffers
from tilewright.passes.buffers import ACCUMULATE, ACQUIRES, PACKER_ADDS, RELEASES, acquire_of, bind_of, key_of
from tilewright.passes.context import PassContext

NAME = "ttl-raise-sums"
TWO = 2  # blocks: the old value is held while the new one is written
ADDED = " and ".join(PACKER_ADDS)
FOR_OTHERS = 12  # indices of buffers that stay free for values that must travel


def run(module: ModuleOp, context: PassContext) -> None:
    for function in compute_functions(module):
        if function.sym_name.data in context.unresolved:
            continue
        for reserve, stores in _sums(function).items():
            push, dtype = _release_of(reserve), dtype_of(stores[0].target.type)
            if dtype not in PACKER_ADDS:
                if push is None:
                    message = f"+= does not work on {dtype} here; the packer adds {ADDED}"
                    remedy = "keep the sum in a name (total = total + x) and store that, or push the block where it was reserved"
                    raise fail("TW107", message, place_of(stores[0]), help=remedy)
                name = name_of(bind_of(reserve.operands[0]), "block")
                why = f"the packer adds {ADDED}; {counted(len(stores), 'statement')} change it"
                context.trace.decide(NAME, f"the sum in '{name}' is a value", why, place=f"line {line_of(stores[0])}")
            elif push is None or not _of_one_loop(reserve, stores) or not _room(function, context):
                continue
            Sum(function, reserve, stores).raised()


def _room(function: FuncOp, context: PassContext) -> bool:
    return compiler_buffers.next_index(function) + FOR_OTHERS <= context.chip.max_buffers


def _sums(function: FuncOp) -> dict[Operation, list[StoreOp]]:
    """Reserved blocks that are added to, and all stores to them."""
    found: dict[Operation, list[StoreOp]] = {}
    for store in of_kind(function, StoreOp):
        reserve = acquire_of(store.target)
        if reserve is not None and not isinstance(reserve, RunningOp):
            found.setdefault(reserve, []).append(store)
    return {reserve: stores for reserve, stores in found.items() if any(ACCUMULATE in store.attributes for store in stores)}


def _release_of(reserve: Operation) -> Operation | None:
    """The release of a block, if it stands in the same piece of code."""
    waiting: list[Operation] = []
    assert reserve.parent is not None
    for op in block_ops(reserve.parent):
        if type(op) in ACQUIRES and key_of(op) == key_of(reserve):
            waiting.append(op)
        elif type(op) in RELEASES and key_of(op) == key_of(reserve) and waiting and waiting.pop(0) is reserve:
            return op
    return None


def _of_one_loop(reserve: Operation, stores: list[StoreOp]) -> bool:
    """Whether one loop adds to the block, a piece of code at most once. What it starts from may be stored in front."""
    home = reserve.parent
    assert home is not None
    tops = {ancestor_in(store, home) for store in stores if ACCUMULATE in store.attributes}
    loop = next(iter(tops))
    first = [store for store in stores if ACCUMULATE not in store.attributes]
    if len(tops) != 1 or not isinstance(loop, ForOp) or len({store.parent for store in stores}) < len(stores):
        return False
    return all(store.parent is home and store.is_before_in_block(loop) for store in first)


class Sum:
    """A block that is added to, its sum as a value, and the running values that loops and branches make of it."""

    def __init__(self, function: FuncOp, reserve: Operation, stores: list[StoreOp]) -> None:
        self.function, self.reserve, self.stores = function, reserve, stores
        self.target, self.place = stores[0].target, stores[0].location
        self.dtype = dtype_of(self.target.type)
        self.free: list[SSAValue] = []  # buffers in which no sum is under way
        self.held: list[SSAValue] = []  # buffers whose result is to be read

    def raised(self) -> None:
        assert self.reserve.parent is not None
        value, last = self._followed(self.reserve.parent, None)
        assert value is not None and last is not None
        self._stored(value, self.target, last)
        for store in self.stores:
            erase(store)

    def _followed(self, body: Block, running: RunningOp | None) -> tuple[SSAValue | None, Operation | None]:
        """What the sum is at the end of a piece of code, if no step says it, and the op behind which it is known."""
        value: SSAValue | None = None
        last: Operation | None = None
        for op in block_ops(body):
            if op in self.stores:
                assert isinstance(op, StoreOp)
                value, last = self._grown(op, running, value), op
            elif op.regions and any(op.is_ancestor(store) for store in self.stores):
                if running is None:
                    value, last = self._around(op, value)
                else:
                    self._step(running, value, last)
                    self._steps(op, running)
                    value = None
        return value, last

    def _grown(self, store: StoreOp, running: RunningOp | None, value: SSAValue | None) -> SSAValue:
        if ACCUMULATE not in store.attributes:
            return store.value
        if value is None and running is not None:
            value = self._view(running, store)
        if value is None:
            return store.value  # the first one
        row = TENSOR_OPS[dict(BY_NAME["add"].by_dtype).get(self.dtype, "add")]
        add = row.create(operands=[value, store.value], result_types=[self.target.type], location=store.location)
        insert_before(add, store)
        return add.results[0]

    def _around(self, op: Operation, value: SSAValue | None) -> tuple[SSAValue, Operation]:
        """A running value in a loop or branch, and its result behind that."""
        buffer = self.free.pop() if self.free else self._bound()
        running = RunningOp.create(
            operands=[buffer], result_types=[buffer_type_of(buffer).block_type], location=op.location
        )
        assert isinstance(running, RunningOp)
        insert_before(running, op)
        if value is None:
            number = number_attr(0 if self.dtype in INTEGER_DTYPES else 0.0)
            zero = FillBlockOp.create(result_types=[self.target.type], attributes={"value": number}, location=op.location)
            insert_before(zero, running)
            value = zero.results[0]
        first = AttachCBOp.create(operands=[running.results[0], buffer], result_types=[self.target.type], location=self.place)
        insert_after(first, running)
        self._stored(value, first.results[0], first)
        self._steps(op, running)
        waited = compiler_buffers.waited(buffer, op.location)
        insert_after([CBPushOp.create(operands=[buffer], location=op.location), *waited], op)
        self.held.append(buffer)
        return waited[-1].results[0], waited[-1]

    def _steps(self, op: Operation, running: RunningOp) -> None:
        for body in [block for region in op.regions for block in region.blocks]:
            self._step(running, *self._followed(body, running))

    def _step(self, running: RunningOp, value: SSAValue | None, last: Operation | None) -> None:
        if value is not None and last is not None:
            self._stored(value, self._view(running, last), last)

    def _view(self, running: RunningOp, before: Operation) -> SSAValue:
        view = AttachCBOp.create(
            operands=[running.results[0], running.buffer], result_types=[self.target.type], location=before.location
        )
        insert_before(view, before)
        return view.results[0]

    def _stored(self, value: SSAValue, target: SSAValue, behind: Operation) -> None:
        """Whatever result it reads has been read then."""
        store = StoreOp.create(operands=[value, target], location=behind.location)
        insert_after([store, *(CBPopOp.create(operands=[buffer], location=self.place) for buffer in self.held)], behind)
        self.free += self.held
        self.held = []

    def _bound(self) -> SSAValue:
        index = compiler_buffers.next_index(self.function)
        name = f"{name_of(bind_of(self.reserve.operands[0]), 'sum')}_{index}"
        return compiler_buffers.bind(self.function, index, shape_of(self.target.type), self.dtype, name, self.place, TWO)
