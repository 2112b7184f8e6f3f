"""Bits of integer tiles in TileLang kernels: shifts, masks, and the packed int4 weights they are for."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import execution, tilelang

T = tilelang.language
MODES = ("sim", "native")


def elementwise(tmp_path, expression: str, dtype: str):
    text = f"""
from tilewright import tilelang
T = tilelang.language

@T.prim_func
def main(A: T.Tensor((32, 64), "{dtype}"), B: T.Tensor((32, 64), "{dtype}"), C: T.Tensor((32, 64), "int32")):
    with T.Kernel(1, 1) as (bx, by):
        a = T.alloc_fragment((32, 64), "{dtype}")
        b = T.alloc_fragment((32, 64), "{dtype}")
        c = T.alloc_fragment((32, 64), "int32")
        T.copy(A, a)
        T.copy(B, b)
        for i, j in T.Parallel(32, 64):
            c[i, j] = {expression}
        T.copy(c, C)
"""
    path = tmp_path / "kernel.py"
    path.write_text(text)
    scope = {"__name__": "bits", "__file__": str(path)}
    exec(compile(text, str(path), "exec"), scope)
    return scope["main"]


EXPRESSIONS = {
    "(a[i, j] >> 4) & 15": lambda a, b, j: (a >> 4) & 15,
    "(a[i, j] << 3) | (b[i, j] & 7)": lambda a, b, j: (a << 3) | (b & 7),
    "a[i, j] & b[i, j]": lambda a, b, j: a & b,
    "T.bitwise_xor(a[i, j], b[i, j])": lambda a, b, j: a ^ b,
    "(a[i, j] >> (4 * (j % 2))) & 0xF": lambda a, b, j: (a >> (4 * (j % 2))) & 15,
    "T.shift_right(a[i, j], 1) - T.shift_left(b[i, j], 2)": lambda a, b, j: (a >> 1) - (b << 2),
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("dtype", ["int32", "int8", "uint8"])
@pytest.mark.parametrize("arch", ["wormhole_b0", "blackhole"])
def test_operators(tmp_path, expression, dtype, arch):
    low, high = (-(2**20), 2**20) if dtype == "int32" else (-128, 128) if dtype == "int8" else (0, 256)
    a, b = (np.random.default_rng(seed).integers(low, high, (32, 64)).astype(dtype) for seed in (1, 2))
    wanted = EXPRESSIONS[expression](a.astype(np.int32), b.astype(np.int32), np.arange(64)[None, :])
    for mode in MODES:
        out = np.zeros((32, 64), np.int32)
        with execution.session(mode=mode, overrides={"arch": arch}):
            elementwise(tmp_path, expression, dtype)(a, b, out)
        assert (out == wanted).all()


def test_conditions_are_still_joined(tmp_path):
    kernel = elementwise(tmp_path, "T.if_then_else((a[i, j] > 0) & (b[i, j] > 0), a[i, j], b[i, j])", "int32")
    a, b = (np.random.default_rng(seed).integers(-9, 9, (32, 64)).astype(np.int32) for seed in (3, 4))
    out = np.zeros((32, 64), np.int32)
    kernel(a, b, out)
    assert (out == np.where((a > 0) & (b > 0), a, b)).all()


def dequantised_gemm(rows: int, columns: int, inner: int, dtype: str = "float16"):
    @T.prim_func
    def main(
        A: T.Tensor((rows, inner), dtype),
        B: T.Tensor((columns, inner // 2), "uint8"),
        C: T.Tensor((rows, columns), "float32"),
    ):
        with T.Kernel(columns // 32, rows // 32) as (bx, by):
            a = T.alloc_shared((32, 64), dtype)
            packed = T.alloc_shared((32, 32), "uint8")
            packed_local = T.alloc_fragment((32, 32), "uint8")
            weights = T.alloc_fragment((32, 64), dtype)
            total = T.alloc_fragment((32, 32), "float32")
            T.clear(total)
            for k in T.Pipelined(inner // 64, num_stages=2):
                T.copy(A[by * 32, k * 64], a)
                T.copy(B[bx * 32, k * 32], packed)
                T.copy(packed, packed_local)
                for i, j in T.Parallel(32, 64):
                    weights[i, j] = (((packed_local[i, j // 2] >> ((j % 2) * 4)) & 0xF) - 8).astype(dtype)
                T.gemm(a, weights, total, transpose_B=True)
            T.copy(total, C[by * 32, bx * 32])

    return main


@pytest.mark.parametrize("mode", MODES)
def test_weights_of_four_bits(mode):
    rng = np.random.default_rng(7)
    a = rng.uniform(-1, 1, (32, 128)).astype(np.float16)
    weights = rng.integers(0, 16, (64, 128))
    packed = (weights[:, 0::2] | (weights[:, 1::2] << 4)).astype(np.uint8)
    out = np.zeros((32, 64), np.float32)
    with execution.session(mode=mode):
        dequantised_gemm(32, 64, 128)(a, packed, out)
    wanted = a.astype(np.float64) @ (weights - 8).T
    assert np.sqrt(np.mean((out - wanted) ** 2)) < 2**-9 * np.sqrt(np.mean(wanted**2))


@T.prim_func
def twice_gathered(W: T.Tensor((64, 64), "int32"), C: T.Tensor((64, 128), "int32")):
    with T.Kernel(2) as bx:
        packed = T.alloc_fragment((64, 32), "int32")
        c = T.alloc_fragment((64, 64), "int32")
        T.copy(W[0, bx * 64 // 2], packed)  # a place that is no multiple of tiles to the eye: gathered
        for i, j in T.Parallel(64, 64):
            c[i, j] = packed[i, j // 2] + j % 2  # and gathered from there
        T.copy(c, C[0, bx * 64])


def test_elements_are_gathered_from_what_was_gathered():
    w = np.random.default_rng(3).integers(-1000, 1000, (64, 64)).astype(np.int32)
    for mode in MODES:
        c = np.zeros((64, 128), np.int32)
        with execution.session(mode=mode):
            twice_gathered(w, c)
        assert (c == np.repeat(w, 2, axis=1) + np.arange(128) % 2).all()
