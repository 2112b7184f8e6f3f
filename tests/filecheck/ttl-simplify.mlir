// 1 / (1 + exp(-x)) is a sigmoid, and a tile of one number is a number of the call.
// RUN: tilewright opt %s -p ttl-simplify --verify

func.func @compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {
  %in = ttl.bind_cb{cb_index = 0, buffer_factor = 2} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %out = ttl.bind_cb{cb_index = 1, buffer_factor = 2} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %x_raw = ttl.cb_wait %in : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %x = ttl.attach_cb %x_raw, %in : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %o_raw = ttl.cb_reserve %out : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %o = ttl.attach_cb %o_raw, %out : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %m = ttl.neg %x : tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %e = ttl.exp %m : tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %one = ttl.fill_block {value = 1.0 : f32} : tensor<1x1x!ttcore.tile<32x32, bf16>>
  %d = ttl.add %one, %e : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %r = ttl.recip %d : tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %half = ttl.fill_block {value = 0.5 : f32} : tensor<1x1x!ttcore.tile<32x32, bf16>>
  %s = ttl.mul %r, %half : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.store %s, %o : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.cb_pop %in : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  ttl.cb_push %out : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  return
}

// CHECK-LABEL: func.func @compute
// CHECK-NOT: ttl.exp
// CHECK: %r = ttl.sigmoid %x
// CHECK-NOT: ttl.fill_block
// CHECK: %s = ttl.mul_scalar %r
// CHECK-SAME: scalar = 5.000000e-01
