"""Checks a hand-written compute kernel: random tiles go in, results are drained, every complaint is reported."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path

from tilewright.hardware import CHIPS, WORMHOLE_B0, Chip
from tilewright.native.driver import NativeResult, run
from tilewright.native.findings import NativeError
from tilewright.native.program import FIDELITY_PHASES, FORMATS, BufferSpec, ComputeConfig, KernelSource, NativeProgram
from tilewright.records import record

_IN_FILE = re.compile(r"^//\s*tilewright check:\s*(.+)$", re.MULTILINE)


@record(kw_only=True)
class CheckSetup:
    """What the host side of the kernel would say."""

    buffers: tuple[BufferSpec, ...]
    compile_time_args: tuple[int, ...] = ()
    runtime_args: tuple[int, ...] = ()
    defines: dict[str, str] = field(default_factory=dict[str, str])
    config: ComputeConfig = field(default_factory=ComputeConfig)
    metal: str = "0.78"
    chip: Chip = WORMHOLE_B0


def options_in_file(text: str) -> list[str]:
    """Options a kernel states for itself, in lines ``// tilewright check: --cb 0:bf16:8``."""
    return [word for line in _IN_FILE.findall(text) for word in shlex.split(line)]


def parse_buffer(text: str) -> BufferSpec:
    """``INDEX:DTYPE:PAGES``, e.g. ``0:bf16:8``."""
    parts = text.split(":")
    if len(parts) != 3 or not parts[0].isdigit() or not parts[2].isdigit() or parts[1] not in FORMATS:
        raise NativeError(f"'{text}' is no buffer: give INDEX:DTYPE:PAGES with a dtype of {', '.join(FORMATS)}, like 0:bf16:8")
    return BufferSpec(index=int(parts[0]), dtype=parts[1], pages=int(parts[2]))


def parse_words(texts: Sequence[str]) -> tuple[int, ...]:
    """Argument words: ``4``, ``0x3f800000`` or several separated by commas."""
    try:
        return tuple(int(word, 0) & 0xFFFFFFFF for text in texts for word in text.split(","))
    except ValueError as error:
        raise NativeError(f"'{','.join(texts)}' is no list of integers") from error


def parse_fidelity(text: str) -> str:
    for name in FIDELITY_PHASES:
        if name.lower() == text.lower():
            return name
    raise NativeError(f"'{text}' is no math fidelity: {', '.join(FIDELITY_PHASES)}")


def parse_chip(text: str) -> Chip:
    if text not in CHIPS:
        raise NativeError(f"'{text}' is no chip: {', '.join(CHIPS)}")
    return CHIPS[text]


def check_kernel(path: Path, setup: CheckSetup, *, seconds: int = 60) -> NativeResult:
    """Runs one compute kernel on one core."""
    kernel = KernelSource(
        role="compute",
        path=path,
        compile_time_args=setup.compile_time_args,
        runtime_args=setup.runtime_args,
        defines=setup.defines,
    )
    program = NativeProgram(
        kernels=(kernel,), buffers=setup.buffers, config=setup.config, metal=setup.metal, chip=setup.chip, alone=True,
        shared_functions=False,
    )  # fmt: skip
    return run(program, seconds=seconds)
