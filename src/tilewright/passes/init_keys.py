"""Which init a form runs under, as a key: equal keys mean that one init serves both."""

from __future__ import annotations

from xdsl.ir import Operation

from tilewright.dialects.tile_op import UnitForm
from tilewright.dialects.verify import parameters_of


def filled_template(template: tuple[str, ...], values: dict[str, object], *, dst32: bool) -> tuple[str, ...]:
    """Template arguments as C++ text."""
    words: dict[str, str] = {
        "fmt": "DataFormat::Float32" if dst32 else "DataFormat::Float16_b",
        "fp32": "true" if dst32 else "false",
    }
    for name, value in values.items():
        words[name] = ("true" if value else "false") if isinstance(value, bool) else str(value)
    return tuple(entry.format(**words) for entry in template)


def init_key(form: UnitForm, op: Operation) -> str:
    """Stateless inits share one key: any SFPU init does for them."""
    if not form.stateful:
        return "sfpu"
    values = parameters_of(op, op.SPEC)  # pyright: ignore
    template = ",".join(filled_template(form.init_template, values, dst32=False))
    arguments = ",".join(str(values[a.split(":")[0]]) for a in form.init_args if ":" in a)
    return f"{form.init}<{template}>({arguments})"
