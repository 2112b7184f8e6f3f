// A float16 tensor travels as float32: the buffers it is copied to hold no bits that the source registers would lose. The result does.
// RUN: tilewright opt %s -p convert-ttl-to-compute,ttl-mark-half-buffers --verify

func.func @compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {
  %0 = ttl.bind_cb{cb_index = 0, buffer_factor = 2, name = "a_cb"} : <[1, 1], !ttcore.tile<32x32, f32>, 2>
  %1 = ttl.bind_cb{cb_index = 1, buffer_factor = 2, name = "b_cb"} : <[1, 1], !ttcore.tile<32x32, f32>, 2>
  %2 = ttl.bind_cb{cb_index = 2, buffer_factor = 2, name = "out_cb"} : <[1, 1], !ttcore.tile<32x32, f32>, 2>
  %3 = ttl.cb_wait %0 : <[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
  %4 = ttl.attach_cb %3, %0 : tensor<1x1x!ttcore.tile<32x32, f32>>, <[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
  %5 = ttl.cb_wait %1 : <[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
  %6 = ttl.attach_cb %5, %1 : tensor<1x1x!ttcore.tile<32x32, f32>>, <[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
  %7 = ttl.cb_reserve %2 : <[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
  %8 = ttl.attach_cb %7, %2 : tensor<1x1x!ttcore.tile<32x32, f32>>, <[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
  %9 = ttl.add %4, %6 : tensor<1x1x!ttcore.tile<32x32, f32>>, tensor<1x1x!ttcore.tile<32x32, f32>> -> tensor<1x1x!ttcore.tile<32x32, f32>>
  ttl.store %9, %8 : tensor<1x1x!ttcore.tile<32x32, f32>>, tensor<1x1x!ttcore.tile<32x32, f32>>
  ttl.cb_push %2 : <[1, 1], !ttcore.tile<32x32, f32>, 2>
  ttl.cb_pop %1 : <[1, 1], !ttcore.tile<32x32, f32>, 2>
  ttl.cb_pop %0 : <[1, 1], !ttcore.tile<32x32, f32>, 2>
  func.return
}
func.func @read() attributes {ttl.kernel_thread = #ttkernel.thread<noc>, ttl.role = "reader"} {
  %0 = ttl.bind_cb{cb_index = 0, buffer_factor = 2, name = "a_cb"} : <[1, 1], !ttcore.tile<32x32, f32>, 2>
  %1 = ttl.bind_cb{cb_index = 1, buffer_factor = 2, name = "b_cb"} : <[1, 1], !ttcore.tile<32x32, f32>, 2>
  %2 = ttl.tensor_accessor {tensor_index = 0 : i32, name = "a", significant_bits = 11 : i32} : !ttl.accessor<[1, 1], !ttcore.tile<32x32, f32>, "dram">
  %3 = ttl.tensor_accessor {tensor_index = 1 : i32, name = "b", significant_bits = 11 : i32} : !ttl.accessor<[1, 1], !ttcore.tile<32x32, f32>, "dram">
  %4 = ttl.cb_reserve %0 : <[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
  %5 = ttl.attach_cb %4, %0 : tensor<1x1x!ttcore.tile<32x32, f32>>, <[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
  %6 = ttl.cb_reserve %1 : <[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
  %7 = ttl.attach_cb %6, %1 : tensor<1x1x!ttcore.tile<32x32, f32>>, <[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
  %8 = arith.constant 0 : index
  %9 = ttl.tensor_slice %2, %8, %8 : !ttl.accessor<[1, 1], !ttcore.tile<32x32, f32>, "dram">, index, index -> !ttl.slice<[1, 1], !ttcore.tile<32x32, f32>, "dram">
  %10 = ttl.copy %9, %5 : !ttl.slice<[1, 1], !ttcore.tile<32x32, f32>, "dram">, tensor<1x1x!ttcore.tile<32x32, f32>> -> !ttl.transfer
  ttl.wait %10 : !ttl.transfer
  %11 = ttl.tensor_slice %3, %8, %8 : !ttl.accessor<[1, 1], !ttcore.tile<32x32, f32>, "dram">, index, index -> !ttl.slice<[1, 1], !ttcore.tile<32x32, f32>, "dram">
  %12 = ttl.copy %11, %7 : !ttl.slice<[1, 1], !ttcore.tile<32x32, f32>, "dram">, tensor<1x1x!ttcore.tile<32x32, f32>> -> !ttl.transfer
  ttl.wait %12 : !ttl.transfer
  ttl.cb_push %1 : <[1, 1], !ttcore.tile<32x32, f32>, 2>
  ttl.cb_push %0 : <[1, 1], !ttcore.tile<32x32, f32>, 2>
  func.return
}
func.func @write() attributes {ttl.kernel_thread = #ttkernel.thread<noc>, ttl.role = "writer"} {
  %0 = ttl.bind_cb{cb_index = 2, buffer_factor = 2, name = "out_cb"} : <[1, 1], !ttcore.tile<32x32, f32>, 2>
  %1 = ttl.tensor_accessor {tensor_index = 2 : i32, name = "out"} : !ttl.accessor<[1, 1], !ttcore.tile<32x32, f32>, "dram">
  %2 = ttl.cb_wait %0 : <[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
  %3 = ttl.attach_cb %2, %0 : tensor<1x1x!ttcore.tile<32x32, f32>>, <[1, 1], !ttcore.tile<32x32, f32>, 2> -> tensor<1x1x!ttcore.tile<32x32, f32>>
  %4 = arith.constant 0 : index
  %5 = ttl.tensor_slice %1, %4, %4 : !ttl.accessor<[1, 1], !ttcore.tile<32x32, f32>, "dram">, index, index -> !ttl.slice<[1, 1], !ttcore.tile<32x32, f32>, "dram">
  %6 = ttl.copy %3, %5 : tensor<1x1x!ttcore.tile<32x32, f32>>, !ttl.slice<[1, 1], !ttcore.tile<32x32, f32>, "dram"> -> !ttl.transfer
  ttl.wait %6 : !ttl.transfer
  ttl.cb_pop %0 : <[1, 1], !ttcore.tile<32x32, f32>, 2>
  func.return
}

// CHECK-LABEL: func.func @compute
// CHECK: ttl.bind_cb{cb_index = 0
// CHECK-SAME: significant_bits = 11
// CHECK: ttl.bind_cb{cb_index = 1
// CHECK-SAME: significant_bits = 11
// CHECK: ttl.bind_cb{cb_index = 2
// CHECK-NOT: significant_bits
// CHECK: ttl.cb_wait
