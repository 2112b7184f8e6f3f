"""When a pass has anything to do: a census of the module, and facts about it.

`Pass.on` names ops, attributes, options (``--enable-unroll``) and facts: what several of them must be like together. A fact may
hold without need, and then the pass finds nothing; where it does not hold, the pass must have nothing to do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from tilewright.dialects.attributes import SliceType, buffer_type_of, text_value
from tilewright.dialects.stages import COMPUTED
from tilewright.dialects.ttl import thread_kind
from tilewright.dialects.ttl_buffers import BindCBOp
from tilewright.dialects.walking import operations, users
from tilewright.passes.context import PassContext

MATH = frozenset(f"ttl.{name}" for name in COMPUTED)
UNREAD_OPS = MATH | {"ttl.attach_cb", "ttl.tensor_slice", "ttl.tensor_accessor"}
FILLED_AND_READ = ("ttkernel.cb_push_back", "ttkernel.cb_wait_front")
ACQUIRES = frozenset({"ttl.cb_wait", "ttl.cb_reserve"})
COPIES = frozenset({"ttl.copy"})
MOST_PAGES = 64  # that are read together: larger blocks stream by themselves, 3 % were measured to be left to gain at 64 pages


class Census:
    """What there is in a module: counted in one walk when somebody asks, and again after a change (`forget`)."""

    def __init__(self, module: ModuleOp) -> None:
        self.module = module
        self.forget()

    def forget(self) -> None:
        self._names: dict[str, list[Operation]] | None = None
        self._attributes: set[str] | None = None
        self._text = ""

    @property
    def text(self) -> str:
        self._text = self._text or str(self.module)
        return self._text

    @property
    def names(self) -> dict[str, list[Operation]]:
        """The ops by name, each kind in the order of the module."""
        if self._names is None:
            self._names = {}
            for op in operations(self.module):
                known = self._names.get(op.name)
                if known is None:
                    self._names[op.name] = [op]
                else:
                    known.append(op)
        return self._names

    @property
    def attributes(self) -> set[str]:
        if self._attributes is None:
            self._attributes = set[str]().union(*[op.attributes for ops in self.names.values() for op in ops])
        return self._attributes

    def named(self, names: Container[str]) -> list[Operation]:
        """The ops of these names, one kind after the other."""
        return [op for name, ops in self.names.items() if name in names for op in ops]

    def count(self, name: str) -> int:
        return len(self.names.get(name, ()))

    @property
    def binds(self) -> list[BindCBOp]:
        return self.names.get(BindCBOp.name, [])  # pyright: ignore[reportReturnType]

    def holds(self, word: str, context: PassContext) -> bool:
        if word.startswith("--"):
            return bool(getattr(context.options, word[2:].replace("-", "_")))
        fact = FACTS.get(word)
        return fact(self, context) if fact is not None else word in self.names or word in self.attributes


def _is_text(census: Census, context: PassContext) -> bool:
    return context.from_text or not context.tensors


def _is_explained(census: Census, context: PassContext) -> bool:
    return context.trace.keep_ir


def _is_padded(census: Census, context: PassContext) -> bool:
    return any(tensor.logical_shape for tensor in context.tensors)


def _in_a_shard(census: Census, context: PassContext) -> bool:
    return any(bind.backed for bind in census.binds)


def _crowded(census: Census, context: PassContext) -> bool:
    kinds = {bind.cb_index: buffer_type_of(bind.results[0]) for bind in census.binds}
    used = sum(kind.total_tiles * kind.tile.bytes for kind in kinds.values())
    return len(kinds) > context.chip.max_buffers // 2 or used > context.chip.l1_usable_bytes


def _of_one_thread(census: Census, context: PassContext) -> bool:
    used: dict[bool, set[int]] = {True: set(), False: set()}
    for bind in census.binds:
        thread = bind.parent_op()
        if isinstance(thread, FuncOp) and bind.results[0].first_use is not None:
            used[thread_kind(thread) == "compute"].add(bind.cb_index)
    return bool(used[True] - used[False])


def _acquired_in_two_places(census: Census, context: PassContext) -> bool:
    binds = [(op.name, op.operands[0].owner) for op in census.named(ACQUIRES)]
    places = Counter((name, bind.parent_op(), bind.cb_index) for name, bind in binds if isinstance(bind, BindCBOp))
    return len(places) < len(binds)


def _room_for_a_batch(census: Census, context: PassContext) -> bool:
    """Half of a buffer is left to who shares it; one that a thread fills and empties itself can be one batch."""
    sides: dict[BindCBOp, set[str]] = {bind: set() for bind in census.binds}
    for op in census.named(ACQUIRES):
        bind = op.operands[0].owner
        if isinstance(bind, BindCBOp):
            sides[bind].add(op.name)
    return any(buffer_type_of(bind.results[0]).factor.data >= (2 if len(names) == 2 else 4) for bind, names in sides.items())


def _against_the_stream(census: Census, context: PassContext) -> bool:
    """A copy of the reader's that writes a tensor, or one of the writer's that reads one."""
    for op in census.named(COPIES):
        place = 1 if isinstance(op.operands[0].type, SliceType) else 0
        if not isinstance(op.operands[1 - place].type, SliceType):
            continue
        thread = op.parent_op()
        while thread is not None and not isinstance(thread, FuncOp):
            thread = thread.parent_op()
        if thread is not None and text_value(thread, "ttl.role") == ("writer" if place else "reader"):
            return True
    return False


def _filled_and_read(census: Census, context: PassContext) -> bool:
    filled, read = ({op.operands[0] for op in census.named((name,))} for name in FILLED_AND_READ)
    return not filled.isdisjoint(read)


def _reads_in_a_loop(census: Census, context: PassContext) -> bool:
    if not context.options.reads_ahead or not census.count("scf.for") or not census.count("ttl.copy"):
        return False
    kinds = [buffer_type_of(bind.results[0]) for bind in census.binds]
    return any(kind.factor.data > 1 and kind.block_tiles < MOST_PAGES for kind in kinds)


def _stored_twice(census: Census, context: PassContext) -> bool:
    return census.count("ttl.store") > 1


def _computed_twice(census: Census, context: PassContext) -> bool:
    return any(len(ops) > 1 for name, ops in census.names.items() if name in MATH)


def _unread(census: Census, context: PassContext) -> bool:
    return any(all(result.first_use is None for result in op.results) for op in census.named(UNREAD_OPS))


def _read_further_inside(census: Census, context: PassContext) -> bool:
    return any(user.parent is not op.parent for op in census.named(MATH) for user in users(op.results[0]))


TEXT = "IR that no front end made"
EXPLAINED = "somebody who reads the trace"
PADDED = "a tensor that is not whole tiles"
SHARD = "a buffer in a shard"
CROWDED = "half of the chip's buffers in use, or all of its L1"
OWN_BUFFER = "a buffer that only the compute thread uses"
SECOND_BLOCK = "a buffer that is acquired in two places"
BATCH_ROOM = "a buffer with room for several blocks of who fills it"
AGAINST_THE_STREAM = "a reader that writes a tensor, or a writer that reads one"
RETURNED = "a buffer that a thread fills and reads"
READ_LOOP = "a loop, a copy and a buffer with room for two small blocks, with `--reads-ahead`"
SECOND_STORE = "a second store"
SAME_MATH = "an op of math twice"
UNREAD = "math or a view that nobody reads"
OUTER_MATH = "math that is read further inside"
FACTS: dict[str, Callable[[Census, PassContext], bool]] = {
    TEXT: _is_text, EXPLAINED: _is_explained, PADDED: _is_padded, SHARD: _in_a_shard, CROWDED: _crowded,
    OWN_BUFFER: _of_one_thread, SECOND_BLOCK: _acquired_in_two_places, BATCH_ROOM: _room_for_a_batch,
    AGAINST_THE_STREAM: _against_the_stream, READ_LOOP: _reads_in_a_loop, RETURNED: _filled_and_read,
    SECOND_STORE: _stored_twice, SAME_MATH: _computed_twice, UNREAD: _unread, OUTER_MATH: _read_further_inside,
}  # fmt: skip
