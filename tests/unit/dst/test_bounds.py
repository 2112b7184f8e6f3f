"""The bounds never overestimate: with them and without, the search finds the same least cost; and no slot bound is too high."""

from __future__ import annotations

import random

import pytest

from tilewright.dst.allocate import fewest_slots, optimal
from tilewright.dst.bounds import Bounds
from tilewright.dst.model import COST_SHIFT, Model, mask_of
from tilewright.dst.moves import Options, State
from tilewright.dst.problem import Form, Op, Operand, Place, Problem, ResultRule
from tilewright.dst.round_trips import Estimates
from tilewright.dst.search import Exhausted, Search

SEEDS = 120
WORK = 40_000
RANDOM_TEXTS = 25


class Uninformed(Search):
    """Cheapest first, without bounds and without moves that are made at once."""

    def __init__(self, model: Model, options: Options) -> None:
        super().__init__(model, options)
        self.eager = False

    def _estimate(self, cost: int, remaining: int, state: State) -> int:
        return cost


class Summed(Search):
    """With the bounds of bodies too large for the simpler problem of ``bounds.py``."""

    def __init__(self, model: Model, options: Options) -> None:
        super().__init__(model, options)
        self.relaxed = None


@pytest.mark.parametrize(("inits", "search"), [(False, Search), (True, Search), (True, Summed)])
def test_bounds_lose_no_answer(fuzz, inits: bool, search: type[Search]) -> None:
    compared = 0
    for seed in range(SEEDS):
        problem = fuzz.random_problem(seed, most_ops=7)
        model = Model(problem)
        tiles = random.Random(seed).choice((1, 1, 2, 3))
        options = Options(slots=problem.capacity // tiles, tiles=tiles, inits=inits, work_limit=WORK)
        try:
            plain = Uninformed(model, options).run()
        except Exhausted:
            continue
        found = search(model, options).run()
        assert (plain and plain.cost) == (found and found.cost), f"seed {seed}"
        compared += 1
    assert compared > SEEDS * 0.9


@pytest.mark.parametrize("name", ["fft_butterfly", "estrin7", "euler_lorenz", "black_scholes"])
def test_with_all_leaves_alike_the_cost_is_hardly_below_the_least(bodies, name: str) -> None:
    """So close that the search looks at few states besides those on its way."""
    model = Model(bodies.benchmark_problem(name, 4))
    options = Options(slots=4, tiles=1, inits=True)
    search = Search(model, options)
    found = search.run()
    assert search.relaxed is not None and found is not None
    assert found.cost - (1 << COST_SHIFT) < search.relaxed.root <= found.cost


def test_a_body_with_too_many_sets_of_ops_is_bounded_by_sums_only(bodies) -> None:
    model = Model(bodies.BodyBuilder(bodies.random_text(0, 44)).problem(16, 64))
    assert Bounds(model).relaxed(1, 16) is None


def test_black_scholes_loads_again_where_a_dead_leaf_makes_room(bodies) -> None:
    """A load that replaces a leaf nobody needs belongs to the same batch; it was counted as a switch of its own once."""
    plan = optimal(bodies.benchmark_problem("black_scholes", 4))
    assert plan.exact and plan.cycles_per_tile <= 12_551


@pytest.mark.parametrize("search", [Search, Summed])
def test_ops_that_need_no_init_do_not_end_a_batch_of_loads(bodies, search: type[Search]) -> None:
    """Three leaves go through two slots under one init of loads."""

    def sum_of(first: int, second: int) -> Op:
        operands = (Operand(first, Place.DST), Operand(second, Place.DST))
        form = Form(key="add", operands=operands, result=ResultRule.IN_PLACE, reuses=0, math_cycles=100)
        return Op(operands=(first, second), forms=(form,))

    problem = Problem(leaves=(bodies.LEAF,) * 3, ops=(sum_of(0, 1), sum_of(3, 2)), outputs=(4,), capacity=2)
    searching = search(Model(problem), Options(slots=2, tiles=1, inits=True))
    least = 3 * 14 + 37 + 2 * 100
    searching.upper_bound = least + 1 << COST_SHIFT  # a bound that is too high leaves nothing below it
    found = searching.run()
    assert found is not None and found.cost >> COST_SHIFT == least


def test_the_least_slots_are_never_above_the_fewest(bodies) -> None:
    exact = 0
    for seed in range(RANDOM_TEXTS):
        problem = bodies.BodyBuilder(bodies.random_text(seed, 18)).problem(16, 64)
        fewest = fewest_slots(problem)
        bounds = Bounds(Model(problem))
        fits = [slots for slots in range(1, fewest + 1) if bounds.tight(1, slots) not in (None, float("inf"))]
        assert not fits or fits[0] <= fewest, f"seed {seed}"
        assert bounds.least_slots <= fewest
        exact += bool(fits) and fits[0] == fewest
    assert exact > RANDOM_TEXTS * 0.7


def test_an_estimate_counts_copies_and_loads(bodies) -> None:
    problem = bodies.BodyBuilder("a b | m=mul a b; x=abs m; y=exp m | x y").problem(8, 64)
    estimates = Estimates(problem)
    outputs = mask_of(problem.outputs)
    whole, _ = estimates.cycles(outputs, 0b011, 2, 0)
    apart = estimates.cycles(0b100, 0b011, 1, 1)[0] + estimates.cycles(outputs, 0b111, 2, 0)[0]
    tables = Bounds(Model(problem))
    assert whole >= tables.total + problem.costs.copy
    assert apart < whole


def test_steps_counted_beforehand_are_never_too_many(fuzz, monkeypatch) -> None:
    """A body is given up before its relaxed problem is looked at only where that would be given up too."""
    monkeypatch.setattr("tilewright.dst.bounds.ROW_LIMIT", 1 << 30)
    monkeypatch.setattr("tilewright.dst.bounds.STEP_LIMIT", 1 << 30)
    close = 0
    for seed in range(SEEDS):
        model = Model(fuzz.random_problem(seed, most_ops=9))
        bounds = Bounds(model)
        for slots in range(1, 6):
            relaxed = bounds.relaxed(1, slots)
            assert relaxed is not None
            steps = sum(len(relaxed.relaxation.steps(executed)) for executed in relaxed.ways)
            counted = relaxed.relaxation.least_steps(slots)
            assert counted <= steps, f"seed {seed}, {slots} slots"
            close += counted > steps / 4
    assert close > SEEDS
