"""Which cores a program runs on, and the run-time arguments each of them gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tilewright.network import chip_place, cores_of
from tilewright.program import Program, ThreadSpec
from tilewright.work import WorkArgument, core_number

NocPlace = Callable[[int, int], tuple[int, int]]


def cores(program: Program) -> list[tuple[int, ...]]:
    """Every core of the program's own grid, first dimension fastest."""
    return list(cores_of(program.grid))


def physical(core: Sequence[int], program: Program) -> tuple[int, int]:
    """Column and row on the chip: grids of one or three dimensions are folded onto it."""
    return chip_place(core, program.grid, program.options.chip.grid[0])


def runtime_arguments(
    thread: ThreadSpec,
    program: Program,
    core: Sequence[int],
    addresses: Sequence[int],
    numbers: Mapping[str, int],
    noc_place: NocPlace | None = None,
) -> list[int]:
    """What the kernel file of ``thread`` reads with ``get_arg_val``, in its order.

    ``noc_place`` gives the NoC coordinates of a column and row of cores; without it they are the same numbers.
    """
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
        elif kind == "noc_x":
            words.append(what if noc_place is None else noc_place(what, 0)[0])
        elif kind == "noc_y":
            words.append(what if noc_place is None else noc_place(0, what)[1])
        elif kind == "table":
            words.append(what[2][core_number(core, program.grid)])
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
    return list(program.trace.facts["written_tensors"])
