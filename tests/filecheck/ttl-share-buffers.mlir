// Two buffers of one group, used one behind the other by the same threads, are one queue, as deep as the deeper of them.
// RUN: tilewright opt %s -p ttl-share-buffers --verify

func.func @compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {
  %first = ttl.bind_cb{cb_index = 0, buffer_factor = 1, allocation_group = 0 : i32} : <[1, 1], !ttcore.tile<32x32, bf16>, 1>
  %second = ttl.bind_cb{cb_index = 1, buffer_factor = 2, allocation_group = 0 : i32} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %out = ttl.bind_cb{cb_index = 2, buffer_factor = 2} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %x_raw = ttl.cb_wait %first : <[1, 1], !ttcore.tile<32x32, bf16>, 1> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %x = ttl.attach_cb %x_raw, %first : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 1> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %xo_raw = ttl.cb_reserve %out : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %xo = ttl.attach_cb %xo_raw, %out : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %xe = ttl.exp %x : tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.store %xe, %xo : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.cb_push %out : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  ttl.cb_pop %first : <[1, 1], !ttcore.tile<32x32, bf16>, 1>
  %y_raw = ttl.cb_wait %second : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %y = ttl.attach_cb %y_raw, %second : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %yo_raw = ttl.cb_reserve %out : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %yo = ttl.attach_cb %yo_raw, %out : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %ye = ttl.exp %y : tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.store %ye, %yo : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.cb_push %out : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  ttl.cb_pop %second : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  return
}

func.func @filling() attributes {ttl.kernel_thread = #ttkernel.thread<noc>, ttl.role = "reader"} {
  %first = ttl.bind_cb{cb_index = 0, buffer_factor = 1, allocation_group = 0 : i32} : <[1, 1], !ttcore.tile<32x32, bf16>, 1>
  %second = ttl.bind_cb{cb_index = 1, buffer_factor = 2, allocation_group = 0 : i32} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %p_raw = ttl.cb_reserve %first : <[1, 1], !ttcore.tile<32x32, bf16>, 1> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %p = ttl.attach_cb %p_raw, %first : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 1> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.cb_push %first : <[1, 1], !ttcore.tile<32x32, bf16>, 1>
  %q_raw = ttl.cb_reserve %second : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %q = ttl.attach_cb %q_raw, %second : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.cb_push %second : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  return
}

func.func @taking() attributes {ttl.kernel_thread = #ttkernel.thread<noc>, ttl.role = "writer"} {
  %out = ttl.bind_cb{cb_index = 2, buffer_factor = 2} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %r_raw = ttl.cb_wait %out : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %r = ttl.attach_cb %r_raw, %out : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.cb_pop %out : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %s_raw = ttl.cb_wait %out : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %s = ttl.attach_cb %s_raw, %out : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.cb_pop %out : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  return
}

// CHECK-LABEL: func.func @compute
// CHECK: %[[SHARED:[a-z0-9_]+]] = ttl.bind_cb
// CHECK-SAME: cb_index = 0
// CHECK-SAME: buffer_factor = 2
// CHECK-NEXT: %[[OUT:[a-z0-9_]+]] = ttl.bind_cb
// CHECK-SAME: cb_index = 1
// CHECK: ttl.cb_wait %[[SHARED]]
// CHECK: ttl.cb_pop %[[SHARED]]
// CHECK: ttl.cb_wait %[[SHARED]]
// CHECK: ttl.cb_pop %[[SHARED]]
