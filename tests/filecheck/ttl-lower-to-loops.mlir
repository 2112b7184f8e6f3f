// Stage 5 of the lowering trace: a compute nest without packs, sync, a pack nest that carries the output block.
// RUN: tilewright opt %s -p ttl-lower-to-loops --verify

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

  ttl.init_sfpu(%0, %2) : <[2, 2], !ttcore.tile<32x32, bf16>, 2>, <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  ttl.tile_regs_acquire

  %11 = ttl.compute ins(%4, %6 : tensor<2x2x!ttcore.tile<32x32, bf16>>, tensor<2x2x!ttcore.tile<32x32, bf16>>)
                    outs(%10 : tensor<2x2x!ttcore.tile<32x32, bf16>>)
        {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>],
         iterator_types = ["parallel", "parallel"]}
        {"ttl.dst_footprint" = 2 : i32, ttl.unroll_factor = 4 : i32, ttl.dst_layout = "tile-major"} {
  ^bb0(%arg0: !ttcore.tile<32x32, bf16>, %arg1: !ttcore.tile<32x32, bf16>, %arg2: !ttcore.tile<32x32, bf16>):
    %13 = ttl.linearized_index affine_map<(d0, d1) -> (d0 * 2 + d1)> : index
    %c0 = arith.constant 0 : index
    %dst_token, %dst_tile = ttl.copy_tile %arg0, %13, %c0 : !ttcore.tile<32x32, bf16>, index, index
                                                          -> !ttl.dst, !ttcore.tile<32x32, bf16>

    %14 = ttl.linearized_index affine_map<(d0, d1) -> (d0 * 2 + d1)> : index
    %c1 = arith.constant 1 : index
    %dst_token_0, %dst_tile_1 = ttl.copy_tile %arg1, %14, %c1 : !ttcore.tile<32x32, bf16>, index, index
                                                              -> !ttl.dst, !ttcore.tile<32x32, bf16>

    %15 = ttl.tile_add %dst_tile, %dst_tile_1 {dst_idx = 2 : i32} : !ttcore.tile<32x32, bf16>
    ttl.yield %15 : !ttcore.tile<32x32, bf16>
  } -> tensor<2x2x!ttcore.tile<32x32, bf16>>

  // Sync placed outside compute loop for multi-tile
  ttl.tile_regs_commit
  ttl.tile_regs_wait

  // Pack loop (separate from compute)
  ttl.store %11, %10 : tensor<2x2x!ttcore.tile<32x32, bf16>>, tensor<2x2x!ttcore.tile<32x32, bf16>>

  ttl.tile_regs_release
  ttl.cb_pop %0 : <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  ttl.cb_pop %1 : <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  ttl.cb_push %2 : <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  return
}

// CHECK: ttl.init_sfpu(%0, %2)
// CHECK-NEXT: ttl.tile_regs_acquire
// CHECK-NEXT: [[C0:%[0-9]+]] = arith.constant 0 : index
// CHECK-NEXT: [[C1:%[0-9]+]] = arith.constant 1 : index
// CHECK-NEXT: [[C2:%[0-9]+]] = arith.constant 2 : index
// CHECK-NEXT: scf.for [[I:%[a-z0-9_]+]] = [[C0]] to [[C2]] step [[C1]] {
// CHECK-NEXT: scf.for [[J:%[a-z0-9_]+]] = [[C0]] to [[C2]] step [[C1]] {
// CHECK-NEXT: [[A:%[0-9]+]] = tensor.extract %4[[[I]], [[J]]] : tensor<2x2x!ttcore.tile<32x32, bf16>>
// CHECK-NEXT: [[N:%[0-9]+]] = affine.apply affine_map<(d0, d1) -> (((d0 * 2) + d1))> ([[I]], [[J]])
// CHECK-NEXT: {{.*}}, [[X:%[a-z0-9_]+]] = ttl.copy_tile [[A]], [[N]], [[C0]] : !ttcore.tile<32x32, bf16>, index, index -> !ttl.dst, !ttcore.tile<32x32, bf16>
// CHECK-NEXT: [[B:%[0-9]+]] = tensor.extract %6[[[I]], [[J]]] : tensor<2x2x!ttcore.tile<32x32, bf16>>
// CHECK-NEXT: [[M:%[0-9]+]] = affine.apply affine_map<(d0, d1) -> (((d0 * 2) + d1))> ([[I]], [[J]])
// CHECK-NEXT: {{.*}}, [[Y:%[a-z0-9_]+]] = ttl.copy_tile [[B]], [[M]], [[C1]] : !ttcore.tile<32x32, bf16>, index, index -> !ttl.dst, !ttcore.tile<32x32, bf16>
// CHECK-NEXT: ttl.tile_add [[X]], [[Y]] {dst_idx = 2 : i32, dst_stride = 1 : i32} : !ttcore.tile<32x32, bf16>
// CHECK-NEXT: } {ttl.tile_stride = 1 : i32}
// CHECK-NEXT: } {ttl.tile_stride = 2 : i32, ttl.dst_footprint = 2 : i32}
// CHECK-NEXT: ttl.tile_regs_commit
// CHECK-NEXT: ttl.tile_regs_wait
// CHECK-NEXT: scf.for [[K:%[a-z0-9_]+]] = [[C0]] to [[C2]] step [[C1]] iter_args([[OUTER:%[0-9]+]] = [[OUT:%[0-9]+]]) -> (tensor<2x2x!ttcore.tile<32x32, bf16>>) {
// CHECK-NEXT: [[INNER:%[0-9]+]] = scf.for [[L:%[a-z0-9_]+]] = [[C0]] to [[C2]] step [[C1]] iter_args([[BLOCK:%[0-9]+]] = [[OUTER]]) -> (tensor<2x2x!ttcore.tile<32x32, bf16>>) {
// CHECK-NEXT: [[T:%[0-9]+]] = ttl.dst_tile {dst_idx = 2 : i32, dst_stride = 1 : i32} : !ttcore.tile<32x32, bf16>
// CHECK-NEXT: ttl.store [[T]], [[OUT]] : !ttcore.tile<32x32, bf16>, tensor<2x2x!ttcore.tile<32x32, bf16>>
// CHECK-NEXT: [[NEW:%[0-9]+]] = tensor.insert [[T]] into [[BLOCK]][[[K]], [[L]]] : tensor<2x2x!ttcore.tile<32x32, bf16>>
// CHECK-NEXT: scf.yield [[NEW]] : tensor<2x2x!ttcore.tile<32x32, bf16>>
// CHECK-NEXT: }
// CHECK-NEXT: scf.yield [[INNER]] : tensor<2x2x!ttcore.tile<32x32, bf16>>
// CHECK-NEXT: } {ttl.tile_stride = 2 : i32, ttl.dst_footprint = 2 : i32}
// CHECK-NEXT: ttl.tile_regs_release
