"""The eight worked examples of the DST specification, phase by phase, and what linear scan does beyond them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tilewright.dst.checker import check
from tilewright.dst.linear_scan import DoesNotFit, Interval, LinearScanTrace, linear_scan, scan
from tilewright.dst.problem import Copy, Execute, Form, Layout, Leaf, Load, Op, Operand, Place, Problem, ResultRule


def body(leaves: int, ops: list[tuple[str, tuple[int, ...]]], outputs: tuple[int, ...], **settings) -> Problem:
    """Unary ops work in place, binary ops write a free slot, as the specification has them."""
    rows = []
    for name, operands in ops:
        unary = len(operands) == 1
        form = Form(
            key=name,
            operands=tuple(Operand(value, Place.DST) for value in operands),
            result=ResultRule.IN_PLACE if unary else ResultRule.FREE,
            reuses=0 if unary else None,
        )
        rows.append(Op(operands=operands, forms=(form,), name=name))
    settings.setdefault("capacity", 8)
    return Problem(leaves=(Leaf(),) * leaves, ops=tuple(rows), outputs=outputs, **settings)


@dataclass
class Example:
    problem: Problem
    before: dict[int, tuple[int, int]]
    merges: list[tuple[int, int, tuple[int, int]]]
    slots: dict[int, int]
    footprint: int
    unroll: int
    calls: list[str]
    packs: list[int]
    copies: list[tuple[int, int]] = ()  # (source, op)


MUL_ABS_EXP = [("mul", (0, 1)), ("abs", (2,)), ("exp", (2,))]
EXAMPLES = {
    "1 binary": Example(
        problem=body(2, [("mul", (0, 1))], (2,)),
        before={0: (0, 1), 1: (0, 1), 2: (1, 2)},
        merges=[],
        slots={0: 0, 1: 1, 2: 2},
        footprint=2,
        unroll=1,
        calls=["load 0 -> 0", "load 1 -> 1", "mul 0 1 -> 2"],
        packs=[2],
    ),
    "2 binary, 2x2": Example(
        problem=body(2, [("mul", (0, 1))], (2,), tiles=4),
        before={0: (0, 1), 1: (0, 1), 2: (1, 2)},
        merges=[],
        slots={0: 0, 1: 1, 2: 2},
        footprint=2,
        unroll=4,
        calls=["load 0 -> 0", "load 1 -> 1", "mul 0 1 -> 2"],
        packs=[2],
    ),
    "3 unary": Example(
        problem=body(1, [("abs", (0,))], (1,)),
        before={0: (0, 1), 1: (1, 2)},
        merges=[(0, 1, (0, 2))],
        slots={0: 0, 1: 0},
        footprint=0,
        unroll=1,
        calls=["load 0 -> 0", "abs 0 -> 0"],
        packs=[0],
    ),
    "4 binary, unary": Example(
        problem=body(2, [("mul", (0, 1)), ("abs", (2,))], (3,)),
        before={0: (0, 1), 1: (0, 1), 2: (1, 2), 3: (2, 3)},
        merges=[(2, 3, (1, 3))],
        slots={0: 0, 1: 1, 2: 2, 3: 2},
        footprint=2,
        unroll=1,
        calls=["load 0 -> 0", "load 1 -> 1", "mul 0 1 -> 2", "abs 2 -> 2"],
        packs=[2],
    ),
    "5 two unary consumers": Example(
        problem=body(2, MUL_ABS_EXP, (3, 4)),
        copies=[(2, 1)],
        before={0: (0, 1), 1: (0, 1), 2: (1, 3), 5: (2, 2), 3: (2, 3), 4: (3, 4)},
        merges=[(5, 3, (2, 3)), (2, 4, (1, 4))],
        slots={0: 0, 1: 1, 2: 2, 4: 2, 5: 3, 3: 3},
        footprint=2,
        unroll=1,
        calls=["load 0 -> 0", "load 1 -> 1", "mul 0 1 -> 2", "copy 2 -> 3", "abs 3 -> 3", "exp 2 -> 2"],
        packs=[3, 2],
    ),
    "6 unary and binary consumer": Example(
        problem=body(3, [("mul", (0, 1)), ("abs", (3,)), ("add", (3, 2))], (4, 5)),
        copies=[(3, 1)],
        before={0: (0, 1), 1: (0, 1), 2: (0, 3), 3: (1, 3), 6: (2, 2), 4: (2, 3), 5: (3, 4)},
        merges=[(6, 4, (2, 3))],
        slots={0: 0, 1: 1, 2: 2, 3: 3, 6: 4, 4: 4, 5: 5},
        footprint=4,
        unroll=1,
        calls=[
            "load 0 -> 0", "load 1 -> 1", "load 2 -> 2", "mul 0 1 -> 3", "copy 3 -> 4", "abs 4 -> 4", "add 3 2 -> 5",
        ],
        packs=[4, 5],
    ),
    "7 unary chain": Example(
        problem=body(1, [("abs", (0,)), ("exp", (1,)), ("relu", (2,))], (3,)),
        before={0: (0, 1), 1: (1, 2), 2: (2, 3), 3: (3, 4)},
        merges=[(0, 1, (0, 2)), (1, 2, (0, 3)), (2, 3, (0, 4))],
        slots={0: 0, 1: 0, 2: 0, 3: 0},
        footprint=0,
        unroll=1,
        calls=["load 0 -> 0", "abs 0 -> 0", "exp 0 -> 0", "relu 0 -> 0"],
        packs=[0],
    ),
    "8 chain, 2x2": Example(
        problem=body(3, [("mul", (0, 1)), ("abs", (3,)), ("add", (4, 2))], (5,), tiles=4),
        before={0: (0, 1), 1: (0, 1), 2: (0, 3), 3: (1, 2), 4: (2, 3), 5: (3, 4)},
        merges=[(3, 4, (1, 3))],
        slots={0: 0, 1: 1, 2: 2, 3: 3, 4: 3, 5: 4},
        footprint=4,
        unroll=4,
        calls=["load 0 -> 0", "load 1 -> 1", "load 2 -> 2", "mul 0 1 -> 3", "abs 3 -> 3", "add 3 2 -> 4"],
        packs=[4],
    ),
}  # fmt: skip


def trace_of(problem: Problem) -> LinearScanTrace:
    trace = linear_scan(problem).explanation
    assert isinstance(trace, LinearScanTrace)
    return trace


def calls_of(problem: Problem) -> list[str]:
    lines = []
    for step in linear_scan(problem).parts[0].allocation.steps:
        if isinstance(step, Load):
            lines.append(f"load {step.leaf} -> {step.slot}")
        elif isinstance(step, Copy):
            lines.append(f"copy {step.source} -> {step.target}")
        else:
            assert isinstance(step, Execute)
            slots = " ".join(str(slot) for slot in step.slots)
            lines.append(f"{problem.ops[step.op].name} {slots} -> {step.target}")
    return lines


@pytest.fixture(params=EXAMPLES, name="example")
def example_fixture(request: pytest.FixtureRequest) -> Example:
    return EXAMPLES[request.param]


def test_phase_1_copies(example: Example) -> None:
    assert [(copy.source, copy.op) for copy in trace_of(example.problem).copies] == list(example.copies)


def test_phase_2_intervals_before_merging(example: Example) -> None:
    intervals = trace_of(example.problem).intervals.before
    assert {node: (i.start, i.end) for node, i in intervals.items()} == example.before


def test_phase_2_merges(example: Example) -> None:
    merges = trace_of(example.problem).intervals.merges
    assert [(m.operand, m.result, (m.interval.start, m.interval.end)) for m in merges] == example.merges


def test_phases_3_and_4_slots(example: Example) -> None:
    trace = trace_of(example.problem)
    assert trace.slots == example.slots
    assert (trace.footprint, trace.unroll_factor) == (example.footprint, example.unroll)


def test_generated_sequence(example: Example) -> None:
    assert calls_of(example.problem) == example.calls
    assert list(linear_scan(example.problem).parts[0].allocation.output_slots) == example.packs


def test_examples_pass_the_checker(example: Example) -> None:
    check(example.problem, linear_scan(example.problem))


def test_values_expire_at_the_position_of_their_last_use() -> None:
    """Example 6: when %0 starts at 1, the inputs that end at 1 have expired and %in2 and %0 are active."""
    trace = trace_of(EXAMPLES["6 unary and binary consumer"].problem)
    last = trace.shared_events[-1]
    assert (last.node, last.slot, last.expired) == (3, 3, (0, 1))
    assert trace.active_after(len(trace.shared_events) - 1) == [2, 3]


def test_a_result_never_takes_the_slot_of_a_binary_operand() -> None:
    problem = body(3, [("mul", (0, 1)), ("add", (3, 2)), ("sub", (4, 2))], (5,))
    trace = trace_of(problem)
    assert trace.slots[3] == 3
    assert trace.slots[4] == 0  # freed by mul, one op earlier
    assert trace.intervals.after[3] == Interval(1, 2)


def test_output_index_is_footprint_plus_tile() -> None:
    """mul then add on a 2x2 block: compute writes and pack reads DST[footprint + i * cols + j]."""
    problem = body(3, [("mul", (0, 1)), ("add", (3, 2))], (4,), tiles=4)
    allocation = linear_scan(problem).parts[0].allocation
    check(problem, linear_scan(problem))
    assert allocation.layout is Layout.TILE_MAJOR
    indices = [allocation.dst_index(allocation.output_slots[0], i * 2 + j) for i in range(2) for j in range(2)]
    assert indices == [allocation.footprint + i * 2 + j for i in range(2) for j in range(2)]


def test_an_output_that_is_used_again_keeps_its_slot_until_the_pack() -> None:
    problem = body(2, [("mul", (0, 1)), ("abs", (2,)), ("exp", (3,)), ("add", (4, 2))], (3, 5))
    plan = linear_scan(problem)
    check(problem, plan)
    assert plan.copies == 2  # abs works on a copy of the product, exp on a copy of the output


def test_too_many_slots_says_how_many() -> None:
    problem = body(4, [("mul", (0, 1)), ("mul", (2, 3)), ("add", (4, 5))], (6,), capacity=4)
    assert scan(problem).footprint == 5
    with pytest.raises(DoesNotFit) as error:
        linear_scan(problem)
    assert (error.value.needed, error.value.capacity) == (6, 4)


def test_lars_schedule_avoids_the_copy_of_example_6() -> None:
    problem = EXAMPLES["6 unary and binary consumer"].problem
    assert linear_scan(problem).copies == 1
    reordered = linear_scan(problem, schedule="lars")
    check(problem, reordered)
    assert reordered.copies == 0


# Slots and copies of the specification's algorithm on the benchmark bodies, published with the set.
PUBLISHED = [
    "5/3", "3/1", "5/1", "3/0", "3/0", "8/0", "5/0", "7/0", "8/0", "8/0", "13/0", "5/7", "9/6",
    "8/3", "3/1", "3/1", "3/1", "5/0", "5/2", "9/0", "8/1", "7/1", "11/2", "8/11", "8/3", "10/2",
]  # fmt: skip


def test_published_figures_of_the_documented_algorithm(bodies) -> None:
    """The figures follow the pseudo-code to the letter: copies for ops that only read, too."""
    found = []
    for name in bodies.BODIES:
        trace = scan(bodies.benchmark_problem(name, 8, fpu=False), copy_readers=True)
        found.append(f"{trace.footprint + trace.output_region}/{len(trace.copies)}")
    assert found == PUBLISHED
