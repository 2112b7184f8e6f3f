"""THE op table. One op, one row; the rows stand by family in ``op_rows/``."""

from __future__ import annotations

from typing import Any

from tilewright.dialects.op_rows import activation, arithmetic, comparison, composed, functions, integer, scalar
from tilewright.dialects.tile_op import Composite, TileOp

FAMILIES: dict[str, tuple[TileOp, ...]] = {
    "arithmetic": arithmetic.ROWS,
    "arithmetic with a scalar": scalar.ROWS,
    "functions": functions.ROWS,
    "activations": activation.ROWS,
    "comparison, selection, conversion": comparison.ROWS,
    "integers": integer.ROWS,
}
ROWS: tuple[TileOp, ...] = tuple(row for family in FAMILIES.values() for row in family)
COMPOSITES: tuple[Composite, ...] = composed.COMPOSITES

BY_NAME: dict[str, TileOp] = {row.name: row for row in ROWS}
BY_PYTHON: dict[str, TileOp] = {spelling: row for row in ROWS for spelling in row.python}
BY_OPERATOR: dict[str, TileOp] = {row.operator: row for row in ROWS if row.operator}

COMPOSITE_BY_NAME: dict[str, Composite] = {op.name: op for op in COMPOSITES}
COMPOSITE_BY_PYTHON: dict[str, Composite] = {spelling: op for op in COMPOSITES for spelling in op.python}
COMPOSITE_BY_OPERATOR: dict[str, Composite] = {op.operator: op for op in COMPOSITES if op.operator}

TYPECASTS = comparison.SFPU_TYPECASTS  # (from, to) that need a call
FREE_TYPECASTS = comparison.FREE_TYPECASTS  # done by the unpacker or packer
# Rows that cut or compare: the last bit of an operand may decide the result.
COMPARED = frozenset(f"{word}{end}" for word in ("eq", "ne", "lt", "gt", "le", "ge") for end in ("", "_scalar", "z"))
OTHER_STEPS = frozenset(("sign", "heaviside", "isclose", "typecast", "fmod", "remainder"))
STEP_FUNCTIONS = COMPARED | OTHER_STEPS | {row.name for row in ROWS if row.jumps}

# What stands for a row in releases that lack its call.
SUBSTITUTES = {"logaddexp": "logaddexp_by_parts", "logaddexp2": "logaddexp2_by_parts"}

# Exponents that have a row of their own.
SPECIAL_POWERS = {2: "square", 0.5: "sqrt", -0.5: "rsqrt", -1: "recip", 1: "identity"}


def with_number(
    op: TileOp | Composite, number: float, *, left: bool = False, dtype: str = "bf16", metal: str = ""
) -> tuple[TileOp | Composite, dict[str, Any]] | None:
    """The op that computes ``tile op number`` (``number op tile`` if ``left``) on ``dtype``, and its parameters.

    ``metal`` is the release that must have it. ``None``: there is none, and the number must be filled into a tile.
    """
    if op.name == "pow" and not left:
        return power(number)
    by_dtype = dict(op.by_dtype)
    if dtype in by_dtype:
        op = BY_NAME[by_dtype[dtype]]
    name = op.rscalar if left else op.scalar
    chosen = BY_NAME.get(name) or COMPOSITE_BY_NAME.get(name)
    if chosen is None or (isinstance(chosen, TileOp) and dtype not in chosen.dtypes):
        return None
    if metal and isinstance(chosen, TileOp) and not any(form.exists_in(metal) for form in chosen.forms):
        return None
    return chosen, {chosen.params[0].name: number}


def dtypes_of(op: TileOp | Composite) -> tuple[str, ...]:
    """What the op works on: its own dtypes or those of all its steps, and those that another row serves."""
    whole = next((other for other in (*ROWS, *COMPOSITES) if op.name in (other.scalar, other.rscalar)), op)
    served = tuple(dtype for dtype, _ in (*op.by_dtype, *whole.by_dtype))
    if isinstance(op, TileOp):
        own = op.dtypes
    else:
        steps = [dtypes_of(BY_NAME.get(step.op) or COMPOSITE_BY_NAME[step.op]) for step in op.steps]
        own = tuple(dtype for dtype in steps[0] if all(dtype in step for step in steps))
    return tuple(dict.fromkeys((*own, *served)))


def in_release(op: TileOp | Composite, metal: str) -> TileOp | Composite:
    """``op``, or what stands for it in a release without its call."""
    if isinstance(op, Composite) or op.name not in SUBSTITUTES or any(form.exists_in(metal) for form in op.forms):
        return op
    return COMPOSITE_BY_NAME[SUBSTITUTES[op.name]]


def power(exponent: float) -> tuple[TileOp, dict[str, Any]]:
    """The cheapest row for ``x ** exponent``."""
    if exponent in SPECIAL_POWERS:
        return BY_NAME[SPECIAL_POWERS[exponent]], {}
    whole = BY_NAME["pow_int"]
    limit = whole.params[0]
    if float(exponent).is_integer() and (limit.low or 0) <= exponent <= (limit.high or 0):
        return whole, {"exponent": int(exponent)}
    return BY_NAME["pow_scalar"], {"scalar": float(exponent)}
