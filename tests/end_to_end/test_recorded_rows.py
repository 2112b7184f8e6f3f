"""Rows of the op table on both chips: what the vendor's simulators of Wormhole and Blackhole gave for the kernels emitted for them.

See `recorded_rows`. Every kernel is simulated and run natively, for the chip it was recorded on.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import recorded_rows
from tilewright.native.driver import run as run_native
from tilewright.sim.run import simulate

RECORDED = [(chip, name) for chip in recorded_rows.CHIPS for name in recorded_rows.recorded(chip)]
EQUAL = sorted(name for name in recorded_rows.compared()["blackhole"] if ("blackhole", name) not in RECORDED)
LOST_IN_BF16 = 127  # NaNs with their sign set: the recording got others


@pytest.mark.parametrize(("chip", "name"), RECORDED, ids=[f"{chip}-{name}" for chip, name in RECORDED])
def test_recorded_bits(chip: str, name: str, tmp_path: Path) -> None:
    given = recorded_rows.inputs(chip, name)
    simulated, native = (recorded_rows.computed(name, given, chip, tmp_path, run) for run in (simulate, run_native))
    assert np.array_equal(simulated, native)
    wrong = (simulated != recorded_rows.output(chip, name)) & ~recorded_rows.lost_on_the_way(given)
    assert not wrong.any(), f"{int(wrong.sum())} of {wrong.size} results differ"


@pytest.mark.simulated_only("the native run of rows is compared in test_every_op")
@pytest.mark.parametrize("name", EQUAL)
def test_other_rows_differ_on_blackhole_as_recorded(name: str, tmp_path: Path) -> None:
    """They were compared lane by lane with Wormhole's arithmetic: as many lanes must differ, all with a NaN in or out."""
    given = recorded_rows.inputs("blackhole", name)
    wormhole, blackhole = (recorded_rows.computed(name, given, chip, tmp_path, simulate) for chip in recorded_rows.CHIPS)
    differ = blackhole != wormhole
    involved = recorded_rows.is_nan(blackhole) | recorded_rows.is_nan(wormhole)
    for bits in given:
        involved |= recorded_rows.is_nan(bits)
    assert not (differ & ~involved).any()
    counted = recorded_rows.compared()["blackhole"][name]["differing"]
    slack = LOST_IN_BF16 if given[0].dtype == np.uint16 else 0
    assert counted - slack <= differ.sum() <= counted


def test_what_was_recorded() -> None:
    assert {chip: len(recorded_rows.recorded(chip)) for chip in recorded_rows.CHIPS} == {"wormhole_b0": 16, "blackhole": 76}
    assert {chip: len(rows) for chip, rows in recorded_rows.compared().items()} == {"wormhole_b0": 316, "blackhole": 267}
