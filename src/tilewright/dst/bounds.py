"""Lower bounds on the cost still to come; the search is exact because these never overestimate."""

from __future__ import annotations

from functools import cached_property

from tilewright.dst.model import Model, Variant, bits

COST_SHIFT = 16  # bits below a cycle, for the order of ties


class BoundTables:
    """What the bounds of all slot budgets of one region share, in cycles."""

    def __init__(self, model: Model):
        self.model = model
        self.covering: dict[int, list[Variant]] = {value: [] for value in bits(model.all_results)}
        for variant in model.variants:
            for value in bits(variant.executes):
                self.covering[value].append(variant)
        self.cheapest = {v: min(self.own_cost(w) // w.executes.bit_count() for w in ws) for v, ws in self.covering.items()}
        least_unpack = {v: min(w.unpack // w.executes.bit_count() for w in ws) for v, ws in self.covering.items()}
        self.total = sum(self.cheapest.values())
        self.unpack_total = sum(least_unpack.values())
        self.saved = [sum(self.cheapest[v] for v in bits(w.executes)) for w in model.variants]
        self.unpack_saved = [sum(least_unpack[v] for v in bits(w.executes)) for w in model.variants]
        self.leaves = self._leaves()
        self.destroyers = self._destroyers()

    def own_cost(self, variant: Variant) -> int:
        """Cost of a variant with the load it uses up when it destroys a leaf."""
        if variant.destroys & self.model.buffered:
            load = self.model.load_math[variant.destroys.bit_length() - 1]
            return variant.math + min(load, self.model.copy_math)
        return variant.math

    def _leaves(self) -> list[tuple[int, int, int, int]]:
        """Per leaf: its bit, cycles of a load, ops that may destroy it, ops that cannot run unless it is in DST."""
        model = self.model
        rows: list[tuple[int, int, int, int]] = []
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
                rows.append((bit, model.load_math[leaf], may_destroy, must_hold))
        return rows

    def _destroyers(self) -> list[tuple[int, int]]:
        """(ops that must destroy one value, how many of them need no copy) where there are more."""
        destroyers: dict[int, int] = {}
        for value, variants in self.covering.items():
            common = variants[0].destroys & ~self.model.buffered
            if common and all(w.destroys == common for w in variants):
                destroyers[common] = destroyers.get(common, 0) | 1 << value
        rows = [(ops, 0 if bit & self.model.outputs else 1) for bit, ops in destroyers.items()]
        return [(ops, free) for ops, free in rows if ops.bit_count() > free]

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
    def preferring(self) -> list[tuple[int, int, list[tuple[int, int]]]]:
        """(init, its cycles, ops whose cheapest form needs it with what any other form would cost them more)."""
        rows: dict[int, list[tuple[int, int]]] = {}
        for value, variants in self.covering.items():
            if value in self.fixed_inits or any(w.executes.bit_count() > 1 for w in variants):
                continue
            cheapest = min(variants, key=self.own_cost)
            others = [self.own_cost(w) for w in variants if w.init != cheapest.init]
            if cheapest.init and others:
                rows.setdefault(cheapest.init, []).append((1 << value, min(others) - self.own_cost(cheapest)))
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

    def __init__(self, tables: BoundTables, *, tiles: int, copy_extra: int, copies_count: bool):
        self.tables = tables
        self.model = tables.model
        self.tiles = tiles
        scale = tiles << COST_SHIFT
        self.total = tables.total * scale
        self.saved = [cycles * scale for cycles in tables.saved]
        further = tables.model.instances
        self.leaves = [
            (bit, bit | sum(further.get(bit.bit_length() - 1, ())), cycles * scale, may, must)
            for bit, cycles, may, must in tables.leaves
        ]
        self.destroyers = tables.destroyers if copies_count else []
        self.copy_price = tables.model.copy_math * scale + copy_extra
        self.init_cache: dict[tuple[int, int], tuple[int, int]] = {}

    def correction(self, executed: int, held: int, pending: int) -> int:
        """What to add to the sum of the cheapest forms of the ops still to run: loads and copies nobody can avoid."""
        left = ~executed
        extra = 0
        for bit, instances, price, may_destroy, must_hold in self.leaves:
            if may_destroy & left:
                if held & instances:
                    extra -= price * (held & instances).bit_count()
            elif not held & bit and (must_hold & left or pending & bit):
                extra += price
        for ops, free in self.destroyers:
            count = (ops & left).bit_count() - free
            if count > 0:
                extra += count * self.copy_price
        return extra

    def inits(self, executed: int, held: int, current: int, ready: list[Variant]) -> tuple[int, int]:
        """Init cycles per acquire that cannot be avoided any more while ``current`` is in force.

        The second number counts also inits that only a dearer form avoids; it goes with the sum of the cheapest forms.
        """
        known = self.init_cache.get((executed, current))
        if known is None:
            known = self._init_bound(executed, current, ready)
            self.init_cache[(executed, current)] = known
        ops, load_init = self.tables.loading
        if ops & ~executed and current != load_init and not held & self.model.buffered:
            extra = self.model.init_prices[load_init]
            return known[0] + extra, known[1] + extra
        return known

    def _init_bound(self, executed: int, current: int, ready: list[Variant]) -> tuple[int, int]:
        left = ~executed
        tables = self.tables
        needed = {init: price for init, price, mask in tables.init_masks if init != current and mask & left}
        likely = dict(needed)
        for init, price, ops in tables.preferring:
            if init != current and init not in likely:
                likely[init] = min(price, self.tiles * sum(loss for bit, loss in ops if bit & left))
        certain = possible = 0
        for value in {w.result.bit_length() - 1 for w in ready}:
            cost, keys = tables.chains[value][current]
            certain = max(certain, cost + sum(price for init, price in needed.items() if not keys >> init & 1))
            possible = max(possible, cost + sum(price for init, price in likely.items() if not keys >> init & 1))
        return certain, possible
