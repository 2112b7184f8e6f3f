// A sum that a loop carries through a buffer becomes one block, from before the loop to a push behind it: what the loop handed over is
// gone.
// RUN: tilewright opt %s -p convert-ttl-to-compute,ttl-set-compute-config,ttl-raise-running-values --verify

func.func @compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {
  %0 = ttl.bind_cb{cb_index = 0, buffer_factor = 2, name = "a_cb"} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %1 = ttl.bind_cb{cb_index = 1, buffer_factor = 2, name = "total_cb"} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %2 = ttl.bind_cb{cb_index = 2, buffer_factor = 2, name = "out_cb"} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %3 = ttl.cb_reserve %1 : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %4 = ttl.attach_cb %3, %1 : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %5 = ttl.fill_block {value = 0.000000e+00 : f32} : tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.store %5, %4 : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.cb_push %1 : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %6 = arith.constant 0 : index
  %7 = arith.constant 4 : index
  %8 = arith.constant 1 : index
  scf.for %step = %6 to %7 step %8 {
    %9 = ttl.cb_wait %0 : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %10 = ttl.attach_cb %9, %0 : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %11 = ttl.cb_wait %1 : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %12 = ttl.attach_cb %11, %1 : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %13 = ttl.cb_reserve %1 : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %14 = ttl.attach_cb %13, %1 : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %15 = ttl.exp %10 : tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %16 = ttl.add %12, %15 : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    ttl.store %16, %14 : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>>
    ttl.cb_push %1 : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
    ttl.cb_pop %1 : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
    ttl.cb_pop %0 : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  }
  %17 = ttl.cb_wait %1 : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %18 = ttl.attach_cb %17, %1 : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %19 = ttl.cb_reserve %2 : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %20 = ttl.attach_cb %19, %2 : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.store %18, %20 : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.cb_push %2 : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  ttl.cb_pop %1 : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  func.return
}

// CHECK-LABEL: func.func @compute
// CHECK: %[[SUM:[a-z0-9_]+]] = ttl.bind_cb{cb_index = 1
// CHECK: %[[TOTAL:[a-z0-9_]+]] = ttl.running %[[SUM]]
// CHECK: %[[FIRST:[a-z0-9_]+]] = ttl.attach_cb %[[TOTAL]], %[[SUM]]
// CHECK: ttl.compute ins() outs(%[[FIRST]]
// CHECK: ttl.tile_fill
// CHECK-NOT: ttl.cb_push %[[SUM]]
// CHECK: scf.for
// CHECK-NOT: ttl.cb_wait %[[SUM]]
// CHECK: %[[OLD:[a-z0-9_]+]] = ttl.attach_cb %[[TOTAL]], %[[SUM]]
// CHECK: %[[NEW:[a-z0-9_]+]] = ttl.attach_cb %[[TOTAL]], %[[SUM]]
// CHECK: ttl.compute ins({{.*}}%[[OLD]]{{.*}}) outs(%[[NEW]]
// CHECK: ttl.tile_add
// CHECK-NOT: ttl.cb_pop %[[SUM]]
// CHECK: ttl.cb_push %[[SUM]]
// CHECK: ttl.cb_wait %[[SUM]]
