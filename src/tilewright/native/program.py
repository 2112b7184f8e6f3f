"""What a native run needs to know: kernels, buffers, tensors, grid.

Then the text of each kernel as a translation unit, and the description of the run as lines of words, which ``program.cpp`` reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.dtypes import DTYPES
from tilewright.hardware import WORMHOLE_B0, Chip, tile_bytes
from tilewright.native.findings import NativeError
from tilewright.records import record

Bytes = NDArray[np.uint8]
Core = tuple[int, int]

ROLES = ("reader", "compute", "writer")
FORMATS = {dtype.name: dtype.number for dtype in DTYPES}
FIDELITY_PHASES = {"LoFi": 1, "HiFi2": 2, "HiFi3": 3, "HiFi4": 4}


@record(kw_only=True)
class KernelSource:
    """One kernel file. ``runtime_args`` is one list for every core, or a list per core."""

    role: str
    text: str = ""
    path: Path | None = None
    name: str = ""  # shown in findings; default: the path, or <role>.cpp
    compile_time_args: Sequence[int] = ()
    runtime_args: Sequence[int] | Mapping[Core, Sequence[int]] = ()
    common_args: Sequence[int] = ()
    defines: Mapping[str, str] = field(default_factory=dict[str, str])
    named_args: Sequence[str] = ()  # declarations of namespace args, for experimental/kernel_args.h
    include_folders: Sequence[Path] = ()

    def source(self) -> str:
        return self.path.read_text(encoding="utf-8", errors="replace") if self.path is not None else self.text

    def label(self) -> str:
        return self.name or (str(self.path) if self.path is not None else f"{self.role}.cpp")

    def arguments(self, core: Core) -> Sequence[int]:
        if isinstance(self.runtime_args, Mapping):
            return self.runtime_args.get(core, ())
        return self.runtime_args


@record(kw_only=True)
class BufferSpec:
    """One circular buffer, the same on every core. ``alias_of`` shares the L1 of another index."""

    index: int
    dtype: str
    pages: int
    page_bytes: int = 0  # 0: one tile
    alias_of: int | None = None
    tensor: int | None = None  # lies in the shards of this tensor, ``first_page`` pages from their start
    first_page: int = 0

    def format_number(self) -> int:
        if self.dtype not in FORMATS:
            raise NativeError(f"buffer {self.index} has dtype {self.dtype}; the native run knows {', '.join(FORMATS)}")
        return FORMATS[self.dtype]

    def bytes_per_page(self) -> int:
        return self.page_bytes or tile_bytes(self.dtype)


@record(kw_only=True)
class TensorSpec:
    """A tensor as pages: ``data`` holds them one after the other."""

    name: str
    address: int
    page_bytes: int
    pages: int
    data: NDArray[Any]
    dtype: str = "bf16"
    memory: str = "dram"  # dram or l1
    shards: Mapping[Core, Sequence[int]] = field(default_factory=dict[Core, "Sequence[int]"])  # pages in each core's L1, -1: none

    def raw(self) -> Bytes:
        flat = np.ascontiguousarray(self.data).reshape(-1).view(np.uint8)
        if flat.size != self.page_bytes * self.pages:
            raise NativeError(f"tensor {self.name} has {flat.size} bytes, {self.pages} pages of {self.page_bytes} were stated")
        return flat


@record(kw_only=True)
class ComputeConfig:
    fp32_dest_acc_en: bool = False
    dst_full_sync_en: bool = False
    math_fidelity: str = "HiFi4"
    unpack_to_dest: frozenset[int] = frozenset()  # buffers in UnpackToDestFp32 mode
    bfp8_pack_precise: bool = False


@record(kw_only=True)
class NativeProgram:
    """Everything one launch has."""

    kernels: Sequence[KernelSource]
    buffers: Sequence[BufferSpec]
    tensors: Sequence[TensorSpec] = ()
    semaphores: Mapping[int, int] = field(default_factory=dict[int, int])  # id -> initial value
    grid: Core = (1, 1)  # columns, rows
    cores: Sequence[Core] = ()  # empty: the whole grid
    config: ComputeConfig = field(default_factory=ComputeConfig)
    metal: str = "0.78"
    noc_origin: Core = (0, 0)  # NoC coordinates of logical core (0, 0)
    shared_functions: bool = True  # functions without an algorithm of native's own come from the simulator's numbers
    alone: bool = False  # only a compute kernel: its inputs are fed with random tiles, its outputs drained
    coupled: bool | None = None  # None: all cores run at once if a kernel names semaphores, multicasts or other cores
    accessor_words: int = 2  # compile-time words per interleaved tensor
    chip: Chip = WORMHOLE_B0
    record: bool = False  # list every call, for a timeline

    def core_list(self) -> list[Core]:
        return list(self.cores) or [(x, y) for y in range(self.grid[1]) for x in range(self.grid[0])]


def release_of(metal: str) -> int:
    """The second number of a ttnn release, which decides what its headers have: 0.62.2 -> 62."""
    parts = metal.split(".")
    if len(parts) < 2 or parts[0] != "0" or not parts[1].isdigit():
        raise NativeError(f"'{metal}' is not a ttnn release: give one like 0.62, 0.69 or 0.78")
    return max(62, int(parts[1]))


COMPUTE_THREADS = ("unpack", "math", "pack")

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
# Text that may differ between the three compute threads, or state that they must not share.
_PER_THREAD = re.compile(
    r"\b(?:UNPACK|MATH|PACK)\s*\(|\bTRISC_|COMPILE_FOR_TRISC|\bstatic\b(?!\s+(?:constexpr|const|inline\s+constexpr))"
    r"|^(?:volatile\s+)?(?:u?int\w*_t|int|unsigned|float|bool|size_t)\s+\w+\s*(?:=|;|\[)",
    re.MULTILINE,
)
_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
_KNOWN_ROOTS = (
    "api/", "compute_kernel_api", "dataflow_api.h", "accessor/", "debug/", "hostdevcommon/", "experimental/kernel_args.h",
)  # fmt: skip
_COUPLING = re.compile(r"semaphore|multicast|\bget_noc_addr\s*\(\s*\w+\s*,\s*\w+\s*,|\bmy_x\b", re.IGNORECASE)
_ACCUMULATES = re.compile(r"(?://|/\*).*(?<![-\w])accumulat(?:e|es|ed|ing)\b", re.IGNORECASE)

# What the firmware defines for each processor.
_THREAD_MACROS = {
    "unpack": "#define TRISC_UNPACK 1\n#define COMPILE_FOR_TRISC 0\n",
    "math": "#define TRISC_MATH 1\n#define COMPILE_FOR_TRISC 1\n",
    "pack": "#define TRISC_PACK 1\n#define COMPILE_FOR_TRISC 2\n",
    "compute": "#define COMPILE_FOR_TRISC 0\n",
    "reader": "#define COMPILE_FOR_NCRISC 1\n",
    "writer": "#define COMPILE_FOR_BRISC 1\n",
}


def without_comments(text: str) -> str:
    return _COMMENT.sub(" ", text)


def needs_three_units(text: str) -> bool:
    """Whether unpack, math and pack must be compiled apart."""
    code = without_comments(text)
    return bool(_PER_THREAD.search(code)) or any(not path.startswith(_KNOWN_ROOTS) for path in _INCLUDE.findall(code))


def is_coupled(program: NativeProgram) -> bool:
    """Whether cores may wait for or write to each other."""
    if program.coupled is not None:
        return program.coupled
    return any(_COUPLING.search(without_comments(kernel.source())) for kernel in program.kernels)


def accumulating_lines(text: str) -> list[int]:
    """Lines whose comment, on the line itself or alone on the line above, says that the op accumulates."""
    lines = text.split("\n")
    found: list[int] = []
    for number, line in enumerate(lines, start=1):
        if not _ACCUMULATES.search(line):
            continue
        found.append(number + 1 if line.lstrip().startswith(("//", "/*")) else number)
    return found


def unit_text(program: NativeProgram, kernel: KernelSource, thread: str) -> str:
    """The C++ handed to the compiler: the release's environment, the file itself under its own name, an entry point."""
    config = program.config
    words = "".join(f"{value & 0xFFFFFFFF}u, " for value in kernel.compile_time_args)
    defines = "".join(f"#define {name} {value}\n" for name, value in kernel.defines.items())
    text = kernel.source()
    entry = "tw_kernel_space::tw_main()" if re.search(r"\bMAIN\b", without_comments(text)) else "kernel_main()"
    label = kernel.label().replace("\\", "/")
    named = "".join(f"constexpr experimental::{each};\n" for each in kernel.named_args)
    arguments = f'#include "tw/named_args.h"\nnamespace args {{\n{named}}}\n' if named else ""
    return (
        f"#define TW_METAL {release_of(program.metal)}\n"
        f"#define TW_COMPILE_TIME_ARGS {words}0u\n"
        f"#define TW_ACCESSOR_WORDS {program.accessor_words}\n"
        f"#define DST_ACCUM_MODE {'true' if config.fp32_dest_acc_en else 'false'}\n"
        "#define NAMESPACE tw_kernel_space\n#define MAIN tw_main()\n"
        f"{_THREAD_MACROS[thread]}{defines}"
        '#include <cstdint>\n#include <cstddef>\nusing std::size_t;\n#include "tw/kernel_args.h"\n'
        f"{arguments}"
        f'#line 1 "{label}"\n{text}\n'
        f'#line 1 "entry of {label}"\n'
        f'extern "C" __attribute__((visibility("default"))) void tw_entry() {{ {entry}; }}\n'
    )


