// A buffer in a shard is read and nobody fills it: its reader publishes what the shard holds. The other has a producer.
// RUN: tilewright opt %s -p ttl-publish-shards --verify

func.func @compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {
  %in = ttl.bind_cb{cb_index = 0, buffer_factor = 1, tensor_index = 0 : i32} : <[1, 1], !ttcore.tile<32x32, bf16>, 1>
  %out = ttl.bind_cb{cb_index = 1, buffer_factor = 1, tensor_index = 0 : i32} : <[1, 1], !ttcore.tile<32x32, bf16>, 1>
  %x_raw = ttl.cb_wait %in : <[1, 1], !ttcore.tile<32x32, bf16>, 1> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %x = ttl.attach_cb %x_raw, %in : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 1> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %o_raw = ttl.cb_reserve %out : <[1, 1], !ttcore.tile<32x32, bf16>, 1> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %o = ttl.attach_cb %o_raw, %out : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 1> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %e = ttl.exp %x : tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.store %e, %o : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.cb_pop %in : <[1, 1], !ttcore.tile<32x32, bf16>, 1>
  ttl.cb_push %out : <[1, 1], !ttcore.tile<32x32, bf16>, 1>
  return
}

// CHECK-LABEL: func.func @compute
// CHECK: %out = ttl.bind_cb
// CHECK-NEXT: ttl.cb_publish %in
// CHECK-NOT: ttl.cb_publish
