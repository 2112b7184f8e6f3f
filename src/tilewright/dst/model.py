"""A problem compiled to bit masks for the search: one bit per value, one ``Variant`` per op and form.

An executed op is the bit of its result. A value *waits* while some op that uses it has not run or while it has still
to be packed. Values in buffers (leaves, and spills of earlier parts) may be loaded any number of times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.dst.layouts import spilled_leaf
from tilewright.dst.problem import Form, Place, Problem, ResultRule

FREE, ZEROED, IN_PLACE = 0, 1, 2

# Costs of the search are integers, ``(math * U + inits) << 16 | copies << 8 | init switches``, so that the order of ties is part
# of the cost.
COST_SHIFT = 16
SWITCH_TIE = 1
COPY_TIE = 1 << 8

_RULES = {
    ResultRule.FREE: FREE,
    ResultRule.ZEROED: ZEROED,
    ResultRule.IN_PLACE: IN_PLACE,
    ResultRule.ACCUMULATE: IN_PLACE,
}


@dataclass(slots=True, eq=False)  # not frozen: they are made by the hundred, and freezing makes that five times slower
class Variant:
    """One op in one form, with everything the search needs as masks over values."""

    index: int  # position in Model.variants
    op: int
    form: int
    executes: int  # results of the op and of all ops the form absorbs
    result: int
    value: int  # number of the result
    needs: int  # results of other ops that must exist
    in_dst: int
    in_buffer: int
    destroys: int
    rule: int
    touched: tuple[int, ...]  # value numbers whose last use this may be
    math: int
    unpack: int
    init: int  # number of the init key, 0 for none
    init_cycles: int


def bits(mask: int) -> Iterator[int]:
    """The positions of the set bits, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


class Model:
    """The masks of one region: ``buffered`` values can be loaded, ``outputs`` must end in DST."""

    def __init__(
        self,
        problem: Problem,
        outputs: Sequence[int] | None = None,
        buffered: Sequence[int] | None = None,
        *,
        cuts: bool = False,
    ):
        self.problem = problem
        self.cuts = cuts  # results may get into buffers on the way
        self.output_list = tuple(problem.outputs if outputs is None else outputs)
        self.outputs = mask_of(self.output_list)
        leaves = range(len(problem.leaves)) if buffered is None else buffered
        self.buffered = mask_of(leaves)
        self.ops = self._needed_ops()
        self.all_results = mask_of(problem.result_of(op) for op in self.ops)
        self.users = [0] * problem.value_count  # value -> results of the ops that use it
        for op in self.ops:
            for value in problem.ops[op].operands:
                self.users[value] |= 1 << problem.result_of(op)
        self.dst_users = [0] * problem.value_count  # value -> results of the ops that can use it from DST
        self.init_names: dict[str, int] = {"": 0}
        self.init_prices: list[int] = [0]
        loads = [*problem.leaves, *[spilled_leaf(problem)] * len(problem.ops)]
        self.load_math = [leaf.load_math_cycles for leaf in loads]
        self.load_unpack = [leaf.load_unpack_cycles for leaf in loads]
        self.load_init = [self._init(leaf.init, leaf.init_cycles) for leaf in loads]
        costs = problem.costs
        self.copy_math = costs.copy
        self.copy_init = self._init(costs.copy_init, costs.copy_init_cycles)
        self.variants: list[Variant] = []
        for op in self.ops:
            self._add_variants(op)
        self.needing: list[list[Variant]] = [[] for _ in range(problem.value_count)]
        self.of_op: dict[int, list[Variant]] = {op: [] for op in self.ops}
        for variant in self.variants:
            self.of_op[variant.op].append(variant)
            for value in bits(variant.needs):
                self.needing[value].append(variant)
            for value in bits(variant.in_dst):
                self.dst_users[value] |= variant.executes
        self.has_inits = len(self.init_prices) > 1
        self._add_instances()
        self.zeroed_results = mask_of(v.result.bit_length() - 1 for v in self.variants if v.rule == ZEROED)

    def _add_instances(self) -> None:
        """Further instances of leaves that several ops may destroy: loaded together they share one init.

        An instance is a bit after those of the values; the highest one in DST is destroyed first.
        """
        self.instances: dict[int, tuple[int, ...]] = {}  # leaf -> bits of its further instances, ascending
        self.leaf_of_instance: dict[int, int] = {}  # position of the bit -> leaf
        self.all_instances = 0
        destroyers: dict[int, set[int]] = {}
        for variant in self.variants:
            if variant.destroys & self.buffered:
                destroyers.setdefault(variant.destroys.bit_length() - 1, set()).add(variant.op)
        for leaf, ops in destroyers.items():
            destroying = mask_of(self.problem.result_of(op) for op in ops)
            also_kept = self.outputs >> leaf & 1 or self.dst_users[leaf] & ~destroying
            count = min(len(ops) + bool(also_kept), self.problem.capacity) - 1
            first = self.problem.value_count + len(self.leaf_of_instance)
            self.instances[leaf] = tuple(1 << first + i for i in range(count))
            self.leaf_of_instance.update((first + i, leaf) for i in range(count))
            self.all_instances |= sum(self.instances[leaf])

    @cached_property
    def never_beaten(self) -> list[bool]:
        """Per variant: no other way to run its op costs less, whatever is in DST, and nobody may absorb it."""
        absorbable = 0
        for variant in self.variants:
            if variant.executes.bit_count() > 1:
                absorbable |= variant.executes
        least = {op: min((w.math for w in variants), default=0) for op, variants in self.of_op.items()}
        return [not w.executes & absorbable and w.math == least[w.op] for w in self.variants]

    def leaves_worth_a_copy(self, tiles: int, *, inits: bool) -> int:
        """Leaves whose second instance may be cheaper by a copy in DST than by a load and its init."""
        prices = self.init_prices if inits else [0]
        worth = 0
        for leaf in bits(self.buffered):
            saved = (prices[self.load_init[leaf]] if inits else 0) + max(prices)
            if (self.copy_math - self.load_math[leaf]) * tiles < saved:
                worth |= 1 << leaf
        return worth

    def _needed_ops(self) -> list[int]:
        """Ops an output depends on, in source order; what nobody packs is not computed."""
        problem = self.problem
        wanted: set[int] = set()
        pending = [value for value in self.output_list if not self.buffered >> value & 1]
        while pending:
            op = problem.op_of(pending.pop())
            if op in wanted:
                continue
            wanted.add(op)
            pending.extend(value for value in problem.ops[op].operands if not self.buffered >> value & 1)
        return sorted(wanted)

    def _init(self, key: str, cycles: int) -> int:
        number = self.init_names.setdefault(key, len(self.init_names))
        if number == len(self.init_prices):
            self.init_prices.append(cycles)
        return number

    def _add_variants(self, op: int) -> None:
        for number, form in enumerate(self.problem.ops[op].forms):
            if form.absorbs and not self._may_absorb(op, form):
                continue
            variant = self._variant(op, number, form)
            if self.cuts or not variant.in_buffer & ~self.buffered:
                self.variants.append(variant)

    def _may_absorb(self, op: int, form: Form) -> bool:
        """An absorbed op must be ours to compute, feed only this op, and not be an output."""
        results = [self.problem.result_of(absorbed) for absorbed in form.absorbs]
        inside = mask_of(results) | 1 << self.problem.result_of(op)
        wanted = self.all_results & ~self.outputs
        return all(wanted >> value & 1 and not self.users[value] & ~inside for value in results)

    def _variant(self, op: int, number: int, form: Form) -> Variant:
        problem = self.problem
        in_dst = in_buffer = 0
        for operand in form.operands:
            if operand.place is Place.DST:
                in_dst |= 1 << operand.value
            else:
                in_buffer |= 1 << operand.value
        first = len(problem.leaves)
        inner = (*form.absorbs, op)
        touched = problem.ops[op].operands
        if form.absorbs:
            touched = tuple(value for i in inner for value in problem.ops[i].operands)
        reused = None if form.reuses is None else form.operands[form.reuses].value
        return Variant(
            index=len(self.variants),
            op=op,
            form=number,
            executes=mask_of(first + i for i in inner),
            result=1 << first + op,
            value=first + op,
            # A repeated op comes first although nobody reads its result here: bounds may go by the order of the ops.
            needs=(in_dst | in_buffer | mask_of(first + i for i in form.repeats)) & ~self.buffered,
            in_dst=in_dst,
            in_buffer=in_buffer,
            destroys=0 if reused is None else 1 << reused,
            rule=_RULES[form.result],
            touched=tuple(dict.fromkeys(touched)),
            math=form.math_cycles,
            unpack=form.unpack_cycles,
            init=self._init(form.init, form.init_cycles),
            init_cycles=form.init_cycles,
        )


