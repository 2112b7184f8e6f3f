"""The vector unit's arithmetic: one multiply-add, x*y+z, behind every SFPU float instruction (rule S2).

Denormal inputs are 0. The 48-bit product keeps 24+3 bits, the rest or-ed into the last one, before the addend is
aligned; an operand whose bits are all shifted out leaves no sticky bit. Results round to nearest even and flush
below 2^-126.

Wormhole and Blackhole differ at the edges only. Blackhole's NaN is always 0x7FC00000, Wormhole's carries leaked fraction bits and
a sign. Blackhole keeps the sign of zeros and of what it flushes, Wormhole's zeros are all +0. Wormhole rounds results just below
2^-126 on a finer grid than theirs, loses a sticky bit when a sum grows by two bits, and calls a product that overflows less
the other infinity a NaN. So the chip is no parameter of each step: the entry points (``sfpu``) say on which chip a call computes,
and the few rules that differ ask here.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

import numpy as np

from tilewright.hardware import BLACKHOLE, WORMHOLE_B0
from tilewright.sim.numerics.formats import I64, INFINITY, MAGNITUDE, SIGN, U32, Bool, from_bits, to_bits

ONE: U32 = np.asarray(0x3F800000, dtype=np.uint32)
ZERO: U32 = np.asarray(0, dtype=np.uint32)
_CHUNK = 16384  # lanes per pass: two dozen int64 temporaries stay in the second-level cache
_ROUNDS_UP_TO_NORMAL = 2.0**-126 * (1 - 2.0**-25)  # on Wormhole
_BLACKHOLE_ROUNDS_UP = 2.0**-126 * (1 - 2.0**-24)
_CANONICAL_NAN = np.uint32(0x7FC00000)
_SMALLEST_SAFE = 2.0**-124
_LARGEST_SAFE = 2.0**126
_FRACTION = 0x7FFFFF
_HIDDEN = 0x800000


def mad(x: U32, y: U32, z: U32) -> U32:
    """SFPMAD, bit for bit."""
    return _by_chunks(_mad_fast, x, y, z)


def _mad_fast(x: U32, y: U32, z: U32) -> U32:
    """Most lanes from one float64 multiply and add; the lanes where that could differ go through the integer model.

    If only one of product and addend loses bits to a sticky bit and the sum keeps its top bit (or the one below), no
    rounding boundary lies between the hardware's sum and the exact one, so rounding the exact sum is right. Not so when
    the addend is shifted by more than two of its three guard bits, in cancellation, when the sum grows two bits, at
    range ends, for denormal inputs, and when the float64 sum is a tie.
    """
    with np.errstate(all="ignore"):
        product = x.view(np.float32).astype(np.float64) * y.view(np.float32)
        addend = z.view(np.float32).astype(np.float64)
        total = product + addend
        product_power = (x & INFINITY).view(np.float32).astype(np.float64) * (y & INFINITY).view(np.float32)
        addend_power = (z & INFINITY).view(np.float32).astype(np.float64)
        top = np.maximum(product_power, addend_power)
        size = np.abs(total)
        result = total.astype(np.float32).view(np.uint32)
        safe = (size >= 0.5 * top) & (size < 4.0 * top)
        safe &= (product_power <= 4.0 * addend_power) | (addend == 0.0)
        safe &= product_power > _SMALLEST_SAFE
        safe |= product == 0.0  # the addend passes
        safe &= (top < _LARGEST_SAFE) & (product_power < _LARGEST_SAFE)
        safe &= (addend_power > 0.0) | (addend == 0.0)
        safe &= size >= _SMALLEST_SAFE
        safe &= (total.view(np.int64) & 0x1FFFFFFF) != 0x10000000
    if not safe.all():
        unsafe = ~safe
        lanes = (np.broadcast_to(operand, unsafe.shape)[unsafe] for operand in (x, y, z))
        result[unsafe] = _mad_lanes(*lanes)
    return result


def mul(x: U32, y: U32) -> U32:
    """SFPMUL: x*y+0. Ordinary lanes round once, so a float64 product rounded to fp32 is the same number."""
    x, y = np.broadcast_arrays(x, y)
    blackhole = on_blackhole()
    odd = ((x & MAGNITUDE) >= INFINITY) | ((y & MAGNITUDE) >= INFINITY)
    with np.errstate(all="ignore"):
        product = from_bits(_flushed(x)).astype(np.float64) * from_bits(_flushed(y))
        product[np.abs(product) < (_BLACKHOLE_ROUNDS_UP if blackhole else _ROUNDS_UP_TO_NORMAL)] = 0.0
        result = to_bits(product)
    zero = (result & MAGNITUDE) == 0
    if zero.any():
        result = np.where(zero, _flushed_product_sign(x, y) if blackhole else ZERO, result)
    return _repair(result, odd, x, y, np.broadcast_to(ZERO, x.shape))


def _flushed_product_sign(x: U32, y: U32) -> U32:
    """A product whose exponents add up to a denormal's is rounded and flushed; smaller ones are an exact +0 to the adder."""
    x_exponent, y_exponent = x & INFINITY, y & INFINITY
    rounded = (x_exponent + y_exponent == ONE) & (x_exponent != 0) & (y_exponent != 0)
    return np.where(rounded, (x ^ y) & SIGN, ZERO)


