"""One region without cuts: the best allocation over all slot budgets, and a proved bound on how good any could be.

The moves of a search become steps on numbered slots: a load, a copy or a free result takes a slot that was written before if
there is one, so that untouched slots last for the results that need them; a result prefers the slot of an operand that dies with
the op.
"""

from __future__ import annotations

import contextlib
import heapq
from collections.abc import Iterator, Sequence
from functools import cached_property

from tilewright.dst.bounds import Bounds
from tilewright.dst.model import COST_SHIFT, IN_PLACE, LITTLE, ZEROED, Effort, Model, Variant, best_layout, bits, rank
from tilewright.dst.moves import Move, Options
from tilewright.dst.problem import Allocation, Copy, Execute, Layout, Load, Place, Step
from tilewright.dst.search import Exhausted, Found, ParetoSearch, Search


class Placement:
    """Slots of one part while its moves are replayed."""

    def __init__(self, model: Model):
        self.model = model
        self.problem = model.problem
        self.slot_of: dict[int, int] = {}
        self.written: set[int] = set()  # slots that are dirty and hold nothing
        self.used = 0
        self.steps: list[Step] = []

    def take(self) -> int:
        if self.written:
            slot = min(self.written)
            self.written.remove(slot)
            return slot
        return self.take_untouched()

    def take_untouched(self) -> int:
        self.used += 1
        return self.used - 1

    def drop(self, mask: int) -> None:
        for value in bits(mask):
            self.written.add(self.slot_of.pop(value))

    def replay(self, move: Move) -> None:
        self.drop(move.dropped)
        variant = move.variant
        for value in self._load_order(move):
            slot = self.take()
            self.slot_of[value] = slot
            self.steps.append(Load(self.model.leaf_of_instance.get(value, value), slot))
        if variant is not None:
            self._execute(move, variant)

    def _load_order(self, move: Move) -> Sequence[int]:
        if move.variant is None:
            return bits(move.loads)
        if not move.loads:
            return ()
        form = self.problem.ops[move.variant.op].forms[move.variant.form]
        return [v for v in dict.fromkeys([o.value for o in form.operands]) if move.loads >> v & 1]

    def _execute(self, move: Move, variant: Variant) -> None:
        form = self.problem.ops[variant.op].forms[variant.form]
        slots = [self.slot_of[o.value] if o.place is Place.DST else None for o in form.operands]
        overwritten = -1
        if form.reuses is not None:
            # Only the operand that is overwritten reads the copy, or the further instance of a leaf.
            overwritten = self._overwritten_slot(move, variant)
            slots[form.reuses] = overwritten
        gone = [value for value in self.slot_of if not move.held >> value & 1]
        freed = [self.slot_of.pop(value) for value in gone]
        if variant.rule == IN_PLACE:
            target = overwritten
        elif variant.rule == ZEROED:
            target = self.take_untouched()
        else:
            target = self._free_target(freed, slots)
        self.written.update(freed)
        self.written.discard(target)
        self.steps.append(Execute(variant.op, variant.form, tuple(slots), target))
        result = variant.result.bit_length() - 1
        if move.held >> result & 1:
            self.slot_of[result] = target
        else:
            self.written.add(target)

    def _overwritten_slot(self, move: Move, variant: Variant) -> int:
        destroyed = variant.destroys.bit_length() - 1
        if move.copies:
            target = self.take()
            self.steps.append(Copy(destroyed, self.slot_of[destroyed], target))
            return target
        instances = [v for v, leaf in self.model.leaf_of_instance.items() if leaf == destroyed and v in self.slot_of]
        return self.slot_of[max(instances, default=destroyed)]

    def _free_target(self, freed: list[int], operands: Sequence[int | None]) -> int:
        dying = [slot for slot in operands if slot is not None and slot in freed]
        if dying:
            return dying[0]
        return freed[0] if freed else self.take()


def place(model: Model, moves: Sequence[Move]) -> Placement:
    """Steps and slots of one part (no cuts among the moves)."""
    placement = Placement(model)
    for move in moves:
        placement.replay(move)
    return placement


# Over slot budgets ----------------------------------------------------------------------------------------------------


