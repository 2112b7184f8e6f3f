"""Accumulation into DST (rule N), shared by the element-wise unit, the matrix-vector unit and pooling.

The hardware aligns integers to the largest exponent E and rounds them to the grid u = 2^(E-150). Here every term is a
float64, which holds all of them exactly, and rounding to the grid is adding 1.5*2^52*u: the sum then has no bits
below u. Ties never reach that addition, because every term first gets a push, smaller than the distance to its
neighbours, in the direction the hardware's tie rule asks for. So each step is bit-equal to the integer datapath.

Fidelity phases (rule M) say which bits of the Src significands a pass multiplies. What the user hears when the erratum (rule N7)
changed results stands at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from tilewright.diagnostics import Diagnostic
from tilewright.program import TensorSpec
from tilewright.sim.numerics import formats
from tilewright.sim.numerics.formats import F64, HIGH_HALF, I64, INFINITY, MAGNITUDE, U32
from tilewright.tile_pages import Array, join_pages

# Exponent field of 1.5 * 2^52 * 2^(E-150) is E + this (float64 bias 1023).
_MAGIC_BIAS = 1023 - 150 + 52
_MAGIC_FRACTION = np.int64(1 << 51)
_MAGIC_UNITS = 1.5 * 2.0**52
_PUSH_UP = 2.0**-20  # in units of the grid; terms are multiples of 2^-17 units
_PUSH_AWAY = 1.0 + 2.0**-26  # DST has 24 bits
_PUSH_AWAY_SUM = 1.0 + 2.0**-31  # sums stay below 2^30 units
_COARSE = 8192.0  # 16-bit DST rounds terms to 11 bits: 13 below the 24-bit grid
_ERRATUM = 2.0**27  # -1 unit comes out as -2^4 * scale, which is 2^27 units
_SMALLEST = 2.0**-126
_SMALLEST_ROUNDING_UP = np.float32(2.0**-126 * (1 - 2.0**-9))


class Erratum:
    """Rule N7, on chips that have it: the smallest negative sum in a 32-bit DST comes out 2^27 times too large.

    Functions that add to DST take one of these, or None on a chip that computes such a sum right, and note a hit in it.
    """

    __slots__ = ("seen",)

    def __init__(self) -> None:
        self.seen = False


def decode(bits: U32) -> F64:
    """Value of a pattern the way the FPU sees it: denormals are 0 and exponent 255 is an ordinary exponent."""
    magnitude = bits & MAGNITUDE
    if int(magnitude.max(initial=0)) < int(INFINITY):
        values = bits.view(np.float32).astype(np.float64)
    else:
        wide = (magnitude.astype(np.int64) << 29) + np.int64(896 << 52)
        wide |= (bits >> np.uint32(31)).astype(np.int64) << 63
        values = wide.view(np.float64)
    values[magnitude < np.uint32(0x00800000)] = 0.0
    return values


def exponent_of(bits: U32) -> I64:
    """Biased exponents; 0 for zero and denormals."""
    return ((bits & INFINITY) >> np.uint32(23)).astype(np.int64)


def accumulate(terms: Sequence[tuple[F64, I64]], dst: U32, *, dst32: bool, erratum: Erratum | None) -> U32:
    """Add product sums, given as (value, biased exponent), to ``dst`` and encode the result for DST.

    A dropped term has value 0 and exponent 0.
    """
    largest = exponent_of(dst)
    for _, exponent in terms:
        largest = np.maximum(largest, exponent)
    largest += _MAGIC_BIAS
    if not dst32:
        largest += 13
    largest <<= 52
    largest |= _MAGIC_FRACTION
    magic = largest.view(np.float64)
    # 16-bit DST rounds twice (to u, then to 8192u) half up; the pair equals one rounding with the threshold at -u/2.
    push = _PUSH_UP if dst32 else (0.5 + _PUSH_UP) / _COARSE
    push_up = magic * (push / _MAGIC_UNITS)
    total = decode(dst)
    total *= _PUSH_AWAY
    total += magic
    for value, _ in terms:
        total += value + push_up
    total -= magic
    if dst32 and erratum is not None:
        unit = magic * (1.0 / _MAGIC_UNITS)
        hit = total == -unit
        if hit.any():
            erratum.seen = True
            total = np.where(hit, total * _ERRATUM, total)
    return encode(total, dst32=dst32)


def encode(total: F64, *, dst32: bool) -> U32:
    """Normalise an exact sum to 24 or 8 bits half away from zero; tiny becomes +0, overflow infinity."""
    with np.errstate(over="ignore", under="ignore"):
        if dst32:
            total = total * _PUSH_AWAY_SUM
            total[np.abs(total) < _SMALLEST] = 0.0
            return total.astype(np.float32).view(np.uint32)
        values = total.astype(np.float32)  # at most 17 bits: exact
    values[np.abs(values) < _SMALLEST_ROUNDING_UP] = 0.0
    return (values.view(np.uint32) + np.uint32(0x8000)) & HIGH_HALF


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


REMEDY = (
    'math_fidelity="HiFi3" did not meet it in 25 million results of bf16 products and is as accurate there; fp32_dest_acc=False '
    "never does, but keeps 8 bits; nor does arch=\"blackhole\". Another order of K only moves it"
)


def cancellation_warnings(specs: Sequence[TensorSpec], found: Sequence[Array], right: Sequence[Array]) -> list[Diagnostic]:
    """One warning for each tensor whose pages differ between the run and the run without the erratum."""
    warnings: list[Diagnostic] = []
    for spec, ours, theirs in zip(specs, found, right, strict=True):
        if ours is theirs or np.array_equal(ours, theirs):
            continue
        values, wanted = (_values(spec, pages) for pages in (ours, theirs))
        error = np.abs(values - wanted)
        error[np.isnan(error) | (values == wanted)] = 0.0
        worst = np.unravel_index(int(error.argmax()), error.shape)
        place = ", ".join(str(int(index)) for index in worst)
        message = (
            f"{np.count_nonzero(error)} of {error.size} elements of '{spec.name}' are wrong by an erratum of the matrix unit, "
            f"one by {error[worst]:.6g}: [{place}] is {values[worst]:.6g} instead of {wanted[worst]:.6g}"
        )
        warnings.append(Diagnostic(code="TW520", severity="warning", message=message, span=None, help=REMEDY))
    return warnings


def _values(spec: TensorSpec, pages: Array) -> Array:
    return join_pages(spec, formats.from_l1(pages, spec.dtype)).astype(np.float64)
