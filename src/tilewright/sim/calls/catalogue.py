"""Importing this registers every call the simulator can execute."""

from __future__ import annotations

from tilewright.sim.calls import (
    breakpoints,
    broadcast,
    data_movement,
    elements,
    external,
    matrix,
    packing,
    printing,
    setup,
    synchronisation,
    vector,
)

MODULES = (breakpoints, broadcast, data_movement, elements, external, matrix, packing, printing, setup, synchronisation, vector)


def register_calls() -> None:
    """Functions of a module register when it is imported; the op table's vector calls follow here, after all others."""
    vector.register_rows()
