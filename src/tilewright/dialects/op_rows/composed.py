"""Functions and operators the kernel API has no usable call for, as steps of rows."""

# The lambdas are formulas on NumPy arrays, whose types say nothing.
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import math

from tilewright.dialects.op_rows import references
from tilewright.dialects.op_rows.forms import SCALAR
from tilewright.dialects.op_rows.late_numpy import np
from tilewright.dialects.tile_op import Composite, Param, Step

# The larger of two operands (s0) and minus their distance (s3).
DISTANCE = (
    Step(op="max", operands=("a0", "a1")),
    Step(op="sub", operands=("a0", "a1")),
    Step(op="abs", operands=("s1",)),
    Step(op="neg", operands=("s2",)),
)

# fmt: off
COMPOSITES = (
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
