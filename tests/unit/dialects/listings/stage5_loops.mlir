// lowering-multitile-compute.md, stage 5. Completed: "..."; ttl.dst_tile names the tile that the store packs (decision 0005); loop attributes stand behind the
// loop, where MLIR has them.
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

  %c2 = arith.constant 2 : index
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index

  ttl.init_sfpu(%0, %2) : <[2, 2], !ttcore.tile<32x32, bf16>, 2>, <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  ttl.tile_regs_acquire

  // Compute loop - math operations only, no pack
  scf.for %arg0 = %c0 to %c2 step %c1 {
    scf.for %arg2 = %c0 to %c2 step %c1 {
      %extracted = tensor.extract %4[%arg0, %arg2] : tensor<2x2x!ttcore.tile<32x32, bf16>>
      %extracted_0 = tensor.extract %6[%arg0, %arg2] : tensor<2x2x!ttcore.tile<32x32, bf16>>

      %14 = affine.apply affine_map<(d0, d1) -> (d0 * 2 + d1)>(%arg0, %arg2)

      %dst_token, %dst_tile = ttl.copy_tile %extracted, %14, %c0 : !ttcore.tile<32x32, bf16>, index, index -> !ttl.dst, !ttcore.tile<32x32, bf16>
      %dst_token_1, %dst_tile_2 = ttl.copy_tile %extracted_0, %14, %c1 : !ttcore.tile<32x32, bf16>, index, index -> !ttl.dst, !ttcore.tile<32x32, bf16>

      %16 = ttl.tile_add %dst_tile, %dst_tile_2 {dst_idx = 0 : i32} : !ttcore.tile<32x32, bf16>
    }
  } {"ttl.dst_footprint" = 2 : i32}

  // Sync between compute and pack loops
  ttl.tile_regs_commit
  ttl.tile_regs_wait

  // Pack loop - separate from compute
  %11 = scf.for %arg0 = %c0 to %c2 step %c1 iter_args(%arg1 = %10)
      -> (tensor<2x2x!ttcore.tile<32x32, bf16>>) {
    %13 = scf.for %arg2 = %c0 to %c2 step %c1 iter_args(%arg3 = %arg1)
        -> (tensor<2x2x!ttcore.tile<32x32, bf16>>) {
      %result = ttl.dst_tile {dst_idx = 2 : i32} : !ttcore.tile<32x32, bf16>
      ttl.store %result, %10 : !ttcore.tile<32x32, bf16>, tensor<2x2x!ttcore.tile<32x32, bf16>>
      %inserted = tensor.insert %result into %arg3[%arg0, %arg2] : tensor<2x2x!ttcore.tile<32x32, bf16>>
      scf.yield %inserted : tensor<2x2x!ttcore.tile<32x32, bf16>>
    }
    scf.yield %13 : tensor<2x2x!ttcore.tile<32x32, bf16>>
  } {"ttl.dst_footprint" = 2 : i32}

  ttl.tile_regs_release
  ttl.cb_pop %0 : <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  ttl.cb_pop %1 : <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  ttl.cb_push %2 : <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  return
}
