// Row softmax of a 1x4 block without the maximum: exp, row sum by reduction, reciprocal, broadcast product.
// Intermediate buffers 24 (exp) and 25 (sum) never leave the core.
// tilewright check: --cb 0:bf16:4 --cb 1:bf16:1 --cb 16:bf16:4 --cb 24:bf16:4 --cb 25:bf16:1 --arg 2
#include <cstdint>

#include "api/compute/bcast.h"
#include "api/compute/common.h"
#include "api/compute/eltwise_unary/exp.h"
#include "api/compute/eltwise_unary/recip.h"
#include "api/compute/reduce.h"
#include "api/compute/tile_move_copy.h"

constexpr uint32_t kTiles = 4;

void kernel_main() {
    constexpr uint32_t x = 0, scaler = 1, out = 16, e = 24, sum = 25;
    const uint32_t blocks = get_arg_val<uint32_t>(0);
    compute_kernel_hw_startup(x, scaler, out);
    cb_wait_front(scaler, 1);
    for (uint32_t block = 0; block < blocks; ++block) {
        copy_init(x);
        exp_tile_init();
        cb_wait_front(x, kTiles);
        cb_reserve_back(e, kTiles);
        tile_regs_acquire();
        for (uint32_t t = 0; t < kTiles; ++t) {
            copy_tile(x, t, t);
            exp_tile(t);
        }
        tile_regs_commit();
        tile_regs_wait();
        pack_block(0, e, kTiles);
        tile_regs_release();
        cb_push_back(e, kTiles);
        cb_pop_front(x, kTiles);

        reconfig_data_format(scaler, e);
        reduce_init<PoolType::SUM, ReduceDim::REDUCE_ROW>(e, scaler, sum);
        recip_tile_init();
        cb_wait_front(e, kTiles);
        cb_reserve_back(sum, 1);
        tile_regs_acquire();
        for (uint32_t t = 0; t < kTiles; ++t) reduce_tile<PoolType::SUM, ReduceDim::REDUCE_ROW>(e, scaler, t, 0, 0);
        recip_tile(0);
        tile_regs_commit();
        tile_regs_wait();
        pack_tile(0, sum);
        tile_regs_release();
        reduce_uninit();
        cb_push_back(sum, 1);

        reconfig_data_format(e, sum);
        mul_bcast_cols_init(e, sum);
        cb_wait_front(sum, 1);
        cb_reserve_back(out, kTiles);
        tile_regs_acquire();
        for (uint32_t t = 0; t < kTiles; ++t) mul_tiles_bcast_cols(e, sum, t, 0, t);
        tile_regs_commit();
        tile_regs_wait();
        for (uint32_t t = 0; t < kTiles; ++t) pack_tile(t, out);
        tile_regs_release();
        cb_push_back(out, kTiles);
        cb_pop_front(e, kTiles);
        cb_pop_front(sum, 1);
    }
    cb_pop_front(scaler, 1);
}
