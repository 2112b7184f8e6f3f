"""Whole programs on the simulated machine: values, grids and counts."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import arith, builtin, func, scf
from xdsl.parser import Parser

from tilewright.dialects.attributes import TTCore
from tilewright.dialects.text_input import TTKernel
from tilewright.options import Options
from tilewright.program import BufferSpec, ComputeConfig, Program, TensorSpec, ThreadSpec
from tilewright.sim.numerics import fpu
from tilewright.sim.numerics.formats import widen_bf16
from tilewright.sim.numerics.packer import pack
from tilewright.sim.run import simulate
from tilewright.trace import Trace

BF16_STEP = 2.0**-8  # half a unit in the last place, relative

ADD_2X2 = """
func.func @compute() attributes {ttl.kernel_thread = #ttkernel.thread<compute>} {
  %0 = ttkernel.get_compile_time_arg_val() {index = 0 : i32, name = "lhs", cb_index = 0 : i32} : () -> CB
  %1 = ttkernel.get_compile_time_arg_val() {index = 1 : i32, name = "rhs", cb_index = 1 : i32} : () -> CB
  %2 = ttkernel.get_compile_time_arg_val() {index = 2 : i32, name = "out", cb_index = 2 : i32} : () -> CB
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  ttkernel.cb_wait_front(%0, %c4) : (CB, index) -> ()
  ttkernel.cb_wait_front(%1, %c4) : (CB, index) -> ()
  ttkernel.cb_reserve_back(%2, %c4) : (CB, index) -> ()
  ttkernel.init_sfpu(%0, %2) : (CB, CB) -> ()
  ttkernel.tile_regs_acquire() : () -> ()
  scf.for %arg0 = %c0 to %c2 step %c1 {
    scf.for %arg1 = %c0 to %c2 step %c1 {
      %lin_off = arith.muli %arg0, %c2 : index
      %lin_idx = arith.addi %lin_off, %arg1 : index
      ttkernel.copy_tile_init(%0) : (CB) -> ()
      ttkernel.copy_tile(%0, %lin_idx, %c0) : (CB, index, index) -> ()
      ttkernel.copy_tile_init(%1) : (CB) -> ()
      ttkernel.copy_tile(%1, %lin_idx, %c1) : (CB, index, index) -> ()
      %dst_out = arith.addi %lin_idx, %c2 : index
      ttkernel.add_binary_tile_init() : () -> ()
      ttkernel.add_binary_tile(%c0, %c1, %dst_out) : (index, index, index) -> ()
    }
  }
  ttkernel.tile_regs_commit() : () -> ()
  ttkernel.tile_regs_wait() : () -> ()
  scf.for %arg0 = %c0 to %c2 step %c1 {
    scf.for %arg1 = %c0 to %c2 step %c1 {
      %cb_off = arith.muli %arg0, %c2 : index
      %cb_idx = arith.addi %cb_off, %arg1 : index
      %pack_dst = arith.addi %cb_idx, %c2 : index
      ttkernel.pack_tile(%pack_dst, %2, %cb_idx) {out_of_order = true} : (index, CB, index) -> ()
    }
  }
  ttkernel.tile_regs_release() : () -> ()
  ttkernel.cb_push_back(%2, %c4) : (CB, index) -> ()
  ttkernel.cb_pop_front(%0, %c4) : (CB, index) -> ()
  ttkernel.cb_pop_front(%1, %c4) : (CB, index) -> ()
  func.return
}
func.func @reader() attributes {ttl.kernel_thread = #ttkernel.thread<noc>} {
  %0 = ttkernel.get_compile_time_arg_val() {index = 0 : i32, name = "lhs", cb_index = 0 : i32} : () -> CB
  %1 = ttkernel.get_compile_time_arg_val() {index = 1 : i32, name = "rhs", cb_index = 1 : i32} : () -> CB
  %a = ttkernel.tensor_accessor() {tensor_index = 0 : i32, name = "a"} : () -> !ttkernel.accessor
  %b = ttkernel.tensor_accessor() {tensor_index = 1 : i32, name = "b"} : () -> !ttkernel.accessor
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %bytes = arith.constant 2048 : index
  ttkernel.cb_reserve_back(%0, %c4) : (CB, index) -> ()
  ttkernel.cb_reserve_back(%1, %c4) : (CB, index) -> ()
  %pa = ttkernel.get_write_ptr(%0) : (CB) -> index
  %pb = ttkernel.get_write_ptr(%1) : (CB) -> index
  scf.for %i = %c0 to %c4 step %c1 {
    %offset = arith.muli %i, %bytes : index
    %to_a = arith.addi %pa, %offset : index
    %to_b = arith.addi %pb, %offset : index
    ttkernel.noc_async_read_page(%i, %a, %to_a) : (index, !ttkernel.accessor, index) -> ()
    ttkernel.noc_async_read_page(%i, %b, %to_b) : (index, !ttkernel.accessor, index) -> ()
  }
  ttkernel.noc_async_read_barrier() : () -> ()
  ttkernel.cb_push_back(%0, %c4) : (CB, index) -> ()
  ttkernel.cb_push_back(%1, %c4) : (CB, index) -> ()
  func.return
}
func.func @writer() attributes {ttl.kernel_thread = #ttkernel.thread<noc>} {
  %2 = ttkernel.get_compile_time_arg_val() {index = 0 : i32, name = "out", cb_index = 2 : i32} : () -> CB
  %o = ttkernel.tensor_accessor() {tensor_index = 2 : i32, name = "o"} : () -> !ttkernel.accessor
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %bytes = arith.constant 2048 : index
  ttkernel.cb_wait_front(%2, %c4) : (CB, index) -> ()
  %from = ttkernel.get_read_ptr(%2) : (CB) -> index
  scf.for %i = %c0 to %c4 step %c1 {
    %offset = arith.muli %i, %bytes : index
    %at = arith.addi %from, %offset : index
    ttkernel.noc_async_write_page(%i, %o, %at) : (index, !ttkernel.accessor, index) -> ()
  }
  ttkernel.noc_async_write_barrier() : () -> ()
  ttkernel.cb_pop_front(%2, %c4) : (CB, index) -> ()
  func.return
}
"""


def parse(text):
    context = Context()
    for dialect in (builtin.Builtin, func.Func, arith.Arith, scf.Scf, TTKernel, TTCore):
        context.load_dialect(dialect)
    module = Parser(context, text.replace("CB", "!ttkernel.cb<[2, 2], !ttcore.tile<32x32, bf16>, 2>")).parse_module()
    module.verify()
    return module


def test_stage_six_listing_of_the_two_by_two_add(random_bf16):
    roles = ("compute", "reader", "writer")
    program = Program(
        name="add", options=Options(), module=parse(ADD_2X2), grid=(1, 1), config=ComputeConfig(), cpp={}, trace=Trace(),
        tensors=tuple(TensorSpec(name=name, shape=(64, 64), dtype="bf16") for name in "abo"),
        buffers=tuple(
            BufferSpec(index=index, name=name, shape=(2, 2), dtype="bf16", block_count=2)
            for index, name in enumerate(("lhs", "rhs", "out"))
        ),
        threads=tuple(ThreadSpec(name=role, role=role, function=role) for role in roles),
    )  # fmt: skip
    a, b, out = random_bf16(64, 64), random_bf16(64, 64), random_bf16(64, 64)
    result = simulate(program, [a, b, out])
    exact = a.astype(np.float64) + b.astype(np.float64)
    # add_binary_tile truncates into 16-bit DST: below one unit in the last place.
    assert np.all(np.abs(out.astype(np.float64) - exact) <= np.abs(exact) * 2 * BF16_STEP)
    truncated = (exact.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    assert np.array_equal(out.astype(np.float32), truncated)
    assert result.acquires == 1
    assert result.calls["copy_tile"] == 8
    assert result.calls["pack_tile"] == 4
    assert result.max_dst == 6
    assert result.warnings == ()


FMA = """
def reader():
    for i in range({per}):
        for j in range({per}):
            row = my_core(1) * {per} + i
            col = my_core(0) * {per} + j
            if row < {rows} and col < {cols}:
                page = row * {cols} + col
                cb_reserve_back(a, 1)
                noc_async_read_page(page, A, get_write_ptr(a))
                cb_reserve_back(b, 1)
                noc_async_read_page(page, B, get_write_ptr(b))
                cb_reserve_back(c, 1)
                noc_async_read_page(page, C, get_write_ptr(c))
                noc_async_read_barrier()
                cb_push_back(a, 1)
                cb_push_back(b, 1)
                cb_push_back(c, 1)

