// A reader with two blocks of room may have two under way; one whose blocks are taken in pairs may not, or it would wait for ever.
// RUN: tilewright opt %s -p ttl-mark-reads-ahead --reads-ahead --verify

func.func @read() attributes {ttl.kernel_thread = #ttkernel.thread<noc>, ttl.role = "reader"} {
  %x_cb = ttl.bind_cb{cb_index = 0, buffer_factor = 2, name = "x_cb"} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %z_cb = ttl.bind_cb{cb_index = 1, buffer_factor = 2, name = "z_cb"} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %a = ttl.tensor_accessor {tensor_index = 0 : i32, name = "a"} : !ttl.accessor<[1, 16], !ttcore.tile<32x32, bf16>, "dram">
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  scf.for %i = %c0 to %c16 step %c1 {
    %b_raw = ttl.cb_reserve %x_cb : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %b = ttl.attach_cb %b_raw, %x_cb : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %s = ttl.tensor_slice %a, %c0, %i : !ttl.accessor<[1, 16], !ttcore.tile<32x32, bf16>, "dram">, index, index -> !ttl.slice<[1, 1], !ttcore.tile<32x32, bf16>, "dram">
    %t = ttl.copy %s, %b : !ttl.slice<[1, 1], !ttcore.tile<32x32, bf16>, "dram">, tensor<1x1x!ttcore.tile<32x32, bf16>> -> !ttl.transfer
    ttl.wait %t : !ttl.transfer
    ttl.cb_push %x_cb : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  }
  scf.for %i = %c0 to %c16 step %c1 {
    %b_raw = ttl.cb_reserve %z_cb : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %b = ttl.attach_cb %b_raw, %z_cb : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %s = ttl.tensor_slice %a, %c0, %i : !ttl.accessor<[1, 16], !ttcore.tile<32x32, bf16>, "dram">, index, index -> !ttl.slice<[1, 1], !ttcore.tile<32x32, bf16>, "dram">
    %t = ttl.copy %s, %b : !ttl.slice<[1, 1], !ttcore.tile<32x32, bf16>, "dram">, tensor<1x1x!ttcore.tile<32x32, bf16>> -> !ttl.transfer
    ttl.wait %t : !ttl.transfer
    ttl.cb_push %z_cb : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  }
  return
}

func.func @write() attributes {ttl.kernel_thread = #ttkernel.thread<noc>, ttl.role = "writer"} {
  %x_cb = ttl.bind_cb{cb_index = 0, buffer_factor = 2, name = "x_cb"} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %z_cb = ttl.bind_cb{cb_index = 1, buffer_factor = 2, name = "z_cb"} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  scf.for %i = %c0 to %c16 step %c1 {
    %x = ttl.cb_wait %x_cb : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    ttl.cb_pop %x_cb : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  }
  scf.for %i = %c0 to %c8 step %c1 {
    %z = ttl.cb_wait %z_cb {tiles = 2 : i32} : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    ttl.cb_pop %z_cb : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
    ttl.cb_pop %z_cb : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  }
  return
}

// CHECK-LABEL: func.func @read
// CHECK: ttl.cb_push %x_cb
// CHECK-NEXT: } {ttl.reads_ahead = 1 : i32}
// CHECK: ttl.cb_push %z_cb
// CHECK-NEXT: }
// CHECK-NOT: ttl.reads_ahead
