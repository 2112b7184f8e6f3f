// The copy is packed under the edge mask of the reduction.
// tilewright check: --cb 0:bf16:2 --cb 1:bf16:2 --cb 16:bf16:2
#include <cstdint>

#include "api/compute/common.h"
#include "api/compute/reduce.h"
#include "api/compute/tile_move_copy.h"

void kernel_main() {
    constexpr uint32_t in = 0, scaler = 1, out = 16;
    compute_kernel_hw_startup(in, scaler, out);
    cb_wait_front(in, 1);
    cb_wait_front(scaler, 1);
    cb_reserve_back(out, 2);
    reduce_init<PoolType::SUM, ReduceDim::REDUCE_COL>(in, scaler, out);
    tile_regs_acquire();
    reduce_tile<PoolType::SUM, ReduceDim::REDUCE_COL>(in, scaler, 0, 0, 0);
    tile_regs_commit();
    tile_regs_wait();
    pack_tile(0, out);
    tile_regs_release();
    copy_init(in);
    tile_regs_acquire();
    copy_tile(in, 0, 0);
    tile_regs_commit();
    tile_regs_wait();
    pack_tile(0, out);  // BUG: missing-reduce-uninit
    tile_regs_release();
    cb_push_back(out, 2);
    cb_pop_front(in, 1);
    cb_pop_front(scaler, 1);
}
