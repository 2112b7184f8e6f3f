// The pack nest takes four consecutive tiles to consecutive places: one block pack. With --no-combine-packs it stays a nest.
// RUN: tilewright opt %s -p convert-ttl-to-ttkernel,ttkernel-combine-pack-tiles --verify | filecheck %s --check-prefix CHECK
// RUN: tilewright opt %s -p convert-ttl-to-ttkernel,ttkernel-combine-pack-tiles --no-combine-packs | filecheck %s --check-prefix KEPT
// RUN: tilewright opt %s -p ttl-unroll-compute-loops,convert-ttl-to-ttkernel,ttkernel-combine-pack-tiles --enable-unroll --verify | filecheck %s --check-prefix CHECK

func.func @add_compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>, ttl.fp32_dest_acc_en = false, ttl.dst_full_sync_en = false, ttl.math_fidelity = "HiFi4", ttl.unpack_to_dest = []} {
  %0 = ttl.bind_cb{cb_index = 0, buffer_factor = 2, name = "lhs_cb"} : <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  %1 = ttl.bind_cb{cb_index = 1, buffer_factor = 2, name = "rhs_cb"} : <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  %2 = ttl.bind_cb{cb_index = 2, buffer_factor = 2, name = "out_cb"} : <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  %3 = ttl.cb_wait %0 : <[2, 2], !ttcore.tile<32x32, bf16>, 2> -> tensor<2x2x!ttcore.tile<32x32, bf16>>
  %4 = ttl.attach_cb %3, %0 : tensor<2x2x!ttcore.tile<32x32, bf16>>, <[2, 2], !ttcore.tile<32x32, bf16>, 2> -> tensor<2x2x!ttcore.tile<32x32, bf16>>
  %5 = ttl.cb_wait %1 : <[2, 2], !ttcore.tile<32x32, bf16>, 2> -> tensor<2x2x!ttcore.tile<32x32, bf16>>
  %6 = ttl.attach_cb %5, %1 : tensor<2x2x!ttcore.tile<32x32, bf16>>, <[2, 2], !ttcore.tile<32x32, bf16>, 2> -> tensor<2x2x!ttcore.tile<32x32, bf16>>
  %7 = ttl.cb_reserve %2 : <[2, 2], !ttcore.tile<32x32, bf16>, 2> -> tensor<2x2x!ttcore.tile<32x32, bf16>>
  %8 = tensor.empty() : tensor<2x2x!ttcore.tile<32x32, bf16>>
  %9 = ttl.attach_cb %8, %2 : tensor<2x2x!ttcore.tile<32x32, bf16>>, <[2, 2], !ttcore.tile<32x32, bf16>, 2> -> tensor<2x2x!ttcore.tile<32x32, bf16>>
  ttl.init_sfpu(%0, %2) : <[2, 2], !ttcore.tile<32x32, bf16>, 2>, <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  ttl.tile_regs_acquire
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.for %i = %c0 to %c2 step %c1 {
    scf.for %j = %c0 to %c2 step %c1 {
      %a = tensor.extract %4[%i, %j] : tensor<2x2x!ttcore.tile<32x32, bf16>>
      %m = affine.apply affine_map<(d0, d1) -> (d0 * 2 + d1)>(%i, %j)
      %k0, %x = ttl.copy_tile %a, %m, %c0 : !ttcore.tile<32x32, bf16>, index, index -> !ttl.dst, !ttcore.tile<32x32, bf16>
      %b = tensor.extract %6[%i, %j] : tensor<2x2x!ttcore.tile<32x32, bf16>>
      %n = affine.apply affine_map<(d0, d1) -> (d0 * 2 + d1)>(%i, %j)
      %k1, %y = ttl.copy_tile %b, %n, %c1 : !ttcore.tile<32x32, bf16>, index, index -> !ttl.dst, !ttcore.tile<32x32, bf16>
      %sum = ttl.tile_add %x, %y {dst_idx = 2 : i32, ttl.unit = "sfpu", dst_stride = 1 : i32} : !ttcore.tile<32x32, bf16>
    } {ttl.tile_stride = 1 : i32}
  } {ttl.tile_stride = 2 : i32, ttl.dst_footprint = 2 : i32}
  ttl.tile_regs_commit
  ttl.tile_regs_wait
  %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%outer = %9) -> (tensor<2x2x!ttcore.tile<32x32, bf16>>) {
    %s = scf.for %j = %c0 to %c2 step %c1 iter_args(%block = %outer) -> (tensor<2x2x!ttcore.tile<32x32, bf16>>) {
      %t = ttl.dst_tile {dst_idx = 2 : i32, dst_stride = 1 : i32} : !ttcore.tile<32x32, bf16>
      ttl.store %t, %9 : !ttcore.tile<32x32, bf16>, tensor<2x2x!ttcore.tile<32x32, bf16>>
      %u = tensor.insert %t into %block[%i, %j] : tensor<2x2x!ttcore.tile<32x32, bf16>>
      scf.yield %u : tensor<2x2x!ttcore.tile<32x32, bf16>>
    } {ttl.tile_stride = 1 : i32}
    scf.yield %s : tensor<2x2x!ttcore.tile<32x32, bf16>>
  } {ttl.tile_stride = 2 : i32, ttl.dst_footprint = 2 : i32}
  ttl.tile_regs_release
  ttl.cb_pop %0 : <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  ttl.cb_pop %1 : <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  ttl.cb_push %2 : <[2, 2], !ttcore.tile<32x32, bf16>, 2>
  return
}

// CHECK: ttkernel.tile_regs_wait() : () -> ()
// CHECK-NOT: scf.for
// CHECK: [[FIRST:%[a-z0-9]+]] = arith.constant 2 : index
// CHECK-NEXT: [[COUNT:%[a-z0-9]+]] = arith.constant 4 : index
// CHECK-NEXT: ttkernel.pack_tile_block([[FIRST]], %out_cb, [[COUNT]])
// CHECK-NOT: ttkernel.pack_tile
// CHECK: ttkernel.tile_regs_release()

// KEPT: ttkernel.tile_regs_wait() : () -> ()
// KEPT: scf.for
// KEPT-NEXT: scf.for
// KEPT: ttkernel.pack_tile(
