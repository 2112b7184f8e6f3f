// The oldest spelling: sigmoid(a) - b by dest reuse, with the MAIN entry point and the thread macros.
// tilewright check: --metal 0.62 --cb 0:bf16:2 --cb 1:bf16:2 --cb 16:bf16:2 --ct-arg 0,1,16 --arg 4
#include <cstdint>

#include "compute_kernel_api.h"
#include "compute_kernel_api/common.h"
#include "compute_kernel_api/eltwise_binary.h"
#include "compute_kernel_api/tile_move_copy.h"

namespace NAMESPACE {
void MAIN {
    constexpr uint32_t a = get_compile_time_arg_val(0), b = get_compile_time_arg_val(1), out = get_compile_time_arg_val(2);
    uint32_t tiles = get_arg_val<uint32_t>(0);
    UNPACK((tiles += 0));
    binary_op_init_common(a, b, out);
    sigmoid_tile_init();
    for (uint32_t t = 0; t < tiles; ++t) {
        cb_wait_front(a, 1);
        cb_wait_front(b, 1);
        cb_reserve_back(out, 1);
        tile_regs_acquire();
        copy_tile_to_dst_init_short(a);
        copy_tile(a, 0, 0);
        sigmoid_tile(0);
        binary_dest_reuse_tiles_init<EltwiseBinaryType::ELWSUB, EltwiseBinaryReuseDestType::DEST_TO_SRCA>(b);
        binary_dest_reuse_tiles<EltwiseBinaryType::ELWSUB, EltwiseBinaryReuseDestType::DEST_TO_SRCA>(b, 0, 0);
        tile_regs_commit();
        tile_regs_wait();
        pack_tile(0, out);
        tile_regs_release();
        cb_push_back(out, 1);
        cb_pop_front(a, 1);
        cb_pop_front(b, 1);
    }
}
}  // namespace NAMESPACE
