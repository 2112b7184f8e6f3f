// A reader with eight blocks of room takes four at a time; one with two blocks keeps single ones.
// RUN: tilewright opt %s -p ttl-mark-batches --verify

func.func @read() attributes {ttl.kernel_thread = #ttkernel.thread<noc>, ttl.role = "reader"} {
  %deep = ttl.bind_cb{cb_index = 0, buffer_factor = 8, name = "deep"} : <[1, 1], !ttcore.tile<32x32, bf16>, 8>
  %flat = ttl.bind_cb{cb_index = 1, buffer_factor = 2, name = "flat"} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %a = ttl.tensor_accessor {tensor_index = 0 : i32, name = "a"} : !ttl.accessor<[1, 16], !ttcore.tile<32x32, bf16>, "dram">
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  scf.for %i = %c0 to %c16 step %c1 {
    %b_raw = ttl.cb_reserve %deep : <[1, 1], !ttcore.tile<32x32, bf16>, 8> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %b = ttl.attach_cb %b_raw, %deep : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 8> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %s = ttl.tensor_slice %a, %c0, %i : !ttl.accessor<[1, 16], !ttcore.tile<32x32, bf16>, "dram">, index, index -> !ttl.slice<[1, 1], !ttcore.tile<32x32, bf16>, "dram">
    %t = ttl.copy %s, %b : !ttl.slice<[1, 1], !ttcore.tile<32x32, bf16>, "dram">, tensor<1x1x!ttcore.tile<32x32, bf16>> -> !ttl.transfer
    ttl.wait %t : !ttl.transfer
    ttl.cb_push %deep : <[1, 1], !ttcore.tile<32x32, bf16>, 8>
  }
  scf.for %i = %c0 to %c16 step %c1 {
    %b_raw = ttl.cb_reserve %flat : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %b = ttl.attach_cb %b_raw, %flat : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %s = ttl.tensor_slice %a, %c0, %i : !ttl.accessor<[1, 16], !ttcore.tile<32x32, bf16>, "dram">, index, index -> !ttl.slice<[1, 1], !ttcore.tile<32x32, bf16>, "dram">
    %t = ttl.copy %s, %b : !ttl.slice<[1, 1], !ttcore.tile<32x32, bf16>, "dram">, tensor<1x1x!ttcore.tile<32x32, bf16>> -> !ttl.transfer
    ttl.wait %t : !ttl.transfer
    ttl.cb_push %flat : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  }
  return
}

func.func @write() attributes {ttl.kernel_thread = #ttkernel.thread<noc>, ttl.role = "writer"} {
  %deep = ttl.bind_cb{cb_index = 0, buffer_factor = 8, name = "deep"} : <[1, 1], !ttcore.tile<32x32, bf16>, 8>
  %flat = ttl.bind_cb{cb_index = 1, buffer_factor = 2, name = "flat"} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  scf.for %i = %c0 to %c16 step %c1 {
    %x = ttl.cb_wait %deep : <[1, 1], !ttcore.tile<32x32, bf16>, 8> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    ttl.cb_pop %deep : <[1, 1], !ttcore.tile<32x32, bf16>, 8>
  }
  scf.for %i = %c0 to %c16 step %c1 {
    %x = ttl.cb_wait %flat : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    ttl.cb_pop %flat : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  }
  return
}

// CHECK-LABEL: func.func @read
// CHECK: ttl.cb_push %deep
// CHECK-NEXT: } {ttl.batch = 4 : i32}
// CHECK: ttl.cb_push %flat
// CHECK-NEXT: }
// CHECK-NOT: ttl.batch
