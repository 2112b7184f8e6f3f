"""Wrong statements about blocks, all in one kernel: what `tests/errors` has no files for."""

from __future__ import annotations

FRAME = """from tilewright import ttl


@ttl.operation(grid=(1, 1))
def kernel(lhs, rhs, out):
    a_cb = ttl.make_dataflow_buffer_like(lhs, shape=(2, 2), block_count=2)
    b_cb = ttl.make_dataflow_buffer_like(rhs, shape=(1, 2), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(2, 2), block_count=2)

    @ttl.compute()
    def compute():
        with a_cb.wait() as a, b_cb.wait() as b, out_cb.reserve() as o:
            {statement}

    @ttl.datamovement()
    def read():
        with a_cb.reserve() as blk:
            ttl.copy(lhs[0:2, 0:2], blk).wait()
        with b_cb.reserve() as blk:
            ttl.copy(rhs[0:1, 0:2], blk).wait()

    @ttl.datamovement()
    def write():
        with out_cb.wait() as blk:
            ttl.copy(blk, out[0:2, 0:2]).wait()


TENSORS = [(name, 64, 64, "{dtype}") for name in ("lhs", "rhs", "out")]
"""

# name: dtype of all tensors, the code, the statement with what is wrong in it between backticks, a part of the message
CASES = {
    "attribute_of_arrays": ("bf16", "TW003", "o.store(a @ `a.T`)", "has no 'T'"),
    "element_of_expression": ("bf16", "TW004", "o.store(a * `ttl.read_index(a * 2, 0, 0)`)", "read_index of a block"),
    "element_of_reserved_block": ("bf16", "TW203", "o.store(a * `ttl.read_index(o, 0, 0)`)", "that was reserved"),
    "element_written_in_compute": ("bf16", "TW013", "`ttl.raw_element_write(a, 0, 0, 1.0)`", "in the compute thread"),
    "element_as_operand": ("bf16", "TW004", "o.store(`a * ttl.raw_element_read(a, 0, 0)`)", "an element of bf16"),
    "broadcast_missing_dimension": ("bf16", "TW004", "o.store(a * `ttl.block.broadcast(b, dims=[-3], shape=o.shape)`)", "no dimension -3"),
    "broadcast_other_size": ("bf16", "TW101", "o.store(a + `ttl.math.broadcast(b, dims=[1], shape=(2, 2))`)", "cannot be repeated"),
    "broadcast_to_number": ("bf16", "TW004", "o.store(a - `ttl.block.broadcast(b, dims=[0], shape=2)`)", "shape is 2"),
    "matmul_inner_sizes": ("bf16", "TW101", "o.store(`a @ b`)", "inner sizes of matmul differ"),
    "matmul_with_third_block": ("bf16", "TW004", "o.store(`ttl.math.matmul(a, a, b)`)", "takes two blocks"),
    "reduce_mean_of_number": ("bf16", "TW004", "o.store(a - `ttl.math.reduce_mean(3.0, dims=[1])`)", "takes a block"),
    "reduce_missing_dimension": ("bf16", "TW004", "o.store(a - `ttl.math.reduce_sum(b, dims=[2])`)", "no dimension 2"),
    "reduce_scaler_of_two_tiles": ("bf16", "TW101", "o.store(a - `ttl.math.reduce_sum(a, b, dims=[1])`)", "a scaler of 1x2 tiles"),
    "reduce_with_number": ("bf16", "TW004", "o.store(a - `ttl.math.reduce_sum(a, 0.5, dims=[1])`)", "0.5 is no argument of reduce_sum"),
    "reduce_without_dimension": ("bf16", "TW004", "o.store(a + `ttl.math.reduce_sum(b, dims=[0], keepdims=False)`)", "keepdims=False"),
    "reduction_by_short_name": ("bf16", "TW003", "o.store(a - `ttl.math.sum`(b, dims=[0]))", "ttl.math has no 'sum'"),
    "stored_sum_is_smaller": ("bf16", "TW101", "`o.store(ttl.math.reduce_sum(a, dims=[1]))`", "2x1 tiles is stored into a block of 2x2"),
    "dtype_of_bitwise_op": ("bf16", "TW107", "o.store(`a & 3`)", "bitwise_and does not work on bf16"),
    "dtype_of_matmul": ("i32", "TW107", "o.store(`a @ a`)", "matmul does not work on i32"),
    "dtype_of_op": ("i32", "TW107", "o.store(`ttl.math.exp(a)`)", "exp does not work on i32"),
    "dtype_of_transpose": ("i32", "TW107", "o.store(`ttl.math.transpose(a)`)", "transpose does not work on i32"),
    "scalar_decimals": ("bf16", "TW004", "o.store(`ttl.math.round(a, decimals=9)`)", "'decimals' of round is 9"),
    "scalar_missing": ("bf16", "TW004", "o.store(`ttl.math.clamp(a)`)", "clamp needs 'min'"),
    "scalar_modulo_zero": ("bf16", "TW004", "o.store(`a % 0`)", "division of a block by zero"),
    "scalar_negative_for_unsigned": ("u32", "TW004", "o.store(`a & -1`)", "'scalar' of bitwise_and_scalar is -1"),
    "scalar_not_whole": ("i32", "TW004", "o.store(`a * 1.5`)", "1.5 is no whole number, and the block holds i32"),
    "scalar_power_of_integers": ("i32", "TW004", "o.store(`a**0.5`)", "a power of i32 needs a whole exponent, not 0.5"),
    "scalar_shift_too_far": ("i32", "TW004", "o.store(`a << 40`)", "'scalar' of left_shift_scalar is 40"),
    "scalar_too_large_for_float": ("bf16", "TW004", "o.store(`a * 1e39`)", "'scalar' of mul_scalar is 1e+39, more than float32 holds"),
    "scalar_too_large_for_integer": ("u16", "TW004", "o.store(`a + 70000`)", "a number in a block of u16 is 70000"),
    "typecast_missing": ("i32", "TW107", 'o.store(`ttl.math.typecast(a, "uint32")`)', "no conversion from i32 to u32"),
    "typecast_unknown": ("bf16", "TW004", 'o.store(`ttl.math.typecast(a, "float64")`)', "typecast to 'float64'"),
}  # fmt: skip


def kernel_text(name):
    """The kernel as a file of `tests/errors` would have it, with the comment that says what is expected."""
    dtype, code, statement, message = CASES[name]
    before, wrong, after = statement.split("`")
    marked = f"{before}{wrong}{after}  # error {code} at `{wrong}`: {message}"
    return FRAME.format(statement=marked, dtype=dtype)
