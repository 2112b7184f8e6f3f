"""Rows of comparisons, tests, selection, fill and typecast. A comparison gives 1 and 0 in the operands' dtype."""

# The lambdas are formulas on NumPy arrays, whose types say nothing.
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.dialects.op_rows.forms import UNARY, binary, scalar_op, sfpu_form, ternary, unary
from tilewright.dialects.op_rows.late_numpy import np
from tilewright.dialects.op_rows.references import truth
from tilewright.dialects.tile_op import FLOAT_DTYPES, INTEGER_DTYPES, Param, TileOp, Writes

COMP = UNARY + "comp.h"
BOUND = Param(name="scalar", example=1.5, summary="the Python number")
KINDS: tuple[tuple[str, str, str, Callable[..., Any]], ...] = (
    ("eq", "==", "equals", np.equal),
    ("ne", "!=", "differs from", np.not_equal),
    ("lt", "<", "is less than", np.less),
    ("gt", ">", "is greater than", np.greater),
    ("le", "<=", "is at most", np.less_equal),
    ("ge", ">=", "is at least", np.greater_equal),
)
MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}


def comparing(test: Callable[..., Any]) -> Callable[..., Any]:
    def meaning(a: Any, b: Any) -> Any:
        return truth(test(a, b))

    return meaning


def comparing_scalar(test: Callable[..., Any]) -> Callable[..., Any]:
    def meaning(x: Any, scalar: float) -> Any:
        return truth(test(x, scalar))

    return meaning


def tiles(name: str, sign: str, words: str, test: Callable[..., Any]) -> TileOp:
    return binary(
        name, f"1 where a {words} b, else 0.", comparing(test), operator=sign, rounds="exact", since="0.69",
        commutes=name in ("eq", "ne"), scalar=f"{name}_scalar", rscalar=f"{MIRRORED[name]}_scalar",
        by_dtype=tuple((dtype, f"{name}_int") for dtype in INTEGER_DTYPES), golden=f"sfpu_{name}", bound_ulp=0.0,
    )  # fmt: skip


def with_scalar(name: str, words: str, test: Callable[..., Any]) -> TileOp:
    return scalar_op(
        f"{name}_scalar", f"1 where x {words} scalar, else 0.", comparing_scalar(test), call=f"unary_{name}_tile",
        header=COMP, rounds="exact", params=(BOUND,), by_dtype=(("i32", f"{name}_int_scalar"),), golden=f"{name}_s",
        bound_ulp=0.0,
        since="0.62" if name in ("ne", "gt", "lt") else "0.69",
    )  # fmt: skip


def with_zero(name: str, words: str, test: Callable[..., Any]) -> TileOp:
    def meaning(x: Any) -> Any:
        return truth(test(x, 0.0))

    return unary(
        f"{name}z",
        f"1 where x {words} 0, else 0.",
        meaning,
        header=COMP,
        rounds="exact",
        golden=f"{name}z",
        bound_ulp=0.0,
    )


def test_for(name: str, words: str, test: Callable[..., Any]) -> TileOp:
    def meaning(x: Any) -> Any:
        return truth(test(x))

    return unary(
        name,
        f"1 where x is {words}, else 0.",
        meaning,
        header=UNARY + "isinf_isnan.h",
        rounds="exact",
        golden=name,
        bound_ulp=0.0,
    )


def identity(x: Any) -> Any:
    """A typecast keeps the value; the caller rounds to the target type."""
    return x


# Conversions the API has, both ways. Between float types the packer or unpacker does the work and no call is emitted.
SFPU_TYPECASTS = frozenset(
    (source, target)
    for one, other in (
        *((real, whole) for real in ("bf16", "f32", "bfp8_b", "bfp4_b") for whole in ("i32", "u16", "u32", "u8")),
        ("u16", "u32"), ("u16", "i32"), ("u16", "u8"),
    )
    for source, target in ((one, other), (other, one))
) | {("f32", "bf16")}  # fmt: skip
FREE_TYPECASTS = frozenset(
    (source, target)
    for source in ("bf16", "f32", "bfp8_b", "bfp4_b")
    for target in ("bf16", "f32", "bfp8_b", "bfp4_b")
    if source != target and (source, target) != ("f32", "bf16")
)

CONVERSION = ("(uint32_t)DataFormat::{source:format}", "(uint32_t)DataFormat::{dtype:format}")

# fmt: off
ROWS = (
    *(tiles(*kind) for kind in KINDS),
    *(with_scalar(name, words, test) for name, _, words, test in KINDS),
    *(with_zero(name, words, test) for name, _, words, test in KINDS),
    test_for("isinf", "infinite", np.isinf),
    test_for("isposinf", "plus infinity", np.isposinf),
    test_for("isneginf", "minus infinity", np.isneginf),
    test_for("isnan", "not a number", np.isnan),
    test_for("isfinite", "finite", np.isfinite),
    unary("logical_not", "1 where x is 0, else 0.", lambda x: truth(np.equal(x, 0.0)), header=UNARY + "logical_not.h",
          template=("{fmt}",), rounds="exact", since="0.69", dtypes=(*FLOAT_DTYPES, *INTEGER_DTYPES),
          golden="logical_not", bound_ulp=0.0,
          notes="The chip gives 0 for -0."),
    ternary("where", "b where a is not 0, else c.", lambda a, b, c: np.where(a != 0, b, c), header=UNARY + "where.h",
            template=("{fmt}",), rounds="exact", since="0.69", python=("block.where", "math.where"),
            dtypes=(*FLOAT_DTYPES, "i32", "u32"), golden="where", bound_ulp=0.0,
            notes="124 cycles if the result takes the slot of a, else 160. A condition of -0 or a denormal counts as not 0."),
    TileOp(
        name="fill", summary="A tile of one value.", arity=0, python=("block.fill", "math.fill"),
        reference=lambda value: np.float64(value), by_dtype=tuple((dtype, "fill_int") for dtype in INTEGER_DTYPES),
        forms=(sfpu_form("fill_tile", header=UNARY + "fill.h", args=("o", "value:float"), writes=Writes.ANY),),
        params=(Param(name="value", example=1.2345678),), golden="fill", bound_ulp=1.0,
        notes="16-bit DST keeps the upper half of the fp32 value: 0.1 is filled as 0.0996.",
    ),
    unary("typecast", "x in another dtype.", identity, header=UNARY + "typecast.h",
          template=CONVERSION, init_template=CONVERSION,
          python=("math.typecast", "block.typecast"), rounds="nearest-even", result_dtype="{dtype}", bound_ulp=0.5,
          dtypes=(*FLOAT_DTYPES, *INTEGER_DTYPES),
          params=(Param(name="dtype", kind="str", example="bf16", summary="the dtype wanted"),
                  Param(name="source", kind="str", default="", example="f32", hidden=True, summary="the operand's dtype"))),
)
# fmt: on
