"""Lower bounds on the inits still to come: on dependency chains, on inits nothing avoids, on batches of loads."""

from __future__ import annotations

from functools import cached_property

from tilewright.dst.bounds import COST_SHIFT, SWITCH_TIE, Bounds, BoundTables
from tilewright.dst.executed import ExecutedSets
from tilewright.dst.model import Model, Variant, bits
from tilewright.dst.relaxation import Relaxation
from tilewright.dst.relaxed_bound import RelaxedBound, TooManyRows

RELAXED_OPS = 64  # the rows of larger bodies would be too many, and too deep for a recursion

# Least scaled cost of inits along a dependency chain and the inits on it: under any init in force but those of the second part.
Chain = tuple[tuple[int, int], dict[int, tuple[int, int]]]


class InitTables(BoundTables):
    """And what the bounds on inits share, scaled."""

    def __init__(self, model: Model):
        super().__init__(model)
        self.init_prices = [0, *((price << COST_SHIFT) + SWITCH_TIE for price in model.init_prices[1:])]  # scaled
        self.known_prices: dict[int, int] = {}
        self.known_choices: dict[int, dict[int, Chain]] = {}
        self.known_relaxed: dict[tuple[int, int], RelaxedBound] = {}
        self.relaxed_below = 1 << 30  # slots

    @cached_property
    def sets(self) -> ExecutedSets:
        return ExecutedSets(self.model)

    @cached_property
    def _relaxation(self) -> Relaxation:
        return Relaxation(self.model, self.sets)

    def relaxed(self, tiles: int, slots: int) -> RelaxedBound | None:
        """The bound of the region with all leaves alike; None if it would take too long."""
        if slots >= self.relaxed_below or len(self.covering) > RELAXED_OPS:
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
    def fixed_inits(self) -> dict[int, int]:
        """Ops that run under one init only."""
        fixed: dict[int, int] = {}
        for value, variants in self.covering.items():
            init = variants[0].init
            if init and all(w.init == init for w in variants):
                fixed[value] = init
        return fixed

    @cached_property
    def init_masks(self) -> list[tuple[int, int, int]]:
        """(init, its scaled cost, ops that run under no other)."""
        masks: dict[int, int] = {}
        for value, init in self.fixed_inits.items():
            masks[init] = masks.get(init, 0) | 1 << value
        return [(init, self.init_prices[init], mask) for init, mask in masks.items()]

    def prices_of(self, inits: int) -> int:
        """Scaled cost of all inits in a mask."""
        known = self.known_prices.get(inits)
        if known is None:
            known = self.known_prices[inits] = sum(self.init_prices[init] for init in bits(inits))
        return known

    @cached_property
    def loading(self) -> tuple[int, int]:
        """Ops that cannot run without a load, and the init of loads (0 if there are several, or if ops need it too)."""
        model = self.model
        ops = 0
        inits: set[int] = set()
        for value, variants in self.covering.items():
            loads = [w.in_dst & model.buffered for w in variants]
            if all(loads):
                ops |= 1 << value
                inits.update(model.load_init[v] for mask in loads for v in bits(mask))
        inits_of_ops = {w.init for w in model.variants}
        return (ops, inits.pop()) if len(inits) == 1 and inits.isdisjoint(inits_of_ops) else (0, 0)

    @cached_property
    def some_need_no_init(self) -> bool:
        """Such ops run in the middle of a batch of loads and make room for more."""
        return any(not w.init for w in self.model.variants)

    @cached_property
    def instances(self) -> list[tuple[int, int, int]]:
        """Per leaf: its bits in DST, ops that destroy one of them in every form, ops that need one in every form."""
        model = self.model
        rows: list[tuple[int, int, int]] = []
        for bit, _, may_destroy, _, must_hold in self.leaves:
            leaf = bit.bit_length() - 1
            if model.load_init[leaf] != self.loading[1]:
                continue
            destroyed = 0
            for value in bits(may_destroy & must_hold):
                if all(w.destroys == bit and w.executes == 1 << value for w in self.covering[value]):
                    destroyed |= 1 << value
            if must_hold:
                rows.append((bit | sum(model.instances.get(leaf, ())), destroyed, must_hold))
        return rows

    @cached_property
    def _counted(self) -> dict[int, int]:
        """What the bound counts already for an op that does not destroy a value, by the bit of its result."""
        return {op: regret for _, _, regrets in self.destroyers for regret, op in regrets}

    @cached_property
    def preferring(self) -> list[tuple[int, int, list[tuple[int, int]]]]:
        """(init, its scaled cost, ops whose cheapest form needs it with what any other form would cost them more)."""
        rows: dict[int, list[tuple[int, int]]] = {}
        counted = self._counted  # what an op pays for not destroying a value is counted once
        for value, variants in self.covering.items():
            if value in self.fixed_inits or any(w.executes.bit_count() > 1 for w in variants):
                continue
            cheapest = min(variants, key=self.own_cost)
            # Without the load of a leaf the form destroys: it may be there already.
            others = [w.math for w in variants if w.init != cheapest.init]
            if cheapest.init and others:
                loss = max(min(others) - self.own_cost(cheapest) - counted.get(1 << value, 0), 0)
                rows.setdefault(cheapest.init, []).append((1 << value, loss))
        return [(init, self.init_prices[init], ops) for init, ops in rows.items()]

    @cached_property
    def chains(self) -> dict[int, Chain]:
        """The ops of a dependency chain from a value on run in order, so every change of init along it is paid.

        Only inits of ops that run under no other count here.
        """
        chains: dict[int, Chain] = {}
        for value in sorted(self.covering, reverse=True):
            chains[value] = self._chain_from(self.fixed_inits.get(value, 0), 0, self._followers(value, chains))
        return chains

    def _followers(self, value: int, chains: dict[int, Chain]) -> list[Chain]:
        return [chains[user] for user in bits(self.model.users[value] & self.model.all_results)]

    def chains_of_choices(self, tiles: int) -> dict[int, Chain]:
        """As ``chains``, where every op may also take a dearer form to spare an init; keys are of all forms it might take.

        These cycles go with the sum of the cheapest forms.
        """
        known = self.known_choices.get(tiles)
        if known is None:
            known = self.known_choices[tiles] = self._chains_of_choices(tiles)
        return known

    def _chains_of_choices(self, tiles: int) -> dict[int, Chain]:
        model = self.model
        chains: dict[int, Chain] = {}
        through: dict[int, Chain] = {}  # variant -> the chain from it on
        for value in sorted(self.covering, reverse=True):
            followers = self._followers(value, chains)
            for variant in model.of_op[model.problem.op_of(value)]:
                more = self._more(variant) * tiles << COST_SHIFT
                through[variant.index] = self._chain_from(variant.init, more, followers)
            chains[value] = _least_of([through[variant.index] for variant in self.covering[value]])
        return chains

    def _chain_from(self, init: int, more: int, followers: list[Chain]) -> Chain:
        """The chain of an op under ``init`` (0: any), which costs ``more`` besides, and of the longest of its followers."""
        if init:
            cost, keys = _longest(followers, init)
            keys |= 1 << init
            return (cost + more + self.init_prices[init], keys), {init: (cost + more, keys)}
        cost, keys = _longest(followers, 0)
        row = {current: _longest(followers, current) for follower in followers for current in follower[1]}
        return (cost + more, keys), {current: (cost + more, keys) for current, (cost, keys) in row.items()}

    def _more(self, variant: Variant) -> int:
        """Cycles above the cheapest forms, without what is counted for a value that is not destroyed.

        And without the load of a leaf the form destroys: it may be there already.
        """
        counted = sum(self._counted.get(1 << value, 0) for value in bits(variant.executes))
        return max(variant.math - self.saved[variant.index] - counted, 0)


