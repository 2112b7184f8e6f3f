// A product with a transposed block reads the block itself: the matrix unit turns its tiles.
// RUN: tilewright opt %s -p ttl-fold-transposes --verify

func.func @compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {
  %a = ttl.bind_cb{cb_index = 0, buffer_factor = 2} : <[1, 2], !ttcore.tile<32x32, bf16>, 2>
  %b = ttl.bind_cb{cb_index = 1, buffer_factor = 2} : <[3, 2], !ttcore.tile<32x32, bf16>, 2>
  %out = ttl.bind_cb{cb_index = 2, buffer_factor = 2} : <[1, 3], !ttcore.tile<32x32, bf16>, 2>
  %x_raw = ttl.cb_wait %a : <[1, 2], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x2x!ttcore.tile<32x32, bf16>>
  %x = ttl.attach_cb %x_raw, %a : tensor<1x2x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 2], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x2x!ttcore.tile<32x32, bf16>>
  %y_raw = ttl.cb_wait %b : <[3, 2], !ttcore.tile<32x32, bf16>, 2> -> tensor<3x2x!ttcore.tile<32x32, bf16>>
  %y = ttl.attach_cb %y_raw, %b : tensor<3x2x!ttcore.tile<32x32, bf16>>, !ttl.cb<[3, 2], !ttcore.tile<32x32, bf16>, 2> -> tensor<3x2x!ttcore.tile<32x32, bf16>>
  %o_raw = ttl.cb_reserve %out : <[1, 3], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x3x!ttcore.tile<32x32, bf16>>
  %o = ttl.attach_cb %o_raw, %out : tensor<1x3x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 3], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x3x!ttcore.tile<32x32, bf16>>
  %t = ttl.transpose %y : tensor<3x2x!ttcore.tile<32x32, bf16>> -> tensor<2x3x!ttcore.tile<32x32, bf16>>
  %p = ttl.matmul %x, %t : tensor<1x2x!ttcore.tile<32x32, bf16>>, tensor<2x3x!ttcore.tile<32x32, bf16>> -> tensor<1x3x!ttcore.tile<32x32, bf16>>
  ttl.store %p, %o : tensor<1x3x!ttcore.tile<32x32, bf16>>, tensor<1x3x!ttcore.tile<32x32, bf16>>
  ttl.cb_pop %a : <[1, 2], !ttcore.tile<32x32, bf16>, 2>
  ttl.cb_pop %b : <[3, 2], !ttcore.tile<32x32, bf16>, 2>
  ttl.cb_push %out : <[1, 3], !ttcore.tile<32x32, bf16>, 2>
  return
}

// CHECK-LABEL: func.func @compute
// CHECK: %[[Y:[a-z0-9_]+]] = ttl.attach_cb %y_raw
// CHECK: ttl.matmul %x, %[[Y]] {transpose_b
