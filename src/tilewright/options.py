"""Options of one compilation. The decorator, ``.compile()`` and the command line use the same names."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from tilewright.hardware import CHIPS, DST_TILES_16BIT_FULL, FIDELITIES, LARGEST_GRID, Chip
from tilewright.records import record

METAL_RELEASES = ("0.62", "0.69", "0.78")  # spellings; emit/spelling.py maps every release to one of them
OBJECTS_SINCE = "0.81"  # the first release that has all of kernel API 2.0
CHOICES: dict[str, tuple[str, ...]] = {
    "arch": tuple(CHIPS),
    "api": ("1.0", "2.0"),
    "allocator": ("optimal", "linear-scan"),
    "schedule": ("auto", "source", "lars"),
    "math_fidelity": FIDELITIES,
    "inits": ("hoist", "each"),
    "f32_reductions": ("exact", "tf32"),
    "precision": ("fast", "balanced", "exact"),
}

# What the option ``approximate`` can name: functions that have a faster, less accurate form, and rewrites that round otherwise.
PERMISSIONS = ("exp", "gelu", "tanh", "sigmoid", "sqrt", "rsqrt", "log", "erf", "reassociate", "reciprocal")


@record(kw_only=True)
class Options:
    metal: str = "0.78"  # ttnn release the C++ is spelled for
    api: str = "1.0"  # of kernels: functions (1.0), or objects such as Noc and CircularBuffer (2.0), which ttnn has from 0.81 on
    arch: str = "wormhole_b0"  # wormhole_b0 or blackhole
    allocator: str = "optimal"  # optimal or linear-scan
    schedule: str = "auto"  # order of ops before linear-scan: source, lars (phase 0), auto (phase 0 where it pays)
    fpu_binary_ops: bool = True  # allow add, sub, mul on the matrix unit
    allow_tf32: bool = False  # f32 operands may pass the matrix unit, which reads 11 significant bits
    round_trips: bool | None = None  # values go through a buffer: True where it costs less than DST, None where surely so
    skip_faces: bool = True  # vector calls leave out the parts of a tile that nobody looks at
    equivalent_calls: bool = True  # an op may become other calls that cost less: same bits, or within 1 ulp of them
    enable_unroll: bool = False  # write tile loops out
    dst_capacity: int | None = None  # DST tiles at most, if the hardware has more
    full_sync: bool | None = None  # None: decided by the compiler
    fp32_dest_acc: bool | None = None
    math_fidelity: str | None = None  # LoFi, HiFi2, HiFi3, HiFi4
    math_approx_mode: bool | None = None  # functions that have a faster, less accurate form use it; None: as each op says
    precision: str = "balanced"  # fast: sums in 16 bits too; balanced: sums in 32, functions to bf16; exact: all in 32
    approximate: str = ""  # what may be less exact, names of PERMISSIONS with commas between, or all
    inits: str = "hoist"  # hoist: the fewest; each: one before every call, as the specification's listings
    combine_packs: bool = True
    deep_buffers: bool = False  # small blocks that a loop reads get room for several: one barrier waits for all of them
    reads_ahead: bool = False  # a loop asks for later blocks before the one it hands over has arrived, where that gains time
    f32_reductions: str = "exact"  # exact: on the vector unit, with all bits; tf32: on the matrix unit, which reads 11
    debug_print: bool = False  # prints of the kernel become debug prints in the C++
    grid: tuple[int, ...] | str | None = None  # overrides the decorator's
    card_grid: tuple[int, int] | None = None  # worker columns and rows, where a card has others than its chip usually has

    @staticmethod
    def names() -> tuple[str, ...]:
        return tuple(field.name for field in fields(Options))

    @property
    def chip(self) -> Chip:
        """The chip compiled for, with the cores of the card."""
        chip = CHIPS[self.arch]
        return chip if self.card_grid is None else replace(chip, grid=self.card_grid)

    @property
    def permissions(self) -> frozenset[str]:
        """What ``approximate`` names."""
        named = frozenset(word for word in self.approximate.replace(",", " ").split())
        return frozenset(PERMISSIONS) if "all" in named else named

    def updated(self, **changes: Any) -> Options:
        return replace(self, **(implied(changes) if self.metal == Options.metal else changes))


def implied(given: dict[str, Any]) -> dict[str, Any]:
    """Options with those that follow from them: kernel API 2.0 means a release that has it, unless one is given."""
    return {"metal": OBJECTS_SINCE, **given} if given.get("api") == "2.0" else given


def is_release(text: Any) -> bool:
    """Whether ``text`` names a ttnn release not older than the oldest spelling."""
    parts = text.split(".") if isinstance(text, str) else []
    if len(parts) < 2 or not all(part.isdecimal() for part in parts):
        return False
    return tuple(map(int, parts)) >= tuple(map(int, METAL_RELEASES[0].split(".")))


def is_card_grid(value: Any) -> bool:
    if not isinstance(value, tuple) or len(value) != 2:  # pyright: ignore[reportUnknownArgumentType]
        return False
    return all(type(size) is int and 1 <= size <= most for size, most in zip(value, LARGEST_GRID, strict=True))  # pyright: ignore


def wanted_instead(name: str, value: Any) -> str:
    """What the option takes, if ``value`` is none of it; empty if it is."""
    optional = getattr(Options, name) is None
    if (value is None and optional) or name == "grid":
        return ""  # the grid is checked against the chip
    if name in CHOICES:
        return "" if value in CHOICES[name] else f"one of {', '.join(CHOICES[name])}"
    if name == "approximate":
        unknown = not isinstance(value, str) or not {*value.replace(",", " ").split()} <= {"all", *PERMISSIONS}
        return f"names out of {', '.join(PERMISSIONS)}, or all, with commas between" if unknown else ""
    if name == "metal":
        return "" if is_release(value) else f'a ttnn release from {METAL_RELEASES[0]} on, for example "{METAL_RELEASES[-1]}"'
    if name == "card_grid":
        return "" if is_card_grid(value) else f"columns and rows of cores, for example (11, 10), at most {LARGEST_GRID}"
    if name == "dst_capacity":
        most = DST_TILES_16BIT_FULL
        return "" if type(value) is int and 0 < value <= most else f"a number of tiles, 1 or more; the largest DST has {most}"
    return "" if isinstance(value, bool) else f"True or False{' or None (the compiler decides)' if optional else ''}"
