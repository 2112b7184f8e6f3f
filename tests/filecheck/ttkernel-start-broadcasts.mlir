// Before 0.81 a broadcast of 32-bit tiles counts from the tile that was used last: a copy of two tiles resets that.
// RUN: tilewright opt %s -p ttkernel-start-broadcasts --metal 0.78 --verify | filecheck %s --check-prefix OLD
// RUN: tilewright opt %s -p ttkernel-start-broadcasts --metal 0.81 --verify | filecheck %s --check-prefix NEW

func.func @compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>, ttl.fp32_dest_acc_en = true, ttl.dst_full_sync_en = false, ttl.math_fidelity = "HiFi4", ttl.unpack_to_dest = [0 : i32]} {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %a = ttkernel.get_compile_time_arg_val() {index = 0 : i32, cb_index = 0 : i32, name = "a", origin = "user", unpack_to_dest} : () -> !ttkernel.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>
  ttkernel.tile_regs_acquire() : () -> ()
  ttkernel.unary_bcast_init(%a) {template = ["BroadcastType::COL"]} : (!ttkernel.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>) -> ()
  ttkernel.unary_bcast(%a, %0, %1) {template = ["BroadcastType::COL"]} : (!ttkernel.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>, index, index) -> ()
  ttkernel.exp_tile_init() {row = "exp", values = {approx = false}} : () -> ()
  ttkernel.exp_tile(%1) {row = "exp", values = {approx = false}} : (index) -> ()
  ttkernel.unary_bcast_init(%a) {template = ["BroadcastType::COL"]} : (!ttkernel.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>) -> ()
  ttkernel.unary_bcast(%a, %0, %0) {template = ["BroadcastType::COL"]} : (!ttkernel.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>, index, index) -> ()
  ttkernel.sfpu_reduce_init() {template = ["PoolType::MAX", "DataFormat::Float32"]} : () -> ()
  ttkernel.sfpu_reduce(%1) {template = ["PoolType::MAX", "DataFormat::Float32", "ReduceDim::REDUCE_ROW"]} : (index) -> ()
  ttkernel.unary_bcast_init(%a) {template = ["BroadcastType::COL"]} : (!ttkernel.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>) -> ()
  ttkernel.unary_bcast(%a, %0, %0) {template = ["BroadcastType::COL"]} : (!ttkernel.cb<[1, 1], !ttcore.tile<32x32, f32>, 2>, index, index) -> ()
  ttkernel.tile_regs_release() : () -> ()
  return
}

// OLD: ttkernel.tile_regs_acquire
// OLD-NEXT: ttkernel.unary_bcast_init
// OLD-NEXT: ttkernel.unary_bcast(
// OLD: ttkernel.exp_tile(
// OLD-NEXT: ttkernel.copy_dest_values_init
// OLD-NEXT: ttkernel.copy_dest_values(%0, %0)
// OLD-NEXT: ttkernel.unary_bcast_init
// OLD-NEXT: ttkernel.unary_bcast(
// A reduction in DST works on one tile, too.
// OLD: ttkernel.sfpu_reduce(
// OLD-NEXT: ttkernel.copy_dest_values_init
// OLD-NEXT: ttkernel.copy_dest_values(%0, %0)
// OLD-NEXT: ttkernel.unary_bcast_init
// NEW: ttkernel.exp_tile(
// NEW-NEXT: ttkernel.unary_bcast_init
