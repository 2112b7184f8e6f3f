"""Whole kernels on both chips: what they are in NumPy, and how far a run is from that in float64."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import fused_expressions
import kernel_text
import op_kernels
from kernel_corpus import CorpusKernel, real_kernels

CHAIN = "o0.store(ttl.math.recip(1.5 + ttl.math.recip(1.5 + ttl.math.recip(1.5 + ttl.math.recip(xb * xb + 0.5)))))"
QUOTIENTS = "o0.store((xb / (1.0 + yb * yb)) * ttl.math.softsign(xb) / (0.5 + ttl.math.sigmoid(yb)))"


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def lstm(i: Any, f: Any, g: Any, o: Any, c: Any) -> tuple[Any, ...]:
    cell = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return cell, sigmoid(o) * np.tanh(cell)


def chain(x: Any) -> Any:
    return 1 / (1.5 + 1 / (1.5 + 1 / (1.5 + 1 / (x * x + 0.5))))


def log_softmax(x: Any) -> Any:
    d = x - x.max(1, keepdims=True)
    return d - np.log(np.exp(d).sum(1, keepdims=True))


REFERENCES: dict[str, Callable[..., Any]] = {
    "softmax": fused_expressions.softmax,
    "log softmax": log_softmax,
    "RMS norm": fused_expressions.rms,
    "layer norm": fused_expressions.layer,
    "attention": fused_expressions.attention,
    "LSTM cell": lstm,
    "SwiGLU": lambda g, u: g * sigmoid(g) * u,
    "chain of reciprocals": chain,
    "quotients": lambda x, y: x / (1 + y * y) * (x / (1 + np.abs(x))) / (0.5 + sigmoid(y)),
}


def kernels() -> list[tuple[CorpusKernel, Callable[..., Any]]]:
    """Every kernel in bf16 and f32, with its reference."""
    own = [
        CorpusKernel(name=f"{name} {dtype}", inputs=tuple((letter, (2, 2)) for letter in letters), outputs=((2, 2),), body=body, dtype=dtype)
        for name, letters, body in (("chain of reciprocals", "x", CHAIN), ("quotients", "xy", QUOTIENTS))
        for dtype in ("bf16", "f32")
    ]
    found = [(kernel, REFERENCES.get(kernel.name.rpartition(" ")[0])) for kernel in [*real_kernels(), *own]]
    return [(kernel, reference) for kernel, reference in found if reference is not None]


def arguments(kernel: CorpusKernel) -> list[Any]:
    generator = np.random.default_rng(3)
    given = [generator.normal(size=shape).astype(op_kernels.HOST[dtype]) for shape, dtype in kernel.tensors[: len(kernel.inputs)]]
    return given + [np.zeros(shape, op_kernels.HOST[dtype]) for shape, dtype in kernel.tensors[len(kernel.inputs) :]]


def outputs(kernel: CorpusKernel, chip: str, folder: Path, run: Callable[[Any, list[Any]], Any]) -> list[Any]:
    arrays = arguments(kernel)
    run(kernel_text.load(kernel.source, folder).compile(*arrays, arch=chip, **dict(kernel.options)), arrays)
    return arrays[len(kernel.inputs) :]


def error(kernel: CorpusKernel, reference: Callable[..., Any], found: list[Any]) -> float:
    """The largest one over all outputs, relative to the largest value."""
    given = [array.astype(np.float64) for array in arguments(kernel)[: len(kernel.inputs)]]
    wanted = reference(*given)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    return max(
        float(np.max(np.abs(got.astype(np.float64) - want)) / np.max(np.abs(want))) for got, want in zip(found, wanted, strict=True)
    )
