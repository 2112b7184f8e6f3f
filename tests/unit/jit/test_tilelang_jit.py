"""What scripts do around TileLang kernels: check, time and tune them, and compile the eager style by sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright import tilelang
from tilewright.diagnostics import KernelError
from tilewright.program import Program
from tilewright.standins import finder

T = tilelang.language


@tilelang.jit(out_idx=[-1])
def doubled(M: int = 64, N: int = 32) -> Any:
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(N // 32, M // 32) as (bx, by):
            x = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], dst=x)
            for i, j in T.Parallel(32, 32):
                x[i, j] = x[i, j] * 2
            T.copy(src=x, dst=B[by * 32, bx * 32])

    return main


@tilelang.jit
def squared(A, rows: int, dtype: Any = T.float16):
    M, N = T.const("M, N")
    blocks = T.ceildiv(M, rows)
    A: T.Tensor((M, N), dtype)
    B = T.empty((M, N), dtype)
    with T.Kernel(blocks) as bx:
        x = T.alloc_fragment((rows, N), dtype)
        T.copy(A[bx * rows, 0], x)
        for i, j in T.Parallel(rows, N):
            x[i, j] = x[i, j] * x[i, j]
        T.copy(x, B[bx * rows, 0])
    return B


def test_profilers_check_a_kernel():
    profiler = doubled().get_profiler(tilelang.TensorSupplyType.Auto)
    profiler.assert_allclose(lambda a: a * 2)
    with pytest.raises(AssertionError, match="of the elements differ"):
        profiler.assert_allclose(lambda a: a * 3)
    assert profiler.do_bench() > 0 and profiler.do_bench(lambda a: a * 2) > 0
    assert profiler.run_once().shape == (64, 32)


def test_profilers_of_eager_kernels_need_sizes():
    profiler = squared.compile(M=64, N=32, rows=32).get_profiler()
    profiler.assert_allclose(lambda a: a * a)
    with pytest.raises(KernelError, match="missing a required argument"):
        squared.get_profiler().inputs()


def test_tuning_takes_the_fastest_configuration_that_compiles():
    @tilelang.autotune(configs=[{"M": 48}, {"M": 96}, {"M": 128}])
    @tilelang.jit(out_idx=[-1])
    def tuned(N: int, M: int = 32) -> Any:
        @T.prim_func
        def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
            with T.Kernel(1) as _:
                x = T.alloc_fragment((M, N), "float32")
                T.copy(A, x)
                T.copy(x, B)

        return main

    @tilelang.autotune(configs=lambda *_, **__: [{"rows": 48}, {"rows": 64}])
    @tilelang.jit
    def eager(A, rows: int):
        M, N = T.const("M, N")
        A: T.Tensor((M, N), "float32")
        B = T.empty((M, N), "float32")
        with T.Kernel(T.ceildiv(M, rows)) as bx:
            x = T.alloc_fragment((rows, N), "float32")
            T.copy(A[bx * rows, 0], x)
            T.copy(x, B[bx * rows, 0])
        return B

    assert eager.compile(M=128, N=32).fixed == {"rows": 64}
    a = np.ones((128, 32), np.float32)
    assert np.array_equal(eager(a), a)
    assert tuned(32).types["A"].shape == (96, 32)
    assert tuned(32, M=64).types["A"].shape == (64, 32)
    with pytest.raises(KernelError, match="whole tiles"):
        tuned(31)


def test_tuner_objects():
    with finder.installed(("tilelang",)):
        from tilelang.autotuner import AutoTuner  # pyright: ignore

    tuner = AutoTuner.from_kernel(doubled, [{"M": 16}, {"M": 96, "N": 64}]).set_compile_args(out_idx=[-1]).set_profile_args(warmup=3)
    found = tuner.run(warmup=3, rep=20)
    assert found.config == {"M": 96, "N": 64}
    a = np.ones((96, 64), np.float32)
    assert np.array_equal(found.kernel(a), 2 * a)


def test_eager_kernels_compile_by_sizes():
    kernel = squared.compile(M=96, N=64, rows=32)
    assert isinstance(kernel.compile(), Program) and "void kernel_main()" in kernel.get_kernel_source()
    assert squared.get_kernel_source(M=96, N=64, rows=32) == kernel.get_kernel_source()
    a = np.random.default_rng(0).uniform(-1, 1, (96, 64)).astype(np.float16)
    b = kernel(a)
    assert b.dtype == np.float16 and np.abs(b.astype(np.float32) - a.astype(np.float32) ** 2).max() < 2e-2
    assert np.array_equal(squared(a, 32), b)
    with pytest.raises(KernelError, match="has shape"):
        kernel(a[:64])
    with pytest.raises(KernelError, match="unknown argument 'Q'"):
        squared.compile(Q="x")
    with pytest.raises(KernelError, match="the kernel declares a tensor"):
        squared(3, 32)


def test_modules_around_the_language_are_answered():
    with finder.installed(("tilelang",)):
        from tilelang.autotuner import autotune  # pyright: ignore
        from tilelang.layout import make_swizzled_layout  # pyright: ignore
        from tilelang.math import next_power_of_2  # pyright: ignore
        from tilelang.profiler import do_bench  # pyright: ignore
        from tilelang.testing import set_random_seed  # pyright: ignore

        set_random_seed(0)
        assert autotune is tilelang.autotune and next_power_of_2(33) == 64 and make_swizzled_layout(None) is None
        assert do_bench(lambda: None) >= 0


def test_types_say_how_wide_they_are():
    assert [T.float16.bits, T.float.bits, T.bfloat16.bits, T.int8.bits, T.float8_e4m3.bits] == [16, 32, 16, 8, 8]
