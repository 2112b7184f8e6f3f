// Whole numbers that DST cannot repeat go through f32; so do rows of 16 bits in a 32-bit DST, while the vector unit cannot repeat them.
// RUN: tilewright opt %s -p ttl-widen-broadcasts --metal 0.69 --fp32-dest-acc --verify | filecheck %s --check-prefix CHECK
// RUN: tilewright opt %s -p ttl-widen-broadcasts --metal 0.78 --fp32-dest-acc --verify | filecheck %s --check-prefix NEWER

func.func @compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {
  %x_cb = ttl.bind_cb{cb_index = 0, buffer_factor = 2} : <[1, 1], !ttcore.tile<32x32, u16>, 2>
  %o_cb = ttl.bind_cb{cb_index = 1, buffer_factor = 2} : <[1, 2], !ttcore.tile<32x32, u16>, 2>
  %y_cb = ttl.bind_cb{cb_index = 2, buffer_factor = 2} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %p_cb = ttl.bind_cb{cb_index = 3, buffer_factor = 2} : <[2, 1], !ttcore.tile<32x32, bf16>, 2>
  %x_raw = ttl.cb_wait %x_cb : <[1, 1], !ttcore.tile<32x32, u16>, 2> -> tensor<1x1x!ttcore.tile<32x32, u16>>
  %x = ttl.attach_cb %x_raw, %x_cb : tensor<1x1x!ttcore.tile<32x32, u16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, u16>, 2> -> tensor<1x1x!ttcore.tile<32x32, u16>>
  %o_raw = ttl.cb_reserve %o_cb : <[1, 2], !ttcore.tile<32x32, u16>, 2> -> tensor<1x2x!ttcore.tile<32x32, u16>>
  %o = ttl.attach_cb %o_raw, %o_cb : tensor<1x2x!ttcore.tile<32x32, u16>>, !ttl.cb<[1, 2], !ttcore.tile<32x32, u16>, 2> -> tensor<1x2x!ttcore.tile<32x32, u16>>
  %x_all = ttl.bcast %x {dims = [1 : i64]} : tensor<1x1x!ttcore.tile<32x32, u16>> -> tensor<1x2x!ttcore.tile<32x32, u16>>
  ttl.store %x_all, %o : tensor<1x2x!ttcore.tile<32x32, u16>>, tensor<1x2x!ttcore.tile<32x32, u16>>
  %y_raw = ttl.cb_wait %y_cb : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %y = ttl.attach_cb %y_raw, %y_cb : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %p_raw = ttl.cb_reserve %p_cb : <[2, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<2x1x!ttcore.tile<32x32, bf16>>
  %p = ttl.attach_cb %p_raw, %p_cb : tensor<2x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[2, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<2x1x!ttcore.tile<32x32, bf16>>
  %y_all = ttl.bcast %y {dims = [0 : i64]} : tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<2x1x!ttcore.tile<32x32, bf16>>
  ttl.store %y_all, %p : tensor<2x1x!ttcore.tile<32x32, bf16>>, tensor<2x1x!ttcore.tile<32x32, bf16>>
  ttl.cb_pop %x_cb : <[1, 1], !ttcore.tile<32x32, u16>, 2>
  ttl.cb_push %o_cb : <[1, 2], !ttcore.tile<32x32, u16>, 2>
  ttl.cb_pop %y_cb : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  ttl.cb_push %p_cb : <[2, 1], !ttcore.tile<32x32, bf16>, 2>
  return
}

// CHECK-LABEL: func.func @compute
// CHECK: %[[F:[a-z0-9_]+]] = ttl.typecast %x {dtype = "f32", source = "u16"}
// CHECK-NEXT: %[[S:[a-z0-9_]+]] = ttl.bcast %[[F]]
// CHECK-NEXT: %[[R:[a-z0-9_]+]] = ttl.typecast %[[S]] {dtype = "u16", source = "f32"}
// CHECK-NEXT: ttl.store %[[R]]
// CHECK: %[[G:[a-z0-9_]+]] = ttl.typecast %y {dtype = "f32", source = "bf16"}
// CHECK-NEXT: %[[B:[a-z0-9_]+]] = ttl.bcast %[[G]]
// CHECK-NEXT: %[[Q:[a-z0-9_]+]] = ttl.typecast %[[B]] {dtype = "bf16", source = "f32"}
// CHECK-NEXT: ttl.store %[[Q]]

// NEWER-LABEL: func.func @compute
// NEWER: ttl.bcast %y {dims
