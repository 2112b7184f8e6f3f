"""Choices of DST allocation that only cost decides: round trips through buffers, tf32 by permission, full sync, approximations.

Values are held against NumPy written here; the emitted C++ runs natively and must give the simulator's bits.
"""

from __future__ import annotations

import math
import re

import ml_dtypes
import numpy as np
import pytest

from tilewright.native import driver
from tilewright.report import dst_assignment

SHAPE = (64, 96)  # tiles: 2x3
BODIES = {
    "product of abs and sum": ("(m + c) * ttl.math.abs(m)", [("m", "a * b")], lambda a, b, c: (a * b + c) * abs(a * b)),
    "sum of squares": (
        "ttl.math.tanh(s) * s - a", [("s", "a * a + b * b")], lambda a, b, c: np.tanh(a * a + b * b) * (a * a + b * b) - a,
    ),
    "gate": (
        "g * ttl.math.sigmoid(g + b)", [("g", "ttl.math.tanh(a) * c")],
        lambda a, b, c: np.tanh(a) * c / (1.0 + np.exp(-(np.tanh(a) * c + b))),
    ),
    "difference of products": ("p * q - ttl.math.exp(p)", [("p", "ttl.math.abs(a)"), ("q", "b + c")],
                               lambda a, b, c: abs(a) * (b + c) - np.exp(abs(a))),
}  # fmt: skip


@pytest.fixture
def bf16():
    return ml_dtypes.bfloat16


def values(rng, dtype, count=3):
    return [rng.uniform(-1.5, 1.5, SHAPE).astype(dtype) for _ in range(count)]


def run_both(kernels, outputs, inputs, lets=(), **options):
    """Simulate, run the C++ natively, demand the same bits; the program and the outputs as float64."""
    names = "abcdefghijklmnop"[: len(inputs)]
    source = kernels.text.elementwise(outputs, names, lets=list(lets), block=(2, 3))
    simulated = [np.zeros(SHAPE, inputs[0].dtype) for _ in outputs]
    program = kernels.run(source, *inputs, *simulated, **options)
    native = [np.zeros(SHAPE, inputs[0].dtype) for _ in outputs]
    driver.run(program, [*inputs, *native])
    for one, other in zip(simulated, native, strict=True):
        assert one.tobytes() == other.tobytes()
    return program, [result.astype(np.float64) for result in simulated]


@pytest.mark.parametrize("name", BODIES)
def test_round_trips_keep_the_values(kernels, bf16, name):
    """With and without them: right values, fewer cycles with them."""
    text, lets, reference = BODIES[name]
    inputs = values(np.random.default_rng(5), bf16)
    expected = reference(*(array.astype(np.float64) for array in inputs))
    costs = []
    for options in ({}, {"round_trips": False}):
        program, (found,) = run_both(kernels, {"out": text}, inputs, lets, fp32_dest_acc=False, **options)
        assert np.abs(found - expected).max() <= 0.03 * np.abs(expected).max()
        (plan,) = program.dst
        costs.append(plan.cycles_per_tile)
        spilled = [buffer.name for buffer in program.buffers if buffer.origin == "compiler"]
        assert bool(spilled) == (len(plan.parts) > 1) == (not options)
    assert costs[0] < costs[1]


@pytest.mark.parametrize("name", ["gate"])
def test_products_of_computed_tiles_in_dst(kernels, bf16, name):
    text, lets, reference = BODIES[name]
    inputs = values(np.random.default_rng(5), bf16)
    expected = reference(*(array.astype(np.float64) for array in inputs))
    program, (found,) = run_both(kernels, {"out": text}, inputs, lets, fp32_dest_acc=False, round_trips=False)
    assert np.abs(found - expected).max() <= 0.03 * np.abs(expected).max()
    assert "addcmul_tile" in program.cpp["compute"]
    assert not any(buffer.origin == "compiler" for buffer in program.buffers)


def test_a_shared_product_is_neither_computed_twice_nor_copied(kernels, bf16):
    """``a * b`` feeds abs and exp: one multiply per tile, and less math than the two multiplies another compiler takes."""
    inputs = values(np.random.default_rng(6), bf16, 2)
    outputs = {"out": "ttl.math.abs(a * b)", "other": "ttl.math.exp(a * b)"}
    program, (first, second) = run_both(kernels, outputs, inputs)
    cpp = program.cpp["compute"]
    assert cpp.count("mul_tiles(") == 1 and "copy_dest_values" not in cpp
    (plan,) = program.dst
    assert sum(part.allocation.math_cycles for part in plan.parts) < 70 + 70 + 144 + 676
    a, b = (array.astype(np.float64) for array in inputs)
    assert np.abs(first - abs(a * b)).max() < 0.02
    assert np.abs(second - np.exp(a * b)).max() < 0.02 * np.exp(a * b).max()


