"""The moves of the search: what can happen next in a state, what it costs and which state it leads to.

A state is (ops executed, values held in DST, slots written since the acquire, init in force, values in buffers,
outputs to pack). Values that wait are always held; a leaf in DST may be dropped at any time and loaded again. The
slots themselves do not matter: all are alike except that some results need one nobody has written, so their number is
enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple, cast

from tilewright.dst.model import COPY_TIE, COST_SHIFT, IN_PLACE, SWITCH_TIE, ZEROED, ExecutedSets, Model, Variant, bits
from tilewright.records import record

State = tuple[int, int, int, int, int, int]  # executed, held, dirty, init, buffered, outputs to pack


class Move(NamedTuple):
    """What happens between two states, in this order: drop, load, copy, execute, drop for the result; or a cut."""

    variant: Variant | None = None
    dropped: int = 0
    loads: int = 0
    copies: bool = False
    dropped_for_result: int = 0
    held: int = 0  # values in DST afterwards
    spills: int = 0
    packs: int = 0
    is_cut: bool = False


# A named tuple from all its values. They are made by the ten thousand, in half the time of a call with defaults.
made = cast(Callable[[type[Move], tuple[Any, ...]], Move], tuple.__new__)  # pyright: ignore[reportUnknownMemberType]

Successor = tuple[int, int, State, Move]  # cost without inits, cost of inits, next state, how


@record
class Options:
    """Which freedom the search has."""

    slots: int
    tiles: int  # U: what inits are divided by
    inits: bool = False  # count init switches exactly (loads become moves of their own)
    recompute: bool = False  # values may be dropped and computed again
    cuts: bool = False  # the region may be split
    cut_cost: int = 0  # math cycles per cut
    spill_cost: int = 0  # math cycles per spilled value
    work_limit: int = 200_000  # states and successors the search may look at

    @property
    def scale(self) -> int:
        return self.tiles << COST_SHIFT


class MoveGenerator:
    def __init__(self, model: Model, options: Options, sets: ExecutedSets):
        self.model = model
        self.options = options
        self.recomputes = options.recompute
        self.inits = options.inits
        self.slots = options.slots
        self.scale = options.scale
        self.sets = sets
        self.ready_of = self.sets.ready
        # A recomputed result may need an unwritten slot again, so none is ever done with then.
        self.zeroed_results = model.zeroed_results
        self.never_done = model.zeroed_results if options.recompute else 0
        self.prices = [w.math * self.scale for w in model.variants]
        self.init_prices = [(w.init_cycles << COST_SHIFT) + SWITCH_TIE for w in model.variants]
        self.load_prices: dict[int, int] = {}  # of leaves together
        self.copy_price = model.copy_math * self.scale + COPY_TIE
        self.users = model.users
        self.instances = {1 << leaf: sum(further) for leaf, further in model.instances.items()} if options.inits else {}
        self.copied_leaves = model.leaves_worth_a_copy(options.tiles, inits=options.inits)
        self.extra = model.all_instances if options.inits else 0
        self.again = self._cycles_again() if options.recompute else []
        self.uses = model.uses

    def _cycles_again(self) -> list[int]:
        """Per value: math cycles at least to compute it from the buffers once more."""
        model = self.model
        cycles = [0] * model.problem.value_count
        for variant in sorted(model.variants, key=lambda w: w.value):
            price = variant.math + sum(cycles[value] for value in bits(variant.needs))
            cycles[variant.value] = min(price, cycles[variant.value] or price)
        return cycles

    def _droppable(self, held: int, buffered: int) -> int:
        """Values that may leave DST: leaves can be loaded again, results only computed."""
        return held if self.recomputes else held & (buffered | self.extra)

    def _unwritten_matter(self, executed: int) -> bool:
        """Whether a result to come may need a slot nobody has written."""
        return bool(self.zeroed_results & ~executed | self.never_done)

    def successors(self, state: State, last_load: int = 0) -> list[Successor]:
        """What can happen next; right after a load, loads of lower bits are left out: they could have gone before it."""
        executed, held, _, _, buffered, pending = state
        result: list[Successor] = []
        inits = self.options.inits
        room = self.slots - (held & ~self._droppable(held, buffered)).bit_count()  # for loads, at most
        for variant in self.ready_of[executed]:
            missing = variant.in_dst & ~held
            if missing and (inits or missing & ~buffered or missing.bit_count() > room):
                continue
            if not variant.in_buffer & ~buffered:
                self.execute(state, variant, executed | variant.executes, result)
        if inits:
            self._loads(state, buffered & ~held & ~(last_load - 1 if last_load else 0), last_load, result)
        elif pending & buffered & ~held:
            self._loads(state, pending & buffered & ~held, 0, result)
        if self.options.recompute:
            self._recompute(state, result)
        if self.options.cuts and held:
            self._cut(state, result)
        return result

    def execute(self, state: State, variant: Variant, executed: int, result: list[Successor]) -> None:
        """Append all ways to run ``variant`` now. ``executed`` is the set afterwards."""
        _, held, dirty, _, buffered, pending = state
        missing = variant.in_dst & ~held
        if missing and (self.inits or missing & ~buffered):
            return
        present, left, rule = held | missing, ~executed, variant.rule
        dying = 0
        for bit, users, dst_users in self.uses[variant.index]:
            if present & bit and not bit & pending and not (dst_users if bit & buffered else users) & left:
                dying |= bit | held & self.instances.get(bit, 0)
        copy = rule == IN_PLACE and not variant.destroys & (dying | buffered)
        plain = not missing and not copy and (rule == IN_PLACE or (dying and rule != ZEROED))
        if plain:
            kept = held & ~(dying | self._destroyed(variant, held) if rule == IN_PLACE else dying)
            if not (self.zeroed_results & left or self.never_done):
                dirty = 0
            self._add(state, variant, executed, kept, dirty, False, NO_CHANGES, result)
        else:
            self._with_room(state, variant, executed, missing, dying, copy, result)
        if copy and self.recomputes:
            self._with_room(state, variant, executed, missing, dying, False, result)
        if variant.destroys & self.copied_leaves & ~dying:
            self._with_room(state, variant, executed, missing, dying, True, result)

    def _destroyed(self, variant: Variant, held: int) -> int:
        """The instance an in-place op overwrites: the highest one of a leaf."""
        further = held & self.instances.get(variant.destroys, 0)
        return 1 << further.bit_length() - 1 if further else variant.destroys

    def _add(
        self,
        state: State,
        variant: Variant,
        executed: int,
        kept: int,
        dirty: int,
        copy: bool,
        changes: tuple[int, int, int],
        result: list[Successor],
    ) -> None:
        """Append one successor; ``changes`` are the values dropped, loaded, and dropped for the result."""
        before, _, _, init, buffered, pending = state
        held = kept | variant.result if self.users[variant.value] & ~executed or variant.result & (pending | before) else kept
        dropped, loads, dropped_for_result = changes
        price, init_price = self.prices[variant.index], 0
        if loads:
            price += self.load_prices.get(loads) or self._load_price(loads)
        if copy:
            price += self.copy_price
        if self.inits:
            if copy:
                init_price, init = self._init_price(variant, copy, init)
            elif variant.init and variant.init != init:
                init_price, init = self.init_prices[variant.index], variant.init
        if executed not in self.ready_of:
            self.sets.after(before, variant)
        move = made(Move, (variant, dropped, loads, copy, dropped_for_result, held, 0, 0, False))
        result.append((price, init_price, (executed, held, dirty, init, buffered, pending), move))

    def _with_room(
        self,
        state: State,
        variant: Variant,
        executed: int,
        missing: int,
        dying: int,
        copy: bool,
        result: list[Successor],
    ) -> None:
        """Find slots for loads, copy and result, dropping leaves where that is needed or saves an unwritten slot."""
        _, held, dirty, _, buffered, _ = state
        slots, zeroed = self.slots, variant.rule == ZEROED
        if zeroed and dirty >= slots:
            return  # a written slot stays written
        occupied = held.bit_count()
        new = missing.bit_count() + copy
        most = least = occupied + new - slots if occupied + new > slots else 0
        droppable = self._droppable(held, buffered) & ~variant.in_dst
        unwritten_matter = self.zeroed_results & ~executed or self.never_done
        if droppable:
            spare = droppable.bit_count()
            if least > spare:
                return
            if unwritten_matter or zeroed:
                most = max(least, min(spare, occupied + new - dirty))
        elif least:
            return
        destroyed = self._destroyed(variant, held) if variant.rule == IN_PLACE and not copy else 0
        if not most:  # all fits: mostly the result has its place, or one place that is as good as any other
            kept, in_use = (held | missing) & ~(dying | destroyed), occupied + new
            changes = (0, missing, 0) if missing else NO_CHANGES
            now_dirty = dirty if dirty > in_use else in_use
            if zeroed:
                now_dirty += 1
                if now_dirty > slots:
                    return
            elif not dying and variant.rule != IN_PLACE:
                if in_use >= slots or (now_dirty == in_use and unwritten_matter):
                    for dropped_for_result, final_dirty in self._result_places(
                        variant, kept, in_use, now_dirty, False, buffered, executed
                    ):
                        changes = (0, missing, dropped_for_result)
                        final_dirty = final_dirty if unwritten_matter else 0
                        self._add(state, variant, executed, kept & ~dropped_for_result, final_dirty, copy, changes, result)
                    return
                if now_dirty == in_use:
                    now_dirty += 1
            self._add(state, variant, executed, kept, now_dirty if unwritten_matter else 0, copy, changes, result)
            return
        for count in range(least, most + 1):
            in_use = occupied - count + new
            now_dirty = max(dirty, in_use)
            for dropped in _subsets(droppable, count) if count else NOTHING:
                kept = (held | missing) & ~(dropped | dying | destroyed)
                places = self._result_places(variant, kept, in_use, now_dirty, bool(dying & ~dropped), buffered, executed)
                for dropped_for_result, final_dirty in places:
                    if not unwritten_matter:
                        final_dirty = 0
                    changes = (dropped, missing, dropped_for_result)
                    self._add(state, variant, executed, kept & ~dropped_for_result, final_dirty, copy, changes, result)

    def _result_places(
        self, variant: Variant, kept: int, in_use: int, dirty: int, dies: bool, buffered: int, executed: int
    ) -> Sequence[tuple[int, int]]:
        """(leaf dropped for the result, slots written afterwards) for every place the result may take."""
        if variant.rule == ZEROED:
            return [(0, dirty + 1)] if dirty < self.slots else ()
        if variant.rule == IN_PLACE or dies:
            return [(0, dirty)]
        untouched = [(0, max(dirty, in_use + 1))] if in_use < self.slots else []
        if untouched and (dirty > in_use or not self._unwritten_matter(executed)):
            return untouched
        return untouched + [(1 << value, dirty) for value in bits(self._droppable(kept, buffered))]

    def _load_price(self, loads: int) -> int:
        price = self.load_prices[loads] = sum(self.model.load_math[value] for value in bits(loads)) * self.scale
        return price

    def _init_price(self, variant: Variant, copy: bool, init: int) -> tuple[int, int]:
        """Scaled cost of the inits that copy and op switch to, and the init in force afterwards."""
        model = self.model
        price = 0
        if copy and model.copy_init and init != model.copy_init:
            init = model.copy_init
            price = (model.init_prices[init] << COST_SHIFT) + SWITCH_TIE
        if variant.init and variant.init != init:
            init = variant.init
            price += (variant.init_cycles << COST_SHIFT) + SWITCH_TIE
        return price, init

    def _loads(self, state: State, leaves: int, last_load: int, result: list[Successor]) -> None:
        """Loads as moves of their own: of leaves that are outputs, and of all where the order of inits counts."""
        executed, held, _, _, _, pending = state
        model = self.model
        for value in bits(leaves):
            if model.dst_users[value] & ~executed or pending >> value & 1:
                self._load(state, value, 1 << value, result)
        if self.extra:
            for leaf, further in model.instances.items():
                left = (model.dst_users[leaf] & ~executed).bit_count()
                loaded = (held & self.instances[1 << leaf]).bit_count()
                if not held >> leaf & 1 or loaded >= len(further) or further[loaded] < last_load:
                    continue
                if loaded < left - 1 + (pending >> leaf & 1):
                    self._load(state, leaf, further[loaded], result)

    def _load(self, state: State, leaf: int, bit: int, result: list[Successor]) -> None:
        """Load ``leaf`` as the instance ``bit``."""
        executed, held, dirty, init, buffered, pending = state
        model = self.model
        in_use = held.bit_count()
        price = model.load_math[leaf] * self.scale
        init_price, next_init = 0, init
        if self.options.inits and model.load_init[leaf] and model.load_init[leaf] != init:
            next_init = model.load_init[leaf]
            init_price = (model.init_prices[next_init] << COST_SHIFT) + SWITCH_TIE
        unwritten_matter = self._unwritten_matter(executed)
        if in_use < self.slots:
            now_dirty = max(dirty, in_use + 1) if unwritten_matter else 0
            after = (executed, held | bit, now_dirty, next_init, buffered, pending)
            result.append((price, init_price, after, Move(None, 0, bit, False, 0, after[1])))
            if dirty > in_use or not unwritten_matter:
                return
        for other in bits(held & (buffered | self.extra)):
            if not self._keeps_order(held, other):
                continue
            after = (executed, held & ~(1 << other) | bit, dirty, next_init, buffered, pending)
            result.append((price, init_price, after, Move(None, 1 << other, bit, False, 0, after[1])))

    def _keeps_order(self, held: int, value: int) -> bool:
        """A leaf is dropped from its highest instance down."""
        return not held & self.instances.get(1 << value, 0)

    def _recompute(self, state: State, result: list[Successor]) -> None:
        """Run again the ops whose results were dropped and are still wanted, directly or for one another."""
        executed, held, _, _, buffered, pending = state
        model = self.model
        wanted = [
            value
            for value in bits(executed & ~held & ~buffered)
            if pending >> value & 1 or model.users[value] & ~executed & model.all_results
        ]
        seen: set[int] = set()
        while wanted:
            value = wanted.pop()
            if value in seen:
                continue
            seen.add(value)
            op = model.problem.op_of(value)
            for variant in model.of_op[op]:
                if variant.executes.bit_count() == 1 and not variant.in_buffer & ~buffered:
                    self.execute(state, variant, executed, result)
            wanted.extend(o for o in model.problem.ops[op].operands if not (held | buffered) >> o & 1)

    def _cut(self, state: State, result: list[Successor]) -> None:
        """Pack all that waits, release DST and go on in a new part."""
        executed, held, _, _, buffered, pending = state
        model, options = self.model, self.options
        spills = 0
        for value in bits(held & ~buffered):
            if model.users[value] & ~executed:
                spills |= 1 << value
        packs = pending & held
        occupied = buffered & ~model.buffered  # what this part may read keeps its buffer until the part has ended
        beyond = (occupied | spills).bit_count() - model.problem.spill_limit
        if beyond > 0:
            if not options.recompute or beyond > spills.bit_count():
                return
            for value in sorted(bits(spills), key=self.again.__getitem__)[:beyond]:
                spills ^= 1 << value  # computed once more in the next part
        price = (options.cut_cost + options.spill_cost * spills.bit_count()) * self.scale
        for value in bits(occupied):
            if not model.users[value] & ~executed:
                buffered ^= 1 << value  # its buffer is free for others
        after = (executed, 0, 0, 0, buffered | spills, pending & ~packs)
        result.append((price, 0, after, Move(spills=spills, packs=packs, is_cut=True)))


NOTHING = (0,)  # the one subset without a bit
NO_CHANGES = (0, 0, 0)


def _subsets(mask: int, count: int) -> Iterator[int]:
    """All subsets of ``mask`` with ``count`` bits, as masks; at least one."""
    for group in combinations(tuple(bits(mask)), count):
        yield sum(1 << value for value in group)
