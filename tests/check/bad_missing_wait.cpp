// The second tile of b is used after waiting for one.
// tilewright check: --cb 0:bf16:2 --cb 1:bf16:2 --cb 16:bf16:2
#include <cstdint>

#include "api/compute/common.h"
#include "api/compute/eltwise_binary.h"

void kernel_main() {
    constexpr uint32_t a = 0, b = 1, out = 16;
    compute_kernel_hw_startup(a, b, out);
    add_init(a, b);
    cb_wait_front(a, 2);
    cb_wait_front(b, 1);
    cb_reserve_back(out, 2);
    tile_regs_acquire();
    add_tiles(a, b, 0, 0, 0);
    add_tiles(a, b, 1, 1, 1);  // BUG: missing-wait
    tile_regs_commit();
    tile_regs_wait();
    pack_tile(0, out);
    pack_tile(1, out);
    tile_regs_release();
    cb_push_back(out, 2);
    cb_pop_front(a, 2);
    cb_pop_front(b, 1);
}
