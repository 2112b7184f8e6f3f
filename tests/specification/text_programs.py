"""Whole programs around the specification's fragments: what a listing calls ``%a`` comes from a tensor, what it writes goes to one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from tilewright.cli.mlir_files import compile_file
from tilewright.native import driver
from tilewright.program import Program
from tilewright.sim import run as sim_run

DTYPES = {"bf16": ml_dtypes.bfloat16, "f32": np.float32}
Shape = tuple[int, int]


def tile(dtype: str) -> str:
    return f"!ttcore.tile<32x32, {dtype}>"


def block(shape: Shape, dtype: str) -> str:
    return f"tensor<{shape[0]}x{shape[1]}x{tile(dtype)}>"


def buffer(shape: Shape, dtype: str, factor: int = 2) -> str:
    return f"!ttl.cb<[{shape[0]}, {shape[1]}], {tile(dtype)}, {factor}>"


def program(
    body: str,
    inputs: Mapping[str, Shape],
    outputs: Mapping[str, Shape],
    *,
    dtype: str = "f32",
    attributes: str = "",
    extra: str = "",
    acquire: bool = True,
) -> str:
    """A kernel on one core: every input is waited for and every output reserved around ``body``, under its own name.

    The buffers have the names with ``_cb``. ``acquire=False`` leaves waiting, reserving and releasing to the body.
    """
    shapes = {**inputs, **outputs}
    head, tensors = [], []
    for name, shape in shapes.items():
        tensors.append(f"%{name}_tensor: {block(shape, dtype)}")
        head.append(f"%{name}_accessor = ttl.tensor_accessor %{name}_tensor")
        made = f"{{shape = [{shape[0]}, {shape[1]}], element_type = {tile(dtype)}, buffer_factor = 2}}"
        head.append(f"%{name}_cb = ttl.create_cb {made} : {buffer(shape, dtype)}")
    acquires = [f"%{name} = ttl.cb_wait %{name}_cb" for name in inputs] + [f"%{name} = ttl.cb_reserve %{name}_cb" for name in outputs]
    releases = [f"ttl.cb_pop %{name}" for name in inputs] + [f"ttl.cb_push %{name}" for name in outputs]
    compute = [*acquires, body, *releases] if acquire else [body]
    reader = [line for name, shape in inputs.items() for line in _moved(name, shape, dtype, into=True)]
    writer = [line for name, shape in outputs.items() for line in _moved(name, shape, dtype, into=False)]
    lines = [
        f"ttl.kernel attributes {{grid = [1, 1]{attributes}}} {{",
        f"^bb0({', '.join(tensors)}):",
        *head,
        extra,
        "ttl.compute_thread {",
        *compute,
        "}",
        "ttl.datamovement_thread {",
        "%zero = arith.constant 0 : index",
        *reader,
        "}",
        "ttl.datamovement_thread {",
        "%zero = arith.constant 0 : index",
        *writer,
        "}",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _moved(name: str, shape: Shape, dtype: str, *, into: bool) -> list[str]:
    kind = f'!ttl.slice<[{shape[0]}, {shape[1]}], {tile(dtype)}, "dram">'
    accessor = f'!ttl.accessor<[{shape[0]}, {shape[1]}], {tile(dtype)}, "dram">'
    ends = f"%{name}_part, %{name}_block" if into else f"%{name}_block, %{name}_part"
    return [
        f"%{name}_part = ttl.tensor_slice %{name}_accessor, %zero, %zero : {accessor}, index, index -> {kind}",
        f"%{name}_block = ttl.{'cb_reserve' if into else 'cb_wait'} %{name}_cb",
        f"%{name}_transfer = ttl.copy {ends}",
        f"ttl.wait %{name}_transfer",
        f"ttl.{'cb_push' if into else 'cb_pop'} %{name}_cb",
    ]


def compiled(text: str, folder: Path, **options: Any) -> Program:
    path = folder / "listing.mlir"
    path.write_text(text, encoding="utf-8")
    return compile_file(str(path), options)


def run(text: str, arrays: list[Any], folder: Path, numbers: Mapping[str, int] | None = None, **options: Any) -> Program:
    """Compiles ``text`` and runs it on ``arrays``, simulated and natively, with the same bits; the arrays change in place."""
    made = compiled(text, folder, **options)
    native = [array.copy() for array in arrays]
    sim_run.simulate(made, arrays, scalars=numbers or {})
    driver.run(made, native, scalars=numbers or {})
    for own, other in zip(arrays, native, strict=True):
        assert own.tobytes() == other.tobytes()
    return made


def values(shape: Shape, dtype: str = "f32", low: float = -1.0, high: float = 1.0, seed: int = 0) -> Any:
    generator = np.random.default_rng(seed)
    return generator.uniform(low, high, (shape[0] * 32, shape[1] * 32)).astype(DTYPES[dtype])


def zeros(shape: Shape, dtype: str = "f32") -> Any:
    return np.zeros((shape[0] * 32, shape[1] * 32), DTYPES[dtype])
