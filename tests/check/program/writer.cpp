// tilewright check: --tensor out:bf16:8 --ct-arg out --arg out,core*8//cores,8//cores
#include <cstdint>

#include "api/dataflow/dataflow_api.h"

void kernel_main() {
    constexpr auto args = TensorAccessorArgs<0>();
    const auto out = TensorAccessor(args, get_arg_val<uint32_t>(0));
    const uint32_t first = get_arg_val<uint32_t>(1), count = get_arg_val<uint32_t>(2);
    for (uint32_t tile = first; tile < first + count; ++tile) {
        cb_wait_front(16, 1);
        noc_async_write_page(tile, out, get_read_ptr(16));
        noc_async_write_barrier();
        cb_pop_front(16, 1);
    }
}
