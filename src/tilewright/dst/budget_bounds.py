"""Cycles per tile that no answer of a slot budget can beat: three bounds, from quick to tight."""

from __future__ import annotations

from functools import cached_property

from tilewright.dst.bounds import COST_SHIFT, whole_cycles
from tilewright.dst.init_bounds import InitBounds, InitTables
from tilewright.dst.parts import budgets
from tilewright.dst.relaxed_bound import NEVER


class BudgetBounds:
    """The bounds of all budgets of one region. ``fixed_cycles`` are paid per tile, whatever the allocation."""

    def __init__(self, tables: InitTables, *, recompute: bool, fixed_cycles: int):
        self.tables = tables
        self.model = tables.model
        self.problem = tables.model.problem
        self.recompute = recompute
        self.fixed_cycles = fixed_cycles
        self.known_chained: dict[tuple[int, int, int], float] = {}
        self.pack = self.problem.costs.pack * len(self.model.output_list)
        self.packs_serially = self.problem.full_sync and self.problem.costs.full_sync_serialises_pack

    def quick(self, tiles: int) -> float:
        """Math cycles nothing avoids, and one init of each kind that some op cannot do without, or what doing without costs."""
        inits = self._needed_inits
        for init, price, ops in self.tables.preferring:
            if init not in self._fixed_inits:
                inits += min(price, tiles * sum(loss for _, loss in ops) << COST_SHIFT)
        return self.cycles(self._math * tiles + inits, tiles)

    def without_inits(self, tiles: int) -> float:
        return self.cycles(self._math * tiles, tiles)

    @cached_property
    def _math(self) -> int:
        bounds = self._init_bounds(1, self.problem.capacity)
        return whole_cycles(bounds.total + bounds.correction(0, 0, self.model.outputs))

    @cached_property
    def _fixed_inits(self) -> set[int]:
        return set(self.tables.fixed_inits.values())

    @cached_property
    def _needed_inits(self) -> int:
        return sum(self.tables.init_prices[init] for init in self._fixed_inits)

    def chained(self, tiles: int, slots: int, math_floor: int = 0) -> float:
        """With inits along dependency chains and batches of loads; ``math_floor`` is a proved scaled cost without inits."""
        known = self.known_chained.get((tiles, slots, math_floor))
        if known is None:
            known = self.known_chained[(tiles, slots, math_floor)] = self._chained(tiles, slots, math_floor)
        return known

    def _chained(self, tiles: int, slots: int, math_floor: int) -> float:
        bounds = self._init_bounds(tiles, slots)
        certain, possible = bounds.inits(0, 0, 0, self.tables.sets.ready[0])
        math = bounds.total + bounds.correction(0, 0, self.model.outputs)
        return self.cycles(max(math + possible, math_floor + certain), tiles)

    def least(self, fewest_slots: int) -> float:
        """Over all budgets with so many slots."""
        least = float("inf")
        for quick, tiles, slots in self.by_quick(fewest_slots):
            if quick < least:
                least = min(least, self.chained(tiles, slots))
        return least

    def by_quick(self, fewest_slots: int) -> list[tuple[float, int, int]]:
        """(quick bound, tiles, slots) of all budgets with so many slots, the least first."""
        rows = budgets(self.problem.capacity, self.problem.tiles)
        return sorted((self.quick(tiles), tiles, slots) for tiles, slots in rows if slots >= fewest_slots)

    def relaxed(self, tiles: int, slots: int) -> float | None:
        """The least cost with all leaves alike, infinite if nothing fits; None if that is not known."""
        relaxed = None if self.recompute else self.tables.relaxed(tiles, slots)
        if relaxed is None:
            return None
        return self.cycles(relaxed.root, tiles) if relaxed.root < NEVER else float("inf")

    def _init_bounds(self, tiles: int, slots: int) -> InitBounds:
        return InitBounds(
            self.tables,
            tiles=tiles,
            slots=slots,
            copies_count=not self.recompute,
            leaves_are_copied=bool(self.model.leaves_worth_a_copy(tiles, inits=True)),
        )

    def cycles(self, cost: int, tiles: int) -> float:
        """Cycles per tile at least, where an acquire has this scaled cost."""
        cycles = (cost >> COST_SHIFT) + self.offset(tiles)
        return max(cycles / tiles, self.tables.unpack_total, 0 if self.packs_serially else self.pack) + self.fixed_cycles

    def offset(self, tiles: int) -> int:
        """What an acquire pays on the math thread besides the searched cost."""
        return self.problem.costs.sync + (self.pack * tiles if self.packs_serially else 0)