def _under(chain: Chain, current: int) -> tuple[int, int]:
    """The chain while the init ``current`` is in force."""
    other, row = chain
    return row.get(current, other)


def _longest(followers: list[Chain], current: int) -> tuple[int, int]:
    return max((_under(follower, current) for follower in followers), default=(0, 0))


def _least_of(choices: list[Chain]) -> Chain:
    """The cheapest choice for every init in force; the keys are those of all."""
    if len(choices) == 1:
        return choices[0]
    row: dict[int, tuple[int, int]] = {}
    for current in {current for _, row in choices for current in row}:
        row[current] = _cheapest([_under(choice, current) for choice in choices])
    return _cheapest([other for other, _ in choices]), row


def _cheapest(choices: list[tuple[int, int]]) -> tuple[int, int]:
    keys = 0
    for _, some in choices:
        keys |= some
    return min(choices)[0], keys


class InitBounds(Bounds):
    """And the bounds on inits of one slot budget."""

    def __init__(self, tables: InitTables, *, tiles: int, slots: int, copies_count: bool, leaves_are_copied: bool):
        super().__init__(tables, tiles=tiles, copies_count=copies_count)
        self.init_tables = tables
        self.slots = slots
        self.leaves_are_copied = leaves_are_copied
        self.init_cache: dict[tuple[int, int], tuple[int, int]] = {}
        self.loadable = self.model.buffered | self.model.all_instances

    @cached_property
    def choices(self) -> dict[int, Chain]:
        return self.init_tables.chains_of_choices(self.tiles)

    def inits(self, executed: int, held: int, current: int, ready: list[Variant]) -> tuple[int, int]:
        """Scaled init cycles per acquire that cannot be avoided any more while ``current`` is in force.

        The second number counts also inits that only a dearer form avoids; it goes with the sum of the cheapest forms.
        """
        known = self.init_cache.get((executed, current))
        if known is None:
            known = self._init_bound(executed, current, ready)
            self.init_cache[(executed, current)] = known
        batches = self._batches(executed, held, current)
        if batches:
            extra = batches * self.init_tables.init_prices[self.init_tables.loading[1]]
            return known[0] + extra, known[1] + extra
        return known

    def _batches(self, executed: int, held: int, current: int) -> int:
        """How often the init of loads must still be switched to: a batch of loads fills at most all slots."""
        ops, load_init = self.init_tables.loading
        left = ~executed
        if not ops & left:
            return 0
        least = int(current != load_init and not held & self.model.buffered)
        if self.leaves_are_copied or self.init_tables.some_need_no_init:
            return least
        loads = useful = 0
        for instances, destroyed, needed in self.init_tables.instances:
            if needed & left:
                wanted, loaded = max((destroyed & left).bit_count(), 1), (held & instances).bit_count()
                loads += max(wanted - loaded, 0)
                useful += min(wanted, loaded)
        if current == load_init:  # the batch goes on; leaves nobody needs make room for it
            loads -= self.slots - (held & ~self.loadable).bit_count() - useful
        return max(least, -(-loads // self.slots))

    def _init_bound(self, executed: int, current: int, ready: list[Variant]) -> tuple[int, int]:
        left = ~executed
        tables = self.init_tables
        needed = 0
        for init, _, mask in tables.init_masks:
            if init != current and mask & left:
                needed |= 1 << init
        likely: list[tuple[int, int]] = []
        for init, price, ops in tables.preferring:
            if init != current and not needed >> init & 1:
                loss = 0
                for bit, cycles in ops:
                    if bit & left:
                        loss += cycles
                if loss:
                    likely.append((init, min(price, self.tiles * loss << COST_SHIFT)))
        certain = possible = 0
        for value in {w.value for w in ready}:
            cost, keys = _under(tables.chains[value], current)
            certain = max(certain, cost + tables.prices_of(needed & ~keys))
            for cost, keys in (_under(tables.chains[value], current), _under(self.choices[value], current)):
                besides = sum(price for init, price in likely if not keys >> init & 1)
                possible = max(possible, cost + tables.prices_of(needed & ~keys) + besides)
        return certain, possible
