// Stage 6 of the lowering trace: hardware calls; inputs at DST 0 and 1, the sum and its pack at footprint + i * 2 + j.
// RUN: tilewright opt %s -p convert-ttl-to-ttkernel --verify

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

// CHECK: [[C2:%[0-9]+]] = arith.constant 2 : index
// CHECK: [[C4:%[0-9]+]] = arith.constant 4 : index
// CHECK: [[LHS:%[a-z_]+]] = ttkernel.get_compile_time_arg_val() {index = 0 : i32, cb_index = 0 : i32, name = "lhs_cb"{{.*}}} : () -> !ttkernel.cb<[2, 2], !ttcore.tile<32x32, bf16>, 2>
// CHECK: [[RHS:%[a-z_]+]] = ttkernel.get_compile_time_arg_val() {index = 1 : i32, cb_index = 1 : i32
// CHECK: [[OUT:%[a-z_]+]] = ttkernel.get_compile_time_arg_val() {index = 2 : i32, cb_index = 2 : i32
// CHECK: ttkernel.cb_wait_front([[LHS]], [[C4]])
// CHECK-NEXT: ttkernel.cb_wait_front([[RHS]], [[C4]])
// CHECK-NEXT: ttkernel.cb_reserve_back([[OUT]], [[C4]])
// CHECK-NEXT: ttkernel.init_sfpu([[LHS]], [[OUT]])
// CHECK-NEXT: ttkernel.tile_regs_acquire()
// CHECK: [[C0:%[a-z0-9]+]] = arith.constant 0 : index
// CHECK-NEXT: [[C1:%[a-z0-9]+]] = arith.constant 1 : index
// CHECK: scf.for [[I:%[a-z0-9_]+]] =
// CHECK-NEXT: scf.for [[J:%[a-z0-9_]+]] =
// CHECK-NEXT: [[N:%[a-z0-9]+]] = affine.apply affine_map<(d0, d1) -> (((d0 * 2) + d1))> ([[I]], [[J]])
// CHECK-NEXT: ttkernel.copy_tile_init([[LHS]])
// CHECK-NEXT: ttkernel.copy_tile([[LHS]], [[N]], [[C0]]){{.*}} : (!ttkernel.cb<[2, 2], !ttcore.tile<32x32, bf16>, 2>, index, index) -> ()
// CHECK: ttkernel.copy_tile_init([[RHS]])
// CHECK-NEXT: ttkernel.copy_tile([[RHS]], {{%[a-z0-9]+}}, [[C1]])
// CHECK-NEXT: [[ROW:%[0-9]+]] = arith.muli [[I]], [[C2]] : index
// CHECK-NEXT: [[TILE:%[0-9]+]] = arith.addi [[ROW]], [[J]] : index
// CHECK-NEXT: [[DST:%[0-9]+]] = arith.addi [[TILE]], [[C2]] : index
// CHECK-NEXT: ttkernel.add_binary_tile_init()
// CHECK-NEXT: ttkernel.add_binary_tile([[C0]], [[C1]], [[DST]])
// CHECK: } {{.*}}ttl.dst_footprint = 2 : i32}
// CHECK: ttkernel.tile_regs_commit() : () -> ()
// CHECK-NEXT: ttkernel.tile_regs_wait() : () -> ()
// CHECK-NEXT: scf.for [[I2:%[a-z0-9_]+]] =
// CHECK-NEXT: scf.for [[J2:%[a-z0-9_]+]] =
// CHECK-NEXT: [[OFF:%[0-9]+]] = arith.muli [[I2]], [[C2]] : index
// CHECK-NEXT: [[IDX:%[0-9]+]] = arith.addi [[OFF]], [[J2]] : index
// CHECK-NEXT: [[PACK:%[0-9]+]] = arith.addi [[IDX]], [[C2]] : index
// CHECK-NEXT: ttkernel.pack_tile([[PACK]], [[OUT]], [[IDX]])
// CHECK: ttkernel.tile_regs_release()
// CHECK-NEXT: ttkernel.cb_pop_front([[LHS]], [[C4]])
// CHECK-NEXT: ttkernel.cb_pop_front([[RHS]], [[C4]])
// CHECK-NEXT: ttkernel.cb_push_back([[OUT]], [[C4]])
