"""One region without cuts: the best allocation over all slot budgets, and a proved bound on how good any could be."""

from __future__ import annotations

import contextlib
import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from tilewright.dst.allocation import Allocation
from tilewright.dst.bounds import COST_SHIFT, whole_cycles
from tilewright.dst.budget_bounds import BudgetBounds
from tilewright.dst.init_bounds import InitTables
from tilewright.dst.model import Model
from tilewright.dst.moves import Options
from tilewright.dst.pareto import ParetoSearch
from tilewright.dst.parts import best_layout, rank
from tilewright.dst.place import place
from tilewright.dst.pressure import Pressure
from tilewright.dst.search import Exhausted, Found, Search

BEAM_WIDTH = 24
BEAM_WORK = 5_000
WIDE_BEAM_WIDTH = 200  # where nothing else fits
WIDE_BEAM_WORK = 200_000
LEAST_WORK = 4_000
DIRECT_WORK = 1_500  # where leaves all alike bound the search well, it needs less; elsewhere the least math cycles help
TILE_MAJOR_WORK = 4_000  # all there is to save is one wait of a few
PRESSURE_OPS = 16  # in smaller bodies the search itself sees as fast what does not fit
RECOMPUTE_BEAM_WIDTH = 4  # its states have many more successors


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How many states and successors a search may look at: counted, not timed, so that no result depends on the machine."""

    work: int = 200_000  # without inits, for all slot budgets together; each has at least a little
    init_work: int = 10_000  # with inits, for all slot budgets together
    least_init_work: int = 400  # of which each budget has at least so much
    unpack_work: int = 200_000  # and at most so much goes into trading math for unpack cycles
    beam_work: int = BEAM_WORK  # where that did not suffice


@dataclass(frozen=True)
class Budget:
    """A slot budget and what is known about it: ``bound`` is a proved lower bound on its cycles per tile."""

    tiles: int
    slots: int
    bound: float
    found: Found | None
    proved: bool  # ``found`` is least in math cycles

    @property
    def math_floor(self) -> int:
        """Scaled cost without inits at least."""
        return whole_cycles(self.found.cost) if self.found is not None else 0


def least_slots(tables: InitTables, *, recompute: bool = False) -> int:
    """A lower bound on the slots of one tile: outputs, operands that must be in DST together, and values that wait."""
    together = [min(max(w.in_dst.bit_count(), 1) for w in variants) for variants in tables.covering.values()]
    slots = max([tables.model.outputs.bit_count(), *together], default=1)
    if recompute or len(together) < PRESSURE_OPS:
        return slots  # what is computed again need not wait
    return Pressure(tables.model).least_slots(slots)


class Optimizer:
    """``best`` is the cheapest allocation found; ``lower_bound`` what none can beat."""

    def __init__(
        self, model: Model, *, recompute: bool = False, effort: Effort, spilled: int = 0, below: float = float("inf")
    ):
        self.model = model
        self.tables = InitTables(model)
        self.problem = model.problem
        self.recompute = recompute
        self.effort = effort
        self.spilled = spilled
        self.below = below  # cycles per tile; what is not cheaper is of no use
        self.beam_width = RECOMPUTE_BEAM_WIDTH if recompute else BEAM_WIDTH
        self.best: Allocation | None = None
        self.lower_bound = float("inf")
        self.work_left = effort.work
        self.init_work_left = effort.init_work
        self.math_proved = True  # every search without inits came to its end
        self.fixed_cycles = self.problem.costs.spill_overhead * spilled  # per tile, whatever the allocation
        self.bounds = BudgetBounds(self.tables, recompute=recompute, fixed_cycles=self.fixed_cycles)

    @property
    def proved(self) -> bool:
        return self.best is not None and self.best.cycles_per_tile <= self.lower_bound + 1e-6

    @cached_property
    def fewest_slots(self) -> int:
        """Fewer do not fit."""
        return least_slots(self.tables, recompute=self.recompute)

    @cached_property
    def least_cycles(self) -> float:
        """A lower bound that takes no search."""
        return self.bounds.least(self.fewest_slots)

    def run(self) -> Allocation | None:
        for tiles, slots, bound in self._promising():
            searched = self._searched(tiles, slots, bound)
            self.lower_bound = min(self.lower_bound, searched)
        if self.best is None and not self.math_proved and not self.recompute:
            self._any_that_fits()
        self._fewer_slots_for_tile_major()
        return self.best

    def _promising(self) -> Iterator[tuple[int, int, float]]:
        """Budgets that may improve the best, the least bound first; a bound is made tighter only where it is the least.

        So the budget of the answer is usually the first to be searched, and the others need no more than a bound.
        """
        heap = [(quick, 0, -tiles, slots) for quick, tiles, slots in self.bounds.by_quick(self.fewest_slots)]
        while heap and self._may_improve(heap[0][0]):
            bound, refined, negative_tiles, slots = heapq.heappop(heap)
            tiles = -negative_tiles
            if refined == 0 and (heap or self.recompute):  # a single budget gets the tight bound at once
                heapq.heappush(heap, (max(bound, self.bounds.chained(tiles, slots)), 1, negative_tiles, slots))
            elif refined < 2:
                tight = self.bounds.relaxed(tiles, slots)
                heapq.heappush(heap, (bound if tight is None else max(bound, tight), 2, negative_tiles, slots))
            elif bound < float("inf"):
                yield tiles, slots, bound
        if heap:
            self.lower_bound = min(self.lower_bound, heap[0][0])

    def _searched(self, tiles: int, slots: int, bound: float) -> float:
        """Improve the best by this budget; the answer is a proved bound on the budget, infinite if nothing fits it."""
        if not self.recompute and self.tables.relaxed(tiles, slots) is not None:
            options = self._init_options(tiles, slots)
            options = replace(options, work_limit=min(options.work_limit // 2, DIRECT_WORK))
            if self._complete(Search(self.model, options, self._upper_bound(tiles, 0), tables=self.tables)):
                nothing_fits = self.best is None
                return float("inf") if nothing_fits else self._bound_of_complete(Budget(tiles, slots, bound, None, True))
        budget = self._without_inits(tiles, slots)
        return float("inf") if budget is None else self._with_inits(budget)

    def _may_improve(self, bound: float) -> bool:
        return bound < self.below and (self.best is None or bound <= self.best.cycles_per_tile)

    def _any_that_fits(self) -> None:
        """A wide beam finds a way through most bodies that leave hardly any slot."""
        slots = self.problem.capacity
        options = Options(slots=slots, tiles=1, work_limit=WIDE_BEAM_WORK)
        found = Search(self.model, options, tables=self.tables).beam(WIDE_BEAM_WIDTH)
        if found is not None:
            self._with_inits(Budget(1, slots, self.bounds.chained(1, slots), found, False))

    def _fewer_slots_for_tile_major(self) -> None:
        """Where op-major holds one tile, a plan with fewer slots may hold more of them tile-major."""
        if self.best is None or self.best.tiles_per_acquire > 1 or self.problem.tiles == 1:
            return
        outputs = self.model.outputs.bit_count()
        for slots in range(self.problem.capacity - outputs, self.fewest_slots - 1, -1):
            shared = slots - outputs
            tiles = min((self.problem.capacity - shared) // max(outputs, 1), self.problem.tiles)
            saved = self._spared(tiles)
            if self.bounds.chained(1, slots) - saved < self.best.cycles_per_tile and not self._fits_tile_major(slots, saved):
                return  # still fewer slots fit even less

    def _fits_tile_major(self, slots: int, saved: float) -> bool:
        """Offer the best plan of so few slots; false if none was found."""
        relaxed = self.bounds.relaxed(1, slots)
        if relaxed is not None:
            if self._may_improve(relaxed - saved):
                self._complete(Search(self.model, self._init_options(1, slots), self._upper_bound(1, 0), tables=self.tables))
            return relaxed < float("inf")
        options = Options(slots=slots, tiles=1, recompute=self.recompute, work_limit=TILE_MAJOR_WORK)
        found = None
        with contextlib.suppress(Exhausted):
            found = Search(self.model, options, tables=self.tables).run()
        if found is None:
            return False
        bound = self.bounds.chained(1, slots, whole_cycles(found.cost)) - saved
        self._with_inits(Budget(1, slots, bound, found, True))
        return True

    @property
    def tile_major_may_win(self) -> bool:
        """Whether a plan that shares slots among tiles could cost less than the best: the search proves op-major only.

        Such a plan holds at least two tiles, each with slots of its own for the outputs. It spares all but one of their waits,
        an init where a tile starts under the one the last tile ended with, and any number of inits that nothing undoes.
        """
        assert self.best is not None
        capacity, sync = self.problem.capacity, self.problem.costs.sync
        tiles = min((capacity - 1) // max(self.model.outputs.bit_count(), 1), self.problem.tiles)
        if tiles < 2:
            return False
        lasting = bool(self.problem.lasting_inits)
        least = self.bounds.without_inits(1) if lasting else self.bounds.chained(1, capacity) - max(self.model.init_prices)
        return least - sync * (1 - 1 / tiles) < self.best.cycles_per_tile

    def _spared(self, tiles: int) -> float:
        """Cycles per tile that are paid once for all tiles of an acquire: the wait, and inits that nothing undoes."""
        names, prices = self.model.init_names, self.model.init_prices
        once = self.problem.costs.sync + sum(prices[names[key]] for key in self.problem.lasting_inits if key in names)
        return once * (1 - 1 / max(tiles, 1))

    def _without_inits(self, tiles: int, slots: int) -> Budget | None:
        """Least math cycles in this budget; None if nothing fits it, or nothing below the best."""
        limit = min(max(self.work_left, LEAST_WORK), self.effort.work)
        options = Options(slots=slots, tiles=tiles, recompute=self.recompute, work_limit=limit)
        search = Search(self.model, options, self._upper_bound(tiles, 0), tables=self.tables)
        try:
            found = search.run()
        except Exhausted:
            self.math_proved = False
            self.work_left -= search.work
            found = Search(self.model, options, tables=self.tables).beam(self.beam_width)
            if found is None:
                options = replace(options, work_limit=max(self.work_left, LEAST_WORK))
                with contextlib.suppress(Exhausted):
                    found = Search(self.model, options, tables=self.tables).dive()
                    if found is None:
                        return None
            return Budget(tiles, slots, self.bounds.chained(tiles, slots), found, False)
        self.work_left -= search.work
        if found is None:
            return None
        return Budget(tiles, slots, self.bounds.chained(tiles, slots, whole_cycles(found.cost)), found, True)

    def _with_inits(self, budget: Budget) -> float:
        """Improve the best by this budget; the answer is a proved bound on the budget, as tight as the effort allows."""
        if budget.found is not None:
            self._offer(budget.found)
        if not self._may_improve(budget.bound):
            return budget.bound
        if not budget.proved:
            self._improve(budget)
            return budget.bound
        options = self._init_options(budget.tiles, budget.slots)
        floor = budget.math_floor
        search = Search(self.model, options, self._upper_bound(budget.tiles, 0), floor, self.tables)
        if not self._complete(search):
            self._improve(budget)
            return max(budget.bound, self.bounds.cycles(search.least_left, budget.tiles))
        return self._bound_of_complete(budget)

    def _bound_of_complete(self, budget: Budget) -> float:
        """The bound once all answers of the budget were searched that cost the math thread less than the best."""
        best = self.best
        if best is None:
            return budget.bound
        if best.cycles_per_tile <= budget.bound or best.cycles_per_tile > best.unpack_cycles + self.fixed_cycles:
            return best.cycles_per_tile
        return self._against_unpack(budget)

    def _against_unpack(self, budget: Budget) -> float:
        """The best is bound by the unpacker: look for an answer that trades math for unpack cycles."""
        offset = self.bounds.offset(budget.tiles)
        options = self._init_options(budget.tiles, budget.slots)
        options = replace(options, work_limit=min(options.work_limit, self.effort.unpack_work))
        upper_bound = self._upper_bound(budget.tiles, offset)
        search = ParetoSearch(self.model, options, upper_bound, budget.math_floor, self.tables)
        search.offset = offset
        done = self._complete(search)
        return self.best.cycles_per_tile if done and self.best is not None else budget.bound

    def _init_options(self, tiles: int, slots: int) -> Options:
        return Options(
            slots=slots,
            tiles=tiles,
            inits=True,
            recompute=self.recompute,
            work_limit=max(self.init_work_left, self.effort.least_init_work),
        )

    def _complete(self, search: Search) -> bool:
        """Run an exact search and offer what it finds; false if it was cut short."""
        try:
            found = search.run()
        except Exhausted:
            return False
        finally:
            self.init_work_left -= search.work
        if found is not None:
            self._offer(found)
        return True

    def _improve(self, budget: Budget) -> None:
        options = replace(self._init_options(budget.tiles, budget.slots), work_limit=self.effort.beam_work)
        floor = budget.math_floor if budget.proved else 0
        searching = Search(self.model, options, self._upper_bound(budget.tiles, 0), floor, self.tables)
        found = searching.beam(self.beam_width)
        self.init_work_left -= searching.work
        if found is not None:
            self._offer(found)

    def _upper_bound(self, tiles: int, offset: int) -> int | None:
        """Scaled cost at which this budget cannot even tie with the best so far, in either layout."""
        least = min(self.below, self.best.cycles_per_tile if self.best is not None else self.below)
        if least == float("inf"):
            return None
        cycles = (least - self.fixed_cycles) * tiles - self.bounds.offset(tiles) + offset
        if tiles == 1 and self.problem.tiles > 1:
            cycles += self.problem.costs.sync  # tile-major may divide it by many tiles
        return (int(cycles + 1e-6) + 1) << COST_SHIFT

    def _offer(self, found: Found) -> None:
        placement = place(self.model, found.moves)
        output_slots = [placement.slot_of[value] for value in self.model.output_list]
        offered = best_layout(self.problem, placement.steps, output_slots, placement.used, self.spilled)
        if self.best is None or rank(offered) < rank(self.best):
            self.best = offered
