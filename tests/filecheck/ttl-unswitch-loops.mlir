// A loop that asks in every turn whether its core sends or receives becomes a loop that sends and one that receives.
// RUN: tilewright opt %s -p ttl-unswitch-loops --grid 2x1 --verify

func.func @move() attributes {ttl.kernel_thread = #ttkernel.thread<noc>, ttl.role = "reader"} {
  %sent = ttl.bind_cb{cb_index = 0, buffer_factor = 8, name = "sent"} : <[1, 1], !ttcore.tile<32x32, bf16>, 8>
  %come = ttl.bind_cb{cb_index = 1, buffer_factor = 8, name = "come"} : <[1, 1], !ttcore.tile<32x32, bf16>, 8>
  %a = ttl.tensor_accessor {tensor_index = 0 : i32, name = "a"} : !ttl.accessor<[1, 16], !ttcore.tile<32x32, bf16>, "dram">
  %column, %row = ttl.core : index, index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %sends = arith.cmpi eq, %column, %c0 : index
  scf.for %t = %c0 to %c16 step %c1 {
    scf.if %sends {
      %raw = ttl.cb_reserve %sent : <[1, 1], !ttcore.tile<32x32, bf16>, 8> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
      %block = ttl.attach_cb %raw, %sent : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 8> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
      %cut = ttl.tensor_slice %a, %c0, %t : !ttl.accessor<[1, 16], !ttcore.tile<32x32, bf16>, "dram">, index, index -> !ttl.slice<[1, 1], !ttcore.tile<32x32, bf16>, "dram">
      %read = ttl.copy %cut, %block : !ttl.slice<[1, 1], !ttcore.tile<32x32, bf16>, "dram">, tensor<1x1x!ttcore.tile<32x32, bf16>> -> !ttl.transfer
      ttl.wait %read : !ttl.transfer
      ttl.cb_push %sent : <[1, 1], !ttcore.tile<32x32, bf16>, 8>
      %full = ttl.cb_wait %sent : <[1, 1], !ttcore.tile<32x32, bf16>, 8> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
      %view = ttl.attach_cb %full, %sent : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 8> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
      %out = ttl.net_pipe {net = 0 : i32, name = "net", side = "src", src_cores = [[0 : i64, 0 : i64]], dst_core_ranges = [[[1 : i64, 2 : i64, 1 : i64], [0 : i64, 1 : i64, 1 : i64]]], unicast} : !ttl.pipe
      %send = ttl.copy %view, %out : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.pipe -> !ttl.transfer
      ttl.wait %send : !ttl.transfer
      ttl.cb_pop %sent : <[1, 1], !ttcore.tile<32x32, bf16>, 8>
    }
    %receives = arith.cmpi eq, %column, %c1 : index
    scf.if %receives {
      %raw_1 = ttl.cb_reserve %come : <[1, 1], !ttcore.tile<32x32, bf16>, 8> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
      %block_1 = ttl.attach_cb %raw_1, %come : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 8> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
      %in = ttl.net_pipe {net = 0 : i32, name = "net", side = "dst", src_cores = [[0 : i64, 0 : i64]], dst_core_ranges = [[[1 : i64, 2 : i64, 1 : i64], [0 : i64, 1 : i64, 1 : i64]]], unicast} : !ttl.pipe
      %receive = ttl.copy %in, %block_1 : !ttl.pipe, tensor<1x1x!ttcore.tile<32x32, bf16>> -> !ttl.transfer
      ttl.wait %receive : !ttl.transfer
      ttl.cb_push %come : <[1, 1], !ttcore.tile<32x32, bf16>, 8>
    }
  }
  return
}

func.func @write() attributes {ttl.kernel_thread = #ttkernel.thread<noc>, ttl.role = "writer"} {
  %come = ttl.bind_cb{cb_index = 1, buffer_factor = 8, name = "come"} : <[1, 1], !ttcore.tile<32x32, bf16>, 8>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %column, %row = ttl.core : index, index
  %receives = arith.cmpi eq, %column, %c1 : index
  scf.if %receives {
    scf.for %t = %c0 to %c16 step %c1 {
      %full = ttl.cb_wait %come : <[1, 1], !ttcore.tile<32x32, bf16>, 8> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
      ttl.cb_pop %come : <[1, 1], !ttcore.tile<32x32, bf16>, 8>
    }
  }
  return
}

// CHECK-LABEL: func.func @move
// CHECK: scf.if %sends {
// CHECK-NEXT: %receives = arith.cmpi eq, %column, %c1
// CHECK-NEXT: scf.if %receives {
// CHECK-NEXT: scf.for
// CHECK-NOT: scf.if
// CHECK: ttl.cb_reserve %sent
// CHECK: ttl.cb_reserve %come
// CHECK: } else {
// CHECK-NEXT: scf.for
// CHECK-NOT: scf.if
// CHECK: ttl.cb_reserve %sent
// CHECK-NOT: ttl.cb_reserve %come
// CHECK: } else {
// CHECK: scf.for
// CHECK-NOT: scf.if
// CHECK: ttl.cb_reserve %come
// CHECK-LABEL: func.func @write
