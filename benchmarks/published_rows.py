"""Rows of the published tables: what their names say, and their units."""

from __future__ import annotations

from tilewright.timing_constants import constants_of

CHIPS = {"WH": "wormhole_b0", "BH": "blackhole"}
Row = dict[str, str]


def fields(row: Row) -> list[str]:
    return row["id"].split("-")


def arch_of(row: Row) -> str:
    return CHIPS[row["chip"]]


def microseconds(row: Row, cycles: float) -> float:
    return cycles / constants_of(arch_of(row)).clock_ghz / 1000
