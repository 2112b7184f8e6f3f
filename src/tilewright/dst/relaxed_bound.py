"""The least cost of the simpler problem of ``relaxation.py`` from every state on: a lower bound for the search of inits.

A row holds the least cost after a set of ops with so many leaves in DST, for every init in force. Rows are worked out when they
are asked for, and remembered.
"""

from __future__ import annotations

from tilewright.dst.bounds import COPY_TIE, COST_SHIFT
from tilewright.dst.relaxation import Relaxation

ROW_LIMIT = 3_000
NEVER = 1 << 62  # above every cost: nothing fits

# Least scaled cost to the end: under any init in force but those of the second part.
Row = tuple[int, dict[int, int]]


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
        self.rows: dict[tuple[int, int, int], Row] = {}
        self.row_limit = ROW_LIMIT
        self.root = self.rest(0, 0, 0)
        self.row_limit = 1 << 30  # what else the search asks for is next to rows there are

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
        relaxation, slots, rows = self.relaxation, self.slots, self.rows
        if len(rows) >= self.row_limit:
            raise TooManyRows
        leaves = fresh + known
        free = slots - self.waiting[executed].bit_count()
        under: dict[int, int] = {}  # init -> cost while it is in force
        other = 0 if executed == self.goal and leaves >= relaxation.leaf_outputs else NEVER
        most = min(free, relaxation.useful_leaves(executed))
        if fresh < most:
            loaded = (executed, fresh + 1, min(known, most - fresh - 1))
            other = _take(relaxation.load_init, self.load_price, rows.get(loaded) or self._row(*loaded), under, other)
        for init, cycles, copies, first, uses, room, gone, waiting, after, useful in relaxation.steps(executed):
            if first > fresh or uses > leaves or uses + room > free or waiting > slots:
                continue
            # Known leaves are used before fresh ones, and make way first where slots are short.
            taken = first if first >= uses - known else uses - known
            now_fresh = fresh - taken
            now_known = (known + taken if leaves <= free - room else free - room - now_fresh) - gone
            most = slots - waiting if slots - waiting < useful else useful
            if now_fresh + now_known > most:
                now_fresh = now_fresh if now_fresh < most else most
                now_known = most - now_fresh
            row = rows.get((after, now_fresh, now_known)) or self._row(after, now_fresh, now_known)
            cost = cycles * self.scale
            if copies:
                cost += COPY_TIE
                if self.copy_init:
                    if init and init != self.copy_init:
                        cost += self.init_prices[init] + row[1].get(init, row[0])
                        row = (0, {})
                    init = self.copy_init
            if init:
                cost += row[1].get(init, row[0])
                if cost < under.get(init, NEVER):
                    under[init] = cost
            else:
                other = _take(init, cost, row, under, other)
        for init, cost in under.items():
            other = min(other, cost + self.init_prices[init])
        row = rows[(executed, fresh, known)] = (other, {init: cost for init, cost in under.items() if cost < other})
        return row


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
