"""Which init a form runs under, as a key: equal keys mean that one init serves both."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.dialects.assembly import parameters_of
from tilewright.dialects.attributes import TileType
from tilewright.dialects.tile_op import Unit, UnitForm, dst_format
from tilewright.dialects.ttl import TileOpBase
from tilewright.dst.problem import Leaf, Op

if TYPE_CHECKING:
    from tilewright.passes.dst_assignment.fused_forms import FormUse

STATELESS = "sfpu"  # key of all inits that set nothing of their own


def template_values(op: TileOpBase, *, dst32: bool) -> dict[str, Any]:
    """What a form's template arguments may name: the op's parameters, format of its data in DST, DST's width."""
    return {
        **parameters_of(op, op.SPEC),
        "fmt": dst_format(worked_on(op), wide=dst32),
        "fp32": "true" if dst32 else "false",
    }


def worked_on(op: TileOpBase) -> str:
    """The dtype an op computes in: its first operand's, or its result's if it has none."""
    kind = next(iter(op.operands), op.results[0]).type
    assert isinstance(kind, TileType)
    return kind.dtype


def init_params(form: UnitForm) -> frozenset[str]:
    """Parameters of the row that its init depends on, in any release."""
    templates = [form.init_template, *(spelling.init_template or () for spelling in form.spellings)]
    named = {name for entry in itertools.chain(*templates) for name in re.findall(r"\{(\w+)", entry)}
    return frozenset(named | {argument.split(":")[0] for argument in form.init_args if ":" in argument})


def init_key(form: UnitForm, op: TileOpBase) -> str:
    """Stateless inits share one key: any SFPU init does for them."""
    if not form.stateful:
        return STATELESS
    values = template_values(op, dst32=False)
    template = ",".join(form.init_call_template(values))
    arguments = ",".join(str(values[a.split(":")[0]]) for a in form.init_args if ":" in a)
    return f"{form.init}<{template}>({arguments})"


def lasting_inits(leaves: Sequence[Leaf], ops: Sequence[Op], uses: Mapping[tuple[int, int], FormUse]) -> frozenset[str]:
    """Inits that stay in force over the tiles of an acquire: the only one of their unit, whatever forms are chosen.

    Loads and the matrix unit share their state, the vector unit has its own.
    """
    matrix, vector = {leaf.init for leaf in leaves}, set[str]()
    for (op, form), use in uses.items():
        units = {call.unit for call in use.calls} or {use.unit}
        states = vector if units == {Unit.SFPU.value} else matrix
        states.add(ops[op].forms[form].init)
        if len(units) > 1:
            return frozenset()  # two inits in one form
    alone = [states for states in (matrix, vector - {STATELESS}) if len(states) == 1]
    return frozenset({STATELESS}.union(*alone))
