// Tiles from a buffer to DST.
#pragma once
#include "base.h"

namespace tw {

inline Mode copy_mode(u32 transpose) {
    Mode mode;
    mode.kind = Kind::Copy;
    mode.transpose = transpose != 0;
    return mode;
}

}  // namespace tw

namespace ckernel {

#if TW_METAL >= 78
template <auto...>
inline void copy_init(uint32_t cb, uint32_t transpose = 0, uint32_t = 0, TW_AT) {
    tw::init("copy_init", tw::copy_mode(transpose), cb, cb, tw::kBoth, tw_at);
}
#endif
template <auto...>
inline void copy_tile_to_dst_init_short(uint32_t cb = 0, uint32_t transpose = 0, uint32_t = 0, TW_AT) {
    tw::init("copy_tile_to_dst_init_short", tw::copy_mode(transpose), cb, cb, tw::kBoth, tw_at);
}
template <auto...>
inline void copy_tile_init(uint32_t cb, TW_AT) {
    tw::init("copy_tile_init", tw::copy_mode(0), cb, cb, tw::kBoth, tw_at);
}
template <auto...>
inline void copy_tile_to_dst_init_short_with_dt(uint32_t, uint32_t cb, uint32_t transpose = 0, TW_AT) {
    tw::reconfig(true, false, cb, cb, tw_at);
    tw::init("copy_tile_to_dst_init_short_with_dt", tw::copy_mode(transpose), cb, cb, tw::kBoth, tw_at);
}
template <auto...>
inline void copy_tile(uint32_t cb, uint32_t tile, uint32_t dst, TW_AT) {
    tw::copy_tile_now(cb, tile, dst, tw_at);
}
#if TW_METAL >= 76
template <auto...>
inline void copy_block(uint32_t cb, uint32_t tile, uint32_t dst, uint32_t tiles, TW_AT) {
    for (uint32_t i = 0; i < tiles; ++i) tw::copy_tile_now(cb, tile + i, dst + i, tw_at);
}
#else
template <auto...>
inline void copy_block_matmul_partials(uint32_t cb, uint32_t tile, uint32_t dst, uint32_t tiles, TW_AT) {
    for (uint32_t i = 0; i < tiles; ++i) tw::copy_tile_now(cb, tile + i, dst + i, tw_at);
}
#endif

}  // namespace ckernel
