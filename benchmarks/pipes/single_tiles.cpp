// Tiles of DRAM, one by one, from core (0, 0) to core (1, 0): the calls that tt-lang makes of a pipe whose receiver address the sender
// computes. A credit comes back when the receiver's only block is free again; the sender waits for both of its own signals.
#include "api/dataflow/dataflow_api.h"

void kernel_main() {
  constexpr uint32_t tiles = get_compile_time_arg_val(0);
  constexpr auto layout = TensorAccessorArgs<1>();
  const uint32_t tile_bytes = get_tile_size(0);
  volatile tt_l1_ptr uint32_t* room = reinterpret_cast<volatile tt_l1_ptr uint32_t*>(get_semaphore(0));
  volatile tt_l1_ptr uint32_t* arrived = reinterpret_cast<volatile tt_l1_ptr uint32_t*>(get_semaphore(1));
  const auto source = TensorAccessor(layout, get_arg_val<uint32_t>(1), tile_bytes);
  const auto target = TensorAccessor(layout, get_arg_val<uint32_t>(2), tile_bytes);
  if (get_arg_val<uint32_t>(0) == 0) {
    const uint32_t slot = get_write_ptr(1);  // buffers lie at the same addresses on all cores
    for (uint32_t tile = 0; tile < tiles; ++tile) {
      cb_reserve_back(0, 1);
      noc_async_read_tile(tile, source, get_write_ptr(0));
      noc_async_read_barrier();
      cb_push_back(0, 1);
      cb_wait_front(0, 1);
      noc_semaphore_wait_min(room, tile + 1);
      noc_async_write(get_read_ptr(0), get_noc_addr(my_x[0] + 1, my_y[0], slot), tile_bytes);
      noc_async_write_barrier();
      noc_semaphore_inc(get_noc_addr(my_x[0] + 1, my_y[0], get_semaphore(1)), 1);
      noc_async_atomic_barrier();
      cb_pop_front(0, 1);
    }
  } else {
    for (uint32_t tile = 0; tile < tiles; ++tile) {
      cb_reserve_back(1, 1);
      noc_semaphore_inc(get_noc_addr(my_x[0] - 1, my_y[0], get_semaphore(0)), 1);
      noc_semaphore_wait_min(arrived, tile + 1);
      cb_push_back(1, 1);
      cb_wait_front(1, 1);
      noc_async_write_tile(tile, target, get_read_ptr(1));
      noc_async_write_barrier();
      cb_pop_front(1, 1);
    }
    noc_async_atomic_barrier();
  }
}
