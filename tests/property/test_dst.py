"""Random DST problems: every allocator's plans are right, and a plan that was tampered with is refused.

Right and wrong are decided by an interpreter that runs the plan on numbers, tile by tile, clobbering and accumulating as the
hardware does; the checker must refuse every plan whose packed numbers are not those of the source.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import fuzz_dst
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tilewright.dst.allocate import allocate
from tilewright.dst.checker import CheckError, check
from tilewright.dst.linear_scan import DoesNotFit
from tilewright.dst.problem import Copy, Execute, Form, Layout, Load, Place, Plan, Problem, ResultRule, Step

SEEDS = st.integers(min_value=0, max_value=1 << 40)
SETTINGS = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


WORD = (1 << 61) - 1


class Interpreter:
    """Runs a plan on numbers. A value is a hash of its op and operands, so equal numbers mean equal expressions."""

    def __init__(self, problem: Problem, plan: Plan):
        self.problem = problem
        self.plan = plan
        self.buffers: dict[tuple[int, int], int] = {}

    def source(self, value: int, tile: int) -> int:
        if self.problem.is_leaf(value):
            return hash(("leaf", value, tile)) & WORD
        op = self.problem.op_of(value)
        return hash((op, *(self.source(v, tile) for v in self.problem.ops[op].operands))) & WORD

    def is_right(self) -> bool:
        try:
            packed = [self._part(part) for part in self.plan.parts]
        except (IndexError, KeyError):
            return False
        wanted = Counter(self.problem.outputs)
        found = Counter(value for part in packed for value, right in part if right)
        return found == wanted

    def _part(self, part) -> list[tuple[int, bool]]:
        """Packed outputs, each with whether all its tiles hold the number of the source."""
        allocation = part.allocation
        tiles = range(allocation.tiles_per_acquire)
        self.dst = [0] * self.problem.capacity
        self.allocation = allocation
        if allocation.layout is Layout.OP_MAJOR:
            runs = [(step, tile) for step in allocation.steps for tile in tiles]
        else:
            runs = [(step, tile) for tile in tiles for step in allocation.steps]
        for step, tile in runs:
            self._run(step, tile)
        results = []
        for number, (value, slot) in enumerate(zip(part.outputs, allocation.output_slots, strict=True)):
            contents = [self.dst[self._index(slot, tile)] for tile in tiles]
            if number < part.spilled:
                self.buffers.update(((value, tile), content) for tile, content in enumerate(contents))
            else:
                results.append((value, contents == [self.source(value, tile) for tile in tiles]))
        return results

    def _index(self, slot: int, tile: int) -> int:
        index = self.allocation.dst_index(slot, tile)
        if not 0 <= index < self.problem.capacity or slot >= self.allocation.slots:
            raise IndexError(index)
        return index

    def _buffer(self, value: int, tile: int) -> int:
        if self.problem.is_leaf(value):
            return self.source(value, tile)
        # A later part may hold more tiles per acquire; the spilled tiles are all computed the same way.
        return self.buffers.get((value, tile), hash(("spilled", self.buffers[value, 0])) & WORD)

    def _run(self, step: Step, tile: int) -> None:
        if isinstance(step, Load):
            self.dst[self._index(step.slot, tile)] = self._buffer(step.leaf, tile)
        elif isinstance(step, Copy):
            self.dst[self._index(step.target, tile)] = self.dst[self._index(step.source, tile)]
        else:
            self._execute(step, tile)

    def _execute(self, step: Execute, tile: int) -> None:
        form = self.problem.ops[step.op].forms[step.form]
        seen: dict[int, list[int]] = {}
        for operand, slot in zip(form.operands, step.slots, strict=True):
            in_buffer = operand.place is Place.BUFFER or slot is None
            content = self._buffer(operand.value, tile) if in_buffer else self.dst[self._index(slot, tile)]
            seen.setdefault(operand.value, []).append(content)
        number = self._evaluate(step.op, form, {v: c[0] if len(set(c)) == 1 else hash(tuple(c)) for v, c in seen.items()})
        target = self._index(step.target, tile)
        if form.result is ResultRule.ZEROED:
            number = (self.dst[target] + number) & WORD
        if form.reuses is not None and step.target != step.slots[form.reuses]:
            raise IndexError("not in place")
        self.dst[target] = number

    def _evaluate(self, op: int, form: Form, known: dict[int, int]) -> int:
        numbers = []
        for value in self.problem.ops[op].operands:
            if value in known:
                numbers.append(known[value])
            else:
                numbers.append(self._evaluate(self.problem.op_of(value), form, known))
        return hash((op, *numbers)) & WORD


def single_tile_spills(plan: Plan) -> Plan:
    """The interpreter follows spilled tiles one to one: give all parts the tiles of the smallest."""
    tiles = min(part.allocation.tiles_per_acquire for part in plan.parts)
    parts = tuple(
        replace(part, allocation=replace(part.allocation, tiles_per_acquire=tiles)) for part in plan.parts
    )
    return replace(plan, parts=parts)


def allocated(seed: int, allocator: str) -> tuple[Problem, Plan] | None:
    problem = fuzz_dst.random_problem(seed, most_ops=9)
    try:
        return problem, single_tile_spills(allocate(problem, allocator))
    except DoesNotFit:
        return None


@pytest.mark.parametrize("allocator", ["optimal", "lars", "linear-scan"])
@SETTINGS
@given(seed=SEEDS)
def test_plans_compute_the_source(allocator: str, seed: int) -> None:
    found = allocated(seed, allocator)
    if found is not None:
        assert Interpreter(*found).is_right()


def swap_two_slots(choose: random.Random, steps: list[Step], slots: int) -> None:
    """Exchange two slot numbers from one step on."""
    if slots < 2:
        return
    first, second = choose.sample(range(slots), 2)
    other = {first: second, second: first}
    start = choose.randrange(len(steps))
    for number in range(start, len(steps)):
        steps[number] = renamed(steps[number], other)


def renamed(step: Step, other: dict[int, int]) -> Step:
    if isinstance(step, Load):
        return replace(step, slot=other.get(step.slot, step.slot))
    if isinstance(step, Copy):
        return replace(step, source=other.get(step.source, step.source), target=other.get(step.target, step.target))
    slots = tuple(None if slot is None else other.get(slot, slot) for slot in step.slots)
    return replace(step, slots=slots, target=other.get(step.target, step.target))


def drop_a_step(choose: random.Random, steps: list[Step], slots: int) -> None:
    copies = [number for number, step in enumerate(steps) if isinstance(step, Copy)]
    del steps[choose.choice(copies or range(len(steps)))]


def reorder(choose: random.Random, steps: list[Step], slots: int) -> None:
    step = steps.pop(choose.randrange(len(steps)))
    steps.insert(choose.randrange(len(steps) + 1), step)


def wrong_operand_slot(choose: random.Random, steps: list[Step], slots: int) -> None:
    numbers = [n for n, s in enumerate(steps) if isinstance(s, Execute) and any(x is not None for x in s.slots)]
    if not numbers:
        return
    number = choose.choice(numbers)
    step = steps[number]
    assert isinstance(step, Execute)
    places = [place for place, slot in enumerate(step.slots) if slot is not None]
    changed = list(step.slots)
    changed[choose.choice(places)] = choose.randrange(slots)
    steps[number] = replace(step, slots=tuple(changed))


def wrong_target(choose: random.Random, steps: list[Step], slots: int) -> None:
    number = choose.randrange(len(steps))
    step = steps[number]
    slot = choose.randrange(slots)
    steps[number] = replace(step, slot=slot) if isinstance(step, Load) else replace(step, target=slot)


MUTATIONS = [swap_two_slots, drop_a_step, reorder, wrong_operand_slot, wrong_target]


@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda function: function.__name__)
def test_checker_refuses_every_wrong_plan(mutate) -> None:
    wrong = 0

    @SETTINGS
    @given(seed=SEEDS, allocator=st.sampled_from(["optimal", "lars", "linear-scan"]))
    def run(seed: int, allocator: str) -> None:
        nonlocal wrong
        found = allocated(seed, allocator)
        if found is None:
            return
        problem, plan = found
        choose = random.Random(seed)
        number = choose.randrange(len(plan.parts))
        part = plan.parts[number]
        steps = list(part.allocation.steps)
        if not steps:
            return
        mutate(choose, steps, part.allocation.slots)
        changed = replace(part, allocation=replace(part.allocation, steps=tuple(steps)))
        tampered = replace(plan, parts=(*plan.parts[:number], changed, *plan.parts[number + 1 :]))
        if Interpreter(problem, tampered).is_right():
            return
        wrong += 1
        with pytest.raises(CheckError):
            check(problem, tampered)

    run()
    assert wrong >= 30  # the mutation does harm often enough to mean something


@SETTINGS
@given(seed=SEEDS)
def test_more_tiles_than_fit_are_refused(seed: int) -> None:
    found = allocated(seed, "optimal")
    if found is None:
        return
    problem, plan = found
    part = plan.parts[0]
    if not part.outputs:
        return
    tiles = problem.capacity + 1
    too_many = replace(part, allocation=replace(part.allocation, tiles_per_acquire=tiles))
    with pytest.raises(CheckError):
        check(problem, replace(plan, parts=(too_many, *plan.parts[1:])))


def test_bounded_fuzz_run() -> None:
    """The function ``make fuzz`` runs without end, on a fixed stretch of seeds."""
    total: Counter[str] = Counter()
    for seed in range(400):
        total.update(fuzz_dst.run_one(seed))
    assert total["problems"] == 400
    assert total["proved"] > 250 and total["split"] > 5
