"""An oracle by constraint programming for bodies whose ops run from DST only (unary in place, binary to a free slot).

Positions of the ops are variables; everything else follows from pairs "a before b". A leaf is loaded for each use and takes
a slot at that op only. A result takes the slot of a leaf or of an operand that dies, else one more; an in-place op on a
value that is wanted later takes one more for the copy. Nothing of the library is used here but the problem itself.
"""

from __future__ import annotations

from ortools.sat.python import cp_model

from tilewright.dst.problem import Problem


class Oracle:
    def __init__(self, problem: Problem):
        self.problem = problem
        self.model = cp_model.CpModel()
        self.count = len(problem.ops)
        self.leaves = len(problem.leaves)
        self.uses: dict[int, list[int]] = {}
        for op, node in enumerate(problem.ops):
            for value in set(node.operands):
                self.uses.setdefault(value, []).append(op)
        self.slots = self.model.NewIntVar(1, 4 * self.count + self.leaves, "slots")
        self._order()
        self.copies = [self._pressure(op) for op in range(self.count)]

    def _order(self) -> None:
        model, count = self.model, self.count
        self.position = [model.NewIntVar(0, count - 1, f"p{op}") for op in range(count)]
        model.AddAllDifferent(self.position)
        self.before: dict[tuple[int, int], cp_model.IntVar] = {}
        for a in range(count):
            for b in range(a + 1, count):
                first = model.NewBoolVar(f"{a}<{b}")
                model.Add(self.position[a] < self.position[b]).OnlyEnforceIf(first)
                model.Add(self.position[a] > self.position[b]).OnlyEnforceIf(first.Not())
                self.before[a, b] = first
                self.before[b, a] = first.Not()
        for op, node in enumerate(self.problem.ops):
            for value in node.operands:
                if value >= self.leaves:
                    model.Add(self.before[value - self.leaves, op] == 1)

    def _wanted_after(self, value: int, op: int):
        """Whether ``value`` is used or packed after ``op``: a constant or a variable that is at least that."""
        if value in self.problem.outputs:
            return 1
        later = [self.before[op, user] for user in self.uses.get(value, []) if user != op]
        if not later:
            return 0
        wanted = self.model.NewBoolVar(f"after{value},{op}")
        for literal in later:
            self.model.AddImplication(literal, wanted)
        return wanted

    def _pressure(self, op: int):
        """Constrain the slots at ``op``; the answer is its number of copies."""
        model, operands = self.model, set(self.problem.ops[op].operands)
        terms: list = [1 for value in operands]
        for value in range(self.leaves, self.leaves + self.count):
            definer = value - self.leaves
            if definer == op or value in operands:
                continue
            if value in self.problem.outputs:
                terms.append(self.before[definer, op])
                continue
            users = [user for user in self.uses.get(value, []) if user != op]
            if users:
                live = model.NewBoolVar(f"live{value},{op}")
                for user in users:
                    model.AddBoolOr([self.before[definer, op].Not(), self.before[op, user].Not(), live])
                terms.append(live)
        copies = 0
        if len(self.problem.ops[op].operands) == 1:
            (value,) = operands
            if value >= self.leaves:
                copies = self._wanted_after(value, op)
                terms.append(copies)
        elif all(value >= self.leaves for value in operands):
            extra = model.NewBoolVar(f"extra{op}")
            wanted = [self._wanted_after(value, op) for value in operands]
            model.Add(extra >= sum(wanted) - len(operands) + 1)
            terms.append(extra)
        model.Add(sum(terms) <= self.slots)
        return copies

    def _solve(self) -> int | None:
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.max_time_in_seconds = 120
        status = solver.Solve(self.model)
        if status == cp_model.INFEASIBLE:
            return None
        assert status == cp_model.OPTIMAL, "the oracle ran out of time"
        return round(solver.ObjectiveValue())


def fewest_slots(problem: Problem) -> int:
    oracle = Oracle(problem)
    oracle.model.Add(oracle.slots >= len(set(problem.outputs)))
    oracle.model.Minimize(oracle.slots)
    answer = oracle._solve()
    assert answer is not None
    return answer


def fewest_copies(problem: Problem, slots: int) -> int | None:
    oracle = Oracle(problem)
    oracle.model.Add(oracle.slots == slots)
    oracle.model.Minimize(sum(oracle.copies))
    return oracle._solve()
