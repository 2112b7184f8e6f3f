"""Options of one compilation. The decorator, ``.compile()`` and the command line use the same names."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

METAL_RELEASES = ("0.62", "0.69", "0.78")  # spellings; emit/spelling.py maps every release to one of them


@dataclass(frozen=True, kw_only=True)
class Options:
    metal: str = "0.78"  # ttnn release the C++ is spelled for
    arch: str = "wormhole_b0"  # wormhole_b0 or blackhole
    allocator: str = "optimal"  # optimal or linear-scan
    schedule: str = "auto"  # auto, source or lars: order of ops before linear-scan
    fpu_binary_ops: bool = True  # allow add, sub, mul on the matrix unit
    enable_unroll: bool = False  # write tile loops out
    dst_capacity: int | None = None  # DST tiles, instead of the hardware's number
    full_sync: bool | None = None  # None: decided by the compiler
    fp32_dest_acc: bool | None = None
    math_fidelity: str | None = None  # LoFi, HiFi2, HiFi3, HiFi4
    inits: str = "hoist"  # hoist: the fewest; each: one before every call, as the specification's listings
    combine_packs: bool = True
    grid: tuple[int, ...] | str | None = None  # overrides the decorator's

    @staticmethod
    def names() -> tuple[str, ...]:
        return tuple(field.name for field in fields(Options))

    def updated(self, **changes: Any) -> Options:
        return replace(self, **changes)
