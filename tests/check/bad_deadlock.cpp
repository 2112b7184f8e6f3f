// Two tiles of the intermediate buffer are awaited, one is made.
// tilewright check: --cb 0:bf16:2 --cb 16:bf16:2 --cb 24:bf16:2
#include <cstdint>

#include "api/compute/common.h"
#include "api/compute/tile_move_copy.h"

void kernel_main() {
    constexpr uint32_t in = 0, out = 16, mid = 24;
    compute_kernel_hw_startup(in, out);
    copy_init(in);
    cb_wait_front(in, 1);
    cb_reserve_back(mid, 1);
    tile_regs_acquire();
    copy_tile(in, 0, 0);
    tile_regs_commit();
    tile_regs_wait();
    pack_tile(0, mid);
    tile_regs_release();
    cb_push_back(mid, 1);
    cb_pop_front(in, 1);
    cb_wait_front(mid, 2);  // BUG: deadlock
    cb_reserve_back(out, 1);
    tile_regs_acquire();
    copy_tile(mid, 0, 0);
    tile_regs_commit();
    tile_regs_wait();
    pack_tile(0, out);
    tile_regs_release();
    cb_push_back(out, 1);
    cb_pop_front(mid, 2);
}
