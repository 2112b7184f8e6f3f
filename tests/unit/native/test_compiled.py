"""Compiled kernels: the emitted C++ on the host and the simulator on the IR give the same bits, in every spelling."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright.diagnostics import KernelError
from tilewright.native import driver
from tilewright.native.compiled import CODE_OF, findings_error, from_face_order, to_face_order
from tilewright.native.findings import MEANINGS, Finding
from tilewright.sim.run import simulate

DTYPES = {"bf16": ml_dtypes.bfloat16, "f32": np.float32}
RELEASES = pytest.mark.parametrize("metal", ["0.62", "0.69", "0.78"])

BLOCKS = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(a, b, o):
    a_buffer = ttl.make_dataflow_buffer_like(a, shape={a}, block_count=2)
    b_buffer = ttl.make_dataflow_buffer_like(b, shape={b}, block_count=2)
    o_buffer = ttl.make_dataflow_buffer_like(o, shape={o}, block_count=2)

    @ttl.compute()
    def compute():
        with a_buffer.wait() as x, b_buffer.wait() as y, o_buffer.reserve() as out:
            out.store({expression})

    @ttl.datamovement()
    def read():
        with a_buffer.reserve() as block:
            ttl.copy(a[0:{a[0]}, 0:{a[1]}], block).wait()
        with b_buffer.reserve() as block:
            ttl.copy(b[0:{b[0]}, 0:{b[1]}], block).wait()

    @ttl.datamovement()
    def write():
        with o_buffer.wait() as block:
            ttl.copy(block, o[0:{o[0]}, 0:{o[1]}]).wait()
"""
EXPRESSIONS = {
    "matmul": ("x @ y", (2, 3), (3, 2), (2, 2)),
    "sum of rows": ("ttl.math.reduce_sum(x * x, dims=[-1]) + y", (2, 3), (2, 1), (2, 1)),
    "maximum of columns": ("ttl.math.reduce_max(x, dims=[0]) + y", (2, 3), (1, 3), (1, 3)),
    "broadcast": ("x * ttl.block.broadcast(y, dims=[1], shape=x.shape)", (2, 3), (2, 1), (2, 3)),
    "softmax numerator": (
        "ttl.math.exp(x - ttl.block.broadcast(ttl.math.reduce_max(x, dims=[-1]), dims=[1], shape=x.shape)) + y",
        (1, 3), (1, 3), (1, 3),
    ),
}  # fmt: skip


def same_bits(program: Any, arrays: list[np.ndarray[Any, Any]]) -> None:
    simulated = [array.copy() for array in arrays]
    simulate(program, simulated)
    native = [array.copy() for array in arrays]
    result = driver.run(program, native)
    assert result.findings == ()
    for number, (one, other) in enumerate(zip(simulated, native, strict=True)):
        assert one.tobytes() == other.tobytes(), f"tensor {number} differs"
    assert native[-1].tobytes() != arrays[-1].tobytes()


def tensors(dtype: str, *shapes: tuple[int, int]) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(31)
    *inputs, output = [(32 * rows, 32 * columns) for rows, columns in shapes]
    return [
        *(rng.uniform(-2, 2, shape).astype(np.float32).astype(DTYPES[dtype]) for shape in inputs),
        np.zeros(output, DTYPES[dtype]),
    ]


@RELEASES
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_elementwise_on_a_grid(kernels: Any, dtype: str, metal: str) -> None:
    source = kernels.text.elementwise({"y": "ttl.math.exp(a * b) + b"}, ("a", "b"), block=(2, 3), blocks=(3, 2), grid=(2, 2))
    arrays = tensors(dtype, (6, 6), (6, 6), (6, 6))
    same_bits(kernels.load(source).compile(*arrays, metal=metal), arrays)


@RELEASES
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_blocks(kernels: Any, name: str, metal: str) -> None:
    expression, a, b, o = EXPRESSIONS[name]
    arrays = tensors("bf16", a, b, o)
    program = kernels.load(BLOCKS.format(expression=expression, a=a, b=b, o=o)).compile(*arrays, metal=metal)
    same_bits(program, arrays)


def test_face_order_and_back() -> None:
    pages = np.arange(3 * 1024).reshape(3, 32, 32)
    faces = to_face_order(pages).reshape(3, 1024)
    assert faces[0, 256] == 16  # the second face starts at column 16
    assert faces[0, 512] == 512  # the third at row 16
    assert np.array_equal(from_face_order(faces), pages)


def test_findings_become_a_kernel_error() -> None:
    error = findings_error([Finding(code="missing-wait", message="too early", file="compute.cpp", line=3, thread="unpack")])
    assert isinstance(error, KernelError)
    assert "TW506" in str(error)
    assert "too early" in str(error)


def test_every_finding_with_a_code_exists() -> None:
    assert set(CODE_OF) <= set(MEANINGS)
