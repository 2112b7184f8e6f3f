// relu(a + b) * 0.5 in 32-bit DST, operands unpacked straight to DST, every buffer float32.
// tilewright check: --cb 0:f32:2 --cb 1:f32:2 --cb 16:f32:2 --arg 5 --fp32 --unpack-to-dest 0,1
#include <cstdint>

#include "api/compute/common.h"
#include "api/compute/eltwise_binary_sfpu.h"
#include "api/compute/eltwise_unary/binop_with_scalar.h"
#include "api/compute/eltwise_unary/relu.h"
#include "api/compute/tile_move_copy.h"

void kernel_main() {
    constexpr uint32_t a = 0, b = 1, out = 16, half_bits = 0x3F000000u;
    const uint32_t tiles = get_arg_val<uint32_t>(0);
    compute_kernel_hw_startup(a, out);
    copy_init(a);
    add_binary_tile_init();
    relu_tile_init();
    binop_with_scalar_tile_init();
    for (uint32_t t = 0; t < tiles; ++t) {
        cb_wait_front(a, 1);
        cb_wait_front(b, 1);
        tile_regs_acquire();
        copy_tile(a, 0, 0);
        copy_tile(b, 0, 1);
        add_binary_tile(0, 1, 0);
        relu_tile(0);
        mul_unary_tile(0, half_bits);
        tile_regs_commit();
        cb_pop_front(a, 1);
        cb_pop_front(b, 1);
        cb_reserve_back(out, 1);
        tile_regs_wait();
        pack_tile(0, out);
        tile_regs_release();
        cb_push_back(out, 1);
    }
}
