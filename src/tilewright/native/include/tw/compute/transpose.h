#pragma once
#include "base.h"

namespace tw {

inline Mode transpose_mode() {
    Mode mode;
    mode.kind = Kind::Transpose;
    return mode;
}

}  // namespace tw

namespace ckernel {

#if TW_METAL >= 74
#define TW_TRANSPOSE_INIT transpose_init
#define TW_TRANSPOSE_TILE transpose_tile
#else
#define TW_TRANSPOSE_INIT transpose_wh_init_short
#define TW_TRANSPOSE_TILE transpose_wh_tile
#endif
template <auto...>
inline void TW_TRANSPOSE_INIT(uint32_t cb, TW_AT) {
    tw::init("transpose_init", tw::transpose_mode(), cb, cb, tw::kBoth, tw_at);
}
template <auto...>
inline void TW_TRANSPOSE_TILE(uint32_t cb, uint32_t tile, uint32_t dst, TW_AT) {
    tw::execute("transpose_tile", tw::transpose_mode(), cb, cb, tile, tile, dst, 0, tw_at);
}
#if TW_METAL >= 76
template <auto...>
inline void transpose_block(uint32_t cb, uint32_t tile, uint32_t dst, uint32_t tiles, TW_AT) {
    for (uint32_t i = 0; i < tiles; ++i) transpose_tile(cb, tile + i, dst + i, tw_at);
}
#endif
#if TW_METAL < 74
template <auto...>
inline void transpose_wh_init(uint32_t cb, uint32_t out, TW_AT) {
    tw::hw_startup(cb, cb, out, false, false, tw_at);
    transpose_wh_init_short(cb, tw_at);
}
#endif

template <auto...>
inline void transpose_dest_init(uint32_t = 0, TW_AT) {
    tw::Mode mode;
    mode.kind = tw::Kind::TransposeDest;
    tw::math_init("transpose_dest_init", mode, tw_at);
}
template <auto...>
inline void transpose_dest(uint32_t dst, TW_AT) {
    tw::transpose_dest("transpose_dest", dst, tw_at);
}

}  // namespace ckernel
