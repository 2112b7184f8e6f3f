"""Rows of the op table on floats: arithmetic, functions, activations, comparisons, selection, conversion."""

from __future__ import annotations

import math

from tilewright.dialects import row_references as references
from tilewright.dialects.row_forms import (
    KERNEL_API,
    NEAREST,
    UNARY,
    Test,
    approximable,
    binary,
    comparing_scalar,
    comparing_tiles,
    comparing_zero,
    fpu_forms,
    in_dst,
    integer_row,
    log_to_base,
    narrowable,
    redundant,
    scalar_op,
    sfpu_form,
    ternary,
    test_for,
    trigonometric,
    unary,
)
from tilewright.dialects.row_references import np, truth
from tilewright.dialects.tile_op import (
    FLOAT_DTYPES,
    INTEGER_DTYPES,
    LIMIT,
    PASS,
    Param,
    Spelling,
    TileOp,
    Writes,
)

# fmt: off
VALUE = Param(name="value", default=1.0, example=0.7, summary="factor of the product or quotient")

# Binary arithmetic with its FPU and SFPU forms, and the other functions of two and three tiles.
ARITHMETIC = (
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
           python=("math.max", "math.maximum"), rounds="exact", commutes=True, scalar="max_scalar", rscalar="max_scalar",
           by_dtype=(("i32", "max_int"), ("u32", "max_uint")), since="0.69", golden="sfpu_max", bound_ulp=0.0, by_faces=True),
    binary("min", "Elementwise minimum.", np.minimum, call="binary_min_tile", header="binary_max_min.h",
           python=("math.min", "math.minimum"), rounds="exact", commutes=True, scalar="min_scalar", rscalar="min_scalar",
           by_dtype=(("i32", "min_int"), ("u32", "min_uint")), since="0.69", golden="sfpu_min", bound_ulp=0.0, by_faces=True),
    binary("pow", "Elementwise a ** b.", np.power, call="power_binary_tile", operator="**", rounds="nearest-even",
           python=("math.pow", "math.power"), domain=(0.25, 4.0), scalar="pow_scalar", rscalar="rpow_scalar",
           golden="sfpu_power", bound_ulp=2.0, faithful=(0.0, 8e34), faithful_from=1e-30),
    binary("fmod", "Remainder of a / b with the sign of a.", np.fmod, header="binary_fmod.h", rounds="exact", since="0.69",
           domain=(0.5, 8.0), scalar="fmod_scalar", by_dtype=(("i32", "fmod_int"),), golden="sfpu_fmod", bound_ulp=1.0,
           faithful=(-64.0, 64.0), faithful_from=0.1),
    binary("remainder", "Remainder of a / b with the sign of b.", np.mod, header="binary_remainder.h", operator="%",
           python=("math.remainder", "math.mod"), rounds="nearest-even", since="0.69", domain=(0.5, 8.0),
           scalar="remainder_scalar", by_dtype=(("i32", "remainder_int"), ("u32", "remainder_uint")),
           golden="sfpu_remainder", bound_ulp=1.0, faithful=(-64.0, 64.0), faithful_from=0.1),
    binary("atan2", "Angle of the point (b, a).", np.arctan2, header="atan2.h", rounds="nearest-even", since="0.69",
           golden="sfpu_atan2", bound_ulp=1.9),
    binary("xlogy", "Elementwise a * log(b), 0 where a is 0.", references.xlogy, header="xlogy.h", rounds="nearest-even",
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
    ternary("addcmul", "Elementwise a + value * b * c.", lambda a, b, c, value: a + value * b * c, header=UNARY + "addcmul.h",
            template=("{fmt}",), args=("value:f32",), params=(VALUE,), rounds="nearest-even", since="0.69", golden="addcmul",
            bound_ulp=0.6, faithful_from=1e-30),
    ternary("addcdiv", "Elementwise a + value * b / c.", lambda a, b, c, value: a + value * b / c, header=UNARY + "addcdiv.h",
            template=("{fmt}",), args=("value:f32",), params=(VALUE,), rounds="nearest-even", since="0.69", domain=(0.25, 4.0),
            golden="addcdiv", bound_ulp=0.6, faithful=(-8.4e37, 8.4e37), faithful_from=1e-30),
    ternary("lerp", "Elementwise a + c * (b - a).", lambda a, b, c: a + c * (b - a), header=UNARY + "lerp.h",
            template=("{fmt}",), rounds="nearest-even", since="0.69", golden="lerp", bound_ulp=0.6, faithful=(-8.4e37, 8.4e37)),
)

