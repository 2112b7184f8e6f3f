"""Lower bounds on the cost still to come; the search is exact because these never overestimate."""

from __future__ import annotations

from functools import cached_property

from tilewright.dst.model import Model, Variant, bits, dependents

COST_SHIFT = 16  # bits below a cycle, for the order of ties
SWITCH_TIE = 1
COPY_TIE = 1 << 8

LeafRow = tuple[int, int, int, list[tuple[int, int]], int]  # see ``BoundTables._leaves``


def whole_cycles(cost: int) -> int:
    """A scaled cost without the bits for ties."""
    return cost >> COST_SHIFT << COST_SHIFT


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
        others = self.model.users[bit.bit_length() - 1] & ~op & self.dependents[value]
        return not others or any(w.executes & others for w in self.covering[value])

    @cached_property
    def dependents(self) -> list[int]:
        return dependents(self.model.users)

    def excess(self, variant: Variant) -> int:
        """What a variant costs beyond the cheapest way to run its ops."""
        return self.own_cost(variant) - self.saved[variant.index]


class Bounds:
    """The bounds of one slot budget, in scaled units. ``copies_count`` is false where a copy can be avoided otherwise."""

    def __init__(self, tables: BoundTables, *, tiles: int, copies_count: bool):
        self.tables = tables
        self.model = tables.model
        self.tiles = tiles
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
            (ops, free, [(regret * scale + (COPY_TIE if regret == copy_price else 0), op) for regret, op in regrets])
            for ops, free, regrets in (tables.destroyers if copies_count else [])
        ]

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
