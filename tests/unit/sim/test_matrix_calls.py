"""Products, broadcasts, transposition, reductions and packer modes on the simulated machine."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.diagnostics import KernelError
from tilewright.sim.numerics import fpu
from tilewright.sim.numerics.formats import narrow_bf16, widen_bf16
from tilewright.sim.numerics.packer import pack
from tilewright.sim.run import simulate

LOAD = """
def reader():
    cb_reserve_back(a, {a})
    for i in range({a}):
        noc_async_read_page(i, A, get_write_ptr(a) + i * 2048)
    cb_reserve_back(b, {b})
    for i in range({b}):
        noc_async_read_page(i, B, get_write_ptr(b) + i * 2048)
    noc_async_read_barrier()
    cb_push_back(a, {a})
    cb_push_back(b, {b})

def writer():
    cb_wait_front(o, {o})
    for i in range({o}):
        noc_async_write_page(i, O, get_read_ptr(o) + i * 2048)
    noc_async_write_barrier()
    cb_pop_front(o, {o})

def compute():
    cb_wait_front(a, {a})
    cb_wait_front(b, {b})
    cb_reserve_back(o, {o})
"""

CALLS = {
    "mm_init": "ump", "matmul_tiles": "um", "mm_block_init": "ump", "matmul_block": "um", "transpose_wh_init_short": "um",
    "transpose_wh_tile": "um", "reduce_init": "ump", "reduce_tile": "um", "reduce_uninit": "p", "pack_relu_config": "p",
    "pack_reconfig_l1_acc": "p", "unary_bcast_init": "ump", "unary_bcast": "um", "mul_bcast_cols_init_short": "um",
    "mul_tiles_bcast_cols": "um", "sub_bcast_rows_init_short": "um", "sub_tiles_bcast_rows": "um",
    "add_tiles_bcast_scalar_init_short": "um", "add_tiles_bcast_scalar": "um", "sub_bcast_cols_init_short": "um",
}  # fmt: skip


@pytest.fixture
def run(make_program, extra_calls, random_bf16):
    """Runs compute lines on A and B and returns inputs and output as [tile, 32, 32]."""
    extra_calls(**CALLS)

    def start(lines, *, a=1, b=1, o=1, fast=False, **config):
        body = "".join(f"    {line}\n" for line in lines.strip().splitlines())
        text = LOAD.format(a=a, b=b, o=o) + body + f"    cb_push_back(o, {o})\n"
        program = make_program(
            text, buffers=[("a", "bf16", a), ("b", "bf16", b), ("o", "bf16", o)],
            tensors=[("A", "bf16", (a, 32, 32)), ("B", "bf16", (b, 32, 32)), ("O", "bf16", (o, 32, 32))], **config,
        )  # fmt: skip
        left, right = random_bf16(a, 32, 32), random_bf16(b, 32, 32)
        out = np.zeros((o, 32, 32), ml_dtypes.bfloat16)
        simulate(program, [left, right, out], fast=fast)
        return left, right, out

    return start


def bits(array):
    return widen_bf16(array.view(np.uint16))


def test_matmul_accumulates_tile_by_tile(run):
    lines = """
mm_init(a, b, o)
tile_regs_acquire()
matmul_tiles(a, b, 0, 0, 0)
matmul_tiles(a, b, 1, 1, 0)
tile_regs_commit()
tile_regs_wait()
pack_tile(0, o, 0)
tile_regs_release()
"""
    a, b, out = run(lines, a=2, b=2)
    zero = np.zeros((32, 32), np.uint32)
    first = fpu.matmul(bits(a)[0], bits(b)[0], zero, dst32=False, erratum=None)
    both = fpu.matmul(bits(a)[1], bits(b)[1], first, dst32=False, erratum=None)
    assert np.array_equal(out.view(np.uint16)[0], pack(both, "bf16", dst32=False))
    a, b, out = run(lines, a=2, b=2, fast=True)
    exact = sum(a[k].astype(np.float64) @ b[k].astype(np.float64) for k in range(2))
    assert np.allclose(out[0].astype(np.float64), exact, rtol=2**-8, atol=1e-5)


def test_matmul_block_equals_its_tiles(run):
    """2x2 output tiles, one k step, in1 transposed."""
    block = """
