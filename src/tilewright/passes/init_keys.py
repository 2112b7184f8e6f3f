"""Which init a form runs under, as a key: equal keys mean that one init serves both."""

from __future__ import annotations

from typing import Any

from tilewright.dialects.tile_op import UnitForm
from tilewright.dialects.ttl import TileOpBase
from tilewright.dialects.verify import parameters_of


def template_values(op: TileOpBase, *, dst32: bool) -> dict[str, Any]:
    """What a form's template arguments may name: the op's parameters, DST's format and width."""
    return {
        **parameters_of(op, op.SPEC),
        "fmt": "DataFormat::Float32" if dst32 else "DataFormat::Float16_b",
        "fp32": "true" if dst32 else "false",
    }


def init_key(form: UnitForm, op: TileOpBase) -> str:
    """Stateless inits share one key: any SFPU init does for them."""
    if not form.stateful:
        return "sfpu"
    values = template_values(op, dst32=False)
    template = ",".join(form.init_call_template(values))
    arguments = ",".join(str(values[a.split(":")[0]]) for a in form.init_args if ":" in a)
    return f"{form.init}<{template}>({arguments})"
