// out = f(a * b), a tile at a time; what f is, a header of the kernel's own says.
// tilewright check: --reader reader.cpp --writer writer.cpp --cb 0:bf16:2 --cb 1:bf16:2 --cb 16:bf16:2
// tilewright check: --arg 8//cores -D FUNCTION=exp_tile -I .
#include <cstdint>

#include "api/compute/common.h"
#include "api/compute/compute_kernel_hw_startup.h"
#include "api/compute/eltwise_binary.h"
#include "api/compute/eltwise_unary/exp.h"
#include "function.h"

void kernel_main() {
    constexpr uint32_t a = tt::CBIndex::c_0, b = tt::CBIndex::c_1, out = tt::CBIndex::c_16;
    const uint32_t count = get_arg_val<uint32_t>(0);
    compute_kernel_hw_startup(a, b, out);
    mul_init(a, b);
    exp_tile_init();
    for (uint32_t i = 0; i < count; ++i) {
        cb_wait_front(a, 1);
        cb_wait_front(b, 1);
        cb_reserve_back(out, 1);
        tile_regs_acquire();
        mul_tiles(a, b, 0, 0, 0);
        apply(0);
        tile_regs_commit();
        tile_regs_wait();
        pack_tile(0, out);
        tile_regs_release();
        cb_push_back(out, 1);
        cb_pop_front(a, 1);
        cb_pop_front(b, 1);
    }
}
