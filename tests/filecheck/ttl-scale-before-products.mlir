// A product in a loop is scaled by a power of two: the matrix unit multiplies the operand that stands before the loop.
// RUN: tilewright opt %s -p ttl-scale-before-products --verify

func.func @compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {
  %in = ttl.bind_cb{cb_index = 0, buffer_factor = 2} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %more = ttl.bind_cb{cb_index = 1, buffer_factor = 2} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %out = ttl.bind_cb{cb_index = 2, buffer_factor = 2} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %x_raw = ttl.cb_wait %in : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %x = ttl.attach_cb %x_raw, %in : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  scf.for %i = %c0 to %c4 step %c1 {
    %y_raw = ttl.cb_wait %more : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %y = ttl.attach_cb %y_raw, %more : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %o_raw = ttl.cb_reserve %out : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %o = ttl.attach_cb %o_raw, %out : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %p = ttl.matmul %x, %y : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %s = ttl.mul_scalar %p {scalar = 1.25e-01 : f32} : tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    ttl.store %s, %o : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>>
    ttl.cb_push %out : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
    ttl.cb_pop %more : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  }
  ttl.cb_pop %in : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  return
}

// CHECK-LABEL: func.func @compute
// CHECK: %[[C:[a-z0-9_]+]] = ttl.bcast %{{[a-z0-9_]+}} {dims = [0{{.*}}, 1{{.*}}]}
// CHECK-NEXT: %[[X:[a-z0-9_]+]] = ttl.mul %x, %[[C]]
// CHECK-NEXT: scf.for
// CHECK: %[[S:[a-z0-9_]+]] = ttl.matmul %[[X]], %y
// CHECK-NEXT: ttl.store %[[S]]
// CHECK-NOT: ttl.mul_scalar
// CHECK: ttl.fill_scaler {{.*}}1.250000e-01{{.*}}pattern = "first"
