"""The least cost of the simpler problem of ``relaxation.py`` from every state on: a lower bound for the search of inits.

A row holds the least cost after a set of ops with so many leaves in DST, for every init in force. Rows are worked out when they
are asked for, and remembered.
"""

from __future__ import annotations

from tilewright.dst.effort import ROW_LIMIT, STEP_LIMIT
from tilewright.dst.model import COPY_TIE, COST_SHIFT
from tilewright.dst.relaxation import Relaxation

NEVER = 1 << 62  # above every cost: nothing fits

# Least scaled cost to the end: under any init in force but those of the second part.
Row = tuple[int, dict[int, int]]

# A step within the slots there are: the init it needs first and the one in force after it (a copy has its own), scaled cost with
# the second of them, fresh leaves and all leaves it uses, leaves there is room for meanwhile, leaves gone, most leaves after it,
# ops executed then.
Way = tuple[int, int, int, int, int, int, int, int, int]
Ways = tuple[int, list[Way]]  # most leaves there is room and use for, steps


class TooManyRows(Exception):
    """So many sets of ops can have been executed that this is no quick bound."""


class RelaxedBound:
    """The rows of one slot budget."""

    def __init__(self, relaxation: Relaxation, init_prices: list[int], *, tiles: int, slots: int):
        self.relaxation = relaxation
        self.init_prices = init_prices
        self.slots = slots
        self.scale = tiles << COST_SHIFT
        self.load_price = relaxation.load_cycles * self.scale
        self.waiting = relaxation.sets.waiting
        self.copy_init = relaxation.model.copy_init
        self.goal = relaxation.model.all_results
        self.loadable = relaxation.model.buffered | relaxation.model.all_instances
        self.ways: dict[int, Ways] = {}
        self.rows: dict[tuple[int, int, int], Row] = {}
        self.row_limit = ROW_LIMIT
        self.steps_left = STEP_LIMIT
        self.root = self.rest(0, 0, 0)
        self.row_limit = self.steps_left = 1 << 30  # what else the search asks for is next to rows there are

    def rest(self, executed: int, held: int, init: int) -> int:
        """Scaled cost to the end at least; ``NEVER`` or more if nothing fits."""
        relaxation = self.relaxation
        leaves = held & self.loadable
        fresh = (leaves & relaxation.fresh_leaves(executed)).bit_count() if leaves else 0
        settled, cycles = relaxation.settle(executed, init)
        most = min(self.slots - self.waiting[settled].bit_count(), relaxation.useful_leaves(settled))
        fresh = min(fresh, most)
        known = min(leaves.bit_count() - fresh, most - fresh)
        other, row = self.rows.get((settled, fresh, known)) or self._row(settled, fresh, known)
        return row.get(init, other) + cycles * self.scale

    def _row(self, executed: int, fresh: int, known: int) -> Row:
        """The cheapest of a load and of all steps that fit."""
        rows = self.rows
        if len(rows) >= self.row_limit:
            raise TooManyRows
        leaves = fresh + known
        most, ways = self.ways.get(executed) or self._ways(executed)
        under: dict[int, int] = {}  # init -> cost while it is in force
        other = 0 if executed == self.goal and leaves >= self.relaxation.leaf_outputs else NEVER
        if fresh < most:
            loaded = (executed, fresh + 1, min(known, most - fresh - 1))
            other = _take(self.relaxation.load_init, self.load_price, rows.get(loaded) or self._row(*loaded), under, other)
        for init, last_init, cost, first, uses, room_for_leaves, gone, most_after, after in ways:
            if first > fresh or uses > leaves:
                continue
            # Known leaves are used before fresh ones, and make way first where slots are short.
            taken = first if first >= uses - known else uses - known
            now_fresh = fresh - taken
            now_known = (known + taken if leaves <= room_for_leaves else room_for_leaves - now_fresh) - gone
            if now_fresh + now_known > most_after:
                now_fresh = now_fresh if now_fresh < most_after else most_after
                now_known = most_after - now_fresh
            row = rows.get((after, now_fresh, now_known)) or self._row(after, now_fresh, now_known)
            if init:
                cost += row[1].get(last_init, row[0])
                if cost < under.get(init, NEVER):
                    under[init] = cost
            else:
                other = _take(0, cost, row, under, other)
        for init, cost in under.items():
            other = min(other, cost + self.init_prices[init])
        row = rows[(executed, fresh, known)] = (other, {init: cost for init, cost in under.items() if cost < other})
        return row

    def _ways(self, executed: int) -> Ways:
        """The steps that fit some number of leaves, with their prices."""
        slots = self.slots
        steps = self.relaxation.steps(executed)
        self.steps_left -= len(steps)
        if self.steps_left < 0:
            raise TooManyRows
        free = slots - self.waiting[executed].bit_count()
        ways: list[Way] = []
        for init, cycles, copies, first, uses, room, gone, waiting, after, useful in steps:
            if uses + room > free or waiting > slots:
                continue
            cost, first_init = cycles * self.scale, init
            if copies:
                cost += COPY_TIE
                first_init = self.copy_init or init
                init = init or first_init
                cost += self.init_prices[init] if init != first_init else 0
            ways.append((first_init, init, cost, first, uses, free - room, gone, min(slots - waiting, useful), after))
        found = self.ways[executed] = min(free, self.relaxation.useful_leaves(executed)), ways
        return found


def _take(init: int, cost: int, row: Row, under: dict[int, int], other: int) -> int:
    """Note a way that costs ``cost`` under ``init`` (0: any) and goes on with ``row``; gives the least under any other init."""
    rest, rests = row
    if init:
        cost += rests.get(init, rest)
        if cost < under.get(init, NEVER):
            under[init] = cost
        return other
    for current, least in rests.items():
        under[current] = min(under.get(current, NEVER), cost + least)
    return min(other, cost + rest)
