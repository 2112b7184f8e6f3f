"""What plans cost, and the problem as the searches see it.

The cycle model: ``T = max(unpack, pack, math + (sync + inits) / U)`` with half sync, where the packer works beside the math
thread, and ``T = max(unpack, math + pack + (sync + inits) / U)`` with full sync, where it does not. ``U`` is the number of
tiles per acquire. An init is paid whenever a step needs another one than the step before it; every acquire starts without one.
Op-major runs each op over all tiles and pays each init once per acquire, but every tile needs all its slots. Tile-major pays
the inits for every tile; only outputs, and results that need an untouched slot, keep a slot per tile. It wins where one tile
alone fills more than half of DST.

``Model`` is a problem compiled to bit masks: one bit per value, one ``Variant`` per op and form. An executed op is the bit of
its result. A value *waits* while some op that uses it has not run or while it has still to be packed. Values in buffers
(leaves, and spills of earlier parts) may be loaded any number of times.

``Effort`` says how hard the searches try: every tuning constant of the library, with its reason. Work is counted in states and
successors looked at, not timed, so that no plan depends on the machine; a usual machine looks at about forty in a millisecond.
The figures are what `benchmarks/dst_quality.py` and bodies of 6 to 60 random ops need: half of them costs a few percent of the
cycles somewhere, twice as much gains nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilewright.dst.problem import (
    Allocation,
    Copy,
    Execute,
    Form,
    Layout,
    Leaf,
    Load,
    Part,
    Place,
    Problem,
    ResultRule,
    Step,
    on_slots,
)
from tilewright.records import record

SIZE_LIMIT = 64  # ops; above it the list schedules come first, and no more than a beam beside them
BEAM_LIMIT = 300  # ops; masks of more bits make every state slow
ROW_LIMIT = 3_000  # rows of the relaxed problem; a body with more has too many states for A* too
STEP_LIMIT = 5_000  # steps from one row to another: in wide bodies each row has many, and there this limit comes first
SPLIT_EXACT_LIMIT = 24  # ops; cuts may come anywhere, so larger bodies are cut by the beam
CLOSE_ESTIMATE = 1.05  # a set of round trips whose estimate is further above the best one's is not searched
LITTLE = 0.01  # share of a tile's cycles: to spare less, a body without a relaxed bound is not searched again, no value travels
STUCK = 0.5  # share of its work after which a walk to a sequence that fits is given up if it has got no deeper
FEW_TILES = 2  # tiles per acquire up to which sharing slots among tiles may pay; the search proves op-major only


@record(kw_only=True)
class Effort:
    """Of one region."""

    exact: int  # A* with the relaxed bound, for all slot budgets together: it mostly walks straight to the answer
    least_exact: int  # of which each budget has at least so much
    uninformed: int  # A* where the relaxed problem is too large or does not apply: only small bodies end
    fit: int  # a depth-first walk to any sequence that fits, where the relaxed bound does not know whether one does
    beam: int  # what A* leaves open
    beam_width: int


WHOLE = Effort(exact=20_000, least_exact=400, uninformed=1_500, fit=6_000, beam=10_000, beam_width=24)
LARGE = Effort(exact=4_000, least_exact=400, uninformed=0, fit=20_000, beam=30_000, beam_width=24)  # above SIZE_LIMIT
PROOF = Effort(exact=6_000_000, least_exact=400, uninformed=6_000_000, fit=6_000, beam=5_000, beam_width=24)  # on request
AGAIN = Effort(exact=0, least_exact=0, uninformed=4_000, fit=0, beam=5_000, beam_width=4)  # recomputing: many more successors
PART = Effort(exact=10_000, least_exact=400, uninformed=1_000, fit=4_000, beam=3_000, beam_width=24)  # of a split
TRIP = Effort(exact=800, least_exact=60, uninformed=200, fit=4_000, beam=120, beam_width=24)  # of a round trip: many are tried
SPLIT = Effort(exact=0, least_exact=0, uninformed=20_000, fit=0, beam=40_000, beam_width=16)  # the cuts themselves


# The cycle model ------------------------------------------------------------------------------------------------------


SPILLED_LEAF_NAME = "spilled value"


def leaf_of(problem: Problem, value: int) -> Leaf:
    """How a value in a buffer is loaded; a spilled value loads like a leaf, at the unpack cost of a spill."""
    return problem.leaves[value] if problem.is_leaf(value) else spilled_leaf(problem)


def spilled_leaf(problem: Problem) -> Leaf:
    model = problem.leaves[0] if problem.leaves else Leaf()
    return Leaf(
        name=SPILLED_LEAF_NAME,
        load_math_cycles=model.load_math_cycles,
        load_unpack_cycles=problem.costs.spill_unpack,
        init=model.init,
        init_cycles=model.init_cycles,
    )


def step_cost(problem: Problem, step: Step) -> tuple[int, int, str, int]:
    """Math cycles, unpack cycles, init key and init cycles of one step."""
    if isinstance(step, Load):
        leaf = leaf_of(problem, step.leaf)
        return leaf.load_math_cycles, leaf.load_unpack_cycles, leaf.init, leaf.init_cycles
    if isinstance(step, Copy):
        return problem.costs.copy, 0, problem.costs.copy_init, problem.costs.copy_init_cycles
    form = problem.ops[step.op].forms[step.form]
    return form.math_cycles, form.unpack_cycles, form.init, form.init_cycles


def init_cost(sequence: Iterable[tuple[str, int]], current: str = "") -> tuple[int, int, str]:
    """Cycles and number of init switches over (key, cycles) pairs, and the init in force at the end."""
    cycles = switches = 0
    for key, price in sequence:
        if key and key != current:
            current = key
            cycles += price
            switches += 1
    return cycles, switches, current


def modelled_cycles(problem: Problem, *, math: int, unpack: int, pack: int, inits: int, tiles: int) -> float:
    exposed = math + (problem.costs.sync + inits) / tiles
    if problem.full_sync and problem.costs.full_sync_serialises_pack:
        return max(unpack, exposed + pack)
    return max(unpack, pack, exposed)


def priced_allocation(
    problem: Problem,
    steps: Sequence[Step],
    output_slots: Sequence[int],
    *,
    slots: int,
    layout: Layout,
    footprint: int,
    tiles: int,
    spilled: int = 0,
) -> Allocation:
    """An allocation with all its cost fields set. Every spill adds its buffer handshake to the tile."""
    math = unpack = 0
    keys: list[tuple[str, int]] = []
    for step in steps:
        math_cycles, unpack_cycles, key, init_cycles = step_cost(problem, step)
        math += math_cycles
        unpack += unpack_cycles
        keys.append((key, init_cycles))
    inits, switches, last = init_cost(keys)
    if layout is Layout.TILE_MAJOR and tiles > 1:
        again, again_switches, _ = init_cost([pair for pair in keys if pair[0] not in problem.lasting_inits], last)
        inits += again * (tiles - 1)
        switches += again_switches * (tiles - 1)
    pack = problem.costs.pack * len(output_slots)
    cycles = modelled_cycles(problem, math=math, unpack=unpack, pack=pack, inits=inits, tiles=tiles)
    return Allocation(
        steps=tuple(steps),
        output_slots=tuple(output_slots),
        slots=slots,
        layout=layout,
        footprint=footprint,
        tiles_per_acquire=tiles,
        math_cycles=math,
        unpack_cycles=unpack,
        pack_cycles=pack,
        init_cycles=inits,
        init_switches=switches,
        cycles_per_tile=cycles + problem.costs.spill_overhead * spilled,
    )


# Tile-major -----------------------------------------------------------------------------------------------------------


def tile_major(problem: Problem, allocation: Allocation, spilled: int) -> Allocation | None:
    """The tile-major form of an op-major allocation, or None if it holds no more tiles."""
    private = private_slots(problem, allocation)
    footprint = allocation.slots - len(private)
    if not private:
        return None
    tiles = min((problem.capacity - footprint) // len(private), problem.tiles)
    if tiles <= allocation.tiles_per_acquire:
        return None
    shared = [slot for slot in range(allocation.slots) if slot not in private]
    renamed = {slot: number for number, slot in enumerate([*shared, *sorted(private)])}
    return priced_allocation(
        problem,
        [on_slots(step, renamed.__getitem__) for step in allocation.steps],
        [renamed[slot] for slot in allocation.output_slots],
        slots=allocation.slots,
        layout=Layout.TILE_MAJOR,
        footprint=footprint,
        tiles=tiles,
        spilled=spilled,
    )


def private_slots(problem: Problem, allocation: Allocation) -> set[int]:
    """Slots that hold an output at the end or must be untouched since the acquire when a result is added to them."""
    private = set(allocation.output_slots)
    for step in allocation.steps:
        if isinstance(step, Execute) and problem.ops[step.op].forms[step.form].result is ResultRule.ZEROED:
            private.add(step.target)
    return private


# Parts ----------------------------------------------------------------------------------------------------------------


Rank = tuple[float, int, int, int]


def part_of(problem: Problem, allocation: Allocation, outputs: Sequence[int], spilled: int = 0) -> Part:
    """The part that runs ``allocation``; ops and leaves are read off its steps."""
    ops: set[int] = set()
    leaves: set[int] = set()
    for step in allocation.steps:
        if isinstance(step, Load):
            leaves.add(step.leaf)
        elif isinstance(step, Execute):
            form = problem.ops[step.op].forms[step.form]
            ops.add(step.op)
            ops.update((*form.absorbs, *form.repeats))
            leaves.update(o.value for o in form.operands if o.place is Place.BUFFER)
    return Part(
        ops=tuple(sorted(ops)),
        leaves=tuple(sorted(leaves)),
        outputs=tuple(outputs),
        allocation=allocation,
        spilled=spilled,
    )


def without_unread_spills(problem: Problem, parts: Sequence[Part]) -> tuple[Part, ...]:
    """A later part may have computed a value again, in a form that repeats its op: then nobody reads its buffer."""
    kept: list[Part] = []
    read: set[int] = set()
    for part in reversed(parts):
        wanted = [number for number, value in enumerate(part.outputs) if number >= part.spilled or value in read]
        if len(wanted) < len(part.outputs):
            old = part.allocation
            spilled = len(wanted) - (len(part.outputs) - part.spilled)
            slots = [old.output_slots[number] for number in wanted]
            allocation = priced_allocation(
                problem, old.steps, slots, slots=old.slots, layout=old.layout, footprint=old.footprint,
                tiles=old.tiles_per_acquire, spilled=spilled,
            )  # fmt: skip
            part = part_of(problem, allocation, [part.outputs[number] for number in wanted], spilled)
        if part.outputs:
            kept.append(part)
            read.update(part.leaves)
    return tuple(reversed(kept))


def best_layout(
    problem: Problem, steps: Sequence[Step], output_slots: Sequence[int], slots: int, spilled: int
) -> Allocation:
    """The steps with as many tiles per acquire as fit, op-major or tile-major, whichever costs less."""
    used = max(slots, 1)
    op_major = priced_allocation(
        problem,
        steps,
        output_slots,
        slots=used,
        layout=Layout.OP_MAJOR,
        footprint=0,
        tiles=min(problem.capacity // used, problem.tiles),
        spilled=spilled,
    )
    other = tile_major(problem, op_major, spilled)
    return op_major if other is None or rank(op_major) <= rank(other) else other


def rank(allocation: Allocation) -> Rank:
    """Smaller is better: cycles, then copies, then more tiles per acquire, then init switches."""
    cycles = round(allocation.cycles_per_tile, 6)
    return (cycles, allocation.copies, -allocation.tiles_per_acquire, allocation.init_switches)


def rank_of_parts(parts: Sequence[Part]) -> Rank:
    allocations = [part.allocation for part in parts]
    cycles = round(sum(a.cycles_per_tile for a in allocations), 6)
    fewest = min(a.tiles_per_acquire for a in allocations)
    return (cycles, sum(a.copies for a in allocations), -fewest, sum(a.init_switches for a in allocations))


def budgets(capacity: int, tiles: int) -> list[tuple[int, int]]:
    """(tiles per acquire, slots per tile) worth trying: for each slot budget the most tiles, most tiles first."""
    best: dict[int, int] = {}
    for count in range(1, min(capacity, tiles) + 1):
        best[capacity // count] = count
    return sorted(((count, slots) for slots, count in best.items()), reverse=True)


FREE, ZEROED, IN_PLACE = 0, 1, 2

# Costs of the search are integers, ``(math * U + inits) << 16 | copies << 8 | init switches``, so that the order of ties is part
# of the cost.
COST_SHIFT = 16
SWITCH_TIE = 1
COPY_TIE = 1 << 8

_RULES = {
    ResultRule.FREE: FREE,
    ResultRule.ZEROED: ZEROED,
    ResultRule.IN_PLACE: IN_PLACE,
    ResultRule.ACCUMULATE: IN_PLACE,
}


@record(eq=False, frozen=False)  # not frozen: they are made by the hundred and read by the million
class Variant:
    """One op in one form, with everything the search needs as masks over values."""

    index: int  # position in Model.variants
    op: int
    form: int
    executes: int  # results of the op and of all ops the form absorbs
    result: int
    value: int  # number of the result
    needs: int  # results of other ops that must exist
    in_dst: int
    in_buffer: int
    destroys: int
    rule: int
    touched: tuple[int, ...]  # value numbers whose last use this may be
    math: int
    unpack: int
    init: int  # number of the init key, 0 for none
    init_cycles: int


def _bits_of_byte(first: int) -> list[tuple[int, ...]]:
    """The positions of the set bits of every byte whose lowest bit is at ``first``."""
    found: list[tuple[int, ...]] = [()]
    for bit in range(first, first + 8):
        found += [(*lower, bit) for lower in found]
    return found


_LOW, _HIGH = _bits_of_byte(0), _bits_of_byte(8)  # most regions have few values, and nothing is asked for more often


def bits(mask: int) -> Sequence[int]:
    """The positions of the set bits, ascending."""
    if mask < 1 << 8:
        return _LOW[mask]
    if mask < 1 << 16:
        return _LOW[mask & 255] + _HIGH[mask >> 8]
    found: list[int] = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


class Model:
    """The masks of one region: ``buffered`` values can be loaded, ``outputs`` must end in DST."""

    def __init__(
        self,
        problem: Problem,
        outputs: Sequence[int] | None = None,
        buffered: Sequence[int] | None = None,
        *,
        cuts: bool = False,
    ):
        self.problem = problem
        self.cuts = cuts  # results may get into buffers on the way
        self.leaf_count, count = len(problem.leaves), problem.value_count
        self.output_list = tuple(problem.outputs if outputs is None else outputs)
        self.outputs = mask_of(self.output_list)
        self.buffered = (1 << self.leaf_count) - 1 if buffered is None else mask_of(buffered)
        self.ops = self._needed_ops()
        self.all_results = 0
        self.users = [0] * count  # value -> results of the ops that use it
        for op in self.ops:
            result = 1 << self.leaf_count + op
            self.all_results |= result
            for value in problem.ops[op].operands:
                self.users[value] |= result
        self.dst_users = [0] * count  # value -> results of the ops that can use it from DST
        self.init_names: dict[str, int] = {"": 0}
        self.init_prices: list[int] = [0]
        loads = [*problem.leaves, *[spilled_leaf(problem)] * len(problem.ops)]
        self.load_math = [leaf.load_math_cycles for leaf in loads]
        self.load_unpack = [leaf.load_unpack_cycles for leaf in loads]
        self.load_init = [self._init(leaf.init, leaf.init_cycles) for leaf in loads]
        costs = problem.costs
        self.copy_math = costs.copy
        self.copy_init = self._init(costs.copy_init, costs.copy_init_cycles)
        self.variants: list[Variant] = []
        self.needing: list[list[Variant]] = [[] for _ in range(count)]
        self.of_op: dict[int, list[Variant]] = {}
        self.zeroed_results = 0
        for op in self.ops:
            self.of_op[op] = self._variants_of(op)
            self.variants += self.of_op[op]
        for variant in self.variants:
            for value in bits(variant.needs):
                self.needing[value].append(variant)
            for value in bits(variant.in_dst):
                self.dst_users[value] |= variant.executes
            if variant.rule == ZEROED:
                self.zeroed_results |= variant.result
        self.has_inits = len(self.init_prices) > 1
        self.never_beaten = self._never_beaten()
        # Per variant, of the values it touches: the bit, the ops that use it, the ops that can use it from DST.
        self.uses = [[(1 << v, self.users[v], self.dst_users[v]) for v in w.touched] for w in self.variants]
        self._add_instances()

    def _add_instances(self) -> None:
        """Further instances of leaves that several ops may destroy: loaded together they share one init.

        An instance is a bit after those of the values; the highest one in DST is destroyed first.
        """
        self.instances: dict[int, tuple[int, ...]] = {}  # leaf -> bits of its further instances, ascending
        self.leaf_of_instance: dict[int, int] = {}  # position of the bit -> leaf
        self.all_instances = 0
        destroyers: dict[int, set[int]] = {}
        for variant in self.variants:
            if variant.destroys & self.buffered:
                destroyers.setdefault(variant.destroys.bit_length() - 1, set()).add(variant.op)
        for leaf, ops in destroyers.items():
            destroying = mask_of([self.problem.result_of(op) for op in ops])
            also_kept = self.outputs >> leaf & 1 or self.dst_users[leaf] & ~destroying
            count = min(len(ops) + bool(also_kept), self.problem.capacity) - 1
            first = self.problem.value_count + len(self.leaf_of_instance)
            self.instances[leaf] = tuple(1 << first + i for i in range(count))
            self.leaf_of_instance.update((first + i, leaf) for i in range(count))
            self.all_instances |= sum(self.instances[leaf])

    def _never_beaten(self) -> list[bool]:
        """Per variant: no other way to run its op costs less, whatever is in DST, and nobody may absorb it."""
        absorbable = 0
        for variant in self.variants:
            if variant.executes.bit_count() > 1:
                absorbable |= variant.executes
        least = {op: min([w.math for w in variants], default=0) for op, variants in self.of_op.items()}
        return [w.math == least[w.op] and not w.executes & absorbable for w in self.variants]

    def leaves_worth_a_copy(self, tiles: int, *, inits: bool) -> int:
        """Leaves whose second instance may be cheaper by a copy in DST than by a load and its init."""
        prices = self.init_prices if inits else [0]
        worth = 0
        for leaf in bits(self.buffered):
            saved = (prices[self.load_init[leaf]] if inits else 0) + max(prices)
            if (self.copy_math - self.load_math[leaf]) * tiles < saved:
                worth |= 1 << leaf
        return worth

    def _needed_ops(self) -> list[int]:
        """Ops an output depends on, in source order; what nobody packs is not computed."""
        ops, buffered, first = self.problem.ops, self.buffered, self.leaf_count
        wanted: set[int] = set()
        pending = [value for value in self.output_list if not buffered >> value & 1]
        while pending:
            op = pending.pop() - first
            if op not in wanted:
                wanted.add(op)
                pending += [value for value in ops[op].operands if not buffered >> value & 1]
        return sorted(wanted)

    def _init(self, key: str, cycles: int) -> int:
        number = self.init_names.get(key)
        if number is None:
            number = self.init_names[key] = len(self.init_prices)
            self.init_prices.append(cycles)
        return number

    def _variants_of(self, op: int) -> list[Variant]:
        found: list[Variant] = []
        for number, form in enumerate(self.problem.ops[op].forms):
            absorbs = form.absorbs
            if absorbs and not self._may_absorb(op, absorbs):
                continue
            # What others want too may be wanted in another part only: here the form computes it for itself alone.
            if form.repeats and self._may_absorb(op, form.repeats):
                absorbs = (*absorbs, *form.repeats)
            variant = self._variant(op, number, len(self.variants) + len(found), form, absorbs)
            if self.cuts or not variant.in_buffer & ~self.buffered:
                found.append(variant)
        return found

    def _may_absorb(self, op: int, inner: Sequence[int]) -> bool:
        """An absorbed op must be ours to compute, feed only this op, and not be an output."""
        results = [self.problem.result_of(absorbed) for absorbed in inner]
        inside = mask_of(results) | 1 << self.problem.result_of(op)
        wanted = self.all_results & ~self.outputs
        return all(wanted >> value & 1 and not self.users[value] & ~inside for value in results)

    def _variant(self, op: int, number: int, index: int, form: Form, absorbs: tuple[int, ...]) -> Variant:
        problem, first = self.problem, self.leaf_count
        in_dst = in_buffer = 0
        for operand in form.operands:
            if operand.place is Place.DST:
                in_dst |= 1 << operand.value
            else:
                in_buffer |= 1 << operand.value
        result = executes = 1 << first + op
        touched, needed = problem.ops[op].operands, in_dst | in_buffer
        if absorbs:
            touched = tuple(value for i in (*absorbs, op) for value in problem.ops[i].operands)
            executes |= mask_of([first + i for i in absorbs])
        if form.repeats:  # such an op comes first although nobody reads its result here: bounds may go by the order of the ops
            needed |= mask_of([first + i for i in form.repeats if i not in absorbs])
        reused = None if form.reuses is None else form.operands[form.reuses].value
        return Variant(
            index,
            op,
            number,
            executes,
            result,
            first + op,
            needed & ~self.buffered,
            in_dst,
            in_buffer,
            0 if reused is None else 1 << reused,
            _RULES[form.result],
            tuple(dict.fromkeys(touched)),
            form.math_cycles,
            form.unpack_cycles,
            self._init(form.init, form.init_cycles),
            form.init_cycles,
        )


def dependents(users: Sequence[int]) -> list[int]:
    """Per value, the results that depend on it; ``users`` are the results of the ops that use it."""
    found = [0] * len(users)
    for value in range(len(users) - 1, -1, -1):
        for user in bits(users[value]):
            found[value] |= 1 << user | found[user]
    return found


def mask_of(values: Iterable[int]) -> int:
    mask = 0
    for value in values:
        mask |= 1 << value
    return mask


# Sets of executed ops -------------------------------------------------------------------------------------------------


class ExecutedSets:
    """Known sets, from the empty one on; a set is the mask of the results of its ops."""

    def __init__(self, model: Model):
        self.model = model
        self.ready: dict[int, list[Variant]] = {0: [w for w in model.variants if not w.needs]}
        self.waiting: dict[int, int] = {0: 0}  # results an op to come uses, or that are packed
        kept = model.buffered | model.outputs
        # Per variant: results that may die with it, and the ops that use them.
        self.dying_uses = [[(bit, users) for bit, users, _ in uses if not bit & kept] for uses in model.uses]

    def after(self, executed: int, variant: Variant) -> int:
        """The set with ``variant`` run after a known set."""
        after = executed | variant.executes
        if after in self.ready:
            return after
        left = ~after
        ready = [other for other in self.ready[executed] if not other.executes & after]
        for value in bits(variant.executes):
            ready += [other for other in self.model.needing[value] if not (other.needs & left or other.executes & after)]
        self.ready[after] = ready
        waiting = self.waiting[executed] & ~self.dying(variant, after)
        if self.model.users[variant.value] & left or variant.result & self.model.outputs:
            waiting |= variant.result
        self.waiting[after] = waiting
        return after

    def dying(self, variant: Variant, after: int) -> int:
        """Results nobody uses any more once ``after`` is executed, among those ``variant`` uses."""
        left = ~after
        dying = 0
        for bit, users in self.dying_uses[variant.index]:
            if not users & left:
                dying |= bit
        return dying
