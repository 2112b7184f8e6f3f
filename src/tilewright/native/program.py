"""What a native run needs to know: kernels, buffers, tensors, grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.dtypes import DTYPES
from tilewright.hardware import WORMHOLE_B0, Chip, tile_bytes
from tilewright.native.errors import NativeError
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

    def source(self) -> str:
        return self.path.read_text() if self.path is not None else self.text

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

    def core_list(self) -> list[Core]:
        return list(self.cores) or [(x, y) for y in range(self.grid[1]) for x in range(self.grid[0])]


def release_of(metal: str) -> int:
    """The second number of a ttnn release, which decides what its headers have: 0.62.2 -> 62."""
    parts = metal.split(".")
    if len(parts) < 2 or parts[0] != "0" or not parts[1].isdigit():
        raise NativeError(f"'{metal}' is not a ttnn release: give one like 0.62, 0.69 or 0.78")
    return max(62, int(parts[1]))
