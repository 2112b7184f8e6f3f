// Running values as the front ends write them: a read is what the value was when the iteration began, also behind the step. Fusion keeps
// that: regions read and write views of the op. One value reads the other here, so both get their buffers, in which the old value and
// the new one lie side by side.
// RUN: tilewright opt %s -p convert-ttl-to-compute --verify
// RUN: tilewright opt %s -p convert-ttl-to-compute,ttl-set-compute-config,ttl-raise-running-values --verify | filecheck %s --check-prefix READ

func.func @compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {
  %a = ttl.bind_cb{cb_index = 0, buffer_factor = 2, name = "a_cb"} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %total = ttl.bind_cb{cb_index = 1, buffer_factor = 2, name = "total_cb"} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %seen = ttl.bind_cb{cb_index = 2, buffer_factor = 2, name = "seen_cb"} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %out = ttl.bind_cb{cb_index = 3, buffer_factor = 2, name = "out_cb"} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %total_zero = ttl.fill_block {value = 1.000000e+00 : f32} : tensor<1x1x!ttcore.tile<32x32, bf16>>
  %total_value = ttl.running %total : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %total_first = ttl.attach_cb %total_value, %total : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.store %total_zero, %total_first : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>>
  %seen_zero = ttl.fill_block {value = 1.000000e+00 : f32} : tensor<1x1x!ttcore.tile<32x32, bf16>>
  %seen_value = ttl.running %seen : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %seen_first = ttl.attach_cb %seen_value, %seen : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.store %seen_zero, %seen_first : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>>
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c1 = arith.constant 1 : index
  scf.for %step = %c0 to %c4 step %c1 {
    %a_block = ttl.cb_wait %a : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %x = ttl.attach_cb %a_block, %a : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %total_old = ttl.attach_cb %total_value, %total : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %total_sum = ttl.max %total_old, %x : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %total_place = ttl.attach_cb %total_value, %total : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    ttl.store %total_sum, %total_place : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>>
    %seen_old = ttl.attach_cb %seen_value, %seen : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %seen_sum = ttl.mul %seen_old, %total_old : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %seen_place = ttl.attach_cb %seen_value, %seen : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    ttl.store %seen_sum, %seen_place : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>>
    ttl.cb_pop %a : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  }
  ttl.cb_push %total : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  ttl.cb_push %seen : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %total_last = ttl.cb_wait %total : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %total_result = ttl.attach_cb %total_last, %total : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %seen_last = ttl.cb_wait %seen : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %seen_result = ttl.attach_cb %seen_last, %seen : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %out_block = ttl.cb_reserve %out : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %o = ttl.attach_cb %out_block, %out : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %both = ttl.add %total_result, %seen_result : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.store %both, %o : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.cb_push %out : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  ttl.cb_pop %total : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  ttl.cb_pop %seen : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  func.return
}

// CHECK: %[[TOTAL:[a-z0-9_]+]] = ttl.running %total
// CHECK: %[[SEEN:[a-z0-9_]+]] = ttl.running %seen
// CHECK: scf.for
// CHECK-NOT: ttl.cb_reserve
// CHECK: %[[OLD:[a-z0-9_]+]] = ttl.attach_cb %[[TOTAL]], %total
// CHECK: %[[NEW:[a-z0-9_]+]] = ttl.attach_cb %[[TOTAL]], %total
// CHECK: ttl.compute ins(%[[OLD]], {{.*}}) outs(%[[NEW]]
// CHECK: ttl.tile_max
// CHECK: ttl.compute ins({{.*}}, %[[OLD]]
// CHECK: ttl.tile_mul
// CHECK: ttl.cb_push %total

// READ: ttl.cb_reserve %total
// READ: ttl.compute
// READ: ttl.cb_push %total
// READ: scf.for
// READ: %[[FRONT:[a-z0-9_]+]] = ttl.cb_wait %total
// READ: %[[OLD:[a-z0-9_]+]] = ttl.attach_cb %[[FRONT]], %total
// READ: ttl.cb_reserve %total
// READ: ttl.compute ins(%[[OLD]], {{.*}})
// READ: ttl.compute ins({{.*}}, %[[OLD]]
// READ: ttl.cb_push %total
// READ-NEXT: ttl.cb_push %seen
// READ-NEXT: ttl.cb_pop %total
// READ-NEXT: ttl.cb_pop %seen
// READ: ttl.cb_wait %total
