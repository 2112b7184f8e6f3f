"""The kernels of the library against NumPy: every path of each, with blocks that leave cores unequal work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright import kernels as library

BF16, F32 = ml_dtypes.bfloat16, np.float32
LIMITS = {BF16: 1.5e-2, F32: 2e-3}


def made(seed: int, *shape: int, dtype: Any) -> Any:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(dtype)


def error(found: Any, wanted: Any) -> float:
    return float(np.abs(found.astype(np.float64) - wanted).max() / np.abs(wanted).max())


def first_row(seed: int, columns: int, dtype: Any) -> Any:
    rows = np.zeros((32, columns), dtype)
    rows[0] = made(seed, columns, dtype=dtype)
    return rows


PRODUCTS = [
    ((64, 96, 64), {"block_m": 1, "block_n": 3, "block_k": 1, "depth": 2, "multicast": "none", "grid": (1, 1)}),
    ((96, 160, 64), {"block_m": 1, "block_n": 1, "block_k": 2, "depth": 2, "multicast": "edge", "grid": (2, 2)}),
    ((128, 96, 128), {"block_m": 2, "block_n": 1, "block_k": 2, "depth": 3, "multicast": "diagonal", "grid": (3, 2)}),
    ((96, 64, 96), {"block_m": 1, "block_n": 2, "block_k": 3, "depth": 2, "multicast": "diagonal", "grid": (1, 2)}),
    ((64, 128, 64), {"block_m": 2, "block_n": 1, "block_k": 1, "depth": 2, "multicast": "diagonal", "grid": (3, 1)}),
]


@pytest.mark.parametrize("dtype", [BF16, F32], ids=["bf16", "f32"])
@pytest.mark.parametrize(("sizes", "config"), PRODUCTS, ids=lambda case: "x".join(map(str, case)) if isinstance(case, tuple) else "")
def test_matmul(sizes: tuple[int, int, int], config: dict[str, Any], dtype: Any):
    m, n, k = sizes
    a, b, c = made(1, m, k, dtype=dtype), made(2, k, n, dtype=dtype), np.full((m, n), np.nan, dtype)
    library.matmul(a, b, c, **config)
    assert error(c, a.astype(np.float64) @ b.astype(np.float64)) < LIMITS[dtype]


@pytest.mark.parametrize("dtype", [BF16, F32], ids=["bf16", "f32"])
def test_batched_matmul(dtype: Any):
    a, b, c = made(1, 3, 64, 96, dtype=dtype), made(2, 3, 96, 64, dtype=dtype), np.full((3, 64, 64), np.nan, dtype)
    library.batched_matmul(a, b, c, block_m=1, block_n=2, block_k=3, depth=2, grid=(2, 2))
    assert error(c, a.astype(np.float64) @ b.astype(np.float64)) < LIMITS[dtype]


ROWS = [
    {"height": 1, "width": 4, "depth": 2, "grid": (3, 1)},
    {"height": 2, "width": 2, "depth": 1, "grid": (1, 1)},
    {"height": 1, "width": 1, "depth": 2, "grid": (2, 2)},
]


def on_rows(x: Any) -> dict[str, tuple[Callable[..., None], list[Any], Any]]:
    """Kernels by name: what is called, its inputs, what NumPy says."""
    values = x.astype(np.float64)
    gamma, beta = first_row(3, x.shape[1], x.dtype), first_row(4, x.shape[1], x.dtype)
    scale, shift = gamma[0].astype(np.float64), beta[0].astype(np.float64)
    weights = np.exp(values - values.max(1, keepdims=True))
    centred = values - values.mean(1, keepdims=True)
    return {
        "softmax": (library.softmax, [x], weights / weights.sum(1, keepdims=True)),
        "rmsnorm": (library.rmsnorm, [x, gamma], values / np.sqrt((values**2).mean(1, keepdims=True) + 1e-5) * scale),
        "layernorm": (
            library.layernorm, [x, gamma, beta], centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * scale + shift
        ),
    }  # fmt: skip


@pytest.mark.parametrize("dtype", [BF16, F32], ids=["bf16", "f32"])
@pytest.mark.parametrize("config", ROWS, ids=["whole", "halves", "quarters"])
@pytest.mark.parametrize("name", ["softmax", "rmsnorm", "layernorm"])
def test_kernels_on_rows(name: str, config: dict[str, Any], dtype: Any):
    x = made(5, 128, 128, dtype=dtype)
    kernel, inputs, wanted = on_rows(x)[name]
    y = np.full(x.shape, np.nan, dtype)
    kernel(*inputs, y, **config)
    assert error(y, wanted) < LIMITS[dtype]


@pytest.mark.parametrize("dtype", [BF16, F32], ids=["bf16", "f32"])
@pytest.mark.parametrize("config", ROWS, ids=["whole", "halves", "quarters"])
@pytest.mark.parametrize("op", ["sum", "max"])
def test_reduce(op: str, config: dict[str, Any], dtype: Any):
    x = made(6, 128, 128, dtype=dtype)
    y = np.full((128, 32), np.nan, dtype)
    library.reduce(x, y, op, **config)
    values = x.astype(np.float64)
    assert error(y[:, 0], values.sum(1) if op == "sum" else values.max(1)) < LIMITS[dtype]


BLOCKS = [{"height": 1, "width": 2, "depth": 2, "grid": (3, 1)}, {"height": 2, "width": 1, "depth": 1, "grid": (2, 2)}]


@pytest.mark.parametrize("dtype", [BF16, F32], ids=["bf16", "f32"])
@pytest.mark.parametrize("config", BLOCKS, ids=["1x2", "2x1"])
def test_swiglu(config: dict[str, Any], dtype: Any):
    gate, up = 3 * made(7, 128, 64, dtype=dtype), made(8, 128, 64, dtype=dtype)
    y = np.full(gate.shape, np.nan, dtype)
    library.swiglu(gate, up, y, **config)
    opened = gate.astype(np.float64)
    assert error(y, opened / (1 + np.exp(-opened)) * up.astype(np.float64)) < LIMITS[dtype]


@pytest.mark.parametrize("dtype", [BF16, F32], ids=["bf16", "f32"])
@pytest.mark.parametrize("config", BLOCKS, ids=["1x2", "2x1"])
def test_rope(config: dict[str, Any], dtype: Any):
    x = made(9, 64, 128, dtype=dtype)
    angles = np.outer(np.arange(64), 1.0 / 100 ** (np.arange(64) / 64))
    cos, sin = np.cos(angles).astype(dtype), np.sin(angles).astype(dtype)
    y = np.full(x.shape, np.nan, dtype)
    library.rope(x, cos, sin, y, **config)
    one, two = np.split(x.astype(np.float64), 2, axis=1)
    c, s = cos.astype(np.float64), sin.astype(np.float64)
    assert error(y, np.concatenate([one * c - two * s, two * c + one * s], axis=1)) < LIMITS[dtype]


@pytest.mark.parametrize("dtype", [BF16, F32], ids=["bf16", "f32"])
@pytest.mark.parametrize("config", BLOCKS, ids=["1x2", "2x1"])
def test_transpose(config: dict[str, Any], dtype: Any):
    x = made(10, 64, 128, dtype=dtype)
    y = np.full((128, 64), np.nan, dtype)
    library.transpose(x, y, **config)
    assert np.array_equal(y, x.T)


@pytest.mark.parametrize("dtype", [BF16, F32], ids=["bf16", "f32"])
@pytest.mark.parametrize(("block_q", "block_k", "depth", "grid"), [(1, 2, 2, (3, 1)), (2, 1, 1, (1, 1))])
def test_flash_attention(block_q: int, block_k: int, depth: int, grid: tuple[int, int], dtype: Any):
    q, k, v = (2 * made(seed, 2, length, 64, dtype=dtype) for seed, length in ((11, 64), (12, 128), (13, 128)))
    y = np.full(q.shape, np.nan, dtype)
    library.flash_attention(q, k, v, y, block_q=block_q, block_k=block_k, depth=depth, grid=grid)
    scores = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1) / 8
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = weights / weights.sum(-1, keepdims=True) @ v.astype(np.float64)
    assert error(y, wanted) < {BF16: 2e-2, F32: 4e-3}[dtype]
