"""Values that go through a buffer by choice: a round trip can cost less than what a value needs in DST.

In a buffer a value can be loaded any number of times (14 cycles against 133 for a copy in DST) and the matrix unit can read it
(102 cycles for a 16-bit product against 756 of two tiles in DST). The packer works beside the math thread; what is paid is the
handshake, a load, and the pack of the last sub-block, which nothing hides.

How far such costs can be trusted is the caller's to say: ``Problem.round_trip_saving`` is what a round trip has to save.

Values are added to the set that travels one by one, each time the one that saves most by an estimate, until none saves
anything; what is taken is searched and compared with the plan without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.dst.allocation import Allocation, Copy, Part, Plan
from tilewright.dst.estimate import Estimates
from tilewright.dst.model import Model
from tilewright.dst.optimizer import Effort, Optimizer
from tilewright.dst.parts import part_of
from tilewright.dst.problem import Place, Problem

CLOSE = 1.05  # a set whose estimate is further above the best one's is not searched
TRIP_EFFORT = Effort(work=3_000, init_work=400, least_init_work=60, beam_work=120)


@dataclass(frozen=True)
class _Section:
    """One part to be: what it packs for later parts, what it packs for good, and what it finds in buffers."""

    spills: tuple[int, ...]
    outputs: tuple[int, ...]
    buffered: tuple[int, ...]


def cheaper_round_trips(problem: Problem, plan: Plan) -> tuple[Part, ...] | None:
    """Parts that cost less than ``plan``, or None."""
    return _Travel(problem).parts_below(plan)


def exposed_cycles(problem: Problem, parts: Sequence[Part]) -> float:
    """Cycles per tile of all parts, and the packing of spilled tiles that the next part has to wait for."""
    total = 0.0
    for part in parts:
        waits = problem.costs.pack * part.spilled * part.allocation.tiles_per_acquire / problem.tiles
        total += part.allocation.cycles_per_tile + waits
    return total


def is_worth_it(problem: Problem, parts: Sequence[Part], plan: Plan) -> bool:
    """Whether ``parts`` save as much as the problem asks for.

    Any saving counts against a plan that is split anyway, and against one with a copy that costs more than computing the value
    again would: there DST is no place for the value, and code that does not share it at all would be faster.
    """
    if len(plan.parts) > 1 or any(_is_cheaper_again(problem, value) for value in _copied(problem, plan)):
        return True
    return exposed_cycles(problem, parts) <= (1 - problem.round_trip_saving) * exposed_cycles(problem, plan.parts)


def _copied(problem: Problem, plan: Plan) -> set[int]:
    """Results the plan copies in DST."""
    steps = [step for part in plan.parts for step in part.allocation.steps]
    return {step.value for step in steps if isinstance(step, Copy) and not problem.is_leaf(step.value)}


def _is_cheaper_again(problem: Problem, value: int) -> bool:
    """Whether computing a result again from leaves costs less than a copy of it."""
    for form in problem.ops[problem.op_of(value)].forms:
        if all(problem.is_leaf(operand.value) for operand in form.operands):
            loads = sum(problem.leaves[o.value].load_math_cycles for o in form.operands if o.place is Place.DST)
            if form.math_cycles + loads < problem.costs.copy:
                return True
    return False


def _candidates(problem: Problem, plan: Plan) -> list[int]:
    """Results the plan copies, and results that a form could read from a buffer."""
    found = _copied(problem, plan)
    needed = {op for part in plan.parts for op in part.ops}
    for op in needed:
        for form in problem.ops[op].forms:
            found.update(o.value for o in form.operands if o.place is Place.BUFFER and not problem.is_leaf(o.value))
    return sorted(found)


class _Travel:
    """Sets of values that travel; parts that several sets have in common are estimated and optimized once."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.estimates = Estimates(problem)
        self.estimated: dict[_Section, float] = {}
        self.optimizers: dict[_Section, Optimizer] = {}
        self.allocations: dict[_Section, Allocation | None] = {}

    def parts_below(self, plan: Plan) -> tuple[Part, ...] | None:
        """The sets are estimated as they grow; from the last on down they are searched as long as a smaller one is better."""
        best: tuple[Part, ...] | None = None
        cost = exposed_cycles(self.problem, plan.parts) - 1e-6
        grown = self._growing(_candidates(self.problem, plan))
        for estimate, trips in reversed(grown):
            if best is not None and estimate > CLOSE * grown[-1][0]:
                break
            sections = self._sections(trips) or []
            if sum(self._least(section) for section in sections) >= cost:
                if best is not None:
                    break
                continue
            parts = self._parts(sections)
            if parts is None:
                continue
            cycles = exposed_cycles(self.problem, parts)
            if cycles < cost:
                best, cost = parts, cycles
            elif best is not None:
                break
        return best

    def _growing(self, candidates: list[int]) -> list[tuple[float, tuple[int, ...]]]:
        """Sets with one value more each, the one that saves most, as long as one does; with their estimates."""
        problem = self.problem
        grown: list[tuple[float, tuple[int, ...]]] = []
        chosen: tuple[int, ...] = ()
        least = self._estimate([_Section((), problem.outputs, tuple(range(len(problem.leaves))))]) if candidates else 0.0
        while len(chosen) < min(problem.round_trips, len(candidates)):
            estimate, chosen = self._best_with_one_more(chosen, candidates)
            if estimate >= least:
                break
            least = estimate
            grown.append((estimate, chosen))
        return grown

    def _sections(self, trips: tuple[int, ...]) -> list[_Section] | None:
        """A part for every depth of travelling values below one another, and one for the rest; None if nothing is left for it."""
        dependents = self.estimates.dependents
        depth: dict[int, int] = {}
        for value in trips:
            depth[value] = 1 + max((level for below, level in depth.items() if dependents[below] >> value & 1), default=-1)
        sections: list[_Section] = []
        buffered = list(range(len(self.problem.leaves)))
        left = list(self.problem.outputs)
        for level in range(max(depth.values()) + 1):
            spills = tuple(value for value in trips if depth[value] == level)
            outputs = tuple(value for value in left if value in spills)
            left = [value for value in left if value not in spills]
            sections.append(_Section(spills, outputs, tuple(buffered)))
            buffered += spills
        return [*sections, _Section((), tuple(left), tuple(buffered))] if left else None

    def _best_with_one_more(self, chosen: tuple[int, ...], candidates: list[int]) -> tuple[float, tuple[int, ...]]:
        rows: list[tuple[float, tuple[int, ...]]] = []
        for value in candidates:
            if value not in chosen:
                trips = tuple(sorted((*chosen, value)))
                sections = self._sections(trips)
                rows.append((self._estimate(sections) if sections is not None else float("inf"), trips))
        return min(rows)

    def _estimate(self, sections: Sequence[_Section]) -> float:
        for section in sections:
            if section not in self.estimated:
                wanted = (*section.spills, *section.outputs)
                self.estimated[section] = self.estimates.cycles(wanted, section.buffered, len(section.spills))
        return sum(self.estimated[section] for section in sections)

    def _optimizer(self, section: _Section) -> Optimizer:
        known = self.optimizers.get(section)
        if known is None:
            model = Model(self.problem, (*section.spills, *section.outputs), section.buffered)
            known = Optimizer(model, effort=TRIP_EFFORT, spilled=len(section.spills))
            self.optimizers[section] = known
        return known

    def _least(self, section: _Section) -> float:
        """Exposed cycles of a section at least."""
        waits = self.problem.costs.pack * len(section.spills) / self.problem.tiles
        return self._optimizer(section).least_cycles + waits

    def _parts(self, sections: Sequence[_Section]) -> tuple[Part, ...] | None:
        """The cheapest part for every section; None if one does not fit."""
        parts: list[Part] = []
        for section in sections:
            if section not in self.allocations:
                self.allocations[section] = self._optimizer(section).run()
            allocation = self.allocations[section]
            if allocation is None:
                return None
            parts.append(part_of(self.problem, allocation, (*section.spills, *section.outputs), len(section.spills)))
        return tuple(parts)
