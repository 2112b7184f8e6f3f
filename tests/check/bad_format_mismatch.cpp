// The second input is float32, the unpacker is set up for bfloat16.
// tilewright check: --cb 0:bf16:1 --cb 1:f32:1 --cb 16:bf16:2
#include <cstdint>

#include "api/compute/common.h"
#include "api/compute/tile_move_copy.h"

void kernel_main() {
    constexpr uint32_t a = 0, b = 1, out = 16;
    compute_kernel_hw_startup(a, out);
    copy_init(a);
    cb_wait_front(a, 1);
    cb_wait_front(b, 1);
    cb_reserve_back(out, 2);
    tile_regs_acquire();
    copy_tile(a, 0, 0);
    copy_tile(b, 0, 1);  // BUG: format-mismatch
    tile_regs_commit();
    tile_regs_wait();
    pack_block(0, out, 2);
    tile_regs_release();
    cb_push_back(out, 2);
    cb_pop_front(a, 1);
    cb_pop_front(b, 1);
}
