#pragma once
#include "base.h"

namespace tw {

inline Mode matmul_mode(u32 transpose, u32 columns = 1, u32 rows = 1, u32 depth = 1) {
    Mode mode;
    mode.kind = Kind::Matmul;
    mode.transpose = transpose != 0;
    mode.columns = static_cast<std::uint8_t>(columns);
    mode.rows = static_cast<std::uint8_t>(rows);
    mode.depth = static_cast<std::uint8_t>(depth);
    return mode;
}

}  // namespace tw

namespace ckernel {

#if TW_METAL >= 74
inline void matmul_init(uint32_t a, uint32_t b, uint32_t transpose = 0, TW_AT) {
    tw::init("matmul_init", tw::matmul_mode(transpose), a, b, tw::kBoth, tw_at);
}
inline void matmul_block_init(uint32_t a, uint32_t b, uint32_t transpose = 0, uint32_t ct = 1, uint32_t rt = 1, uint32_t kt = 1, TW_AT) {
    tw::init("matmul_block_init", tw::matmul_mode(transpose, ct, rt, kt), a, b, tw::kBoth, tw_at);
}
inline void mm_uninit(uint32_t, uint32_t) {}
#else
inline void mm_init_short(uint32_t a, uint32_t b, uint32_t transpose = 0, TW_AT) {
    tw::init("mm_init_short", tw::matmul_mode(transpose), a, b, tw::kBoth, tw_at);
}
inline void mm_init_short_with_dt(uint32_t a, uint32_t b, uint32_t, uint32_t transpose = 0, TW_AT) {
    tw::reconfig(true, false, b, b, tw_at);
    mm_init_short(a, b, transpose, tw_at);
}
inline void mm_init(uint32_t a, uint32_t b, uint32_t out, uint32_t transpose = 0, TW_AT) {
    tw::hw_startup(a, b, out, true, false, tw_at);
    mm_init_short(a, b, transpose, tw_at);
}
inline void mm_block_init_short(uint32_t a, uint32_t b, uint32_t transpose = 0, uint32_t ct = 1, uint32_t rt = 1, uint32_t kt = 1, TW_AT) {
    tw::init("mm_block_init_short", tw::matmul_mode(transpose, ct, rt, kt), a, b, tw::kBoth, tw_at);
}
inline void mm_block_init_short_with_dt(uint32_t a, uint32_t b, uint32_t, uint32_t transpose = 0, uint32_t ct = 1, uint32_t rt = 1,
                                        uint32_t kt = 1, TW_AT) {
    tw::reconfig(true, false, b, b, tw_at);
    mm_block_init_short(a, b, transpose, ct, rt, kt, tw_at);
}
inline void mm_block_init(uint32_t a, uint32_t b, uint32_t out, uint32_t transpose = 0, uint32_t ct = 1, uint32_t rt = 1, uint32_t kt = 1,
                          TW_AT) {
    tw::hw_startup(a, b, out, true, false, tw_at);
    mm_block_init_short(a, b, transpose, ct, rt, kt, tw_at);
}
#endif

inline void matmul_tiles(uint32_t a, uint32_t b, uint32_t tile_a, uint32_t tile_b, uint32_t dst, TW_AT) {
    tw::matmul_tiles_now(a, b, tile_a, tile_b, dst, tw_at);
}
#if TW_METAL < 69
inline void matmul_tiles(uint32_t a, uint32_t b, uint32_t tile_a, uint32_t tile_b, uint32_t dst, uint32_t transpose, TW_AT) {
    tw::execute("matmul_tiles", tw::matmul_mode(transpose), a, b, tile_a, tile_b, dst, 0, tw_at);
}
#endif
inline void matmul_block(uint32_t a, uint32_t b, uint32_t tile_a, uint32_t tile_b, uint32_t dst, uint32_t transpose, uint32_t ct, uint32_t rt,
                         uint32_t kt, TW_AT) {
    tw::execute("matmul_block", tw::matmul_mode(transpose, ct, rt, kt), a, b, tile_a, tile_b, dst, 0, tw_at);
}

}  // namespace ckernel
