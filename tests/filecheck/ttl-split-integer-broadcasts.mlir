// Whole numbers that DST cannot repeat go through f32.
// RUN: tilewright opt %s -p ttl-split-integer-broadcasts --verify

func.func @compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {
  %in = ttl.bind_cb{cb_index = 0, buffer_factor = 2} : <[1, 1], !ttcore.tile<32x32, u16>, 2>
  %out = ttl.bind_cb{cb_index = 1, buffer_factor = 2} : <[1, 2], !ttcore.tile<32x32, u16>, 2>
  %x_raw = ttl.cb_wait %in : <[1, 1], !ttcore.tile<32x32, u16>, 2> -> tensor<1x1x!ttcore.tile<32x32, u16>>
  %x = ttl.attach_cb %x_raw, %in : tensor<1x1x!ttcore.tile<32x32, u16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, u16>, 2> -> tensor<1x1x!ttcore.tile<32x32, u16>>
  %o_raw = ttl.cb_reserve %out : <[1, 2], !ttcore.tile<32x32, u16>, 2> -> tensor<1x2x!ttcore.tile<32x32, u16>>
  %o = ttl.attach_cb %o_raw, %out : tensor<1x2x!ttcore.tile<32x32, u16>>, !ttl.cb<[1, 2], !ttcore.tile<32x32, u16>, 2> -> tensor<1x2x!ttcore.tile<32x32, u16>>
  %s = ttl.bcast %x {dims = [1 : i64]} : tensor<1x1x!ttcore.tile<32x32, u16>> -> tensor<1x2x!ttcore.tile<32x32, u16>>
  ttl.store %s, %o : tensor<1x2x!ttcore.tile<32x32, u16>>, tensor<1x2x!ttcore.tile<32x32, u16>>
  ttl.cb_pop %in : <[1, 1], !ttcore.tile<32x32, u16>, 2>
  ttl.cb_push %out : <[1, 2], !ttcore.tile<32x32, u16>, 2>
  return
}

// CHECK-LABEL: func.func @compute
// CHECK: %[[F:[a-z0-9_]+]] = ttl.typecast %x {dtype = "f32", source = "u16"}
// CHECK-NEXT: %[[S:[a-z0-9_]+]] = ttl.bcast %[[F]]
// CHECK-NEXT: %[[R:[a-z0-9_]+]] = ttl.typecast %[[S]] {dtype = "u16", source = "f32"}
// CHECK-NEXT: ttl.store %[[R]]
