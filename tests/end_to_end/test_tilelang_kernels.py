"""TileLang kernels of every kind on many cores against NumPy, in the simulator; the examples as they stand, also natively."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilelang_runs import uniform
from tilewright import execution, tilelang
from tilewright.cli.invocation import run_script

T = tilelang.language

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "tilelang").glob("*.py"))
LARGEST_ERROR = {
    "01_elementwise_add": 2**-6, "02_gemm": 0.15, "03_gemm_bias_relu": 0.13, "04_row_softmax": 1e-4, "05_online_softmax": 1e-4,
    "06_normalisation": 2e-3, "07_flash_attention": 1e-2, "08_linear_attention": 0.04, "09_dynamic_rows": 0.04, "10_retention": 0.04,
    "11_convolution": 0.13, "12_split_sums": 0.04,
}  # fmt: skip


@pytest.mark.parametrize("mode", ["sim", "native"])
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_give_right_numbers(example: Path, mode: str, capsys: pytest.CaptureFixture[str]):
    with execution.session(mode=mode):
        run_script(str(example), [])
    errors = [float(number) for number in re.findall(r"largest error ([\d.e+-]+)", capsys.readouterr().out)]
    assert errors and max(errors) < LARGEST_ERROR[example.stem]


def wide(array: Any) -> Any:
    return array.astype(np.float32)


def close(found: Any, wanted: Any, tolerance: float) -> bool:
    return bool(np.abs(wide(found) - wanted).max() <= tolerance)


def test_more_blocks_than_cores_with_a_rest():
    @T.prim_func
    def kernel(A, C):
        with T.Kernel(10, 13) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], x)
            for i, j in T.Parallel(32, 32):
                x[i, j] = T.exp(x[i, j]) + 1
            T.copy(x, C[by * 32, bx * 32])

    a, c = uniform(416, 320), np.zeros((416, 320), np.float32)
    kernel(a, c)
    assert kernel.compile(a, c).grid == (8, 8)
    assert close(c, np.exp(a) + 1, 1e-6)


def test_three_grid_dimensions():
    @T.prim_func
    def kernel(A, C):
        with T.Kernel(2, 3, 4) as (bx, by, bz):
            x = T.alloc_fragment((32, 64), "float32")
            T.copy(A[bz, by * 32, bx * 64], x)
            x = x * 2.0 - 1.0
            T.copy(x, C[bz, by * 32, bx * 64])

    a, c = uniform(4, 96, 128), np.zeros((4, 96, 128), np.float32)
    kernel(a, c)
    assert close(c, a * 2 - 1, 1e-6)


def test_elements_of_tensors_masks_and_lets():
    @T.prim_func
    def kernel(A, B, C):
        with T.Kernel(4, 4) as (bx, by):
            for i, j in T.Parallel(32, 32):
                x = A[by * 32 + i, bx * 32 + j] * 2.0
                y = T.sigmoid(B[by * 32 + i, bx * 32 + j])
                C[by * 32 + i, bx * 32 + j] = T.if_then_else(by * 32 + i > bx * 32 + j, x + y, T.abs(x) - y)

    a, b, c = uniform(128, 128), uniform(128, 128, seed=1), np.zeros((128, 128), np.float32)
    kernel(a, b, c)
    row, column = np.indices(a.shape)
    s = 1 / (1 + np.exp(-b))
    assert close(c, np.where(row > column, 2 * a + s, abs(2 * a) - s), 1e-5)


def test_conditional_stores_transposes_and_reductions():
    @T.prim_func
    def kernel(A, C, R, M):
        with T.Kernel(2) as bx:
            a = T.alloc_fragment((64, 64), "float32")
            t = T.alloc_fragment((64, 64), "float32")
            r = T.alloc_fragment((64,), "float32")
            m = T.alloc_fragment((64,), "float32")
            T.copy(A[bx * 64 : (bx + 1) * 64, 0:64], a)
            T.reduce_absmax(a, r, dim=1)
            T.reduce_min(a, m, dim=0)
            for i, j in T.Parallel(64, 64):
                t[i, j] = a[j, i]
                if a[i, j] < 0 and i < 32:
                    t[i, j] = 5.0
                else:
                    t[i, j] = t[i, j] + 1
            T.copy(t, C[bx * 64 : (bx + 1) * 64, 0:64])
            T.copy(r, R[bx * 64 : (bx + 1) * 64])
            T.copy(m, M[bx, 0:64])

    a, c = uniform(128, 64), np.zeros((128, 64), np.float32)
    r, m = np.zeros(128, np.float32), np.zeros((2, 64), np.float32)
    kernel(a, c, r, m)
    for block in range(2):
        x = a[block * 64 : block * 64 + 64]
        row, _ = np.indices(x.shape)
        assert close(c[block * 64 : block * 64 + 64], np.where((x < 0) & (row < 32), 5.0, x.T + 1), 1e-3)
        assert close(r[block * 64 : block * 64 + 64], abs(x).max(1), 1e-3)
        assert close(m[block], x.min(0), 1e-3)


def test_loaded_vector_as_a_column():
    @T.prim_func
    def kernel(A, S, C):
        with T.Kernel(2) as bx:
            x = T.alloc_fragment((64, 64), "float32")
            s = T.alloc_fragment((64,), "float32")
            T.copy(A[bx * 64, 0], x)
            T.copy(S[bx * 64], s)
            for i, j in T.Parallel(64, 64):
                x[i, j] = x[i, j] * s[i]
            T.copy(x, C[bx * 64, 0])

    a, s, c = uniform(128, 64), uniform(128, seed=1), np.zeros((128, 64), np.float32)
    kernel(a, s, c)
    assert close(c, a * s[:, None], 2e-3)


def test_branch_around_copies_and_products():
    @T.prim_func
    def kernel(A, B, C):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_shared((32, 32), "bfloat16")
            y = T.alloc_shared((32, 32), "bfloat16")
            acc = T.alloc_fragment((32, 32), "float32")
            T.fill(acc, 1.0)
            for k in T.serial(4):
                if k <= by:
                    T.copy(A[by * 32, k * 32], x)
                    T.copy(B[k * 32, bx * 32], y)
                    T.gemm(x, y, acc)
            T.copy(acc, C[by * 32, bx * 32])

    a, b = uniform(64, 128, dtype=ml_dtypes.bfloat16), uniform(128, 64, dtype=ml_dtypes.bfloat16, seed=1)
    c = np.zeros((64, 64), np.float32)
    kernel(a, b, c)
    parts = [wide(a)[:32, :32] @ wide(b)[:32], wide(a)[32:, :64] @ wide(b)[:64]]
    assert close(c, np.vstack(parts) + 1, 1e-2)


def test_a_fragment_that_both_branches_write_is_not_carried_into_them():
    """Its block was given back after the store before; nothing of it may be kept for the branches."""

    @T.prim_func
    def kernel(A, C):
        with T.Kernel(3) as bx:
            b = T.alloc_fragment((64, 64), "float32")
            T.fill(b, 0.5)
            if bx < 2:
                T.copy(b, C[bx * 64, 0])
                if bx < 1:
                    T.copy(A[bx * 64, 0], b)
                else:
                    T.copy(A[bx * 64, 64], b)
            T.copy(b, C[bx * 64, 64])

    a, c = uniform(192, 128, dtype=np.float32), np.zeros((192, 128), np.float32)
    kernel(a, c)
    expected = np.zeros((192, 128), np.float32)
    expected[:128, :64] = 0.5
    expected[:64, 64:], expected[64:128, 64:], expected[128:, 64:] = a[:64, :64], a[64:128, 64:], 0.5
    assert (c == expected).all()



@pytest.mark.parametrize("cleared", ["first", "before", "initial value"])
def test_ways_to_start_a_sum(cleared: str):
    @T.prim_func
    def kernel(A, B, C):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_shared((32, 32), "bfloat16")
            y = T.alloc_shared((32, 32), "bfloat16")
            acc = T.alloc_fragment((32, 32), "float32")
            if cleared != "first":
                T.fill(acc, 0.0 if cleared == "before" else 3.0)
            for k in T.serial(4):
                T.copy(A[by * 32, k * 32], x)
                T.copy(B[k * 32, bx * 32], y)
                T.gemm(x, y, acc, clear_accum=(k == 0) if cleared == "first" else False)
            T.copy(acc, C[by * 32, bx * 32])

    a, b = uniform(64, 128, dtype=ml_dtypes.bfloat16), uniform(128, 64, dtype=ml_dtypes.bfloat16, seed=1)
    c = np.zeros((64, 64), np.float32)
    kernel(a, b, c)
    assert close(c, wide(a) @ wide(b) + (3 if cleared == "initial value" else 0), 1e-2)


def test_nested_loops_and_two_sums():
    @T.prim_func
    def kernel(A, B, C, D):
        with T.Kernel(2, 2) as (bx, by):
            x = T.alloc_shared((32, 32), "bfloat16")
            y = T.alloc_shared((32, 32), "bfloat16")
            acc = T.alloc_fragment((32, 32), "float32")
            squares = T.alloc_fragment((32, 32), "float32")
            T.clear(acc)
            T.clear(squares)
            for outer in T.serial(2):
                for inner in T.serial(2):
                    T.copy(A[by * 32, (outer * 2 + inner) * 32], x)
                    T.copy(B[(outer * 2 + inner) * 32, bx * 32], y)
                    T.gemm(x, y, acc)
                    for i, j in T.Parallel(32, 32):
                        squares[i, j] += x[i, j] * x[i, j]
            T.copy(acc, C[by * 32, bx * 32])
            for i, j in T.Parallel(32, 32):
                squares[i, j] = T.sqrt(squares[i, j])
            T.copy(squares, D[by * 32, bx * 32])

    a, b = uniform(64, 128, dtype=ml_dtypes.bfloat16), uniform(128, 64, dtype=ml_dtypes.bfloat16, seed=1)
    c, d = np.zeros((64, 64), np.float32), np.zeros((64, 64), np.float32)
    kernel(a, b, c, d)
    assert close(c, wide(a) @ wide(b), 1e-2)
    assert close(d, np.tile(np.sqrt((wide(a).reshape(64, 4, 32) ** 2).sum(1)), (1, 2)), 1e-3)


def test_fragment_that_is_loaded_again_while_its_value_is_needed():
    @T.prim_func
    def kernel(A, C):
        with T.Kernel(2) as bx:
            x = T.alloc_shared((32, 32), "float32")
            y = T.alloc_fragment((32, 32), "float32")
            T.copy(A[bx * 32, 0], x)
            y = x * x
            T.copy(A[bx * 32, 32], x)
            y = y + x
            T.copy(A[bx * 32, 64], x)
            y = y * x
            T.copy(y, C[bx * 32, 0])

    a, c = uniform(64, 96), np.zeros((64, 32), np.float32)
    kernel(a, c)
    assert close(c, (a[:, :32] ** 2 + a[:, 32:64]) * a[:, 64:], 2e-3)


def test_eager_style():
    @tilelang.jit
    def gemm(A, B, block: int = 64, depth: int = 32):
        M, N, K = T.const("M, N, K")
        A: T.Tensor[[M, K], T.bfloat16]
        B: T.Tensor[[K, N], T.bfloat16]
        C = T.empty((M, N), T.float32)
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            x = T.alloc_shared((block, depth), A.dtype)
            y = T.alloc_shared((depth, block), B.dtype)
            acc = T.alloc_fragment((block, block), T.float32)
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(K, depth), num_stages=2):
                T.copy(A[by * block, k * depth], x)
                T.copy(B[k * depth, bx * block], y)
                T.gemm(x, y, acc)
            T.copy(acc, C[by * block, bx * block])
        return C

    a, b = uniform(128, 96, dtype=ml_dtypes.bfloat16), uniform(96, 192, dtype=ml_dtypes.bfloat16, seed=1)
    c = gemm(a, b)
    assert c.shape == (128, 192) and c.dtype == np.float32
    assert close(c, wide(a) @ wide(b), 1e-2)


def test_pipeline_depth_is_buffer_depth():
    @T.prim_func
    def kernel(A, C):
        with T.Kernel(2) as bx:
            x = T.alloc_shared((32, 32), "float32")
            total = T.alloc_fragment((32, 32), "float32")
            T.clear(total)
            for k in T.Pipelined(4, num_stages=3):
                T.copy(A[bx * 32, k * 32], x)
                for i, j in T.Parallel(32, 32):
                    total[i, j] += x[i, j]
            T.copy(total, C[bx * 32, 0])

    a, c = uniform(64, 128), np.zeros((64, 32), np.float32)
    kernel(a, c)
    buffers = {buffer.name: buffer.block_count for buffer in kernel.compile(a, c).buffers}
    assert buffers["x"] == 3
    assert close(c, a.reshape(64, 4, 32).sum(1), 1e-5)


def test_sub_blocked_sum_is_kept_in_l1_with_its_own_precision():
    """A 128x128 sum in float32 is 16 tiles, DST holds 4: the packer adds up in a float32 buffer, not in the bfloat16 output."""
    program = gemm_512().compile()
    kept = [buffer for buffer in program.buffers if buffer.name == "C_local_kept"]
    assert [(buffer.shape, buffer.dtype) for buffer in kept] == [((4, 4), "f32")]
    assert "pack_reconfig_l1_acc(k != 0 ? 1 : 0)" in program.cpp["compute"]


def gemm_512() -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((512, 512), "bfloat16"), B: T.Tensor((512, 512), "bfloat16"), C: T.Tensor((512, 512), "bfloat16")):
        with T.Kernel(4, 4) as (bx, by):
            A_shared = T.alloc_shared((128, 32), "bfloat16")
            B_shared = T.alloc_shared((32, 128), "bfloat16")
            C_local = T.alloc_fragment((128, 128), "float")
            T.clear(C_local)
            for k in T.Pipelined(16, num_stages=3):
                T.copy(A[by * 128, k * 32], A_shared)
                T.copy(B[k * 32, bx * 128], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * 128, bx * 128])

    return kernel


def test_gemm_512():
    a, b = uniform(512, 512, dtype=ml_dtypes.bfloat16), uniform(512, 512, dtype=ml_dtypes.bfloat16, seed=1)
    results: list[Any] = []
    for mode in ("sim", "native"):
        c = np.zeros((512, 512), ml_dtypes.bfloat16)
        with execution.session(mode=mode):
            gemm_512()(a, b, c)
        results.append(c)
    assert close(results[0], wide(a) @ wide(b), 0.13)
    assert results[0].tobytes() == results[1].tobytes()
    assert np.prod(gemm_512().compile(a, b, c).grid) == 16


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize(("left", "right"), [(False, False), (False, True), (True, False), (True, True)])
def test_transposed_operands(left: bool, right: bool, dtype: str):
    shape_a, shape_b = ((128, 96) if left else (96, 128)), ((64, 128) if right else (128, 64))

    @T.prim_func
    def kernel(A, B, C):
        with T.Kernel(2, 1) as (bx, _):
            x = T.alloc_shared(shape_a, dtype)
            y = T.alloc_shared(shape_b, dtype)
            z = T.alloc_fragment((96, 64), "float32")
            T.copy(A, x)
            T.copy(B[bx * 64, 0] if right else B[0, bx * 64], y)
            T.gemm(x, y, z, transpose_A=left, transpose_B=right, clear_accum=True)
            T.copy(z, C[0, bx * 64])

    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.float32
    a, b = uniform(*shape_a, dtype=kind), uniform(128, 128, dtype=kind, seed=1)
    c = np.zeros((96, 128), np.float32)
    kernel(a, b, c)
    wanted = (wide(a).T if left else wide(a)) @ (wide(b).T if right else wide(b))
    assert close(c, wanted, 2e-2)
    transposes = kernel.compile(a, b, c).cpp["compute"].count("transpose_init")
    assert transposes == int(left)  # the reader and the matrix unit turn the right operand


def test_expression_that_several_outputs_share_is_computed_once():
    @T.prim_func
    def kernel(A, C, D):
        with T.Kernel(2) as bx:
            x = T.alloc_fragment((32, 32), "float32")
            y = T.alloc_fragment((32, 32), "float32")
            T.copy(A[bx * 32, 0], x)
            for i, j in T.Parallel(32, 32):
                x[i, j] = T.exp(x[i, j])
                y[i, j] = x[i, j] + 1.0
            T.copy(x, C[bx * 32, 0])
            T.copy(y, D[bx * 32, 0])

    a, c, d = uniform(64, 32), np.zeros((64, 32), np.float32), np.zeros((64, 32), np.float32)
    kernel(a, c, d)
    assert close(c, np.exp(a), 1e-6) and close(d, np.exp(a) + 1, 1e-6)
    assert kernel.compile(a, c, d).cpp["compute"].count("exp_tile<") == 1


def test_oldest_release_compiles_too():
    program = gemm_512().compile(metal="0.62")
    assert "namespace NAMESPACE" in program.cpp["compute"] and "matmul_block(" in program.cpp["compute"]


def test_integers_and_their_conversion():
    @T.prim_func
    def kernel(A, B, C, D):
        with T.Kernel(2) as bx:
            a = T.alloc_fragment((32, 32), "int32")
            b = T.alloc_fragment((32, 32), "float32")
            d = T.alloc_fragment((32, 32), "float32")
            T.copy(A[bx * 32, 0], a)
            T.copy(B[bx * 32, 0], b)
            for i, j in T.Parallel(32, 32):
                d[i, j] = T.cast(a[i, j], "float32") * b[i, j]
                a[i, j] = a[i, j] + a[i, j] - 3
            T.copy(a, C[bx * 32, 0])
            T.copy(d, D[bx * 32, 0])

    a = np.random.default_rng(0).integers(-100, 100, (64, 32)).astype(np.int32)
    b, c, d = uniform(64, 32), np.zeros((64, 32), np.int32), np.zeros((64, 32), np.float32)
    kernel(a, b, c, d)
    assert np.array_equal(c, 2 * a - 3)
    assert close(d, a * b, 1e-4)


def test_conversions_round_where_they_are_written():
    @T.prim_func
    def kernel(A, C, D):
        with T.Kernel(2) as bx:
            x = T.alloc_fragment((32, 64), "float32")
            narrow = T.alloc_fragment((32, 64), "bfloat16")
            z = T.alloc_fragment((32, 64), "float32")
            T.copy(A[bx * 32, 0], x)
            T.copy(x, narrow)
            for i, j in T.Parallel(32, 64):
                z[i, j] = (x[i, j] * 3.0).astype("bfloat16") - T.Cast("bfloat16", x[i, j])
            T.copy(z, C[bx * 32, 0])
            for i, j in T.Parallel(32, 64):
                z[i, j] = narrow[i, j] - x[i, j]
            T.copy(z, D[bx * 32, 0])

    def short(values: Any) -> Any:
        return values.astype(ml_dtypes.bfloat16).astype(np.float32)

    a = uniform(64, 64)
    results: list[bytes] = []
    for mode in ("sim", "fast", "native"):
        c, d = np.zeros_like(a), np.zeros_like(a)
        with execution.session(mode=mode):
            kernel(a, c, d)
        assert np.array_equal(c, short(a * np.float32(3)) - short(a)) and np.array_equal(d, short(a) - a)
        results.append(c.tobytes() + d.tobytes())
    assert len(set(results)) == 1


def test_buffers_are_single_where_two_do_not_fit():
    @T.prim_func
    def kernel(A, B, C):
        with T.Kernel(2) as bx:
            x = T.alloc_fragment((32, 3072), "float32")
            y = T.alloc_fragment((32, 3072), "float32")
            T.copy(A[bx * 32, 0], x)
            T.copy(B[bx * 32, 0], y)
            for i, j in T.Parallel(32, 3072):
                x[i, j] = x[i, j] + y[i, j]
            T.copy(x, C[bx * 32, 0])

    a, b, c = uniform(64, 3072), uniform(64, 3072, seed=1), np.zeros((64, 3072), np.float32)
    kernel(a, b, c)
    assert [buffer.block_count for buffer in kernel.compile(a, b, c).buffers] == [1, 1, 1]
    assert close(c, a + b, 1e-6)


def test_a_kept_block_is_given_back_before_the_next_is_taken():
    """The old value of ``b`` is an operand, the new one goes through the same buffer into the loop: two held blocks would wrap."""

    @T.prim_func
    def kernel(A, C):
        with T.Kernel(3) as bx:
            a = T.alloc_fragment((64, 64), "float32")
            b = T.alloc_fragment((64, 64), "float32")
            v = T.alloc_fragment((64,), "float32")
            T.fill(b, 0.5)
            T.copy(A[bx * 64, 0], a)
            if bx < 1:
                for i, j in T.Parallel(64, 64):
                    b[i, j] = a[i, j] * 0.5
            T.gemm(a, b, b, transpose_A=True, clear_accum=True)
            for i, j in T.Parallel(64, 64):
                b[i, j] = b[i, j] * 0.25
            for k in T.serial(3):
                T.reduce_max(b, v, dim=1)
                for i, j in T.Parallel(64, 64):
                    a[i, j] = a[i, j] + v[i] * b[i, j]
            T.copy(a, C[bx * 64, 0])

    a, c = uniform(192, 64), np.zeros((192, 64), np.float32)
    kernel(a, c)
    for block in range(3):
        x = a[block * 64 : block * 64 + 64]
        y = x.T @ (x * 0.5 if block < 1 else np.full((64, 64), 0.5, np.float32)) * 0.25
        assert close(c[block * 64 : block * 64 + 64], x + 3 * y.max(1)[:, None] * y, 0.1)
