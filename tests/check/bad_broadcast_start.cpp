// Before ttnn 0.81 a broadcast of 32-bit tiles counts from the DST tile that math used last.
// tilewright check: --cb 0:f32:1 --cb 16:f32:1 --fp32 --unpack-to-dest 0
#include <cstdint>

#include "api/compute/bcast.h"
#include "api/compute/common.h"
#include "api/compute/compute_kernel_api.h"
#include "api/compute/eltwise_binary_sfpu.h"
#include "api/compute/tile_move_copy.h"

void kernel_main() {
    constexpr uint32_t in = 0, out = 16;
    compute_kernel_hw_startup(in, out);
    copy_init(in);
    abs_tile_init();
    cb_wait_front(in, 1);
    cb_reserve_back(out, 1);
    tile_regs_acquire();
    copy_tile(in, 0, 1);
    abs_tile(1);
    unary_bcast_init<BroadcastType::COL>(in);
    unary_bcast<BroadcastType::COL>(in, 0, 0);  // BUG: broken-on-hardware
    add_binary_tile(0, 1, 0);
    tile_regs_commit();
    tile_regs_wait();
    pack_tile(0, out);
    tile_regs_release();
    cb_push_back(out, 1);
    cb_pop_front(in, 1);
}
