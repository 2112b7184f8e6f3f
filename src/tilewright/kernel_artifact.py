"""A program as the ``kernel_artifact`` that tt-mlir's ``ttnn.tt_lang_op`` carries: kernels, buffers and cores in one JSON object.

tt-xla hands it over as bytes, and tt-mlir makes a ``ttnn.generic`` of it. That launch gives every core the same arguments: the
numbers of all buffers and the accessors of all operands at compile time, addresses at run time. The C++ is spelled for it
(`emit/arguments.py`); what it has no place for is refused (TW610). ``docs/kernel_artifact.schema.json`` is its schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tilewright.diagnostics import fail
from tilewright.dtypes import DTYPE_BY_NAME
from tilewright.grid import chip_place, cores_of
from tilewright.hardware import tile_bytes
from tilewright.program import ROW_MAJOR, ROWS, CallerNumber, CoreNumber, ThreadSpec

if TYPE_CHECKING:
    from tilewright.program import Program

FORMAT_VERSION = 1
TTCORE_NAMES = {"bf16": "BFloat16", "bfp8_b": "BFP_BFloat8", "bfp4_b": "BFP_BFloat4"}  # where they are not those of kernels
MLIR_NAMES = {"u32": "ui32", "u16": "ui16", "u8": "ui8"}  # where MLIR spells an element type otherwise
KINDS = {"reader": "ReaderKernelConfig", "writer": "WriterKernelConfig"}


def kernel_artifact(program: Program) -> dict[str, Any]:
    """The artifact, as plain data: ``json.dumps`` of it is what the attribute holds."""
    from tilewright.compiler import cpp_lines
    from tilewright.emit.arguments import Launch, tensor_indices

    for what, remedy in _refusals(program):
        raise fail("TW610", f"'{program.name}' does not fit into a kernel_artifact: {what}", help=remedy)
    launch = Launch(
        buffers=tuple(buffer.index for buffer in program.buffers),
        operands=tuple(tensor.name for tensor in program.tensors),
        grid=program.grid,
        columns=program.options.chip.grid[0],
    )
    texts = {role: "\n".join(line.text for line in lines) + "\n" for role, lines in cpp_lines(program, launch=launch).items()}
    columns, rows = _extent(program)
    return {
        "format_version": FORMAT_VERSION,
        "kernels": [
            {
                "thread_type": "compute" if thread.role == "compute" else "noc",
                "cpp_source": texts[thread.role],
                "tensor_indices": tensor_indices(thread),
                "kernel_config": _configuration(program, thread),
            }
            for thread in program.threads
        ],
        "core_range": {"start": [0, 0], "end": [columns - 1, rows - 1]},
        "cb_configs": [
            {
                "buffer_index": position,
                "data_format": TTCORE_NAMES.get(buffer.dtype, DTYPE_BY_NAME[buffer.dtype].format),
                "page_size": tile_bytes(buffer.dtype),
                "total_size": buffer.tiles * tile_bytes(buffer.dtype),
                "num_tiles": buffer.tiles,
                "block_count": buffer.block_count,
            }
            for position, buffer in enumerate(program.buffers)
        ],
        "num_tensors": len(program.tensors),
        "num_pipe_sync_semaphores": 0,
        "operand_metadata": {
            "shapes": [list(tensor.logical_shape or tensor.shape) for tensor in program.tensors],
            "dtypes": [MLIR_NAMES.get(tensor.dtype, tensor.dtype) for tensor in program.tensors],
            "layouts": [""] * len(program.tensors),
            "mesh_shape": [1],
            "arg_roles": ",".join(roles(program)),
            "shard_spec": None,
        },
    }


def roles(program: Program) -> list[str]:
    """``in`` or ``out`` per tensor, in their order."""
    return ["out" if index in program.written_tensors else "in" for index in range(len(program.tensors))]


def _configuration(program: Program, thread: ThreadSpec) -> dict[str, Any]:
    if thread.role in KINDS:
        return {"type": KINDS[thread.role]}
    config = program.config
    return {
        "type": "ComputeKernelConfig",
        "math_fidelity": config.math_fidelity,
        "fp32_dest_acc_en": config.fp32_dest_acc_en,
        "dst_full_sync_en": config.dst_full_sync_en,
        "bfp8_pack_precise": False,
        "math_approx_mode": config.math_approx_mode,
    }


def _extent(program: Program) -> tuple[int, int]:
    """Columns and rows of the chip that the cores lie in."""
    columns = program.options.chip.grid[0]
    places = [chip_place(core, program.grid, columns) for core in cores_of(program.grid)]
    return 1 + max(x for x, _ in places), 1 + max(y for _, y in places)


def _refusals(program: Program) -> Iterator[tuple[str, str]]:
    """What the format cannot say, and what to do about it."""
    if program.semaphores:
        yield "its cores talk through semaphores", "a kernel without pipes: each core reads what it needs from DRAM"
    columns, rows = _extent(program)
    if columns * rows != len(cores_of(program.grid)):
        yield f"{len(cores_of(program.grid))} cores fill no rectangle", f"grid=({columns}, {rows}), or another rectangle"
    for thread in program.threads:
        for entry in thread.runtime_args:
            if isinstance(entry, CallerNumber):
                yield f"the caller gives it the number '{entry.what}'", "a constant of the kernel in its place"
            if isinstance(entry, CoreNumber):
                yield f"'{entry.what[0]}' is a table with numbers for each core", "numbers that follow from ttl.node()"
    for buffer in program.buffers:
        if buffer.tensor is not None:
            name = program.tensors[buffer.tensor].name
            yield f"buffer '{buffer.name}' lies in the shard of '{name}'", "a buffer of its own, filled by ttl.copy"
        if buffer.alias_of is not None or buffer.index in program.config.unpack_to_dest:
            remedy = "bf16 tensors, or --no-fp32-dest-acc, which computes in 16 bits"
            yield f"32-bit buffer '{buffer.name}' is unpacked to DST, which a launch must be told", remedy
    for tensor in program.tensors:
        if tensor.layout in (ROW_MAJOR, ROWS):
            yield f"tensor '{tensor.name}' is stored row by row", "operands of tt_lang_op are tiled: layout=ttnn.TILE_LAYOUT"
    for layout in program.argument_layouts.layouts if program.argument_layouts else ():
        if layout.made:
            yield f"tensor '{layout.name}' is made by the launcher", "that tensor as a parameter of the kernel"
        elif not layout.is_plain:
            yield f"tensor '{layout.name}' is laid out anew by the launcher", "tiled dimensions last, in whole tiles"
    if "out" not in roles(program):
        yield "it writes no tensor", "an output: its operand becomes the result"
    if roles(program) != sorted(roles(program)):
        order = ", ".join(f"{tensor.name} ({role})" for tensor, role in zip(program.tensors, roles(program), strict=True))
        yield f"an input comes after an output: {order}", "parameters of the kernel in another order, outputs last"
