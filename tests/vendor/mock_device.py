"""Kernels on the mock device: tensors like a program's, and what ttnn says when it cannot build or launch."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import kernel_corpus
import kernel_text
from tilewright.program import Program, TensorSpec
from tilewright.runtime import launch
from tilewright.runtime.descriptor import memory_config
from tilewright.runtime.devices import layout_of
from tilewright.runtime.runner import DATA_TYPES, tensor_facts


def compiled(kernel: kernel_corpus.CorpusKernel, folder: Path, target: Mapping[str, str]) -> Program:
    """A kernel of the corpus for the installed release and the chip."""
    specs = [TensorSpec(name=f"t{place}", shape=shape, dtype=dtype) for place, (shape, dtype) in enumerate(kernel.tensors)]
    return kernel_text.load(kernel.source, folder).compile(*specs, **{**dict(kernel.options), **target})


def tensors_of(ttnn: Any, device: Any, program: Program) -> list[Any]:
    return [tensor_of(ttnn, device, tensor) for tensor in program.tensors]


def tensor_of(ttnn: Any, device: Any, tensor: TensorSpec) -> Any:
    shape, kind, layout = ttnn.Shape(tensor.shape), getattr(ttnn, DATA_TYPES[tensor.dtype]), layout_of(ttnn, tensor)
    if tensor.tile != (32, 32):
        spec = ttnn.TensorSpec(shape, kind, layout, tile=ttnn.Tile(list(tensor.tile)))
        return ttnn.allocate_tensor_on_device(spec, device)
    return ttnn.allocate_tensor_on_device(shape, kind, layout, device, memory_config(ttnn, tensor_facts(tensor)))


def problem_of(ttnn: Any, device: Any, program: Program) -> str:
    """Launches; what went wrong, or nothing."""
    numbers = dict.fromkeys(program.number_names, 1)
    try:
        launch.run(program, tensors_of(ttnn, device, program), numbers)
    except Exception as error:
        return first_errors(str(error))
    return ""


def first_errors(text: str) -> str:
    lines = [line for line in text.splitlines() if "error" in line or "TT_THROW" in line or "TT_FATAL" in line]
    cause = [line for line in lines if ": error:" in line]
    return "\n    ".join(re.sub(r"\S*/root/", "", line) for line in (cause or lines or [text])[:4])


def units(folder: Path) -> list[dict[str, Any]]:
    """Compilations so far, oldest first."""
    path = folder / "units.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def warnings(messages: Sequence[str]) -> list[str]:
    """Distinct warnings about generated text, such as calls that are deprecated; what ttnn's headers call among themselves is theirs."""
    lines = [line for text in messages for line in text.splitlines() if ": warning:" in line and "/root/tt_metal/" not in line]
    return sorted({line.split(": warning:")[1].strip() for line in lines})
