"""Keeps the fewest ``*_init`` and format calls that the engines' state allows, hoisted out of loops.

Requires: every math call directly behind its init. Ensures: one start-up at the top; each call runs under its init, formats are
switched only where they change. The state model: the matrix unit and its unpacker hold one configuration, the vector unit
another; inits of the one do not disturb the other; a stateless vector op needs only that some vector init ran.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import field

from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import Block, Operation, SSAValue

from tilewright.diagnostics import fail
from tilewright.dialects.attributes import KernelCBType, defining_op, int_value, text_attr, text_value, trip_count
from tilewright.dialects.stages import INITS_PLACED
from tilewright.dialects.ttkernel import KernelCallOp
from tilewright.dialects.ttl import thread_kind
from tilewright.dialects.ttl_network import nested_value
from tilewright.dialects.walking import block_ops, insert_after, insert_before, op_around, operations, place_of
from tilewright.passes.context import PassContext
from tilewright.passes.kernel_calls.buffers import call
from tilewright.passes.kernel_calls.engine_state import (
    ANY,
    FULL_INIT,
    WHOLE_TILES,
    NoInit,
    Requirement,
    fills_replay,
    is_init,
    keeps_table,
    pack_format,
    records,
    requirements,
    source_format,
)
from tilewright.records import record

NAME = "ttkernel-place-inits"

STARTUPS = ("init_sfpu", "binary_op_init_common", "mm_init")
OWN_STARTUP = re.compile(rf"\b(compute_kernel_hw_startup|unary_op_init_common|mm_block_init|{'|'.join(STARTUPS)})\s*[<(]")
EXTERNAL_CALL = "ttkernel.extern_call"  # C++ of the author's own sets engines up as it likes, and leaves the packer plain
AFTER_EXTERNAL = {"edge": WHOLE_TILES, "relu": "none"}
ENGINES = ("fpu", "sfpu")  # states that a call's own init sets


def run(module: ModuleOp, context: PassContext) -> None:
    for function in module.ops:
        if isinstance(function, FuncOp) and thread_kind(function) == "compute":
            throttled = context.chip.throttles_products
            _Placement(function, hoist=context.options.inits == "hoist", throttled=throttled).run()
            function.attributes[INITS_PLACED] = UnitAttr()


@record(frozen=False)
class Summary:
    """What a stretch of code needs of each state: the set of keys, the first and the last."""

    keys: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    first: dict[str, Requirement] = field(default_factory=dict[str, Requirement])
    last: dict[str, Requirement] = field(default_factory=dict[str, Requirement])

    def add(self, need: Requirement) -> None:
        self.keys.setdefault(need.state, set())
        if need.key == ANY and need.state in self.first:
            return
        if need.state in self.first and self.first[need.state].key == ANY:
            self.first[need.state] = need
        self.first.setdefault(need.state, need)
        self.last[need.state] = need
        if need.key != ANY:
            self.keys[need.state].add(need.key)


class _Placement:
    def __init__(self, function: FuncOp, *, hoist: bool, throttled: bool) -> None:
        self.function = function
        self.hoist = hoist
        self.throttled = throttled
        self.entry = function.body.block
        self.needs: dict[Operation, tuple[Requirement, ...]] = {}
        self.own_init: dict[Operation, Operation] = {}  # filled if every call keeps its init
        self.steps: dict[Block, list[Operation]] = {}
        self.summaries: dict[Block, Summary] = {}
        self.fillers: set[Operation] = set()  # calls that undo inits which record instructions
        self.products: set[Operation] = set()  # calls behind which the vector unit needs its init again
        self.foreign: set[Operation] = set()  # the author's own C++
        self.openers: dict[Operation, Requirement] = {}  # acquires of sections that start DST anew, and the init that does so
        self.masks = False  # whether any call masks the packer
        self.matter: set[Operation] = set()  # all of these
        self.around: list[set[Operation]] = []  # the ops around fillers, around foreign code and around products

    def run(self) -> None:
        calls = [op for op in operations(self.function) if isinstance(op, KernelCallOp)]
        startups = [op for op in calls if op.CALL.name in STARTUPS]
        foreign = [op for op in calls if op.name == EXTERNAL_CALL]
        tables = any(keeps_table(op) for op in calls if op.FORM is not None)
        math: list[KernelCallOp] = []
        inits: list[KernelCallOp] = []
        pending: Operation | None = None
        acquire: Operation | None = None
        masking: dict[str, tuple[Requirement, ...]] = {}  # what reductions of this section need, by the mask it gives the packer
        lost = False  # whether an init behind them has started the packer anew
        for op in calls:
            if op.CALL.name in STARTUPS:
                continue
            if is_init(op):
                inits.append(op)
                pending = op
                continue
            if op.CALL.name == "tile_regs_acquire":
                acquire, masking, lost = op, {}, False
            found = requirements(op, pending, tables=tables)
            if found:
                math.append(op)
            if acquire is not None and pending is not None and pending.name == f"ttkernel.{FULL_INIT}":
                self.openers.setdefault(acquire, next(need for need in found if need.state == "fpu"))
                lost = True
            if op.CALL.name == "reduce_tile":
                masking |= {need.key: _of_reduction(found) for need in found if need.state == "edge"}
                self.masks, lost = True, False
            elif lost:  # what packs their results masks it again
                found = tuple(each for need in found for each in _masked_again(need, masking))
            if not self.hoist:
                found = tuple(need for need in found if need.state not in ENGINES)
                if pending is not None:
                    self.own_init[op] = pending
            if found:
                self.needs[op] = found
            pending = None
        if not math:
            self._start_external(startups, foreign)
            return
        wide = bool(int_value(self.function, "ttl.fp32_dest_acc_en", 0))
        self.fillers = {op for op in calls if op.FORM is not None and fills_replay(op, wide=wide)}
        self.foreign = set(foreign)
        self.products = {op for op in calls if self.throttled and op.CALL.name == "matmul_block"}
        self.matter = self.fillers.union(self.needs, self.openers, self.products, self.foreign)
        self.around = [_around(ops) for ops in (self.fillers, self.foreign, self.products)]
        state = self._start(startups, math)
        for op in inits if self.hoist else ():
            op.detach()
        self._place(self.entry, state)
        if state.get("edge") != WHOLE_TILES and self.entry.last_op is not None:
            self.entry.insert_op_before(call("reduce_uninit"), self.entry.last_op)
        if state.get("relu") != "none" and self.entry.last_op is not None:
            self.entry.insert_op_before(call("pack_relu_config", attributes={"mode": text_attr("none")}), self.entry.last_op)

    def _start(self, startups: list[KernelCallOp], math: list[KernelCallOp]) -> dict[str, str]:
        """One start-up for the whole kernel, for the buffers that are used first."""
        for op in startups:
            op.detach()
        packs = [op for op in math if op.CALL.name == "pack_tile"]
        if not packs:
            raise fail("TW603", "the compute thread packs nothing", place_of(math[0]), help="pack_tile what is in DST")
        output = packs[0].operands[1]
        pair = next((op for op in math if op.CALL.name != "pack_tile" and len(_buffers(op)) == 2), None)
        single = next((op for op in math if op.CALL.name != "pack_tile" and _buffers(op)), None)
        reverse = pair is not None and pair.CALL.name.startswith("matmul")
        if pair is not None:
            first, second = _buffers(pair)
            start = call("mm_init" if reverse else "binary_op_init_common", [first, second, output], like=pair)
        else:
            first = second = _buffers(single)[0] if single is not None else output
            start = call("init_sfpu", [first, output], like=math[0])
        self._put_first(start)
        srca, srcb = (second, first) if reverse else (first, second)
        sources = {"srca": source_format(srca), "srcb": source_format(srcb)}
        return {**sources, "pack": pack_format(output), "edge": WHOLE_TILES, "relu": "none"}

    def _start_external(self, startups: list[KernelCallOp], foreign: list[KernelCallOp]) -> None:
        """The author's code sets up what it computes with; the engines start once, before it, for its first call's buffers."""
        owner = next((op for op in foreign if _buffers(op)), None)
        if owner is None or startups or any(OWN_STARTUP.search(text_value(op, "code")) for op in foreign):
            return
        filled: set[int] = {place[0] for place in nested_value(owner.attributes["blocks"]) if place[4]}
        read = [value for place, value in enumerate(owner.operands) if value in _buffers(owner) and place not in filled]
        outputs = [owner.operands[place] for place in sorted(filled)]
        sources = (read or outputs)[:2]
        name = "init_sfpu" if len(sources) == 1 else "binary_op_init_common"
        self._put_first(call(name, [*sources, (outputs or read)[0]], like=owner))

    def _put_first(self, start: Operation) -> None:
        """Behind the buffers it names and the other arguments of the kernel."""
        named = [defining_op(value) for value in start.operands]
        anchor = next(op for op in reversed(block_ops(self.entry)) if op in named)
        while anchor.next_op is not None and anchor.next_op.name in PRELUDE:
            anchor = anchor.next_op
        insert_after(start, anchor)

    def _steps(self, block: Block) -> list[Operation]:
        """The ops of a block that matter here: few do, and each block is gone through many times."""
        known = self.steps.get(block)
        if known is None:
            matter = self.matter
            known = self.steps[block] = [op for op in block_ops(block) if op.regions or op in matter]
        return known

    # Summaries --------------------------------------------------------------------------------------------------------

    def _summary(self, block: Block) -> Summary:
        if block not in self.summaries:
            summary = Summary()
            for op in self._steps(block):
                for need in self.needs.get(op, ()):
                    summary.add(need)
                for region in op.regions:
                    for inner in region.blocks:
                        self._merge(summary, self._summary(inner))
            self.summaries[block] = summary
        return self.summaries[block]

    @staticmethod
    def _merge(into: Summary, inner: Summary) -> None:
        for state in inner.keys:
            into.add(inner.first[state])
            into.keys[state] |= inner.keys[state]
            into.last[state] = inner.last[state]

    def _after(self, block: Block, name: str, key: str | None) -> str | None:
        """The state ``name`` behind ``block`` if it is ``key`` in front; None where paths differ."""
        for op in self._steps(block):
            for need in self.needs.get(op, ()):
                if need.state == name and (need.key != ANY or key is None):
                    key = need.key if need.key != ANY else None
            if name == "fpu" and op in self.fillers and records(key or ""):
                key = None
            if not op.regions:
                continue
            ends = {self._after(region.block, name, key) if region.blocks else key for region in op.regions}
            if isinstance(op, ForOp) and not self._runs(op):
                ends.add(key)
            key = ends.pop() if len(ends) == 1 else None
        return key

    # Placement --------------------------------------------------------------------------------------------------------

    def _place(self, block: Block, state: dict[str, str]) -> None:
        for op in self._steps(block):
            if op in self.openers:
                self._establish(self.openers[op], state, op)
            for need in self.needs.get(op, ()):
                self._satisfy(need, state, op)
            if op.regions:
                if isinstance(op, ForOp):
                    self._loop(op, state)
                else:
                    self._branches(op, state)
            if op in self.fillers:
                self._forget(state)
            if op in self.products and "sfpu" in state:
                state["sfpu"] = ANY
            if op in self.foreign:
                state.clear()
                state.update(AFTER_EXTERNAL)

    @staticmethod
    def _forget(state: dict[str, str]) -> None:
        """A call has taken the replay buffer."""
        if records(state.get("fpu", "")):
            state.pop("fpu")

    def _satisfy(self, need: Requirement, state: dict[str, str], before: Operation) -> None:
        current = state.get(need.state)
        if current == need.key or (need.key == ANY and current is not None):
            return
        if self.hoist or need.state != "edge" or need.key == WHOLE_TILES:  # else the reduction's own init masks the packer
            insert_before(_made(need, before), self.own_init.get(before, before))
        self._note(need, state)

    def _note(self, need: Requirement, state: dict[str, str]) -> None:
        state[need.state] = need.key
        state.update(need.also)
        if not self.masks:
            state["edge"] = WHOLE_TILES

    def _establish(self, need: Requirement, state: dict[str, str], acquire: Operation) -> None:
        """A section in which DST is started anew begins with it: what an earlier section left does not matter there."""
        insert_before(_made(need, acquire), acquire)
        self._note(need, state)

    def _loop(self, loop: ForOp, state: dict[str, str]) -> None:
        body = loop.body.block
        summary = self._summary(body)
        inside = dict(state)
        taken, foreign, slowed = [loop in ops for ops in self.around]
        lost = {"fpu"} if taken and any(map(records, summary.keys.get("fpu", ()))) and not self._recurs(body) else set[str]()
        lost |= {"sfpu"} if slowed and summary.keys.get("sfpu") else set[str]()
        lost = set(summary.keys) if foreign else lost
        in_front: dict[str, Requirement] = {}
        for name, keys in summary.keys.items():
            first, last = summary.first[name], summary.last[name]
            if name == "sfpu" and name in lost and not foreign and name in state:
                inside[name] = ANY
            elif name in lost:
                inside.pop(name, None)
            elif len(keys) <= 1:
                # One configuration serves the whole loop: set it up once, in front.
                in_front[name] = first if not keys or first.key != ANY else last
            elif self._after(body, name, first.key) == first.key:
                # Every trip ends as it begins, whichever branches it takes: what the first trip needs is there for all.
                in_front[name] = first
            elif name in state:
                inside[name] = ANY  # whichever it is, on every trip there is one
        for _ in range(2):  # the init that masks the packer for a reduction sets up the matrix unit too, which had its turn
            for name, need in in_front.items():
                self._satisfy(need, state, loop)
                inside[name] = state[name]
        for name in in_front:
            if inside[name] != state.get(name):
                inside.pop(name)
        several = [name for name, keys in summary.keys.items() if len(keys) > 1 or name in lost]
        before = {name: state.get(name) for name in several}
        self._place(body, inside)
        for name in several:
            if name in inside and (self._runs(loop) or before[name] == inside[name]):
                state[name] = inside[name]
            else:
                state.pop(name, None)
        if taken and "fpu" not in several:
            self._forget(state)
        if slowed and "sfpu" in state and "sfpu" not in several:
            state["sfpu"] = ANY
        if foreign:
            state.clear()
            state.update(AFTER_EXTERNAL)

    def _recurs(self, body: Block) -> bool:
        """Whether a trip leaves the matrix unit as it found it, although a call takes the replay buffer on the way."""
        first = self._summary(body).first["fpu"].key
        return first != ANY and self._after(body, "fpu", first) == first

    @staticmethod
    def _runs(loop: ForOp) -> bool:
        return bool(trip_count(loop))

    def _branches(self, op: Operation, state: dict[str, str]) -> None:
        ends: list[dict[str, str]] = []
        for region in op.regions:
            branch = dict(state)
            for block in region.blocks:
                self._place(block, branch)
            ends.append(branch)
        for name in list({key for end in ends for key in end} | set(state)):
            values = {end.get(name) for end in ends}
            if len(values) == 1 and None not in values:
                state[name] = ends[0][name]
            else:
                state.pop(name, None)


def _around(ops: Iterable[Operation]) -> set[Operation]:
    found: set[Operation] = set()
    for op in ops:
        current = op_around(op)
        while current is not None and current not in found:
            found.add(current)
            current = op_around(current)
    return found


def _made(need: Requirement, before: Operation) -> Operation:
    try:
        return need.make()
    except NoInit:  # only text can leave it out
        remedy = f"every call directly behind its init, or {INITS_PLACED} on the function if all are where they are needed"
        where = "a call in the loop" if before.regions else f"'{before.name}'"
        raise fail("TW603", f"{where} has no init in front of it", place_of(before), help=remedy) from None


def _of_reduction(needs: tuple[Requirement, ...]) -> tuple[Requirement, ...]:
    """Its init sets up the matrix unit and masks the packer."""
    return tuple(need for need in needs if need.state in ("fpu", "edge"))


def _masked_again(need: Requirement, masking: dict[str, tuple[Requirement, ...]]) -> tuple[Requirement, ...]:
    return masking.get(need.key, (need,)) if need.state == "edge" else (need,)


PRELUDE = ("ttkernel.get_compile_time_arg_val", "ttkernel.get_arg_val", "ttkernel.my_core", "arith.constant")


def _buffers(op: Operation) -> list[SSAValue]:
    return [operand for operand in op.operands if type(operand.type) is KernelCBType]