def compute():
    binary_op_init_common(a, b, o)
    exp_tile_init()
    for i in range({per}):
        for j in range({per}):
            row = my_core(1) * {per} + i
            col = my_core(0) * {per} + j
            if row < {rows} and col < {cols}:
                cb_wait_front(a, 1)
                cb_wait_front(b, 1)
                cb_wait_front(c, 1)
                tile_regs_acquire()
                mul_tiles_init(a, b)
                mul_tiles(a, b, 0, 0, 3)
                binary_dest_reuse_tiles_init(c, template=("ELWADD", "DEST_TO_SRCA"))
                binary_dest_reuse_tiles(c, 0, 3, template=("ELWADD", "DEST_TO_SRCA"))
                exp_tile(3)
                tile_regs_commit()
                cb_reserve_back(o, 1)
                tile_regs_wait()
                pack_tile(3, o, 0)
                tile_regs_release()
                cb_push_back(o, 1)
                cb_pop_front(a, 1)
                cb_pop_front(b, 1)
                cb_pop_front(c, 1)

def writer():
    for i in range({per}):
        for j in range({per}):
            row = my_core(1) * {per} + i
            col = my_core(0) * {per} + j
            if row < {rows} and col < {cols}:
                cb_wait_front(o, 1)
                noc_async_write_page(row * {cols} + col, O, get_read_ptr(o))
                noc_async_write_barrier()
                cb_pop_front(o, 1)
