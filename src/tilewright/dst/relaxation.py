"""The region with all leaves alike: a simpler problem whose answers never cost more, small enough to be solved to the end.

What waits in DST depends only on the ops executed, so slots are counted as they are. Of the leaves in DST only numbers are
kept: those no op can have used yet (*fresh*) serve any op, the others (*known*) only ops whose leaf may have been used before.
Which slots were written does not matter. Few sets of ops can have been executed, and ops that can run at once without loss
leave still fewer. ``relaxed_bound.py`` finds the cheapest way on from each.
"""

from __future__ import annotations

from tilewright.dst.executed import ExecutedSets
from tilewright.dst.model import IN_PLACE, ZEROED, Model, Variant, bits

# One op in one form, after a set of ops (plain tuples: they are made by the hundred):
Step = tuple[
    int,  # its init
    int,  # its cycles, with the copy and with all ops that run at once afterwards
    bool,  # whether it copies
    int,  # leaves it uses in DST that no op can have used before
    int,  # all leaves it uses in DST
    int,  # slots it takes besides leaves and what waits, while it runs
    int,  # how many of its leaves are not in DST any more
    int,  # results that wait right after it
    int,  # ops executed when all that runs at once has run
    int,  # more leaves in DST than that are of no use then
]

# A leaf that a variant uses in DST: its bit, ops that may use it from DST (for ever if it is packed), ops that may and keep it.
Use = tuple[int, int, int]


