"""What a part would cost, estimated without a search: every op in its cheapest form, loads and copies counted by value.

Good enough to put parts in order before some of them are searched; it is no bound.
"""

from __future__ import annotations

from typing import NamedTuple

from tilewright.dst.cost import modelled_cycles
from tilewright.dst.model import Model, Variant, bits, dependents, mask_of
from tilewright.dst.parts import budgets
from tilewright.dst.problem import Problem


class _Choice(NamedTuple):
    """The form an op would take, as masks."""

    price: int  # cycles, with the load it uses up
    executes: int
    reads: int  # operands in DST that it leaves alone
    init: int
    destroys: int
    load_init: int  # of what it destroys
    later: int  # ops that use what it destroys, and come after it


class Estimates:
    """Cycles per tile of parts of one problem."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.model = Model(problem, cuts=True)  # with the forms that read results from buffers
        self.dependents = dependents(self.model.users)
        self.tiles = budgets(problem.capacity, problem.tiles)[0][0]
        self.operands = [0] * len(problem.leaves) + [mask_of(op.operands) for op in problem.ops]
        self.choices: dict[tuple[int, int, int], _Choice] = {}
        self.absorbable = [0] * problem.value_count  # what a choice depends on: ops the form may absorb,
        self.readable = [0] * problem.value_count  # and values it may find in buffers
        for value in bits(self.model.all_results):
            for form in self.model.of_op[problem.op_of(value)]:
                self.readable[value] |= form.in_buffer | form.destroys
                for inner in bits(form.executes & ~form.result):
                    self.absorbable[value] |= 1 << inner
                    self.readable[value] |= self.readable[inner]

    def cycles(self, packed: int, there: int, packs: int, spilled: int) -> float:
        """A part that packs the values ``packed`` (``packs`` tiles, some may be packed twice), finds ``there`` in buffers and
        spills so many values.
        """
        model, costs = self.model, self.problem.costs
        needed = self._needed(packed, there)
        math = loaded = destroyed = copied = inits = 0
        absorbable, left = needed & ~packed, needed
        while left:
            value = left.bit_length() - 1  # every user of a value comes before it
            price, executes, reads, init, destroys, load_init, later = self._choice(value, absorbable, there)
            left &= ~executes
            math += price
            loaded |= reads & there
            inits |= init
            if destroys & there:
                loaded |= destroys & packed
                inits |= load_init
            elif destroys:
                if destroys & (destroyed | packed) or later & needed:  # wanted afterwards
                    copied += 1
                destroyed |= destroys
        for value in bits(loaded | packed & there):
            math += model.load_math[value]
            inits |= 1 << model.load_init[value]
        if copied:
            math += copied * costs.copy
            inits |= 1 << model.copy_init
        init_cycles = sum(model.init_prices[init] for init in bits(inits))
        pack = costs.pack * packs
        busy = modelled_cycles(self.problem, math=math, unpack=0, pack=pack, inits=init_cycles, tiles=self.tiles)
        return busy + spilled * (costs.spill_overhead + costs.pack / self.problem.tiles)

    def reads(self, packed: int, there: int) -> int:
        """Values that a part which packs ``packed`` reads from the buffers ``there``."""
        found = packed
        for value in bits(self._needed(packed, there)):
            found |= self.operands[value]
        return found & there

    def _needed(self, packed: int, there: int) -> int:
        needed, pending = 0, packed & ~there
        while pending:
            value = pending.bit_length() - 1
            needed |= 1 << value
            pending = (pending ^ 1 << value) | self.operands[value] & ~there
        return needed

    def _choice(self, value: int, absorbable: int, there: int) -> _Choice:
        key = (value, absorbable & self.absorbable[value], there & self.readable[value])
        known = self.choices.get(key)
        if known is None:
            price, form = self._cheapest(*key)
            destroyed = form.destroys.bit_length() - 1
            known = self.choices[key] = _Choice(
                price=price,
                executes=form.executes,
                reads=form.in_dst & ~form.destroys,
                init=1 << form.init,
                destroys=form.destroys,
                load_init=1 << self.model.load_init[destroyed] if form.destroys else 0,
                later=self.model.users[destroyed] & self.dependents[form.value] & ~form.executes if form.destroys else 0,
            )
        return known

    def _cheapest(self, value: int, absorbable: int, there: int) -> tuple[int, Variant]:
        """The form that costs least, with the load it uses up and without what the ops it absorbs would cost alone."""
        best: tuple[int, int, Variant] | None = None
        for form in self.model.of_op[self.problem.op_of(value)]:
            absorbs = form.executes & ~form.result
            if form.in_buffer & ~there or absorbs & ~absorbable:
                continue
            price = form.math
            if form.destroys & there:
                price += self.model.load_math[form.destroys.bit_length() - 1]
            compared = price - sum(self._choice(inner, 0, there).price for inner in bits(absorbs))
            if best is None or compared < best[0]:
                best = (compared, price, form)
        assert best is not None, "every op can run with all its operands in DST or in leaves"
        return best[1], best[2]
