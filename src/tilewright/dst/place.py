"""From the moves of a search to steps on numbered slots.

A load, a copy or a free result takes a slot that was written before if there is one, so that untouched slots last for
the results that need them; a result prefers the slot of an operand that dies with the op.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.dst.allocation import Copy, Execute, Load, Step
from tilewright.dst.model import IN_PLACE, ZEROED, Model, Variant, bits
from tilewright.dst.moves import Move
from tilewright.dst.problem import Place


class Placement:
    """Slots of one part while its moves are replayed."""

    def __init__(self, model: Model):
        self.model = model
        self.problem = model.problem
        self.slot_of: dict[int, int] = {}
        self.written: set[int] = set()  # slots that are dirty and hold nothing
        self.used = 0
        self.steps: list[Step] = []

    def take(self) -> int:
        if self.written:
            slot = min(self.written)
            self.written.remove(slot)
            return slot
        return self.take_untouched()

    def take_untouched(self) -> int:
        self.used += 1
        return self.used - 1

    def drop(self, mask: int) -> None:
        for value in bits(mask):
            self.written.add(self.slot_of.pop(value))

    def replay(self, move: Move) -> None:
        self.drop(move.dropped)
        variant = move.variant
        for value in self._load_order(move):
            slot = self.take()
            self.slot_of[value] = slot
            self.steps.append(Load(self.model.leaf_of_instance.get(value, value), slot))
        if variant is not None:
            self._execute(move, variant)

    def _load_order(self, move: Move) -> list[int]:
        if move.variant is None:
            return list(bits(move.loads))
        form = self.problem.ops[move.variant.op].forms[move.variant.form]
        return [v for v in dict.fromkeys(o.value for o in form.operands) if move.loads >> v & 1]

    def _execute(self, move: Move, variant: Variant) -> None:
        form = self.problem.ops[variant.op].forms[variant.form]
        slots = [self.slot_of[o.value] if o.place is Place.DST else None for o in form.operands]
        overwritten = -1
        if form.reuses is not None:
            # Only the operand that is overwritten reads the copy, or the further instance of a leaf.
            overwritten = self._overwritten_slot(move, variant)
            slots[form.reuses] = overwritten
        gone = [value for value in self.slot_of if not move.held >> value & 1]
        freed = [self.slot_of.pop(value) for value in gone]
        if variant.rule == IN_PLACE:
            target = overwritten
        elif variant.rule == ZEROED:
            target = self.take_untouched()
        else:
            target = self._free_target(freed, slots)
        self.written.update(slot for slot in freed if slot != target)
        self.written.discard(target)
        self.steps.append(Execute(variant.op, variant.form, tuple(slots), target))
        result = variant.result.bit_length() - 1
        if move.held >> result & 1:
            self.slot_of[result] = target
        else:
            self.written.add(target)

    def _overwritten_slot(self, move: Move, variant: Variant) -> int:
        destroyed = variant.destroys.bit_length() - 1
        if move.copies:
            target = self.take()
            self.steps.append(Copy(destroyed, self.slot_of[destroyed], target))
            return target
        instances = [v for v, leaf in self.model.leaf_of_instance.items() if leaf == destroyed and v in self.slot_of]
        return self.slot_of[max(instances, default=destroyed)]

    def _free_target(self, freed: list[int], operands: Sequence[int | None]) -> int:
        dying = [slot for slot in operands if slot is not None and slot in freed]
        if dying:
            return dying[0]
        return freed[0] if freed else self.take()


def place(model: Model, moves: Sequence[Move]) -> Placement:
    """Steps and slots of one part (no cuts among the moves)."""
    placement = Placement(model)
    for move in moves:
        placement.replay(move)
    return placement