class Relaxation:
    """Steps of the simpler problem, for all slot budgets."""

    def __init__(self, model: Model, sets: ExecutedSets):
        self.model = model
        self.sets = sets
        self.copied_leaves = model.leaves_worth_a_copy(1, inits=True)
        load_inits = {model.load_init[leaf] for leaf in bits(model.buffered)}
        self.load_init = load_inits.pop() if len(load_inits) == 1 else 0  # 0: several, and none is counted
        self.load_cycles = min((model.load_math[leaf] for leaf in bits(model.buffered)), default=0)
        self.leaf_outputs = (model.outputs & model.buffered).bit_count()
        self.beaten, self.beaten_if_dying = self._beaten()
        self.variants = [w for w in model.variants if not self.beaten[w.index]]
        self.keepers = self._keepers()
        self.uses = [[self._use(leaf) for leaf in bits(w.in_dst & model.buffered)] for w in model.variants]
        most = max((len(uses) for uses in self.uses), default=0)
        self.users_of_leaves = [0] * most  # ops that may use at least one leaf in DST, two, ...
        for variant in self.variants:
            for count in range(len(self.uses[variant.index])):
                self.users_of_leaves[count] |= variant.executes
        self.at_once = [
            best and w.rule != ZEROED and not w.in_dst & model.buffered
            for w, best in zip(model.variants, model.never_beaten, strict=True)
        ]
        self.known_steps: dict[int, list[Step]] = {}
        self.known_fresh: dict[int, int] = {}
        self.known_useful: dict[int, int] = {}
        self.settled: dict[tuple[int, int], tuple[int, int]] = {}

    def _beaten(self) -> tuple[list[bool], list[int]]:
        """Per variant: whether another one always costs less, and values that must outlive it so that none does.

        The other one needs no more values in DST and no slot besides; what it may cost are its init, a switch back, and a load of
        the leaf it destroys.
        """
        model = self.model
        beaten, if_dying = [False] * len(model.variants), [0] * len(model.variants)
        dearest = max(model.init_prices)
        reload = self.load_cycles + model.init_prices[self.load_init] + dearest if self.load_init else 1 << 30
        for variants in model.of_op.values():
            for one in variants:
                if one.rule == ZEROED:
                    continue
                switches = model.init_prices[one.init] + dearest
                for other in variants:
                    saved = other.math - one.math - switches
                    if saved <= 0 or one.executes != other.executes or one.in_dst & ~other.in_dst:
                        continue
                    if one.destroys & self._may_outlive(one):
                        if_dying[other.index] |= one.destroys
                    elif not one.destroys & model.buffered or saved > reload:
                        beaten[other.index] = True
        return beaten, if_dying

    def _may_outlive(self, variant: Variant) -> int:
        """The result a variant destroys, if others use it too: it must be copied unless they have run."""
        destroyed = variant.destroys & ~self.model.buffered
        used_by_others = destroyed and self.model.users[destroyed.bit_length() - 1] & ~variant.executes
        return destroyed if used_by_others or destroyed & self.model.outputs else 0

    def _keepers(self) -> dict[int, int]:
        keepers = dict.fromkeys(bits(self.model.buffered), 0)
        for variant in self.variants:
            for leaf in bits(variant.in_dst & self.model.buffered & ~(variant.destroys & ~self.copied_leaves)):
                keepers[leaf] |= variant.executes
        return keepers

    def _use(self, leaf: int) -> Use:
        bit = 1 << leaf
        return bit, -1 if bit & self.model.outputs else self.model.dst_users[leaf], self.keepers[leaf]

    def useful_leaves(self, executed: int) -> int:
        """More leaves in DST than that are of no use."""
        known = self.known_useful.get(executed)
        if known is None:
            left = ~executed
            known = self.leaf_outputs
            for ops in self.users_of_leaves:
                known += (ops & left).bit_count()
            self.known_useful[executed] = known
        return known

    def fresh_leaves(self, executed: int) -> int:
        """Leaves, and further instances of them, that no op of the set can have used and kept."""
        known = self.known_fresh.get(executed)
        if known is None:
            known = 0
            for leaf, keepers in self.keepers.items():
                if not keepers & executed:
                    known |= 1 << leaf | sum(self.model.instances.get(leaf, ()))
            self.known_fresh[executed] = known
        return known

    def settle(self, executed: int, init: int) -> tuple[int, int]:
        """The set after all ops that run at once under ``init``, and their cycles.

        Such an op replaces a value that dies with it, so running it later cannot cost less.
        """
        known = self.settled.get((executed, init))
        if known is not None:
            return known
        sets, now, cycles = self.sets, executed, 0
        variant = self._next_at_once(now, init)
        while variant is not None:
            now = sets.after(now, variant)
            cycles += variant.math
            variant = self._next_at_once(now, init)
        self.settled[(executed, init)] = now, cycles
        return now, cycles

    def _next_at_once(self, executed: int, init: int) -> Variant | None:
        for variant in self.sets.ready[executed]:
            if self.at_once[variant.index] and (not variant.init or variant.init == init):
                dying = self.sets.dying(variant, executed | variant.executes)
                if dying & variant.destroys if variant.rule == IN_PLACE else dying:
                    return variant
        return None

    def steps(self, executed: int) -> list[Step]:
        """What can come next; equal steps once."""
        known = self.known_steps.get(executed)
        if known is not None:
            return known
        steps: dict[Step, None] = {}
        sets, buffered = self.sets, self.model.buffered
        for variant in sets.ready[executed]:
            index = variant.index
            if self.beaten[index]:
                continue
            after = executed | variant.executes
            dying = sets.dying(variant, after)
            if dying & self.beaten_if_dying[index]:
                continue
            sets.after(executed, variant)
            left = ~after
            gone = fresh = 0
            for bit, users, keepers in self.uses[index]:
                if not keepers & executed:
                    fresh += 1
                if not users & left:
                    gone |= bit
            if variant.rule != IN_PLACE:
                steps[self._step(variant, after, False, fresh, gone, int(variant.rule == ZEROED))] = None
            elif not variant.destroys & buffered:
                copies = not variant.destroys & dying
                steps[self._step(variant, after, copies, fresh, gone, int(copies))] = None
            else:
                steps[self._step(variant, after, False, fresh, gone | variant.destroys, 0)] = None
                if variant.destroys & self.copied_leaves & ~gone:
                    steps[self._step(variant, after, True, fresh, gone, 1)] = None
        known = self.known_steps[executed] = list(steps)
        return known

    def _step(self, variant: Variant, after: int, copies: bool, fresh: int, gone: int, room: int) -> Step:
        cycles, settled = variant.math, after
        init = variant.init
        if copies:
            cycles += self.model.copy_math
            init = init or self.model.copy_init
        if init:
            settled, more = self.settle(after, init)
            cycles += more
        leaves, waiting = len(self.uses[variant.index]), self.sets.waiting[after].bit_count()
        useful = self.useful_leaves(settled)
        return (variant.init, cycles, copies, fresh, leaves, room, gone.bit_count(), waiting, settled, useful)
