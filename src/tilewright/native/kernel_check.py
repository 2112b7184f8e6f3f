"""Hand-written kernels as a program that runs natively: what the host side would say, in words of a command line.

A kernel may run alone: random tiles go in, results are drained. Reader, compute and writer together are a whole program.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.dtypes import DTYPES
from tilewright.hardware import CHIPS, TILE_COLS, TILE_ROWS, WORMHOLE_B0, Chip, tile_bytes
from tilewright.integers import OPERATORS
from tilewright.native.compiled import ADDRESS_STEP, DRAM_ACCESSOR, FIRST_ADDRESS, L1_ACCESSOR
from tilewright.native.findings import NativeError
from tilewright.native.program import (
    FIDELITY_PHASES,
    FORMATS,
    ROLES,
    BufferSpec,
    ComputeConfig,
    Core,
    KernelSource,
    NativeProgram,
    TensorSpec,
)
from tilewright.records import record

_IN_FILE = re.compile(r"^//\s*tilewright check:\s*(.+)$", re.MULTILINE)
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: OPERATORS["+"], ast.Sub: OPERATORS["-"], ast.Mult: OPERATORS["*"], ast.FloorDiv: OPERATORS["//"],
    ast.Mod: OPERATORS["%"], ast.LShift: OPERATORS["<<"],
}  # fmt: skip
_NAMED = re.compile(r"([A-Za-z_]\w*)=(.+)")


@record(kw_only=True)
class KernelFile:
    """One file with its own arguments, as texts: words may name tensors and the core."""

    role: str
    path: Path
    compile_time_args: Sequence[str] = ()
    runtime_args: Sequence[str] = ()
    defines: Mapping[str, str] = field(default_factory=dict[str, str])
    include_folders: Sequence[Path] = ()


@record(kw_only=True)
class TensorOption:
    name: str
    dtype: str
    pages: int
    memory: str = "dram"


@record(kw_only=True)
class ProgramSetup:
    """What the host side of the kernels would say."""

    kernels: Sequence[KernelFile]
    buffers: Sequence[BufferSpec] = ()
    tensors: Sequence[TensorOption] = ()
    semaphores: Sequence[int] = ()  # initial levels
    grid: Core = (1, 1)
    config: ComputeConfig = field(default_factory=ComputeConfig)
    metal: str = "0.78"
    chip: Chip = WORMHOLE_B0


def options_in_file(text: str) -> list[str]:
    """Options a kernel states for itself, in lines ``// tilewright check: --cb 0:bf16:8``."""
    return [word for line in _IN_FILE.findall(text) for word in shlex.split(line)]


def role_of(text: str) -> str:
    """Who runs a kernel that does not say so: one that moves data includes the API for it."""
    return "reader" if re.search(r'#\s*include\s*"[^"]*(dataflow|noc)[^"]*"', text) and "api/compute/" not in text else "compute"


def parse_buffer(text: str) -> BufferSpec:
    """``INDEX:DTYPE:PAGES``, e.g. ``0:bf16:8``."""
    parts = text.split(":")
    if len(parts) != 3 or not parts[0].isdigit() or not parts[2].isdigit() or parts[1] not in FORMATS:
        raise NativeError(f"'{text}' is no buffer: give INDEX:DTYPE:PAGES with a dtype of {', '.join(FORMATS)}, like 0:bf16:8")
    return BufferSpec(index=int(parts[0]), dtype=parts[1], pages=int(parts[2]))


def parse_tensor(text: str) -> TensorOption:
    """``NAME:DTYPE:SHAPE[:l1]``, e.g. ``a:bf16:64x128`` or, in tiles, ``a:bf16:8``."""
    name, dtype, shape, memory = (*text.split(":"), "dram")[:4] if text.count(":") in (2, 3) else ("", "", "", "")
    sizes = [int(size) for size in shape.split("x")] if re.fullmatch(r"\d+(x\d+)*", shape) else []
    if not name.isidentifier() or dtype not in FORMATS or not sizes or memory not in ("dram", "l1"):
        raise NativeError(f"'{text}' is no tensor: give NAME:DTYPE:SHAPE like a:bf16:64x128, or its tiles like a:bf16:8")
    if len(sizes) > 1 and (sizes[-1] % TILE_COLS or sizes[-2] % TILE_ROWS):
        raise NativeError(f"'{text}': the last two sizes must be multiples of {TILE_ROWS}")
    pages = sizes[0] if len(sizes) == 1 else int(np.prod(sizes)) // (TILE_ROWS * TILE_COLS)
    return TensorOption(name=name, dtype=dtype, pages=pages, memory=memory)


def parse_grid(text: str) -> Core:
    match = re.fullmatch(r"(\d+)x(\d+)", text)
    if match is None or "0" in match.groups():
        raise NativeError(f"'{text}' is no grid: give COLUMNSxROWS like 2x2")
    return int(match[1]), int(match[2])


