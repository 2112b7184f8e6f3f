// exp without clamp leaves the vector unit stepping through DST, and its init fills the replay buffer matmul needs.
// tilewright check: --cb 0:bf16:1 --cb 16:bf16:1
#include <cstdint>

#include "api/compute/common.h"
#include "api/compute/compute_kernel_api.h"
#include "api/compute/eltwise_unary/exp.h"
#include "api/compute/matmul.h"
#include "api/compute/tile_move_copy.h"

void kernel_main() {
    constexpr uint32_t in = 0, out = 16;
    compute_kernel_hw_startup<SrcOrder::Reverse>(in, in, out);
    matmul_init(in, in);
    exp_tile_init<true, 0x3F800000, InputClamping::None>();
    cb_wait_front(in, 1);
    cb_reserve_back(out, 1);
    tile_regs_acquire();
    matmul_tiles(in, in, 0, 0, 0);  // BUG: wrong-init
    exp_tile<true, false, InputClamping::None>(0);
    abs_tile(0);  // BUG: wrong-init
    tile_regs_commit();
    tile_regs_wait();
    pack_tile(0, out);
    tile_regs_release();
    cb_push_back(out, 1);
    cb_pop_front(in, 1);
}
