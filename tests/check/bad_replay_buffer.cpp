// The init of gcd records instructions over those of the sum.
// tilewright check: --cb 0:bf16:1 --cb 1:bf16:1 --cb 16:bf16:1
#include <cstdint>

#include "api/compute/common.h"
#include "api/compute/gcd.h"
#include "api/compute/reduce.h"

void kernel_main() {
    constexpr uint32_t in = 0, scaler = 1, out = 16;
    compute_kernel_hw_startup(in, scaler, out);
    reduce_init<PoolType::SUM, ReduceDim::REDUCE_ROW>(in, scaler, out);
    gcd_tile_init();
    cb_wait_front(in, 1);
    cb_wait_front(scaler, 1);
    cb_reserve_back(out, 1);
    tile_regs_acquire();
    reduce_tile<PoolType::SUM, ReduceDim::REDUCE_ROW>(in, scaler, 0, 0, 0);  // BUG: wrong-init
    tile_regs_commit();
    tile_regs_wait();
    pack_tile(0, out);
    tile_regs_release();
    cb_push_back(out, 1);
    cb_pop_front(in, 1);
    cb_pop_front(scaler, 1);
}
