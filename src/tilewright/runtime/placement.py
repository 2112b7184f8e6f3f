"""Which cores a program runs on, and the run-time arguments each of them gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from tilewright.hardware import CHIPS
from tilewright.program import Program, ThreadSpec
from tilewright.work import WorkArgument, core_number


def cores(program: Program) -> list[tuple[int, ...]]:
    """Every core of the program's own grid, first dimension fastest."""
    return [tuple(reversed(core)) for core in product(*(range(size) for size in reversed(program.grid)))]


def physical(core: Sequence[int], program: Program) -> tuple[int, int]:
    """Column and row on the chip: grids of one or three dimensions are folded onto it."""
    if len(core) == 1:
        columns = CHIPS[program.options.arch].grid[0]
        return core[0] % columns, core[0] // columns
    if len(core) == 2:
        return core[0], core[1]
    return core[0], core[1] * program.grid[2] + core[2]


def runtime_arguments(
    thread: ThreadSpec, program: Program, core: Sequence[int], addresses: Sequence[int], numbers: Mapping[str, int]
) -> list[int]:
    """What the kernel file of ``thread`` reads with ``get_arg_val``, in its order."""
    total = 1
    for size in program.grid:
        total *= size
    words: list[int] = []
    for kind, what in thread.runtime_args:
        if kind == "address":
            words.append(addresses[what])
        elif kind == "core":
            words.append(core[what[0]])
        elif kind == "work":
            assert isinstance(what, WorkArgument)
            words.append(what.value(core_number(core, program.grid), total))
        else:
            words.append(numbers[what])
    return words


def compile_time_arguments(thread: ThreadSpec, accessor_words: Sequence[Sequence[int]]) -> list[int]:
    """What the kernel file reads with ``get_compile_time_arg_val`` and ``TensorAccessorArgs``, in its order."""
    words: list[int] = []
    for kind, what in thread.compile_time_args:
        if kind == "accessor":
            words += accessor_words[what]
        else:
            words.append(int(what))
    return words


def written_tensors(program: Program) -> list[int]:
    """Tensors some thread writes to."""
    from tilewright.dialects.attributes import int_value
    from tilewright.dialects.ttkernel import KernelCallOp

    found: set[int] = set()
    for op in program.module.walk():
        if isinstance(op, KernelCallOp) and op.CALL.name == "noc_async_write_page":
            owner: Any = op.operands[1].owner
            found.add(int_value(owner, "tensor_index"))
    return sorted(found)
