// Two cores send to each other and then receive: nobody would reserve a block. The receive starts before the send and is waited
// for where it was.
// RUN: tilewright opt %s -p ttl-start-receives-early --grid 2x1 --verify

func.func @read() attributes {ttl.kernel_thread = #ttkernel.thread<noc>, ttl.role = "reader"} {
  %own = ttl.bind_cb{cb_index = 0, buffer_factor = 1} : <[1, 1], !ttcore.tile<32x32, bf16>, 1>
  %next = ttl.bind_cb{cb_index = 1, buffer_factor = 1} : <[1, 1], !ttcore.tile<32x32, bf16>, 1>
  %a = ttl.tensor_accessor {tensor_index = 0 : i32, name = "a"} : !ttl.accessor<[1, 1], !ttcore.tile<32x32, bf16>, "dram">
  %c0 = arith.constant 0 : index
  %b_raw = ttl.cb_reserve %own : <[1, 1], !ttcore.tile<32x32, bf16>, 1> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %b = ttl.attach_cb %b_raw, %own : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 1> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %s = ttl.tensor_slice %a, %c0, %c0 : !ttl.accessor<[1, 1], !ttcore.tile<32x32, bf16>, "dram">, index, index -> !ttl.slice<[1, 1], !ttcore.tile<32x32, bf16>, "dram">
  %t = ttl.copy %s, %b : !ttl.slice<[1, 1], !ttcore.tile<32x32, bf16>, "dram">, tensor<1x1x!ttcore.tile<32x32, bf16>> -> !ttl.transfer
  ttl.wait %t : !ttl.transfer
  %there = ttl.net_pipe {net = 0 : i32, name = "net", side = "src", src_cores = [[0 : i64, 0 : i64], [1 : i64, 0 : i64]], dst_core_ranges = [[[1 : i64, 2 : i64, 1 : i64], [0 : i64, 1 : i64, 1 : i64]], [[0 : i64, 1 : i64, 1 : i64], [0 : i64, 1 : i64, 1 : i64]]], unicast} : !ttl.pipe
  %sent = ttl.copy %b, %there : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.pipe -> !ttl.transfer
  ttl.wait %sent : !ttl.transfer
  ttl.cb_push %own : <[1, 1], !ttcore.tile<32x32, bf16>, 1>
  %n_raw = ttl.cb_reserve %next : <[1, 1], !ttcore.tile<32x32, bf16>, 1> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %n = ttl.attach_cb %n_raw, %next : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 1> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %here = ttl.net_pipe {net = 0 : i32, name = "net", side = "dst", src_cores = [[0 : i64, 0 : i64], [1 : i64, 0 : i64]], dst_core_ranges = [[[1 : i64, 2 : i64, 1 : i64], [0 : i64, 1 : i64, 1 : i64]], [[0 : i64, 1 : i64, 1 : i64], [0 : i64, 1 : i64, 1 : i64]]], unicast} : !ttl.pipe
  %taken = ttl.copy %here, %n : !ttl.pipe, tensor<1x1x!ttcore.tile<32x32, bf16>> -> !ttl.transfer
  ttl.wait %taken : !ttl.transfer
  ttl.cb_push %next : <[1, 1], !ttcore.tile<32x32, bf16>, 1>
  return
}

func.func @write() attributes {ttl.kernel_thread = #ttkernel.thread<noc>, ttl.role = "writer"} {
  %own = ttl.bind_cb{cb_index = 0, buffer_factor = 1} : <[1, 1], !ttcore.tile<32x32, bf16>, 1>
  %next = ttl.bind_cb{cb_index = 1, buffer_factor = 1} : <[1, 1], !ttcore.tile<32x32, bf16>, 1>
  %x = ttl.cb_wait %own : <[1, 1], !ttcore.tile<32x32, bf16>, 1> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.cb_pop %own : <[1, 1], !ttcore.tile<32x32, bf16>, 1>
  %y = ttl.cb_wait %next : <[1, 1], !ttcore.tile<32x32, bf16>, 1> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.cb_pop %next : <[1, 1], !ttcore.tile<32x32, bf16>, 1>
  return
}

// CHECK-LABEL: func.func @read
// CHECK: ttl.cb_reserve %next
// CHECK: %taken = ttl.copy %here, %n
// CHECK-NEXT: %sent = ttl.copy %b, %there
// CHECK-NEXT: ttl.wait %sent
// CHECK-NEXT: ttl.cb_push %own
// CHECK-NEXT: ttl.wait %taken
