"""Importing this registers every call the simulator can execute."""

from __future__ import annotations

from tilewright.sim.calls import broadcast, cross_core, data_movement, matrix, packing, products, reduction, setup, synchronisation, vector

MODULES = (
    broadcast, cross_core, data_movement, matrix, packing, products, reduction, setup, synchronisation, vector,
)  # fmt: skip
