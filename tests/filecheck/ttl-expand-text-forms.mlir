// A program in the specification's words becomes one function per thread in the front end's words.
// RUN: tilewright opt %s -p ttl-expand-text-forms --verify

ttl.kernel attributes {grid = [1, 1]} {
^bb0(%x: tensor<1x1x!ttcore.tile<32x32, bf16>>, %y: tensor<1x1x!ttcore.tile<32x32, bf16>>):
  %in = ttl.create_cb shape=[1, 1], element_type=!ttcore.tile<32x32, bf16>, buffer_factor=2
  %out = ttl.create_cb shape=[1, 1], element_type=!ttcore.tile<32x32, bf16>, buffer_factor=2
  ttl.compute_thread {
    %a = ttl.cb_wait %in
    %o = ttl.cb_reserve %out
    %r = ttl.compute_region ins(%a) outs(%o) {
    ^bb0(%blk):
      %d = ttl.acquire_dst {index = 3 : i32}
      %e = ttl.block_exp %blk {dst_reg = %d}
      ttl.release_dst %d : index
      ttl.yield %e
    }
    ttl.cb_pop %a
    ttl.cb_push %o
  }
  ttl.datamovement_thread {
    %acc = ttl.tensor_accessor %x
    %zero = arith.constant 0 : index
    %part = ttl.tensor_slice %acc, %zero, %zero : !ttl.accessor<[1, 1], !ttcore.tile<32x32, bf16>, "dram">, index, index -> !ttl.slice<[1, 1], !ttcore.tile<32x32, bf16>, "dram">
    %b = ttl.cb_reserve %in
    %t = ttl.copy %part, %b
    ttl.wait %t
    ttl.cb_push %b
  }
}

// CHECK: func.func @thread_0()
// CHECK: ttl.bind_cb{
// CHECK: ttl.attach_cb
// CHECK: %e = ttl.exp %{{.*}} {ttl.dst_reg = 3 : i32}
// CHECK-NEXT: ttl.store %e, %{{.*}}
// CHECK-NEXT: ttl.cb_pop %{{.*}} : <[1, 1]
// CHECK-NEXT: ttl.cb_push %{{.*}} : <[1, 1]
// CHECK: func.func @thread_1()
// CHECK: ttl.tensor_accessor {tensor_index = 0 : i32, name = "x"}
