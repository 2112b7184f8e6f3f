"""How the multipliers cut Src significands into fidelity phases (rule M)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from tilewright.sim.numerics.accumulate import decode
from tilewright.sim.numerics.formats import F64, U32

Fidelity = Literal["LoFi", "HiFi2", "HiFi3", "HiFi4"]

FIDELITY_PHASES: dict[str, int] = {"LoFi": 1, "HiFi2": 2, "HiFi3": 3, "HiFi4": 4}

_A_HIGH = np.uint32(0xFFF80000)  # hidden one and 4 fraction bits
_A_USED = np.uint32(0xFFFFC000)  # the 11th significand bit is never used
_B_HIGH = np.uint32(0xFFFE0000)  # hidden one and 6 fraction bits
_B_USED = np.uint32(0xFFFFE000)


def phase_offset(phase: int) -> int:
    """How far the exponent of a phase lies below that of phase 0: 0, 5, 7, 12."""
    return (5 if phase & 1 else 0) + (7 if phase & 2 else 0)


def slice_src_a(bits: U32, phase: int) -> F64:
    """The part of SrcA that phase uses, as an exact value."""
    high = decode(bits & _A_HIGH)
    if not phase & 1:
        return high
    return decode(bits & _A_USED) - high


def slice_src_b(bits: U32, phase: int) -> F64:
    """The part of SrcB that phase uses, as an exact value."""
    high = decode(bits & _B_HIGH)
    if not phase & 2:
        return high
    return decode(bits & _B_USED) - high