"""


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize(("grid", "rows", "cols", "per"), [((1, 1), 2, 2, 2), ((4, 4), 7, 6, 2), ((8, 8), 11, 13, 2)])
def test_fused_kernel_on_uneven_grids(make_program, random_bf16, grid, rows, cols, per, fast):
    shape = (rows * 32, cols * 32)
    program = make_program(
        FMA.format(per=per, rows=rows, cols=cols), grid=grid, buffers=[(name, "bf16", 2) for name in "abco"],
        tensors=[(name, "bf16", shape) for name in "ABCO"],
    )  # fmt: skip
    arrays = [random_bf16(*shape) for _ in range(3)]
    out = np.zeros(shape, ml_dtypes.bfloat16)
    result = simulate(program, [*arrays, out], fast=fast)
    a, b, c = (array.astype(np.float64) for array in arrays)
    exact = np.exp(a * b + c)
    # 16-bit DST rounds the product (up to 4) after each of four phases and the sum (up to 6) once, half a step each.
    exponent_error = 4 * 2**-7 + 2**-6
    assert np.max(np.abs(out.astype(np.float64) / exact - 1)) < np.expm1(exponent_error) + 2 * BF16_STEP
    assert result.calls["mul_tiles"] == rows * cols
    assert sum(len(group.cores) for group in result.groups) == grid[0] * grid[1]
    assert result.warnings == ()


def test_batched_cores_give_the_bits_of_single_cores(make_program, random_bf16):
    """The same work on 1 core and on 16 that run as one."""
    shape = (128, 128)
    arrays = [random_bf16(*shape) for _ in range(3)]
    outputs = []
    for grid, per in (((1, 1), 4), ((4, 4), 1), ((2, 2), 2)):
        program = make_program(
            FMA.format(per=per, rows=4, cols=4), grid=grid, buffers=[(name, "bf16", 2) for name in "abco"],
            tensors=[(name, "bf16", shape) for name in "ABCO"],
        )  # fmt: skip
        out = np.zeros(shape, np.uint16)
        result = simulate(program, [*[array.view(np.uint16) for array in arrays], out])
        assert len(result.groups) == 1
        outputs.append(out)
    assert np.array_equal(outputs[0], outputs[1])
    assert np.array_equal(outputs[0], outputs[2])


COPY = """
def reader():
    for page in range({start}, {stop}):
        cb_reserve_back(a, 1)
        noc_async_read_page(page, A, get_write_ptr(a))
        noc_async_read_barrier()
        cb_push_back(a, 1)

