// Groups of two in a ring of three: the second group would pass its end.
// RUN: tilewright opt %s -p ttl-place-blocks,ttl-deepen-buffers

func.func @compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {
  %in = ttl.bind_cb{cb_index = 0, buffer_factor = 3} : <[1, 1], !ttcore.tile<32x32, bf16>, 3>
  %out = ttl.bind_cb{cb_index = 1, buffer_factor = 2} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %x_raw = ttl.cb_wait %in : <[1, 1], !ttcore.tile<32x32, bf16>, 3> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %x = ttl.attach_cb %x_raw, %in : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 3> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %y_raw = ttl.cb_wait %in : <[1, 1], !ttcore.tile<32x32, bf16>, 3> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %y = ttl.attach_cb %y_raw, %in : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 3> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %o_raw = ttl.cb_reserve %out : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %o = ttl.attach_cb %o_raw, %out : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %s = ttl.add %x, %y : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    ttl.store %s, %o : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>>
    ttl.cb_pop %in : <[1, 1], !ttcore.tile<32x32, bf16>, 3>
    ttl.cb_pop %in : <[1, 1], !ttcore.tile<32x32, bf16>, 3>
    ttl.cb_push %out : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  }
  return
}

// CHECK-LABEL: func.func @compute
// CHECK: ttl.bind_cb{cb_index = 0 : {{.*}}buffer_factor = 4
// CHECK: ttl.bind_cb{cb_index = 1 : {{.*}}buffer_factor = 2
