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

    def cycles(self, packs: Sequence[int], buffered: Iterable[int], spilled: int) -> float:
        """A part that packs ``packs``, finds ``buffered`` in buffers and spills so many values."""
        model, costs = self.model, self.problem.costs
        there, packed = mask_of(buffered), mask_of(packs)
        needed = self._needed(packed, there)
        math = absorbed = loaded = destroyed = copied = 0
        inits: set[int] = set()
        for value in sorted(bits(needed), reverse=True):
            if absorbed >> value & 1:
                continue
            price, form = self._cheapest(value, needed & ~packed, there)
            math += price
            absorbed |= form.executes & ~form.result
            loaded |= form.in_dst & there & ~form.destroys
            inits.add(form.init)
            if form.destroys & there:
                loaded |= form.destroys & packed
                inits.add(model.load_init[form.destroys.bit_length() - 1])
            elif form.destroys:
                copied += self._wanted_later(form, destroyed | packed, needed)
                destroyed |= form.destroys
        for value in bits(loaded | packed & there):
            math += model.load_math[value]
            inits.add(model.load_init[value])
        if copied:
            math += copied * costs.copy
            inits.add(model.copy_init)
        init_cycles = sum(model.init_prices[init] for init in inits)
        pack = costs.pack * len(packs)
        busy = modelled_cycles(self.problem, math=math, unpack=0, pack=pack, inits=init_cycles, tiles=self.tiles)
        return busy + spilled * (costs.spill_overhead + costs.pack / self.problem.tiles)

    def _wanted_later(self, form: Variant, kept: int, needed: int) -> bool:
        """Whether the value a form overwrites is wanted afterwards, so that it is copied."""
        later = self.model.users[form.destroys.bit_length() - 1] & needed & self.dependents[form.value]
        return bool(form.destroys & kept or later & ~form.executes)

    def _needed(self, packed: int, there: int) -> int:
        needed = 0
        pending = packed & ~there
        while pending:
            needed |= pending
            operands = 0
            for value in bits(pending):
                operands |= mask_of(self.problem.ops[self.problem.op_of(value)].operands)
            pending = operands & ~(needed | there)
        return needed

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
            compared = price - sum(self._cheapest(inner, 0, there)[0] for inner in bits(absorbs))
            if best is None or compared < best[0]:
                best = (compared, price, form)
        assert best is not None, "every op can run with all its operands in DST or in leaves"
        return best[1], best[2]
