"""Which init a form runs under, as a key: equal keys mean that one init serves both."""

from __future__ import annotations

import itertools
import re
from typing import Any

from tilewright.dialects.ir_types import TileType
from tilewright.dialects.tile_op import UnitForm, dst_format
from tilewright.dialects.ttl import TileOpBase
from tilewright.dialects.verify import parameters_of


def template_values(op: TileOpBase, *, dst32: bool) -> dict[str, Any]:
    """What a form's template arguments may name: the op's parameters, format of its data in DST, DST's width."""
    return {
        **parameters_of(op, op.SPEC),
        "fmt": dst_format(worked_on(op), wide=dst32),
        "fp32": "true" if dst32 else "false",
    }


def worked_on(op: TileOpBase) -> str:
    """The dtype an op computes in: its first operand's, or its result's if it has none."""
    kind = (op.operands[0] if op.operands else op.results[0]).type
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
        return "sfpu"
    values = template_values(op, dst32=False)
    template = ",".join(form.init_call_template(values))
    arguments = ",".join(str(values[a.split(":")[0]]) for a in form.init_args if ":" in a)
    return f"{form.init}<{template}>({arguments})"
