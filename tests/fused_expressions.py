"""Expressions with matmuls, reductions and broadcasts, and what they are in NumPy: for tests and for `benchmarks/kernels.py`."""

from __future__ import annotations

import math

import numpy as np

B = "ttl.math.broadcast"


def gelu(x):
    return 0.5 * x * (1.0 + np.vectorize(math.erf)(x / math.sqrt(2.0)))


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def rms(x, w):
    return x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * w[:1]


def layer(x, g, b):
    d = x - x.mean(1, keepdims=True)
    return d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5) * g[:1] + b[:1]


def cosine(x, y):
    found = (x * y).sum(1) / np.sqrt((x * x).sum(1) * (y * y).sum(1))
    return np.pad(found[:, None], ((0, 0), (0, 31)))


def dense(x, w, b):
    h = np.maximum(x @ w + b[:1], 0)
    return h - h.mean(1, keepdims=True)


def attention(q, k, v):
    return softmax(q @ k * 0.125) @ v


def first_column(x):
    return np.pad(x[:, None], ((0, 0), (0, 31)))


# name: inputs in tiles, output in tiles, body, reference, error of the whole relative to its largest value in bf16 and f32
CASES = {
    "matmul": ({"x": (2, 3), "y": (3, 5)}, (2, 5), "o0.store(x @ y)", lambda x, y: x @ y, 4e-3, 2e-3),
    "bias and gelu": (
        {"x": (4, 3), "y": (3, 4), "z": (4, 4)}, (4, 4), "o0.store(ttl.math.gelu(x @ y + z))",
        lambda x, y, z: gelu(x @ y + z), 5e-3, 2e-3,
    ),
    "transposed": ({"x": (2, 2), "y": (3, 2)}, (2, 3), "o0.store(x @ ttl.math.transpose(y))", lambda x, y: x @ y.T, 4e-3, 2e-3),
    "two products": (
        {"x": (2, 2), "y": (2, 2), "z": (2, 2)}, (2, 2), "o0.store(x @ y + x @ z)", lambda x, y, z: x @ y + x @ z, 4e-3, 2e-3,
    ),
    "dense layer": (
        {"x": (2, 2), "w": (2, 3), "b": (1, 3)}, (2, 3),
        f"h = ttl.math.relu(x @ w + {B}(b, dims=[0], shape=(2, 3)))\no0.store(h - ttl.math.reduce_mean(h, dims=[1]))",
        dense, 6e-3, 2e-3,
    ),
    "softmax": (
        {"x": (2, 3)}, (2, 3),
        "e = ttl.math.exp(x - ttl.math.reduce_max(x, dims=[1]))\no0.store(e / ttl.math.reduce_sum(e, dims=[1]))",
        softmax, 8e-3, 5e-7,
    ),
    "softmax with recip": (
        {"x": (2, 3)}, (2, 3),
        f"e = ttl.math.exp(x - {B}(ttl.math.reduce_max(x, dims=[1]), dims=[1], shape=(2, 3)))\n"
        f"o0.store(e * {B}(ttl.math.recip(ttl.math.reduce_sum(e, dims=[1])), dims=[1], shape=(2, 3)))",
        softmax, 8e-3, 5e-7,
    ),
    "log-softmax": (
        {"x": (2, 3)}, (2, 3),
        "d = x - ttl.math.reduce_max(x, dims=[1])\no0.store(d - ttl.math.log(ttl.math.reduce_sum(ttl.math.exp(d), dims=[1])))",
        lambda x: np.log(softmax(x)), 8e-3, 5e-7,
    ),
    "rmsnorm": (
        {"x": (2, 3), "w": (1, 3)}, (2, 3),
        f"r = ttl.math.rsqrt(ttl.math.reduce_mean(x * x, dims=[1]) + 1e-5)\no0.store(x * r * {B}(w, dims=[0], shape=(2, 3)))",
        rms, 6e-3, 5e-7,
    ),
    "layernorm": (
        {"x": (2, 3), "g": (1, 3), "b": (1, 3)}, (2, 3),
        "d = x - ttl.math.reduce_mean(x, dims=[1])\nv = ttl.math.reduce_mean(d * d, dims=[1])\n"
        f"o0.store(d * ttl.math.rsqrt(v + 1e-5) * {B}(g, dims=[0], shape=(2, 3)) + {B}(b, dims=[0], shape=(2, 3)))",
        layer, 8e-3, 5e-7,
    ),
    "cosine similarity": (
        {"x": (2, 3), "y": (2, 3)}, (2, 1),
        "o0.store(ttl.math.reduce_sum(x * y, dims=[1]) * ttl.math.rsqrt("
        "ttl.math.reduce_sum(x * x, dims=[1]) * ttl.math.reduce_sum(y * y, dims=[1])))",
        cosine, 1e-2, 5e-7,
    ),
    "variance in one pass": (
        {"x": (2, 3)}, (2, 1),
        "m = ttl.math.reduce_mean(x, dims=[1])\no0.store(ttl.math.reduce_mean(x * x, dims=[1]) - m * m)",
        lambda x: first_column(x.var(1)), 1.2e-2, 5e-7,
    ),
    "columns": (
        {"x": (3, 2)}, (3, 2), "o0.store(x - ttl.math.reduce_max(x, dims=[0]))", lambda x: x - x.max(0, keepdims=True), 6e-3, 5e-7,
    ),
    "minimum": (
        {"x": (2, 2)}, (2, 2), "o0.store(x - ttl.math.reduce_min(x, dims=[1]))", lambda x: x - x.min(1, keepdims=True), 6e-3, 5e-7,
    ),
    "all elements": ({"x": (2, 2)}, (2, 2), "o0.store(x - ttl.math.reduce_mean(x))", lambda x: x - x.mean(), 6e-3, 5e-7),
    "attention": (
        {"q": (2, 2), "k": (2, 3), "v": (3, 2)}, (2, 2),
        "e = ttl.math.exp((q @ k) * 0.125)\no0.store((e / ttl.math.reduce_sum(e, dims=[1])) @ v)",
        attention, 8e-3, 3e-3,
    ),
}  # fmt: skip
