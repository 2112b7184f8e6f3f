// A program whose waits and pushes meet passes unchanged; the pop that the source leaves out was written in by a pass before.
// RUN: tilewright opt %s -p ttl-validate --verify

func.func @add_compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {
  %0 = ttl.bind_cb{cb_index = 0, buffer_factor = 2} : <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  %1 = ttl.bind_cb{cb_index = 1, buffer_factor = 2} : <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  %2 = ttl.bind_cb{cb_index = 2, buffer_factor = 2} : <[2, 2], !ttcore.tile<32x32, bf16>, 2>

  %3 = ttl.cb_wait %0 : <[2, 2], !ttcore.tile<32x32, bf16>, 2> -> tensor<2x2x!ttcore.tile<32x32, bf16>>
  %4 = ttl.attach_cb %3, %0 : tensor<2x2x!ttcore.tile<32x32, bf16>>, <[2, 2], !ttcore.tile<32x32, bf16>, 2> -> tensor<2x2x!ttcore.tile<32x32, bf16>>
  %5 = ttl.cb_wait %1 : <[2, 2], !ttcore.tile<32x32, bf16>, 2> -> tensor<2x2x!ttcore.tile<32x32, bf16>>
  %6 = ttl.attach_cb %5, %1 : tensor<2x2x!ttcore.tile<32x32, bf16>>, !ttl.cb<[2, 2], !ttcore.tile<32x32, bf16>, 2> -> tensor<2x2x!ttcore.tile<32x32, bf16>>
  %7 = ttl.cb_reserve %2 : <[2, 2], !ttcore.tile<32x32, bf16>, 2> -> tensor<2x2x!ttcore.tile<32x32, bf16>>

  %9 = ttl.add %4, %6 : tensor<2x2x!ttcore.tile<32x32, bf16>>, tensor<2x2x!ttcore.tile<32x32, bf16>>
                      -> tensor<2x2x!ttcore.tile<32x32, bf16>>
  ttl.store %9, %7 : tensor<2x2x!ttcore.tile<32x32, bf16>>, tensor<2x2x!ttcore.tile<32x32, bf16>>

  ttl.cb_pop %0 : <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  ttl.cb_pop %1 : <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  ttl.cb_push %2 : <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  return
}

func.func @read() attributes {ttl.kernel_thread = #ttkernel.thread<noc>, ttl.role = "reader"} {
  %0 = ttl.bind_cb{cb_index = 0, buffer_factor = 2} : <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  %1 = ttl.bind_cb{cb_index = 1, buffer_factor = 2} : <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  %a = ttl.tensor_accessor {tensor_index = 0 : i32, name = "lhs"} : !ttl.accessor<[2, 2], !ttcore.tile<32x32, bf16>, "dram">
  %b = ttl.tensor_accessor {tensor_index = 1 : i32, name = "rhs"} : !ttl.accessor<[2, 2], !ttcore.tile<32x32, bf16>, "dram">
  %c0 = arith.constant 0 : index
  %x = ttl.cb_reserve %0 : <[2, 2], !ttcore.tile<32x32, bf16>, 2> -> tensor<2x2x!ttcore.tile<32x32, bf16>>
  %s = ttl.tensor_slice %a, %c0, %c0 : !ttl.accessor<[2, 2], !ttcore.tile<32x32, bf16>, "dram">, index, index -> !ttl.slice<[2, 2], !ttcore.tile<32x32, bf16>, "dram">
  %t = ttl.copy %s, %x : !ttl.slice<[2, 2], !ttcore.tile<32x32, bf16>, "dram">, tensor<2x2x!ttcore.tile<32x32, bf16>> -> !ttl.transfer
  ttl.wait %t : !ttl.transfer
  ttl.cb_push %0 : <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  %y = ttl.cb_reserve %1 : <[2, 2], !ttcore.tile<32x32, bf16>, 2> -> tensor<2x2x!ttcore.tile<32x32, bf16>>
  %u = ttl.tensor_slice %b, %c0, %c0 : !ttl.accessor<[2, 2], !ttcore.tile<32x32, bf16>, "dram">, index, index -> !ttl.slice<[2, 2], !ttcore.tile<32x32, bf16>, "dram">
  %v = ttl.copy %u, %y : !ttl.slice<[2, 2], !ttcore.tile<32x32, bf16>, "dram">, tensor<2x2x!ttcore.tile<32x32, bf16>> -> !ttl.transfer
  ttl.wait %v : !ttl.transfer
  return
}

func.func @write() attributes {ttl.kernel_thread = #ttkernel.thread<noc>, ttl.role = "writer"} {
  %2 = ttl.bind_cb{cb_index = 2, buffer_factor = 2} : <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  %a = ttl.tensor_accessor {tensor_index = 2 : i32, name = "out"} : !ttl.accessor<[2, 2], !ttcore.tile<32x32, bf16>, "dram">
  %c0 = arith.constant 0 : index
  %x = ttl.cb_wait %2 : <[2, 2], !ttcore.tile<32x32, bf16>, 2> -> tensor<2x2x!ttcore.tile<32x32, bf16>>
  %s = ttl.tensor_slice %a, %c0, %c0 : !ttl.accessor<[2, 2], !ttcore.tile<32x32, bf16>, "dram">, index, index -> !ttl.slice<[2, 2], !ttcore.tile<32x32, bf16>, "dram">
  %t = ttl.copy %x, %s : tensor<2x2x!ttcore.tile<32x32, bf16>>, !ttl.slice<[2, 2], !ttcore.tile<32x32, bf16>, "dram"> -> !ttl.transfer
  ttl.wait %t : !ttl.transfer
  ttl.cb_pop %2 : <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  return
}

// CHECK-LABEL: func.func @add_compute
// CHECK: ttl.add
// CHECK-NEXT: ttl.store
// CHECK-NEXT: ttl.cb_pop %0
// CHECK-NEXT: ttl.cb_pop %1
// CHECK-NEXT: ttl.cb_push %2
// CHECK-NEXT: func.return
// CHECK-LABEL: func.func @read
// CHECK: ttl.cb_reserve %[[A:[0-9a-z]+]]
// CHECK: ttl.cb_push %[[A]]
// CHECK: ttl.cb_reserve %[[B:[0-9a-z]+]]
// CHECK: ttl.wait
// CHECK-NEXT: ttl.cb_push %[[B]]
// CHECK-NEXT: func.return
// CHECK-LABEL: func.func @write
// CHECK: ttl.cb_wait
// CHECK: ttl.wait
// CHECK-NEXT: ttl.cb_pop
// CHECK-NEXT: func.return
