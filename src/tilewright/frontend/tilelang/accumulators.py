"""Fragments that a loop only adds to: decided by what reads and writes them, never by names."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.frontend.tilelang.buffers import Buffers
from tilewright.frontend.tilelang.layouts import fragment_tiles
from tilewright.frontend.tilelang.liveness import Liveness, read_by, reads
from tilewright.frontend.tilelang.symbols import Apply, Expression, Fragment, Product, Read
from tilewright.frontend.tilelang.tile_program import Assign, Branch, Load, Loop, Statement, Store, bodies, walk
from tilewright.hardware import dst_tiles
from tilewright.integers import bounds, make
from tilewright.lang.buffers import CircularBuffer
from tilewright.records import record

SMALLEST_DST = dst_tiles(fp32_dest_acc=True, full_sync=False)


@record(eq=False)
class Accumulator:
    fragment: Fragment
    update: Assign
    runs: bool  # the loop runs at least once
    store: Store | None  # the sum goes straight to this store's buffer
    buffer: CircularBuffer | None

    def added(self, statement: Assign) -> Expression:
        """What an update adds."""
        assert statement is self.update
        found = summand(statement)
        assert found is not None
        return found


def summand(statement: Assign) -> Expression | None:
    """``x`` of ``total = total + x`` where ``x`` does not read ``total``."""
    value, target = statement.value, statement.target
    if not isinstance(value, Apply) or value.op != "+":
        return None
    for own, other in (value.arguments, value.arguments[::-1]):
        if isinstance(own, Read) and own.fragment is target and all(read is not target for read in read_by(other)):
            return other
    return None


def find_accumulators(loop: Loop, around: Sequence[Statement], liveness: Liveness, buffers: Buffers) -> list[Accumulator]:
    found: list[Accumulator] = []
    inside = list(walk(loop.body))
    conditional = {id(s) for branch in inside if isinstance(branch, Branch) for body in bodies(branch) for s in walk(body)}
    for statement in inside:
        if not isinstance(statement, Assign) or id(statement) in conditional or summand(statement) is None:
            continue
        target = statement.target
        writes = [s for s in inside if isinstance(s, (Load, Assign)) and s.target is target]
        readers = [s for s in inside for read in reads(s) if read is target]
        if len(writes) != 1 or len(readers) != 1 or target not in liveness.after[loop] or target.is_vector:
            continue
        store = _only_store(target, loop, around, liveness)
        if store is not None and not _same_precision(statement, store, loop):
            store = None
        runs = _always_runs(loop, statement)
        found.append(Accumulator(target, statement, runs, store, None if store is None else buffers.of(store)))
    return found


def _always_runs(loop: Loop, statement: Assign) -> bool:
    """Every loop from this one down to the statement has at least one iteration."""
    chain = [inner for inner in (loop, *walk(loop.body)) if isinstance(inner, Loop)]
    chain = [inner for inner in chain if any(s is statement for s in walk(inner.body))]
    return all(bounds(make("-", inner.stop, inner.start))[0] >= 1 for inner in chain)


def _only_store(target: Fragment, loop: Loop, around: Sequence[Statement], liveness: Liveness) -> Store | None:
    """The store after the loop that is the only reader of the sum."""
    position = next((i for i, s in enumerate(around) if s is loop), None)
    if position is None:
        return None
    later = list(walk(around[position + 1 :]))
    readers = [s for s in later for read in reads(s) if read is target]
    direct = [s for s in around[position + 1 :] if isinstance(s, Store) and s.source is target]
    if len(readers) != 1 or len(direct) != 1 or target in liveness.after[direct[0]]:
        return None
    changed = any(isinstance(s, (Load, Assign)) and s.target is target for s in later)
    return None if changed else direct[0]


def _same_precision(statement: Assign, store: Store, loop: Loop) -> bool:
    """Partial sums do not lose bits in the output's buffer: it is as wide, or they stay in DST."""
    if store.window.tensor.format == statement.target.format:
        return True
    value = summand(statement)
    plain = isinstance(value, Product) and not value.transpose_left and not value.transpose_right
    alone = all(isinstance(s, Load) or s is statement for s in loop.body)
    return plain and alone and math.prod(fragment_tiles(statement.target)) <= SMALLEST_DST