def compute():
    init_sfpu(a, o)
    for page in range({start}, {stop}):
        cb_wait_front(a, 1)
        cb_reserve_back(o, 1)
        tile_regs_acquire()
        copy_tile(a, 0, 0)
        tile_regs_commit()
        tile_regs_wait()
        pack_tile(0, o, 0)
        tile_regs_release()
        cb_pop_front(a, 1)
        cb_push_back(o, 1)

def writer():
    for page in range({start}, {stop}):
        cb_wait_front(o, 1)
        noc_async_write_page(page, O, get_read_ptr(o))
        noc_async_write_barrier()
        cb_pop_front(o, 1)
"""


def copy_program(make_program, *, start="0", stop="6", dtype="bf16", out="bf16", tiles=6, **options):
    return make_program(
        COPY.format(start=start, stop=stop), buffers=[("a", dtype, 2), ("o", out, 2)],
        tensors=[("A", dtype, (32, 32 * tiles)), ("O", out, (32, 32 * tiles))], **options,
    )  # fmt: skip


def test_cores_whose_loops_start_elsewhere_run_as_one(make_program, random_bf16):
    program = copy_program(make_program, start="my_core(0) * 3", stop="my_core(0) * 3 + 3", tiles=12, grid=(4, 1))
    data = random_bf16(32, 384)
    out = np.zeros_like(data)
    result = simulate(program, [data, out])
    assert len(result.groups) == 1
    assert np.array_equal(out.view(np.uint16), data.view(np.uint16))


def test_cores_with_different_trip_counts_are_parted(make_program, random_bf16):
    program = copy_program(make_program, start="my_core(0) * 3", stop="min(my_core(0) * 3 + 3, 10)", tiles=12, grid=(4, 1))
    data = random_bf16(32, 384)
    out = np.zeros_like(data)
    result = simulate(program, [data, out])
    assert [len(group.cores) for group in result.groups] == [3, 1]
    assert np.array_equal(out[:, :320].view(np.uint16), data[:, :320].view(np.uint16))
    assert not out[:, 320:].any()


def test_integer_run_time_argument(make_program, random_bf16):
    program = copy_program(make_program, stop="get_arg_val('count')")
    data = random_bf16(32, 192)
    out = np.zeros_like(data)
    simulate(program, [data, out], scalars={"count": 4})
    assert np.array_equal(out[:, :128].view(np.uint16), data[:, :128].view(np.uint16))
    assert not out[:, 128:].any()


def test_float32_through_32_bit_dst_keeps_all_bits_with_unpack_to_dest(make_program):
    program = copy_program(make_program, dtype="f32", out="f32", fp32_dest_acc_en=True, unpack_to_dest=(0,))
    data = np.random.default_rng(3).standard_normal((32, 192)).astype(np.float32)
    out = np.zeros_like(data)
    simulate(program, [data, out])
    assert np.array_equal(out, data)


def test_float32_through_the_source_registers_loses_bits(make_program):
    """tf32 keeps 10 fraction bits with 32-bit DST, bf16 keeps 7 with 16-bit DST; both cut."""
    data = np.random.default_rng(3).standard_normal((32, 192)).astype(np.float32)
    for wide, mask in ((True, 0xFFFFE000), (False, 0xFFFF0000)):
        program = copy_program(make_program, dtype="f32", out="f32", fp32_dest_acc_en=wide)
        out = np.zeros_like(data)
        simulate(program, [data, out])
        assert np.array_equal(out.view(np.uint32), data.view(np.uint32) & np.uint32(mask))


def test_leading_dimensions_are_the_outer_pages(make_program, random_bf16):
    program = make_program(
        COPY.format(start="4", stop="8"), buffers=[("a", "bf16", 2), ("o", "bf16", 2)],
        tensors=[("A", "bf16", (2, 64, 64)), ("O", "bf16", (2, 64, 64))],
    )  # fmt: skip
    data = random_bf16(2, 64, 64)
    out = np.zeros_like(data)
    simulate(program, [data, out])
    assert not out[0].any()
    assert np.array_equal(out[1].view(np.uint16), data[1].view(np.uint16))


def test_float_arrays_are_converted_on_the_way_in_and_out(make_program, random_bf16):
    data = random_bf16(32, 192)
    out = np.zeros((32, 192), np.float64)
    simulate(copy_program(make_program), [data.astype(np.float64), out])
    assert np.array_equal(out, data.astype(np.float64))


MATMUL = """
def reader():
    for k in range(3):
        cb_reserve_back(a, 1)
        cb_reserve_back(b, 2)
        noc_async_read_page(my_core(0) * 3 + k, A, get_write_ptr(a))
        noc_async_read_page(k * 2, B, get_write_ptr(b))
        noc_async_read_page(k * 2 + 1, B, get_write_ptr(b) + 2048)
        noc_async_read_barrier()
        cb_push_back(a, 1)
        cb_push_back(b, 2)