mm_block_init(a, b, o, rt=2, ct=2, kt=3, transpose=1)
tile_regs_acquire()
matmul_block(a, b, 1, 0, 0, rt=2, ct=2, kt=3, transpose=1)
matmul_block(a, b, 2, 2, 0, rt=2, ct=2, kt=3, transpose=1)
tile_regs_commit()
tile_regs_wait()
pack_tile_block(0, o, 4)
tile_regs_release()
"""
    a, b, out = run(block, a=6, b=4, o=4, fp32_dest_acc_en=True)
    for row in range(2):
        for col in range(2):
            tile = np.zeros((32, 32), np.uint32)
            for step in range(2):
                left = bits(a)[1 + step + row * 3]
                tile = fpu.matmul(left, bits(b)[2 * step + col], tile, dst32=True, erratum=fpu.Erratum(), transpose=True)
            expected = pack(tile, "bf16", dst32=True)
            assert np.array_equal(out.view(np.uint16)[row * 2 + col], expected)


WRONG_SHAPE = """
mm_block_init(a, b, o, rt=1, ct=2, kt=1)
tile_regs_acquire()
matmul_block(a, b, 0, 0, 0, rt=1, ct=1, kt=1)
tile_regs_commit()
"""


def test_product_with_the_init_of_another_shape(run):
    with pytest.raises(KernelError) as caught:
        run(WRONG_SHAPE)
    assert caught.value.diagnostics[0].code == "TW503"


SECTION = """
binary_op_init_common(a, b, o)
{init}
tile_regs_acquire()
{call}
tile_regs_commit()
tile_regs_wait()
pack_tile(0, o, 0)
tile_regs_release()
"""


@pytest.mark.parametrize(
    ("init", "call", "meaning"),
    [
        ("mul_bcast_cols_init_short(a, b)", "mul_tiles_bcast_cols(a, b, 0, 0, 0)", lambda a, b: a * b[:, :, :1]),
        ("sub_bcast_rows_init_short(a, b)", "sub_tiles_bcast_rows(a, b, 0, 0, 0)", lambda a, b: a - b[:, :1, :]),
        ("add_tiles_bcast_scalar_init_short(a, b)", "add_tiles_bcast_scalar(a, b, 0, 0, 0)", lambda a, b: a + b[:, :1, :1]),
        ("unary_bcast_init(b, template=('BroadcastType::COL',))", "unary_bcast(b, 0, 0, template=('BroadcastType::COL',))",
         lambda a, b: np.broadcast_to(b[:, :, :1], b.shape)),
        ("transpose_wh_init_short(a)", "transpose_wh_tile(a, 0, 0)", lambda a, b: np.swapaxes(a, 1, 2)),
        ("mul_tiles_init(a, b)", "mul_tiles(a, b, 0, 0, 0)\nmul_tiles(a, a, 0, 0, 0)", lambda a, b: a * b + a * a),
        ("add_tiles_init(a, b, acc_to_dest=True)", "add_tiles(a, b, 0, 0, 0)\nadd_tiles(b, b, 0, 0, 0)", lambda a, b: a + 3 * b),
        ("sub_tiles_init(a, b)", "sub_tiles(a, a, 0, 0, 0)\nsub_tiles(a, b, 0, 0, 0)", lambda a, b: a - b),
    ],
)  # fmt: skip
@pytest.mark.parametrize("fast", [False, True])
def test_matrix_unit_on_two_buffers(run, init, call, meaning, fast):
    a, b, out = run(SECTION.format(init=init, call=call), fast=fast, fp32_dest_acc_en=True)
    exact = meaning(a.astype(np.float64), b.astype(np.float64))
    # Each FPU add keeps 11 bits of its operands, which are below 8 here.
    assert np.allclose(out.astype(np.float64), exact, rtol=2**-8, atol=4 * 2**-9)


@pytest.mark.parametrize("side", ["SRCA", "SRCB"])
@pytest.mark.parametrize("kind", ["ADD", "SUB", "MUL"])
def test_reuse_of_dst_on_either_side(run, kind, side):
    template = f"template=('EltwiseBinaryType::ELW{kind}', 'EltwiseBinaryReuseDestType::DEST_TO_{side}')"
    lines = f"copy_tile(a, 0, 0)\nbinary_dest_reuse_tiles_init(b, {template})\nbinary_dest_reuse_tiles(b, 0, 0, {template})"
    a, b, out = run(SECTION.format(init="copy_tile_init(a)", call=lines))
    first, second = (a, b) if side == "SRCA" else (b, a)
    operation = {"ADD": fpu.elwadd, "SUB": fpu.elwsub, "MUL": fpu.elwmul}[kind]
    expected = operation(bits(first), bits(second), np.zeros((1, 32, 32), np.uint32), dst32=False, erratum=None, accumulate=kind == "MUL")
    assert np.array_equal(out.view(np.uint16), pack(expected, "bf16", dst32=False))


def test_reuse_with_the_wrong_side(run):
    init = "binary_dest_reuse_tiles_init(b, template=('ELWADD', 'DEST_TO_SRCB'))"
    lines = f"copy_tile(a, 0, 0)\n{init}\nbinary_dest_reuse_tiles(b, 0, 0, template=('ELWADD', 'DEST_TO_SRCA'))"
    with pytest.raises(KernelError) as caught:
        run(SECTION.format(init="copy_tile_init(a)", call=lines))
    assert caught.value.diagnostics[0].code == "TW503"


@pytest.mark.parametrize("dim", ["row", "col", "scalar"])
@pytest.mark.parametrize("pool", ["SUM", "MAX"])
def test_reduce_is_masked_until_uninit(run, pool, dim):
    words = f"template=('PoolType::{pool}', 'ReduceDim::REDUCE_{dim.upper()}')"
    lines = SECTION.format(init=f"reduce_init(a, b, o, {words})", call=f"reduce_tile(a, b, 0, 0, 0, {words})")
    a, b, out = run(lines + "reduce_uninit()\n")
    zero = np.zeros((1, 32, 32), np.uint32)
    expected = fpu.reduce(pool.lower(), dim, bits(a), bits(b), zero, dst32=False, erratum=None, fresh=True)
    kept = {"row": (slice(None), slice(0, 1)), "col": (slice(0, 1), slice(None)), "scalar": (slice(0, 1), slice(0, 1))}[dim]
    masked = np.zeros_like(zero)
    masked[(0, *kept)] = expected[(0, *kept)]
    assert np.array_equal(out.view(np.uint16), pack(masked, "bf16", dst32=False))
    assert np.count_nonzero(out) > 0


def test_packer_relu_and_l1_accumulation(run):
    lines = """