def test_a_shared_product_is_made_again_where_a_sum_takes_it_in(kernels, bf16):
    """``a * b`` feeds abs and ``+ c``: the matrix unit multiplies onto c, which costs less than a copy of the product."""
    inputs = values(np.random.default_rng(8), bf16)
    program, (first, second) = run_both(kernels, {"out": "ttl.math.abs(a * b)", "other": "a * b + c"}, inputs)
    cpp = program.cpp["compute"]
    assert "copy_dest_values" not in cpp and "add_" not in cpp
    (plan,) = program.dst
    assert len(plan.parts) == 1 and plan.parts[0].allocation.math_cycles == 50 + 144 + 14 + 50
    assert any("multiplied once more" in decision.title for decision in program.trace.decisions)
    a, b, c = (array.astype(np.float64) for array in inputs)
    assert np.abs(first - abs(a * b)).max() < 0.02 and np.abs(second - (a * b + c)).max() < 0.03


def test_round_trips_have_to_save_a_share_of_what_they_change(kernels, bf16):
    """By default 9 % of all cycles are enough: they are most of those that are not gelu's and sigmoid's."""
    inputs = values(np.random.default_rng(9), bf16, 2)
    a, b = (array.astype(np.float64) for array in inputs)
    gelu = a * 0.5 * (1 + np.vectorize(math.erf)(a / math.sqrt(2)))
    costs = []
    for options in ({}, {"round_trips": False}):
        program, (found,) = run_both(kernels, {"out": "g * ttl.math.sigmoid(g + b)"}, inputs, [("g", "ttl.math.gelu(a)")], **options)
        (plan,) = program.dst
        assert (len(plan.parts) > 1) == (not options)
        costs.append(plan.cycles_per_tile)
        assert np.abs(found - gelu / (1 + np.exp(-gelu - b))).max() < 0.03
    assert 0.85 * costs[1] < costs[0] < 0.95 * costs[1]


def test_two_values_travel_where_one_alone_gains_nothing(kernels, bf16):
    """An LSTM cell: ``sigmoid(i) * tanh(g)`` is a product of the matrix unit only if both factors are in buffers."""
    inputs = values(np.random.default_rng(10), bf16, 5)
    lets = [("s", "ttl.math.sigmoid(a) * e + ttl.math.sigmoid(b) * ttl.math.tanh(c)")]
    outputs = {"out": "s", "other": "ttl.math.sigmoid(d) * ttl.math.tanh(s)"}
    program, found = run_both(kernels, outputs, inputs, lets)
    (plan,) = program.dst
    assert len(plan.parts) > 1
    cpp = program.cpp["compute"]
    assert "addcmul_tile" not in cpp and "mul_binary_tile" not in cpp and "copy_dest_values" not in cpp
    a, b, c, d, e = (array.astype(np.float64) for array in inputs)
    state = e / (1 + np.exp(-a)) + np.tanh(c) / (1 + np.exp(-b))
    for one, expected in zip(found, (state, np.tanh(state) / (1 + np.exp(-d))), strict=True):
        assert np.abs(one - expected).max() < 0.03


def test_tiles_share_slots_where_no_init_is_undone(kernels, bf16):
    """On the vector unit alone: two slots for all tiles and one for each, so six tiles go into one acquire."""
    inputs = values(np.random.default_rng(10), bf16)
    program, (found,) = run_both(kernels, {"out": "ttl.math.exp(a * b + c)"}, inputs, fpu_binary_ops=False)
    (allocation,) = [part.allocation for plan in program.dst for part in plan.parts]
    assert (allocation.layout.value, allocation.footprint, allocation.tiles_per_acquire) == ("tile-major", 2, 6)
    a, b, c = (array.astype(np.float64) for array in inputs)
    assert np.abs(found / np.exp(a * b + c) - 1).max() < 0.03


def test_no_round_trip_where_l1_has_no_room(kernels, bf16):
    source = kernels.text.elementwise({"out": "(m + c) * ttl.math.abs(m)"}, "abc", lets=[("m", "a * b")], block=(8, 10))
    arrays = [np.zeros((8 * 32, 10 * 32), bf16) for _ in range(4)]
    program = kernels.compile(source, *arrays)
    assert not [buffer for buffer in program.buffers if buffer.origin == "compiler"]


def test_f32_passes_the_matrix_unit_only_by_permission(kernels):
    inputs = values(np.random.default_rng(7), np.float32)
    a, b, c = (array.astype(np.float64) for array in inputs)
    expected = a * b + c
    exact, (kept,) = run_both(kernels, {"out": "a * b + c"}, inputs)
    fast, (cut,) = run_both(kernels, {"out": "a * b + c"}, inputs, allow_tf32=True)
    assert not re.search(r"\b(add|mul)_tiles\(", exact.cpp["compute"]) and re.search(r"\bmul_tiles\(", fast.cpp["compute"])
    assert np.abs(kept - expected).max() < 1e-6
    assert np.abs(cut - expected).max() < 4 * 2.0**-10 * np.abs(expected).max()
    assert fast.cost < exact.cost
    assert fast.config.fp32_dest_acc_en and len(fast.config.unpack_to_dest) < len(exact.config.unpack_to_dest)


