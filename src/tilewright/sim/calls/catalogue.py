"""Importing this registers every call the simulator can execute."""

from __future__ import annotations

from tilewright.sim.calls import data_movement, debugging, elements, external, matrix, packing, setup, synchronisation, vector

MODULES = (matrix, data_movement, debugging, elements, external, matrix, packing, setup, synchronisation, vector)


def register_calls() -> None:
    """Functions of a module register when it is imported; the op table's vector calls follow here, after all others."""
    vector.register_rows()
