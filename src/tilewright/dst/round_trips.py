"""Values that go through a buffer by choice: a round trip can cost less than what a value needs in DST.

In a buffer a value can be loaded any number of times (14 cycles against 133 for a copy in DST) and the matrix unit can read it
(102 cycles for a 16-bit product against 756 of two tiles in DST). The packer works beside the math thread; what is paid is the
handshake, a load, and the pack of the last sub-block, which nothing hides.

Values are added to the set that travels one by one, each time the one that saves most, until none saves anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.dst.allocation import Allocation, Copy, Part, Plan
from tilewright.dst.model import Model
from tilewright.dst.optimizer import Effort, Optimizer
from tilewright.dst.parts import part_of
from tilewright.dst.problem import Place, Problem

TRIP_EFFORT = Effort(work=3_000, init_work=400, least_init_work=60, beam_work=120)
TRIES = 2  # sets tried per round, best bound first


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


def _candidates(problem: Problem, plan: Plan) -> list[int]:
    """Results the plan copies, and results that a form could read from a buffer."""
    steps = [step for part in plan.parts for step in part.allocation.steps]
    found = {step.value for step in steps if isinstance(step, Copy) and not problem.is_leaf(step.value)}
    needed = {op for part in plan.parts for op in part.ops}
    for op in needed:
        for form in problem.ops[op].forms:
            found.update(o.value for o in form.operands if o.place is Place.BUFFER and not problem.is_leaf(o.value))
    return sorted(found)


def _sections(problem: Problem, trips: tuple[int, ...]) -> list[_Section] | None:
    """A part for every depth of travelling values below one another, and one for the rest; None if nothing is left for that."""
    depth: dict[int, int] = {}
    for value in trips:
        depth[value] = 1 + max((depth[below] for below in _below(problem, value, set(depth))), default=-1)
    sections: list[_Section] = []
    buffered = list(range(len(problem.leaves)))
    left = list(problem.outputs)
    for level in range(max(depth.values()) + 1):
        spills = tuple(value for value in trips if depth[value] == level)
        outputs = tuple(value for value in left if value in spills)
        left = [value for value in left if value not in spills]
        sections.append(_Section(spills, outputs, tuple(buffered)))
        buffered += spills
    if not left:
        return None
    return [*sections, _Section((), tuple(left), tuple(buffered))]


def _below(problem: Problem, value: int, wanted: set[int]) -> set[int]:
    """The values of ``wanted`` that ``value`` is computed from."""
    found: set[int] = set()
    seen: set[int] = set()
    pending = list(problem.ops[problem.op_of(value)].operands)
    while pending:
        current = pending.pop()
        if problem.is_leaf(current) or current in seen:
            continue
        seen.add(current)
        if current in wanted:
            found.add(current)
        pending.extend(problem.ops[problem.op_of(current)].operands)
    return found


class _Travel:
    """Sets of values that travel; parts that several sets have in common are bounded and optimized once."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.floors: dict[_Section, float] = {}
        self.allocations: dict[_Section, Allocation | None] = {}

    def parts_below(self, plan: Plan) -> tuple[Part, ...] | None:
        problem = self.problem
        candidates = _candidates(problem, plan)
        best: tuple[Part, ...] | None = None
        cost = exposed_cycles(problem, plan.parts)
        chosen: tuple[int, ...] = ()
        floor = self._floor([_Section((), problem.outputs, tuple(range(len(problem.leaves))))]) if candidates else 0.0
        while candidates and len(chosen) < problem.round_trips:
            found: tuple[int, ...] | None = None
            for bound, trips in self._promising(chosen, candidates)[:TRIES]:
                # Bounds leave out what only a search finds, for the whole as for the parts: they are compared with one another.
                if bound >= min(cost, floor):
                    break
                parts = self._parts(trips)
                if parts is not None and exposed_cycles(problem, parts) < cost - 1e-6:
                    best, cost, found = parts, exposed_cycles(problem, parts), trips
            if found is None:
                break
            chosen, floor = found, self._floor(_sections(problem, found) or [])
            candidates = [value for value in candidates if value not in chosen]
        return best

    def _promising(self, chosen: tuple[int, ...], candidates: list[int]) -> list[tuple[float, tuple[int, ...]]]:
        """Sets with one value more, by a bound on what they cost."""
        rows: list[tuple[float, tuple[int, ...]]] = []
        for value in candidates:
            trips = tuple(sorted((*chosen, value)))
            sections = _sections(self.problem, trips)
            if sections is not None:
                rows.append((self._floor(sections), trips))
        return sorted(rows)

    def _floor(self, sections: Sequence[_Section]) -> float:
        """A bound on the cycles per tile of these parts; a tile of every spilled value is waited for at least."""
        for section in sections:
            if section not in self.floors:
                waits = self.problem.costs.pack * len(section.spills) / self.problem.tiles
                self.floors[section] = self._optimizer(section).floor() + waits
        return sum(self.floors[section] for section in sections)

    def _optimizer(self, section: _Section) -> Optimizer:
        model = Model(self.problem, (*section.spills, *section.outputs), section.buffered)
        return Optimizer(model, effort=TRIP_EFFORT, spilled=len(section.spills))

    def _parts(self, trips: tuple[int, ...]) -> tuple[Part, ...] | None:
        """The cheapest part for every section; None if one does not fit."""
        parts: list[Part] = []
        for section in _sections(self.problem, trips) or ():
            if section not in self.allocations:
                self.allocations[section] = self._optimizer(section).run()
            allocation = self.allocations[section]
            if allocation is None:
                return None
            parts.append(part_of(self.problem, allocation, (*section.spills, *section.outputs), len(section.spills)))
        return tuple(parts)
