"""Rows of the activation functions: one tile in DST, replaced in place by the SFPU."""

# The lambdas are formulas on NumPy arrays, whose types say nothing.
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import math

from tilewright.dialects.op_rows import references
from tilewright.dialects.op_rows.forms import KERNEL_API, UNARY, approximable, unary
from tilewright.dialects.op_rows.late_numpy import np
from tilewright.dialects.tile_op import Param

ACTIVATIONS = UNARY + "activations.h"
RELU = UNARY + "relu.h"
NEAREST = "nearest-even"


def redundant(name: str, of: str) -> Param:
    """TT-Lang passes some reciprocals beside the number itself; the number decides."""
    return Param(name=name, default=0.0, summary=f"taken and not used: it is 1 / {of}")


# fmt: off
ROWS = (
    unary("relu", "Elementwise max(x, 0).", lambda x: np.maximum(x, 0.0), header=RELU, rounds="exact",
          by_dtype=(("i32", "relu_int"),), golden="relu", bound_ulp=0.0),
    unary("relu_max", "relu(min(x, upper_limit)).",
          lambda x, upper_limit: np.maximum(np.minimum(x, upper_limit), 0.0), header=RELU, args=("upper_limit:f32",),
          params=(Param(name="upper_limit", example=6.0),), rounds="exact", golden="relu_max_6", bound_ulp=0.0),
    unary("relu_min", "relu(max(x, lower_limit)).",
          lambda x, lower_limit: np.maximum(np.maximum(x, lower_limit), 0.0), header=RELU, args=("lower_limit:f32",),
          params=(Param(name="lower_limit", low=0.0, example=0.5),), rounds="exact", golden="relu_min_half",
          bound_ulp=0.0),
    unary("leaky_relu", "x above 0, slope * x below.", lambda x, slope: np.where(x > 0.0, x, slope * x), header=RELU,
          args=("slope:f32",), params=(Param(name="slope", default=0.01),), golden="leaky_relu", bound_ulp=1.0),
    unary("prelu", "x above 0, alpha * x below.", lambda x, alpha: np.where(x > 0.0, x, alpha * x),
          header=UNARY + "prelu.h", args=("alpha:f32",), params=(Param(name="alpha", default=0.25),),
          golden="prelu_q", bound_ulp=1.0),
    unary("elu", "x above 0, slope * (exp(x) - 1) below.", references.elu, header=UNARY + "elu.h", args=("slope:f32",),
          params=(Param(name="slope", default=1.0),), rounds=NEAREST, golden="elu_1", bound_ulp=0.5),
    unary("selu", "scale * (x above 0, alpha * (exp(x) - 1) below).", references.selu, header=UNARY + "selu.h",
          args=("scale:f32", "alpha:f32"), rounds=NEAREST, since="0.69", golden="selu", bound_ulp=0.5,
          params=(Param(name="scale", default=references.SELU_SCALE), Param(name="alpha",
          default=references.SELU_ALPHA))),
    unary("celu", "x above 0, alpha * (exp(x / alpha) - 1) below.", references.celu, header=ACTIVATIONS,
          args=("alpha:f32", "alpha:recip"), rounds=NEAREST, since="0.69", golden="celu_2", bound_ulp=0.5,
          params=(Param(name="alpha", default=1.0, example=2.0), redundant("alpha_recip", "alpha"))),
    approximable("gelu", "x times the normal distribution function of x.", references.gelu, header=UNARY + "gelu.h",
                 default="true", rounds=NEAREST, golden="gelu", bound_ulp=1.1, approx_bound_ulp=math.inf, lookup=True,
                 notes="approx is a table of slopes: absolute error up to 0.024.", faithful=(-4.6, math.inf)),
    unary("gelu_tanh", "gelu by its tanh formula.", references.gelu_tanh, header=UNARY + "gelu.h", rounds=NEAREST,
          since="0.78", golden="gelu_tanh", bound_ulp=0.6, faithful=(-4.0, math.inf)),
    approximable("gelu_derivative", "Derivative of gelu.", references.gelu_derivative, header=UNARY + "gelu.h",
                 rounds=NEAREST, since="0.69", domain=(-0.5, 4.0), golden="gelu_derivative", bound_ulp=1.0,
          faithful=(-4.0, math.inf)),
    approximable("sigmoid", "Elementwise 1 / (1 + exp(-x)).", references.sigmoid, header=KERNEL_API,
                 before=("VectorMode::RC",), rounds=NEAREST, golden="sigmoid", bound_ulp=0.9, approx_bound_ulp=256.0,
                 lookup=True,
                 notes="approx is a table of slopes: absolute error up to 0.12."),
    unary("silu", "Elementwise x * sigmoid(x).", references.silu, header=KERNEL_API, python=("math.silu", "math.swish"),
          rounds=NEAREST, golden="silu", bound_ulp=1.0, faithful=(-87.0, math.inf)),
    unary("mish", "Elementwise x * tanh(softplus(x)).", references.mish, header=UNARY + "mish.h", template=("false",),
          init_template=("false",), rounds=NEAREST, since="0.69", golden="mish", bound_ulp=1.3, faithful=(-5.3, math.inf)),
    unary("hardmish", "Piecewise form of mish.", references.hardmish, header=UNARY + "hardmish.h", since="0.69",
          golden="hardmish", bound_ulp=1.0),
    unary("softplus", "log(1 + exp(beta * x)) / beta, x above threshold / beta.", references.softplus,
          header=UNARY + "softplus.h", args=("beta:f32", "beta:recip", "threshold:f32"), golden="softplus",
          bound_ulp=0.8,
          params=(Param(name="beta", default=1.0), redundant("beta_reciprocal", "beta"),
                  Param(name="threshold", default=20.0)), faithful=(-5.0, math.inf)),
    unary("softsign", "Elementwise x / (1 + |x|).", lambda x: x / (1.0 + np.abs(x)), header=ACTIVATIONS, since="0.69",
          golden="softsign", bound_ulp=1.0, faithful=(-8.5e37, 8.5e37)),
    unary("softshrink", "x moved towards 0 by threshold.", references.softshrink, header=ACTIVATIONS,
          args=("threshold:f32",), params=(Param(name="threshold", default=0.5, low=0.0),), since="0.69",
          golden="softshrink", bound_ulp=1.0),
    unary("hardshrink", "x where |x| > threshold, else 0.", references.hardshrink, header=ACTIVATIONS,
          args=("threshold:f32",), params=(Param(name="threshold", default=0.5, low=0.0),), rounds="exact",
          since="0.69",
          golden="hardshrink", bound_ulp=0.0),
    unary("tanhshrink", "Elementwise x - tanh(x).", lambda x: x - np.tanh(x), header=UNARY + "tanhshrink.h",
          rounds=NEAREST, since="0.69", golden="tanhshrink", bound_ulp=1.4, faithful_from=2.2e-7),
    unary("hardsigmoid", "x / 6 + 1 / 2 between 0 and 1.", references.hardsigmoid, header=ACTIVATIONS, since="0.69",
          domain=(-2.5, 4.0),
          golden="hardsigmoid", bound_ulp=1.0),
    unary("hardtanh", "x between min and max.", lambda x, min, max: np.clip(x, min, max), header=UNARY + "hardtanh.h",
          args=("min:f32", "max:f32"), params=(Param(name="min", default=-1.0), Param(name="max", default=1.0)),
          rounds="exact", since="0.69", golden="hardtanh", bound_ulp=0.0),
    unary("clamp", "x between min and max.", lambda x, min, max: np.clip(x, min, max), header=UNARY + "clamp.h",
          python=("math.clamp", "math.clip"), args=("min:f32", "max:f32"),
          params=(Param(name="min", example=-1.5), Param(name="max", example=2.5)), rounds="exact", since="0.69",
          by_dtype=(("i32", "clamp_int"),), golden="clamp", bound_ulp=0.0),
    unary("threshold", "x above threshold, else value.",
          lambda x, threshold, value: np.where(x > threshold, x, value), header=UNARY + "threshold.h",
          args=("threshold:f32", "value:f32"), rounds="exact", since="0.69",
          params=(Param(name="threshold", example=0.5), Param(name="value", example=-3.0)), golden="threshold",
          bound_ulp=0.0),
    unary("heaviside", "0 below 0, value at 0, 1 above.", references.heaviside, header=KERNEL_API, args=("value:f32",),
          params=(Param(name="value", default=0.5),), rounds="exact", golden="heaviside", bound_ulp=0.0,
          notes="The chip gives 0 for -0."),
    unary("xielu", "Quadratic above 0, exponential below.", references.xielu, header=UNARY + "xielu.h",
          args=("alpha_p:f32", "alpha_n:f32"), rounds=NEAREST, since="0.69", golden="xielu", bound_ulp=0.5,
          params=(Param(name="alpha_p", default=0.8), Param(name="alpha_n", default=0.8))),
)
# fmt: on
