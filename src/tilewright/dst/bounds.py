"""Lower bounds on the cost still to come; the search is exact because these never overestimate."""

from __future__ import annotations

from functools import cached_property

from tilewright.dst.model import Model, Variant, bits

COST_SHIFT = 16  # bits below a cycle, for the order of ties


LeafRow = tuple[int, int, int, list[tuple[int, int]], int]


class BoundTables:
    """What the bounds of all slot budgets of one region share, in cycles."""

    def __init__(self, model: Model):
        self.model = model
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
        self.known_prices: dict[int, int] = {}
        self.leaves = self._leaves()
        self.destroyers = self._destroyers()

    def _shares(self) -> dict[int, int]:
        """Cycles per op such that no variant costs less than its ops together: their sum is a lower bound.

        An op that only few fused forms take part in gets all it can, the others what that leaves.
        """
        fused = {value: sum(w.executes.bit_count() > 1 for w in variants) for value, variants in self.covering.items()}
        shares: dict[int, int] = {}
        for value in sorted(self.covering, key=lambda value: (fused[value], value)):
            room = [self.own_cost(w) - sum(shares.get(v, 0) for v in bits(w.executes)) for w in self.covering[value]]
            shares[value] = max(min(room), 0)
        return shares

    def own_cost(self, variant: Variant) -> int:
        """Cost of a variant with the load it uses up when it destroys a leaf."""
        if variant.destroys & self.model.buffered:
            load = self.model.load_math[variant.destroys.bit_length() - 1]
            return variant.math + min(load, self.model.copy_math)
        return variant.math

    def _leaves(self) -> list[LeafRow]:
        """Per leaf: its bit, cycles of a load, what a loaded one saves the ops that destroy it, ops that need it in DST.

        ``cheapest`` counts a load into every form that destroys a leaf, so one in DST may save that much, if such a form is
        the cheapest; each instance serves one op. Savings are in descending order with the results they are for.
        """
        model = self.model
        rows: list[LeafRow] = []
        for leaf in bits(model.buffered & ~model.all_results):
            bit = 1 << leaf
            must_hold = 0
            saves: dict[int, int] = {}
            for value in bits(model.users[leaf] | model.dst_users[leaf]):
                variants = self.covering.get(value, [])
                for w in variants:
                    if w.destroys == bit:
                        saves[1 << value] = max(saves.get(1 << value, 0), self.saved[w.index] - w.math)
                if variants and all(w.in_dst & bit for w in variants):
                    must_hold |= 1 << value
            if saves or must_hold or model.outputs & bit:
                may_destroy = sum(saves)
                ordered = sorted(((saved, ops) for ops, saved in saves.items() if saved > 0), reverse=True)
                rows.append((bit, model.load_math[leaf], may_destroy, ordered, must_hold))
        return rows

    def _destroyers(self) -> list[tuple[int, int, list[tuple[int, int]]]]:
        """(ops, how many may destroy for nothing, what each of the others pays at least with its result, ascending).

        The cheapest form of each op destroys the same value: all but one must copy it or take another form.
        """
        destroyers: dict[int, list[tuple[int, int]]] = {}
        counted = 0
        for value, variants in self.covering.items():
            cheapest = min(variants, key=self.excess)
            destroyed = cheapest.destroys & ~self.model.buffered
            shared = 0
            for w in variants:
                shared |= w.executes if w.executes.bit_count() > 1 else 0
            if not destroyed or shared & counted:
                continue  # a form of several ops is counted for one of them
            # Without the load of a leaf the form destroys: it may be there already.
            others = [max(w.math - self.saved[w.index], 0) for w in variants if w.destroys != destroyed]
            regret = min([self.model.copy_math, *others])
            if regret > 0:
                counted |= 1 << value | shared
                destroyers.setdefault(destroyed, []).append((regret, 1 << value))
        rows: list[tuple[int, int, list[tuple[int, int]]]] = []
        for bit, regrets in destroyers.items():
            last = [(regret, op) for regret, op in regrets if self._may_be_last(bit, op)]
            rows.append((sum(op for _, op in last), 0 if bit & self.model.outputs else 1, sorted(last)))
            never = sorted(pair for pair in regrets if pair not in last)
            rows.append((sum(op for _, op in never), 0, never))
        return [row for row in rows if len(row[2]) > row[1]]

    def _may_be_last(self, bit: int, op: int) -> bool:
        """Whether no other user of a value comes after ``op``, or runs with it in one form."""
        value = op.bit_length() - 1
        others = self.model.users[bit.bit_length() - 1] & ~op & self.followers[value]
        return not others or any(w.executes & others for w in self.covering[value])

    @cached_property
    def followers(self) -> dict[int, int]:
        """Results that depend on a result."""
        found: dict[int, int] = {}
        for value in sorted(self.covering, reverse=True):
            found[value] = 0
            for user in bits(self.model.users[value] & self.model.all_results):
                found[value] |= 1 << user | found[user]
        return found

    def excess(self, variant: Variant) -> int:
        """What a variant costs beyond the cheapest way to run its ops."""
        return self.own_cost(variant) - self.saved[variant.index]

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
        """(init, its cycles, ops that run under no other)."""
        masks: dict[int, int] = {}
        for value, init in self.fixed_inits.items():
            masks[init] = masks.get(init, 0) | 1 << value
        return [(init, self.model.init_prices[init], mask) for init, mask in masks.items()]

    def prices_of(self, inits: int) -> int:
        """Cycles of all inits in a mask."""
        known = self.known_prices.get(inits)
        if known is None:
            known = self.known_prices[inits] = sum(self.model.init_prices[init] for init in bits(inits))
        return known

    @cached_property
    def loading(self) -> tuple[int, int]:
        """Ops that cannot run without a load, and the init of loads (0 if there are several)."""
        model = self.model
        ops = 0
        inits: set[int] = set()
        for value, variants in self.covering.items():
            loads = [w.in_dst & model.buffered for w in variants]
            if all(loads):
                ops |= 1 << value
                inits.update(model.load_init[v] for mask in loads for v in bits(mask))
        return (ops, inits.pop()) if len(inits) == 1 else (0, 0)

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
    def preferring(self) -> list[tuple[int, int, list[tuple[int, int]]]]:
        """(init, its cycles, ops whose cheapest form needs it with what any other form would cost them more)."""
        rows: dict[int, list[tuple[int, int]]] = {}
        # What an op pays for not destroying a value is counted once.
        counted = {op: regret for _, _, regrets in self.destroyers for regret, op in regrets}
        for value, variants in self.covering.items():
            if value in self.fixed_inits or any(w.executes.bit_count() > 1 for w in variants):
                continue
            cheapest = min(variants, key=self.own_cost)
            # Without the load of a leaf the form destroys: it may be there already.
            others = [w.math for w in variants if w.init != cheapest.init]
            if cheapest.init and others:
                loss = max(min(others) - self.own_cost(cheapest) - counted.get(1 << value, 0), 0)
                rows.setdefault(cheapest.init, []).append((1 << value, loss))
        return [(init, self.model.init_prices[init], ops) for init, ops in rows.items()]

    @cached_property
    def chains(self) -> dict[int, list[tuple[int, int]]]:
        """``chains[value][init]``: least init cycles of a dependency chain from ``value`` on, and the inits on it.

        ``init`` is in force before. The ops of a chain run in order, so every change of init along it is paid.
        """
        model = self.model
        chains: dict[int, list[tuple[int, int]]] = {}
        for value in sorted(self.covering, reverse=True):
            followers = [chains[user] for user in bits(model.users[value] & model.all_results)]
            own = self.fixed_inits.get(value)
            row: list[tuple[int, int]] = []
            for current in range(len(model.init_prices)):
                after = current if own is None else own
                cost, keys = max((follower[after] for follower in followers), default=(0, 0))
                if own is not None:
                    keys |= 1 << own
                    cost += model.init_prices[own] if own != current else 0
                row.append((cost, keys))
            chains[value] = row
        return chains


