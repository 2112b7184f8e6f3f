// Two tables of the same numbers are one argument, under the first name; another table keeps its own.
// RUN: tilewright opt %s -p ttkernel-share-tables --verify

func.func @read() attributes {ttl.kernel_thread = #ttkernel.thread<noc>, ttl.role = "reader"} {
  %0 = ttkernel.core_table() {name = "from_x", values = [[0 : i32], [1 : i32]]} : () -> index
  %1 = ttkernel.core_table() {name = "to_x", values = [[0 : i32], [1 : i32]]} : () -> index
  %2 = ttkernel.core_table() {name = "from_y", values = [[1 : i32], [1 : i32]]} : () -> index
  return
}

// CHECK: ttkernel.core_table() {name = "from_x"
// CHECK-NEXT: ttkernel.core_table() {name = "from_x"
// CHECK-NEXT: ttkernel.core_table() {name = "from_y"
