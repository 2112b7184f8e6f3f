"""Proof that a plan computes what the problem asks, by replaying it on a model of DST.

What is proved, for every part, every tile of a full acquire and every output: the physical DST index that is packed
holds the value the source defines. The replay is symbolic: a DST index is either untouched since the acquire or holds
one value of one tile, and an op may run only if each operand it names is where it says. In-place ops destroy their
operand, results that add to their slot need an untouched one, and buffer operands must be in a buffer (leaves, or
values an earlier part packed as a spill, in an intermediate buffer that holds nothing else from then to its last
reader). A forgotten copy, a clobbered slot or a shared slot of another tile
therefore ends in a wrong or missing value at a later read or at the pack.

Not proved: costs, minimality, and that a form does what its key says. No code is shared with the allocators.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tilewright.dst.problem import Allocation, Copy, Execute, Form, Layout, Load, Part, Place, Plan, Problem, ResultRule, Step


class CheckError(Exception):
    """The plan is wrong. ``step`` is the position in the part's steps, or None if no single step is to blame."""

    def __init__(self, reason: str, *, part: int = 0, step: int | None = None):
        where = f"part {part}" if step is None else f"part {part}, step {step}"
        super().__init__(f"{where}: {reason}")
        self.reason = reason
        self.part = part
        self.step = step


def check(problem: Problem, plan: Plan) -> None:
    """Raise CheckError unless ``plan`` computes every output of ``problem`` within its capacity."""
    for number, op in enumerate(problem.ops):
        for form in op.forms:
            _check_form(problem, number, form)
    if not plan.parts:
        raise CheckError("the plan has no parts")
    buffers = _BufferReplay(problem, plan)
    packed: list[int] = []
    for number, part in enumerate(plan.parts):
        buffers.before(number, part)
        _PartReplay(problem, part, number).run()
        buffers.after(part)
        packed.extend(part.outputs[part.spilled :])
    for value in buffers.holds.values():
        raise CheckError(f"value {value} is packed into a buffer and never read")
    if len(plan.parts) == 1 and plan.parts[0].outputs != problem.outputs:
        raise CheckError("the outputs are not packed in the order of the problem")
    if sorted(packed) != sorted(problem.outputs):
        raise CheckError(f"packed outputs {sorted(packed)} are not the outputs {sorted(problem.outputs)}")


def _check_form(problem: Problem, op: int, form: Form) -> None:
    """Expanding the op through the ops the form computes with it must reach exactly the form's operands."""
    absorbed = {*form.absorbs, *form.repeats}
    # Without ops of other results, the operands of the form are those of the op.
    reached: set[int] = set() if absorbed else {*problem.ops[op].operands}
    pending = list(problem.ops[op].operands) if absorbed else []
    met: set[int] = set()
    while pending:
        value = pending.pop()
        producer = problem.op_of(value)
        if not problem.is_leaf(value) and producer in absorbed:
            if producer not in met:
                met.add(producer)
                pending.extend(problem.ops[producer].operands)
        else:
            reached.add(value)
    if met != absorbed:
        raise CheckError(f"op {op}: form {form.key!r} absorbs ops {sorted(absorbed - met)} it does not depend on")
    if reached != {operand.value for operand in form.operands}:
        raise CheckError(f"op {op}: form {form.key!r} does not take the operands {sorted(reached)} of the expression")
    if form.result in (ResultRule.IN_PLACE, ResultRule.ACCUMULATE):
        if form.reuses is None or form.operands[form.reuses].place is not Place.DST:
            raise CheckError(f"op {op}: form {form.key!r} is in place but names no DST operand to reuse")
    elif form.reuses is not None:
        raise CheckError(f"op {op}: form {form.key!r} reuses an operand but is not in place")


class _BufferReplay:
    """The intermediate buffers from part to part. A part reserves before it runs, and pushes and pops after it."""

    def __init__(self, problem: Problem, plan: Plan):
        self.problem = problem
        self.buffer_of = dict(plan.buffers)
        self.holds: dict[int, int] = {}  # buffer -> value
        self.storage: dict[int, str] = {}  # buffer -> format
        self.left = Counter(value for part in plan.parts for value in part.leaves)  # reads to come
        if len(set(self.buffer_of.values())) > problem.spill_limit:
            raise CheckError(f"the plan uses more than {problem.spill_limit} intermediate buffers")

    def before(self, number: int, part: Part) -> None:
        for value in part.leaves:
            if not self.problem.is_leaf(value) and self.holds.get(self.buffer_of.get(value, -1)) != value:
                raise CheckError(f"value {value} is read from a buffer that nobody filled with it", part=number)
        for value in part.outputs[: part.spilled]:
            buffer = self.buffer_of.get(value)
            if buffer is None or buffer in self.holds:
                raise CheckError(f"value {value} has no buffer that is empty", part=number)
            storage = self.problem.ops[self.problem.op_of(value)].storage
            if self.storage.setdefault(buffer, storage) != storage:
                raise CheckError(f"value {value} has not the format of its buffer", part=number)
            self.holds[buffer] = value

    def after(self, part: Part) -> None:
        for value in part.leaves:
            if not self.problem.is_leaf(value):
                self.left[value] -= 1
                if not self.left[value]:
                    del self.holds[self.buffer_of[value]]


