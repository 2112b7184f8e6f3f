"""The sets of ops that can have been executed: what can run next, and which results wait in DST. All slot budgets share them."""

from __future__ import annotations

from tilewright.dst.model import Model, Variant, bits


class ExecutedSets:
    """Known sets, from the empty one on; a set is the mask of the results of its ops."""

    def __init__(self, model: Model):
        self.model = model
        self.ready: dict[int, list[Variant]] = {0: [w for w in model.variants if not w.needs]}
        self.waiting: dict[int, int] = {0: 0}  # results an op to come uses, or that are packed
        self._enabled = [[w for value in bits(v.executes) for w in model.needing[value]] for v in model.variants]
        kept = model.buffered | model.outputs
        # Per variant: results that may die with it, and the ops that use them.
        self.dying_uses = [
            [(1 << value, model.users[value]) for value in variant.touched if not kept >> value & 1]
            for variant in model.variants
        ]

    def after(self, executed: int, variant: Variant) -> int:
        """The set with ``variant`` run after a known set."""
        after = executed | variant.executes
        if after in self.ready:
            return after
        left = ~after
        ready = [other for other in self.ready[executed] if not other.executes & after]
        for other in self._enabled[variant.index]:
            if not (other.needs & left or other.executes & after):
                ready.append(other)
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