init_sfpu(a, o)
tile_regs_acquire()
copy_tile(a, 0, 0)
copy_tile(b, 0, 1)
tile_regs_commit()
tile_regs_wait()
pack_relu_config(mode="zero")
pack_tile(0, o, 0, out_of_order=True)
pack_relu_config(mode="none")
pack_reconfig_l1_acc(1)
pack_tile(1, o, 0, out_of_order=True)
pack_reconfig_l1_acc(0)
tile_regs_release()
"""
    a, b, out = run(lines)
    exact = np.maximum(a.astype(np.float64), 0) + b.astype(np.float64)
    assert np.array_equal(out, exact.astype(np.float32).astype(ml_dtypes.bfloat16))


def test_accumulation_onto_a_tile_nobody_wrote(run):
    with pytest.raises(KernelError) as caught:
        run(SECTION.format(init="copy_tile_init(a)\npack_reconfig_l1_acc(1)", call="copy_tile(a, 0, 0)"))
    assert caught.value.diagnostics[0].code == "TW512"


def test_copy_between_dst_slots(run):
    lines = "copy_tile(a, 0, 3)\ncopy_dest_values_init()\ncopy_dest_values(0, 3)\nexp_tile_init()\nexp_tile(3)"
    a, _, out = run(SECTION.format(init="copy_tile_init(a)", call=lines))
    assert np.array_equal(out.view(np.uint16), narrow_bf16(bits(a)))


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("dim", ["row", "col"])
@pytest.mark.parametrize("kind", ["add", "sub", "mul"])
@pytest.mark.parametrize("fast", [False, True])
def test_vector_unit_repeats_a_row_or_column(run, kind, dim, wide, fast):
    name = f"sfpu_{kind}_bcast_{dim}"
    lines = f"copy_tile(a, 0, 0)\ncopy_tile(b, 0, 1)\n{name}_init()\n{name}(0, 1)"
    a, b, out = run(SECTION.format(init="copy_tile_init(a)", call=lines), fp32_dest_acc_en=wide, fast=fast)
    line = b[:, :1, :] if dim == "row" else b[:, :, :1]
    left, right = a.astype(np.float64), line.astype(np.float64)
    exact = {"add": left + right, "sub": left - right, "mul": left * right}[kind].astype(np.float32)
    if fast or wide:
        # The packer rounds half away, the host half to even; these inputs have no ties that differ by more than one step.
        assert np.allclose(out.astype(np.float32), exact, rtol=2**-8)
    else:
        cut = (exact.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
        assert np.array_equal(out.astype(np.float32), cut)


@pytest.mark.parametrize("fast", [False, True])
def test_row_sum_with_a_filled_scaler(make_program, random_bf16, fast):
    text = """