class _PartReplay:
    """One acquire with all its tiles. ``held`` maps a physical DST index to (tile, value)."""

    def __init__(self, problem: Problem, part: Part, number: int):
        self.problem = problem
        self.part = part
        self.number = number
        self.allocation: Allocation = part.allocation
        self.leaves = set(part.leaves)
        self.held: dict[int, tuple[int, int]] = {}
        self.step: int | None = None

    def fail(self, reason: str) -> CheckError:
        return CheckError(reason, part=self.number, step=self.step)

    def run(self) -> None:
        allocation = self.allocation
        if allocation.tiles_per_acquire < 1:
            raise self.fail("no tile per acquire")
        if len(allocation.output_slots) != len(self.part.outputs):
            raise self.fail("one output slot per output is needed")
        executed: set[int] = set()
        for number, step, tile in self._schedule():
            self.step = number
            self._replay(step, tile)
            if isinstance(step, Execute):
                executed.add(step.op)
                executed.update(self.problem.ops[step.op].forms[step.form].absorbs)
        self.step = None
        if not executed <= set(self.part.ops):
            raise self.fail(f"ops {sorted(executed - set(self.part.ops))} are executed but not listed")
        for tile in range(allocation.tiles_per_acquire):
            for value, slot in zip(self.part.outputs, allocation.output_slots, strict=True):
                self._read(slot, tile, value)

    def _schedule(self) -> Iterator[tuple[int, Step, int]]:
        tiles = range(self.allocation.tiles_per_acquire)
        if self.allocation.layout is Layout.OP_MAJOR:
            for number, step in enumerate(self.allocation.steps):
                for tile in tiles:
                    yield number, step, tile
        else:
            for tile in tiles:
                for number, step in enumerate(self.allocation.steps):
                    yield number, step, tile

    def _index(self, slot: int, tile: int) -> int:
        if slot < 0 or slot >= self.allocation.slots:
            raise self.fail(f"slot {slot} is outside the {self.allocation.slots} slots of the allocation")
        index = self.allocation.dst_index(slot, tile)
        if index >= self.problem.capacity:
            raise self.fail(f"DST index {index} is outside the capacity of {self.problem.capacity}")
        return index

    def _read(self, slot: int, tile: int, value: int) -> None:
        found = self.held.get(self._index(slot, tile))
        if found is None:
            raise self.fail(f"slot {slot} of tile {tile} is read for value {value} but was never written")
        if found != (tile, value):
            raise self.fail(f"slot {slot} of tile {tile} holds value {found[1]} of tile {found[0]}, not value {value}")

    def _write(self, slot: int, tile: int, value: int) -> None:
        self.held[self._index(slot, tile)] = (tile, value)

    def _replay(self, step: Step, tile: int) -> None:
        if isinstance(step, Load):
            self._need_buffer(step.leaf)
            self._write(step.slot, tile, step.leaf)
        elif isinstance(step, Copy):
            self._read(step.source, tile, step.value)
            self._write(step.target, tile, step.value)
        else:
            self._execute(step, tile)

    def _need_buffer(self, value: int) -> None:
        if value not in self.leaves:
            raise self.fail(f"value {value} is not in a buffer of this part")

    def _execute(self, step: Execute, tile: int) -> None:
        if not 0 <= step.op < len(self.problem.ops) or not 0 <= step.form < len(self.problem.ops[step.op].forms):
            raise self.fail(f"op {step.op} has no form {step.form}")
        form = self.problem.ops[step.op].forms[step.form]
        if len(step.slots) != len(form.operands):
            raise self.fail(f"form {form.key!r} takes {len(form.operands)} operands, {len(step.slots)} are given")
        for operand, slot in zip(form.operands, step.slots, strict=True):
            if operand.place is Place.BUFFER:
                self._need_buffer(operand.value)
                if slot is not None:
                    raise self.fail(f"value {operand.value} comes from a buffer and has no slot")
            elif slot is None:
                raise self.fail(f"value {operand.value} must be in DST and has no slot")
            else:
                self._read(slot, tile, operand.value)
        if form.result in (ResultRule.IN_PLACE, ResultRule.ACCUMULATE):
            assert form.reuses is not None
            if step.target != step.slots[form.reuses]:
                raise self.fail(f"form {form.key!r} works in place on slot {step.slots[form.reuses]}")
        if form.result is ResultRule.ZEROED and self._index(step.target, tile) in self.held:
            raise self.fail(f"slot {step.target} of tile {tile} was written before form {form.key!r} adds to it")
        self._write(step.target, tile, self.problem.result_of(step.op))