CALLS_FILE = "calls"
L1_SYSTEM_BYTES = 0x8000  # semaphores and arguments, below the buffers in the model
TENSOR_ALIGNMENT = 64
L1_READ_ALIGNMENT = 16


def _shard_offsets(tensors: Sequence[TensorSpec]) -> tuple[dict[int, int], int]:
    """Where the shards of each tensor start in L1, and where the last ends."""
    offsets: dict[int, int] = {}
    position = 0
    for number, tensor in enumerate(tensors):
        if tensor.shards:
            offsets[number] = position
            position += (max(map(len, tensor.shards.values())) * tensor.page_bytes + 63) // 64 * 64
    return offsets, position


def _buffer_offsets(buffers: Sequence[BufferSpec], shards: Mapping[int, int], position: int, limit: int) -> dict[int, int]:
    offsets: dict[int, int] = {}
    for buffer in buffers:
        if buffer.tensor is not None:
            offsets[buffer.index] = shards[buffer.tensor] + buffer.first_page * buffer.bytes_per_page()
        elif buffer.alias_of is None:
            offsets[buffer.index] = position
            position += (buffer.bytes_per_page() * buffer.pages + 63) // 64 * 64
    for buffer in buffers:
        if buffer.alias_of is not None:
            offsets[buffer.index] = offsets[buffer.alias_of]
    if position > limit:
        raise NativeError(f"the buffers take {position} bytes of L1, a core has {limit}")
    return offsets


