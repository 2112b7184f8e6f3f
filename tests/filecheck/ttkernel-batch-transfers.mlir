// Four turns of a reader become one: four times the tiles per call, one barrier, and a loop around the transfers only.
// RUN: tilewright opt %s -p ttkernel-batch-transfers --verify

func.func @read() attributes {ttl.kernel_thread = #ttkernel.thread<noc>, ttl.role = "reader"} {
  %a_cb = ttkernel.get_compile_time_arg_val() {index = 0 : i32, cb_index = 0 : i32, name = "a_cb"} : () -> !ttkernel.cb<[1, 1], !ttcore.tile<32x32, bf16>, 8>
  %a = ttkernel.tensor_accessor() {tensor_index = 0 : i32, name = "a", dtype = "bf16", memory = "dram"} : () -> !ttkernel.accessor
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    ttkernel.cb_reserve_back(%a_cb, %c1) : (!ttkernel.cb<[1, 1], !ttcore.tile<32x32, bf16>, 8>, index) -> ()
    %l1 = ttkernel.get_write_ptr(%a_cb) : (!ttkernel.cb<[1, 1], !ttcore.tile<32x32, bf16>, 8>) -> index
    ttkernel.noc_async_read_page(%i, %a, %l1) : (index, !ttkernel.accessor, index) -> ()
    ttkernel.noc_async_read_barrier() : () -> ()
    ttkernel.cb_push_back(%a_cb, %c1) : (!ttkernel.cb<[1, 1], !ttcore.tile<32x32, bf16>, 8>, index) -> ()
  } {ttl.batch = 4 : i32}
  return
}

// CHECK: [[STEP:%[0-9a-z]+]] = arith.constant 4 : index
// CHECK: scf.for %i = %c0 to %c8 step [[STEP]]
// CHECK: ttkernel.cb_reserve_back
// CHECK: scf.for %block
// CHECK-NEXT: [[PAGE:%[0-9a-z]+]] = arith.addi %i, %block : index
// CHECK: arith.constant 2048
// CHECK: ttkernel.noc_async_read_page([[PAGE]], %a,
// CHECK: }
// CHECK-NEXT: ttkernel.noc_async_read_barrier
// CHECK: ttkernel.cb_push_back
// CHECK-NOT: ttl.batch
