"""Exact search: A* over the states a tile can be in (``moves.py``), for one slot budget, with the bounds of
``bounds.py``.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from tilewright.dst.bounds import COST_SHIFT, Bounds, BoundTables
from tilewright.dst.model import Model, bits
from tilewright.dst.moves import COPY_TIE, Move, MoveGenerator, Options, State, Successor

Entry = tuple[int, int, int, int, int, int, State]  # estimate, -progress, node, cost, paid for inits, remaining, state


@dataclass(frozen=True)
class Found:
    moves: tuple[Move, ...]
    cost: int  # scaled


class Exhausted(Exception):
    """The work limit was reached before an answer was proved."""


class Search:
    """``upper_bound``: give up on answers that cost as much. ``math_floor``: proved scaled cost without inits."""

    def __init__(
        self,
        model: Model,
        options: Options,
        upper_bound: int | None = None,
        math_floor: int = 0,
        tables: BoundTables | None = None,
    ):
        self.model = model
        self.options = options
        self.generator = MoveGenerator(model, options)
        avoidable = options.recompute or options.cuts
        self.bounds = Bounds(
            tables or BoundTables(model), tiles=options.tiles, copy_extra=COPY_TIE, copies_count=not avoidable
        )
        self.upper_bound = upper_bound
        self.math_floor = math_floor
        self.parents: list[tuple[int, Move | None]] = [(-1, None)]
        self.work = 0  # states and successors looked at
        self.eager = not (options.inits or avoidable)
        self.runs_at_once = self._never_beaten() if self.eager else []

    def _never_beaten(self) -> list[bool]:
        """Per variant: no other way to run its op costs less, whatever is in DST, and nobody may absorb it."""
        absorbable = 0
        for variant in self.model.variants:
            if variant.executes.bit_count() > 1:
                absorbable |= variant.executes
        least = {op: min((w.math for w in variants), default=0) for op, variants in self.model.of_op.items()}
        return [not w.executes & absorbable and w.math == least[w.op] for w in self.model.variants]

    def run(self) -> Found | None:
        """The cheapest sequence of moves, or None if no sequence fits (below the upper bound)."""
        model, bounds = self.model, self.bounds
        start: State = (0, 0, 0, 0, model.buffered, model.outputs)
        costs: dict[State, int] = {start: 0}
        limit = self.upper_bound
        goal = model.all_results
        heap: list[Entry] = [(self._estimate(0, 0, bounds.total, start), 0, 0, 0, 0, bounds.total, start)]
        while heap:
            estimate, _, node, cost, paid, remaining, state = heapq.heappop(heap)
            if limit is not None and estimate >= limit:
                return None
            if costs[state] < cost:
                continue
            executed = state[0]
            if executed == goal and not state[5] & ~state[1]:
                return Found(self._path(node), cost)
            successors = self._successors(state)
            self.work += len(successors) + 1
            if self.work > self.options.work_limit:
                raise Exhausted
            for price, init_price, next_state, move in successors:
                new_cost = cost + price + init_price
                known = costs.get(next_state)
                if known is not None and known <= new_cost:
                    continue
                variant = move.variant
                left = remaining
                if variant is not None and not variant.result & executed:
                    left -= bounds.saved[variant.index]
                estimate = self._estimate(new_cost, paid + init_price, left, next_state)
                if limit is not None and estimate >= limit:
                    continue
                costs[next_state] = new_cost
                self.parents.append((node, move))
                progress = -next_state[0].bit_count()
                entry = (estimate, progress, len(self.parents) - 1, new_cost, paid + init_price, left, next_state)
                heapq.heappush(heap, entry)
        return None

    def beam(self, width: int) -> Found | None:
        """A good sequence fast: breadth first by ops executed, the ``width`` best states of each size. Proves
        nothing.
        """
        model, bounds = self.model, self.bounds
        start: State = (0, 0, 0, 0, model.buffered, model.outputs)
        goal = model.all_results
        layers: dict[int, dict[State, Entry]] = {0: {start: (0, 0, 0, 0, 0, bounds.total, start)}}
        total = goal.bit_count()
        for size in range(total + 1):
            queue = sorted(layers.pop(size, {}).values())[:width]
            heapq.heapify(queue)
            seen: dict[State, int] = {entry[6]: entry[3] for entry in queue}
            taken = 0
            # A layer may use its share of the work, but one state is always followed.
            allowed = self.work + self.options.work_limit // (total + 1)
            while queue and taken < width * 3 and (taken == 0 or self.work < allowed):
                _, _, node, cost, paid, remaining, state = heapq.heappop(queue)
                if seen[state] < cost:
                    continue
                taken += 1
                executed = state[0]
                if executed == goal and not state[5] & ~state[1]:
                    return Found(self._path(node), cost)
                successors = self._successors(state)
                self.work += len(successors) + 1
                for price, init_price, next_state, move in successors:
                    new_cost = cost + price + init_price
                    same = next_state[0] == executed
                    layer = layers.setdefault(next_state[0].bit_count(), {}) if not same else None
                    known = seen.get(next_state) if layer is None else None
                    if layer is not None and next_state in layer:
                        known = layer[next_state][3]
                    if known is not None and known <= new_cost:
                        continue
                    variant = move.variant
                    left = remaining
                    if variant is not None and not variant.result & executed:
                        left -= bounds.saved[variant.index]
                    estimate = self._estimate(new_cost, paid + init_price, left, next_state)
                    if self.upper_bound is not None and estimate >= self.upper_bound:
                        continue
                    self.parents.append((node, move))
                    node_number = len(self.parents) - 1
                    entry = (estimate, 0, node_number, new_cost, paid + init_price, left, next_state)
                    if layer is None:
                        seen[next_state] = new_cost
                        heapq.heappush(queue, entry)
                    else:
                        layer[next_state] = entry
        return None

    def _estimate(self, cost: int, paid: int, remaining: int, state: State) -> int:
        """A lower bound on the cost of every answer through this state; ``paid`` is the part spent on inits."""
        bounds = self.bounds
        estimate = cost + remaining + bounds.correction(state[0], state[1], state[5])
        if not self.options.inits:
            return estimate
        ready = self.generator.ready_of[state[0]]
        certain, possible = bounds.inits(state[0], state[1], state[3], ready)
        return max(estimate + (possible << COST_SHIFT), self.math_floor + paid + (certain << COST_SHIFT))

    def estimate_at(self, state: State) -> int:
        """The bound at a state nothing has been paid for, usually the start."""
        return self._estimate(0, 0, self.bounds.total, state)

    def _path(self, node: int) -> tuple[Move, ...]:
        moves: list[Move] = []
        while node >= 0:
            node, move = self.parents[node]
            if move is not None:
                moves.append(move)
        return tuple(reversed(moves))

    def _successors(self, state: State) -> list[Successor]:
        if self.eager:
            free = self._free_move(state)
            if free is not None:
                return [free]
        return self.generator.successors(state)

    def _free_move(self, state: State) -> Successor | None:
        """A cheapest form that takes no slot and costs nothing else can run at once without loss."""
        executed, held, dirty, _, buffered, _ = state
        for variant in self.generator.ready_of[executed]:
            if not self.runs_at_once[variant.index] or variant.in_dst & ~held or variant.in_buffer & ~buffered:
                continue
            found: list[Successor] = []
            self.generator.execute(state, variant, executed | variant.executes, found)
            if len(found) != 1:
                continue
            _, _, after, move = found[0]
            # The slot of a leaf could be had back, the slot of a result not.
            takes_slot = (after[1] & ~buffered).bit_count() > (held & ~buffered).bit_count() or after[2] > dirty
            lost = bits(held & buffered & ~after[1])
            if any(self.model.dst_users[leaf] & ~after[0] for leaf in lost):
                continue  # a leaf that is used again would have to be loaded again
            if not (takes_slot or move.copies or move.dropped or move.dropped_for_result):
                return found[0]
        return None
