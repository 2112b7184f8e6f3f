// Who takes the first block takes the second one with it: both are read before the thread waits for either.
// RUN: tilewright opt %s -p ttl-join-reads --verify

func.func @read() attributes {ttl.kernel_thread = #ttkernel.thread<noc>, ttl.role = "reader"} {
  %x_cb = ttl.bind_cb{cb_index = 0, buffer_factor = 1, name = "x_cb"} : <[1, 1], !ttcore.tile<32x32, bf16>, 1>
  %z_cb = ttl.bind_cb{cb_index = 1, buffer_factor = 1, name = "z_cb"} : <[1, 1], !ttcore.tile<32x32, bf16>, 1>
  %a = ttl.tensor_accessor {tensor_index = 0 : i32, name = "a"} : !ttl.accessor<[1, 1], !ttcore.tile<32x32, bf16>, "dram">
  %c0 = arith.constant 0 : index
  %x_raw = ttl.cb_reserve %x_cb : <[1, 1], !ttcore.tile<32x32, bf16>, 1> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %x = ttl.attach_cb %x_raw, %x_cb : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 1> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %s = ttl.tensor_slice %a, %c0, %c0 : !ttl.accessor<[1, 1], !ttcore.tile<32x32, bf16>, "dram">, index, index -> !ttl.slice<[1, 1], !ttcore.tile<32x32, bf16>, "dram">
  %first = ttl.copy %s, %x : !ttl.slice<[1, 1], !ttcore.tile<32x32, bf16>, "dram">, tensor<1x1x!ttcore.tile<32x32, bf16>> -> !ttl.transfer
  ttl.wait %first : !ttl.transfer
  ttl.cb_push %x_cb : <[1, 1], !ttcore.tile<32x32, bf16>, 1>
  %z_raw = ttl.cb_reserve %z_cb : <[1, 1], !ttcore.tile<32x32, bf16>, 1> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %z = ttl.attach_cb %z_raw, %z_cb : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 1> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %second = ttl.copy %s, %z : !ttl.slice<[1, 1], !ttcore.tile<32x32, bf16>, "dram">, tensor<1x1x!ttcore.tile<32x32, bf16>> -> !ttl.transfer
  ttl.wait %second : !ttl.transfer
  ttl.cb_push %z_cb : <[1, 1], !ttcore.tile<32x32, bf16>, 1>
  return
}

func.func @write() attributes {ttl.kernel_thread = #ttkernel.thread<noc>, ttl.role = "writer"} {
  %x_cb = ttl.bind_cb{cb_index = 0, buffer_factor = 1, name = "x_cb"} : <[1, 1], !ttcore.tile<32x32, bf16>, 1>
  %z_cb = ttl.bind_cb{cb_index = 1, buffer_factor = 1, name = "z_cb"} : <[1, 1], !ttcore.tile<32x32, bf16>, 1>
  %x = ttl.cb_wait %x_cb : <[1, 1], !ttcore.tile<32x32, bf16>, 1> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %z = ttl.cb_wait %z_cb : <[1, 1], !ttcore.tile<32x32, bf16>, 1> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.cb_pop %x_cb : <[1, 1], !ttcore.tile<32x32, bf16>, 1>
  ttl.cb_pop %z_cb : <[1, 1], !ttcore.tile<32x32, bf16>, 1>
  return
}

// CHECK-LABEL: func.func @read
// CHECK: %first = ttl.copy
// CHECK: %second = ttl.copy
// CHECK-NEXT: ttl.wait %first
// CHECK-NEXT: ttl.wait %second
// CHECK-NEXT: ttl.cb_push %x_cb
// CHECK-NEXT: ttl.cb_push %z_cb
