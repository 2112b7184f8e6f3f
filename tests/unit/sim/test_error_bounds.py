"""Every tile carries its distance from exact arithmetic: the distance is what NumPy finds, and its bound is never below."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import block_kernels
import kernel_text
from tilewright.sim.run import result_errors, simulate
from tilewright.timing.profile import profile

BF16, F32 = ml_dtypes.bfloat16, np.float32

KERNELS = {
    "chain": ("o0.store(ttl.math.exp(ab * bb + cb))", lambda a, b, c: np.exp(a * b + c)),
    "product": ("o0.store(ab @ bb + cb)", lambda a, b, c: a @ b + c),
    "softmax": (
        "e = ttl.math.exp(ab - ttl.math.broadcast(ttl.math.reduce_max(ab, dims=[1]), dims=[1], shape=(2, 2)))\n"
        "o0.store(e / ttl.math.broadcast(ttl.math.reduce_sum(e, dims=[1]), dims=[1], shape=(2, 2)))",
        lambda a, b, c: np.exp(a - a.max(1, keepdims=True)) / np.exp(a - a.max(1, keepdims=True)).sum(1, keepdims=True),
    ),
    "columns": (
        "o0.store(ttl.math.broadcast(ttl.math.reduce_sum(ab * cb, dims=[0]), dims=[0], shape=(2, 2)) - bb)",
        lambda a, b, c: (a * c).sum(0, keepdims=True) - b,
    ),
    "functions": (
        "o0.store(ttl.math.tanh(ab) * ttl.math.sqrt(ttl.math.abs(bb)) + ttl.math.sigmoid(cb))",
        lambda a, b, c: np.tanh(a) * np.sqrt(np.abs(b)) + 1 / (1 + np.exp(-c)),
    ),
    "turned": ("o0.store(ttl.math.relu(ttl.block.transpose(ab) - bb) * 0.3)", lambda a, b, c: np.maximum(a.T - b, 0) * np.float32(0.3)),
}


@pytest.fixture(params=[BF16, F32], ids=["bf16", "f32"])
def dtype(request: Any) -> Any:
    return request.param


def compiled(body: str, dtype: Any, folder: Path, **options: Any) -> tuple[Any, list[Any]]:
    shapes = dict.fromkeys(("ab", "bb", "cb"), (2, 2))
    kernel = kernel_text.load(block_kernels.single_block(shapes, [(2, 2)], body), folder)
    random = np.random.default_rng(7)
    arrays = [random.uniform(-2, 2, (64, 64)).astype(dtype) for _ in shapes] + [np.zeros((64, 64), dtype)]
    return kernel.compile(*arrays, **options), arrays


@pytest.mark.parametrize("name", KERNELS)
def test_a_result_is_as_far_off_as_numpy_finds_it(name: str, dtype: Any, tmp_path: Path) -> None:
    body, meaning = KERNELS[name]
    program, arrays = compiled(body, dtype, tmp_path)
    plain = [array.copy() for array in arrays]
    (found,) = result_errors(program, arrays)
    simulate(program, plain)
    assert np.array_equal(arrays[3].view("u1"), plain[3].view("u1")), "the chip's own results are those of a run"
    expected = meaning(*(array.astype(np.float64) for array in arrays[:3]))
    largest = np.abs(expected).max()
    measured = np.abs(arrays[3].astype(np.float64) - expected).max() / largest
    assert found.largest == pytest.approx(largest, rel=1e-6)
    assert found.measured == pytest.approx(measured, rel=1e-3, abs=1e-9)
    assert measured <= found.bound * (1 + 1e-6) <= 40 * measured, "a bound, and one that says something"


def test_fewer_passes_of_the_matrix_unit_show(tmp_path: Path) -> None:
    body, _ = KERNELS["product"]
    errors = [result_errors(*compiled(body, BF16, tmp_path, math_fidelity=word))[0] for word in ("LoFi", "HiFi2", "HiFi4")]
    assert errors[0].bound > 2 * errors[1].bound > 2 * errors[2].bound
    assert errors[0].measured > errors[1].measured > errors[2].measured


def test_whole_numbers_are_exact_and_have_no_line(tmp_path: Path) -> None:
    kernel = kernel_text.load(block_kernels.single_block({"ab": (1, 1), "bb": (1, 1)}, [(1, 1)], "o0.store(ab + bb)"), tmp_path)
    a, b, out = (np.full((32, 32), value, np.int32) for value in (2**20, 3, 0))
    assert result_errors(kernel.compile(a, b, out), [a, b, out]) == []
    assert (out == 2**20 + 3).all()


def test_a_profile_says_it_beside_the_time(tmp_path: Path) -> None:
    program, arrays = compiled(KERNELS["product"][0], BF16, tmp_path, math_fidelity="HiFi4")
    told, _ = profile(program, arrays=arrays)
    assert [each.tensor for each in told.errors] == [program.tensors[3].name]
    faster = [each for each in told.advice if "math_fidelity" in each.change]
    assert faster and faster[0].error is not None and faster[0].error > told.errors[0].bound
    assert profile(program)[0].errors == [], "without data nothing is computed"
