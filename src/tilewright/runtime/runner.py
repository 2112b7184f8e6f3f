"""What a launcher of a program must know, as plain data; and a Python script that launches its files through ttnn, on machines
without Tilewright.

The script is ``standalone.py`` with those facts, ``descriptor.py`` and ``dlpack.py`` in it, so it is checked like the rest of the
code.
"""

from __future__ import annotations

import pprint
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilewright.dtypes import DTYPES
from tilewright.emit.spelling import CHANGED, release
from tilewright.grid import chip_place, cores_of
from tilewright.hardware import TILE_COLS, TILE_ROWS, tile_bytes
from tilewright.program import (
    ROW_MAJOR,
    ROWS,
    CallerNumber,
    CallPlace,
    NocColumn,
    NocRow,
    Program,
    RuntimeArgument,
    TensorAddress,
    TensorSpec,
)

SCRIPT = Path(__file__).with_name("standalone.py")
INLINED = ("descriptor", "dlpack")
IMPORTED = re.compile(r"from tilewright\.runtime\.\w+ import .*\n")
KNOWN_IMPORTS = {  # of the files that are inlined; the script has all of them
    "import ctypes", "from collections.abc import Mapping, Sequence", "from typing import Any", "import numpy",
}  # fmt: skip
FUTURE = "from __future__ import annotations\n"
EMPTY = "PROGRAM: dict[str, Any] = {}\n"
TITLE = '"""Launches the kernel files beside this one through ttnn.\n'
WIDTH = 120


DATA_TYPES = {dtype.name: dtype.api for dtype in DTYPES}


def cores(program: Program) -> list[tuple[int, ...]]:
    """Every core of the program's own grid, first dimension fastest."""
    return list(cores_of(program.grid))


def physical(core: Sequence[int], program: Program) -> tuple[int, int]:
    """Column and row on the chip: grids of one or three dimensions are folded onto it."""
    return chip_place(core, program.grid, program.options.chip.grid[0])


def script(program: Program) -> str:
    """The text of ``runner.py``."""
    text = SCRIPT.read_text(encoding="utf-8")
    assert text.count(EMPTY) == 1 and len(IMPORTED.findall(text)) == len(INLINED) and text.startswith(TITLE)
    for name in INLINED:
        imports, _, rest = SCRIPT.with_name(f"{name}.py").read_text(encoding="utf-8").partition(FUTURE)[2].partition("\n\n\n")
        constants = imports[imports.rindex("import ") :].partition("\n")[2]
        assert {line for line in imports.removesuffix(constants).splitlines() if line} <= KNOWN_IMPORTS
        text = text.replace(EMPTY, f"{EMPTY}{constants}\n\n{rest}", 1)
    text = text.replace("import importlib\n", "import ctypes\nimport importlib\n", 1)
    text = IMPORTED.sub("", IMPORTED.sub("import numpy\n", text, count=1))
    known = {"releases": releases(program), **facts(program)}
    data = pprint.pformat(known, width=WIDTH, sort_dicts=False)
    last = known["releases"][1]
    until = "or newer" if last is None else f"to {last[0]}.{last[1]}"
    title = f'"""Launches kernel \'{program.name}\' through ttnn {program.options.metal} {until}. Written by Tilewright.\n'
    return text.replace(TITLE, title).replace(EMPTY, f"PROGRAM: dict[str, Any] = {data}\n")


def releases(program: Program) -> tuple[tuple[int, int], tuple[int, int] | None]:
    """First and last release whose names the files have; no last one if those of the newest fit."""
    from tilewright.compiler import respelled

    first = last = release(program.options.metal)
    for later in (each for each in CHANGED if each > first):
        if respelled(program, f"{later[0]}.{later[1]}") != program.cpp:
            return first, last
        last = later
    return first, None


def facts(program: Program) -> dict[str, Any]:
    """Everything a launcher needs that is not in the kernel files; `descriptor` reads it."""
    config = program.config
    return {
        "cores": [physical(core, program) for core in cores(program)],
        "tensors": [tensor_facts(tensor) for tensor in program.tensors],
        "written": list(program.written_tensors),
        "numbers": program.number_names,
        "buffers": [
            {
                "indices": program.indices_of(buffer),
                "dtype": DATA_TYPES[buffer.dtype],
                "page": tile_bytes(buffer.dtype),
                "pages": buffer.tiles,
                "tensor": buffer.tensor,
                "first": buffer.first_tile,
                "cores": [physical(core, program) for core in buffer.cores],
            }
            for buffer in program.buffers
            if buffer.alias_of is None
        ],
        "semaphores": [(semaphore.index, semaphore.initial) for semaphore in program.semaphores],
        "compute": {
            "math_fidelity": config.math_fidelity,
            "fp32_dest_acc_en": config.fp32_dest_acc_en,
            "dst_full_sync_en": config.dst_full_sync_en,
            "math_approx_mode": config.math_approx_mode,
            "unpack_to_dest": list(config.unpack_to_dest),
            "max_buffers": program.options.chip.max_buffers,
        },
        "kernels": [
            {
                "file": f"{thread.role}.cpp",
                "role": thread.role,
                "compile_time": [(each.KIND, each.what) for each in thread.compile_time_args],
                "runtime": [_entry(argument, program) for argument in thread.runtime_args],
            }
            for thread in program.threads
        ],
    }


def tensor_facts(tensor: TensorSpec) -> dict[str, Any]:
    return {
        "name": tensor.name,
        "shape": tensor.shape,
        "dtype": DATA_TYPES[tensor.dtype],
        "layout": "ROW_MAJOR_LAYOUT" if tensor.layout in (ROW_MAJOR, ROWS) else "TILE_LAYOUT",
        **({"tile": tensor.tile} if tensor.tile != (TILE_ROWS, TILE_COLS) else {}),
        "memory": tensor.memory,
        "sharding": tensor.sharding,
        "shard": tensor.shard_shape,
        "shard_cores": tensor.shard_cores,
    }


def _entry(argument: RuntimeArgument, program: Program) -> tuple[str, Any]:
    """A run-time argument as data: what only follows from the core is listed per core."""
    if isinstance(argument, (TensorAddress, NocColumn, NocRow)):
        return argument.KIND, argument.what
    if isinstance(argument, CallerNumber):
        return "number", argument.what
    return "each", [argument.word(CallPlace(core=core, grid=program.grid)) for core in cores(program)]
