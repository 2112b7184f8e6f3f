// A sum of f32 runs on the vector unit; all but its result is replaced by zero, because the block leaves the thread.
// RUN: tilewright opt %s -p ttl-choose-exact-reductions --verify

func.func @compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {
  %in = ttl.bind_cb{cb_index = 0, buffer_factor = 2} : <[1, 1], !ttcore.tile<32x32, f32>, 2>
  %out = ttl.bind_cb{cb_index = 1, buffer_factor = 2} : <[1, 1], !ttcore.tile<32x32, f32>, 2>
  %x_raw = ttl.cb_wait %in : <[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
  %x = ttl.attach_cb %x_raw, %in : tensor<1x1x!ttcore.tile<32x32, f32>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
  %o_raw = ttl.cb_reserve %out : <[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
  %o = ttl.attach_cb %o_raw, %out : tensor<1x1x!ttcore.tile<32x32, f32>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
  %s = ttl.reduce %x {kind = "sum", dims = [1 : i64]} : tensor<1x1x!ttcore.tile<32x32, f32>> -> tensor<1x1x!ttcore.tile<32x32, f32>>
  ttl.store %s, %o : tensor<1x1x!ttcore.tile<32x32, f32>>, tensor<1x1x!ttcore.tile<32x32, f32>>
  ttl.cb_pop %in : <[1, 1], !ttcore.tile<32x32, f32>, 2>
  ttl.cb_push %out : <[1, 1], !ttcore.tile<32x32, f32>, 2>
  return
}

// CHECK-LABEL: func.func @compute
// CHECK: ttl.bind_cb{cb_index = 2
// CHECK-SAME: name = "first_column"
// CHECK: %s = ttl.reduce
// CHECK-SAME: exact
// CHECK: %[[CLEAR:[a-z0-9_]+]] = ttl.where
// CHECK-NEXT: ttl.store %[[CLEAR]]
// CHECK: ttl.fill_scaler
// CHECK-SAME: pattern = "column"
