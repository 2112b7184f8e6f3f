// The ring holds two turns: the page of the next turn is asked for before this turn's block is sent. A ring of one turn stays.
// RUN: tilewright opt %s -p ttkernel-prefetch-blocks --verify

func.func @read() attributes {ttl.kernel_thread = #ttkernel.thread<noc>, ttl.role = "reader"} {
  %deep = ttkernel.get_compile_time_arg_val() {index = 0 : i32, cb_index = 0 : i32, name = "deep"} : () -> !ttkernel.cb<[1, 1], !ttcore.tile<32x32, bf16>, 4>
  %flat = ttkernel.get_compile_time_arg_val() {index = 1 : i32, cb_index = 1 : i32, name = "flat"} : () -> !ttkernel.cb<[1, 1], !ttcore.tile<32x32, bf16>, 1>
  %a = ttkernel.tensor_accessor() {tensor_index = 0 : i32, name = "a", dtype = "bf16", memory = "dram"} : () -> !ttkernel.accessor
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %bytes = arith.constant 2048 : index
  %where = ttkernel.get_noc_addr(%c1, %c0, %c0) : (index, index, index) -> index
  scf.for %i = %c0 to %c8 step %c1 {
    ttkernel.cb_reserve_back(%deep, %c1) : (!ttkernel.cb<[1, 1], !ttcore.tile<32x32, bf16>, 4>, index) -> ()
    %l1 = ttkernel.get_write_ptr(%deep) : (!ttkernel.cb<[1, 1], !ttcore.tile<32x32, bf16>, 4>) -> index
    ttkernel.noc_async_read_page(%i, %a, %l1) : (index, !ttkernel.accessor, index) -> ()
    ttkernel.noc_async_read_barrier() : () -> ()
    ttkernel.cb_push_back(%deep, %c1) : (!ttkernel.cb<[1, 1], !ttcore.tile<32x32, bf16>, 4>, index) -> ()
    ttkernel.cb_wait_front(%deep, %c1) : (!ttkernel.cb<[1, 1], !ttcore.tile<32x32, bf16>, 4>, index) -> ()
    %from = ttkernel.get_read_ptr(%deep) : (!ttkernel.cb<[1, 1], !ttcore.tile<32x32, bf16>, 4>) -> index
    ttkernel.noc_async_write(%from, %where, %bytes) : (index, index, index) -> ()
    ttkernel.noc_async_writes_flushed() : () -> ()
    ttkernel.cb_pop_front(%deep, %c1) : (!ttkernel.cb<[1, 1], !ttcore.tile<32x32, bf16>, 4>, index) -> ()
  }
  scf.for %j = %c0 to %c8 step %c1 {
    ttkernel.cb_reserve_back(%flat, %c1) : (!ttkernel.cb<[1, 1], !ttcore.tile<32x32, bf16>, 1>, index) -> ()
    %l1_1 = ttkernel.get_write_ptr(%flat) : (!ttkernel.cb<[1, 1], !ttcore.tile<32x32, bf16>, 1>) -> index
    ttkernel.noc_async_read_page(%j, %a, %l1_1) : (index, !ttkernel.accessor, index) -> ()
    ttkernel.noc_async_read_barrier() : () -> ()
    ttkernel.cb_push_back(%flat, %c1) : (!ttkernel.cb<[1, 1], !ttcore.tile<32x32, bf16>, 1>, index) -> ()
    ttkernel.cb_wait_front(%flat, %c1) : (!ttkernel.cb<[1, 1], !ttcore.tile<32x32, bf16>, 1>, index) -> ()
    %from_1 = ttkernel.get_read_ptr(%flat) : (!ttkernel.cb<[1, 1], !ttcore.tile<32x32, bf16>, 1>) -> index
    ttkernel.noc_async_write(%from_1, %where, %bytes) : (index, index, index) -> ()
    ttkernel.noc_async_writes_flushed() : () -> ()
    ttkernel.cb_pop_front(%flat, %c1) : (!ttkernel.cb<[1, 1], !ttcore.tile<32x32, bf16>, 1>, index) -> ()
  }
  return
}

// CHECK: ttkernel.cb_reserve_back(%deep, %c1)
// CHECK-NEXT: [[FIRST:%[0-9a-z_]+]] = ttkernel.get_write_ptr(%deep)
// CHECK-NEXT: ttkernel.noc_async_read_page(%c0, %a, [[FIRST]])
// CHECK-NEXT: scf.for %i
// CHECK-NEXT: ttkernel.noc_async_read_barrier
// CHECK-NEXT: ttkernel.cb_push_back(%deep, %c1)
// CHECK-NEXT: %next_i = arith.addi %i, %c1
// CHECK-NEXT: [[MORE:%[0-9a-z_]+]] = arith.cmpi ult, %next_i, %c8
// CHECK-NEXT: scf.if [[MORE]] {
// CHECK-NEXT: ttkernel.cb_reserve_back(%deep, %c1)
// CHECK-NEXT: [[NEXT:%[0-9a-z_]+]] = ttkernel.get_write_ptr(%deep)
// CHECK-NEXT: ttkernel.noc_async_read_page(%next_i, %a, [[NEXT]])
// CHECK-NEXT: }
// CHECK-NEXT: ttkernel.cb_wait_front(%deep, %c1)
// CHECK: scf.for %j
// CHECK-NEXT: ttkernel.cb_reserve_back(%flat, %c1)
// CHECK-NOT: scf.if
