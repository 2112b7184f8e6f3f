"""Phase 0: list scheduling for register pressure (LARS, Rawat et al., SC'18), with the specification's six metrics.

Among the ready ops the one with the lexicographically greatest tuple runs next: release potential, fire potential,
primary affinity, secondary affinity, non-live affinity penalty, critical path. Where values are used many times over
(much reuse inside few statements) the adaptive ordering moves the critical path before the affinities, so that reuse
does not interleave everything. Ties go to source order, so the result is deterministic.

Every metric of a waiting op can only grow while others are scheduled, so a heap with one new entry per growth is
exact and the whole takes O(edges log edges). The penalty of ops on a value with very many users is refreshed only
near its end.
"""

from __future__ import annotations

import heapq
from typing import Literal

from tilewright.dst.copies import destroyed_value
from tilewright.dst.problem import Problem, ResultRule

DESTROYS_SHARED_PENALTY = 100  # the specification's "large penalty": an in-place op on a value others still need
REFRESHED_USERS = 32  # a value with more waiting users does not refresh them one by one
REUSE_FOR_ADAPTIVE = 2.0  # uses per value from which on the critical path goes before the affinities

Priority = tuple[int, int, int, int, int, int]


def lars_order(problem: Problem, ordering: Literal["adaptive", "spec"] = "adaptive") -> list[int]:
    """All ops in a valid order with low register pressure."""
    scheduler = _Scheduler(problem, adaptive=ordering == "adaptive")
    return scheduler.run()


class _Scheduler:
    def __init__(self, problem: Problem, *, adaptive: bool):
        self.problem = problem
        self.operands = [tuple(dict.fromkeys(op.operands)) for op in problem.ops]
        self.users: list[list[int]] = [[] for _ in range(problem.value_count)]
        for op, operands in enumerate(self.operands):
            for value in operands:
                self.users[value].append(op)
        self.waiting = [len(users) for users in self.users]
        for value in set(problem.outputs):
            self.waiting[value] += 1  # the pack uses it last
        self.missing = [sum(not problem.is_leaf(v) for v in operands) for operands in self.operands]
        self.live = [False] * problem.value_count
        self.done = [False] * len(problem.ops)
        self.destroys = [self._destroyed(op) for op in range(len(problem.ops))]
        self.critical = self._critical_path()
        uses = sum(len(operands) for operands in self.operands)
        values = sum(bool(users) for users in self.users)
        self.critical_first = adaptive and values > 0 and uses / values >= REUSE_FOR_ADAPTIVE
        self.heap: list[tuple[Priority, int]] = []

    def _destroyed(self, op: int) -> int | None:
        """The value this op overwrites in every form it has, if there is one."""
        values = {destroyed_value(form) for form in self.problem.ops[op].forms if not (form.absorbs or form.repeats)}
        if any(form.result is ResultRule.FREE for form in self.problem.ops[op].forms) or len(values) != 1:
            return None
        return next(iter(values))

    def _critical_path(self) -> list[int]:
        """Longest distance from each op to the end, in ops."""
        distance = [0] * len(self.problem.ops)
        for op in range(len(self.problem.ops) - 1, -1, -1):
            for user in self.users[self.problem.result_of(op)]:
                distance[op] = max(distance[op], distance[user] + 1)
        return distance

    def run(self) -> list[int]:
        for op, missing in enumerate(self.missing):
            if missing == 0:
                self._push(op)
        order: list[int] = []
        while self.heap:
            _, op = heapq.heappop(self.heap)
            if not self.done[op]:
                order.append(op)
                self._schedule(op)
        return order

    def _push(self, op: int) -> None:
        heapq.heappush(self.heap, (self._priority(op), op))

    def _priority(self, op: int) -> Priority:
        release = primary = secondary = sharing = 0
        for value in self.operands[op]:
            release += self.waiting[value] == 1
            primary += self.live[value]
            secondary += self.waiting[value] < len(self.users[value])
            sharing += self.waiting[value] - 1
        result = self.problem.result_of(op)
        fire = sum(self.missing[user] == 1 for user in self.users[result])
        destroyed = self.destroys[op]
        if destroyed is not None and self.waiting[destroyed] > 1:
            sharing += DESTROYS_SHARED_PENALTY
        critical = self.critical[op]
        if self.critical_first:
            return (-release, -fire, -critical, -primary, -secondary, sharing)
        return (-release, -fire, -primary, -secondary, sharing, -critical)

    def _schedule(self, op: int) -> None:
        self.done[op] = True
        grown: set[int] = set()
        for value in self.operands[op]:
            self.waiting[value] -= 1
            if not self.live[value] or self.waiting[value] <= REFRESHED_USERS:
                grown.update(self.users[value])
            self.live[value] = True
        result = self.problem.result_of(op)
        self.live[result] = True
        for user in self.users[result]:
            self.missing[user] -= 1
            grown.add(user)
            if self.missing[user] == 1:
                grown.update(self.problem.op_of(v) for v in self.operands[user] if not self.problem.is_leaf(v))
        for other in sorted(grown):
            if self.missing[other] == 0 and not self.done[other]:
                self._push(other)
