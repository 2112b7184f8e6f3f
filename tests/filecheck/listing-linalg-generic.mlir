// The listing of 5.6.4 as it stands there, in a function: per sub-block and op one init and one tile loop, one pack at the end.
// RUN: tilewright opt %s -p all --verify
// RUN: tilewright opt %s -p convert-ttl-to-compute --verify | filecheck %s --check-prefix COMPUTE

func.func @fused(%a: memref<8x8x!ttcore.tile<32x32,bf16>, #L1>, %b: memref<8x8x!ttcore.tile<32x32,bf16>, #L1>,
                 %c: memref<8x8x!ttcore.tile<32x32,bf16>, #L1>, %out: memref<8x8x!ttcore.tile<32x32,bf16>, #L1>) {
  %result = linalg.generic {
    indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>,
                     affine_map<(d0, d1) -> (d0, d1)>,
                     affine_map<(d0, d1) -> (d0, d1)>,
                     affine_map<(d0, d1) -> (d0, d1)>],
    iterator_types = ["parallel", "parallel"]
  } ins(%a, %b, %c : memref<8x8x!ttcore.tile<32x32,bf16>, #L1>,
                     memref<8x8x!ttcore.tile<32x32,bf16>, #L1>,
                     memref<8x8x!ttcore.tile<32x32,bf16>, #L1>)
    outs(%out : memref<8x8x!ttcore.tile<32x32,bf16>, #L1>) {
  ^bb0(%a_tile: !ttcore.tile<32x32,bf16>,
       %b_tile: !ttcore.tile<32x32,bf16>,
       %c_tile: !ttcore.tile<32x32,bf16>,
       %out_tile: !ttcore.tile<32x32,bf16>):
    %add = ttl.tile_add %a_tile, %b_tile
    %mul = ttl.tile_mul %add, %c_tile
    %exp = ttl.tile_exp %mul
    linalg.yield %exp : !ttcore.tile<32x32,bf16>
  }
  func.return
}

// COMPUTE: ttl.compute
// COMPUTE: ttl.tile_add
// COMPUTE-NEXT: ttl.tile_mul
// COMPUTE-NEXT: ttl.tile_exp

// CHECK: ttkernel.cb_reserve_back(%out, %[[ALL:.*]])
// CHECK: %[[TILES:.*]] = arith.constant 64 : index
// CHECK: %[[STEP:.*]] = arith.constant 8 : index
// CHECK: ttkernel.exp_tile_init()
// CHECK: scf.for %run = %{{.*}} to %[[TILES]] step %[[STEP]]
// CHECK-NEXT: ttkernel.tile_regs_acquire()
// CHECK: ttkernel.add_tiles_init(%a, %b)
// CHECK-NEXT: scf.for
// CHECK: ttkernel.add_tiles(%a, %b,
// CHECK: ttkernel.binary_dest_reuse_tiles_init(%c)
// CHECK-NEXT: scf.for
// CHECK: ttkernel.binary_dest_reuse_tiles(%c,
// CHECK: scf.for
// CHECK: ttkernel.exp_tile(
// CHECK: ttkernel.tile_regs_commit()
// CHECK: ttkernel.tile_regs_wait()
// CHECK: ttkernel.pack_tile_block(%{{.*}}, %out, %{{.*}})
// CHECK-NEXT: ttkernel.tile_regs_release()
// CHECK: ttkernel.cb_push_back(%out, %[[ALL]])
