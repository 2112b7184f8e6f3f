// What one section packs for the next is pushed tile by tile, and waited for tile by tile behind the call that does not read it.
// RUN: tilewright opt %s -p ttkernel-stream-blocks --verify | filecheck %s

func.func @compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>, ttl.fp32_dest_acc_en = false, ttl.dst_full_sync_en = false, ttl.math_fidelity = "HiFi4", ttl.unpack_to_dest = []} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %in = ttkernel.get_compile_time_arg_val() {index = 0 : i32, cb_index = 0 : i32, name = "in", origin = "user"} : () -> !ttkernel.cb<[2, 2], !ttcore.tile<32x32, bf16>, 1>
  %out = ttkernel.get_compile_time_arg_val() {index = 1 : i32, cb_index = 1 : i32, name = "out", origin = "user"} : () -> !ttkernel.cb<[2, 2], !ttcore.tile<32x32, bf16>, 1>
  %spill = ttkernel.get_compile_time_arg_val() {index = 2 : i32, cb_index = 2 : i32, name = "spill", origin = "compiler"} : () -> !ttkernel.cb<[2, 2], !ttcore.tile<32x32, bf16>, 1>
  ttkernel.cb_reserve_back(%spill, %c4) : (!ttkernel.cb<[2, 2], !ttcore.tile<32x32, bf16>, 1>, index) -> ()
  ttkernel.tile_regs_acquire() : () -> ()
  scf.for %i = %c0 to %c4 step %c1 {
    ttkernel.mul_tiles(%in, %in, %i, %i, %i) {row = "mul"} : (!ttkernel.cb<[2, 2], !ttcore.tile<32x32, bf16>, 1>, !ttkernel.cb<[2, 2], !ttcore.tile<32x32, bf16>, 1>, index, index, index) -> ()
  } {ttl.tile_stride = 1 : i32}
  ttkernel.tile_regs_commit() : () -> ()
  ttkernel.tile_regs_wait() : () -> ()
  scf.for %i = %c0 to %c4 step %c1 {
    ttkernel.pack_tile(%i, %spill, %i) {dst_base = 0 : i32} : (index, !ttkernel.cb<[2, 2], !ttcore.tile<32x32, bf16>, 1>, index) -> ()
  } {ttl.tile_stride = 1 : i32}
  ttkernel.tile_regs_release() : () -> ()
  ttkernel.cb_push_back(%spill, %c4) : (!ttkernel.cb<[2, 2], !ttcore.tile<32x32, bf16>, 1>, index) -> ()
  ttkernel.cb_wait_front(%spill, %c4) : (!ttkernel.cb<[2, 2], !ttcore.tile<32x32, bf16>, 1>, index) -> ()
  ttkernel.tile_regs_acquire() : () -> ()
  scf.for %i = %c0 to %c4 step %c1 {
    ttkernel.copy_tile(%in, %i, %i) : (!ttkernel.cb<[2, 2], !ttcore.tile<32x32, bf16>, 1>, index, index) -> ()
  } {ttl.tile_stride = 1 : i32}
  scf.for %i = %c0 to %c4 step %c1 {
    ttkernel.mul_tiles(%spill, %in, %i, %i, %i) {accumulates = "intended"} : (!ttkernel.cb<[2, 2], !ttcore.tile<32x32, bf16>, 1>, !ttkernel.cb<[2, 2], !ttcore.tile<32x32, bf16>, 1>, index, index, index) -> ()
  } {ttl.tile_stride = 1 : i32}
  ttkernel.tile_regs_commit() : () -> ()
  ttkernel.tile_regs_wait() : () -> ()
  scf.for %i = %c0 to %c4 step %c1 {
    ttkernel.pack_tile(%i, %out, %i) {dst_base = 0 : i32} : (index, !ttkernel.cb<[2, 2], !ttcore.tile<32x32, bf16>, 1>, index) -> ()
  } {ttl.tile_stride = 1 : i32}
  ttkernel.tile_regs_release() : () -> ()
  ttkernel.cb_pop_front(%spill, %c4) : (!ttkernel.cb<[2, 2], !ttcore.tile<32x32, bf16>, 1>, index) -> ()
  ttkernel.cb_push_back(%out, %c4) : (!ttkernel.cb<[2, 2], !ttcore.tile<32x32, bf16>, 1>, index) -> ()
  func.return
}

// CHECK: ttkernel.pack_tile({{.*}}, %spill,
// CHECK-NEXT: ttkernel.cb_push_back(%spill,
// CHECK: ttkernel.tile_regs_release()
// CHECK-NOT: ttkernel.cb_push_back
// CHECK-NOT: ttkernel.cb_wait_front
// CHECK: ttkernel.copy_tile(%in
// CHECK: [[MORE:%[a-z0-9_]+]] = arith.addi
// CHECK-NEXT: ttkernel.cb_wait_front(%spill, [[MORE]])
// CHECK-NEXT: ttkernel.mul_tiles(%spill, %in
// CHECK: ttkernel.pack_tile({{.*}}, %out,
// CHECK-NOT: ttkernel.cb_push_back
// CHECK: ttkernel.cb_pop_front(%spill, %c4)
// CHECK: ttkernel.cb_push_back(%out,
