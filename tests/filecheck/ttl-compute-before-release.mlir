// A value that is used behind a pop of what it reads is computed before it: stored there if its target is reserved by then, else in a buffer.
// RUN: tilewright opt %s -p ttl-complete-releases,ttl-compute-before-release --verify

func.func @compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {
  %0 = ttl.bind_cb{cb_index = 0, buffer_factor = 2} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %1 = ttl.bind_cb{cb_index = 1, buffer_factor = 2} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %2 = ttl.bind_cb{cb_index = 2, buffer_factor = 2} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>

  %o = ttl.cb_reserve %1 : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %3 = ttl.cb_wait %0 : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %4 = ttl.attach_cb %3, %0 : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %y = ttl.exp %4 : tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.cb_pop %0 : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  ttl.store %y, %o : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.cb_push %1 : <[1, 1], !ttcore.tile<32x32, bf16>, 2>

  %p = ttl.cb_reserve %2 : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %z = ttl.abs %y : tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.store %z, %p : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.cb_push %2 : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  return
}

// CHECK-LABEL: func.func @compute
// CHECK: %[[BUFFER:[a-z0-9_]+]] = ttl.bind_cb{cb_index = 3 : i32, buffer_factor = 1 : i32, name = "y_3", origin = "compiler", eager}
// CHECK: %[[Y:[a-z0-9_]+]] = ttl.exp
// CHECK-NEXT: ttl.store %[[Y]]
// CHECK-NEXT: ttl.cb_reserve %[[BUFFER]]
// CHECK-NEXT: ttl.attach_cb
// CHECK-NEXT: ttl.store %[[Y]]
// CHECK-NEXT: ttl.cb_push %[[BUFFER]]
// CHECK-NEXT: ttl.cb_wait %[[BUFFER]]
// CHECK-NEXT: %[[LATER:[a-z0-9_]+]] = ttl.attach_cb
// CHECK-NEXT: ttl.cb_pop %0
// CHECK: ttl.abs %[[LATER]]
// CHECK-NEXT: ttl.store
// CHECK-NEXT: ttl.cb_pop %[[BUFFER]]
