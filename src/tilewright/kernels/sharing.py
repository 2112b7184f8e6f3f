"""How work is cut into blocks and shared out over cores: what the spaces of the kernels are made of."""

from __future__ import annotations

from pathlib import Path

from tilewright.hardware import CHIPS, TILE_ROWS

TILE = TILE_ROWS
TABLE = Path(__file__).with_name("tuned.json")  # choices that come with the package, made by benchmarks/tune.py --table


def share_of(blocks: int, cores: int) -> int:
    """Blocks of the core that has most."""
    return -(-blocks // cores)


def divisors(number: int, most: int) -> list[int]:
    return [size for size in range(1, min(number, most) + 1) if number % size == 0]


def useful(blocks: int, most: int) -> list[int]:
    """Numbers of cores that shorten the work: with fewer of them the longest share would be longer."""
    found: dict[int, int] = {}
    for cores in range(1, min(blocks, most) + 1):
        found.setdefault(share_of(blocks, cores), cores)
    return sorted(found.values())


def grids(across: int, down: int, chip: str) -> list[tuple[int, int]]:
    """Grids for a plane of tiles. Small ones are for small planes only."""
    columns, rows = CHIPS[chip].grid
    several = [(x, y) for y in useful(down, rows) for x in useful(across, columns)]
    most = max(x * y for x, y in several)
    return [(x, y) for x, y in several if 2 * x * y >= most]


def rows_of_cores(blocks: int, chip: str) -> list[tuple[int, int]]:
    """Grids for a list of blocks: whole rows of the chip, or a part of one."""
    columns, rows = CHIPS[chip].grid
    parts = [(x, 1) for x in useful(blocks, columns)]
    whole = [(columns, y) for y in range(2, rows + 1) if columns * (y - 1) < blocks]
    return [*parts, *whole]
