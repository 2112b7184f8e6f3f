"""The least slots a tile needs in any order: where even this does not fit, no search for cycles has to be tried.

Only results that wait take a slot from op to op here; leaves are loaded for one op and gone after it, and any slot is as good as
an unwritten one. So the answer is a lower bound, and cheap: an op that leaves no more values waiting than before can always
run at once, and only the others are tried in every order.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.dst.model import IN_PLACE, ZEROED, Model, Variant, bits

WORK = 20_000  # states looked at


@dataclass(slots=True, eq=False)
class _Step:
    """An op, or several that one form runs, in every form that runs just these."""

    executes: int
    waits: int  # the bit of the result, if anything waits for it
    uses: tuple[tuple[int, int], ...]  # results that may die here, with the ops that use them
    forms: tuple[tuple[int, int, int], ...]  # slots for loads, slots at most besides, results one of which dies if fewer


State = tuple[int, int, list[_Step]]  # ops executed, results that wait, what can run


class Pressure:
    """``least_slots`` of one region."""

    def __init__(self, model: Model):
        self.model = model
        self.work = WORK
        self.start: list[_Step] = []
        self.needing: list[list[tuple[int, _Step]]] = [[] for _ in range(model.problem.value_count)]
        together: dict[int, list[Variant]] = {}
        for variant in model.variants:
            together.setdefault(variant.executes, []).append(variant)
        for variants in together.values():
            self._add(variants)

    def _add(self, variants: list[Variant]) -> None:
        model, first = self.model, variants[0]
        step = _Step(
            executes=first.executes,
            waits=first.result if model.users[first.value] or first.result & model.outputs else 0,
            uses=tuple(
                (1 << value, model.users[value])
                for value in first.touched
                if not 1 << value & (model.buffered | model.outputs)
            ),
            forms=tuple({self._room(variant) for variant in variants}),
        )
        needs = first.needs
        for variant in variants:
            needs &= variant.needs
        if not needs:
            self.start.append(step)
        for value in bits(needs):
            self.needing[value].append((needs, step))

    def _room(self, variant: Variant) -> tuple[int, int, int]:
        loads = variant.in_dst & self.model.buffered
        if variant.rule == ZEROED:
            return loads.bit_count(), 1, 0
        reused = variant.destroys if variant.rule == IN_PLACE else variant.in_dst
        return loads.bit_count(), 0 if reused & loads else 1, reused

    def least_slots(self, at_least: int) -> int:
        """As many as are needed, or as many as could be proved to be needed."""
        slots = at_least
        seen: set[int] = set()
        pending: list[State] = [(0, 0, self.start)]
        while slots < self.model.problem.capacity:
            blocked: list[State] = []
            if self._reaches_the_end(pending, blocked, seen, slots):
                break
            pending = blocked
            slots += 1
        return slots

    def _reaches_the_end(self, pending: list[State], blocked: list[State], seen: set[int], slots: int) -> bool:
        """Go on from all pending states; those with something that needs more slots are ``blocked``."""
        goal = self.model.all_results
        settled = [(state[0], self._settled(state, slots)) for state in pending]
        pending = [after for before, after in settled if after[0] == before or self._is_new(after, seen)]
        while pending:
            state = pending.pop()
            executed, waiting, ready = state
            self.work -= 1
            if executed == goal or self.work <= 0:
                return True
            held = waiting.bit_count()
            found: list[tuple[int, State]] = []
            stuck = False
            for step in ready:
                dying = _dying(step, executed, waiting)
                if not _fits(step, held, dying, slots):
                    stuck = True
                    continue
                after = self._settled(self._after(state, step, dying), slots)
                if self._is_new(after, seen):
                    found.append((after[1].bit_count(), after))
            found.sort(key=lambda row: -row[0])  # least waiting is looked at first
            pending.extend(after for _, after in found)
            if stuck:
                blocked.append(state)
        return False

    @staticmethod
    def _is_new(state: State, seen: set[int]) -> bool:
        if state[0] in seen:
            return False
        seen.add(state[0])
        return True

    def _settled(self, state: State, slots: int) -> State:
        """After all ops that leave no more values waiting than before them."""
        moved = True
        while moved:
            moved = False
            for step in state[2]:
                executed, waiting, _ = state
                if step.executes & executed:
                    continue
                dying = _dying(step, executed, waiting)
                if (dying or not step.waits) and _fits(step, waiting.bit_count(), dying, slots):
                    state = self._after(state, step, dying)
                    moved = True
        return state

    def _after(self, state: State, step: _Step, dying: int) -> State:
        executed = state[0] | step.executes
        ready = [other for other in state[2] if not other.executes & executed]
        for value in bits(step.executes):
            for needs, other in self.needing[value]:
                if not (needs & ~executed or other.executes & executed):
                    ready.append(other)
        return executed, state[1] & ~dying | step.waits, ready


def _dying(step: _Step, executed: int, waiting: int) -> int:
    left = ~(executed | step.executes)
    dying = 0
    for bit, users in step.uses:
        if bit & waiting and not users & left:
            dying |= bit
    return dying


def _fits(step: _Step, held: int, dying: int, slots: int) -> bool:
    return any(held + loads + (0 if dying & reused else further) <= slots for loads, further, reused in step.forms)
