// Stage 7 of the lowering trace: the linearised index is a multiplication and an addition.
// RUN: tilewright opt %s -p lower-affine --verify

func.func @add_compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {
  %0 = ttkernel.get_compile_time_arg_val() {index = 0 : i32, cb_index = 0 : i32} : () -> !ttkernel.cb<[2, 2], !ttcore.tile<32x32, bf16>, 2>
  %1 = ttkernel.get_compile_time_arg_val() {index = 1 : i32, cb_index = 1 : i32} : () -> !ttkernel.cb<[2, 2], !ttcore.tile<32x32, bf16>, 2>
  %2 = ttkernel.get_compile_time_arg_val() {index = 2 : i32, cb_index = 2 : i32} : () -> !ttkernel.cb<[2, 2], !ttcore.tile<32x32, bf16>, 2>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index

  // Compute loop
  scf.for %arg0 = %c0 to %c2 step %c1 {
    scf.for %arg1 = %c0 to %c2 step %c1 {
      // Linearized tile index: i * 2 + j
      %lin_idx = affine.apply affine_map<(d0, d1) -> (d0 * 2 + d1)>(%arg0, %arg1)

      ttkernel.copy_tile_init(%0) : (!ttkernel.cb<[2, 2], !ttcore.tile<32x32, bf16>, 2>) -> ()
      ttkernel.copy_tile(%0, %lin_idx, %c0) : (!ttkernel.cb<[2, 2], !ttcore.tile<32x32, bf16>, 2>, index, index) -> ()  // DST index = 0 (constant)

      ttkernel.copy_tile_init(%1) : (!ttkernel.cb<[2, 2], !ttcore.tile<32x32, bf16>, 2>) -> ()
      ttkernel.copy_tile(%1, %lin_idx, %c1) : (!ttkernel.cb<[2, 2], !ttcore.tile<32x32, bf16>, 2>, index, index) -> ()  // DST index = 1 (constant)

      // Output DST index: footprint(2) + linearized_index
      %dst_out = arith.addi %lin_idx, %c2 : index

      ttkernel.add_binary_tile_init() : () -> ()
      ttkernel.add_binary_tile(%c0, %c1, %dst_out) : (index, index, index) -> ()
    }
  } {"ttl.dst_footprint" = 2 : i32}

  ttkernel.tile_regs_commit() : () -> ()
  ttkernel.tile_regs_wait() : () -> ()

  // Pack loop
  scf.for %arg0 = %c0 to %c2 step %c1 {
    scf.for %arg1 = %c0 to %c2 step %c1 {
      %cb_off = arith.muli %arg0, %c2 : index
      %cb_idx = arith.addi %cb_off, %arg1 : index
      // DST index for pack: footprint + cb_tile_index
      %pack_dst = arith.addi %cb_idx, %c2 : index
      ttkernel.pack_tile(%pack_dst, %2, %cb_idx, false) : (index, !ttkernel.cb<[2, 2], !ttcore.tile<32x32, bf16>, 2>, index) -> ()
    }
  } {"ttl.dst_footprint" = 2 : i32}
  return
}

// CHECK-NOT: affine.
// CHECK: scf.for [[I:%[a-z0-9_]+]] =
// CHECK-NEXT: scf.for [[J:%[a-z0-9_]+]] =
// CHECK-NEXT: [[C2:%[a-z0-9_]+]] = arith.constant 2 : index
// CHECK-NEXT: [[OFF:%[a-z0-9_]+]] = arith.muli [[I]], [[C2]] : index
// CHECK-NEXT: [[IDX:%[a-z0-9_]+]] = arith.addi [[OFF]], [[J]] : index
// CHECK-NEXT: ttkernel.copy_tile_init(%0)
// CHECK-NEXT: ttkernel.copy_tile(%0, [[IDX]], %c0)
// CHECK-NEXT: ttkernel.copy_tile_init(%1)
// CHECK-NEXT: ttkernel.copy_tile(%1, [[IDX]], %c1)
// CHECK-NEXT: [[DST:%[a-z0-9_]+]] = arith.addi [[IDX]], %c2 : index
// CHECK-NEXT: ttkernel.add_binary_tile_init()
// CHECK-NEXT: ttkernel.add_binary_tile(%c0, %c1, [[DST]])
// CHECK-NOT: affine.
// CHECK: ttkernel.pack_tile(
