// A block of column numbers is made once by a data-movement thread, and held.
// RUN: tilewright opt %s -p ttl-place-patterns --verify

func.func @compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {
  %out = ttl.bind_cb{cb_index = 0, buffer_factor = 1} : <[1, 2], !ttcore.tile<32x32, f32>, 1>
  %o_raw = ttl.cb_reserve %out : <[1, 2], !ttcore.tile<32x32, f32>, 1> -> tensor<1x2x!ttcore.tile<32x32, f32>>
  %o = ttl.attach_cb %o_raw, %out : tensor<1x2x!ttcore.tile<32x32, f32>>, !ttl.cb<[1, 2], !ttcore.tile<32x32, f32>, 1> -> tensor<1x2x!ttcore.tile<32x32, f32>>
  %p = ttl.pattern_block {pattern = "columns"} : tensor<1x2x!ttcore.tile<32x32, f32>>
  %q = ttl.pattern_block {pattern = "columns"} : tensor<1x2x!ttcore.tile<32x32, f32>>
  %s = ttl.add %p, %q : tensor<1x2x!ttcore.tile<32x32, f32>>, tensor<1x2x!ttcore.tile<32x32, f32>> -> tensor<1x2x!ttcore.tile<32x32, f32>>
  ttl.store %s, %o : tensor<1x2x!ttcore.tile<32x32, f32>>, tensor<1x2x!ttcore.tile<32x32, f32>>
  ttl.cb_push %out : <[1, 2], !ttcore.tile<32x32, f32>, 1>
  return
}

func.func @write() attributes {ttl.kernel_thread = #ttkernel.thread<noc>} {
  %out = ttl.bind_cb{cb_index = 0, buffer_factor = 1} : <[1, 2], !ttcore.tile<32x32, f32>, 1>
  %b = ttl.cb_wait %out : <[1, 2], !ttcore.tile<32x32, f32>, 1> -> tensor<1x2x!ttcore.tile<32x32, f32>>
  ttl.cb_pop %out : <[1, 2], !ttcore.tile<32x32, f32>, 1>
  return
}

// CHECK-LABEL: func.func @compute
// CHECK: name = "columns_1"
// CHECK: [[PLACES:%[a-z0-9_]+]] = ttl.attach_cb
// CHECK-NOT: ttl.pattern_block
// CHECK: ttl.add [[PLACES]], [[PLACES]]
// CHECK-LABEL: func.func @write
// CHECK: ttl.fill_pattern {{.*}}pattern = "columns"
