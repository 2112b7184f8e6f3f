"""Rows of the unary functions: exponentials, logarithms, roots, trigonometry, error functions and their kin."""

# The lambdas are formulas on NumPy arrays, whose types say nothing.
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tilewright.dialects.op_rows import references
from tilewright.dialects.op_rows.forms import KERNEL_API, UNARY, approximable, unary
from tilewright.dialects.op_rows.late_numpy import np
from tilewright.dialects.tile_op import Param, Spelling, TileOp

EXP = UNARY + "exp.h"
TRIGONOMETRY = UNARY + "trigonometry.h"
NEAREST = "nearest-even"


def log_to_base(name: str, base: float) -> TileOp:
    """The call multiplies the natural logarithm by 1 / ln(base)."""
    scale = 1.0 / math.log(base)
    factor = Param(name="base_scale", default=scale, hidden=True, summary=f"1 / ln({base:g})")

    def reference(x: Any, base_scale: float = scale) -> Any:
        return np.log(x) * base_scale

    return unary(
        name, f"Elementwise logarithm to base {base:g}.", reference, call="log_with_base_tile", header=KERNEL_API,
        args=("base_scale:f32",), params=(factor,), rounds=NEAREST, domain=(0.1, 8.0), golden=name, bound_ulp=0.8,
        since="0.69",
    )  # fmt: skip


def trigonometric(name: str, summary: str, reference: Callable[..., Any], bound_ulp: float, **fields: Any) -> TileOp:
    fields = {"header": TRIGONOMETRY, "rounds": NEAREST, "golden": name, **fields}
    return unary(name, summary, reference, bound_ulp=bound_ulp, **fields)


# fmt: off
ROWS = (
    approximable("exp", "Elementwise e ** x.", np.exp, header=EXP, rounds=NEAREST, golden="exp", bound_ulp=0.95,
                 approx_bound_ulp=6.1, by_faces=True,
                 notes="approx: 6 ULP (exp_tile<true>); exp(x, scale=s) is exp(x * s), see exp_scaled."),
    unary("exp_scaled", "Approximate e ** (scale * x), the scale folded into the init.",
          lambda x, scale: np.exp(scale * x), call="exp_tile", header=EXP, template=("true",),
          init_template=("true", "{scale:f32}"), since="0.69", python=(),
          params=(Param(name="scale", example=0.5, summary="factor of x"),), golden="exp_approx_scale_half",
          bound_ulp=6.1, by_faces=True),
    unary("exp2", "Elementwise 2 ** x.", np.exp2, header=KERNEL_API, rounds=NEAREST, golden="exp2", bound_ulp=0.95),
    approximable("expm1", "Elementwise e ** x - 1.", np.expm1, header=KERNEL_API, rounds=NEAREST, golden="expm1",
                 bound_ulp=0.5, approx_bound_ulp=0.5),
    approximable("log", "Elementwise natural logarithm.", np.log, header=KERNEL_API, rounds=NEAREST, domain=(0.1, 8.0),
                 golden="log", bound_ulp=0.8, approx_bound_ulp=0.8),
    approximable("log1p", "Elementwise log(1 + x).", np.log1p, header=UNARY + "log1p.h", rounds=NEAREST,
                 python=("math.log1p", "math.logp1"), domain=(-0.9, 8.0), golden="log1p", bound_ulp=1.0,
                 approx_bound_ulp=1.0),
    log_to_base("log2", 2.0),
    log_to_base("log10", 10.0),
    approximable("sqrt", "Elementwise square root.", np.sqrt, header=UNARY + "sqrt.h", init_template=(), rounds=NEAREST,
                 domain=(0.0, 8.0), golden="sqrt", bound_ulp=0.5, approx_bound_ulp=0.5,
                 notes="approx skips the test for negative inputs."),
    approximable("rsqrt", "Elementwise 1 / sqrt(x).", lambda x: 1.0 / np.sqrt(x), header=UNARY + "rsqrt.h",
                 before=("false",), init_template=(), rounds=NEAREST, domain=(0.1, 8.0), golden="rsqrt",
                 bound_ulp=0.5, approx_bound_ulp=0.5,
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
          operator="neg", python=("math.neg", "math.negative"), by_dtype=(("i32", "neg_int"),), golden="neg",
          bound_ulp=0.0),
    unary("sign", "1, -1 or 0 by the sign of x.", np.sign, header=KERNEL_API, rounds="exact", golden="sign",
          bound_ulp=0.0,
          notes="The chip gives -1 for -0."),
    unary("signbit", "1 where the sign bit of x is set.", lambda x: references.truth(np.signbit(x)), header=KERNEL_API,
          rounds="exact", by_dtype=(("i32", "signbit_int"),), golden="signbit", bound_ulp=0.0),
    unary("identity", "x itself.", lambda x: x, header=UNARY + "identity.h", rounds="exact", golden="identity",
          bound_ulp=0.0),

    trigonometric("sin", "Elementwise sine.", np.sin, 0.5, faithful=(-2400.0, 2400.0)),
    trigonometric("cos", "Elementwise cosine.", np.cos, 0.5, faithful=(-1.3e5, 1.3e5)),
    trigonometric("tan", "Elementwise tangent.", np.tan, 0.6, domain=(-1.4, 1.4), faithful=(-1.3e5, 1.3e5)),
    trigonometric("asin", "Elementwise arcsine.", np.arcsin, 0.5, domain=(-1.0, 1.0)),
    trigonometric("acos", "Elementwise arccosine.", np.arccos, 0.5, domain=(-1.0, 1.0)),
    trigonometric("atan", "Elementwise arctangent.", np.arctan, 0.6),
    trigonometric("sinh", "Elementwise hyperbolic sine.", np.sinh, 0.5, since="0.69"),
    trigonometric("cosh", "Elementwise hyperbolic cosine.", np.cosh, 0.5, since="0.69"),
    approximable("tanh", "Elementwise hyperbolic tangent.", np.tanh, header=KERNEL_API, rounds=NEAREST, golden="tanh",
                 bound_ulp=0.9, approx_bound_ulp=37.1, lookup=True,
                 notes="approx is a table of slopes: absolute error up to 0.15."),
    trigonometric("asinh", "Elementwise inverse hyperbolic sine.", np.arcsinh, 1.4),
    trigonometric("acosh", "Elementwise inverse hyperbolic cosine.", np.arccosh, 1.5, domain=(1.0, 8.0)),
    trigonometric("atanh", "Elementwise inverse hyperbolic tangent.", np.arctanh, 2.1, domain=(-0.95, 0.95)),
    approximable("tanh_derivative", "Elementwise 1 - tanh(x) ** 2.", references.tanh_derivative,
                 header=UNARY + "tanh_derivative.h", rounds=NEAREST, since="0.69", golden="tanh_derivative",
                 bound_ulp=1.2),

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
    unary("round", "x rounded to so many decimals, ties to even.", references.round_decimals,
          init="rounding_op_tile_init",
          header=UNARY + "rounding.h", args=("decimals:int",),
          params=(Param(name="decimals", kind="int", default=0, low=0, high=6),), golden="round0", bound_ulp=1.0, jumps=True),
)
# fmt: on
