// The sum leaves DST and comes back: one region packs it into a buffer of the compiler's, the next takes it from there.
// RUN: tilewright opt %s -p ttl-split-at-spills --verify

func.func @compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {
  %a_cb = ttl.bind_cb{cb_index = 0, buffer_factor = 2} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %b_cb = ttl.bind_cb{cb_index = 1, buffer_factor = 2} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %o_cb = ttl.bind_cb{cb_index = 2, buffer_factor = 2} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %a_raw = ttl.cb_wait %a_cb : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %a = ttl.attach_cb %a_raw, %a_cb : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %b_raw = ttl.cb_wait %b_cb : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %b = ttl.attach_cb %b_raw, %b_cb : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %o_raw = ttl.cb_reserve %o_cb : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %o = ttl.attach_cb %o_raw, %o_cb : tensor<1x1x!ttcore.tile<32x32, bf16>>, <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %result = ttl.compute ins(%a, %b : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>>) outs(%o : tensor<1x1x!ttcore.tile<32x32, bf16>>)
    {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>],
     iterator_types = ["parallel", "parallel"]} {
  ^bb0(%ta: !ttcore.tile<32x32, bf16>, %tb: !ttcore.tile<32x32, bf16>, %to: !ttcore.tile<32x32, bf16>):
    %sum = ttl.tile_add %ta, %tb : !ttcore.tile<32x32, bf16>
    %spilled = ttl.spill_tile_to_l1 %sum
    %next = ttl.tile_mul %ta, %tb : !ttcore.tile<32x32, bf16>
    %restored = ttl.restore_tile_from_l1 %spilled
    %total = ttl.tile_sub %restored, %next : !ttcore.tile<32x32, bf16>
    ttl.yield %total : !ttcore.tile<32x32, bf16>
  } -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.cb_push %o_cb : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  ttl.cb_pop %a_cb : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  ttl.cb_pop %b_cb : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  return
}

// CHECK-LABEL: func.func @compute
// CHECK: %[[SPILL:[a-z0-9_]+]] = ttl.bind_cb{cb_index = 3
// CHECK: ttl.cb_reserve %[[SPILL]]
// CHECK: ttl.compute
// CHECK: ttl.tile_add
// CHECK-NOT: ttl.tile_mul
// CHECK: ttl.cb_push %[[SPILL]]
// CHECK: ttl.cb_wait %[[SPILL]]
// CHECK: ttl.compute
// CHECK-NOT: ttl.tile_add
// CHECK: ttl.tile_sub
// CHECK: ttl.cb_pop %[[SPILL]]