BINOP = UNARY + "binop_with_scalar.h"
BINOP_INIT = "binop_with_scalar_tile_init"
DIVISOR = Param(name="scalar", example=3.0, summary="the Python number; not zero")
TENTH = Param(name="scalar", example=0.1, summary="the Python number")
UNIT = Param(name="scalar", example=1.0, summary="the Python number")
FACTOR = Param(name="scalar", example=0.7, summary="the Python number")
EXPONENT = Param(name="exponent", kind="int", low=1, high=32, example=3, summary="a positive whole number")

# Arithmetic with a Python scalar on one side: the scalar is an immediate of the call, not a tile.
SCALARS = (
    scalar_op("add_scalar", "Elementwise x + scalar.", lambda x, scalar: x + scalar, call="add_unary_tile", init=BINOP_INIT,
              header=BINOP, by_dtype=(("i32", "add_int_scalar"),), params=(TENTH,), golden="add_s", bound_ulp=1.0),
    scalar_op("sub_scalar", "Elementwise x - scalar.", lambda x, scalar: x - scalar, call="sub_unary_tile", init=BINOP_INIT,
              header=BINOP, by_dtype=(("i32", "sub_int_scalar"),), params=(TENTH,), golden="sub_s", bound_ulp=1.0),
    scalar_op("rsub_scalar", "Elementwise scalar - x.", lambda x, scalar: scalar - x, call="rsub_unary_tile",
              init=BINOP_INIT, header=BINOP, rounds="nearest-even", by_dtype=(("i32", "rsub_int_scalar"),),
              params=(UNIT,), golden="rsub_s", bound_ulp=0.6),
    scalar_op("mul_scalar", "Elementwise x * scalar.", lambda x, scalar: x * scalar, call="mul_unary_tile", init=BINOP_INIT,
              header=BINOP, params=(FACTOR,), golden="mul_s", bound_ulp=1.0),
    scalar_op("div_scalar", "Elementwise x / scalar, as a product with the reciprocal.", lambda x, scalar: x / scalar,
              encoding="recip", call="div_unary_tile", init=BINOP_INIT, header=BINOP, params=(DIVISOR,),
              golden="div_s", bound_ulp=1.1),
    scalar_op("rdiv_scalar", "Elementwise scalar / x.", lambda x, scalar: scalar / x, call="rdiv_tile",
              header=UNARY + "rdiv.h", includes_first=(BINOP,), since="0.69", domain=(0.25, 4.0), params=(DIVISOR,),
              golden="rdiv_3", bound_ulp=1.5, faithful=(-8.4e37, 8.4e37), by_faces=True),
    scalar_op("pow_scalar", "Elementwise x ** scalar for any exponent.", lambda x, scalar: np.power(x, scalar), call="power_tile",
              header=KERNEL_API, since="0.69", domain=(0.25, 4.0), params=(Param(name="scalar", example=2.5),),
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
              header=UNARY + "remainder.h", since="0.78", args=(), init_args=("scalar:f32", "scalar:recip"), params=(DIVISOR,),
              golden="remainder_s", bound_ulp=1.0, faithful=(-1.2e7, 1.2e7), faithful_from=0.02,
              notes="Gives 0 for a negative x so small that the remainder would round to the scalar."),
    scalar_op("max_scalar", "Elementwise maximum of x and scalar.", np.maximum, call="unary_max_tile", header=KERNEL_API,
              rounds="exact", by_dtype=(("i32", "max_int_scalar"),), params=(Param(name="scalar", example=0.5),),
              golden="unary_max_s", bound_ulp=0.0),
    scalar_op("min_scalar", "Elementwise minimum of x and scalar.", np.minimum, call="unary_min_tile", header=KERNEL_API,
              rounds="exact", by_dtype=(("i32", "min_int_scalar"),), params=(Param(name="scalar", example=0.5),),
              golden="unary_min_s", bound_ulp=0.0),
)

