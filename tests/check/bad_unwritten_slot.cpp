// The second operand was copied to slot 2, the sum reads slot 1.
// tilewright check: --cb 0:bf16:2 --cb 1:bf16:2 --cb 16:bf16:2
#include <cstdint>

#include "api/compute/common.h"
#include "api/compute/eltwise_binary_sfpu.h"
#include "api/compute/tile_move_copy.h"

void kernel_main() {
    constexpr uint32_t a = 0, b = 1, out = 16;
    compute_kernel_hw_startup(a, out);
    copy_init(a);
    add_binary_tile_init();
    cb_wait_front(a, 1);
    cb_wait_front(b, 1);
    cb_reserve_back(out, 1);
    tile_regs_acquire();
    copy_tile(a, 0, 0);
    copy_tile(b, 0, 2);
    add_binary_tile(0, 1, 0);  // BUG: read-unwritten
    tile_regs_commit();
    tile_regs_wait();
    pack_tile(0, out);
    tile_regs_release();
    cb_push_back(out, 1);
    cb_pop_front(a, 1);
    cb_pop_front(b, 1);
}
