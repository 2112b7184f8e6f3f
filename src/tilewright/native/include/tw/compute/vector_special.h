// Vector functions whose signature fits no family.
#pragma once
#include "vector.h"

namespace ckernel {

// ---- exp: the template arguments of init and call name the same algorithm
template <auto kApprox = false, uint32_t kScale = 0x3F800000u, auto kClamp = InputClamping::ClampToNegative, auto... kWidth>
inline void exp_tile_init(TW_AT) {
    tw::vector_init("exp_tile_init", static_cast<uint32_t>(kApprox) | tw::narrow_at<kWidth...>(0), false, tw_at, kScale,
                    static_cast<uint32_t>(kClamp));
}
template <auto kApprox = false, auto kScaleEnable = false, auto kClamp = InputClamping::ClampToNegative, auto... kRest>
inline void exp_tile(uint32_t dst, tw::FaceMode mode = VectorMode::RC, std::uint16_t scale = p_sfpu::kCONST_1_FP16B, TW_AT) {
    const bool scaled = static_cast<bool>(kScaleEnable);
    tw::vector_call("exp_tile", "exp_tile_init", static_cast<uint32_t>(kApprox) | tw::narrow_at<kRest...>(1),
                    tw::faces_of(mode, tw::word_at<8, kRest...>(0)), false, tw_at, dst, scaled ? static_cast<uint32_t>(scale) << 16 : 0x3F800000u);
}
template <auto kApprox = false, uint32_t kScale = 0x3F800000u, auto kClamp = InputClamping::ClampToNegative, auto...>
inline void exp_packthread_tile_init(TW_AT) {
    tw::vector_init("exp_packthread_tile_init", static_cast<uint32_t>(kApprox), true, tw_at, kScale, static_cast<uint32_t>(kClamp));
}
template <auto kApprox = false, auto kScaleEnable = false, auto...>
inline void exp_packthread_tile(uint32_t dst, tw::FaceMode mode = VectorMode::RC, std::uint16_t scale = p_sfpu::kCONST_1_FP16B, TW_AT) {
    tw::vector_call("exp_tile", "exp_packthread_tile_init", static_cast<uint32_t>(kApprox), tw::faces_of(mode), true, tw_at, dst,
                    static_cast<bool>(kScaleEnable) ? static_cast<uint32_t>(scale) << 16 : 0x3F800000u);
}

// ---- recip: 0.69 to 0.78 default to an older algorithm, chosen by the first template argument; the others have the better one only
template <auto... kArgs>
constexpr uint32_t better_reciprocal() {
    return TW_METAL < 69 || TW_METAL > 78 || tw::word_at<1, kArgs...>(0) == 0 ? 1 : 0;
}
template <auto... kArgs>
inline void recip_tile_init(TW_AT) {
    tw::vector_init("recip_tile_init", better_reciprocal<kArgs...>(), false, tw_at);
}
template <auto... kArgs>
inline void recip_tile(uint32_t dst, tw::FaceMode mode = VectorMode::RC, TW_AT) {
    tw::vector_call("recip_tile", "recip_tile_init", better_reciprocal<kArgs...>(), tw::faces_of(mode), false, tw_at, dst);
}

// ---- inits with arguments
TW_INIT2(fmod_tile_init)
TW_INIT2(remainder_tile_init)
TW_U0(fmod_tile, fmod_tile_init)
TW_U0(remainder_tile, remainder_tile_init)
TW_INIT(remainder_tile_uint32_init)
TW_U1(remainder_tile_uint32, remainder_tile_uint32_init)

// ---- constants
TW_INIT(fill_tile_init)
inline void fill_tile(uint32_t dst, float value, TW_AT) {
    tw::vector_call("fill_tile", "fill_tile_init", 0, 0xF, false, tw_at, dst, tw::float_bits(value));
}
TW_U1(fill_tile_bitcast, fill_tile_init)
TW_U1I(fill_tile_int, fill_tile_init)

// ---- copies between DST slots: (to, from) in 0.62, (from, to) later
TW_INIT(copy_dest_values_init)
template <auto... kArgs>
inline void copy_dest_values(uint32_t first, uint32_t second, TW_AT) {
    const uint32_t from = TW_METAL < 69 ? second : first, to = TW_METAL < 69 ? first : second;
    tw::vector_call("copy_dest_values", "copy_dest_values_init", TW_FORMAT(kArgs), 0xF, false, tw_at, from, to);
}

// ---- typecast: both formats select the algorithm
template <uint32_t kIn, uint32_t kOut>
inline void typecast_tile_init(TW_AT) {
    tw::vector_init("typecast_tile_init", kIn | kOut << 8, false, tw_at);
}
#if TW_METAL < 69
inline void typecast_tile_init(TW_AT) { tw::vector_init("typecast_tile_init", 0, false, tw_at); }
#endif
template <uint32_t kIn, uint32_t kOut, auto...>
inline void typecast_tile(uint32_t dst, TW_AT) {
    tw::vector_call("typecast_tile", "typecast_tile_init", kIn | kOut << 8, 0xF, false, tw_at, dst);
}

// ---- reductions and broadcasts inside DST
template <PoolType kPool, DataFormat, auto...>
inline void sfpu_reduce_init(TW_AT) {
    tw::vector_init("sfpu_reduce_init", static_cast<uint32_t>(kPool), false, tw_at);
}
template <PoolType kPool, DataFormat, ReduceDim kDim = ReduceDim::REDUCE_COL, auto...>
inline void sfpu_reduce(uint32_t dst, uint32_t = 1, uint32_t = 1, TW_AT) {
    tw::vector_call("sfpu_reduce", "sfpu_reduce_init", static_cast<uint32_t>(kPool), 0xF, false, tw_at, dst, static_cast<uint32_t>(kDim));
}
template <BroadcastType kDim>
inline void sfpu_bcast_init(TW_AT) {
    tw::vector_init("sfpu_bcast_init", static_cast<uint32_t>(kDim), false, tw_at);
}
template <BroadcastType kDim, EltwiseBinaryType kType, auto...>
inline void sfpu_bcast(uint32_t data, uint32_t vector, TW_AT) {
    tw::vector_call("sfpu_bcast", "sfpu_bcast_init", static_cast<uint32_t>(kDim), 0xF, false, tw_at, data, vector,
                    static_cast<uint32_t>(kType));
}

#define TW_BCAST_ALIAS(op, dim) \
    inline void sfpu_##op##_bcast_##dim##_init(TW_AT) { tw::vector_init("sfpu_bcast_" #dim "_init", 0, false, tw_at); }
TW_BCAST_ALIAS(add, col)
TW_BCAST_ALIAS(sub, col)
TW_BCAST_ALIAS(mul, col)
TW_BCAST_ALIAS(add, row)
TW_BCAST_ALIAS(sub, row)
TW_BCAST_ALIAS(mul, row)

// ---- masks, closeness, running sums
TW_INIT(mask_tile_init)
inline void mask_tile(uint32_t data, uint32_t mask, DataFormat format = DataFormat::Float16_b, TW_AT) {
    tw::vector_call("mask_tile", "mask_tile_init", 0, 0xF, false, tw_at, data, mask, static_cast<uint32_t>(format));
}
inline void mask_posinf_tile(uint32_t data, uint32_t mask, TW_AT) {
    tw::vector_call("mask_posinf_tile", "mask_tile_init", 0, 0xF, false, tw_at, data, mask);
}
TW_INIT(isclose_binary_tile_init)
template <bool kEqualNan = false>
inline void isclose_binary_tile(uint32_t a, uint32_t b, uint32_t out, uint32_t rtol, uint32_t atol, TW_AT) {
    tw::vector_call("isclose_binary_tile", "isclose_binary_tile_init", kEqualNan, 0xF, false, tw_at, a, b, out, rtol, atol);
}
TW_INIT(cumsum_tile_init)
inline void cumsum_tile(uint32_t dst, bool first = true, TW_AT) {
    tw::vector_call("cumsum_tile", "cumsum_tile_init", 0, 0xF, false, tw_at, dst, first);
}
TW_INIT(rounding_op_tile_init)
TW_U0(ceil_tile, rounding_op_tile_init)
TW_U0(floor_tile, rounding_op_tile_init)
TW_U0(trunc_tile, rounding_op_tile_init)
TW_U0(frac_tile, rounding_op_tile_init)
TW_U0(stochastic_round_tile, rounding_op_tile_init)
inline void round_tile(uint32_t dst, std::int32_t decimals, TW_AT) {
    tw::vector_call("round_tile", "rounding_op_tile_init", 0, 0xF, false, tw_at, dst, static_cast<uint32_t>(decimals));
}
template <auto...>
inline void leaky_relu_tile(uint32_t dst, uint32_t slope = 0, TW_AT) {
    tw::vector_call("leaky_relu_tile", "leaky_relu_tile_init", 0, 0xF, false, tw_at, dst, slope);
}
TW_INIT(rdiv_tile_init)
template <RoundingMode kRounding = RoundingMode::None, auto...>
inline void rdiv_tile(uint32_t dst, uint32_t value, tw::FaceMode mode = VectorMode::RC, TW_AT) {
    tw::vector_call("rdiv_tile", "rdiv_tile_init", static_cast<uint32_t>(kRounding), tw::faces_of(mode), false, tw_at, dst, value);
}
TW_INIT(rpow_tile_init)
template <auto...>
inline void rpow_tile(uint32_t dst, uint32_t base, tw::FaceMode mode = VectorMode::RC, TW_AT) {
    tw::vector_call("rpow_tile", "rpow_tile_init", 0, tw::faces_of(mode), false, tw_at, dst, base);
}

}  // namespace ckernel
