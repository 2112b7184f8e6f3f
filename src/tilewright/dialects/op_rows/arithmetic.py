"""Rows of binary arithmetic with its FPU and SFPU forms, and of the other functions of two and three tiles."""

# The lambdas are formulas on NumPy arrays, whose types say nothing.
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import math

from tilewright.dialects.op_rows import references
from tilewright.dialects.op_rows.forms import BINARY_SFPU, UNARY, binary, sfpu_form, ternary
from tilewright.dialects.op_rows.late_numpy import np
from tilewright.dialects.tile_op import Param, TileOp, Unit, UnitForm, Writes

BINARY_HEADER = "eltwise_binary.h"


def fpu_forms(name: str, *, writes: Writes, commutes: bool) -> tuple[UnitForm, ...]:
    """Buffer with buffer, DST with buffer, buffer with DST."""
    reuse = "binary_dest_reuse_tiles"
    kind = f"EltwiseBinaryType::ELW{name.upper()}"

    def reuse_form(unit: Unit, side: str, buffer: str, tile: str, slot: str) -> UnitForm:
        template = (kind, f"EltwiseBinaryReuseDestType::DEST_TO_{side}")
        return UnitForm(
            unit=unit, init=f"{reuse}_init", call=reuse, header=BINARY_HEADER, writes=Writes.IN_PLACE,
            args=(buffer, tile, slot), template=template, init_template=template, init_args=(buffer,), stateful=True,
            rounds="nearest-away", commutes=commutes,
        )  # fmt: skip

    return (
        UnitForm(
            unit=Unit.FPU, init=f"{name}_tiles_init", call=f"{name}_tiles", header=BINARY_HEADER, writes=writes,
            args=("b0", "b1", "t0", "t1", "o"), init_args=("b0", "b1"), stateful=True, rounds="nearest-away",
            commutes=commutes,
        ),
        reuse_form(Unit.REUSE_A, "SRCA", "b1", "t1", "d0"),
        reuse_form(Unit.REUSE_B, "SRCB", "b0", "t0", "d1"),
    )  # fmt: skip


def in_dst(call: str, *, rounds: str = "truncate", commutes: bool = False) -> UnitForm:
    args = ("d0", "d1", "o")
    return sfpu_form(call, header=BINARY_SFPU, args=args, writes=Writes.ANY, rounds=rounds, commutes=commutes)


INTEGERS = ("i32", "u32", "u16")


def integer_row(name: str) -> tuple[tuple[str, str], ...]:
    return tuple((dtype, name) for dtype in INTEGERS)


VALUE = Param(name="value", default=1.0, example=0.7, summary="factor of the product or quotient")

