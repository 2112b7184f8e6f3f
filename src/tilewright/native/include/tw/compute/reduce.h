#pragma once
#include "base.h"

// Kernels may fix pool and dimension by macro, as the host does with defines.
#ifndef REDUCE_OP
#define REDUCE_OP ckernel::PoolType::SUM
#endif
#ifndef REDUCE_DIM
#define REDUCE_DIM ckernel::ReduceDim::REDUCE_ROW
#endif

namespace tw {

inline Mode reduce_mode(ckernel::PoolType pool, ckernel::ReduceDim dim) {
    Mode mode;
    mode.kind = Kind::Reduce;
    mode.pool = static_cast<std::uint8_t>(pool);
    mode.axis = static_cast<std::uint8_t>(dim);
    return mode;
}

}  // namespace tw

namespace ckernel {

template <PoolType kPool = REDUCE_OP, ReduceDim kDim = REDUCE_DIM, auto...>
inline void reduce_init(uint32_t data, uint32_t scaler, uint32_t out, TW_AT) {
    tw::reduce_init(tw::reduce_mode(kPool, kDim), data, scaler, out, tw_at);
}
template <auto...>
inline void reduce_uninit(uint32_t = 0, TW_AT) {
    tw::reduce_uninit(tw_at);
}
template <PoolType kPool = REDUCE_OP, ReduceDim kDim = REDUCE_DIM, auto...>
inline void reduce_tile(uint32_t data, uint32_t scaler, uint32_t tile, uint32_t scaler_tile, uint32_t dst, TW_AT) {
    tw::execute("reduce_tile", tw::reduce_mode(kPool, kDim), data, scaler, tile, scaler_tile, dst, 0, tw_at);
}
// Maximum of each row over a run of tiles.
template <uint32_t kTiles>
inline void reduce_block_max_row_init(uint32_t out, TW_AT) {
    tw::reduce_init(tw::reduce_mode(PoolType::MAX, ReduceDim::REDUCE_ROW), out, out, out, tw_at);
}
template <uint32_t kTiles>
inline void reduce_block_max_row(uint32_t data, uint32_t scaler, uint32_t first, uint32_t dst, TW_AT) {
    for (uint32_t i = 0; i < kTiles; ++i) reduce_tile<PoolType::MAX, ReduceDim::REDUCE_ROW>(data, scaler, first + i, 0, dst, tw_at);
}
template <auto...>
inline void reduce_block_max_row_uninit(uint32_t = 0, TW_AT) {
    tw::reduce_uninit(tw_at);
}
template <PoolType kPool = REDUCE_OP, ReduceDim kDim = REDUCE_DIM, auto...>
inline void reduce_block(uint32_t data, uint32_t scaler, uint32_t tile, uint32_t scaler_tile, uint32_t dst, uint32_t tiles, TW_AT) {
    for (uint32_t i = 0; i < tiles; ++i) reduce_tile<kPool, kDim>(data, scaler, tile + i, scaler_tile, dst + i, tw_at);
}

}  // namespace ckernel