EXP = UNARY + "exp.h"

# Unary functions: exponentials, logarithms, roots, trigonometry, error functions and their kin.
FUNCTIONS = (
    narrowable(
        approximable("exp", "Elementwise e ** x.", np.exp, header=EXP, rounds=NEAREST, golden="exp", bound_ulp=0.95,
                     approx_bound_ulp=6.1, by_faces=True,
                     notes="approx: 6 ULP (exp_tile<true>); exp(x, scale=s) is exp(x * s), see exp_scaled."),
        between=("false", LIMIT, PASS),
        init_between=("0x3F800000", "InputClamping::ClampToNegative"),
    ),
    unary("exp_scaled", "Approximate e ** (scale * x), the scale folded into the init.", lambda x, scale: np.exp(scale * x),
          call="exp_tile", header=EXP, template=("true",), init_template=("true", "{scale:f32}"), since="0.69", python=(),
          params=(Param(name="scale", example=0.5, summary="factor of x"),), golden="exp_approx_scale_half", bound_ulp=6.1,
          by_faces=True),
    unary("exp2", "Elementwise 2 ** x.", np.exp2, header=KERNEL_API, rounds=NEAREST, golden="exp2", bound_ulp=0.95),
    narrowable(
        approximable("expm1", "Elementwise e ** x - 1.", np.expm1, header=KERNEL_API, rounds=NEAREST, golden="expm1",
                     bound_ulp=0.5, approx_bound_ulp=0.5),
    ),
    narrowable(
        approximable("log", "Elementwise natural logarithm.", np.log, header=KERNEL_API, rounds=NEAREST, domain=(0.1, 8.0),
                     golden="log", bound_ulp=0.8, approx_bound_ulp=0.8),
    ),
    narrowable(
        approximable("log1p", "Elementwise log(1 + x).", np.log1p, header=UNARY + "log1p.h", rounds=NEAREST,
                     python=("math.log1p", "math.logp1"), domain=(-0.9, 8.0), golden="log1p", bound_ulp=1.0,
                     approx_bound_ulp=1.0),
    ),
    log_to_base("log2", 2.0),
    log_to_base("log10", 10.0),
    approximable("sqrt", "Elementwise square root.", np.sqrt, header=UNARY + "sqrt.h", init_template=(), rounds=NEAREST,
                 domain=(0.0, 8.0), golden="sqrt", bound_ulp=0.5, approx_bound_ulp=0.5,
                 notes="approx skips the test for negative inputs."),
    approximable("rsqrt", "Elementwise 1 / sqrt(x).", lambda x: 1.0 / np.sqrt(x), header=UNARY + "rsqrt.h", before=("false",),
                 init_template=(), rounds=NEAREST, domain=(0.1, 8.0), golden="rsqrt", bound_ulp=0.5, approx_bound_ulp=0.5,
                 spellings=(Spelling(since="0.79", template=()),),
                 notes="approx skips the test for negative inputs; from 0.79 on it is not offered."),
    unary("recip", "Elementwise 1 / x.", np.reciprocal, header=UNARY + "recip.h", template=("false",),
          init_template=("false",), python=("math.recip", "math.reciprocal"), rounds=NEAREST, domain=(0.25, 4.0),
          golden="recip_nolegacy", bound_ulp=0.6, by_faces=True,
          spellings=(Spelling(since="0.62", template=(), init_template=()),
                     Spelling(since="0.69", template=("false",), init_template=("false",)),
                     Spelling(since="0.79", template=(), init_template=())),
          notes="0.69 to 0.78 default to an older, slower form of 10 good bits (legacy_compat)."),
    unary("cbrt", "Elementwise cube root.", np.cbrt, header=UNARY + "cbrt.h", rounds=NEAREST, since="0.69",
          golden="cbrt", bound_ulp=0.6),
    unary("square", "Elementwise x * x.", np.square, header=KERNEL_API, golden="square", bound_ulp=1.0,
          notes="0.81 rounds to nearest even, at 304 cycles instead of 176."),
    unary("abs", "Elementwise absolute value.", np.abs, header=KERNEL_API, rounds="exact", operator="abs",
          by_dtype=(("i32", "abs_int"),), golden="abs", bound_ulp=0.0),
    unary("neg", "Elementwise -x.", np.negative, call="negative_tile", header=UNARY + "negative.h", rounds="exact",
          operator="neg", python=("math.neg", "math.negative"), by_dtype=(("i32", "neg_int"),), golden="neg", bound_ulp=0.0),
    unary("sign", "1, -1 or 0 by the sign of x.", np.sign, header=KERNEL_API, rounds="exact", golden="sign", bound_ulp=0.0,
          notes="The chip gives -1 for -0."),
    unary("signbit", "1 where the sign bit of x is set.", lambda x: references.truth(np.signbit(x)), header=KERNEL_API,
          rounds="exact", by_dtype=(("i32", "signbit_int"),), golden="signbit", bound_ulp=0.0),
    unary("identity", "x itself.", lambda x: x, header=UNARY + "identity.h", rounds="exact", golden="identity", bound_ulp=0.0),

    trigonometric("sin", "Elementwise sine.", np.sin, 0.5, faithful=(-2400.0, 2400.0)),
    trigonometric("cos", "Elementwise cosine.", np.cos, 0.5, faithful=(-1.3e5, 1.3e5)),
    trigonometric("tan", "Elementwise tangent.", np.tan, 0.6, domain=(-1.4, 1.4), faithful=(-1.3e5, 1.3e5)),
    trigonometric("asin", "Elementwise arcsine.", np.arcsin, 0.5, domain=(-1.0, 1.0)),
    trigonometric("acos", "Elementwise arccosine.", np.arccos, 0.5, domain=(-1.0, 1.0)),
    trigonometric("atan", "Elementwise arctangent.", np.arctan, 0.6),
    trigonometric("sinh", "Elementwise hyperbolic sine.", np.sinh, 0.5, since="0.69"),
    trigonometric("cosh", "Elementwise hyperbolic cosine.", np.cosh, 0.5, since="0.69"),
    narrowable(
        approximable("tanh", "Elementwise hyperbolic tangent.", np.tanh, header=KERNEL_API, rounds=NEAREST, golden="tanh",
                     bound_ulp=0.9, approx_bound_ulp=37.1, lookup=True,
                     notes="approx is a table of slopes: absolute error up to 0.15."),
    ),
    trigonometric("asinh", "Elementwise inverse hyperbolic sine.", np.arcsinh, 1.4),
    trigonometric("acosh", "Elementwise inverse hyperbolic cosine.", np.arccosh, 1.5, domain=(1.0, 8.0)),
    trigonometric("atanh", "Elementwise inverse hyperbolic tangent.", np.arctanh, 2.1, domain=(-0.95, 0.95)),
    approximable("tanh_derivative", "Elementwise 1 - tanh(x) ** 2.", references.tanh_derivative,
                 header=UNARY + "tanh_derivative.h", rounds=NEAREST, since="0.69", golden="tanh_derivative", bound_ulp=1.2),

    approximable("erf", "Elementwise error function.", references.erf, header=UNARY + "erf_erfc.h", default="true",
                 golden="erf", bound_ulp=1.1, approx_bound_ulp=2.1),
    unary("erfc", "Elementwise 1 - erf(x).", references.erfc, header=UNARY + "erf_erfc.h", domain=(-4.0, 2.0),
          golden="erfc", bound_ulp=2.0, faithful=(-math.inf, 2.4)),
    unary("erfinv", "Elementwise inverse of erf.", references.erfinv, header=UNARY + "erfinv.h", domain=(-0.95, 0.95),
          golden="erfinv", bound_ulp=29.2, faithful_from=1e-3),
    unary("i0", "Modified Bessel function of order 0.", references.i0, header=UNARY + "i0.h", golden="i0",
          bound_ulp=1.0, faithful=(-8.8, 8.8)),
    unary("i1", "Modified Bessel function of order 1.", references.i1, header=UNARY + "i1.h", rounds=NEAREST,
          golden="i1", bound_ulp=0.6, faithful=(-10.5, 10.5)),
    unary("digamma", "Derivative of log gamma.", references.digamma, header=UNARY + "digamma.h", since="0.69",
          domain=(2.0, 16.0), golden="digamma", bound_ulp=1.0, faithful=(2.0, 16.0)),

    unary("floor", "Largest whole number not above x.", np.floor, init="rounding_op_tile_init",
          header=UNARY + "rounding.h", rounds="exact", golden="floor", bound_ulp=0.0, jumps=True),
    unary("ceil", "Smallest whole number not below x.", np.ceil, init="rounding_op_tile_init",
          header=UNARY + "rounding.h", rounds="exact", golden="ceil", bound_ulp=0.0, jumps=True),
    unary("trunc", "x without its fraction.", np.trunc, init="rounding_op_tile_init", header=UNARY + "rounding.h",
          rounds="exact", golden="trunc", bound_ulp=0.0, jumps=True),
    unary("frac", "x - trunc(x).", lambda x: x - np.trunc(x), init="rounding_op_tile_init", header=UNARY + "rounding.h",
          rounds="exact", golden="frac", bound_ulp=0.0, jumps=True),
    unary("round", "x rounded to so many decimals, ties to even.", references.round_decimals, init="rounding_op_tile_init",
          header=UNARY + "rounding.h", args=("decimals:int",),
          params=(Param(name="decimals", kind="int", default=0, low=0, high=6),), golden="round0", bound_ulp=1.0, jumps=True),
)

