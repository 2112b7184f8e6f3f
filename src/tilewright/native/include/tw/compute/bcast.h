// Elementwise ops whose second operand is spread over rows, columns or the tile.
#pragma once
#include "binary.h"

namespace ckernel {

#define TW_BCAST_CALL(op, Op, dim, Dim)                                                                                        \
    template <auto...>                                                                                                         \
    inline void op##_tiles_bcast_##dim(uint32_t a, uint32_t b, uint32_t tile_a, uint32_t tile_b, uint32_t dst, uint32_t row = 0, TW_AT) { \
        tw::execute(#op "_tiles_bcast_" #dim, tw::binary_mode(tw::Kind::Op, static_cast<uint32_t>(BroadcastType::Dim)), a, b, tile_a, tile_b, \
                    dst, row, tw_at);                                                                                          \
    }
#define TW_BCAST_INIT(function, Op, Dim)                                                                                       \
    inline void function(uint32_t a, uint32_t b, TW_AT) {                                                                      \
        tw::init(#function, tw::binary_mode(tw::Kind::Op, static_cast<uint32_t>(BroadcastType::Dim)), a, b, tw::kBoth, tw_at); \
    }
#if TW_METAL >= 77
#define TW_BCAST(op, Op, dim, Dim) TW_BCAST_CALL(op, Op, dim, Dim) TW_BCAST_INIT(op##_bcast_##dim##_init, Op, Dim)
#else
#define TW_BCAST(op, Op, dim, Dim)                                                                                             \
    TW_BCAST_CALL(op, Op, dim, Dim)                                                                                            \
    TW_BCAST_INIT(op##_bcast_##dim##_init_short, Op, Dim)                                                                      \
    TW_BCAST_INIT(op##_tiles_bcast_##dim##_init_short, Op, Dim)
#endif

TW_BCAST(add, Add, rows, ROW)
TW_BCAST(add, Add, cols, COL)
TW_BCAST(add, Add, scalar, SCALAR)
#if TW_METAL >= 78
TW_BCAST(sub, Sub, rows, ROW)
#endif
TW_BCAST(sub, Sub, cols, COL)
TW_BCAST(sub, Sub, scalar, SCALAR)
TW_BCAST(mul, Mul, rows, ROW)
TW_BCAST(mul, Mul, cols, COL)
TW_BCAST(mul, Mul, scalar, SCALAR)

template <EltwiseBinaryType kType, BroadcastType kDim, auto...>
inline void any_tiles_bcast(uint32_t a, uint32_t b, uint32_t tile_a, uint32_t tile_b, uint32_t dst, uint32_t row = 0, TW_AT) {
    tw::execute("any_tiles_bcast", tw::binary_mode(tw::kind_of(kType), static_cast<uint32_t>(kDim)), a, b, tile_a, tile_b, dst, row, tw_at);
}
template <BroadcastType kDim, auto...>
inline void add_tiles_bcast(uint32_t a, uint32_t b, uint32_t tile_a, uint32_t tile_b, uint32_t dst, uint32_t row = 0, TW_AT) {
    any_tiles_bcast<ELWADD, kDim>(a, b, tile_a, tile_b, dst, row, tw_at);
}
template <BroadcastType kDim, auto...>
inline void sub_tiles_bcast(uint32_t a, uint32_t b, uint32_t tile_a, uint32_t tile_b, uint32_t dst, uint32_t row = 0, TW_AT) {
    any_tiles_bcast<ELWSUB, kDim>(a, b, tile_a, tile_b, dst, row, tw_at);
}
template <BroadcastType kDim, auto...>
inline void mul_tiles_bcast(uint32_t a, uint32_t b, uint32_t tile_a, uint32_t tile_b, uint32_t dst, uint32_t row = 0, TW_AT) {
    any_tiles_bcast<ELWMUL, kDim>(a, b, tile_a, tile_b, dst, row, tw_at);
}

#if TW_METAL >= 77
template <EltwiseBinaryType kType, BroadcastType kDim>
inline void bcast_init(uint32_t a, uint32_t b, TW_AT) {
    tw::init("bcast_init", tw::binary_mode(tw::kind_of(kType), static_cast<uint32_t>(kDim)), a, b, tw::kBoth, tw_at);
}
#else
template <EltwiseBinaryType kType, BroadcastType kDim>
inline void init_bcast(uint32_t a, uint32_t b, uint32_t out, TW_AT) {
    tw::hw_startup(a, b, out, false, false, tw_at);
    tw::init("init_bcast", tw::binary_mode(tw::kind_of(kType), static_cast<uint32_t>(kDim)), a, b, tw::kBoth, tw_at);
}
#endif

template <BroadcastType kDim, auto...>
inline void unary_bcast_init(uint32_t cb, TW_AT) {
    tw::init("unary_bcast_init", tw::binary_mode(tw::Kind::UnaryBcast, static_cast<uint32_t>(kDim)), cb, cb, tw::kBoth, tw_at);
}
#if TW_METAL < 78
template <BroadcastType kDim, auto...>
inline void unary_bcast_init(uint32_t cb, uint32_t out, TW_AT) {
    tw::hw_startup(cb, cb, out, false, false, tw_at);
    unary_bcast_init<kDim>(cb, tw_at);
}
#endif
template <BroadcastType kDim, auto...>
inline void unary_bcast(uint32_t cb, uint32_t tile, uint32_t dst, TW_AT) {
    tw::execute("unary_bcast", tw::binary_mode(tw::Kind::UnaryBcast, static_cast<uint32_t>(kDim)), cb, cb, tile, tile, dst, 0, tw_at);
}
template <BroadcastType, auto...>
inline void unary_bcast_uninit(uint32_t) {}

}  // namespace ckernel
