// What is added to a sum of products behind the loop is there before it: the sum starts from it instead of zeros.
// RUN: tilewright opt %s -p convert-ttl-to-compute,ttl-set-compute-config,ttl-raise-running-values,ttl-start-sums-from-bias --verify

func.func @compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {
  %0 = ttl.bind_cb{cb_index = 0, buffer_factor = 2, name = "a_cb"} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %1 = ttl.bind_cb{cb_index = 1, buffer_factor = 2, name = "b_cb"} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %2 = ttl.bind_cb{cb_index = 2, buffer_factor = 1, name = "c_cb"} : <[1, 1], !ttcore.tile<32x32, bf16>, 1>
  %3 = ttl.bind_cb{cb_index = 3, buffer_factor = 2, name = "total_cb"} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %4 = ttl.bind_cb{cb_index = 4, buffer_factor = 2, name = "out_cb"} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %5 = ttl.cb_wait %2 : <[1, 1], !ttcore.tile<32x32, bf16>, 1> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %6 = ttl.attach_cb %5, %2 : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 1> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %7 = ttl.cb_reserve %3 : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %8 = ttl.attach_cb %7, %3 : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %9 = ttl.fill_block {value = 0.000000e+00 : f32} : tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.store %9, %8 : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.cb_push %3 : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %10 = arith.constant 0 : index
  %11 = arith.constant 4 : index
  %12 = arith.constant 1 : index
  scf.for %step = %10 to %11 step %12 {
    %13 = ttl.cb_wait %0 : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %14 = ttl.attach_cb %13, %0 : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %15 = ttl.cb_wait %1 : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %16 = ttl.attach_cb %15, %1 : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %17 = ttl.cb_wait %3 : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %18 = ttl.attach_cb %17, %3 : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %19 = ttl.cb_reserve %3 : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %20 = ttl.attach_cb %19, %3 : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %21 = ttl.matmul %14, %16 : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %22 = ttl.add %18, %21 : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    ttl.store %22, %20 : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>>
    ttl.cb_push %3 : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
    ttl.cb_pop %3 : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
    ttl.cb_pop %1 : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
    ttl.cb_pop %0 : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  }
  %23 = ttl.cb_wait %3 : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %24 = ttl.attach_cb %23, %3 : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %25 = ttl.cb_reserve %4 : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %26 = ttl.attach_cb %25, %4 : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %27 = ttl.add %24, %6 : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %28 = ttl.relu %27 : tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.store %28, %26 : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.cb_push %4 : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  ttl.cb_pop %3 : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  ttl.cb_pop %2 : <[1, 1], !ttcore.tile<32x32, bf16>, 1>
  func.return
}

// CHECK-LABEL: func.func @compute
// CHECK: %[[C:[a-z0-9_]+]] = ttl.bind_cb{cb_index = 2
// CHECK: %[[BIAS:[a-z0-9_]+]] = ttl.attach_cb {{.*}}, %[[C]]
// CHECK: ttl.compute ins(%[[BIAS]]
// CHECK-NOT: ttl.tile_fill
// CHECK: scf.for
// CHECK: ttl.tile_matmul
// CHECK: ttl.tile_add
// CHECK: ttl.tile_relu
// CHECK-NOT: ttl.tile_add
