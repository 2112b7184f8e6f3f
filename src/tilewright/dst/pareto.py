"""Exact search where the unpacker may be the bottleneck: least ``max(unpack, math + inits / U)``.

The same states and moves as ``search.py``, but a state keeps every pair of math and unpack cost that no other pair
beats in both.
"""

from __future__ import annotations

import heapq

from tilewright.dst.model import COST_SHIFT, bits
from tilewright.dst.moves import Move, State
from tilewright.dst.search import Exhausted, Found, Search

# estimate, -progress, node, cost, unpack, remaining, unpack remaining, state
Entry = tuple[int, int, int, int, int, int, int, State]
Label = tuple[int, int]  # scaled cost, unpack cycles


class ParetoSearch(Search):
    """``offset`` is what the math side pays besides its cost (sync, pack with full sync), in cycles per acquire."""

    offset: int = 0

    def run(self) -> Found | None:
        self.eager = False  # the least math may cost the unpacker more
        model, bounds = self.model, self.bounds
        start: State = (0, 0, 0, 0, model.buffered, model.outputs)
        labels: dict[State, list[Label]] = {start: [(0, 0)]}
        goal = model.all_results
        first = self._worst(self._estimate(0, bounds.total, start), bounds.unpack_total)
        heap: list[Entry] = [(first, 0, 0, 0, 0, bounds.total, bounds.unpack_total, start)]
        while heap:
            estimate, _, node, cost, unpack, remaining, unpack_left, state = heapq.heappop(heap)
            if self.upper_bound is not None and estimate >= self.upper_bound:
                return None
            if (cost, unpack) not in labels[state]:
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
                new_unpack = unpack + self._unpack(move)
                known = labels.setdefault(next_state, [])
                if any(c <= new_cost and u <= new_unpack for c, u in known):
                    continue
                left, unpack_after = remaining, unpack_left
                variant = move.variant
                if variant is not None and not variant.result & executed:
                    left -= bounds.saved[variant.index]
                    unpack_after -= bounds.unpack_saved[variant.index]
                estimate = self._estimate(new_cost, left, next_state)
                estimate = self._worst(estimate, new_unpack + unpack_after)
                if self.upper_bound is not None and estimate >= self.upper_bound:
                    continue
                known[:] = [(c, u) for c, u in known if c < new_cost or u < new_unpack]
                known.append((new_cost, new_unpack))
                self.parents.append((node, move))
                progress = -next_state[0].bit_count()
                number = len(self.parents) - 1
                heapq.heappush(heap, (estimate, progress, number, new_cost, new_unpack, left, unpack_after, next_state))
        return None

    def _worst(self, estimate: int, unpack: int) -> int:
        """The larger of both engines in scaled units, with the tie bits of the math side."""
        cycles = max((estimate >> COST_SHIFT) + self.offset, unpack * self.options.tiles)
        return cycles << COST_SHIFT | estimate & (1 << COST_SHIFT) - 1

    def _unpack(self, move: Move) -> int:
        cycles = 0 if move.variant is None else move.variant.unpack
        leaf_of = self.model.leaf_of_instance
        return cycles + sum(self.model.load_unpack[leaf_of.get(value, value)] for value in bits(move.loads))
