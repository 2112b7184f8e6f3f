"""What the inits and calls of the vector unit leave behind, by name: the op table, the simulator and the native machine read it.

An init that is not named here loads programmable constants: its op needs it to be the last such init. Names without a row in the
op table are functions of the API that a hand-written kernel may call.
"""

from __future__ import annotations

# Inits that only reset counters: after any vector init has run once they need not run again. Comparisons of two tiles are not
# here though their inits look it: they store through an address mode their init sets.
STATELESS = frozenset(
    (
        "abs_tile_init", "add_binary_tile_init", "add_int_tile_init", "addcmul_tile_init", "alt_complex_rotate90_tile_init",
        "binary_bitwise_tile_init", "binary_shift_tile_init", "binop_with_scalar_tile_init", "bitwise_and_tile_init",
        "bitwise_not_tile_init", "bitwise_or_tile_init", "bitwise_xor_tile_init", "celu_tile_init", "clamp_tile_init",
        "copy_dest_values_init", "elu_tile_init", "fill_tile_init", "hardmish_tile_init", "hardshrink_tile_init",
        "hardtanh_tile_init", "hardtanh_tile_init_pack", "heaviside_tile_init", "i0_tile_init", "identity_tile_init",
        "isfinite_tile_init", "isinf_tile_init", "isnan_tile_init", "isneginf_tile_init", "isposinf_tile_init",
        "leaky_relu_tile_init", "left_shift_tile_init", "lerp_tile_init", "lgamma_adjusted_tile_init",
        "logical_not_tile_init", "logsigmoid_tile_init", "mask_tile_init", "mul_binary_tile_init", "negative_tile_init",
        "power_iterative_tile_init", "prelu_tile_init", "relu_max_tile_init", "relu_max_tile_init_pack",
        "relu_min_tile_init", "relu_tile_init", "reshuffle_rows_tile_init", "right_shift_tile_init", "rounding_op_tile_init",
        "rsub_binary_tile_init", "rsub_int_tile_init", "rsub_tile_init", "rsub_unary_int32_tile_init", "selu_tile_init",
        "selu_tile_init_pack", "sign_tile_init", "softplus_tile_init", "softplus_tile_init_pack", "softshrink_tile_init",
        "sub_binary_tile_init", "sub_int_tile_init", "threshold_tile_init", "tiled_prod_tile_init", "unary_eq_tile_init",
        "unary_ge_tile_init", "unary_gt_tile_init", "unary_le_tile_init", "unary_lt_tile_init", "unary_ne_tile_init",
    )
)  # fmt: skip

# Inits that set the address mode their op stores through.
ADDRESS_MODE = frozenset(
    (
        "eq_binary_tile_init", "eq_int_tile_init", "eqz_tile_init", "ge_binary_tile_init", "ge_int_tile_init",
        "gez_tile_init", "gt_binary_tile_init", "gt_int_tile_init", "gtz_tile_init", "le_binary_tile_init",
        "le_int_tile_init", "lez_tile_init", "lt_binary_tile_init", "lt_int_tile_init", "ltz_tile_init",
        "ne_binary_tile_init", "ne_int_tile_init", "nez_tile_init",
    )
)  # fmt: skip

# Inits that record instructions as macros.
MACROS = frozenset(
    (
        "binary_max_int32_tile_init", "binary_max_tile_init", "binary_max_uint32_tile_init", "binary_min_int32_tile_init",
        "binary_min_tile_init", "binary_min_uint32_tile_init", "mac_tile_init", "max_tile_init", "signbit_tile_init",
        "signbit_tile_int32_init", "typecast_tile_init", "unary_max_int32_tile_init", "unary_max_tile_init",
        "unary_max_uint32_tile_init", "unary_min_int32_tile_init", "unary_min_tile_init", "unary_min_uint32_tile_init",
        "where_tile_init",
    )
)  # fmt: skip

# Calls that write a programmable constant each time they run, whatever their init does.
WRITE_CONSTANTS = frozenset(
    (
        "clamp_tile", "clamp_tile_int32", "unary_max_int32_tile", "unary_max_tile", "unary_max_uint32_tile",
        "unary_min_int32_tile", "unary_min_tile", "unary_min_uint32_tile",
    )
)  # fmt: skip

# Inits that put the address step of every vector call back to zero, whatever ran before.
STOP_STEPPING = frozenset(
    (
        "exp_tile_init", "recip_tile_init", "sfpu_bcast_col_init", "sfpu_bcast_init", "sfpu_bcast_row_init",
        "snake_beta_tile_init",
    )
)  # fmt: skip

# Inits of ops that fill the upper half of the replay buffer, where the matrix unit has its own.
FILL_REPLAY = frozenset(
    (
        "gcd_tile_init", "lcm_tile_init", "rand_tile_init",
    )
)  # fmt: skip


def leaves_state(init: str, call: str) -> bool:
    """Whether another op may need its init again after this one ran, or this one after another."""
    return init not in STATELESS or call in WRITE_CONSTANTS
