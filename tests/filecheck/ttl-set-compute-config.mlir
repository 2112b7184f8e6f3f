// bf16 keeps 16-bit DST in two halves; what the user asks for is written as asked.
// RUN: tilewright opt %s -p ttl-set-compute-config --verify | filecheck %s --check-prefix CHECK
// RUN: tilewright opt %s -p ttl-set-compute-config --full-sync --fp32-dest-acc --math-fidelity LoFi | filecheck %s --check-prefix ASKED

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

// CHECK: func.func @add_compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>
// CHECK-SAME: ttl.fp32_dest_acc_en = false
// CHECK-SAME: ttl.dst_full_sync_en = false
// CHECK-SAME: ttl.math_fidelity = "HiFi4"
// CHECK-SAME: ttl.unpack_to_dest = []
// CHECK: ttl.compute ins(

// ASKED: func.func @add_compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>
// ASKED-SAME: ttl.fp32_dest_acc_en = true
// ASKED-SAME: ttl.dst_full_sync_en = true
// ASKED-SAME: ttl.math_fidelity = "LoFi"
