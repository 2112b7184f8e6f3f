// Each turn asks for its block and hands over the one before, behind the barrier of its id; the last is handed over behind the loop.
// RUN: tilewright opt %s -p ttkernel-read-ahead --reads-ahead --verify

func.func @read() attributes {ttl.kernel_thread = #ttkernel.thread<noc>, ttl.role = "reader"} {
  %a_cb = ttkernel.get_compile_time_arg_val() {index = 0 : i32, cb_index = 0 : i32, name = "a_cb"} : () -> !ttkernel.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %a = ttkernel.tensor_accessor() {tensor_index = 0 : i32, name = "a", dtype = "bf16", memory = "dram"} : () -> !ttkernel.accessor
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    ttkernel.cb_reserve_back(%a_cb, %c1) : (!ttkernel.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2>, index) -> ()
    %l1 = ttkernel.get_write_ptr(%a_cb) : (!ttkernel.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2>) -> index
    ttkernel.noc_async_read_page(%i, %a, %l1) : (index, !ttkernel.accessor, index) -> ()
    ttkernel.noc_async_read_barrier() : () -> ()
    ttkernel.cb_push_back(%a_cb, %c1) : (!ttkernel.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2>, index) -> ()
  } {ttl.reads_ahead = 1 : i32}
  return
}

// CHECK: %l1 = ttkernel.get_write_ptr(%a_cb)
// CHECK: scf.for %i = %c0 to %c8 step %c1 iter_args(%slot
// CHECK: arith.constant 2 : index
// CHECK-NEXT: ttkernel.cb_reserve_back
// CHECK: ttkernel.noc_async_read_set_trid
// CHECK-NEXT: ttkernel.noc_async_read_page(%i, %a, %a_cb_block)
// CHECK: arith.cmpi uge, %i
// CHECK: scf.if
// CHECK-NEXT: ttkernel.noc_async_read_barrier_with_trid
// CHECK-NEXT: ttkernel.cb_push_back
// CHECK: scf.yield
// CHECK: ttkernel.noc_async_read_barrier()
// CHECK: ttkernel.cb_push_back
// CHECK: ttkernel.noc_async_read_set_trid
// CHECK-NOT: ttl.reads_ahead
