// The matrix unit reads an f32 buffer through the source registers, the sum wants all bits: it gets an index of its own over the same
// memory. In a 16-bit DST there are no bits to save.
// RUN: tilewright opt %s -p convert-ttl-to-compute,ttl-alias-exact-readers --verify
// RUN: tilewright opt %s -p convert-ttl-to-compute,ttl-alias-exact-readers --no-fp32-dest-acc | filecheck %s --check-prefix NARROW

func.func @compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {
  %0 = ttl.bind_cb{cb_index = 0, buffer_factor = 2, name = "a_cb"} : <[1, 1], !ttcore.tile<32x32, f32>, 2>
  %1 = ttl.bind_cb{cb_index = 1, buffer_factor = 2, name = "b_cb"} : <[1, 1], !ttcore.tile<32x32, f32>, 2>
  %2 = ttl.bind_cb{cb_index = 2, buffer_factor = 2, name = "out_cb"} : <[1, 1], !ttcore.tile<32x32, f32>, 2>
  %3 = ttl.cb_wait %0 : <[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
  %4 = ttl.attach_cb %3, %0 : tensor<1x1x!ttcore.tile<32x32, f32>>, <[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
  %5 = ttl.cb_wait %1 : <[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
  %6 = ttl.attach_cb %5, %1 : tensor<1x1x!ttcore.tile<32x32, f32>>, <[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
  %7 = ttl.cb_reserve %2 : <[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
  %8 = ttl.attach_cb %7, %2 : tensor<1x1x!ttcore.tile<32x32, f32>>, <[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
  %9 = ttl.matmul %4, %6 : tensor<1x1x!ttcore.tile<32x32, f32>>, tensor<1x1x!ttcore.tile<32x32, f32>> -> tensor<1x1x!ttcore.tile<32x32, f32>>
  %10 = ttl.add %9, %4 : tensor<1x1x!ttcore.tile<32x32, f32>>, tensor<1x1x!ttcore.tile<32x32, f32>> -> tensor<1x1x!ttcore.tile<32x32, f32>>
  ttl.store %10, %8 : tensor<1x1x!ttcore.tile<32x32, f32>>, tensor<1x1x!ttcore.tile<32x32, f32>>
  ttl.cb_push %2 : <[1, 1], !ttcore.tile<32x32, f32>, 2>
  ttl.cb_pop %1 : <[1, 1], !ttcore.tile<32x32, f32>, 2>
  ttl.cb_pop %0 : <[1, 1], !ttcore.tile<32x32, f32>, 2>
  func.return
}

// CHECK-LABEL: func.func @compute
// CHECK: %[[A:[a-z0-9_]+]] = ttl.bind_cb{cb_index = 0
// CHECK: %[[EXACT:[a-z0-9_]+]] = ttl.bind_cb{cb_index = 3
// CHECK-SAME: alias_of = 0
// CHECK: ttl.cb_wait %[[A]]
// CHECK: ttl.cb_wait %[[EXACT]]
// CHECK: ttl.attach_cb {{.*}}, %[[EXACT]]
// CHECK: ttl.cb_pop %[[A]]
// CHECK: ttl.cb_pop %[[EXACT]]

// NARROW: func.func @compute
// NARROW-NOT: alias_of
