// The slice starts in the last of three columns of tiles and is two wide: its second tile lies outside.
// RUN: tilewright opt %s -p ttl-clip-slices --verify

func.func @read() attributes {ttl.kernel_thread = #ttkernel.thread<noc>} {
  %in = ttl.bind_cb{cb_index = 0, buffer_factor = 2} : <[1, 2], !ttcore.tile<32x32, bf16>, 2>
  %a = ttl.tensor_accessor {tensor_index = 0 : i32, name = "a"} : !ttl.accessor<[1, 3], !ttcore.tile<32x32, bf16>, "dram">
  %row = arith.constant 0 : index
  %column = arith.constant 2 : index
  %b_raw = ttl.cb_reserve %in : <[1, 2], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x2x!ttcore.tile<32x32, bf16>>
  %b = ttl.attach_cb %b_raw, %in : tensor<1x2x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 2], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x2x!ttcore.tile<32x32, bf16>>
  %s = ttl.tensor_slice %a, %row, %column : !ttl.accessor<[1, 3], !ttcore.tile<32x32, bf16>, "dram">, index, index -> !ttl.slice<[1, 2], !ttcore.tile<32x32, bf16>, "dram">
  %t = ttl.copy %s, %b : !ttl.slice<[1, 2], !ttcore.tile<32x32, bf16>, "dram">, tensor<1x2x!ttcore.tile<32x32, bf16>> -> !ttl.transfer
  ttl.wait %t : !ttl.transfer
  ttl.cb_push %in : <[1, 2], !ttcore.tile<32x32, bf16>, 2>
  return
}

// CHECK: ttl.tensor_slice %a, %row, %column {clipped = [1 : i32]}
