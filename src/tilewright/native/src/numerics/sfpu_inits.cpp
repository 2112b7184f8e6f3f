// Which inits leave nothing behind. Everything not named here owns the programmable constants.
#include <set>
#include <string_view>

#include "sfpu.h"

namespace tw {

namespace {

const std::set<std::string_view> kStateless = {
    "add_int_tile_init", "binary_bitwise_tile_init", "binary_shift_tile_init", "abs_tile_init", "sign_tile_init", "tiled_prod_tile_init",
    "power_iterative_tile_init", "heaviside_tile_init", "alt_complex_rotate90_tile_init", "copy_dest_values_init",
    "mul_binary_tile_init", "add_binary_tile_init", "sub_binary_tile_init", "rsub_binary_tile_init",
    "logsigmoid_tile_init", "mask_tile_init", "reshuffle_rows_tile_init", "sub_int_tile_init", "rsub_int_tile_init",
    "celu_tile_init", "softshrink_tile_init", "hardshrink_tile_init", "addcmul_tile_init", "binop_with_scalar_tile_init",
    "bitwise_and_tile_init", "bitwise_or_tile_init", "bitwise_xor_tile_init", "bitwise_not_tile_init", "clamp_tile_init",
    "unary_ne_tile_init", "unary_eq_tile_init", "unary_gt_tile_init", "unary_ge_tile_init", "unary_lt_tile_init",
    "unary_le_tile_init", "elu_tile_init", "fill_tile_init", "hardmish_tile_init", "hardtanh_tile_init",
    "hardtanh_tile_init_pack", "i0_tile_init", "identity_tile_init", "isinf_tile_init", "isposinf_tile_init",
    "isneginf_tile_init", "isnan_tile_init", "isfinite_tile_init", "lerp_tile_init", "lgamma_adjusted_tile_init",
    "logical_not_tile_init", "negative_tile_init", "prelu_tile_init", "relu_tile_init", "relu_min_tile_init",
    "relu_max_tile_init", "relu_max_tile_init_pack", "leaky_relu_tile_init", "rounding_op_tile_init", "rsub_tile_init",
    "rsub_unary_int32_tile_init", "selu_tile_init", "selu_tile_init_pack", "left_shift_tile_init", "right_shift_tile_init",
    "softplus_tile_init", "softplus_tile_init_pack", "threshold_tile_init",
};

const std::set<std::string_view> kAddressMode = {
    "gtz_tile_init", "nez_tile_init", "gez_tile_init", "ltz_tile_init", "eqz_tile_init", "lez_tile_init",
    "eq_binary_tile_init", "ne_binary_tile_init", "lt_binary_tile_init", "gt_binary_tile_init", "le_binary_tile_init",
    "ge_binary_tile_init", "eq_int_tile_init", "ne_int_tile_init", "lt_int_tile_init", "gt_int_tile_init", "le_int_tile_init",
    "ge_int_tile_init",
};

const std::set<std::string_view> kMacros = {
    "binary_max_tile_init", "binary_min_tile_init", "binary_max_int32_tile_init", "binary_min_int32_tile_init",
    "binary_max_uint32_tile_init", "binary_min_uint32_tile_init", "max_tile_init", "unary_max_tile_init", "unary_min_tile_init",
    "unary_max_int32_tile_init", "unary_min_int32_tile_init", "unary_max_uint32_tile_init", "unary_min_uint32_tile_init",
    "where_tile_init", "mac_tile_init", "typecast_tile_init", "signbit_tile_init", "signbit_tile_int32_init",
};

const std::set<std::string_view> kLookupIfApproximate = {
    "sigmoid_tile_init", "tanh_tile_init", "gelu_tile_init", "sigmoid_tile_init_pack", "tanh_tile_init_pack", "gelu_tile_init_pack",
};

// Calls that write a programmable constant each time they run.
const std::set<std::string_view> kWriteConstants = {
    "clamp_tile", "clamp_tile_int32", "unary_max_tile", "unary_min_tile", "unary_max_int32_tile", "unary_min_int32_tile",
    "unary_max_uint32_tile", "unary_min_uint32_tile",
};

// Inits that put the address step of every vector call back to zero, whatever ran before.
const std::set<std::string_view> kStopStepping = {
    "exp_tile_init", "recip_tile_init", "snake_beta_tile_init", "sfpu_bcast_init", "sfpu_bcast_col_init", "sfpu_bcast_row_init",
};

// Inits that fill the upper half of the replay buffer, where the matrix unit has its own.
const std::set<std::string_view> kFillReplay = {"gcd_tile_init", "lcm_tile_init", "rand_tile_init"};

}  // namespace

bool writes_constants(const char* call) { return kWriteConstants.count(call) != 0; }
bool stops_stepping(const char* init) { return kStopStepping.count(init) != 0; }
bool fills_replay(const char* init) { return kFillReplay.count(init) != 0; }

InitClass init_class(const char* init, u32 variant) {
    const std::string_view name = init;
    if (kStateless.count(name)) return InitClass::Stateless;
    if (kAddressMode.count(name)) return InitClass::AddressMode;
    if (kMacros.count(name)) return InitClass::Macros;
    if ((variant & 1u) && kLookupIfApproximate.count(name)) return InitClass::Lookup;
    if ((variant & 1u) && (name == "exp_tile_init" || name == "exp_packthread_tile_init")) return InitClass::Macros;
    return InitClass::Constants;
}

}  // namespace tw