def dependents(users: Sequence[int]) -> list[int]:
    """Per value, the results that depend on it; ``users`` are the results of the ops that use it."""
    found = [0] * len(users)
    for value in range(len(users) - 1, -1, -1):
        for user in bits(users[value]):
            found[value] |= 1 << user | found[user]
    return found


def mask_of(values: Iterable[int]) -> int:
    mask = 0
    for value in values:
        mask |= 1 << value
    return mask


# Sets of executed ops -------------------------------------------------------------------------------------------------


class ExecutedSets:
    """Known sets, from the empty one on; a set is the mask of the results of its ops."""

    def __init__(self, model: Model):
        self.model = model
        self.ready: dict[int, list[Variant]] = {0: [w for w in model.variants if not w.needs]}
        self.waiting: dict[int, int] = {0: 0}  # results an op to come uses, or that are packed
        self._enabled = [[w for value in bits(v.executes) for w in model.needing[value]] for v in model.variants]
        kept = model.buffered | model.outputs
        # Per variant: results that may die with it, and the ops that use them.
        self.dying_uses = [
            [(1 << value, model.users[value]) for value in variant.touched if not kept >> value & 1]
            for variant in model.variants
        ]

    def after(self, executed: int, variant: Variant) -> int:
        """The set with ``variant`` run after a known set."""
        after = executed | variant.executes
        if after in self.ready:
            return after
        left = ~after
        ready = [other for other in self.ready[executed] if not other.executes & after]
        for other in self._enabled[variant.index]:
            if not (other.needs & left or other.executes & after):
                ready.append(other)
        self.ready[after] = ready
        waiting = self.waiting[executed] & ~self.dying(variant, after)
        if self.model.users[variant.value] & left or variant.result & self.model.outputs:
            waiting |= variant.result
        self.waiting[after] = waiting
        return after

    def dying(self, variant: Variant, after: int) -> int:
        """Results nobody uses any more once ``after`` is executed, among those ``variant`` uses."""
        left = ~after
        dying = 0
        for bit, users in self.dying_uses[variant.index]:
            if not users & left:
                dying |= bit
        return dying
