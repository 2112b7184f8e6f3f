// Stage 2 of the lowering trace: ttl.add becomes a region of ttl.tile_add over the same blocks.
// RUN: tilewright opt %s -p convert-ttl-to-compute --verify

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

// CHECK-LABEL: func.func @add_compute
// CHECK: [[L:%[0-9]+]] = ttl.attach_cb {{.*}}, [[LHS:%[0-9]+]] :
// CHECK: [[R:%[0-9]+]] = ttl.attach_cb {{.*}}, [[RHS:%[0-9]+]] :
// CHECK-NOT: ttl.add
// CHECK: [[EMPTY:%[0-9]+]] = tensor.empty() : tensor<2x2x!ttcore.tile<32x32, bf16>>
// CHECK-NEXT: [[OUT:%[0-9]+]] = ttl.attach_cb [[EMPTY]], %2 :
// CHECK-NEXT: ttl.compute ins([[L]], [[R]] : tensor<2x2x!ttcore.tile<32x32, bf16>>, tensor<2x2x!ttcore.tile<32x32, bf16>>) outs([[OUT]] : tensor<2x2x!ttcore.tile<32x32, bf16>>)
// CHECK-SAME: indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>]
// CHECK-SAME: iterator_types = ["parallel", "parallel"]
// CHECK-NEXT: ^{{.*}}([[A:%[0-9a-z]+]]: !ttcore.tile<32x32, bf16>, [[B:%[0-9a-z]+]]: !ttcore.tile<32x32, bf16>, [[C:%[0-9a-z]+]]: !ttcore.tile<32x32, bf16>):
// CHECK-NEXT: [[SUM:%[0-9]+]] = ttl.tile_add [[A]], [[B]] : !ttcore.tile<32x32, bf16>
// CHECK-NEXT: ttl.yield [[SUM]] : !ttcore.tile<32x32, bf16>
// CHECK-NEXT: } -> tensor<2x2x!ttcore.tile<32x32, bf16>>
// CHECK-NOT: ttl.store
// CHECK: ttl.cb_pop %0
// CHECK-NEXT: ttl.cb_pop %1
// CHECK-NEXT: ttl.cb_push %2
