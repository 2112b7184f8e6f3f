"""The top of a kernel file that every core runs with the same arguments, as other compilers launch it.

Compile-time arguments are all buffers by number, then the accessor words of every operand. Addresses are common run-time
arguments. What differs among cores the file computes from where its core lies.
"""

from __future__ import annotations

from tilewright.emit.arguments import Arguments
from tilewright.grid import COUNT, FIXED
from tilewright.program import CoreCoordinate, RuntimeArgument, TensorAddress, ThreadSpec, WorkShare
from tilewright.records import record

COLUMN, ROW = "get_absolute_logical_x()", "get_absolute_logical_y()"


@record(kw_only=True)
class Launch:
    """What all files of a program share."""

    buffers: tuple[int, ...]  # their numbers, in the order of the compile-time arguments
    operands: tuple[str, ...]  # names of the tensors
    grid: tuple[int, ...]
    columns: int  # that a grid of one dimension is folded to


class CommonArguments(Arguments):
    def __init__(self, thread: ThreadSpec, release: tuple[int, int], launch: Launch) -> None:
        super().__init__(thread, release)
        self.launch = launch
        self.offset = str(len(launch.buffers))
        self.declared: list[str] = []  # names of the accessor arguments, by operand

    def buffer_slot(self, buffer: int, position: int) -> int:
        return self.launch.buffers.index(buffer)

    def accessor_words(self, tensor: int, name: str, used: set[str]) -> tuple[str, list[str]]:
        """Those of operands in front come before: each says where the next begins."""
        lines: list[str] = []
        while len(self.declared) <= tensor:
            made, declared = super().accessor_words(len(self.declared), self.launch.operands[len(self.declared)], used)
            self.declared.append(made)
            lines += declared
        return self.declared[tensor], lines

    def word(self, entry: RuntimeArgument) -> str:
        if isinstance(entry, TensorAddress):
            return f"get_common_arg_val<uint32_t>({tensor_indices(self.thread).index(entry.what)})"
        if isinstance(entry, CoreCoordinate):
            return coordinate(entry.what[0], self.launch)
        assert isinstance(entry, WorkShare), f"an argument of each core that no place gives: {entry}"
        return work(entry, self.launch)


def tensor_indices(thread: ThreadSpec) -> list[int]:
    """Tensors whose addresses the file reads, in the order of its common run-time arguments."""
    return list(dict.fromkeys(each.what for each in thread.runtime_args if isinstance(each, TensorAddress)))


def coordinate(dim: int, launch: Launch) -> str:
    """A coordinate of the kernel's grid from the column and row of the core (`grid.chip_place` the other way)."""
    if len(launch.grid) == 1:
        return COLUMN if launch.grid[0] <= launch.columns else f"{ROW} * {launch.columns} + {COLUMN}"
    if len(launch.grid) == 2 or dim == 0:
        return (COLUMN, ROW)[dim]
    return f"{ROW} / {launch.grid[2]}" if dim == 1 else f"{ROW} % {launch.grid[2]}"


def work(entry: WorkShare, launch: Launch) -> str:
    """First block or number of blocks of this core (`grid.share`)."""
    if entry.what.part == FIXED:
        return str(entry.what.amount)
    cores = 1
    terms: list[str] = []
    for dim, size in enumerate(launch.grid):
        if size > 1:
            terms.append(coordinate(dim, launch) if cores == 1 else f"{_factor(coordinate(dim, launch))} * {cores}")
        cores *= size
    core = " + ".join(terms) or "0"
    each, rest = divmod(entry.what.amount, cores)
    if entry.what.part == COUNT:
        return f"{each} + ({core} < {rest})" if rest else str(each)
    started = f"({core}) * {each}" if len(terms) > 1 or " " in core else f"{core} * {each}"
    return f"{started} + ({core} < {rest} ? {core} : {rest})" if rest else started


def _factor(text: str) -> str:
    return f"({text})" if " " in text else text
