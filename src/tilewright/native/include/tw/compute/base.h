// What every compute kernel has: buffers, the DST protocol, formats, the packer.
#pragma once
#include "../kernel_args.h"

// The file is compiled once per thread; the macros keep a statement for one of them.
#if defined(TRISC_UNPACK)
#define UNPACK(x) x
#else
#define UNPACK(x)
#endif
#if defined(TRISC_MATH)
#define MATH(x) x
#else
#define MATH(x)
#endif
#if defined(TRISC_PACK)
#define PACK(x) x
#else
#define PACK(x)
#endif

namespace ckernel {

using std::uint32_t;

inline void cb_wait_front(uint32_t cb, uint32_t tiles, TW_AT) { tw::cb_wait(cb, tiles, tw_at); }
inline void cb_pop_front(uint32_t cb, uint32_t tiles, TW_AT) { tw::cb_pop(cb, tiles, tw_at); }
inline void cb_reserve_back(uint32_t cb, uint32_t tiles, TW_AT) { tw::cb_reserve(cb, tiles, tw_at); }
inline void cb_push_back(uint32_t cb, uint32_t tiles, TW_AT) { tw::cb_push(cb, tiles, tw_at); }
inline uint32_t get_tile_address(uint32_t cb, uint32_t tile, TW_AT) { return tw::cb_tile_address(cb, tile, tw_at); }
inline uint32_t read_tile_value(uint32_t cb, uint32_t tile, uint32_t element, TW_AT) {
    return tw::cb_tile_value(cb, tile, element, tw_at);
}

inline void tile_regs_acquire(TW_AT) { tw::regs_acquire(tw_at); }
template <bool = DST_ACCUM_MODE>
inline void tile_regs_commit(TW_AT) {
    tw::regs_commit(tw_at);
}
inline void tile_regs_wait(TW_AT) { tw::regs_wait(tw_at); }
template <bool = DST_ACCUM_MODE>
inline void tile_regs_release(TW_AT) {
    tw::regs_release(tw_at);
}

// The old pair: math and packer each do their half.
template <auto...>
inline void acquire_dst(TW_AT) {
    tw::regs_acquire(tw_at);
    tw::regs_wait(tw_at);
}
template <auto...>
inline void release_dst(TW_AT) {
    tw::regs_commit(tw_at);
    tw::regs_release(tw_at);
}

template <SrcOrder kOrder = SrcOrder::Regular>
inline void compute_kernel_hw_startup(uint32_t a, uint32_t b, uint32_t out, TW_AT) {
    tw::hw_startup(a, b, out, kOrder == SrcOrder::Reverse, TW_METAL >= 69, tw_at);
}
inline void compute_kernel_hw_startup(uint32_t in, uint32_t out, TW_AT) { tw::hw_startup(in, in, out, false, TW_METAL >= 69, tw_at); }

inline void enable_fp32_dest_acc(TW_AT) { tw::set_dest_width(true, tw_at); }
inline void disable_fp32_dest_acc(TW_AT) { tw::set_dest_width(false, tw_at); }
template <bool kEnable>
inline void set_fp32_dest_acc(TW_AT) {
    tw::set_dest_width(kEnable, tw_at);
}
template <bool>
inline void restore_fp32_dest_acc(TW_AT) {
    tw::set_dest_width(DST_ACCUM_MODE, tw_at);
}

// ---- formats: the forms with old and new do nothing when the formats are equal, which changes nothing here
template <auto kOrder = SrcOrder::Regular, auto...>
inline void reconfig_data_format(uint32_t a, uint32_t b, TW_AT) {
    constexpr bool reverse = static_cast<int>(kOrder) == static_cast<int>(SrcOrder::Reverse);
    tw::reconfig(true, true, reverse ? b : a, reverse ? a : b, tw_at);
}
template <auto kOrder = SrcOrder::Regular, auto...>
inline void reconfig_data_format(uint32_t, uint32_t a, uint32_t, uint32_t b, TW_AT) {
    reconfig_data_format<kOrder>(a, b, tw_at);
}
template <auto...>
inline void reconfig_data_format_srca(uint32_t a, TW_AT) {
    tw::reconfig(true, false, a, a, tw_at);
}
template <auto...>
inline void reconfig_data_format_srca(uint32_t, uint32_t a, TW_AT) {
    tw::reconfig(true, false, a, a, tw_at);
}
template <auto...>
inline void reconfig_data_format_srcb(uint32_t b, TW_AT) {
    tw::reconfig(false, true, b, b, tw_at);
}
template <auto...>
inline void reconfig_data_format_srcb(uint32_t, uint32_t b, TW_AT) {
    tw::reconfig(false, true, b, b, tw_at);
}

// The same with more said about tiles of other shapes, which this model does not have.
#define TW_RECONFIG_ALIAS(name, target)          \
    template <auto... kArgs, typename... T>      \
    inline void name(T... words) {               \
        target<kArgs...>(words...);              \
    }
TW_RECONFIG_ALIAS(reconfig_data_format_skip_int8, reconfig_data_format)
TW_RECONFIG_ALIAS(reconfig_data_format_srca_skip_int8, reconfig_data_format_srca)
TW_RECONFIG_ALIAS(reconfig_data_format_srcb_skip_int8, reconfig_data_format_srcb)
TW_RECONFIG_ALIAS(reconfig_full_operand, reconfig_data_format)
TW_RECONFIG_ALIAS(reconfig_full_operand_srca, reconfig_data_format_srca)
TW_RECONFIG_ALIAS(reconfig_full_operand_srcb, reconfig_data_format_srcb)
template <auto..., typename... T>
inline void reconfig_tile_shape(T...) {}
template <auto..., typename... T>
inline void reconfig_tile_shape_srca(T...) {}
template <auto..., typename... T>
inline void reconfig_tile_shape_srcb(T...) {}

// ---- packer
inline void pack_init(uint32_t cb, TW_AT) { tw::pack_init(cb, tw_at); }
template <bool kAnyOrder = false, bool = DST_ACCUM_MODE>
inline void pack_tile(uint32_t dst, uint32_t cb, uint32_t page = 0, TW_AT) {
    tw::pack(dst, cb, page, kAnyOrder, tw_at);
}
#if TW_METAL >= 76
template <bool = DST_ACCUM_MODE>
inline void pack_block(uint32_t dst, uint32_t cb, uint32_t tiles, TW_AT) {
    for (uint32_t i = 0; i < tiles; ++i) tw::pack(dst + i, cb, 0, false, tw_at);
}
#else
template <auto...>
inline void pack_tile_block(uint32_t dst, uint32_t cb, uint32_t tiles, TW_AT) {
    for (uint32_t i = 0; i < tiles; ++i) tw::pack(dst + i, cb, 0, false, tw_at);
}
inline void matmul_pack_tile(uint32_t dst, uint32_t cb, uint32_t tiles, TW_AT) {
    for (uint32_t i = 0; i < tiles; ++i) tw::pack(dst + i, cb, 0, false, tw_at);
}
#endif
template <auto...>
inline void pack_reconfig_data_format(uint32_t cb, TW_AT) {
    tw::pack_reconfig(cb, tw_at);
}
template <auto...>
inline void pack_reconfig_data_format(uint32_t, uint32_t cb, TW_AT) {
    tw::pack_reconfig(cb, tw_at);
}
inline void pack_reconfig_l1_acc(uint32_t enable, TW_AT) { tw::pack_l1_accumulate(enable != 0, tw_at); }

struct ReluConfig {
    uint32_t mode, threshold;
    static constexpr ReluConfig none() { return {0, 0}; }
    static constexpr ReluConfig zero() { return {1, 0}; }
    static constexpr ReluConfig min_threshold(uint32_t bf16_bits) { return {2, bf16_bits}; }
    static constexpr ReluConfig max_threshold(uint32_t bf16_bits) { return {3, bf16_bits}; }
};
inline void pack_relu_config(const ReluConfig& config, TW_AT) { tw::pack_relu(config.mode, config.threshold, tw_at); }

}  // namespace ckernel
