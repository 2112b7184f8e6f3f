"""Launches every kernel of the corpus and every example through the installed ttnn on a mock device, and type-checks what it builds.

    make vendor                                  # or, in an environment with ttnn:
    python tests/vendor/check_kernels.py [WORD]  # only kernels with WORD in their name

Needs gcc-riscv64-unknown-elf and picolibc-riscv64-unknown-elf. Not part of the default tests: ttnn is no dependency.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import kernel_corpus  # noqa: E402
import kernel_text  # noqa: E402
import stand_in  # noqa: E402


def main(words: list[str]) -> int:
    folder = Path(os.environ.get("TILEWRIGHT_VENDOR_FOLDER") or tempfile.mkdtemp(prefix="tilewright-vendor-"))
    folder.mkdir(parents=True, exist_ok=True)
    stand_in.prepare(folder)
    import ttnn

    chosen = [kernel for kernel in kernel_corpus.corpus() if not words or any(word in kernel.name for word in words)]
    device = ttnn.open_device(device_id=0)
    failed: list[str] = []
    for kernel in chosen:
        for problem in launched(ttnn, device, kernel, folder):
            failed.append(kernel.name)
            print(f"{kernel.name}: {problem}", flush=True)
    ttnn.close_device(device)
    deprecated = warnings(folder)
    for text in deprecated:
        print(f"warning: {text}")
    print(f"{len(chosen)} kernels, {len(failed)} failed, {len(deprecated)} warnings")
    return 1 if failed or deprecated else 0


def launched(ttnn: Any, device: Any, kernel: kernel_corpus.CorpusKernel, folder: Path) -> Iterator[str]:
    """What goes wrong, at most one thing."""
    types = {"bf16": "bfloat16", "f32": "float32", "i32": "int32", "u32": "uint32", "u16": "uint16", "u8": "uint8"}
    try:
        tensors = [
            ttnn.allocate_tensor_on_device(
                ttnn.Shape(shape), getattr(ttnn, types[dtype]), ttnn.TILE_LAYOUT, device, ttnn.DRAM_MEMORY_CONFIG
            )
            for shape, dtype in kernel.tensors
        ]
        decorated = kernel_text.load(kernel.source, folder)
        decorated.options = decorated.options.updated(**dict(kernel.options))
        decorated(*tensors)
    except Exception as error:
        yield first_error(str(error))


def first_error(text: str) -> str:
    lines = [line for line in text.splitlines() if "error" in line or "TT_THROW" in line or "TT_FATAL" in line]
    cause = [line for line in lines if ": error:" in line]
    return "\n    ".join(re.sub(r"\S*/root/", "", line) for line in (cause or lines or [text])[:4])


def warnings(folder: Path) -> list[str]:
    """Distinct warnings about generated text, such as calls that are deprecated."""
    found: set[str] = set()
    units = folder / "units.jsonl"
    for line in units.read_text().splitlines() if units.exists() else []:
        for message in json.loads(line)["messages"].splitlines():
            if ": warning:" in message:
                found.add(message.split(": warning:")[1].strip())
    return sorted(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
