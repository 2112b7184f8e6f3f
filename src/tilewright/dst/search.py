"""Exact search: A* over the states a tile can be in (``moves.py``), for one slot budget.

The relaxed problem guides it where inits count and that is small enough to be solved, sums over the ops to come elsewhere
(``bounds.py``). What A* cannot end, ``beam`` answers well and ``dive`` at all. Where the unpacker may be the bottleneck,
``ParetoSearch`` looks for the least ``max(unpack, math + inits / U)``: a state keeps every pair of math and unpack cost that no
other pair beats in both.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from tilewright.dst.bounds import NEVER, Bounds
from tilewright.dst.model import COST_SHIFT, IN_PLACE, STUCK, ZEROED, Model, Variant, bits
from tilewright.dst.moves import Move, MoveGenerator, Options, State, Successor
from tilewright.records import record

Batch = tuple[int, int]  # leaves loaded and not used yet, the leaf loaded by the last move (0 if it was no load)
# Estimate, -progress, node (negative where the newest comes first), cost, cycles of the cheapest forms to come, state.
Entry = tuple[int, int, int, int, int, State]


@record
class Found:
    moves: tuple[Move, ...]
    cost: int  # scaled


class Exhausted(Exception):
    """The work limit was reached before an answer was proved."""


def _batch_after(batch: Batch, move: Move, init_price: int) -> Batch | None:
    """The batch after ``move``, or None if another order of the same moves makes it unnecessary.

    Loads wait for the last batch before their use, so none is made twice for nothing; within a batch they go in one order.
    """
    fresh, last = batch
    if move.dropped & fresh:
        return None
    if move.variant is not None:
        unused = fresh & ~move.variant.in_dst
        return None if unused & move.dropped_for_result else (unused & move.held, 0)
    if (init_price and fresh) or move.loads < last:
        return None
    return fresh | move.loads, move.loads


class Search:
    """``upper_bound``: give up on answers that cost as much."""

    def __init__(
        self,
        model: Model,
        options: Options,
        upper_bound: int | None = None,
        bounds: Bounds | None = None,
    ):
        self.model = model
        self.options = options
        # Where values are computed again or spilled, what waits does not follow from the ops executed.
        avoidable = options.recompute or options.cuts
        self.bounds = bounds or Bounds(model, again=avoidable)
        self.generator = MoveGenerator(model, options, self.bounds.sets)
        all_counted = options.inits or not model.has_inits
        self.relaxed = self.bounds.relaxed(options.tiles, options.slots) if all_counted and not avoidable else None
        self.upper_bound = NEVER if upper_bound is None and self.relaxed is not None else upper_bound
        self.parents: list[tuple[int, Move | None]] = [(-1, None)]
        self.batches: list[Batch] = [(0, 0)]  # per node, beside ``parents``
        self.newest_first = False  # among states with equal estimates
        self.work = 0  # states and successors looked at
        self.least_left = 0  # where the work was used up: no answer costs less
        self.eager = not avoidable
        self.scale = options.scale
        self.batched = options.inits and not avoidable  # loads wait for the last batch before their use
        self.runs_at_once = model.never_beaten if self.eager else []

    def run(self) -> Found | None:
        """The cheapest sequence of moves, or None if no sequence fits (below the upper bound)."""
        # Where the bound is tight most estimates are alike: what was found last is nearest to the end.
        self.newest_first = self.relaxed is not None
        first = self._first_entry()
        costs: dict[State, int] = {first[5]: 0}
        heap = [first]
        while heap:
            entry = heapq.heappop(heap)
            estimate, _, order, cost, _, state = entry
            if self.upper_bound is not None and estimate >= self.upper_bound:
                return None
            if costs[state] < cost:
                continue
            if self._is_goal(state):
                return Found(self._path(abs(order)), cost)
            for following in self._following(entry, costs):
                heapq.heappush(heap, following)
            if self.work > self.options.work_limit:
                self.least_left = heap[0][0] if heap else 0
                raise Exhausted
        return None

    def beam(self, width: int) -> Found | None:
        """A good sequence fast: by number of ops executed, from the cheapest and the most frugal of each. Proves nothing."""
        first = self._first_entry()
        costs: dict[State, int] = {first[5]: 0}
        layers: dict[int, dict[State, Entry]] = {0: {first[5]: first}}
        for size in range(self.model.all_results.bit_count() + 1):
            found = self._follow_layer(layers.pop(size, {}), layers, costs, width)
            if found is not None:
                return found
        return None

    def dive(self) -> Found | None:
        """Any sequence that fits, or None if none does: deepest first, least held first, back where nothing fits."""
        first = self._first_entry()
        costs: dict[State, int] = {first[5]: 0}
        heap = [(0, (0, 0), first)]
        deepest = since = 0  # and the work done when that was reached
        while heap:
            progress, _, entry = heapq.heappop(heap)
            _, _, order, cost, _, state = entry
            if self._is_goal(state):
                return Found(self._path(abs(order)), cost)
            if progress < deepest:
                deepest, since = progress, self.work
            for following in self._following(entry, costs):
                costs[following[5]] = -1  # once is enough, whatever it costs
                heapq.heappush(heap, (following[1], self._frugality(following), following))
            if self.work > self.options.work_limit or self.work - since > self.options.work_limit * STUCK:
                raise Exhausted
        return None

    def _follow_layer(
        self, layer: dict[State, Entry], layers: dict[int, dict[State, Entry]], costs: dict[State, int], width: int
    ) -> Found | None:
        """Expand the best states with equally many ops executed; loads, cuts and recomputed ops stay in the layer."""
        cheap = heapq.nsmallest(width, layer.values())
        # Cheap states alone end where nothing fits any more; states that hold little keep a way open.
        frugal = heapq.nsmallest(width, layer.values(), key=self._frugality)
        queue = list({entry[2]: entry for entry in (*cheap, *frugal)}.values())
        heapq.heapify(queue)
        # A layer may use its share of the work, but one state is always followed.
        allowed = self.work + self.options.work_limit // (self.model.all_results.bit_count() + 1)
        taken = 0
        while queue and taken < width * 4 and (taken == 0 or self.work < allowed):
            entry = heapq.heappop(queue)
            _, _, order, cost, _, state = entry
            if costs[state] < cost:
                continue
            if self._is_goal(state):
                return Found(self._path(abs(order)), cost)
            taken += 1
            for following in self._following(entry, costs):
                after = following[5]
                if after[0] == state[0]:
                    heapq.heappush(queue, following)
                else:
                    layers.setdefault(after[0].bit_count(), {})[after] = following
        return None

    def _frugality(self, entry: Entry) -> tuple[int, int]:
        """How many results are held, in slots or in buffers, then the estimate."""
        held, buffered = entry[5][1], entry[5][4]
        return ((held | buffered) & ~self.model.buffered).bit_count(), entry[0]

    def _first_entry(self) -> Entry:
        start: State = (0, 0, 0, 0, self.model.buffered, self.model.outputs)
        total = self.bounds.total
        return self._estimate(0, total, start), 0, 0, 0, total, start

    def _is_goal(self, state: State) -> bool:
        return state[0] == self.model.all_results and not state[5] & ~state[1]

    def _following(self, entry: Entry, costs: dict[State, int]) -> Iterator[Entry]:
        """Entries for the states after ``entry`` that were not reached as cheaply before."""
        _, _, order, cost, remaining, state = entry
        node = abs(order)
        batches, upper_bound = self.batched, self.upper_bound
        before = batch = self.batches[node] if batches else (0, 0)
        successors = self._successors(state, before[1])
        self.work += len(successors) + 1
        for price, init_price, after, move in successors:
            new_cost = cost + price + init_price
            known = costs.get(after)
            if known is not None and known <= new_cost:
                continue
            if batches:
                batch_after = _batch_after(before, move, init_price)
                if batch_after is None:
                    continue
                batch = batch_after
            left, variant = remaining, move.variant
            if variant is not None and not variant.result & state[0]:
                left -= self.bounds.saved[variant.index]
            estimate = self._estimate(new_cost, left, after)
            if upper_bound is not None and estimate >= upper_bound:
                continue
            costs[after] = new_cost
            self.parents.append((node, move))
            self.batches.append(batch)
            progress = -after[0].bit_count()
            number = len(self.parents) - 1
            yield estimate, progress, -number if self.newest_first else number, new_cost, left, after

    def _estimate(self, cost: int, remaining: int, state: State) -> int:
        """A lower bound on the cost of every answer through this state."""
        executed, held, _, init, _, pending = state
        if self.relaxed is not None:
            return cost + self.relaxed.rest(executed, held, init)
        estimate = cost + (remaining + self.bounds.correction(executed, held, pending)) * self.scale
        return estimate + self.bounds.inits(executed, init) if self.options.inits else estimate

    def _path(self, node: int) -> tuple[Move, ...]:
        moves: list[Move] = []
        while node >= 0:
            node, move = self.parents[node]
            if move is not None:
                moves.append(move)
        return tuple(reversed(moves))

    def _successors(self, state: State, last_load: int = 0) -> list[Successor]:
        if self.eager:
            free = self._free_move(state)
            if free is not None:
                return [free]
        return self.generator.successors(state, last_load)

    def _takes_a_dying_slot(self, variant: Variant, state: State, loaded: int) -> bool:
        """Quick test: the result replaces a computed value that nobody else waits for."""
        if variant.rule == ZEROED:
            return False
        replaced = (variant.destroys if variant.rule == IN_PLACE else variant.in_dst) & ~(loaded | state[5])
        executed = state[0] | variant.executes
        users = self.model.users
        while replaced:
            low = replaced & -replaced
            if not users[low.bit_length() - 1] & ~executed:
                return True
            replaced ^= low
        return False

    def _free_move(self, state: State) -> Successor | None:
        """A cheapest form that takes no slot, under the init in force, can run at once without loss."""
        executed, held, dirty, init, buffered, _ = state
        inits = self.options.inits
        loaded = buffered | self.generator.extra
        for variant in self.generator.ready_of[executed]:
            if not self.runs_at_once[variant.index] or variant.in_dst & ~held or variant.in_buffer & ~buffered:
                continue
            if (inits and variant.init and variant.init != init) or not self._takes_a_dying_slot(variant, state, loaded):
                continue
            found: list[Successor] = []
            self.generator.execute(state, variant, executed | variant.executes, found)
            if len(found) != 1:
                continue
            _, _, after, move = found[0]
            # The slot of a leaf could be had back, the slot of a result not.
            takes_slot = (after[1] & ~loaded).bit_count() > (held & ~loaded).bit_count() or after[2] > dirty
            lost = [self.model.leaf_of_instance.get(value, value) for value in bits(held & loaded & ~after[1])]
            if any(self.model.dst_users[leaf] & ~after[0] for leaf in lost):
                continue  # a leaf that is used again would have to be loaded again
            if not (takes_slot or move.copies or move.dropped or move.dropped_for_result):
                return found[0]
        return None


# Two engines ----------------------------------------------------------------------------------------------------------

# estimate, -progress, node, cost, unpack, remaining, unpack remaining, state
ParetoEntry = tuple[int, int, int, int, int, int, int, State]
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
        heap: list[ParetoEntry] = [(first, 0, 0, 0, 0, bounds.total, bounds.unpack_total, start)]
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
