// The thread that reads is the reader, on NoC 0, although the one that writes stands first.
// RUN: tilewright opt %s -p ttl-assign-networks --verify

func.func @write() attributes {ttl.kernel_thread = #ttkernel.thread<noc>, ttl.role = "reader"} {
  %x_cb = ttl.bind_cb{cb_index = 0, buffer_factor = 2, name = "x_cb"} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %y = ttl.tensor_accessor {tensor_index = 1 : i32, name = "y"} : !ttl.accessor<[1, 4], !ttcore.tile<32x32, bf16>, "dram">
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %x_raw = ttl.cb_wait %x_cb : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %x = ttl.attach_cb %x_raw, %x_cb : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %s = ttl.tensor_slice %y, %c0, %i : !ttl.accessor<[1, 4], !ttcore.tile<32x32, bf16>, "dram">, index, index -> !ttl.slice<[1, 1], !ttcore.tile<32x32, bf16>, "dram">
    %t = ttl.copy %x, %s : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.slice<[1, 1], !ttcore.tile<32x32, bf16>, "dram"> -> !ttl.transfer
    ttl.wait %t : !ttl.transfer
    ttl.cb_pop %x_cb : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  }
  return
}

func.func @read() attributes {ttl.kernel_thread = #ttkernel.thread<noc>, ttl.role = "writer"} {
  %x_cb = ttl.bind_cb{cb_index = 0, buffer_factor = 2, name = "x_cb"} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %a = ttl.tensor_accessor {tensor_index = 0 : i32, name = "a"} : !ttl.accessor<[1, 4], !ttcore.tile<32x32, bf16>, "dram">
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %x_raw = ttl.cb_reserve %x_cb : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %x = ttl.attach_cb %x_raw, %x_cb : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %s = ttl.tensor_slice %a, %c0, %i : !ttl.accessor<[1, 4], !ttcore.tile<32x32, bf16>, "dram">, index, index -> !ttl.slice<[1, 1], !ttcore.tile<32x32, bf16>, "dram">
    %t = ttl.copy %s, %x : !ttl.slice<[1, 1], !ttcore.tile<32x32, bf16>, "dram">, tensor<1x1x!ttcore.tile<32x32, bf16>> -> !ttl.transfer
    ttl.wait %t : !ttl.transfer
    ttl.cb_push %x_cb : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  }
  return
}

// CHECK: func.func @write() attributes {{.*}}ttl.role = "writer"
// CHECK: func.func @read() attributes {{.*}}ttl.role = "reader"
