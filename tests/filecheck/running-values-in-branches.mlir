// A running value with a step in either branch of an if: regions in both branches write to the one op, and what was computed from the
// value before the branches is saved in front of them.
// RUN: tilewright opt %s -p ttl-complete-releases,ttl-compute-before-release,convert-ttl-to-compute --verify

func.func @compute(%which: i1) attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {
  %a = ttl.bind_cb{cb_index = 0, buffer_factor = 2, name = "a_cb"} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %total = ttl.bind_cb{cb_index = 1, buffer_factor = 2, name = "total_cb"} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %out = ttl.bind_cb{cb_index = 2, buffer_factor = 2, name = "out_cb"} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %one = ttl.fill_block {value = 1.000000e+00 : f32} : tensor<1x1x!ttcore.tile<32x32, bf16>>
  %value = ttl.running %total : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %first = ttl.attach_cb %value, %total : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.store %one, %first : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>>
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c1 = arith.constant 1 : index
  scf.for %step = %c0 to %c4 step %c1 {
    %a_block = ttl.cb_wait %a : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %x = ttl.attach_cb %a_block, %a : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %before = ttl.attach_cb %value, %total : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %twice = ttl.exp %before : tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    scf.if %which {
      %old = ttl.attach_cb %value, %total : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
      %grown = ttl.max %old, %x : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
      %place = ttl.attach_cb %value, %total : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
      ttl.store %grown, %place : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>>
    } else {
      %old = ttl.attach_cb %value, %total : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
      %grown = ttl.mul %old, %x : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
      %place = ttl.attach_cb %value, %total : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
      ttl.store %grown, %place : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>>
    }
    %out_block = ttl.cb_reserve %out : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    %o = ttl.attach_cb %out_block, %out : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
    ttl.store %twice, %o : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>>
    ttl.cb_push %out : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
    ttl.cb_pop %a : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  }
  ttl.cb_push %total : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  func.return
}

// CHECK: %[[SAVED:[a-z0-9_]+]] = ttl.bind_cb{cb_index = 3 : i32, buffer_factor = 1 : i32, name = "twice_3"
// CHECK: %[[TOTAL:[a-z0-9_]+]] = ttl.running %total
// CHECK: scf.for
// CHECK: ttl.compute
// CHECK-NEXT: ^
// CHECK-NEXT: ttl.tile_exp
// CHECK: ttl.cb_push %[[SAVED]]
// CHECK: scf.if
// CHECK: %[[OLD:[a-z0-9_]+]] = ttl.attach_cb %[[TOTAL]], %total
// CHECK: %[[NEW:[a-z0-9_]+]] = ttl.attach_cb %[[TOTAL]], %total
// CHECK: ttl.compute ins(%[[OLD]], {{.*}}) outs(%[[NEW]]
// CHECK: ttl.tile_max
// CHECK: } else {
// CHECK: %[[BEFORE:[a-z0-9_]+]] = ttl.attach_cb %[[TOTAL]], %total
// CHECK: %[[OTHER:[a-z0-9_]+]] = ttl.attach_cb %[[TOTAL]], %total
// CHECK: ttl.compute ins(%[[BEFORE]], {{.*}}) outs(%[[OTHER]]
// CHECK: ttl.tile_mul
// CHECK: ttl.cb_push %total
