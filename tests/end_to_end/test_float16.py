"""float16 travels as float32 and comes back as float16: a copy is exact, results have float16's precision."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright import execution, tilelang

T = tilelang.language

ALL_HALVES = np.arange(2**16, dtype=np.uint16).view(np.float16)
FINITE = np.where(np.isfinite(ALL_HALVES), ALL_HALVES, np.float16(1)).reshape(256, 256)


def halves(rows: int, columns: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-2, 2, (rows, columns)).astype(np.float16)


def copy_kernel():
    @T.prim_func
    def main(A: T.Tensor((256, 256), "float16"), B: T.Tensor((256, 256), "float16")):
        with T.Kernel(8, 8) as (bx, by):
            x = T.alloc_shared((32, 32), "float16")
            T.copy(A[by * 32, bx * 32], x)
            T.copy(x, B[by * 32, bx * 32])

    return main


@pytest.mark.parametrize("mode", ["sim", "fast", "native"])
def test_a_copy_keeps_every_bit(mode):
    out = np.zeros_like(FINITE)
    with execution.session(mode=mode):
        copy_kernel()(FINITE, out)
    assert (out == FINITE).all()


def gemm(rows: int, columns: int, inner: int):
    @T.prim_func
    def main(
        A: T.Tensor((rows, inner), "float16"), B: T.Tensor((inner, columns), "float16"), C: T.Tensor((rows, columns), "half")
    ):
        with T.Kernel(columns // 64, rows // 64) as (bx, by):
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float")
            T.clear(c)
            for k in T.Pipelined(inner // 32, num_stages=2):
                T.copy(A[by * 64, k * 32], a)
                T.copy(B[k * 32, bx * 64], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 64, bx * 64])

    return main


@pytest.mark.parametrize("mode", ["sim", "native"])
def test_a_product_passes_the_check_of_public_examples(mode):
    a, b = halves(64, 256), halves(256, 128, 1)
    kernel = tilelang.compile(gemm(64, 128, 256), out_idx=[-1])
    with execution.session(mode=mode):
        c = kernel(a, b)
    assert c.dtype == np.float16
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    far = np.abs(c - wanted) > 1e-2 + 1e-2 * np.abs(wanted)
    assert far.mean() < 0.01  # bfloat16 misses it on one element in eight
    assert np.sqrt(np.mean((c - wanted) ** 2)) < 2**-10 * np.sqrt(np.mean(wanted**2))


ELEMENTWISE = {
    "a + b": lambda a, b: a + b,
    "a - b": lambda a, b: a - b,
    "a * b": lambda a, b: a * b,
    "a * b + a": lambda a, b: (a.astype(np.float32) * b + a).astype(np.float16),
    "ttl.math.max(a, b) * 0.5": lambda a, b: np.maximum(a, b) * np.float16(0.5),
}


@pytest.mark.parametrize("expression", ELEMENTWISE)
def test_arrays_of_float16_in_ttl_kernels(kernels, expression):
    """As the listing of the specification has it, sums and products run on the matrix unit: it aligns both operands to the
    larger one's 11 bits. The vector unit rounds once, to what NumPy has."""
    a, b = halves(64, 64), halves(64, 64, 1)
    wanted = ELEMENTWISE[expression](a, b)
    program, results = kernels.elementwise({"out": expression}, {"a": a, "b": b}, block=(2, 2))
    assert results["out"].dtype == np.float16
    assert np.abs(results["out"].astype(np.float64) - wanted).max() <= 2**-10 * np.abs(wanted).max()
    assert [note.message for note in program.diagnostics] == [
        "float16 travels as float32, which keeps its bits: 'a', 'b', 'out'"
    ]
    _, exact = kernels.elementwise({"out": expression}, {"a": a, "b": b}, block=(2, 2), fpu_binary_ops=False)
    assert (exact["out"] == wanted).all()


def test_sums_of_float16_run_on_the_matrix_unit(kernels):
    program, _ = kernels.elementwise({"out": "a + b"}, {"a": halves(32, 32), "b": halves(32, 32, 1)})
    assert "add_tiles(" in program.cpp["compute"]


