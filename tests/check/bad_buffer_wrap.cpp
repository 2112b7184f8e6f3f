// Blocks of three tiles do not divide a buffer of four.
// tilewright check: --cb 0:bf16:4 --cb 16:bf16:3 --arg 2
#include <cstdint>

#include "api/compute/common.h"
#include "api/compute/tile_move_copy.h"

void kernel_main() {
    constexpr uint32_t in = 0, out = 16, tiles = 3;
    const uint32_t blocks = get_arg_val<uint32_t>(0);
    compute_kernel_hw_startup(in, out);
    copy_init(in);
    for (uint32_t block = 0; block < blocks; ++block) {
        cb_wait_front(in, tiles);
        cb_reserve_back(out, tiles);
        tile_regs_acquire();
        for (uint32_t t = 0; t < tiles; ++t) {
            copy_tile(in, t, t);  // BUG: buffer-wrap
        }
        tile_regs_commit();
        tile_regs_wait();
        pack_block(0, out, tiles);
        tile_regs_release();
        cb_push_back(out, tiles);
        cb_pop_front(in, tiles);  // BUG: buffer-wrap
    }
}
