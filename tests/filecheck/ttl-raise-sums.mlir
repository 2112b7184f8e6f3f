// Sums onto reserved blocks. One of integers is a value, whatever statements add to it: the packer cannot add to them. One that a loop
// adds to once is a running value in any format.
// RUN: tilewright opt %s -p ttl-raise-sums --verify

func.func @compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {
  %in = ttl.bind_cb{cb_index = 0, buffer_factor = 2} : <[1, 1], !ttcore.tile<32x32, i32>, 2>
  %out = ttl.bind_cb{cb_index = 1, buffer_factor = 2} : <[1, 1], !ttcore.tile<32x32, i32>, 2>
  %a = ttl.bind_cb{cb_index = 2, buffer_factor = 2} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %total = ttl.bind_cb{cb_index = 3, buffer_factor = 2, name = "total"} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %x_raw = ttl.cb_wait %in : <[1, 1], !ttcore.tile<32x32, i32>, 2> -> tensor<1x1x!ttcore.tile<32x32, i32>>
  %x = ttl.attach_cb %x_raw, %in : tensor<1x1x!ttcore.tile<32x32, i32>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, i32>, 2> -> tensor<1x1x!ttcore.tile<32x32, i32>>
  %o_raw = ttl.cb_reserve %out : <[1, 1], !ttcore.tile<32x32, i32>, 2> -> tensor<1x1x!ttcore.tile<32x32, i32>>
  %o = ttl.attach_cb %o_raw, %out : tensor<1x1x!ttcore.tile<32x32, i32>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, i32>, 2> -> tensor<1x1x!ttcore.tile<32x32, i32>>
  ttl.store %x, %o {accumulate = true} : tensor<1x1x!ttcore.tile<32x32, i32>>, tensor<1x1x!ttcore.tile<32x32, i32>>
  ttl.store %x, %o {accumulate = true} : tensor<1x1x!ttcore.tile<32x32, i32>>, tensor<1x1x!ttcore.tile<32x32, i32>>
  ttl.cb_push %out : <[1, 1], !ttcore.tile<32x32, i32>, 2>
  ttl.cb_pop %in : <[1, 1], !ttcore.tile<32x32, i32>, 2>
  %t_raw = ttl.cb_reserve %total : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %t = ttl.attach_cb %t_raw, %total : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c1 = arith.constant 1 : index
  scf.for %step = %c0 to %c4 step %c1 {
    %y_raw = ttl.cb_wait %a : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %y = ttl.attach_cb %y_raw, %a : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    ttl.store %y, %t {accumulate = true} : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>>
    ttl.cb_pop %a : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  }
  ttl.cb_push %total : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  return
}

// CHECK-LABEL: func.func @compute
// CHECK-NOT: accumulate
// CHECK: %[[SUM:[a-z0-9_]+]] = ttl.bind_cb{cb_index = 4 : i32, buffer_factor = 2 : i32, name = "total_4", origin = "compiler"}
// CHECK: %[[INTEGER:[a-z0-9_]+]] = ttl.add_int %x, %x
// CHECK-NEXT: ttl.store %[[INTEGER]], %o
// CHECK: %[[ZERO:[a-z0-9_]+]] = ttl.fill_block {value = 0.000000e+00 : f32}
// CHECK-NEXT: %[[TOTAL:[a-z0-9_]+]] = ttl.running %[[SUM]]
// CHECK-NEXT: %[[FIRST:[a-z0-9_]+]] = ttl.attach_cb %[[TOTAL]], %[[SUM]]
// CHECK-NEXT: ttl.store %[[ZERO]], %[[FIRST]]
// CHECK: scf.for
// CHECK: %[[OLD:[a-z0-9_]+]] = ttl.attach_cb %[[TOTAL]], %[[SUM]]
// CHECK: %[[GROWN:[a-z0-9_]+]] = ttl.add %[[OLD]], %y
// CHECK: %[[NEXT:[a-z0-9_]+]] = ttl.attach_cb %[[TOTAL]], %[[SUM]]
// CHECK: ttl.store %[[GROWN]], %[[NEXT]]
// CHECK: ttl.cb_push %[[SUM]]
// CHECK: %[[RESULT:[a-z0-9_]+]] = ttl.attach_cb {{.*}}, %[[SUM]]
// CHECK-NEXT: ttl.store %[[RESULT]], %t
// CHECK-NEXT: ttl.cb_pop %[[SUM]]
// CHECK-NEXT: ttl.cb_push %total
