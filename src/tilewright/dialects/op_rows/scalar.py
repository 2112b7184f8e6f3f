"""Rows of arithmetic with a Python scalar on one side: the scalar is an immediate of the call, not a tile."""

# The lambdas are formulas on NumPy arrays, whose types say nothing.
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

from tilewright.dialects.op_rows.forms import KERNEL_API, UNARY, scalar_op
from tilewright.dialects.op_rows.late_numpy import np
from tilewright.dialects.tile_op import Param, Spelling

BINOP = UNARY + "binop_with_scalar.h"
BINOP_INIT = "binop_with_scalar_tile_init"
DIVISOR = Param(name="scalar", example=3.0, summary="the Python number; not zero")
TENTH = Param(name="scalar", example=0.1, summary="the Python number")
UNIT = Param(name="scalar", example=1.0, summary="the Python number")
FACTOR = Param(name="scalar", example=0.7, summary="the Python number")
EXPONENT = Param(name="exponent", kind="int", low=1, high=32, example=3, summary="a positive whole number")

# fmt: off
ROWS = (
    scalar_op("add_scalar", "Elementwise x + scalar.", lambda x, scalar: x + scalar, call="add_unary_tile",
              init=BINOP_INIT,
              header=BINOP, by_dtype=(("i32", "add_int_scalar"),), params=(TENTH,), golden="add_s", bound_ulp=1.0),
    scalar_op("sub_scalar", "Elementwise x - scalar.", lambda x, scalar: x - scalar, call="sub_unary_tile",
              init=BINOP_INIT,
              header=BINOP, by_dtype=(("i32", "sub_int_scalar"),), params=(TENTH,), golden="sub_s", bound_ulp=1.0),
    scalar_op("rsub_scalar", "Elementwise scalar - x.", lambda x, scalar: scalar - x, call="rsub_unary_tile",
              init=BINOP_INIT, header=BINOP, rounds="nearest-even", by_dtype=(("i32", "rsub_int_scalar"),),
              params=(UNIT,), golden="rsub_s", bound_ulp=0.6),
    scalar_op("mul_scalar", "Elementwise x * scalar.", lambda x, scalar: x * scalar, call="mul_unary_tile",
              init=BINOP_INIT,
              header=BINOP, params=(FACTOR,), golden="mul_s", bound_ulp=1.0),
    scalar_op("div_scalar", "Elementwise x / scalar, as a product with the reciprocal.", lambda x, scalar: x / scalar,
              encoding="recip", call="div_unary_tile", init=BINOP_INIT, header=BINOP, params=(DIVISOR,),
              golden="div_s", bound_ulp=1.1),
    scalar_op("rdiv_scalar", "Elementwise scalar / x.", lambda x, scalar: scalar / x, call="rdiv_tile",
              header=UNARY + "rdiv.h", includes_first=(BINOP,), since="0.69", domain=(0.25, 4.0), params=(DIVISOR,),
              golden="rdiv_3", bound_ulp=1.5, faithful=(-8.4e37, 8.4e37), by_faces=True),
    scalar_op("pow_scalar", "Elementwise x ** scalar for any exponent.", lambda x, scalar: np.power(x, scalar),
              call="power_tile", header=KERNEL_API, since="0.69", domain=(0.25, 4.0), params=(Param(name="scalar",
              example=2.5),),
              golden="power_2p5", bound_ulp=1.6, faithful_from=1e-15),
    scalar_op("pow_int", "Elementwise x ** n for a positive whole n, by multiplications.",
              lambda x, exponent: x**exponent, call="power_iterative_tile", header=KERNEL_API,
              spellings=(Spelling(since="0.62", call="power_tile", init="power_tile_init"),
                         Spelling(since="0.69", call="power_iterative_tile", init="power_iterative_tile_init")),
              args=("exponent:int",), params=(EXPONENT,), golden="power_iter_3", bound_ulp=1.0),
    scalar_op("rpow_scalar", "Elementwise scalar ** x.", lambda x, scalar: np.power(float(scalar), x), call="rpow_tile",
              header=UNARY + "rpow.h", rounds="nearest-even", since="0.69",
              params=(Param(name="scalar", example=2.0, summary="the Python number; positive"),), golden="rpow_2",
              bound_ulp=0.95, faithful=(-8e34, 8e34), by_faces=True),
    scalar_op("fmod_scalar", "Remainder of x / scalar with the sign of x.", np.fmod, call="fmod_tile",
              header=UNARY + "fmod.h", since="0.78", args=(), init_args=("scalar:f32", "scalar:recip"), rounds="exact",
              params=(DIVISOR,), golden="fmod_s", bound_ulp=0.5, faithful=(-1.2e7, 1.2e7)),
    scalar_op("remainder_scalar", "Remainder of x / scalar with the sign of the scalar.", np.mod, call="remainder_tile",
              header=UNARY + "remainder.h", since="0.78", args=(), init_args=("scalar:f32", "scalar:recip"),
              params=(DIVISOR,),
              golden="remainder_s", bound_ulp=1.0, faithful=(-1.2e7, 1.2e7), faithful_from=0.02,
          notes="Gives 0 for a negative x so small that the remainder would round to the scalar."),
    scalar_op("max_scalar", "Elementwise maximum of x and scalar.", np.maximum, call="unary_max_tile",
              header=KERNEL_API,
              rounds="exact", by_dtype=(("i32", "max_int_scalar"),), params=(Param(name="scalar", example=0.5),),
              golden="unary_max_s", bound_ulp=0.0),
    scalar_op("min_scalar", "Elementwise minimum of x and scalar.", np.minimum, call="unary_min_tile",
              header=KERNEL_API,
              rounds="exact", by_dtype=(("i32", "min_int_scalar"),), params=(Param(name="scalar", example=0.5),),
              golden="unary_min_s", bound_ulp=0.0),
)
# fmt: on
