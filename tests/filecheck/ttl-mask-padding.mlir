// The second tile of the block lies outside its tensor: the maximum sees minus infinity there.
// RUN: tilewright opt %s -p ttl-mask-padding --verify

func.func @compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {
  %in = ttl.bind_cb{cb_index = 0, buffer_factor = 2} : <[1, 2], !ttcore.tile<32x32, bf16>, 2>
  %out = ttl.bind_cb{cb_index = 1, buffer_factor = 2} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %x_raw = ttl.cb_wait %in : <[1, 2], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x2x!ttcore.tile<32x32, bf16>>
  %x = ttl.attach_cb %x_raw, %in : tensor<1x2x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 2], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x2x!ttcore.tile<32x32, bf16>>
  %o_raw = ttl.cb_reserve %out : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %o = ttl.attach_cb %o_raw, %out : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %m = ttl.reduce %x {kind = "max", dims = [1]} : tensor<1x2x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.store %m, %o : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.cb_pop %in : <[1, 2], !ttcore.tile<32x32, bf16>, 2>
  ttl.cb_push %out : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  return
}

func.func @read() attributes {ttl.kernel_thread = #ttkernel.thread<noc>} {
  %in = ttl.bind_cb{cb_index = 0, buffer_factor = 2} : <[1, 2], !ttcore.tile<32x32, bf16>, 2>
  %a = ttl.tensor_accessor {tensor_index = 0 : i32, name = "a"} : !ttl.accessor<[1, 3], !ttcore.tile<32x32, bf16>, "dram">
  %row = arith.constant 0 : index
  %column = arith.constant 2 : index
  %b_raw = ttl.cb_reserve %in : <[1, 2], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x2x!ttcore.tile<32x32, bf16>>
  %b = ttl.attach_cb %b_raw, %in : tensor<1x2x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 2], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x2x!ttcore.tile<32x32, bf16>>
  %s = ttl.tensor_slice %a, %row, %column {clipped = [1 : i32]} : !ttl.accessor<[1, 3], !ttcore.tile<32x32, bf16>, "dram">, index, index -> !ttl.slice<[1, 2], !ttcore.tile<32x32, bf16>, "dram">
  %t = ttl.copy %s, %b : !ttl.slice<[1, 2], !ttcore.tile<32x32, bf16>, "dram">, tensor<1x2x!ttcore.tile<32x32, bf16>> -> !ttl.transfer
  ttl.wait %t : !ttl.transfer
  ttl.cb_push %in : <[1, 2], !ttcore.tile<32x32, bf16>, 2>
  return
}

// CHECK-LABEL: func.func @compute
// CHECK: name = "inside_columns_2"
// CHECK: ttl.fill_block {value = 0xff800000 : f32}
// CHECK: ttl.where
// CHECK-NEXT: ttl.reduce
// CHECK-LABEL: func.func @read
// CHECK: ttl.fill_mask {{.*}}axis = 1 : i32, limit = 32 : i32
