"""An oracle for tiny problems: uniform-cost search over concrete DST contents, with no reduction of any kind.

A state is the set of ops executed, what every slot holds (None: untouched since the acquire) and the init in force. A
load may go to any slot at any time, an op may read any slot that holds its operand and write any slot its rule
allows; a copy is made directly before the op that destroys it. Each state keeps all pairs of cost and unpack cycles
that no other pair beats.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from dataclasses import replace

from tilewright.dst.problem import Place, Problem, ResultRule


def least_cycles(problem: Problem) -> float | None:
    """Least modelled cycles per tile over all op-major allocations in one part, or None if nothing fits."""
    best: float | None = None
    for tiles in range(1, min(problem.capacity, problem.tiles) + 1):
        for cost, unpack in _labels(problem, problem.capacity // tiles, tiles):
            math = (cost + problem.costs.sync) / tiles
            pack = problem.costs.pack * len(problem.outputs)
            cycles = max(unpack, math + pack) if problem.full_sync else max(unpack, pack, math)
            best = cycles if best is None else min(best, cycles)
    return best


def _labels(problem: Problem, slots: int, tiles: int) -> list[tuple[int, int]]:
    wanted = _needed(problem)
    start = (frozenset[int](), (None,) * slots, "")
    labels = {start: [(0, 0)]}
    heap = [(0, 0, 0, start)]
    counter = itertools.count(1)
    goals: list[tuple[int, int]] = []
    while heap:
        cost, unpack, _, state = heapq.heappop(heap)
        if (cost, unpack) not in labels[state]:
            continue
        executed, contents, _ = state
        if executed == wanted and all(value in contents for value in problem.outputs):
            goals.append((cost, unpack))
            continue
        for extra, more, after in _moves(problem, state, wanted, tiles):
            label = (cost + extra, unpack + more)
            known = labels.setdefault(after, [])
            if any(c <= label[0] and u <= label[1] for c, u in known):
                continue
            known[:] = [(c, u) for c, u in known if c < label[0] or u < label[1]]
            known.append(label)
            heapq.heappush(heap, (*label, next(counter), after))
    return goals


def _needed(problem: Problem) -> frozenset[int]:
    needed: set[int] = set()
    pending = list(problem.outputs)
    while pending:
        value = pending.pop()
        if not problem.is_leaf(value) and problem.op_of(value) not in needed:
            needed.add(problem.op_of(value))
            pending.extend(problem.ops[problem.op_of(value)].operands)
    return frozenset(needed)


def _switch(current: str, key: str, cycles: int) -> tuple[int, str]:
    return (cycles, key) if key and key != current else (0, current)


def _moves(problem, state, wanted, tiles) -> Iterator[tuple[int, int, object]]:
    executed, contents, init = state
    for leaf, row in enumerate(problem.leaves):
        paid, key = _switch(init, row.init, row.init_cycles)
        for slot in range(len(contents)):
            yield row.load_math_cycles * tiles + paid, row.load_unpack_cycles, (executed, _put(contents, slot, leaf), key)
    for op in wanted - executed:
        for form in [each for own in problem.ops[op].forms for each in _alone(problem, op, own, wanted)]:
            if executed & set(form.absorbs) or not set(form.absorbs) <= wanted:
                continue
            if any(problem.result_of(inner) not in contents for inner in form.repeats):
                continue
            if any(o.place is Place.BUFFER and not problem.is_leaf(o.value) for o in form.operands):
                continue
            yield from _runs(problem, state, op, form, tiles)


def _alone(problem, op, form, wanted):
    """A form that repeats an op which nobody else wants may as well absorb it."""
    yield form
    users = {user for inner in form.repeats for user in wanted if problem.result_of(inner) in problem.ops[user].operands}
    if form.repeats and users == {op} and not {problem.result_of(inner) for inner in form.repeats} & set(problem.outputs):
        yield replace(form, absorbs=(*form.absorbs, *form.repeats), repeats=())


def _runs(problem, state, op, form, tiles):
    executed, contents, init = state
    after_executed = executed | {op, *form.absorbs}
    result = problem.result_of(op)
    if not all(o.value in contents for o in form.operands if o.place is Place.DST):
        return
    paid, key = _switch(init, form.init, form.init_cycles)
    price = form.math_cycles * tiles + paid
    if form.result is ResultRule.FREE:
        targets = range(len(contents))
    elif form.result is ResultRule.ZEROED:
        targets = [slot for slot, value in enumerate(contents) if value is None]
    else:
        destroyed = form.operands[form.reuses].value
        targets = [slot for slot, value in enumerate(contents) if value == destroyed]
        copy_paid, copy_key = _switch(init, problem.costs.copy_init, problem.costs.copy_init_cycles)
        op_paid, op_key = _switch(copy_key, form.init, form.init_cycles)
        copied = (problem.costs.copy + form.math_cycles) * tiles + copy_paid + op_paid
        others = {o.value for o in form.operands if o.place is Place.DST} | {problem.result_of(inner) for inner in form.repeats}
        for slot in range(len(contents)):
            # The copy may not overwrite the only instance of an operand.
            if all(value in _put(contents, slot, destroyed) for value in others):
                yield copied, form.unpack_cycles, (after_executed, _put(contents, slot, result), op_key)
    for slot in targets:
        yield price, form.unpack_cycles, (after_executed, _put(contents, slot, result), key)


def _put(contents, slot, value):
    return (*contents[:slot], value, *contents[slot + 1 :])