ACTIVATIONS_HEADER = UNARY + "activations.h"
RELU = UNARY + "relu.h"

# Activation functions: one tile in DST, replaced in place by the SFPU.
ACTIVATIONS = (
    unary("relu", "Elementwise max(x, 0).", lambda x: np.maximum(x, 0.0), header=RELU, rounds="exact",
          by_dtype=(("i32", "relu_int"),), golden="relu", bound_ulp=0.0),
    unary("relu_max", "relu(min(x, upper_limit)).",
          lambda x, upper_limit: np.maximum(np.minimum(x, upper_limit), 0.0), header=RELU, args=("upper_limit:f32",),
          params=(Param(name="upper_limit", example=6.0),), rounds="exact", golden="relu_max_6", bound_ulp=0.0),
    unary("relu_min", "relu(max(x, lower_limit)).", lambda x, lower_limit: np.maximum(np.maximum(x, lower_limit), 0.0),
          header=RELU, args=("lower_limit:f32",), params=(Param(name="lower_limit", low=0.0, example=0.5),), rounds="exact",
          golden="relu_min_half", bound_ulp=0.0),
    unary("leaky_relu", "x above 0, slope * x below.", lambda x, slope: references.where(x > 0.0, x, slope * x), header=RELU,
          args=("slope:f32",), params=(Param(name="slope", default=0.01),), golden="leaky_relu", bound_ulp=1.0),
    unary("prelu", "x above 0, alpha * x below.", lambda x, alpha: references.where(x > 0.0, x, alpha * x),
          header=UNARY + "prelu.h", args=("alpha:f32",), params=(Param(name="alpha", default=0.25),),
          golden="prelu_q", bound_ulp=1.0),
    unary("elu", "x above 0, slope * (exp(x) - 1) below.", references.elu, header=UNARY + "elu.h", args=("slope:f32",),
          params=(Param(name="slope", default=1.0),), rounds=NEAREST, golden="elu_1", bound_ulp=0.5),
    unary("selu", "scale * (x above 0, alpha * (exp(x) - 1) below).", references.selu, header=UNARY + "selu.h",
          args=("scale:f32", "alpha:f32"), rounds=NEAREST, since="0.69", golden="selu", bound_ulp=0.5,
          params=(Param(name="scale", default=references.SELU_SCALE), Param(name="alpha", default=references.SELU_ALPHA))),
    unary("celu", "x above 0, alpha * (exp(x / alpha) - 1) below.", references.celu, header=ACTIVATIONS_HEADER,
          args=("alpha:f32", "alpha:recip"), rounds=NEAREST, since="0.69", golden="celu_2", bound_ulp=0.5,
          params=(Param(name="alpha", default=1.0, example=2.0), redundant("alpha_recip", "alpha"))),
    approximable("gelu", "x times the normal distribution function of x.", references.gelu, header=UNARY + "gelu.h",
                 default="true", rounds=NEAREST, golden="gelu", bound_ulp=1.1, approx_bound_ulp=math.inf, lookup=True,
                 notes="approx is a table of slopes: absolute error up to 0.024.", faithful=(-4.6, math.inf)),
    unary("gelu_tanh", "gelu by its tanh formula.", references.gelu_tanh, header=UNARY + "gelu.h", rounds=NEAREST,
          since="0.78", golden="gelu_tanh", bound_ulp=0.6, faithful=(-4.0, math.inf)),
    approximable("gelu_derivative", "Derivative of gelu.", references.gelu_derivative, header=UNARY + "gelu.h", rounds=NEAREST,
                 since="0.69", domain=(-0.5, 4.0), golden="gelu_derivative", bound_ulp=1.0, faithful=(-4.0, math.inf)),
    narrowable(
        approximable("sigmoid", "Elementwise 1 / (1 + exp(-x)).", references.sigmoid, header=KERNEL_API,
                     before=("VectorMode::RC",), rounds=NEAREST, golden="sigmoid", bound_ulp=0.9, approx_bound_ulp=256.0,
                     lookup=True, notes="approx is a table of slopes: absolute error up to 0.12."),
        init_between=None,
    ),
    narrowable(
        unary("silu", "Elementwise x * sigmoid(x).", references.silu, header=KERNEL_API, python=("math.silu", "math.swish"),
              rounds=NEAREST, golden="silu", bound_ulp=1.0, faithful=(-87.0, math.inf)),
        init_between=None,
    ),
    unary("mish", "Elementwise x * tanh(softplus(x)).", references.mish, header=UNARY + "mish.h", template=("false",),
          init_template=("false",), rounds=NEAREST, since="0.78", golden="mish", bound_ulp=1.3, faithful=(-5.3, math.inf)),
    unary("hardmish", "Piecewise form of mish.", references.hardmish, header=UNARY + "hardmish.h", since="0.69",
          golden="hardmish", bound_ulp=1.0),
    unary("softplus", "log(1 + exp(beta * x)) / beta, x above threshold / beta.", references.softplus,
          header=UNARY + "softplus.h", args=("beta:f32", "beta:recip", "threshold:f32"), golden="softplus", bound_ulp=0.8,
          params=(Param(name="beta", default=1.0), redundant("beta_reciprocal", "beta"), Param(name="threshold", default=20.0)),
          faithful=(-5.0, math.inf)),
    unary("softsign", "Elementwise x / (1 + |x|).", lambda x: x / (1.0 + np.abs(x)), header=ACTIVATIONS_HEADER, since="0.69",
          golden="softsign", bound_ulp=1.0, faithful=(-8.5e37, 8.5e37)),
    unary("softshrink", "x moved towards 0 by threshold.", references.softshrink, header=ACTIVATIONS_HEADER,
          args=("threshold:f32",), params=(Param(name="threshold", default=0.5, low=0.0),), since="0.69",
          golden="softshrink", bound_ulp=1.0),
    unary("hardshrink", "x where |x| > threshold, else 0.", references.hardshrink, header=ACTIVATIONS_HEADER,
          args=("threshold:f32",), params=(Param(name="threshold", default=0.5, low=0.0),), rounds="exact", since="0.69",
          golden="hardshrink", bound_ulp=0.0),
    unary("tanhshrink", "Elementwise x - tanh(x).", lambda x: x - np.tanh(x), header=UNARY + "tanhshrink.h",
          rounds=NEAREST, since="0.78", golden="tanhshrink", bound_ulp=1.4, faithful_from=2.2e-7),
    unary("hardsigmoid", "x / 6 + 1 / 2 between 0 and 1.", references.hardsigmoid, header=ACTIVATIONS_HEADER, since="0.69",
          domain=(-2.5, 4.0), golden="hardsigmoid", bound_ulp=1.0),
    unary("hardtanh", "x between min and max.", lambda x, min, max: np.clip(x, min, max), header=UNARY + "hardtanh.h",
          args=("min:f32", "max:f32"), params=(Param(name="min", default=-1.0), Param(name="max", default=1.0)),
          rounds="exact", since="0.69", golden="hardtanh", bound_ulp=0.0),
    unary("clamp", "x between min and max.", lambda x, min, max: np.clip(x, min, max), header=UNARY + "clamp.h",
          python=("math.clamp", "math.clip"), args=("min:f32", "max:f32"),
          params=(Param(name="min", example=-1.5), Param(name="max", example=2.5)), rounds="exact", since="0.69",
          by_dtype=(("i32", "clamp_int"),), golden="clamp", bound_ulp=0.0),
    unary("threshold", "x above threshold, else value.", lambda x, threshold, value: references.where(x > threshold, x, value),
          header=UNARY + "threshold.h", args=("threshold:f32", "value:f32"), rounds="exact", since="0.69",
          params=(Param(name="threshold", example=0.5), Param(name="value", example=-3.0)), golden="threshold", bound_ulp=0.0),
    unary("heaviside", "0 below 0, value at 0, 1 above.", references.heaviside, header=KERNEL_API, args=("value:f32",),
          params=(Param(name="value", default=0.5),), rounds="exact", golden="heaviside", bound_ulp=0.0,
          notes="The chip gives 0 for -0."),
    unary("xielu", "Quadratic above 0, exponential below.", references.xielu, header=UNARY + "xielu.h",
          args=("alpha_p:f32", "alpha_n:f32"), rounds=NEAREST, since="0.69", golden="xielu", bound_ulp=0.5,
          params=(Param(name="alpha_p", default=0.8), Param(name="alpha_n", default=0.8))),
)

