"""What a part would cost, estimated without a search: every op in its cheapest form, loads and copies counted by value.

Good enough to put parts in order before some of them are searched; it is no bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tilewright.dst.cost import leaf_of, modelled_cycles
from tilewright.dst.model import bits, mask_of
from tilewright.dst.parts import budgets
from tilewright.dst.problem import Form, Place, Problem


@dataclass(frozen=True, slots=True)
class _Way:
    """A form with its values as masks."""

    math: int
    from_buffers: int  # results that must be in a buffer
    in_dst: int
    destroys: int
    absorbs: int  # results of the ops it runs besides its own
    init: str
    init_cycles: int


class Estimates:
    """Cycles per tile of parts of one problem."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.leaves = (1 << len(problem.leaves)) - 1
        self.loads = [leaf_of(problem, value) for value in range(problem.value_count)]
        self.tiles = budgets(problem.capacity, problem.tiles)[0][0]
        self.ways = [tuple(self._way(form) for form in op.forms) for op in problem.ops]
        self.users = [0] * problem.value_count
        for number, op in enumerate(problem.ops):
            for value in op.operands:
                self.users[value] |= 1 << problem.result_of(number)
        self.followers = [0] * problem.value_count
        for value in range(problem.value_count - 1, -1, -1):
            for user in bits(self.users[value]):
                self.followers[value] |= 1 << user | self.followers[user]

    def _way(self, form: Form) -> _Way:
        return _Way(
            math=form.math_cycles,
            from_buffers=mask_of(o.value for o in form.operands if o.place is Place.BUFFER) & ~self.leaves,
            in_dst=mask_of(o.value for o in form.operands if o.place is Place.DST),
            destroys=0 if form.reuses is None else 1 << form.operands[form.reuses].value,
            absorbs=mask_of(self.problem.result_of(op) for op in form.absorbs),
            init=form.init,
            init_cycles=form.init_cycles,
        )

    def cycles(self, packs: Sequence[int], buffered: Iterable[int], spilled: int) -> float:
        """A part that packs ``packs``, finds ``buffered`` in buffers and spills so many values."""
        problem, costs = self.problem, self.problem.costs
        there = mask_of(buffered)
        packed = mask_of(packs)
        needed = self._needed(packed, there)
        math = absorbed = loaded = destroyed = copied = 0
        inits: dict[str, int] = {}
        for value in sorted(bits(needed), reverse=True):
            if absorbed >> value & 1:
                continue
            price, way = self._cheapest(value, needed & ~packed, there)
            math += price
            absorbed |= way.absorbs
            loaded |= way.in_dst & there & ~way.destroys
            inits[way.init] = way.init_cycles
            if not way.destroys & there:
                copied += self._must_copy(value, way, destroyed | packed, needed)
                destroyed |= way.destroys
            elif way.destroys:
                loaded |= way.destroys & packed
                inits[self.loads[way.destroys.bit_length() - 1].init] = self.loads[way.destroys.bit_length() - 1].init_cycles
        for value in bits(loaded | packed & there):
            math += self.loads[value].load_math_cycles
            inits[self.loads[value].init] = self.loads[value].init_cycles
        math += copied * costs.copy
        if copied:
            inits[costs.copy_init] = costs.copy_init_cycles
        pack = costs.pack * len(packs)
        busy = modelled_cycles(problem, math=math, unpack=0, pack=pack, inits=sum(inits.values()), tiles=self.tiles)
        return busy + spilled * (costs.spill_overhead + costs.pack / problem.tiles)

    def _must_copy(self, value: int, way: _Way, kept: int, needed: int) -> bool:
        """Whether the value an op overwrites is wanted afterwards."""
        if not way.destroys:
            return False
        later = self.users[way.destroys.bit_length() - 1] & needed & self.followers[value]
        return bool(way.destroys & kept or later & ~way.absorbs)

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

    def _cheapest(self, value: int, absorbable: int, there: int) -> tuple[int, _Way]:
        """The way that costs least, with the load it uses up and without what the ops it absorbs would cost alone."""
        best: tuple[int, int, _Way] | None = None
        for way in self.ways[self.problem.op_of(value)]:
            if way.from_buffers & ~there or way.absorbs & ~absorbable:
                continue
            if any(self.users[inner] & ~(way.absorbs | 1 << value) for inner in bits(way.absorbs)):
                continue
            price = way.math
            if way.destroys & there:
                price += self.loads[way.destroys.bit_length() - 1].load_math_cycles
            compared = price - sum(self._cheapest(inner, 0, there)[0] for inner in bits(way.absorbs))
            if best is None or compared < best[0]:
                best = (compared, price, way)
        assert best is not None, "every op can run with all its operands in DST or in leaves"
        return best[1], best[2]