def parse_fidelity(text: str) -> str:
    for name in FIDELITY_PHASES:
        if name.lower() == text.lower():
            return name
    raise NativeError(f"'{text}' is no math fidelity: {', '.join(FIDELITY_PHASES)}")


def parse_chip(text: str) -> Chip:
    if text not in CHIPS:
        raise NativeError(f"'{text}' is no chip: {', '.join(CHIPS)}")
    return CHIPS[text]


def parse_words(texts: Sequence[str], names: Mapping[str, int] | None = None) -> tuple[int, ...]:
    """Argument words: ``4``, ``0x3f800000``, sums and products of integers and ``names``; several separated by commas."""
    return tuple(_number(word, names or {}) for _, word in _named_words(texts))


def _named_words(texts: Sequence[str]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for word in (word for text in texts for word in text.split(",")):
        match = _NAMED.fullmatch(word)
        found.append((match[1], match[2]) if match else ("", word))
    return found


def _number(text: str, names: Mapping[str, int]) -> int:
    def value(node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.Name) and node.id in names:
            return names[node.id]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -value(node.operand)
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](value(node.left), value(node.right))
        raise ValueError(text)

    try:
        return value(ast.parse(text.strip(), mode="eval").body) & 0xFFFFFFFF
    except (ValueError, SyntaxError, ZeroDivisionError) as error:
        known = f"; names known here: {', '.join(names)}" if names else ""
        raise NativeError(f"'{text}' is no integer{known}") from error


def native_program(setup: ProgramSetup) -> NativeProgram:
    """The program that a run takes. Kernels without partners are fed and drained."""
    roles = [kernel.role for kernel in setup.kernels]
    for role in roles:
        if roles.count(role) > 1:
            raise NativeError(f"two kernels are the {role}")
    cores = [(x, y) for y in range(setup.grid[1]) for x in range(setup.grid[0])]
    return NativeProgram(
        kernels=[_kernel(kernel, setup, cores) for kernel in sorted(setup.kernels, key=lambda kernel: ROLES.index(kernel.role))],
        buffers=setup.buffers,
        tensors=[
            TensorSpec(
                name=tensor.name, address=_address(number), page_bytes=tile_bytes(tensor.dtype), pages=tensor.pages,
                data=_random_pages(tensor, number), dtype=tensor.dtype, memory=tensor.memory,
            )
            for number, tensor in enumerate(setup.tensors)
        ],
        semaphores=dict(enumerate(setup.semaphores)),
        grid=setup.grid, config=setup.config, metal=setup.metal, chip=setup.chip,
        alone=len(roles) < len(ROLES),
        shared_functions=False,
    )  # fmt: skip


def _address(number: int) -> int:
    return FIRST_ADDRESS + number * ADDRESS_STEP


def _kernel(kernel: KernelFile, setup: ProgramSetup, cores: Sequence[Core]) -> KernelSource:
    addresses = {tensor.name: _address(number) for number, tensor in enumerate(setup.tensors)}
    known = {"cores": len(cores), "columns": setup.grid[0], "rows": setup.grid[1], **addresses}
    compile_time: list[int] = []
    named: dict[str, str] = {}
    for name, word in _named_words(kernel.compile_time_args):
        tensor = next((each for each in setup.tensors if each.name == word), None)
        if tensor is not None:
            compile_time += [DRAM_ACCESSOR if tensor.memory == "dram" else L1_ACCESSOR, tile_bytes(tensor.dtype)]
            continue
        compile_time.append(_number(word, known))
        if name:
            named[name] = f"CtaVal<uint32_t> {name}{{{compile_time[-1]}u}}"
    for position, (name, _) in enumerate(_named_words(kernel.runtime_args)):
        if name:
            named[name] = f"RtaArg<uint32_t> {name}{{{4 * position}}}"
    runtime = {
        core: parse_words(kernel.runtime_args, {**known, "x": core[0], "y": core[1], "core": number})
        for number, core in enumerate(cores)
    }
    return KernelSource(
        role=kernel.role, path=kernel.path, compile_time_args=compile_time, runtime_args=runtime, defines=kernel.defines,
        named_args=tuple(named.values()), include_folders=(*kernel.include_folders, kernel.path.parent),
    )  # fmt: skip


def _random_pages(tensor: TensorOption, seed: int) -> Any:
    generator = np.random.default_rng(seed)
    size = tensor.pages * tile_bytes(tensor.dtype)
    values = generator.uniform(-2.0, 2.0, size // 4).astype(np.float32).view(np.uint32)
    if tensor.dtype == "f32":
        return values
    if tensor.dtype == "bf16":
        return (generator.uniform(-2.0, 2.0, size // 2).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    whole = {dtype.name for dtype in DTYPES if dtype.name[0] in "iu"}
    return generator.integers(0, 100, size // 4, np.uint32) if tensor.dtype in whole else np.zeros(size, np.uint8)