def reader():
    cb_reserve_back(s, 1)
    fill_scaler(s, value=1.0)
    cb_push_back(s, 1)
    cb_reserve_back(a, 1)
    noc_async_read_page(0, A, get_write_ptr(a))
    noc_async_read_barrier()
    cb_push_back(a, 1)

def compute():
    cb_wait_front(s, 1)
    cb_wait_front(a, 1)
    cb_reserve_back(o, 1)
    binary_op_init_common(s, a, o)
    reduce_init(a, s, o, template=("PoolType::SUM", "ReduceDim::REDUCE_ROW"))
    tile_regs_acquire()
    reduce_tile(a, s, 0, 0, 0, template=("PoolType::SUM", "ReduceDim::REDUCE_ROW"))
    tile_regs_commit()
    tile_regs_wait()
    pack_tile(0, o, 0)
    tile_regs_release()
    reduce_uninit()
    cb_push_back(o, 1)
    cb_pop_front(a, 1)
    cb_pop_front(s, 1)

def writer():
    cb_wait_front(o, 1)
    noc_async_write_page(0, O, get_read_ptr(o))
    noc_async_write_barrier()
    cb_pop_front(o, 1)
"""
    program = make_program(
        text, buffers=[("a", "bf16", 1), ("s", "bf16", 1), ("o", "bf16", 1)], fp32_dest_acc_en=True,
        tensors=[("A", "bf16", (32, 32)), ("O", "bf16", (32, 32))],
    )  # fmt: skip
    data = random_bf16(32, 32, low=0.5, high=2.0)
    out = np.ones((32, 32), ml_dtypes.bfloat16)
    simulate(program, [data, out], fast=fast)
    exact = data.astype(np.float64).sum(axis=1)
    assert np.allclose(out[:, 0].astype(np.float64), exact, rtol=2**-7)
    assert not out[:, 1:].any()
