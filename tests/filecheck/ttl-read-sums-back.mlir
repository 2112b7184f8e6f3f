// A sum of integers lies in a buffer of its own: the packer cannot add to them.
// RUN: tilewright opt %s -p ttl-read-sums-back --verify

func.func @compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {
  %in = ttl.bind_cb{cb_index = 0, buffer_factor = 2} : <[1, 1], !ttcore.tile<32x32, i32>, 2>
  %out = ttl.bind_cb{cb_index = 1, buffer_factor = 2} : <[1, 1], !ttcore.tile<32x32, i32>, 2>
  %x_raw = ttl.cb_wait %in : <[1, 1], !ttcore.tile<32x32, i32>, 2> -> tensor<1x1x!ttcore.tile<32x32, i32>>
  %x = ttl.attach_cb %x_raw, %in : tensor<1x1x!ttcore.tile<32x32, i32>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, i32>, 2> -> tensor<1x1x!ttcore.tile<32x32, i32>>
  %o_raw = ttl.cb_reserve %out : <[1, 1], !ttcore.tile<32x32, i32>, 2> -> tensor<1x1x!ttcore.tile<32x32, i32>>
  %o = ttl.attach_cb %o_raw, %out : tensor<1x1x!ttcore.tile<32x32, i32>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, i32>, 2> -> tensor<1x1x!ttcore.tile<32x32, i32>>
  ttl.store %x, %o {accumulate = true} : tensor<1x1x!ttcore.tile<32x32, i32>>, tensor<1x1x!ttcore.tile<32x32, i32>>
  ttl.cb_push %out : <[1, 1], !ttcore.tile<32x32, i32>, 2>
  ttl.cb_pop %in : <[1, 1], !ttcore.tile<32x32, i32>, 2>
  return
}

// CHECK-LABEL: func.func @compute
// CHECK: ttl.fill_block {value = 0
// CHECK: ttl.add_int
// CHECK-NOT: accumulate
// CHECK: ttl.cb_push %out