class Optimizer:
    """``best`` is the cheapest allocation found; ``lower_bound`` what no op-major one can beat."""

    def __init__(
        self, model: Model, *, effort: Effort, recompute: bool = False, spilled: int = 0, below: float = float("inf")
    ):
        self.model = model
        self.problem = model.problem
        self.recompute = recompute
        self.effort = effort
        self.spilled = spilled
        self.below = below  # cycles per tile; what is not cheaper is of no use
        self.best: Allocation | None = None
        self.lower_bound = float("inf")
        self.exact_left = effort.exact
        self.walks: dict[int, Found | None] = {}  # by slots
        self.offered: set[int] = set()  # of these walks

    @cached_property
    def bounds(self) -> Bounds:
        return Bounds(self.model, again=self.recompute, fixed_cycles=self.problem.costs.spill_overhead * self.spilled)

    @property
    def proved(self) -> bool:
        return self.best is not None and self.best.cycles_per_tile <= self.lower_bound + 1e-6

    @cached_property
    def least_cycles(self) -> float:
        """A lower bound that takes no search."""
        return min((quick for quick, _, _ in self.bounds.by_quick(self.bounds.least_slots)), default=float("inf"))

    def run(self) -> Allocation | None:
        self.best = self._of_one_op()
        if self.best is not None:
            self.lower_bound = self.best.cycles_per_tile
            return self.best
        for tiles, slots, bound in self._promising():
            self.lower_bound = min(self.lower_bound, self._searched(tiles, slots, bound))
        self._fewer_slots_for_tile_major()
        return self.best

    def _of_one_op(self) -> Allocation | None:
        """One op alone runs in one way in each of its forms: what it wants in DST is loaded, then it runs. What costs least is
        proved without a search, unless forms cost the same, leaves could be loaded in either order, or tiles share slots."""
        model = self.model
        if len(model.ops) != 1 or model.outputs != model.all_results or self.recompute or self.below < float("inf"):
            return None
        placements = [place(model, [Move(w, loads=w.in_dst, held=w.result)]) for w in model.variants]
        ways = sorted([self._laid_out(each) for each in placements if each.used <= self.problem.capacity], key=rank)
        if not ways or ways[0].loads > 1 or any(way.layout is not Layout.OP_MAJOR for way in ways):
            return None
        is_least = len(ways) == 1 or ways[0].cycles_per_tile < ways[1].cycles_per_tile - 1e-6
        return ways[0] if is_least else None

    def _promising(self) -> Iterator[tuple[int, int, float]]:
        """Budgets that may improve the best, the least bound first; a bound is made tight only where it is the least.

        So the budget of the answer is usually the first to be searched, and the others need no more than a bound.
        """
        heap = [(quick, False, -tiles, slots) for quick, tiles, slots in self.bounds.by_quick(self.bounds.least_slots)]
        while heap and self._may_improve(heap[0][0]):
            bound, refined, negative_tiles, slots = heapq.heappop(heap)
            if not refined:
                tight = self.bounds.tight(-negative_tiles, slots)
                heapq.heappush(heap, (bound if tight is None else max(bound, tight), True, negative_tiles, slots))
            elif bound < float("inf"):
                yield -negative_tiles, slots, bound
        if heap:
            self.lower_bound = min(self.lower_bound, heap[0][0])

    def _may_improve(self, bound: float) -> bool:
        return bound < self.below and (self.best is None or bound <= self.best.cycles_per_tile)

    def _searched(self, tiles: int, slots: int, bound: float) -> float:
        """Improve the best by this budget; the answer is a proved bound on the budget, infinite if nothing fits it."""
        search = Search(self.model, self._exact_options(tiles, slots), self._upper_bound(tiles), bounds=self.bounds)
        if self._complete(search):
            return self._bound_of_complete(tiles, slots, bound)
        if self.recompute or self._walk(slots) is not None:
            self._beam(tiles, slots)
        return max(bound, self.bounds.cycles(search.least_left, tiles))

    def _complete(self, search: Search) -> bool:
        """Run an exact search and offer what it finds; false if it was cut short."""
        try:
            self._offer(search.run())
        except Exhausted:
            return False
        finally:
            if search.relaxed is not None:
                self.exact_left -= search.work
        return True

    def _exact_options(self, tiles: int, slots: int) -> Options:
        informed = self.bounds.relaxed(tiles, slots) is not None
        return self._options(tiles, slots, max(self.exact_left, self.effort.least_exact) if informed else self.effort.uninformed)

    def _options(self, tiles: int, slots: int, work: int) -> Options:
        return Options(slots=slots, tiles=tiles, inits=self.model.has_inits, recompute=self.recompute, work_limit=work)

    def _bound_of_complete(self, tiles: int, slots: int, bound: float) -> float:
        """The bound once all answers of the budget were searched that cost the math thread less than the best."""
        best = self.best
        if best is None:
            return float("inf")
        if best.cycles_per_tile <= bound or best.cycles_per_tile > best.unpack_cycles + self.bounds.fixed_cycles:
            return best.cycles_per_tile
        # The best is bound by the unpacker: look for an answer that trades math for unpack cycles.
        offset = self.bounds.offset(tiles)
        options = self._exact_options(tiles, slots)
        search = ParetoSearch(self.model, options, self._upper_bound(tiles, offset), bounds=self.bounds)
        search.offset = offset
        return self.best.cycles_per_tile if self._complete(search) and self.best is not None else bound

    def _walk(self, slots: int) -> Found | None:
        """Any sequence that fits so many slots, if a walk finds one; offered too."""
        found = self._fitting(slots)
        if slots not in self.offered:
            self.offered.add(slots)
            self._offer(found)
        return found

    def _fitting(self, slots: int) -> Found | None:
        """What does not fit more does not fit fewer: all slots there are come first, and mostly their budget is looked at too."""
        if slots not in self.walks:
            if slots < self.problem.capacity:
                self._fitting(self.problem.capacity)
            hopeless = any(walk is None and tried >= slots for tried, walk in self.walks.items())
            self.walks[slots] = None if hopeless else self._walked(slots)
        return self.walks[slots]

    def _walked(self, slots: int) -> Found | None:
        options = Options(slots=slots, tiles=1, work_limit=self.effort.fit)
        found = Search(self.model, options, bounds=self.bounds).beam(self.effort.beam_width)
        if found is None:
            with contextlib.suppress(Exhausted):
                return Search(self.model, options, bounds=self.bounds).dive()
        return found

    def _beam(self, tiles: int, slots: int) -> None:
        options = self._options(tiles, slots, self.effort.beam)
        self._offer(Search(self.model, options, self._upper_bound(tiles), bounds=self.bounds).beam(self.effort.beam_width))

    def _upper_bound(self, tiles: int, offset: int = 0) -> int | None:
        """Scaled cost at which this budget cannot even tie with the best so far, in either layout."""
        least = min(self.below, self.best.cycles_per_tile if self.best is not None else self.below)
        if least == float("inf"):
            return None
        cycles = (least - self.bounds.fixed_cycles) * tiles - self.bounds.offset(tiles) + offset
        if tiles == 1 and self.problem.tiles > 1:
            cycles += self.problem.costs.sync  # tile-major may divide it by many tiles
        return (int(cycles + 1e-6) + 1) << COST_SHIFT

    def _offer(self, found: Found | None) -> None:
        if found is None:
            return
        offered = self._laid_out(place(self.model, found.moves))
        if self.best is None or rank(offered) < rank(self.best):
            self.best = offered

    def _laid_out(self, placement: Placement) -> Allocation:
        output_slots = [placement.slot_of[value] for value in self.model.output_list]
        return best_layout(self.problem, placement.steps, output_slots, placement.used, self.spilled)

    # Tile-major ----------------------------------------------------------------------------------------------------------

    def _fewer_slots_for_tile_major(self) -> None:
        """Where op-major holds one tile, a plan with fewer slots may hold more of them tile-major."""
        if self.best is None or self.best.tiles_per_acquire > 1 or self.problem.tiles == 1:
            return
        outputs = self.model.outputs.bit_count()
        for slots in range(self.problem.capacity - outputs, self.bounds.least_slots - 1, -1):
            tiles = min((self.problem.capacity - slots + outputs) // max(outputs, 1), self.problem.tiles)
            spared, tight = self._spared(tiles), self.bounds.tight(1, slots)
            if tight == float("inf"):
                return  # still fewer slots fit even less
            if tight is None and spared < LITTLE * self.best.cycles_per_tile:
                continue
            if self._may_improve((tight or self.bounds.quick(1)) - spared):
                self._searched(1, slots, 0.0)

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
        least = self.bounds.quick(1) - max(self.model.init_prices)
        if self.problem.lasting_inits:
            least -= sum(self.model.init_prices)
        return least - sync * (1 - 1 / tiles) < self.best.cycles_per_tile

    def _spared(self, tiles: int) -> float:
        """Cycles per tile that are paid once for all tiles of an acquire: the wait, and inits that nothing undoes."""
        names, prices = self.model.init_names, self.model.init_prices
        once = self.problem.costs.sync + sum(prices[names[key]] for key in self.problem.lasting_inits if key in names)
        return once * (1 - 1 / max(tiles, 1))
