// Reads two tensors tile by tile, each core its share, with the objects of the newest API.
// tilewright check: --tensor a:bf16:8 --tensor b:bf16:8 --ct-arg a,b --arg a,b,first=core*8//cores,count=8//cores
#include <cstdint>

#include "api/dataflow/circular_buffer.h"
#include "api/dataflow/noc.h"
#include "api/tensor/noc_traits.h"
#include "experimental/kernel_args.h"
#include "hostdevcommon/kernel_structs.h"

void kernel_main() {
    constexpr auto a_args = TensorAccessorArgs<0>();
    constexpr auto b_args = TensorAccessorArgs<a_args.next_compile_time_args_offset()>();
    const auto a = TensorAccessor(a_args, get_arg_val<uint32_t>(0));
    const auto b = TensorAccessor(b_args, get_arg_val<uint32_t>(1));
    const uint32_t first = get_arg(args::first), count = get_arg(args::count);
    CircularBuffer a_cb(tt::CBIndex::c_0), b_cb(tt::CBIndex::c_1);
    Noc noc;
    for (uint32_t tile = first; tile < first + count; ++tile) {
        a_cb.reserve_back(1);
        b_cb.reserve_back(1);
        noc.async_read(a, a_cb, a_cb.get_tile_size(), {.page_id = tile}, {.offset_bytes = 0});
        noc.async_read(b, b_cb, b_cb.get_tile_size(), {.page_id = tile}, {.offset_bytes = 0});
        noc.async_read_barrier();
        a_cb.push_back(1);
        b_cb.push_back(1);
    }
}