def test_full_sync_is_chosen_where_half_costs_more(kernels):
    """Eight pair sums, each used twice, in f32: half of DST has four slots."""
    names = "abcdefghijklmnop"
    lets = [(f"s{i}", f"{names[2 * i]} + {names[2 * i + 1]}") for i in range(8)]
    largest = "s0"
    for i in range(1, 8):
        largest = f"ttl.math.max({largest}, s{i})"
    text = f"({' + '.join(f's{i}' for i in range(8))}) * ({largest})"
    inputs = values(np.random.default_rng(8), np.float32, 16)
    sums = [inputs[2 * i].astype(np.float64) + inputs[2 * i + 1] for i in range(8)]
    expected = sum(sums) * np.maximum.reduce(sums)
    chosen, (found,) = run_both(kernels, {"out": text}, inputs, lets)
    half, _ = run_both(kernels, {"out": text}, inputs, lets, full_sync=False)
    assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()
    assert chosen.config.dst_full_sync_en and not half.config.dst_full_sync_en
    assert chosen.cost < half.cost
    (decision,) = [d for d in chosen.trace.decisions if d.stage == "ttl-set-compute-config"]
    assert "full sync saves cycles" in decision.detail


def test_approximate_forms_are_costed_as_such(kernels, bf16):
    inputs = values(np.random.default_rng(9), bf16, 1)
    exact, _ = run_both(kernels, {"out": "ttl.math.gelu(a)"}, inputs)
    rough, (found,) = run_both(kernels, {"out": "ttl.math.gelu(a, approx=True)"}, inputs)
    assert rough.cost < exact.cost / 5
    x = inputs[0].astype(np.float64)
    assert np.abs(found - 0.5 * x * (1.0 + np.vectorize(math.erf)(x / math.sqrt(2.0)))).max() < 0.03


def test_the_trace_shows_what_a_region_asks_of_dst(kernels, bf16):
    program, _ = run_both(kernels, {"out": "ttl.math.exp((a + b) * c)"}, values(np.random.default_rng(10), bf16))
    (entry,) = dst_assignment.regions(program.trace)
    needs = entry["parts"][0]["requirements"]
    assert (needs["peak"], needs["largest_sub_block"]) == (1, 8)
    assert [value["takes"] for value in needs["values"]] == [1, 0, 0]
    assert any("needs 1 slot at once" in line for line in dst_assignment.lines(program.trace))


SOFTMAX = """e = ttl.math.exp(x - ttl.math.broadcast(ttl.math.reduce_max(x, dims=[1]), dims=[1], shape={shape}))
o0.store(e / ttl.math.broadcast(ttl.math.reduce_sum(e, dims=[1]), dims=[1], shape={shape}))"""


@pytest.mark.parametrize(("shape", "acquires"), [((1, 4), 4), ((2, 3), 6), ((1, 5), 5), ((1, 1), 1)])
def test_the_next_region_finds_its_first_tiles_there(kernels, bf16, block_kernels, monkeypatch, shape, acquires):
    """The sum of exponentials waits for them: in runs, most have come through when the last is computed. Predicted to be faster."""
    from tilewright.passes import ttl_tile_and_assign_dst
    from tilewright.timing import timeline

    source = block_kernels.single_block({"x": shape}, [shape], SOFTMAX.format(shape=shape))
    x = np.random.default_rng(12).uniform(-4.0, 4.0, [32 * size for size in shape]).astype(bf16)
    weights = np.exp(x.astype(np.float64) - x.astype(np.float64).max(1, keepdims=True))
    cycles, bits = [], []
    for whole in (False, True):
        if whole:
            monkeypatch.setattr(ttl_tile_and_assign_dst, "_is_read_next", lambda compute: False)
        out = np.zeros_like(x)
        program = kernels.run_everywhere(source, x, out, precision="fast")
        cycles.append(timeline.run(program).cycles)
        bits.append(out.view(np.uint16))
        runs = [plan.parts[0].allocation.tiles_per_acquire for _, plan in program.trace.plans if plan.parts]
        dear = max(range(len(runs)), key=lambda number: program.dst[number].parts[0].allocation.math_cycles)
        assert runs[dear] == (math.prod(shape) if whole else math.prod(shape) // acquires)
        assert np.abs(out.astype(np.float64) - weights / weights.sum(1, keepdims=True)).max() < 0.02
    assert np.array_equal(bits[0], bits[1])
    assert cycles[0] < cycles[1] or acquires == 1
