// exp(a * b), four tiles per DST window.
// tilewright check: --cb 0:bf16:8 --cb 1:bf16:8 --cb 16:bf16:8 --ct-arg 4 --arg 3
#include <cstdint>

#include "api/compute/common.h"
#include "api/compute/eltwise_binary.h"
#include "api/compute/eltwise_unary/exp.h"

void kernel_main() {
    constexpr uint32_t tiles = get_compile_time_arg_val(0);
    const uint32_t blocks = get_arg_val<uint32_t>(0);
    constexpr auto a = tt::CBIndex::c_0, b = tt::CBIndex::c_1, out = tt::CBIndex::c_16;
    compute_kernel_hw_startup(a, b, out);
    mul_init(a, b);
    exp_tile_init();
    for (uint32_t block = 0; block < blocks; ++block) {
        cb_wait_front(a, tiles);
        cb_wait_front(b, tiles);
        cb_reserve_back(out, tiles);
        tile_regs_acquire();
        for (uint32_t t = 0; t < tiles; ++t) mul_tiles(a, b, t, t, t);
        for (uint32_t t = 0; t < tiles; ++t) exp_tile(t);
        tile_regs_commit();
        tile_regs_wait();
        pack_block(0, out, tiles);
        tile_regs_release();
        cb_push_back(out, tiles);
        cb_pop_front(a, tiles);
        cb_pop_front(b, tiles);
    }
}
