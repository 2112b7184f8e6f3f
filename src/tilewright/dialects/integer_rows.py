"""Rows of the op table on integers and bits."""

from __future__ import annotations

from tilewright.dialects import row_references as references
from tilewright.dialects.float_rows import KINDS
from tilewright.dialects.row_forms import (
    KERNEL_API,
    SIGNED,
    UNARY,
    int_binary,
    int_scalar,
    int_unary,
    naming_scalar,
    sfpu_form,
    whole,
)
from tilewright.dialects.row_references import np
from tilewright.dialects.tile_op import (
    INTEGER_DTYPES,
    Param,
    TileOp,
    Writes,
)

UNSIGNED = ("u32",)
BITWISE = "binary_bitwise_sfpu.h"
BITS = Param(name="scalar", kind="int", low=0, high=31, example=3, summary="how many bits")
FMT = ("{fmt}",)

# fmt: off
INTEGERS = (
    int_binary("add_int", "Integer a + b.", np.add, "add_int_tile", "add_int_sfpu.h", template=FMT, dtypes=INTEGER_DTYPES,
               scalar="add_int_scalar", rscalar="add_int_scalar", commutes=True),
    int_binary("sub_int", "Integer a - b.", np.subtract, "sub_int_tile", "sub_int_sfpu.h", template=FMT, dtypes=INTEGER_DTYPES,
               scalar="sub_int_scalar", rscalar="rsub_int_scalar"),
    int_binary("rsub_int", "Integer b - a.", lambda a, b: b - a, "rsub_int_tile", "sub_int_sfpu.h", template=FMT,
               dtypes=INTEGER_DTYPES, scalar="rsub_int_scalar"),
    int_binary("mul_int", "Integer a * b, low 32 (16) bits.", np.multiply, "mul_int_tile", "mul_int_sfpu.h", template=FMT,
               init_template=FMT, dtypes=INTEGER_DTYPES, commutes=True),
    int_binary("floordiv_int", "Integer quotient, rounded down.", np.floor_divide, "div_int32_floor_tile", "div_int32_floor.h",
               dtypes=SIGNED, domain=(1.0, 1000.0)),
    int_binary("truncdiv_int", "Integer quotient, rounded towards 0.", references.trunc_division, "div_int32_trunc_tile",
               "div_int32_floor.h", dtypes=SIGNED, domain=(1.0, 1000.0), python=("math.truncdiv",)),
    int_binary("fmod_int", "Integer remainder with the sign of a.", np.fmod, "fmod_int32_tile", "binary_fmod.h", dtypes=SIGNED,
               domain=(1.0, 1000.0)),
    int_binary("remainder_int", "Integer remainder with the sign of b.", np.mod, "remainder_int32_tile", "binary_remainder.h",
               dtypes=SIGNED, domain=(1.0, 1000.0)),
    int_binary("remainder_uint", "Unsigned remainder.", np.mod, "remainder_uint32_tile", "binary_remainder.h", dtypes=UNSIGNED,
               since="0.78", domain=(1.0, 1000.0)),
    int_binary("max_int", "Integer maximum.", np.maximum, "binary_max_int32_tile", "binary_max_min.h", dtypes=SIGNED,
               scalar="max_int_scalar", rscalar="max_int_scalar", commutes=True),
    int_binary("min_int", "Integer minimum.", np.minimum, "binary_min_int32_tile", "binary_max_min.h", dtypes=SIGNED,
               scalar="min_int_scalar", rscalar="min_int_scalar", commutes=True),
    int_binary("max_uint", "Unsigned maximum.", np.maximum, "binary_max_uint32_tile", "binary_max_min.h", dtypes=UNSIGNED,
               commutes=True),
    int_binary("min_uint", "Unsigned minimum.", np.minimum, "binary_min_uint32_tile", "binary_max_min.h", dtypes=UNSIGNED,
               commutes=True),
    int_binary("gcd", "Greatest common divisor.", np.gcd, "gcd_tile", "gcd.h", dtypes=SIGNED, python=("math.gcd",),
               commutes=True),
    int_binary("lcm", "Least common multiple.", np.lcm, "lcm_tile", "lcm.h", dtypes=SIGNED, python=("math.lcm",),
               commutes=True, domain=(1.0, 180.0)),
    *(int_binary(f"{name}_int", f"1 where integer a {words} b, else 0.", whole(test), f"{name}_int_tile", "binary_comp.h",
                 since="0.78", template=FMT, init_template=FMT, dtypes=INTEGER_DTYPES, scalar=f"{name}_int_scalar")
      for name, _, words, test in KINDS),

    int_binary("bitwise_and", "Bitwise a & b.", np.bitwise_and, "bitwise_and_binary_tile", BITWISE, template=FMT,
               init="binary_bitwise_tile_init", operator="&", python=("math.bitwise_and",), dtypes=INTEGER_DTYPES,
               scalar="bitwise_and_scalar", rscalar="bitwise_and_scalar", commutes=True),
    int_binary("bitwise_or", "Bitwise a | b.", np.bitwise_or, "bitwise_or_binary_tile", BITWISE, template=FMT,
               init="binary_bitwise_tile_init", operator="|", python=("math.bitwise_or",), dtypes=INTEGER_DTYPES,
               scalar="bitwise_or_scalar", rscalar="bitwise_or_scalar", commutes=True),
    int_binary("bitwise_xor", "Bitwise a ^ b.", np.bitwise_xor, "bitwise_xor_binary_tile", BITWISE, template=FMT,
               init="binary_bitwise_tile_init", operator="^", python=("math.bitwise_xor",), dtypes=INTEGER_DTYPES,
               scalar="bitwise_xor_scalar", rscalar="bitwise_xor_scalar", commutes=True),
    int_binary("left_shift", "a shifted left by b bits.", np.left_shift, "binary_left_shift_tile", "binary_shift.h", template=FMT,
               init="binary_shift_tile_init", operator="<<", python=("math.left_shift",), dtypes=INTEGER_DTYPES,
               scalar="left_shift_scalar", domain=(0.0, 15.0)),
    int_binary("right_shift", "a shifted right by b bits, sign kept.", np.right_shift, "binary_right_shift_tile",
          "binary_shift.h", template=FMT, init="binary_shift_tile_init", operator=">>", python=("math.right_shift",),
          dtypes=("i32", "u16"), by_dtype=(("u32", "logical_right_shift"),), scalar="right_shift_scalar", domain=(0.0, 15.0)),
    int_binary("logical_right_shift", "a shifted right by b bits, zeros come in.", lambda a, b: (a & 0xFFFFFFFF) >> b,
               "binary_logical_right_shift_tile", "binary_shift.h", template=FMT, init="binary_shift_tile_init",
               python=("math.logical_right_shift",), dtypes=INTEGER_DTYPES, domain=(0.0, 15.0)),

    int_scalar("add_int_scalar", "Integer x + scalar.", lambda x, scalar: x + scalar, "add_unary_tile_int32",
               UNARY + "binop_with_scalar.h", init="binop_with_scalar_tile_init"),
    int_scalar("sub_int_scalar", "Integer x - scalar.", lambda x, scalar: x - scalar, "sub_unary_tile_int32",
               UNARY + "binop_with_scalar.h", init="binop_with_scalar_tile_init"),
    int_scalar("rsub_int_scalar", "Integer scalar - x.", lambda x, scalar: scalar - x, "rsub_unary_int32_tile", UNARY + "rsub.h"),
    int_scalar("max_int_scalar", "Integer maximum of x and scalar.", np.maximum, "unary_max_int32_tile", KERNEL_API),
    int_scalar("min_int_scalar", "Integer minimum of x and scalar.", np.minimum, "unary_min_int32_tile", KERNEL_API),
    *(int_scalar(f"{name}_int_scalar", f"1 where integer x {words} scalar, else 0.", naming_scalar(whole(test)),
                 f"unary_{name}_tile_int32", UNARY + "comp.h", init=f"unary_{name}_tile_init")
      for name, _, words, test in KINDS),
    int_scalar("bitwise_and_scalar", "Bitwise x & scalar.", np.bitwise_and, "bitwise_and_tile", UNARY + "bitwise.h",
               template=FMT, dtypes=INTEGER_DTYPES, since="0.78"),
    int_scalar("bitwise_or_scalar", "Bitwise x | scalar.", np.bitwise_or, "bitwise_or_tile", UNARY + "bitwise.h",
               template=FMT, dtypes=INTEGER_DTYPES, since="0.78"),
    int_scalar("bitwise_xor_scalar", "Bitwise x ^ scalar.", np.bitwise_xor, "bitwise_xor_tile", UNARY + "bitwise.h",
               template=FMT, dtypes=INTEGER_DTYPES, since="0.78"),
    int_scalar("left_shift_scalar", "x shifted left.", np.left_shift, "left_shift_tile", UNARY + "shift.h", template=FMT,
               dtypes=INTEGER_DTYPES, params=(BITS,), since="0.78"),
    int_scalar("right_shift_scalar", "x shifted right, sign kept.", np.right_shift, "right_shift_tile", UNARY + "shift.h",
               template=FMT, dtypes=("i32", "u16"), params=(BITS,), since="0.78"),

    int_unary("bitwise_not", "Bitwise ~x.", np.invert, "bitwise_not_tile", UNARY + "bitwise_not.h", operator="~",
        python=("math.bitwise_not",)),
    int_unary("abs_int", "Integer absolute value.", np.abs, "abs_tile_int32", KERNEL_API, init="abs_tile_init"),
    int_unary("neg_int", "Integer -x.", np.negative, "negative_tile_int32", UNARY + "negative.h", init="negative_tile_init"),
    int_unary("relu_int", "Integer max(x, 0).", lambda x: np.maximum(x, 0), "relu_tile_int32", UNARY + "relu.h",
        init="relu_tile_init"),
    int_unary("signbit_int", "1 where integer x is negative.", lambda x: np.asarray(x < 0, dtype="int64"), "signbit_tile_int32",
              KERNEL_API, init="signbit_tile_int32_init", since="0.69"),
    int_unary("clamp_int", "Integer x between min and max.", lambda x, min, max: np.clip(x, min, max), "clamp_tile_int32",
        UNARY + "clamp.h", init="clamp_tile_init", args=("min:int", "max:int"), since="0.69",
        params=(Param(name="min", kind="int", example=-5), Param(name="max", kind="int", example=7))),
    TileOp(
        name="fill_int", summary="A tile of one whole number.", arity=0, dtypes=INTEGER_DTYPES, bound_ulp=0.0,
        reference=lambda value: np.int64(value), params=(Param(name="value", kind="int", example=7),),
        forms=(sfpu_form("fill_tile_int", init="fill_tile_init", header=UNARY + "fill.h", args=("o", "value:int"),
                         template=FMT, writes=Writes.ANY, rounds="exact"),),
    ),
)
# fmt: on
