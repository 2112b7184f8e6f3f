// Two reductions of bf16 share one tile of ones, which a data-movement thread makes; one with a scaler of its own keeps it.
// RUN: tilewright opt %s -p ttl-place-scalers --verify

func.func @compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {
  %a = ttl.bind_cb{cb_index = 0, buffer_factor = 1} : <[1, 1], !ttcore.tile<32x32, bf16>, 1>
  %out = ttl.bind_cb{cb_index = 1, buffer_factor = 1} : <[1, 1], !ttcore.tile<32x32, bf16>, 1>
  %a_raw = ttl.cb_wait %a : <[1, 1], !ttcore.tile<32x32, bf16>, 1> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %x = ttl.attach_cb %a_raw, %a : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 1> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %o_raw = ttl.cb_reserve %out : <[1, 1], !ttcore.tile<32x32, bf16>, 1> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %o = ttl.attach_cb %o_raw, %out : tensor<1x1x!ttcore.tile<32x32, bf16>>, !ttl.cb<[1, 1], !ttcore.tile<32x32, bf16>, 1> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %sum = ttl.reduce %x {kind = "sum", dims = [1]} : tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %max = ttl.reduce %x {kind = "max", dims = [1]} : tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %own = ttl.reduce %x, %x {kind = "sum", dims = [1]} : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %some = ttl.add %sum, %max : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  %all = ttl.add %some, %own : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.store %all, %o : tensor<1x1x!ttcore.tile<32x32, bf16>>, tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.cb_push %out : <[1, 1], !ttcore.tile<32x32, bf16>, 1>
  ttl.cb_pop %a : <[1, 1], !ttcore.tile<32x32, bf16>, 1>
  return
}

func.func @write() attributes {ttl.kernel_thread = #ttkernel.thread<noc>} {
  %out = ttl.bind_cb{cb_index = 1, buffer_factor = 1} : <[1, 1], !ttcore.tile<32x32, bf16>, 1>
  %b = ttl.cb_wait %out : <[1, 1], !ttcore.tile<32x32, bf16>, 1> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
  ttl.cb_pop %out : <[1, 1], !ttcore.tile<32x32, bf16>, 1>
  return
}

// CHECK-LABEL: func.func @compute
// CHECK: [[BUFFER:%[a-z0-9_]+]] = ttl.bind_cb{cb_index = 2{{.*}}name = "ones_bf16"
// CHECK: [[RAW:%[a-z0-9_]+]] = ttl.cb_wait [[BUFFER]]
// CHECK-NEXT: [[ONES:%[a-z0-9_]+]] = ttl.attach_cb [[RAW]]
// CHECK: [[X:%[a-z0-9_]+]] = ttl.attach_cb
// CHECK: ttl.reduce [[X]], [[ONES]] {{.*}}sum
// CHECK-NEXT: ttl.reduce [[X]], [[ONES]] {{.*}}max
// CHECK-NEXT: ttl.reduce [[X]], [[X]]
// CHECK: ttl.cb_pop [[BUFFER]]
// CHECK-LABEL: func.func @write
// CHECK: ttl.fill_scaler {{.*}}pattern = "faces"