def _words(values: Sequence[int]) -> str:
    return " ".join(str(value & 0xFFFFFFFF) for value in values)


def threads_of(role: str) -> tuple[str, ...]:
    return COMPUTE_THREADS if role == "compute" else (role,)


def write_data(program: NativeProgram, path: Path) -> list[int]:
    """Tensor bytes one after the other; returns each tensor's offset."""
    offsets: list[int] = []
    with path.open("wb") as file:
        for tensor in program.tensors:
            offsets.append(file.tell())
            file.write(tensor.raw().tobytes())
            file.write(bytes(-file.tell() % TENSOR_ALIGNMENT))
    return offsets


def write_program(program: NativeProgram, libraries: Mapping[str, Path], folder: Path) -> tuple[Path, list[int]]:
    """Writes every file of a run; returns the program file and the tensors' offsets in ``folder/data``."""
    config = program.config
    offsets = write_data(program, folder / "data")
    lines = [
        f"metal {release_of(program.metal)}",
        f"noc_origin {program.noc_origin[0]} {program.noc_origin[1]}",
        f"chip {program.chip.name}",
        f"l1 {program.chip.l1_bytes + L1_SYSTEM_BYTES}",
        f"compute {config.fp32_dest_acc_en:d} {config.dst_full_sync_en:d} {FIDELITY_PHASES[config.math_fidelity]}"
        f" {config.bfp8_pack_precise:d}",
        f"alone {program.alone:d}",
        f"erratum {program.chip.cancellation_erratum:d}",
        f"coupled {is_coupled(program):d}",
        f"data {folder / 'data'}",
        f"functions {program.shared_functions:d}",
    ]
    if program.record:
        lines.append(f"record {folder / CALLS_FILE}")
    for tensor, offset in zip(program.tensors, offsets, strict=True):
        alignment = L1_READ_ALIGNMENT if tensor.memory == "l1" or tensor.shards else program.chip.dram_read_alignment
        lines.append(f"tensor {tensor.address} {tensor.page_bytes} {tensor.pages} {offset} {alignment}")
    shards, after_shards = _shard_offsets(program.tensors)
    lines += [f"shards {number} {offset}" for number, offset in shards.items()]
    places = _buffer_offsets(program.buffers, shards, after_shards, program.chip.l1_bytes)
    for buffer in program.buffers:
        to_dst = buffer.index in config.unpack_to_dest
        size = f"{buffer.format_number()} {buffer.bytes_per_page()} {buffer.pages}"
        lines.append(f"buffer {buffer.index} {size} {to_dst:d} {places[buffer.index]} {buffer.tensor is not None:d}")
    lines += [f"semaphore {identifier} {value}" for identifier, value in program.semaphores.items()]
    for kernel in program.kernels:
        lines += [f"intended {number} {kernel.label()}" for number in accumulating_lines(kernel.source())]
        lines += [f"common {thread} {_words(kernel.common_args)}" for thread in threads_of(kernel.role)]
    lines += [f"kernel {thread} {library}" for thread, library in libraries.items()]
    for core in program.core_list():
        lines.append(f"core {core[0]} {core[1]}")
        lines += [f"shard {number} {_words(program.tensors[number].shards.get(core, ()))}" for number in shards]
        for kernel in program.kernels:
            lines += [f"args {thread} {_words(kernel.arguments(core))}" for thread in threads_of(kernel.role)]
    path = folder / "program"
    path.write_text("\n".join(lines) + "\n")
    return path, offsets
