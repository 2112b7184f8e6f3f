// Stage 3 of the lowering trace: loads into DST 0 and 1, the sum in 2 and up, footprint 2, four tiles per acquire.
// The alias of the pass gives the same.
// RUN: tilewright opt %s -p ttl-set-compute-config,ttl-tile-and-assign-dst --verify --allocator linear-scan --no-fpu-binary-ops
// RUN: tilewright opt %s -p ttl-set-compute-config,ttl-assign-dst --allocator linear-scan --no-fpu-binary-ops

func.func @add_compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {
  %0 = ttl.bind_cb{cb_index = 0, buffer_factor = 2} : <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  %1 = ttl.bind_cb{cb_index = 1, buffer_factor = 2} : <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  %2 = ttl.bind_cb{cb_index = 2, buffer_factor = 2} : <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  %3 = ttl.cb_wait %0 : <[2, 2], !ttcore.tile<32x32, bf16>, 2> -> tensor<2x2x!ttcore.tile<32x32, bf16>>
  %4 = ttl.attach_cb %3, %0 : tensor<2x2x!ttcore.tile<32x32, bf16>>, <[2, 2], !ttcore.tile<32x32, bf16>, 2> -> tensor<2x2x!ttcore.tile<32x32, bf16>>
  %5 = ttl.cb_wait %1 : <[2, 2], !ttcore.tile<32x32, bf16>, 2> -> tensor<2x2x!ttcore.tile<32x32, bf16>>
  %6 = ttl.attach_cb %5, %1 : tensor<2x2x!ttcore.tile<32x32, bf16>>, <[2, 2], !ttcore.tile<32x32, bf16>, 2> -> tensor<2x2x!ttcore.tile<32x32, bf16>>
  %7 = ttl.cb_reserve %2 : <[2, 2], !ttcore.tile<32x32, bf16>, 2> -> tensor<2x2x!ttcore.tile<32x32, bf16>>
  %9 = tensor.empty() : tensor<2x2x!ttcore.tile<32x32, bf16>>
  %10 = ttl.attach_cb %9, %2 : tensor<2x2x!ttcore.tile<32x32, bf16>>, <[2, 2], !ttcore.tile<32x32, bf16>, 2> -> tensor<2x2x!ttcore.tile<32x32, bf16>>

  %11 = ttl.compute ins(%4, %6 : tensor<2x2x!ttcore.tile<32x32, bf16>>, tensor<2x2x!ttcore.tile<32x32, bf16>>)
                    outs(%10 : tensor<2x2x!ttcore.tile<32x32, bf16>>)
        {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>,
                          affine_map<(d0, d1) -> (d0, d1)>,
                          affine_map<(d0, d1) -> (d0, d1)>],
         iterator_types = ["parallel", "parallel"]} {
  ^bb0(%arg0: !ttcore.tile<32x32, bf16>, %arg1: !ttcore.tile<32x32, bf16>, %arg2: !ttcore.tile<32x32, bf16>):
    %13 = ttl.tile_add %arg0, %arg1 : !ttcore.tile<32x32, bf16>
    ttl.yield %13 : !ttcore.tile<32x32, bf16>
  } -> tensor<2x2x!ttcore.tile<32x32, bf16>>

  ttl.cb_pop %0 : <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  ttl.cb_pop %1 : <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  ttl.cb_push %2 : <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  return
}

// CHECK: ttl.compute ins(%4, %6 : tensor<2x2x!ttcore.tile<32x32, bf16>>, tensor<2x2x!ttcore.tile<32x32, bf16>>)
// CHECK-SAME: ttl.dst_footprint = 2 : i32
// CHECK-SAME: ttl.unroll_factor = 4 : i32
// CHECK-NEXT: ^{{.*}}([[A:%[0-9a-z]+]]: !ttcore.tile<32x32, bf16>, [[B:%[0-9a-z]+]]: !ttcore.tile<32x32, bf16>, {{.*}}):
// CHECK-NEXT: [[I:%[0-9]+]] = ttl.linearized_index affine_map<(d0, d1) -> (((d0 * 2) + d1))> : index
// CHECK-NEXT: [[C0:%[0-9]+]] = arith.constant 0 : index
// CHECK-NEXT: {{%[0-9]+}}, [[X:%[0-9]+]] = ttl.copy_tile [[A]], [[I]], [[C0]] : !ttcore.tile<32x32, bf16>, index, index -> !ttl.dst, !ttcore.tile<32x32, bf16>
// CHECK-NEXT: [[J:%[0-9]+]] = ttl.linearized_index affine_map<(d0, d1) -> (((d0 * 2) + d1))> : index
// CHECK-NEXT: [[C1:%[0-9]+]] = arith.constant 1 : index
// CHECK-NEXT: {{%[0-9]+}}, [[Y:%[0-9]+]] = ttl.copy_tile [[B]], [[J]], [[C1]] : !ttcore.tile<32x32, bf16>, index, index -> !ttl.dst, !ttcore.tile<32x32, bf16>
// CHECK-NEXT: [[SUM:%[0-9]+]] = ttl.tile_add [[X]], [[Y]] {dst_idx = 2 : i32{{.*}}} : !ttcore.tile<32x32, bf16>
// CHECK-NEXT: ttl.yield [[SUM]] : !ttcore.tile<32x32, bf16>