def add(x: U32, z: U32) -> U32:
    """SFPADD: x*1+z, which for ordinary lanes is an fp32 add with tiny inputs and results flushed."""
    x, z = np.broadcast_arrays(x, z)
    odd = ((x & MAGNITUDE) >= INFINITY) | ((z & MAGNITUDE) >= INFINITY)
    with np.errstate(all="ignore"):
        result = to_bits(from_bits(_flushed(x)) + from_bits(_flushed(z)))
    result = np.where((result & INFINITY) == 0, result & SIGN if on_blackhole() else ZERO, result)
    return _repair(result, odd, x, np.broadcast_to(ONE, x.shape), z)


def sub(x: U32, z: U32) -> U32:
    """x - z as the compiler emits it: z * -1 + x."""
    return add(z ^ SIGN, x)


def sub_product(z: U32, x: U32, y: U32) -> U32:
    """z - x*y in the kernels' text: Blackhole negates a factor inside the multiply-add, on Wormhole it takes two instructions."""
    return mad(x ^ SIGN, y, z) if on_blackhole() else sub(z, mul(x, y))


def _flushed(bits: U32) -> U32:
    return np.where((bits & INFINITY) == 0, bits & SIGN if on_blackhole() else ZERO, bits)


def _repair(result: U32, odd: Bool, x: U32, y: U32, z: U32) -> U32:
    if odd.any():
        result[odd] = _mad_lanes(x[odd], y[odd], z[odd])
    return result


