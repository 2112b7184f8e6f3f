"""What a part would cost, estimated without a search: every op in its cheapest form, loads and copies counted by value.

Good enough to put parts in order before some of them are searched; it is no bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilewright.dst.cost import modelled_cycles
from tilewright.dst.model import Model, Variant, bits, dependents, mask_of
from tilewright.dst.parts import budgets
from tilewright.dst.problem import Problem


class Estimates:
    """Cycles per tile of parts of one problem."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.model = Model(problem, cuts=True)  # with the forms that read results from buffers
        self.dependents = dependents(self.model.users)
        self.tiles = budgets(problem.capacity, problem.tiles)[0][0]
        self.operands = [0] * len(problem.leaves) + [mask_of(op.operands) for op in problem.ops]
        self.known: dict[tuple[int, int, int], tuple[int, Variant]] = {}  # cheapest forms
        self.read = [0] * problem.value_count  # what the choice of a form depends on: values it may find in buffers,
        self.absorbable = [0] * problem.value_count  # and ops it may absorb
        for value in bits(self.model.all_results):
            for form in self.model.of_op[problem.op_of(value)]:
                self.read[value] |= form.in_buffer | form.destroys
                for inner in bits(form.executes & ~form.result):
                    self.absorbable[value] |= 1 << inner
                    self.read[value] |= self.read[inner]

    def cycles(self, packs: Sequence[int], buffered: Iterable[int], spilled: int) -> float:
        """A part that packs ``packs``, finds ``buffered`` in buffers and spills so many values."""
        model, costs = self.model, self.problem.costs
        there, packed = mask_of(buffered), mask_of(packs)
        needed = self._needed(packed, there)
        math = loaded = destroyed = copied = inits = 0
        absorbable, left = needed & ~packed, needed
        while left:
            value = left.bit_length() - 1  # every user of a value comes before it
            price, form = self._cheapest(value, absorbable, there)
            left &= ~form.executes
            math += price
            loaded |= form.in_dst & there & ~form.destroys
            inits |= 1 << form.init
            if form.destroys & there:
                loaded |= form.destroys & packed
                inits |= 1 << model.load_init[form.destroys.bit_length() - 1]
            elif form.destroys:
                copied += self._wanted_later(form, destroyed | packed, needed)
                destroyed |= form.destroys
        for value in bits(loaded | packed & there):
            math += model.load_math[value]
            inits |= 1 << model.load_init[value]
        if copied:
            math += copied * costs.copy
            inits |= 1 << model.copy_init
        init_cycles = sum(model.init_prices[init] for init in bits(inits))
        pack = costs.pack * len(packs)
        busy = modelled_cycles(self.problem, math=math, unpack=0, pack=pack, inits=init_cycles, tiles=self.tiles)
        return busy + spilled * (costs.spill_overhead + costs.pack / self.problem.tiles)

    def _wanted_later(self, form: Variant, kept: int, needed: int) -> bool:
        """Whether the value a form overwrites is wanted afterwards, so that it is copied."""
        later = self.model.users[form.destroys.bit_length() - 1] & needed & self.dependents[form.value]
        return bool(form.destroys & kept or later & ~form.executes)

    def _needed(self, packed: int, there: int) -> int:
        needed, pending = 0, packed & ~there
        while pending:
            value = pending.bit_length() - 1  # every user of a value has a higher number
            needed |= 1 << value
            pending = (pending ^ 1 << value) | self.operands[value] & ~there
        return needed

    def _cheapest(self, value: int, absorbable: int, there: int) -> tuple[int, Variant]:
        key = (value, absorbable & self.absorbable[value], there & self.read[value])
        known = self.known.get(key)
        if known is None:
            known = self.known[key] = self._cheapest_form(*key)
        return known

    def _cheapest_form(self, value: int, absorbable: int, there: int) -> tuple[int, Variant]:
        """The form that costs least, with the load it uses up and without what the ops it absorbs would cost alone."""
        best: tuple[int, int, Variant] | None = None
        for form in self.model.of_op[self.problem.op_of(value)]:
            absorbs = form.executes & ~form.result
            if form.in_buffer & ~there or absorbs & ~absorbable:
                continue
            price = form.math
            if form.destroys & there:
                price += self.model.load_math[form.destroys.bit_length() - 1]
            compared = price - sum(self._cheapest(inner, 0, there)[0] for inner in bits(absorbs))
            if best is None or compared < best[0]:
                best = (compared, price, form)
        assert best is not None, "every op can run with all its operands in DST or in leaves"
        return best[1], best[2]
