// The sum runs under the init of the product.
// tilewright check: --cb 0:bf16:2 --cb 1:bf16:2 --cb 16:bf16:2 --arg 2
#include <cstdint>

#include "api/compute/common.h"
#include "api/compute/eltwise_binary.h"

void kernel_main() {
    constexpr uint32_t a = 0, b = 1, out = 16;
    const uint32_t tiles = get_arg_val<uint32_t>(0);
    compute_kernel_hw_startup(a, b, out);
    mul_init(a, b);
    for (uint32_t t = 0; t < tiles; ++t) {
        cb_wait_front(a, 1);
        cb_wait_front(b, 1);
        cb_reserve_back(out, 1);
        tile_regs_acquire();
        add_tiles(a, b, 0, 0, 0);  // BUG: wrong-init
        tile_regs_commit();
        tile_regs_wait();
        pack_tile(0, out);
        tile_regs_release();
        cb_push_back(out, 1);
        cb_pop_front(a, 1);
        cb_pop_front(b, 1);
    }
}
