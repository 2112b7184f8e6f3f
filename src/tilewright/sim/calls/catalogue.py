"""Importing this registers every call the simulator can execute."""

from __future__ import annotations

from tilewright.sim.calls import data_movement, matrix, packing, setup, synchronisation, vector

MODULES = (data_movement, matrix, packing, setup, synchronisation, vector)
