// clamp leaves its bound in a constant that exp needs.
// tilewright check: --cb 0:bf16:1 --cb 16:bf16:1
#include <cstdint>

#include "api/compute/common.h"
#include "api/compute/eltwise_unary/clamp.h"
#include "api/compute/eltwise_unary/exp.h"
#include "api/compute/tile_move_copy.h"

void kernel_main() {
    constexpr uint32_t in = 0, out = 16, low = 0xBF800000u, high = 0x3F800000u;
    compute_kernel_hw_startup(in, out);
    copy_init(in);
    exp_tile_init();
    cb_wait_front(in, 1);
    cb_reserve_back(out, 1);
    tile_regs_acquire();
    copy_tile(in, 0, 0);
    exp_tile(0);
    clamp_tile(0, low, high);
    exp_tile(0);  // BUG: wrong-init
    tile_regs_commit();
    tile_regs_wait();
    pack_tile(0, out);
    tile_regs_release();
    cb_push_back(out, 1);
    cb_pop_front(in, 1);
}