class Bounds:
    """The bounds of one slot budget, in scaled units. ``copies_count`` is false where a copy can be avoided
    otherwise.
    """

    def __init__(
        self, tables: BoundTables, *, tiles: int, slots: int, copy_extra: int, copies_count: bool, leaves_are_copied: bool
    ):
        self.tables = tables
        self.model = tables.model
        self.tiles = tiles
        self.slots = slots
        self.leaves_are_copied = leaves_are_copied
        scale = tiles << COST_SHIFT
        self.total = tables.total * scale
        self.saved = [cycles * scale for cycles in tables.saved]
        further = tables.model.instances
        self.leaves = [
            (
                bit,
                bit | sum(further.get(bit.bit_length() - 1, ())),
                cycles * scale,
                may,
                [(saved * scale, ops) for saved, ops in saves],
                must,
            )
            for bit, cycles, may, saves, must in tables.leaves
        ]
        copy_price = tables.model.copy_math
        self.destroyers = [
            (ops, free, [(regret * scale + (copy_extra if regret == copy_price else 0), op) for regret, op in regrets])
            for ops, free, regrets in (tables.destroyers if copies_count else [])
        ]
        self.init_cache: dict[tuple[int, int], tuple[int, int]] = {}

    def correction(self, executed: int, held: int, pending: int) -> int:
        """What to add to the sum of the cheapest forms of the ops still to run: loads and copies nobody can avoid."""
        left = ~executed
        extra = 0
        for bit, instances, price, may_destroy, saves, must_hold in self.leaves:
            if may_destroy & left:
                if held & instances:
                    for saved, op in saves:
                        if op & left:
                            extra -= saved * (held & instances).bit_count()
                            break
            elif not held & bit and (must_hold & left or pending & bit):
                extra += price
        for ops, free, regrets in self.destroyers:
            count = (ops & left).bit_count() - free
            if count > 0:
                for regret, op in regrets:
                    if op & left:
                        extra += regret
                        count -= 1
                        if not count:
                            break
        return extra

    def inits(self, executed: int, held: int, current: int, ready: list[Variant]) -> tuple[int, int]:
        """Init cycles per acquire that cannot be avoided any more while ``current`` is in force.

        The second number counts also inits that only a dearer form avoids; it goes with the sum of the cheapest forms.
        """
        known = self.init_cache.get((executed, current))
        if known is None:
            known = self._init_bound(executed, current, ready)
            self.init_cache[(executed, current)] = known
        batches = self._batches(executed, held, current)
        if batches:
            extra = batches * self.model.init_prices[self.tables.loading[1]]
            return known[0] + extra, known[1] + extra
        return known

    def _batches(self, executed: int, held: int, current: int) -> int:
        """How often the init of loads must still be switched to: a batch of loads fills at most all slots."""
        ops, load_init = self.tables.loading
        left = ~executed
        if not ops & left:
            return 0
        least = int(current != load_init and not held & self.model.buffered)
        if self.leaves_are_copied:
            return least
        loads = 0
        for instances, destroyed, needed in self.tables.instances:
            if needed & left:
                loads += max(max((destroyed & left).bit_count(), 1) - (held & instances).bit_count(), 0)
        if current == load_init:
            loads -= self.slots - held.bit_count()
        return max(least, -(-loads // self.slots))

    def _init_bound(self, executed: int, current: int, ready: list[Variant]) -> tuple[int, int]:
        left = ~executed
        tables = self.tables
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
                    likely.append((init, min(price, self.tiles * loss)))
        certain = possible = 0
        for value in {w.value for w in ready}:
            cost, keys = tables.chains[value][current]
            cost += tables.prices_of(needed & ~keys)
            certain = max(certain, cost)
            for init, price in likely:
                if not keys >> init & 1:
                    cost += price
            possible = max(possible, cost)
        return certain, possible
