"""Lower bounds on the cost of a region and of what is still to come; the search is exact because these never overestimate.

Two kinds: sums over the ops that are left (their cheapest forms, loads and copies nobody can avoid, one init of each kind that is
needed), and the least cost of the relaxed problem (``relaxed_bound.py``), which is tight but only known where it is small.
"""

from __future__ import annotations

from functools import cached_property

from tilewright.dst.effort import SIZE_LIMIT
from tilewright.dst.executed import ExecutedSets
from tilewright.dst.model import COST_SHIFT, SWITCH_TIE, Model, Variant, bits
from tilewright.dst.parts import budgets
from tilewright.dst.relaxation import Relaxation
from tilewright.dst.relaxed_bound import NEVER, RelaxedBound, TooManyRows


class Bounds:
    """Of one region, for all slot budgets. ``again``: values may be computed again or spilled, so a copy can be avoided."""

    def __init__(self, model: Model, *, again: bool = False, fixed_cycles: int = 0):
        self.model = model
        self.again = again
        self.fixed_cycles = fixed_cycles  # per tile, whatever the allocation
        self.sets = ExecutedSets(model)
        self.covering: dict[int, list[Variant]] = {value: [] for value in bits(model.all_results)}
        for variant in model.variants:
            for value in bits(variant.executes):
                self.covering[value].append(variant)
        self.cheapest = self._shares()
        least_unpack = {v: min(w.unpack // w.executes.bit_count() for w in ws) for v, ws in self.covering.items()}
        self.total = sum(self.cheapest.values())
        self.unpack_total = sum(least_unpack.values())
        self.saved = [sum(self.cheapest[v] for v in bits(w.executes)) for w in model.variants]
        self.unpack_saved = [sum(least_unpack[v] for v in bits(w.executes)) for w in model.variants]
        self.leaves = self._leaves()
        self.destroyers = [] if again else self._destroyers()
        self.init_prices = [0, *((price << COST_SHIFT) + SWITCH_TIE for price in model.init_prices[1:])]  # scaled
        self.known_relaxed: dict[tuple[int, int], RelaxedBound] = {}
        self.relaxed_below = 1 << 30  # slots
        problem = model.problem
        self.pack = problem.costs.pack * len(model.output_list)
        self.packs_serially = problem.full_sync and problem.costs.full_sync_serialises_pack

    # Sums over the ops that are left ---------------------------------------------------------------------------------------

    def _shares(self) -> dict[int, int]:
        """Cycles per op such that no variant costs less than its ops together: their sum is a lower bound.

        An op that only few fused forms take part in gets all it can, the others what that leaves.
        """
        fused = {value: sum(w.executes.bit_count() > 1 for w in variants) for value, variants in self.covering.items()}
        shares: dict[int, int] = {}
        for value in sorted(self.covering, key=lambda value: (fused[value], value)):
            room = [self._own_cost(w) - sum(shares.get(v, 0) for v in bits(w.executes)) for w in self.covering[value]]
            shares[value] = max(min(room), 0)
        return shares

    def _own_cost(self, variant: Variant) -> int:
        """Cost of a variant with the load it uses up when it destroys a leaf."""
        if variant.destroys & self.model.buffered:
            load = self.model.load_math[variant.destroys.bit_length() - 1]
            return variant.math + min(load, self.model.copy_math)
        return variant.math

    def _leaves(self) -> list[tuple[int, int, int, int, int]]:
        """Per leaf: its bit, the bits of its instances, cycles of a load, ops that may destroy it, ops that need it in DST."""
        model = self.model
        rows: list[tuple[int, int, int, int, int]] = []
        for leaf in bits(model.buffered & ~model.all_results):
            bit = 1 << leaf
            may_destroy = must_hold = 0
            for value in bits(model.users[leaf] | model.dst_users[leaf]):
                variants = self.covering.get(value, [])
                if any(w.destroys == bit for w in variants):
                    may_destroy |= 1 << value
                if variants and all(w.in_dst & bit for w in variants):
                    must_hold |= 1 << value
            if may_destroy or must_hold or model.outputs & bit:
                rows.append((bit, bit | sum(model.instances.get(leaf, ())), model.load_math[leaf], may_destroy, must_hold))
        return rows

    def _destroyers(self) -> list[tuple[int, int, int]]:
        """(ops, how many may destroy for nothing, what each of the others pays at least).

        The cheapest form of each op destroys the same value: all but one must copy it or take another form.
        """
        found: dict[int, tuple[int, int]] = {}
        counted = 0
        for value, variants in self.covering.items():
            destroyed = min(variants, key=lambda w: self._own_cost(w) - self.saved[w.index]).destroys & ~self.model.buffered
            shared = sum(w.executes for w in variants if w.executes.bit_count() > 1)
            if not destroyed or shared & counted:
                continue  # a form of several ops is counted for one of them
            others = [w.math - self.saved[w.index] for w in variants if w.destroys != destroyed]
            regret = min([self.model.copy_math, *others])
            if regret > 0:
                counted |= 1 << value | shared
                ops, least = found.get(destroyed, (0, regret))
                found[destroyed] = (ops | 1 << value, min(least, regret))
        rows = [(ops, 0 if bit & self.model.outputs else 1, least) for bit, (ops, least) in found.items()]
        return [row for row in rows if row[0].bit_count() > row[1]]

    def correction(self, executed: int, held: int, pending: int) -> int:
        """Cycles to add to the cheapest forms of the ops still to run: loads and copies nobody can avoid.

        The cheapest forms count a load into every form that destroys a leaf, so leaves in DST may save as much.
        """
        left = ~executed
        extra = 0
        for bit, instances, price, may_destroy, must_hold in self.leaves:
            if may_destroy & left:
                extra -= price * (held & instances).bit_count()
            elif not held & bit and (must_hold & left or pending & bit):
                extra += price
        for ops, free, least in self.destroyers:
            extra += least * max((ops & left).bit_count() - free, 0)
        return extra

    @cached_property
    def _init_masks(self) -> list[tuple[int, int, int]]:
        """(init, its scaled cost, ops that run under no other)."""
        masks: dict[int, int] = {}
        for value, variants in self.covering.items():
            init = variants[0].init
            if init and all(w.init == init for w in variants):
                masks[init] = masks.get(init, 0) | 1 << value
        return [(init, self.init_prices[init], mask) for init, mask in masks.items()]

    def inits(self, executed: int, current: int) -> int:
        """Scaled cost of the inits that some op to come cannot do without, while ``current`` is in force."""
        total = 0
        for init, price, mask in self._init_masks:
            if init != current and mask & ~executed:
                total += price
        return total

    # A slot budget as a whole ----------------------------------------------------------------------------------------------

    def quick(self, tiles: int) -> float:
        """Cycles per tile that no answer with so many tiles per acquire can beat."""
        return self.cycles(self._math * tiles + self.inits(0, 0), tiles)

    @cached_property
    def _math(self) -> int:
        """Scaled math cycles of a tile at least."""
        return self.total + self.correction(0, 0, self.model.outputs) << COST_SHIFT

    def shared(self, tiles: int) -> float:
        """As ``quick``, from the relaxed cost of one tile that has all slots: what is not math is inits, which tiles share."""
        whole = self.relaxed(1, self.model.problem.capacity)
        if whole is None:
            return 0.0
        return self.cycles(self._math * tiles + max(whole.root - self._math, 0), tiles) if whole.root < NEVER else float("inf")

    def relaxed(self, tiles: int, slots: int) -> RelaxedBound | None:
        """The bound of the region with all leaves alike; None if it does not apply or would take too long."""
        if self.again or slots >= self.relaxed_below or len(self.covering) > SIZE_LIMIT:
            return None
        known = self.known_relaxed.get((tiles, slots))
        if known is None:
            try:
                known = RelaxedBound(self._relaxation, self.init_prices, tiles=tiles, slots=slots)
            except TooManyRows:
                self.relaxed_below = slots  # more slots have still more rows
                return None
            self.known_relaxed[(tiles, slots)] = known
        return known

    @cached_property
    def _relaxation(self) -> Relaxation:
        return Relaxation(self.model, self.sets)

    def tight(self, tiles: int, slots: int) -> float | None:
        """Cycles per tile at least by the relaxed problem, infinite if nothing fits; None if that is not known."""
        relaxed = self.relaxed(tiles, slots)
        if relaxed is None:
            return None
        return self.cycles(relaxed.root, tiles) if relaxed.root < NEVER else float("inf")

    def cycles(self, cost: int, tiles: int) -> float:
        """Cycles per tile at least, where an acquire has this scaled cost."""
        cycles = (cost >> COST_SHIFT) + self.offset(tiles)
        return max(cycles / tiles, self.unpack_total, 0 if self.packs_serially else self.pack) + self.fixed_cycles

    def offset(self, tiles: int) -> int:
        """What an acquire pays on the math thread besides the searched cost."""
        return self.model.problem.costs.sync + (self.pack * tiles if self.packs_serially else 0)

    def by_quick(self, fewest_slots: int) -> list[tuple[float, int, int]]:
        """(quick bound, tiles, slots) of all budgets with at least so many slots, the least bound first."""
        rows = budgets(self.model.problem.capacity, self.model.problem.tiles)
        return sorted((self.quick(tiles), tiles, slots) for tiles, slots in rows if slots >= fewest_slots)

    @property
    def least_slots(self) -> int:
        """A lower bound on the slots of one tile: outputs, and operands that must be in DST together."""
        together = [min(max(w.in_dst.bit_count(), 1) for w in variants) for variants in self.covering.values()]
        return max([self.model.outputs.bit_count(), *together], default=1)