def _by_chunks(function: Callable[[U32, U32, U32], U32], x: U32, y: U32, z: U32) -> U32:
    shape = np.broadcast_shapes(np.shape(x), np.shape(y), np.shape(z))
    flat = [_flat_operand(operand, shape) for operand in (x, y, z)]
    if all(operand.size == 1 for operand in flat):
        flat[0] = np.broadcast_to(flat[0], (int(np.prod(shape)),)).copy()
    out = np.empty(int(np.prod(shape)), dtype=np.uint32)
    for start in range(0, out.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        out[part] = function(*(operand if operand.size == 1 else operand[part] for operand in flat))
    return out.reshape(shape)


def _flat_operand(operand: U32, shape: tuple[int, ...]) -> U32:
    """One-dimensional; a constant stays one element."""
    array = np.asarray(operand, dtype=np.uint32)
    if array.size == 1:
        return array.reshape(1)
    if array.shape != shape:
        array = np.broadcast_to(array, shape)
    return np.ascontiguousarray(array).reshape(-1)


def _split(bits: U32) -> tuple[I64, I64]:
    wide = bits.astype(np.int64)
    exponent = (wide >> 23) & 255
    significand = ((wide & _FRACTION) | _HIDDEN) * (exponent != 0)
    return exponent, significand


def _shift_sticky(value: I64, amount: I64) -> I64:
    shifted = value >> amount
    lost = ((shifted << amount) != value) & (shifted != 0)
    return shifted | lost


def _mad_lanes(x: U32, y: U32, z: U32) -> U32:
    blackhole = on_blackhole()
    x_exponent, x_significand = _split(x)
    y_exponent, y_significand = _split(y)
    z_exponent, z_significand = _split(z)
    product_sign = (x ^ y) >> np.uint32(31)
    z_sign = z >> np.uint32(31)
    product = x_significand * y_significand
    product = (product >> 20) | ((product & 0xFFFFF) != 0)  # three extra bits below the 24
    z_wide = z_significand << 3
    exponent = x_exponent + y_exponent - 127

    special = (x_exponent == 255) | (y_exponent == 255) | (exponent >= 255) | (z_exponent == 255)
    final = np.zeros(x.shape, dtype=np.uint32)
    decided = np.zeros(x.shape, dtype=np.bool_)
    nan = final
    if special.any():
        nan, final, decided = _special_results(x, y, z, exponent, special)
        if blackhole:
            final, decided, nan = np.where(nan != 0, _CANONICAL_NAN, final), decided | (nan != 0), np.zeros_like(nan)
        exponent = np.minimum(exponent, np.where(special, 255, 1 << 20))

    vanished = (product == 0) | (exponent < 0)
    passes = vanished & ~decided & (nan == 0)
    nothing = (x ^ y) & z & SIGN if blackhole else ZERO
    final = np.where(passes, np.where(z_significand != 0, z, nothing), final)
    decided |= passes
    product = np.where(vanished, 0, product)
    exponent = np.where(vanished, 0, exponent)

    gap = exponent - z_exponent
    top = np.maximum(exponent, z_exponent)
    product = _shift_sticky(product, np.clip(-gap, 0, 40))
    z_wide = _shift_sticky(z_wide, np.clip(gap, 0, 40))
    total = np.where(product_sign != 0, -product, product) + np.where(z_sign != 0, -z_wide, z_wide)
    sign = (total < 0).astype(np.uint32) << np.uint32(31)
    total = np.abs(total)
    leading = (total.astype(np.float64).view(np.int64) >> 52) - 1023
    excess = leading - 26
    top = top + excess
    overflow = top >= 255
    lost: I64 = total & 1
    if blackhole:
        denormal = top <= 0
        excess = excess + denormal
        top = np.where(denormal, 0, top)
        lost = (total & (excess | 1)) != 0
    aligned = np.where(
        excess <= 0, total << np.clip(-excess, 0, 30), (total >> np.clip(excess, 0, 30)) | lost
    )
    packed = (top << 23) + ((aligned >> 3) & _FRACTION)
    packed += ((aligned & 7) + (packed & 1)) > 4
    empty = (total == 0) | (top < 0) | ((packed >> 23) == 0)
    bits = np.where(nan != 0, nan, sign) | (packed & 0x7FFFFFFF).astype(np.uint32)
    bits = np.where(overflow, np.where(nan != 0, nan, sign | INFINITY), bits)
    bits = np.where(empty, sign if blackhole else nan, bits)
    return np.where(decided, final, bits).astype(np.uint32)


def _special_results(x: U32, y: U32, z: U32, exponent: I64, special: Bool) -> tuple[U32, U32, Bool]:
    """Infinity and NaN lanes: the NaN pattern to or into the result, and the results that are decided already."""
    x_magnitude, y_magnitude, z_magnitude = x & MAGNITUDE, y & MAGNITUDE, z & MAGNITUDE
    product_sign, z_sign = (x ^ y) & SIGN, z & SIGN
    x_zero, y_zero = (x & INFINITY) == 0, (y & INFINITY) == 0
    product_infinite = (x_magnitude >= INFINITY) | (y_magnitude >= INFINITY)
    if not on_blackhole():
        product_infinite |= exponent >= 255
    bad_product = (x_magnitude > INFINITY) | ((x_magnitude == INFINITY) & y_zero)
    bad_product |= (y_magnitude > INFINITY) | ((y_magnitude == INFINITY) & x_zero)
    bad_product |= (z_magnitude == INFINITY) & product_infinite & (z_sign != product_sign)
    bad_z = (z_magnitude > INFINITY) & ~bad_product
    nan = np.where(bad_product, product_sign | np.uint32(0x7F800001), ZERO)
    nan = np.where(bad_z, z_sign | np.uint32(0x7F800001), nan)
    nan = np.where(special, nan, ZERO)
    decided = special & (nan == 0)
    final = np.where(z_magnitude == INFINITY, z, product_sign | INFINITY)
    return nan, np.where(decided, final, ZERO), decided


Given = ParamSpec("Given")
Result = TypeVar("Result")

_chip: ContextVar[str] = ContextVar("chip", default=WORMHOLE_B0.name)


def chip() -> str:
    return _chip.get()


def on_blackhole() -> bool:
    return _chip.get() == BLACKHOLE.name


def on_chip(function: Callable[Given, Result]) -> Callable[Concatenate[str, Given], Result]:
    """The function with the chip it computes on as its first argument."""

    @wraps(function)
    def computed(chip: str, /, *arguments: Given.args, **choices: Given.kwargs) -> Result:
        token = _chip.set(chip)
        try:
            return function(*arguments, **choices)
        finally:
            _chip.reset(token)

    return computed