def test_other_buffers_of_float32_keep_all_bits(kernels):
    """What is computed has more bits than a float16, so it stays on the vector unit."""
    a, b = halves(32, 32), halves(32, 32, 1)
    c = np.random.default_rng(5).uniform(-2, 2, (32, 32)).astype(np.float32)
    out = np.zeros((32, 32), np.float32)
    program = kernels.run(kernels.text.elementwise({"out": "ttl.math.max(a, b) + c"}, ("a", "b", "c")), a, b, c, out)
    assert (out == np.maximum(a, b).astype(np.float32) + c).all()
    assert "add_tiles(" not in program.cpp["compute"]


@pytest.mark.parametrize("name", ["float8_e4m3", "float8_e4m3fn"])
def test_two_names_of_one_small_float(name):
    @T.prim_func
    def main(A: T.Tensor((32, 32), name), B: T.Tensor((32, 32), "float8_e4m3fn"), C: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, 1) as (_bx, _by):
            a = T.alloc_fragment((32, 32), "float8_e4m3fn")
            b = T.alloc_fragment((32, 32), "float8_e4m3")
            c = T.alloc_fragment((32, 32), "float32")
            T.copy(A, a)
            T.copy(B, b)
            for i, j in T.Parallel(32, 32):
                c[i, j] = a[i, j] + b[i, j]
            T.copy(c, C)

    a, b = (halves(32, 32, seed).astype(ml_dtypes.float8_e4m3fn) for seed in (1, 2))
    out = np.zeros((32, 32), np.float32)
    main(a, b, out)
    assert (out == a.astype(np.float32) + b.astype(np.float32)).all()


def narrowing(statement: str):
    return f"""
@T.prim_func
def main(A: T.Tensor((32, 32), "float32"), B: T.Tensor((32, 32), "float32")):
    with T.Kernel(1, 1) as (bx, by):
        a = T.alloc_fragment((32, 32), "float32")
        narrow = T.alloc_fragment((32, 32), "bfloat16")
        b = T.alloc_fragment((32, 32), "float32")
{statement}
        for i, j in T.Parallel(32, 32):
            b[i, j] = narrow[i, j] * 2.0
        T.copy(b, B)
"""


@pytest.mark.parametrize(
    "statement",
    [
        "        T.copy(A, a)\n        T.copy(a, narrow)",
        "        T.copy(A, a)\n        for i, j in T.Parallel(32, 32):\n            narrow[i, j] = a[i, j]",
        "        T.copy(A, narrow)",
    ],
    ids=["copy of a fragment", "assignment", "copy of a tensor"],
)
def test_a_copy_rounds_as_an_assignment_does(statement, tmp_path):
    path = tmp_path / "narrow.py"
    path.write_text("from tilewright import tilelang\nT = tilelang.language\n" + narrowing(statement))
    scope: dict = {"__name__": "narrow", "__file__": str(path)}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    a = np.random.default_rng(9).uniform(-2, 2, (32, 32)).astype(np.float32)
    out = np.zeros_like(a)
    scope["main"](a, out)
    assert (out == a.astype(ml_dtypes.bfloat16).astype(np.float32) * 2).all()


@T.prim_func
def through_bf16(A: T.Tensor((32, 32), "float32"), B: T.Tensor((32, 32), "float32")):
    with T.Kernel(1, 1) as (_bx, _by):
        narrow = T.alloc_fragment((32, 32), "bfloat16")
        T.copy(A, narrow)
        T.copy(narrow, B)


@pytest.mark.parametrize("mode", ["sim", "native"])
def test_what_goes_through_a_narrow_fragment_comes_out_narrow(mode):
    a = np.random.default_rng(9).uniform(-2, 2, (32, 32)).astype(np.float32)
    out = np.zeros_like(a)
    with execution.session(mode=mode):
        through_bf16(a, out)
    assert (out == a.astype(ml_dtypes.bfloat16).astype(np.float32)).all()
