"""A program as the runner reads it: lines of words beside one file of tensor bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tilewright.native.errors import NativeError
from tilewright.native.kernel_unit import COMPUTE_THREADS, accumulating_lines, is_coupled
from tilewright.native.program import FIDELITY_PHASES, BufferSpec, NativeProgram, TensorSpec, release_of

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
