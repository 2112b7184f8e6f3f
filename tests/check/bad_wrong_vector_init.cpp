// log and exp share the programmable constants; exp runs under the init of log.
// tilewright check: --cb 0:bf16:2 --cb 1:bf16:2 --cb 16:bf16:2 --arg 2
#include <cstdint>

#include "api/compute/common.h"
#include "api/compute/compute_kernel_api.h"
#include "api/compute/eltwise_unary/exp.h"
#include "api/compute/tile_move_copy.h"

void kernel_main() {
    constexpr uint32_t in = 0, out = 16;
    const uint32_t tiles = get_arg_val<uint32_t>(0);
    compute_kernel_hw_startup(in, out);
    copy_init(in);
    exp_tile_init();
    log_tile_init();
    for (uint32_t t = 0; t < tiles; ++t) {
        cb_wait_front(in, 1);
        cb_reserve_back(out, 1);
        tile_regs_acquire();
        copy_tile(in, 0, 0);
        log_tile(0);
        exp_tile(0);  // BUG: wrong-init
        tile_regs_commit();
        tile_regs_wait();
        pack_tile(0, out);
        tile_regs_release();
        cb_push_back(out, 1);
        cb_pop_front(in, 1);
    }
}
