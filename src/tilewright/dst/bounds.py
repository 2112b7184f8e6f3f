"""Lower bounds on the cost of a region and of what is still to come; the search is exact because these never overestimate.

Two kinds. Sums over the ops that are left: their cheapest forms, loads and copies nobody can avoid, one init of each kind that
is needed. And the least cost of a relaxed problem, the region with all leaves alike, which is tight but only known where it is
small. What waits in DST depends only on the ops executed, so slots are counted as they are. Of the leaves in DST only numbers
are kept: those no op can have used yet (*fresh*) serve any op, the others (*known*) only ops whose leaf may have been used
before. Which slots were written does not matter. Few sets of ops can have been executed, and ops that can run at once without
loss leave still fewer. A row holds the least cost after a set of ops with so many leaves in DST, for every init in force; rows
are worked out when they are asked for, and remembered.
"""

from __future__ import annotations

from functools import cached_property
from math import comb

from tilewright.dst.model import (
    COPY_TIE,
    COST_SHIFT,
    IN_PLACE,
    ROW_LIMIT,
    SIZE_LIMIT,
    STEP_LIMIT,
    SWITCH_TIE,
    ZEROED,
    ExecutedSets,
    Model,
    Variant,
    bits,
    budgets,
)

# After a set of ops: cycles of copies, and per price of a load: leaves that save it if they are in DST, leaves that cost it if
# they are not, and leaves that cost it if they are still to be packed.
Correction = tuple[int, list[tuple[int, int, int, int]]]


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
        self.own_costs = [self._own_cost(variant) for variant in model.variants]
        self.cheapest = self._shares()
        self.least_unpack = {v: min([w.unpack // w.executes.bit_count() for w in ws]) for v, ws in self.covering.items()}
        self.total = sum(self.cheapest.values())
        self.unpack_total = sum(self.least_unpack.values())
        self.saved = self._of_variants(self.cheapest)
        self.leaves = self._leaves()
        self.destroyers = [] if again else self._destroyers()
        self.corrections: dict[int, Correction] = {}
        self.relaxation: Relaxation | None = None
        self.init_prices = [0, *[(price << COST_SHIFT) + SWITCH_TIE for price in model.init_prices[1:]]]  # scaled
        self.init_masks = self._init_masks()
        self.known_relaxed: dict[tuple[int, int], RelaxedBound] = {}
        self.relaxed_below = 1 << 30  # slots
        problem = model.problem
        self.pack = problem.costs.pack * len(model.output_list)
        self.packs_serially = problem.full_sync and problem.costs.full_sync_serialises_pack
        self.other_engines = max(self.unpack_total, 0 if self.packs_serially else self.pack)  # cycles of a tile at least
        # Scaled math cycles of a tile at least.
        self.math = self.total + self.correction(0, 0, model.outputs) << COST_SHIFT
        # A lower bound on the slots of one tile: outputs, and operands that must be in DST together.
        together = [min([w.in_dst.bit_count() for w in variants]) for variants in self.covering.values()]
        self.least_slots = max(model.outputs.bit_count(), *together, 1) if together else model.outputs.bit_count()

    def _of_variants(self, cycles: dict[int, int]) -> list[int]:
        """Per variant, the cycles of all ops that it executes."""
        return [sum([cycles[value] for value in bits(variant.executes)]) for variant in self.model.variants]

    @cached_property
    def unpack_saved(self) -> list[int]:
        return self._of_variants(self.least_unpack)

    # Sums over the ops that are left ---------------------------------------------------------------------------------------

    def _shares(self) -> dict[int, int]:
        """Cycles per op such that no variant costs less than its ops together: their sum is a lower bound.

        An op that only few fused forms take part in gets all it can, the others what that leaves.
        """
        fused = [(sum([w.executes.bit_count() > 1 for w in ws]), value) for value, ws in self.covering.items()]
        shares: dict[int, int] = {}
        for _, value in sorted(fused):
            room = [self.own_costs[w.index] - sum([shares.get(v, 0) for v in bits(w.executes)]) for w in self.covering[value]]
            shares[value] = max(min(room), 0)
        return shares

    def _own_cost(self, variant: Variant) -> int:
        """Cost of a variant with the load it uses up when it destroys a leaf."""
        if variant.destroys & self.model.buffered:
            load = self.model.load_math[variant.destroys.bit_length() - 1]
            return variant.math + min(load, self.model.copy_math)
        return variant.math

    def _leaves(self) -> dict[int, list[tuple[int, int, int, int]]]:
        """By cycles of a load, per leaf: its bit, the bits of its instances, ops that may destroy it, ops that need it in DST."""
        model = self.model
        rows: dict[int, list[tuple[int, int, int, int]]] = {}
        for leaf in bits(model.buffered & ~model.all_results):
            bit = 1 << leaf
            may_destroy = must_hold = 0
            for value in bits(model.users[leaf] | model.dst_users[leaf]):
                variants = self.covering.get(value, [])
                if bit in [w.destroys for w in variants]:
                    may_destroy |= 1 << value
                if variants and 0 not in [w.in_dst & bit for w in variants]:
                    must_hold |= 1 << value
            if may_destroy or must_hold or model.outputs & bit:
                row = (bit, bit | sum(model.instances.get(leaf, ())), may_destroy, must_hold)
                rows.setdefault(model.load_math[leaf], []).append(row)
        return rows

    def _destroyers(self) -> list[tuple[int, int, int]]:
        """(ops, how many may destroy for nothing, what each of the others pays at least).

        The cheapest form of each op destroys the same value: all but one must copy it or take another form.
        """
        found: dict[int, tuple[int, int]] = {}
        counted = 0
        for value, variants in self.covering.items():
            destroyed = min(variants, key=lambda w: self.own_costs[w.index] - self.saved[w.index]).destroys & ~self.model.buffered
            if not destroyed:
                continue
            shared = sum([w.executes for w in variants if w.executes.bit_count() > 1])
            if shared & counted:
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
        extra, leaves = self.corrections.get(executed) or self._correction(executed)
        for price, saved, needed, packed in leaves:
            extra += price * (((needed | packed & pending) & ~held).bit_count() - (held & saved).bit_count())
        return extra

    def _correction(self, executed: int) -> Correction:
        left = ~executed
        leaves: list[tuple[int, int, int, int]] = []
        for price, rows in self.leaves.items():
            saved = needed = packed = 0
            for bit, instances, may_destroy, must_hold in rows:
                if may_destroy & left:
                    saved |= instances
                elif must_hold & left:
                    needed |= bit
                else:
                    packed |= bit
            leaves.append((price, saved, needed, packed))
        copies = 0
        for ops, free, least in self.destroyers:
            count = (ops & left).bit_count()
            if count > free:
                copies += least * (count - free)
        found = self.corrections[executed] = copies, leaves
        return found

    def _init_masks(self) -> list[tuple[int, int, int]]:
        """(init, its scaled cost, ops that run under no other)."""
        masks: dict[int, int] = {}
        for value, variants in self.covering.items():
            init = variants[0].init
            if init and len({w.init for w in variants}) == 1:
                masks[init] = masks.get(init, 0) | 1 << value
        return [(init, self.init_prices[init], mask) for init, mask in masks.items()]

    def inits(self, executed: int, current: int) -> int:
        """Scaled cost of the inits that some op to come cannot do without, while ``current`` is in force."""
        total = 0
        for init, price, mask in self.init_masks:
            if init != current and mask & ~executed:
                total += price
        return total

    # A slot budget as a whole ----------------------------------------------------------------------------------------------

    def quick(self, tiles: int) -> float:
        """Cycles per tile that no answer with so many tiles per acquire can beat."""
        return self.cycles(self.math * tiles + self.inits(0, 0), tiles)

    def relaxed(self, tiles: int, slots: int) -> RelaxedBound | None:
        """The bound of the region with all leaves alike; None if it does not apply or would take too long."""
        if self.again or slots >= self.relaxed_below or len(self.covering) > SIZE_LIMIT:
            return None
        known = self.known_relaxed.get((tiles, slots))
        if known is None:
            relaxation = self.relaxation = self.relaxation or Relaxation(self.model, self.sets)
            if not relaxation.few_steps and relaxation.least_steps(slots) > STEP_LIMIT:
                self.relaxed_below = slots
                return None
            try:
                known = RelaxedBound(relaxation, self.init_prices, tiles=tiles, slots=slots)
            except TooManyRows:
                self.relaxed_below = slots  # more slots have still more rows
                return None
            self.known_relaxed[(tiles, slots)] = known
        return known

    def tight(self, tiles: int, slots: int) -> float | None:
        """Cycles per tile at least by the relaxed problem, infinite if nothing fits; None if that is not known."""
        relaxed = self.relaxed(tiles, slots)
        if relaxed is None:
            return None
        return self.cycles(relaxed.root, tiles) if relaxed.root < NEVER else float("inf")

    def cycles(self, cost: int, tiles: int) -> float:
        """Cycles per tile at least, where an acquire has this scaled cost."""
        cycles = (cost >> COST_SHIFT) + self.offset(tiles)
        return max(cycles / tiles, self.other_engines) + self.fixed_cycles

    def offset(self, tiles: int) -> int:
        """What an acquire pays on the math thread besides the searched cost."""
        return self.model.problem.costs.sync + (self.pack * tiles if self.packs_serially else 0)

    def by_quick(self, fewest_slots: int) -> list[tuple[float, int, int]]:
        """(quick bound, tiles, slots) of all budgets with at least so many slots, the least bound first."""
        rows = budgets(self.model.problem.capacity, self.model.problem.tiles)
        return sorted([(self.quick(tiles), tiles, slots) for tiles, slots in rows if slots >= fewest_slots])


# The relaxed problem --------------------------------------------------------------------------------------------------


# One op in one form, after a set of ops (plain tuples: they are made by the hundred):
Step = tuple[
    int,  # its init
    int,  # its cycles, with the copy and with all ops that run at once afterwards
    bool,  # whether it copies
    int,  # leaves it uses in DST that no op can have used before
    int,  # all leaves it uses in DST
    int,  # slots it takes besides leaves and what waits, while it runs
    int,  # how many of its leaves are not in DST any more
    int,  # results that wait right after it
    int,  # ops executed when all that runs at once has run
    int,  # more leaves in DST than that are of no use then
]

# A leaf that a variant uses in DST: its bit, ops that may use it from DST (for ever if it is packed), ops that may and keep it.
Use = tuple[int, int, int]


class Relaxation:
    """Steps of the simpler problem, for all slot budgets."""

    def __init__(self, model: Model, sets: ExecutedSets):
        self.model = model
        self.sets = sets
        self.copied_leaves = model.leaves_worth_a_copy(1, inits=True)
        leaves = bits(model.buffered)
        load_inits = {model.load_init[leaf] for leaf in leaves}
        self.load_init = load_inits.pop() if len(load_inits) == 1 else 0  # 0: several, and none is counted
        self.load_cycles = min([model.load_math[leaf] for leaf in leaves], default=0)
        self.leaf_outputs = (model.outputs & model.buffered).bit_count()
        self.keepers = self._keepers()
        self.uses = [[self._use(leaf) for leaf in bits(w.in_dst & model.buffered)] for w in model.variants]
        self.users_of_leaves = list[int]()  # ops that may use at least one leaf in DST, two, ...
        for variant, uses in zip(model.variants, self.uses, strict=True):
            self.users_of_leaves += [0] * (len(uses) - len(self.users_of_leaves))
            for count in range(len(uses)):
                self.users_of_leaves[count] |= variant.executes
        self.at_once = [
            best and w.rule != ZEROED and not w.in_dst & model.buffered
            for w, best in zip(model.variants, model.never_beaten, strict=True)
        ]
        self.any_at_once = any(self.at_once)
        # Whether no more can come up than are allowed: every form after every set of ops.
        self.few_steps = len(model.variants) << len(model.ops) <= STEP_LIMIT
        self.known_steps: dict[int, list[Step]] = {}
        self.known_fresh: dict[int, int] = {}
        self.known_useful: dict[int, int] = {}
        self.settled: dict[tuple[int, int], tuple[int, int]] = {}

    def _keepers(self) -> dict[int, int]:
        keepers = dict.fromkeys(bits(self.model.buffered), 0)
        for variant in self.model.variants:
            for leaf in bits(variant.in_dst & self.model.buffered & ~(variant.destroys & ~self.copied_leaves)):
                keepers[leaf] |= variant.executes
        return keepers

    def _use(self, leaf: int) -> Use:
        bit = 1 << leaf
        return bit, -1 if bit & self.model.outputs else self.model.dst_users[leaf], self.keepers[leaf]

    def useful_leaves(self, executed: int) -> int:
        """More leaves in DST than that are of no use."""
        known = self.known_useful.get(executed)
        if known is None:
            left = ~executed
            known = self.leaf_outputs + sum([(ops & left).bit_count() for ops in self.users_of_leaves])
            self.known_useful[executed] = known
        return known

    def fresh_leaves(self, executed: int) -> int:
        """Leaves, and further instances of them, that no op of the set can have used and kept."""
        known = self.known_fresh.get(executed)
        if known is None:
            known = 0
            for leaf, keepers in self.keepers.items():
                if not keepers & executed:
                    known |= 1 << leaf | sum(self.model.instances.get(leaf, ()))
            self.known_fresh[executed] = known
        return known

    def settle(self, executed: int, init: int) -> tuple[int, int]:
        """The set after all ops that run at once under ``init``, and their cycles.

        Such an op replaces a value that dies with it, so running it later cannot cost less.
        """
        known = self.settled.get((executed, init))
        if known is not None:
            return known
        sets, now, cycles = self.sets, executed, 0
        variant = self._next_at_once(now, init) if self.any_at_once else None
        while variant is not None:
            now = sets.after(now, variant)
            cycles += variant.math
            variant = self._next_at_once(now, init)
        self.settled[(executed, init)] = now, cycles
        return now, cycles

    def _next_at_once(self, executed: int, init: int) -> Variant | None:
        for variant in self.sets.ready[executed]:
            if self.at_once[variant.index] and (not variant.init or variant.init == init):
                dying = self.sets.dying(variant, executed | variant.executes)
                if dying & variant.destroys if variant.rule == IN_PLACE else dying:
                    return variant
        return None

    @cached_property
    def _first_ops(self) -> list[tuple[int, int]]:
        """Of every op that needs no result: the slots its most frugal form takes at least, and how many steps it has."""
        forms: dict[int, list[Variant]] = {}
        for variant in self.sets.ready[0]:
            if variant.executes == variant.result:
                forms.setdefault(variant.op, []).append(variant)
        return sorted(
            (
                max(1, min(len(self.uses[w.index]) + (w.rule == ZEROED) for w in variants)),
                len({(w.init, w.math, len(self.uses[w.index])) for w in variants}),
            )
            for variants in forms.values()
        )

    def least_steps(self, slots: int) -> int:
        """Steps at least in the rows of so many slots; counted before any is made.

        Ops that need no result run in any order, and none of them runs at once. Each leaves one value waiting at most, so every
        subset of them comes up that leaves room for one more; in each, those outside it are steps.
        """
        most = steps = 0
        for count, (slots_of_one, forms) in enumerate(self._first_ops, start=1):
            steps += forms
            sizes = range(min(slots - slots_of_one + 2, count))  # of a subset: one op more than still leave room for another
            most = max(most, steps * sum(comb(count - 1, size) for size in sizes))
        return most

    def steps(self, executed: int) -> list[Step]:
        """What can come next; equal steps once."""
        known = self.known_steps.get(executed)
        if known is not None:
            return known
        steps: dict[Step, None] = {}
        sets, buffered = self.sets, self.model.buffered
        for variant in sets.ready[executed]:
            index = variant.index
            after = executed | variant.executes
            dying = sets.dying(variant, after)
            sets.after(executed, variant)
            left = ~after
            gone = fresh = 0
            for bit, users, keepers in self.uses[index]:
                if not keepers & executed:
                    fresh += 1
                if not users & left:
                    gone |= bit
            if variant.rule != IN_PLACE:
                steps[self._step(variant, after, False, fresh, gone, int(variant.rule == ZEROED))] = None
            elif not variant.destroys & buffered:
                copies = not variant.destroys & dying
                steps[self._step(variant, after, copies, fresh, gone, int(copies))] = None
            else:
                steps[self._step(variant, after, False, fresh, gone | variant.destroys, 0)] = None
                if variant.destroys & self.copied_leaves & ~gone:
                    steps[self._step(variant, after, True, fresh, gone, 1)] = None
        known = self.known_steps[executed] = list(steps)
        return known

    def _step(self, variant: Variant, after: int, copies: bool, fresh: int, gone: int, room: int) -> Step:
        cycles, settled = variant.math, after
        init = variant.init
        if copies:
            cycles += self.model.copy_math
            init = init or self.model.copy_init
        if init:
            settled, more = self.settle(after, init)
            cycles += more
        leaves, waiting = len(self.uses[variant.index]), self.sets.waiting[after].bit_count()
        useful = self.useful_leaves(settled)
        return (variant.init, cycles, copies, fresh, leaves, room, gone.bit_count(), waiting, settled, useful)


# Its least cost from every state on -----------------------------------------------------------------------------------


NEVER = 1 << 62  # above every cost: nothing fits

# Least scaled cost to the end: under any init in force but those of the second part.
Row = tuple[int, dict[int, int]]

# A step within the slots there are: the init it needs first and the one in force after it (a copy has its own), scaled cost with
# the second of them, fresh leaves and all leaves it uses, leaves there is room for meanwhile, leaves gone, most leaves after it,
# ops executed then.
Way = tuple[int, int, int, int, int, int, int, int, int]
Ways = tuple[int, list[Way]]  # most leaves there is room and use for, steps


class TooManyRows(Exception):
    """So many sets of ops can have been executed that this is no quick bound."""


class RelaxedBound:
    """The rows of one slot budget."""

    def __init__(self, relaxation: Relaxation, init_prices: list[int], *, tiles: int, slots: int):
        self.relaxation = relaxation
        self.init_prices = init_prices
        self.slots = slots
        self.scale = tiles << COST_SHIFT
        self.load_price = relaxation.load_cycles * self.scale
        self.leaf_outputs = relaxation.leaf_outputs
        self.waiting = relaxation.sets.waiting
        self.copy_init = relaxation.model.copy_init
        self.goal = relaxation.model.all_results
        self.loadable = relaxation.model.buffered | relaxation.model.all_instances
        self.ways: dict[int, Ways] = {}
        self.rows: dict[tuple[int, int, int], Row] = {}
        self.row_limit = ROW_LIMIT
        self.steps_left = STEP_LIMIT
        self.root = self.rest(0, 0, 0)
        self.row_limit = self.steps_left = 1 << 30  # what else the search asks for is next to rows there are

    def rest(self, executed: int, held: int, init: int) -> int:
        """Scaled cost to the end at least; ``NEVER`` or more if nothing fits."""
        relaxation = self.relaxation
        settled, cycles = relaxation.settled.get((executed, init)) or relaxation.settle(executed, init)
        leaves = held & self.loadable
        fresh = known = 0
        if leaves:
            most = min(self.slots - self.waiting[settled].bit_count(), relaxation.useful_leaves(settled))
            fresh = min((leaves & relaxation.fresh_leaves(executed)).bit_count(), most)
            known = min(leaves.bit_count() - fresh, most - fresh)
        other, row = self.rows.get((settled, fresh, known)) or self._row(settled, fresh, known)
        return row.get(init, other) + cycles * self.scale

    def _row(self, executed: int, fresh: int, known: int) -> Row:
        """The cheapest of a load and of all steps that fit."""
        rows = self.rows
        if len(rows) >= self.row_limit:
            raise TooManyRows
        if executed == self.goal and not self.leaf_outputs:
            row = rows[(executed, fresh, known)] = (0, {})
            return row
        leaves = fresh + known
        most, ways = self.ways.get(executed) or self._ways(executed)
        under: dict[int, int] = {}  # init -> cost while it is in force
        other = 0 if executed == self.goal and leaves >= self.leaf_outputs else NEVER
        if fresh < most:
            loaded = (executed, fresh + 1, known if known < most - fresh else most - fresh - 1)
            other = _take(self.relaxation.load_init, self.load_price, rows.get(loaded) or self._row(*loaded), under, other)
        for init, last_init, cost, first, uses, room_for_leaves, gone, most_after, after in ways:
            if first > fresh or uses > leaves:
                continue
            # Known leaves are used before fresh ones, and make way first where slots are short.
            taken = first if first >= uses - known else uses - known
            now_fresh = fresh - taken
            now_known = (known + taken if leaves <= room_for_leaves else room_for_leaves - now_fresh) - gone
            if now_fresh + now_known > most_after:
                now_fresh = now_fresh if now_fresh < most_after else most_after
                now_known = most_after - now_fresh
            row = rows.get((after, now_fresh, now_known)) or self._row(after, now_fresh, now_known)
            if init:
                cost += row[1].get(last_init, row[0])
                if cost < under.get(init, NEVER):
                    under[init] = cost
            else:
                other = _take(0, cost, row, under, other)
        for init, cost in under.items():
            if cost + self.init_prices[init] < other:
                other = cost + self.init_prices[init]
        row = rows[(executed, fresh, known)] = (other, {init: cost for init, cost in under.items() if cost < other})
        return row

    def _ways(self, executed: int) -> Ways:
        """The steps that fit some number of leaves, with their prices."""
        slots = self.slots
        steps = self.relaxation.steps(executed)
        self.steps_left -= len(steps)
        if self.steps_left < 0:
            raise TooManyRows
        free = slots - self.waiting[executed].bit_count()
        ways: list[Way] = []
        for init, cycles, copies, first, uses, room, gone, waiting, after, useful in steps:
            if uses + room > free or waiting > slots:
                continue
            cost, first_init = cycles * self.scale, init
            if copies:
                cost += COPY_TIE
                first_init = self.copy_init or init
                init = init or first_init
                cost += self.init_prices[init] if init != first_init else 0
            ways.append((first_init, init, cost, first, uses, free - room, gone, min(slots - waiting, useful), after))
        found = self.ways[executed] = min(free, self.relaxation.useful_leaves(executed)), ways
        return found


def _take(init: int, cost: int, row: Row, under: dict[int, int], other: int) -> int:
    """Note a way that costs ``cost`` under ``init`` (0: any) and goes on with ``row``; gives the least under any other init."""
    rest, rests = row
    if init:
        cost += rests.get(init, rest)
        if cost < under.get(init, NEVER):
            under[init] = cost
        return other
    for current, least in rests.items():
        if cost + least < under.get(current, NEVER):
            under[current] = cost + least
    return other if other < cost + rest else cost + rest
