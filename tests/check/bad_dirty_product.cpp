// Slot 0 still holds exp(a) when the product is added to it.
// tilewright check: --cb 0:bf16:2 --cb 1:bf16:2 --cb 16:bf16:2
#include <cstdint>

#include "api/compute/common.h"
#include "api/compute/eltwise_binary.h"
#include "api/compute/eltwise_unary/exp.h"
#include "api/compute/tile_move_copy.h"

void kernel_main() {
    constexpr uint32_t a = 0, b = 1, out = 16;
    compute_kernel_hw_startup(a, b, out);
    exp_tile_init();
    cb_wait_front(a, 1);
    cb_wait_front(b, 1);
    cb_reserve_back(out, 2);
    tile_regs_acquire();
    copy_init(a);
    copy_tile(a, 0, 0);
    exp_tile(0);
    mul_init(a, b);
    mul_tiles(a, b, 0, 0, 0);  // BUG: dirty-accumulate
    mul_tiles(a, b, 0, 0, 1);
    tile_regs_commit();
    tile_regs_wait();
    pack_tile(0, out);
    pack_tile(1, out);
    tile_regs_release();
    cb_push_back(out, 2);
    cb_pop_front(a, 1);
    cb_pop_front(b, 1);
}
