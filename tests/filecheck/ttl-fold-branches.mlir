// What a branch around it decides is not asked again, nor what no core of the grid can be.
// RUN: tilewright opt %s -p ttl-fold-branches --grid 2x1 --verify

func.func @move() attributes {ttl.kernel_thread = #ttkernel.thread<noc>, ttl.role = "reader"} {
  %x = ttl.bind_cb{cb_index = 0, buffer_factor = 2, name = "x"} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %y = ttl.bind_cb{cb_index = 1, buffer_factor = 2, name = "y"} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %z = ttl.bind_cb{cb_index = 2, buffer_factor = 2, name = "z"} : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
  %column, %row = ttl.core : index, index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %first = arith.cmpi eq, %column, %c0 : index
  scf.if %first {
    scf.if %first {
      %b0 = ttl.cb_reserve %x : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
      ttl.cb_push %x : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
    }
  } else {
    %second = arith.cmpi eq, %column, %c1 : index
    scf.if %second {
      %b = ttl.cb_reserve %y : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
      ttl.cb_push %y : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
    } else {
      %c = ttl.cb_reserve %z : <[1, 1], !ttcore.tile<32x32, bf16>, 2> -> tensor<1x1x!ttcore.tile<32x32, bf16>>
      ttl.cb_push %z : <[1, 1], !ttcore.tile<32x32, bf16>, 2>
    }
  }
  return
}

// CHECK-LABEL: func.func @move
// CHECK: scf.if %first {
// CHECK-NEXT: %b0 = ttl.cb_reserve %x
// CHECK-NEXT: ttl.cb_push %x
// CHECK-NEXT: } else {
// CHECK-NEXT: %b = ttl.cb_reserve %y
// CHECK-NEXT: ttl.cb_push %y
// CHECK-NEXT: }
// CHECK-NEXT: func.return
