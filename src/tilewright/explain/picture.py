"""A program as a picture: which thread moves what through which buffer, the pipes between cores, and L1 of a core."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.attributes import int_value
from tilewright.dialects.ttkernel import KernelCallOp
from tilewright.dialects.walking import operations
from tilewright.hardware import tile_bytes
from tilewright.program import BufferSpec, Program

# What the names of buffers that the compiler makes mean, for those who meet them in the C++; the first pattern that fits.
MEANINGS = (
    (r".*_exact", "a second index over the same memory: its readers get all bits of an f32, others what the matrix unit takes"),
    (r".*_kept", "the value that a fragment keeps from one turn of a loop to the next"),
    (r"ones_.*", "a tile of ones: the factor that a reduction multiplies with"),
    (r"first_row", "ones in the first row, zeros elsewhere: keeps what a reduction over rows leaves there"),
    (r"first_column", "ones in the first column, zeros elsewhere: keeps what a reduction over columns leaves there"),
    (r"first_corner", "a one in the first element, zeros elsewhere: keeps what a reduction of everything leaves there"),
    (r"between_\d+", "a value that goes through L1 between two regions, since a unit must read it from there"),
    (r"spill_\d+", "a value that does not stay in DST: it is packed and unpacked again within one expression"),
    (r"(.+)_\d+", "a value that is computed once and kept: before its operands are released, or before a loop that uses it"),
    (r".*", "made by the compiler"),
)


def meaning(name: str) -> str:
    """What a buffer of the compiler's is for, by its name."""
    return next(text for pattern, text in MEANINGS if re.fullmatch(pattern, name))

# What a call does with the buffer or tensor that one of its operands names.
BUFFER_USES = {"cb_push_back": "pushes", "cb_pop_front": "pops"}
TENSOR_USES = {
    "noc_async_read_page": "reads", "noc_async_read_tile_rows": "reads",
    "noc_async_write_page": "writes", "noc_async_write_tile_rows": "writes",
}  # fmt: skip


def buffers(program: Program, described: Sequence[dict[str, Any]], source: str) -> list[dict[str, Any]]:
    """With bytes, and what those are for whose names the source does not have."""
    words = set(re.findall(r"\w+", source))
    return [
        {**known, "bytes": _bytes(spec), "meaning": "" if spec.origin == "user" and spec.name in words else meaning(spec.name)}
        for spec, known in zip(program.buffers, described, strict=True)
    ]


def _bytes(spec: BufferSpec) -> int:
    return tile_bytes(spec.dtype) * spec.tiles


def memory(program: Program) -> dict[str, Any]:
    """L1 of one core: buffers lie one behind the other from where the launcher's own ends; other views and shards take none."""
    chip = program.options.chip
    start = chip.l1_reserved_bytes
    placed: list[dict[str, Any]] = []
    for spec in program.buffers:
        if spec.alias_of is None and spec.tensor is None:
            placed.append({"buffer": spec.index, "start": start, "bytes": _bytes(spec)})
            start += _bytes(spec)
    return {
        "bytes": chip.l1_bytes,
        "reserved": chip.l1_reserved_bytes,
        "used": start - chip.l1_reserved_bytes,
        "room": chip.l1_usable_bytes,
        "buffers": placed,
    }


def data_flow(program: Program) -> list[dict[str, Any]]:
    """Of every thread: tensors it reads and writes, buffers it fills and empties."""
    functions = {op.sym_name.data: op for op in program.module.ops if isinstance(op, FuncOp)}
    found: list[dict[str, Any]] = []
    for thread in program.threads:
        uses: dict[str, list[int]] = {"reads": [], "writes": [], "pushes": [], "pops": []}
        for op in operations(functions[thread.function]):
            if isinstance(op, KernelCallOp):
                _note_use(op, uses)
        found.append({"thread": thread.name, "role": thread.role, **uses})
    return found


def _note_use(op: KernelCallOp, uses: dict[str, list[int]]) -> None:
    name = op.CALL.name
    if name in BUFFER_USES:
        verb, number = BUFFER_USES[name], _number(op.operand("buffer"), "cb_index")
    elif name in TENSOR_USES:
        verb, number = TENSOR_USES[name], _number(op.operand("accessor"), "tensor_index")
    else:
        return
    if number >= 0 and number not in uses[verb]:
        uses[verb].append(number)


def _number(value: SSAValue, key: str) -> int:
    return int_value(value.owner, key, -1) if isinstance(value.owner, Operation) else -1


def pipes(program: Program) -> list[dict[str, Any]]:
    """Who sends to whom, by net, as the source declares it."""
    grid = program.grid
    return [
        {
            "net": net.name,
            "pipes": [
                {"from": list(pipe.source_core(grid)), "to": [list(core) for core in pipe.target_cores(grid)]}
                for pipe in net.pipes
            ],
        }
        for net in program.trace.nets
    ]