# fmt: off
ROWS = (
    TileOp(
        name="add", summary="Elementwise a + b.", arity=2, python=("math.add",), operator="+", reference=np.add,
        forms=(in_dst("add_binary_tile", commutes=True), *fpu_forms("add", writes=Writes.ANY, commutes=True)),
        scalar="add_scalar", rscalar="add_scalar", by_dtype=integer_row("add_int"), golden="sfpu_add", bound_ulp=1.0,
    ),
    TileOp(
        name="sub", summary="Elementwise a - b.", arity=2, python=("math.sub",), operator="-", reference=np.subtract,
        forms=(in_dst("sub_binary_tile"), *fpu_forms("sub", writes=Writes.ANY, commutes=False)),
        scalar="sub_scalar", rscalar="rsub_scalar", by_dtype=integer_row("sub_int"), golden="sfpu_sub", bound_ulp=1.0,
    ),
    TileOp(
        name="mul", summary="Elementwise a * b.", arity=2, python=("math.mul",), operator="*", reference=np.multiply,
        forms=(
            in_dst("mul_binary_tile", rounds="nearest-even", commutes=True),
            *fpu_forms("mul", writes=Writes.ACCUMULATES, commutes=True),
        ),
        scalar="mul_scalar", rscalar="mul_scalar", by_dtype=integer_row("mul_int"), golden="fpu_mul.HiFi4",
        bound_ulp=1.5,
        notes="On the FPU 16-bit DST is rounded after every fidelity phase: up to 1.5 ULP at HiFi4, 14.2 at LoFi.",
    ),
    binary("div", "Elementwise a / b.", np.divide, operator="/", rounds="nearest-even", domain=(0.25, 4.0),
           scalar="div_scalar", rscalar="rdiv_scalar", golden="sfpu_div", bound_ulp=2.2, faithful=(-8.4e37, 8.4e37),
           notes="0.6 ULP on the vector unit. With the dividend in a buffer and 16-bit DST, or with bf16 and a divisor that is"
                 " broadcast, it is a product with 1 / b; to the matrix unit infinities are large numbers."),
    binary("rsub", "Elementwise b - a.", lambda a, b: b - a, scalar="rsub_scalar", by_dtype=integer_row("rsub_int"),
           golden="sfpu_rsub", bound_ulp=1.0),
    binary("max", "Elementwise maximum.", np.maximum, call="binary_max_tile", header="binary_max_min.h",
           python=("math.max", "math.maximum"), rounds="exact", commutes=True, scalar="max_scalar",
           rscalar="max_scalar",
           by_dtype=(("i32", "max_int"), ("u32", "max_uint")), since="0.69", golden="sfpu_max", bound_ulp=0.0,
           by_faces=True),
    binary("min", "Elementwise minimum.", np.minimum, call="binary_min_tile", header="binary_max_min.h",
           python=("math.min", "math.minimum"), rounds="exact", commutes=True, scalar="min_scalar",
           rscalar="min_scalar",
           by_dtype=(("i32", "min_int"), ("u32", "min_uint")), since="0.69", golden="sfpu_min", bound_ulp=0.0,
           by_faces=True),
    binary("pow", "Elementwise a ** b.", np.power, call="power_binary_tile", operator="**", rounds="nearest-even",
           python=("math.pow", "math.power"), domain=(0.25, 4.0), scalar="pow_scalar", rscalar="rpow_scalar",
           golden="sfpu_power", bound_ulp=2.0, faithful=(0.0, 8e34), faithful_from=1e-30),
    binary("fmod", "Remainder of a / b with the sign of a.", np.fmod, header="binary_fmod.h", rounds="exact",
           since="0.69",
           domain=(0.5, 8.0), scalar="fmod_scalar", by_dtype=(("i32", "fmod_int"),), golden="sfpu_fmod", bound_ulp=1.0,
           faithful=(-64.0, 64.0), faithful_from=0.1),
    binary("remainder", "Remainder of a / b with the sign of b.", np.mod, header="binary_remainder.h", operator="%",
           python=("math.remainder", "math.mod"), rounds="nearest-even", since="0.69", domain=(0.5, 8.0),
           scalar="remainder_scalar", by_dtype=(("i32", "remainder_int"), ("u32", "remainder_uint")),
           golden="sfpu_remainder", bound_ulp=1.0, faithful=(-64.0, 64.0), faithful_from=0.1),
    binary("atan2", "Angle of the point (b, a).", np.arctan2, header="atan2.h", rounds="nearest-even", since="0.69",
           golden="sfpu_atan2", bound_ulp=1.9),
    binary("xlogy", "Elementwise a * log(b), 0 where a is 0.", references.xlogy, header="xlogy.h",
           rounds="nearest-even",
           since="0.69", domain=(1.125, 4.0), golden="sfpu_xlogy", bound_ulp=8.0, faithful=(1.125, math.inf),
           notes="The chip multiplies a zero with log(b) as well: 0 and 0 give NaN."),
    binary("logaddexp", "Elementwise log(exp(a) + exp(b)).", np.logaddexp, header="logaddexp.h", rounds="nearest-even",
           since="0.81", commutes=True),
    binary("logaddexp2", "Elementwise log2(2**a + 2**b).", np.logaddexp2, header="logaddexp2.h", rounds="nearest-even",
           since="0.81", commutes=True),
    binary("isclose", "1 where |a - b| <= atol + rtol * |b|.",
           lambda a, b, rtol, atol: references.truth(np.isclose(a, b, rtol=rtol, atol=atol)), header="isclose.h",
           args=("rtol:f32", "atol:f32"), template=("false",), defaults=("false",), rounds="exact", since="0.78",
           params=(Param(name="rtol", default=1e-5, example=1e-2), Param(name="atol", default=1e-8, example=1e-3)),
           golden="sfpu_isclose", bound_ulp=0.0),
    ternary("addcmul", "Elementwise a + value * b * c.", lambda a, b, c, value: a + value * b * c,
            header=UNARY + "addcmul.h", template=("{fmt}",), args=("value:f32",), params=(VALUE,),
            rounds="nearest-even",
            since="0.69", golden="addcmul", bound_ulp=0.6, faithful_from=1e-30),
    ternary("addcdiv", "Elementwise a + value * b / c.", lambda a, b, c, value: a + value * b / c,
            header=UNARY + "addcdiv.h", template=("{fmt}",), args=("value:f32",), params=(VALUE,),
            rounds="nearest-even",
            since="0.69", domain=(0.25, 4.0), golden="addcdiv", bound_ulp=0.6, faithful=(-8.4e37, 8.4e37), faithful_from=1e-30),
    ternary("lerp", "Elementwise a + c * (b - a).", lambda a, b, c: a + c * (b - a), header=UNARY + "lerp.h",
            template=("{fmt}",), rounds="nearest-even", since="0.69", golden="lerp", bound_ulp=0.6, faithful=(-8.4e37, 8.4e37)),
)
# fmt: on
