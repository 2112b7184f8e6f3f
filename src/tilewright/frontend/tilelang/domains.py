"""What the loops and the launch of a kernel run over."""

from __future__ import annotations

from typing import Any

from tilewright.frontend.tilelang.symbols import Index
from tilewright.records import record


@record
class Counted:
    """``range``, ``T.serial``, ``T.Pipelined``, ``T.unroll``: one variable."""

    start: Any
    stop: Any
    step: Any = 1
    stages: int = 0


@record
class PersistentDomain:
    """``T.Persistent(sizes, wave_size, index)``: of all tiles, every ``wave_size``-th from ``index`` on."""

    sizes: tuple[int, ...]
    wave_size: int
    index: Any


@record
class ParallelDomain:
    """``T.Parallel(M, N)``."""

    extents: tuple[int, ...]


@record
class KernelDomain:
    """``T.Kernel(gx, gy)`` before its ``with``."""

    grid: tuple[int, ...]


class Returned(Exception):
    """Ends a macro or the kernel."""


def counted_range(*arguments: Any) -> Any:
    if not any(isinstance(argument, Index) for argument in arguments):
        return range(*arguments)
    start, stop = (0, arguments[0]) if len(arguments) == 1 else arguments[:2]
    return Counted(start, stop, arguments[2] if len(arguments) > 2 else 1)
