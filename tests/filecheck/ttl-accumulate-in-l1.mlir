// Nine tiles do not fit DST: each step packs what it adds, onto the output's block, which is reserved before the loop; nothing is read
// back, and the zeros it started from are gone.
// RUN: tilewright opt %s -p convert-ttl-to-compute,ttl-set-compute-config,ttl-raise-running-values,ttl-form-accumulation-sections,ttl-hoist-reserves,ttl-accumulate-in-l1 --verify

func.func @compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {
  %0 = ttl.bind_cb{cb_index = 0, buffer_factor = 2, name = "a_cb"} : <[3, 3], !ttcore.tile<32x32, bf16>, 2>
  %1 = ttl.bind_cb{cb_index = 1, buffer_factor = 2, name = "total_cb"} : <[3, 3], !ttcore.tile<32x32, bf16>, 2>
  %2 = ttl.bind_cb{cb_index = 2, buffer_factor = 2, name = "out_cb"} : <[3, 3], !ttcore.tile<32x32, bf16>, 2>
  %3 = ttl.cb_reserve %1 : <[3, 3], !ttcore.tile<32x32, bf16>, 2> -> tensor<3x3x!ttcore.tile<32x32, bf16>>
  %4 = ttl.attach_cb %3, %1 : tensor<3x3x!ttcore.tile<32x32, bf16>>, <[3, 3], !ttcore.tile<32x32, bf16>, 2> -> tensor<3x3x!ttcore.tile<32x32, bf16>>
  %5 = ttl.fill_block {value = 0.000000e+00 : f32} : tensor<3x3x!ttcore.tile<32x32, bf16>>
  ttl.store %5, %4 : tensor<3x3x!ttcore.tile<32x32, bf16>>, tensor<3x3x!ttcore.tile<32x32, bf16>>
  ttl.cb_push %1 : <[3, 3], !ttcore.tile<32x32, bf16>, 2>
  %6 = arith.constant 0 : index
  %7 = arith.constant 4 : index
  %8 = arith.constant 1 : index
  scf.for %step = %6 to %7 step %8 {
    %9 = ttl.cb_wait %0 : <[3, 3], !ttcore.tile<32x32, bf16>, 2> -> tensor<3x3x!ttcore.tile<32x32, bf16>>
    %10 = ttl.attach_cb %9, %0 : tensor<3x3x!ttcore.tile<32x32, bf16>>, <[3, 3], !ttcore.tile<32x32, bf16>, 2> -> tensor<3x3x!ttcore.tile<32x32, bf16>>
    %11 = ttl.cb_wait %1 : <[3, 3], !ttcore.tile<32x32, bf16>, 2> -> tensor<3x3x!ttcore.tile<32x32, bf16>>
    %12 = ttl.attach_cb %11, %1 : tensor<3x3x!ttcore.tile<32x32, bf16>>, <[3, 3], !ttcore.tile<32x32, bf16>, 2> -> tensor<3x3x!ttcore.tile<32x32, bf16>>
    %13 = ttl.cb_reserve %1 : <[3, 3], !ttcore.tile<32x32, bf16>, 2> -> tensor<3x3x!ttcore.tile<32x32, bf16>>
    %14 = ttl.attach_cb %13, %1 : tensor<3x3x!ttcore.tile<32x32, bf16>>, <[3, 3], !ttcore.tile<32x32, bf16>, 2> -> tensor<3x3x!ttcore.tile<32x32, bf16>>
    %15 = ttl.exp %10 : tensor<3x3x!ttcore.tile<32x32, bf16>> -> tensor<3x3x!ttcore.tile<32x32, bf16>>
    %16 = ttl.add %12, %15 : tensor<3x3x!ttcore.tile<32x32, bf16>>, tensor<3x3x!ttcore.tile<32x32, bf16>> -> tensor<3x3x!ttcore.tile<32x32, bf16>>
    ttl.store %16, %14 : tensor<3x3x!ttcore.tile<32x32, bf16>>, tensor<3x3x!ttcore.tile<32x32, bf16>>
    ttl.cb_push %1 : <[3, 3], !ttcore.tile<32x32, bf16>, 2>
    ttl.cb_pop %1 : <[3, 3], !ttcore.tile<32x32, bf16>, 2>
    ttl.cb_pop %0 : <[3, 3], !ttcore.tile<32x32, bf16>, 2>
  }
  %17 = ttl.cb_wait %1 : <[3, 3], !ttcore.tile<32x32, bf16>, 2> -> tensor<3x3x!ttcore.tile<32x32, bf16>>
  %18 = ttl.attach_cb %17, %1 : tensor<3x3x!ttcore.tile<32x32, bf16>>, <[3, 3], !ttcore.tile<32x32, bf16>, 2> -> tensor<3x3x!ttcore.tile<32x32, bf16>>
  %19 = ttl.cb_reserve %2 : <[3, 3], !ttcore.tile<32x32, bf16>, 2> -> tensor<3x3x!ttcore.tile<32x32, bf16>>
  %20 = ttl.attach_cb %19, %2 : tensor<3x3x!ttcore.tile<32x32, bf16>>, <[3, 3], !ttcore.tile<32x32, bf16>, 2> -> tensor<3x3x!ttcore.tile<32x32, bf16>>
  ttl.store %18, %20 : tensor<3x3x!ttcore.tile<32x32, bf16>>, tensor<3x3x!ttcore.tile<32x32, bf16>>
  ttl.cb_push %2 : <[3, 3], !ttcore.tile<32x32, bf16>, 2>
  ttl.cb_pop %1 : <[3, 3], !ttcore.tile<32x32, bf16>, 2>
  func.return
}
func.func @read() attributes {ttl.kernel_thread = #ttkernel.thread<noc>, ttl.role = "reader"} {
  %0 = ttl.bind_cb{cb_index = 0, buffer_factor = 2, name = "a_cb"} : <[3, 3], !ttcore.tile<32x32, bf16>, 2>
  %1 = ttl.tensor_accessor {tensor_index = 0 : i32, name = "a"} : !ttl.accessor<[12, 3], !ttcore.tile<32x32, bf16>, "dram">
  %2 = arith.constant 0 : index
  %3 = arith.constant 4 : index
  %4 = arith.constant 1 : index
  scf.for %step = %2 to %3 step %4 {
    %5 = ttl.cb_reserve %0 : <[3, 3], !ttcore.tile<32x32, bf16>, 2> -> tensor<3x3x!ttcore.tile<32x32, bf16>>
    %6 = ttl.attach_cb %5, %0 : tensor<3x3x!ttcore.tile<32x32, bf16>>, <[3, 3], !ttcore.tile<32x32, bf16>, 2> -> tensor<3x3x!ttcore.tile<32x32, bf16>>
    %7 = arith.constant 3 : index
    %8 = arith.muli %step, %7 : index
    %9 = ttl.tensor_slice %1, %8, %2 : !ttl.accessor<[12, 3], !ttcore.tile<32x32, bf16>, "dram">, index, index -> !ttl.slice<[3, 3], !ttcore.tile<32x32, bf16>, "dram">
    %10 = ttl.copy %9, %6 : !ttl.slice<[3, 3], !ttcore.tile<32x32, bf16>, "dram">, tensor<3x3x!ttcore.tile<32x32, bf16>> -> !ttl.transfer
    ttl.wait %10 : !ttl.transfer
    ttl.cb_push %0 : <[3, 3], !ttcore.tile<32x32, bf16>, 2>
  }
  func.return
}
func.func @write() attributes {ttl.kernel_thread = #ttkernel.thread<noc>, ttl.role = "writer"} {
  %0 = ttl.bind_cb{cb_index = 2, buffer_factor = 2, name = "out_cb"} : <[3, 3], !ttcore.tile<32x32, bf16>, 2>
  %1 = ttl.tensor_accessor {tensor_index = 1 : i32, name = "out"} : !ttl.accessor<[3, 3], !ttcore.tile<32x32, bf16>, "dram">
  %2 = ttl.cb_wait %0 : <[3, 3], !ttcore.tile<32x32, bf16>, 2> -> tensor<3x3x!ttcore.tile<32x32, bf16>>
  %3 = ttl.attach_cb %2, %0 : tensor<3x3x!ttcore.tile<32x32, bf16>>, <[3, 3], !ttcore.tile<32x32, bf16>, 2> -> tensor<3x3x!ttcore.tile<32x32, bf16>>
  %4 = arith.constant 0 : index
  %5 = ttl.tensor_slice %1, %4, %4 : !ttl.accessor<[3, 3], !ttcore.tile<32x32, bf16>, "dram">, index, index -> !ttl.slice<[3, 3], !ttcore.tile<32x32, bf16>, "dram">
  %6 = ttl.copy %3, %5 : tensor<3x3x!ttcore.tile<32x32, bf16>>, !ttl.slice<[3, 3], !ttcore.tile<32x32, bf16>, "dram"> -> !ttl.transfer
  ttl.wait %6 : !ttl.transfer
  ttl.cb_pop %0 : <[3, 3], !ttcore.tile<32x32, bf16>, 2>
  func.return
}

// CHECK-LABEL: func.func @compute
// CHECK: %[[SUM:[a-z0-9_]+]] = ttl.bind_cb{cb_index = 1
// CHECK-SAME: ttl.in_dst
// CHECK: %[[OUT:[a-z0-9_]+]] = ttl.bind_cb{cb_index = 2
// CHECK: ttl.cb_reserve %[[OUT]]
// CHECK-NOT: ttl.tile_fill
// CHECK: scf.for
// CHECK-NOT: ttl.cb_wait %[[SUM]]
// CHECK: ttl.attach_cb {{.*}}, %[[OUT]]
// CHECK-SAME: accumulate
// CHECK: ttl.compute
// CHECK-NOT: ttl.leaves_dst
// CHECK: ttl.tile_exp
// CHECK-NOT: ttl.tile_add
// CHECK: ttl.cb_push %[[OUT]]
