// A loop that writes blocks waits until each has left; one barrier at the end waits for all.
// RUN: tilewright opt %s -p ttkernel-defer-write-barriers --verify

func.func @write() attributes {ttl.kernel_thread = #ttkernel.thread<noc>, ttl.role = "writer"} {
  %y_cb = ttkernel.get_compile_time_arg_val() {index = 0 : i32, cb_index = 0 : i32, name = "y_cb"} : () -> !ttkernel.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %y = ttkernel.tensor_accessor() {tensor_index = 0 : i32, name = "y", dtype = "bf16", memory = "dram"} : () -> !ttkernel.accessor
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    ttkernel.cb_wait_front(%y_cb, %c1) : (!ttkernel.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2>, index) -> ()
    %l1 = ttkernel.get_read_ptr(%y_cb) : (!ttkernel.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2>) -> index
    ttkernel.noc_async_write_page(%i, %y, %l1) : (index, !ttkernel.accessor, index) -> ()
    ttkernel.noc_async_write_barrier() : () -> ()
    ttkernel.cb_pop_front(%y_cb, %c1) : (!ttkernel.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2>, index) -> ()
  }
  return
}

// CHECK: ttkernel.noc_async_write_page
// CHECK-NEXT: ttkernel.noc_async_writes_flushed
// CHECK-NEXT: ttkernel.cb_pop_front
// CHECK: }
// CHECK-NEXT: ttkernel.noc_async_write_barrier
// CHECK-NEXT: return