KINDS: tuple[tuple[str, str, str, Test], ...] = (
    ("eq", "==", "equals", np.equal),
    ("ne", "!=", "differs from", np.not_equal),
    ("lt", "<", "is less than", np.less),
    ("gt", ">", "is greater than", np.greater),
    ("le", "<=", "is at most", np.less_equal),
    ("ge", ">=", "is at least", np.greater_equal),
)

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

# Comparisons, tests, selection, fill and typecast.
COMPARISONS = (
    *(comparing_tiles(*kind) for kind in KINDS),
    *(comparing_scalar(name, words, test) for name, _, words, test in KINDS),
    *(comparing_zero(name, words, test) for name, _, words, test in KINDS),
    test_for("isinf", "infinite", np.isinf),
    test_for("isposinf", "plus infinity", np.isposinf),
    test_for("isneginf", "minus infinity", np.isneginf),
    test_for("isnan", "not a number", np.isnan),
    test_for("isfinite", "finite", np.isfinite),
    unary("logical_not", "1 where x is 0, else 0.", lambda x: truth(np.equal(x, 0.0)), header=UNARY + "logical_not.h",
          template=("{fmt}",), rounds="exact", since="0.69", dtypes=(*FLOAT_DTYPES, *INTEGER_DTYPES), golden="logical_not",
          bound_ulp=0.0, notes="The chip gives 0 for -0."),
    ternary("where", "b where a is not 0, else c.", lambda a, b, c: references.where(a != 0, b, c), header=UNARY + "where.h",
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
    unary("typecast", "x in another dtype.", lambda x: x, header=UNARY + "typecast.h",
          template=CONVERSION, init_template=CONVERSION,
          python=("math.typecast", "block.typecast"), rounds="nearest-even", result_dtype="{dtype}", bound_ulp=0.5,
          dtypes=(*FLOAT_DTYPES, *INTEGER_DTYPES),
          params=(Param(name="dtype", kind="str", example="bf16", summary="the dtype wanted"),
                  Param(name="source", kind="str", default="", example="f32", hidden=True, summary="the operand's dtype")),
          notes="From floats, i32, u32 and u8 cut fractions off; u16 rounds to the nearest whole number, halves away from 0. "
                "Below 0, u32 and u16 give 0, u8 wraps."),
)
# fmt: on