def compute():
    mm_init(a, b, o)
    tile_regs_acquire()
    for k in range(3):
        cb_wait_front(a, 1)
        cb_wait_front(b, 2)
        matmul_tiles(a, b, 0, 0, 0)
        matmul_tiles(a, b, 0, 1, 1)
        cb_pop_front(a, 1)
        cb_pop_front(b, 2)
    tile_regs_commit()
    cb_reserve_back(o, 2)
    tile_regs_wait()
    pack_tile_block(0, o, 2)
    tile_regs_release()
    cb_push_back(o, 2)

def writer():
    cb_wait_front(o, 2)
    noc_async_write_page(my_core(0) * 2, O, get_read_ptr(o))
    noc_async_write_page(my_core(0) * 2 + 1, O, get_read_ptr(o) + 2048)
    noc_async_write_barrier()
    cb_pop_front(o, 2)
"""


@pytest.mark.parametrize(("cores", "fast"), [(1, False), (40, False), (3, True)])
def test_product_of_few_and_of_many_cores(make_program, random_bf16, cores, fast):
    """Deferred products: in a machine of its own arithmetic, and of a batch of cores."""
    program = make_program(
        MATMUL, grid=(cores, 1), buffers=[("a", "bf16", 2), ("b", "bf16", 4), ("o", "bf16", 2)],
        tensors=[("A", "bf16", (32 * cores, 96)), ("B", "bf16", (96, 64)), ("O", "bf16", (32 * cores, 64))],
    )  # fmt: skip
    a, b = random_bf16(32 * cores, 96), random_bf16(96, 64)
    out = np.zeros((32 * cores, 64), ml_dtypes.bfloat16)
    simulate(program, [a, b, out], fast=fast)
    if fast:
        exact = a.astype(np.float64) @ b.astype(np.float64)
        assert np.allclose(out.astype(np.float64), exact, rtol=2**-7, atol=1e-4)
        return
    old = np.zeros((32 * cores, 64), np.uint32)
    expected = fpu.matmul_block(widen_bf16(a.view(np.uint16)), widen_bf16(b.view(np.uint16)), old, dst32=False, erratum=None)
    assert np.array_equal(out.view(np.uint16), pack(expected, "bf16", dst32=False))
