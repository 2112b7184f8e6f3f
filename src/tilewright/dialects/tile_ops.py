"""THE op table. One op, one row; the rows stand in ``float_rows.py`` and ``integer_rows.py``, composites below."""

from __future__ import annotations

import math
from typing import Any

from tilewright.dialects import float_rows
from tilewright.dialects import row_references as references
from tilewright.dialects.float_rows import ACTIVATIONS, ARITHMETIC, COMPARISONS, FUNCTIONS, SCALARS
from tilewright.dialects.integer_rows import INTEGERS
from tilewright.dialects.row_forms import SCALAR
from tilewright.dialects.row_references import np
from tilewright.dialects.tile_op import Composite, Param, Step, TileOp

FAMILIES: dict[str, tuple[TileOp, ...]] = {
    "arithmetic": ARITHMETIC,
    "arithmetic with a scalar": SCALARS,
    "functions": FUNCTIONS,
    "activations": ACTIVATIONS,
    "comparison, selection, conversion": COMPARISONS,
    "integers": INTEGERS,
}
ROWS: tuple[TileOp, ...] = tuple(row for family in FAMILIES.values() for row in family)

# Functions and operators the kernel API has no usable call for, as steps of rows.
# The larger of two operands (s0) and minus their distance (s3).
DISTANCE = (
    Step(op="max", operands=("a0", "a1")),
    Step(op="sub", operands=("a0", "a1")),
    Step(op="abs", operands=("s1",)),
    Step(op="neg", operands=("s2",)),
)

# fmt: off
COMPOSITES: tuple[Composite, ...] = (
    Composite(
        name="floordiv", summary="Elementwise floor(a / b).", arity=2, operator="//", reference=np.floor_divide,
        steps=(Step(op="div", operands=("a0", "a1")), Step(op="floor", operands=("s0",))),
        python=("math.floordiv", "math.floor_divide"), scalar="floordiv_scalar", by_dtype=(("i32", "floordiv_int"),),
    ),
    Composite(
        name="floordiv_scalar", summary="Elementwise floor(x / scalar).", arity=1, params=(SCALAR,),
        reference=lambda x, scalar: np.floor_divide(x, scalar),
        steps=(Step(op="div_scalar", operands=("a0",), params=(("scalar", "=scalar"),)),
               Step(op="floor", operands=("s0",))),
    ),
    Composite(
        name="hardswish", summary="Elementwise x * hardsigmoid(x).", arity=1, python=("math.hardswish",),
        reference=lambda x: x * references.hardsigmoid(x),
        steps=(Step(op="hardsigmoid", operands=("a0",)), Step(op="mul", operands=("a0", "s0"))),
        notes="The API has no hardswish_tile.",
    ),
    Composite(
        name="relu6", summary="relu(min(x, 6)).", arity=1, python=("math.relu6",),
        reference=lambda x: np.clip(x, 0.0, 6.0),
        steps=(Step(op="relu_max", operands=("a0",), params=(("upper_limit", 6.0),)),),
    ),
    Composite(
        name="logsigmoid", summary="Elementwise log(sigmoid(x)).", arity=1, python=("math.logsigmoid",
        "math.log_sigmoid"),
        reference=lambda x: -np.logaddexp(0.0, -x),
        steps=(Step(op="neg", operands=("a0",)), Step(op="softplus", operands=("s0",)), Step(op="neg",
        operands=("s1",))),
        notes="logsigmoid_tile wants exp(-x) as a second tile, which costs more than softplus.",
    ),
    Composite(
        name="mask", summary="0 where the mask is not 0, else x.", arity=2, python=("block.mask", "math.mask"),
        reference=lambda x, mask: np.where(mask != 0, 0.0, x),
        steps=(Step(op="fill", operands=(), params=(("value", 0.0),)), Step(op="where", operands=("a1", "s0", "a0"))),
        notes="mask_tile clears where the mask is 0, and always reads the mask from the slot after the data.",
    ),
    Composite(
        name="mask_posinf", summary="Infinity where the mask is not 0, else x.", arity=2,
        python=("block.mask_posinf", "math.mask_posinf"), reference=lambda x, mask: np.where(mask != 0, np.inf, x),
        steps=(Step(op="fill", operands=(), params=(("value", float("inf")),)),
               Step(op="where", operands=("a1", "s0", "a0"))),
        notes="See mask.",
    ),
    Composite(
        name="mac", summary="Elementwise a * b + c.", arity=3, python=("math.mac", "math.fma"),
        reference=lambda a, b, c: a * b + c,
        steps=(Step(op="addcmul", operands=("a2", "a0", "a1"), params=(("value", 1.0),)),),
        notes="mac_tile works on slots 0, 1, 2 only, right after its init; addcmul, 16 cycles dearer, on any slots.",
    ),
    Composite(
        name="logaddexp_by_parts", summary="logaddexp from the larger operand and the distance.", arity=2,
        reference=np.logaddexp,
        steps=(*DISTANCE, Step(op="exp", operands=("s3",)), Step(op="log1p", operands=("s4",)),
               Step(op="add", operands=("s0", "s5"))),
        notes="For releases without logaddexp_binary_tile.",
    ),
    Composite(
        name="logaddexp2_by_parts", summary="logaddexp2 from the larger operand and the distance.", arity=2,
        reference=np.logaddexp2,
        steps=(*DISTANCE, Step(op="exp2", operands=("s3",)), Step(op="log1p", operands=("s4",)),
               Step(op="mul_scalar", operands=("s5",), params=(("scalar", 1.0 / math.log(2.0)),)),
               Step(op="add", operands=("s0", "s6"))),
        notes="For releases without logaddexp2_binary_tile.",
    ),
    Composite(
        name="exp_of_product", summary="Elementwise exp(scale * x), accurate.", arity=1,
        params=(Param(name="scale", example=0.5),), reference=lambda x, scale: np.exp(scale * x),
        steps=(Step(op="mul_scalar", operands=("a0",), params=(("scalar", "=scale"),)), Step(op="exp",
        operands=("s0",))),
        notes="What exp(x, scale=s) means without approx; the scaled accurate call does not compile in 16-bit DST.",
    ),
)
# fmt: on

BY_NAME: dict[str, TileOp] = {row.name: row for row in ROWS}
BY_PYTHON: dict[str, TileOp] = {spelling: row for row in ROWS for spelling in row.python}
BY_OPERATOR: dict[str, TileOp] = {row.operator: row for row in ROWS if row.operator}

COMPOSITE_BY_NAME: dict[str, Composite] = {op.name: op for op in COMPOSITES}
COMPOSITE_BY_PYTHON: dict[str, Composite] = {spelling: op for op in COMPOSITES for spelling in op.python}
COMPOSITE_BY_OPERATOR: dict[str, Composite] = {op.operator: op for op in COMPOSITES if op.operator}

TYPECASTS = float_rows.SFPU_TYPECASTS  # (from, to) that need a call
FREE_TYPECASTS = float_rows.FREE_TYPECASTS  # done by the unpacker or packer
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
