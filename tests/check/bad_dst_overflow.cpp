// A 16-bit half holds eight tiles; the ninth goes to the other half.
// tilewright check: --cb 0:bf16:9 --cb 16:bf16:9
#include <cstdint>

#include "api/compute/common.h"
#include "api/compute/tile_move_copy.h"

void kernel_main() {
    constexpr uint32_t in = 0, out = 16, tiles = 9;
    compute_kernel_hw_startup(in, out);
    copy_init(in);
    cb_wait_front(in, tiles);
    cb_reserve_back(out, tiles);
    tile_regs_acquire();
    for (uint32_t t = 0; t < tiles; ++t) {
        copy_tile(in, t, t);  // BUG: dst-out-of-range
    }
    tile_regs_commit();
    tile_regs_wait();
    for (uint32_t t = 0; t < tiles; ++t) {
        pack_tile(t < 8 ? t : 0, out);
    }
    tile_regs_release();
    cb_push_back(out, tiles);
    cb_pop_front(in, tiles);
}
