"""``tilelang`` as scripts use it: imports, decorators, outputs that the kernel creates, kernels kept per arguments."""

from __future__ import annotations

import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright import tilelang
from tilewright.diagnostics import KernelError
from tilewright.standins import finder

T = tilelang.language


@tilelang.jit(out_idx=[-1], target="auto", pass_configs={})
def doubled(M: int, N: int, dtype: str = "float32") -> Any:
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype)):
        with T.Kernel(N // 32, M // 32) as (bx, by):
            x = T.alloc_fragment((32, 32), dtype)
            T.copy(A[by * 32, bx * 32], x)
            for i, j in T.Parallel(32, 32):
                x[i, j] = x[i, j] * 2
            T.copy(x, B[by * 32, bx * 32])

    return main


def test_imports_are_answered():
    with finder.installed(("tilelang",)):
        import tilelang as theirs  # pyright: ignore
        import tilelang.language as names  # pyright: ignore
        from tilelang import jit  # pyright: ignore
        from tilelang.language import float16  # pyright: ignore

        assert jit is tilelang.jit and names.Kernel.name == "Kernel" and str(float16) == "float16"
        assert theirs.cdiv(5, 2) == 3
    assert "tilelang" not in sys.modules


def test_outputs_are_created_like_the_inputs():
    a = np.ones((64, 32), np.float32)
    b = doubled(64, 32)(a)
    assert isinstance(b, np.ndarray) and b.dtype == np.float32 and (b == 2).all()
    half = doubled(64, 32, "float16")(a.astype(np.float16))
    assert half.dtype == np.float16 and (half == 2).all()
    narrow = doubled(64, 32, "bfloat16")(a.astype(ml_dtypes.bfloat16))
    assert narrow.dtype == ml_dtypes.bfloat16 and (narrow == 2).all()


def test_outputs_may_be_given():
    a, b = np.ones((64, 32), np.float32), np.zeros((64, 32), np.float32)
    assert doubled(64, 32)(a, b) is b and (b == 2).all()


def test_factories_keep_their_kernels_and_name_them():
    kernel = doubled(64, 64)
    assert doubled(64, 64) is kernel and doubled(64, 96) is not kernel
    assert kernel.name == "doubled"
    program = kernel.compile()
    assert kernel.compile() is program and "void kernel_main()" in kernel.get_kernel_source()


def test_compile_takes_kernels_only():
    with pytest.raises(KernelError, match=r"takes a T\.prim_func"):
        tilelang.compile(lambda: None)


def test_factory_that_returns_something_else():
    @tilelang.jit
    def factory() -> Any:
        return 3

    with pytest.raises(KernelError, match="returned int"):
        factory()


def test_missing_argument():
    with pytest.raises(KernelError, match="'A' is missing"):
        doubled(64, 64)()
    plain = tilelang.compile(doubled(64, 64))
    with pytest.raises(KernelError, match="missing a required argument: 'B'"):
        plain(np.zeros((64, 64), np.float32))


def test_names_outside_a_kernel():
    with pytest.raises(KernelError, match=r"T\.copy outside a kernel"):
        T.copy(1, 2)
    with pytest.raises(AttributeError, match=r"did you mean T\.Parallel"):
        T.Paralel  # noqa: B018
    assert T.ceildiv(65, 32) == 3 and T.max(2, 3) == 3


def test_options_of_ours_reach_the_compiler():
    @tilelang.jit(out_idx=[-1], fp32_dest_acc=True)
    def wide(M: int) -> Any:
        @T.prim_func
        def main(A: T.Tensor((M, M), "bfloat16"), B: T.Tensor((M, M), "bfloat16")):
            with T.Kernel(M // 32, M // 32) as (bx, by):
                x = T.alloc_fragment((32, 32), "bfloat16")
                T.copy(A[by * 32, bx * 32], x)
                T.copy(x, B[by * 32, bx * 32])

        return main

    assert wide(64).compile().config.fp32_dest_acc_en
