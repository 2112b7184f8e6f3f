// exp in 16-bit DST records itself over the instructions of matmul: the second product needs its init again.
// tilewright check: --cb 0:bf16:1 --cb 16:bf16:1
#include <cstdint>

#include "api/compute/common.h"
#include "api/compute/eltwise_unary/exp.h"
#include "api/compute/matmul.h"

void kernel_main() {
    constexpr uint32_t in = 0, out = 16;
    compute_kernel_hw_startup<SrcOrder::Reverse>(in, in, out);
    matmul_init(in, in);
    exp_tile_init();
    cb_wait_front(in, 1);
    cb_reserve_back(out, 1);
    tile_regs_acquire();
    matmul_tiles(in, in, 0, 0, 0);
    exp_tile(0);
    matmul_tiles(in, in, 0, 0, 1);  // BUG: wrong-init
    tile_regs_commit();
    tile_regs_wait();
    pack_tile(1, out);
    tile_regs_release();
    cb_push_back(out, 1);
    cb_pop_front(in, 1);
}
