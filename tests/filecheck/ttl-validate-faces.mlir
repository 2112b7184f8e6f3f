// A call confined to one column passes where only a broadcast of that column looks at it; nothing is changed.
// RUN: tilewright opt %s -p convert-ttl-to-compute,ttl-mark-demanded-faces,ttl-validate-faces --verify

func.func @compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {
  %in = ttl.bind_cb{cb_index = 0, buffer_factor = 2} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %out = ttl.bind_cb{cb_index = 1, buffer_factor = 2} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %x_raw = ttl.cb_wait %in : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %x = ttl.attach_cb %x_raw, %in : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %o_raw = ttl.cb_reserve %out : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %o = ttl.attach_cb %o_raw, %out : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %e = ttl.exp %x : tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %s = ttl.bcast %e {dims = [1 : i64]} : tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.store %s, %o : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.cb_pop %in : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  ttl.cb_push %out : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  return
}

// CHECK-LABEL: func.func @compute
// CHECK: ttl.tile_exp
// CHECK-SAME: ttl.faces = "column"
// CHECK: ttl.tile_bcast
