// out = A @ B + bias for one 2x2 block: the bias is preloaded into DST, the product accumulates onto it.
// tilewright check: --cb 0:bf16:2 --cb 1:bf16:2 --cb 2:bf16:4 --cb 16:bf16:4 --arg 3 --fidelity HiFi2
#include <cstdint>

#include "api/compute/common.h"
#include "api/compute/matmul.h"
#include "api/compute/tile_move_copy.h"

void kernel_main() {
    constexpr uint32_t a = 0, b = 1, bias = 2, out = 16, rows = 2, cols = 2;
    const uint32_t depth = get_arg_val<uint32_t>(0);
    compute_kernel_hw_startup<SrcOrder::Reverse>(a, b, out);
    cb_wait_front(bias, rows * cols);
    cb_reserve_back(out, rows * cols);
    tile_regs_acquire();
    copy_init(bias);
    copy_block(bias, 0, 0, rows * cols);
    matmul_block_init(a, b, 0, cols, rows, 1);
    for (uint32_t k = 0; k < depth; ++k) {
        cb_wait_front(a, rows);
        cb_wait_front(b, cols);
        matmul_block(a, b, 0, 0, 0, 0, cols, rows, 1);
        cb_pop_front(a, rows);
        cb_pop_front(b, cols);
    }
    tile_regs_commit();
    tile_regs_wait();
    pack_block(0, out, rows * cols);
    tile_regs_release();
    cb_push_back(out, rows * cols);
    cb_pop_front(bias, rows * cols);
}
