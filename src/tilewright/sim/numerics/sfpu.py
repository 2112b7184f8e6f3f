"""The SFPU by kernel call name: ``unary("blackhole", "exp_tile", dst, dst32=False)``, ``binary(chip, "add_binary_tile", ...)``.

Parameters are the integers the C++ call gets: fp32 bits for scalars, plain integers where the call takes those. ``variant``
names a template choice that changes the numbers, e.g. "approx" for ``exp_tile<true>``. Unary functions that cost more than a
few steps have a table for 16-bit DST: one entry per bf16 input.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files

import numpy as np

from tilewright.hardware import WORMHOLE_B0
from tilewright.sim.numerics import activations, exponentials, fpu, integer_ops, roots, rounding, trigonometry, unary_bits
from tilewright.sim.numerics.binary import NEAREST
from tilewright.sim.numerics.binary import OPS as BINARY
from tilewright.sim.numerics.binary import RAW_STORE as UNSTORED
from tilewright.sim.numerics.formats import U16, U32
from tilewright.sim.numerics.integer_ops import INTEGERS as INTEGER_CALLS
from tilewright.sim.numerics.lanes import (
    Params,
    TernaryOp,
    UnaryOp,
    UnknownOperation,
    is_zero,
    pattern,
    rounded_away_unless,
    rounded_unless,
    store,
)
from tilewright.sim.numerics.mad import chip, mad, mul, on_chip, sub
from tilewright.sim.numerics.roots import reciprocal
from tilewright.sim.numerics.rounding import TYPECASTS
from tilewright.sim.numerics.rounding import typecast as typecast_bits

# Cheap enough to compute in 16-bit DST as well: they need no table.
CHEAP: dict[str, UnaryOp] = {**unary_bits.OPS, **rounding.OPS}

UNARY: dict[str, UnaryOp] = {
    **CHEAP,
    **roots.OPS,
    **exponentials.OPS,
    **trigonometry.OPS,
    **activations.OPS,
    **activations.SPECIAL,
    **roots.UNARY,
    **integer_ops.UNARY,
    **TYPECASTS,
}

# Integers are stored as they are: no denormals to flush.
RAW_UNARY = frozenset({*integer_ops.UNARY, *TYPECASTS})


_FILE = "unary_bf16.npz"
INPUTS: U32 = np.arange(65536, dtype=np.uint32) << np.uint32(16)


@cache
def table_names() -> frozenset[str]:
    """``<call>`` or ``<call>:<variant>``, with the chip before them where they hold for that chip only."""
    with _open() as archive:
        return frozenset(archive.files)


@cache
def _table(name: str) -> U32:
    """The 65,536 results as fp32 patterns, indexed by the bf16 input pattern."""
    with _open() as archive:
        deltas: U16 = archive[name]
    return np.cumsum(deltas, dtype=np.uint16).astype(np.uint32) << np.uint32(16)


def name_of(key: str, chip: str) -> str | None:
    """The table of a call on a chip, if it has one."""
    own = key if chip == WORMHOLE_B0.name else f"{chip}/{key}"
    return next((name for name in (own, key) if name in table_names()), None)


def look_up(key: str, dst: U32) -> U32 | None:
    """The results of a call on the chip that computes."""
    name = name_of(key, chip())
    return None if name is None else _table(name)[dst >> np.uint32(16)]


def _open() -> np.lib.npyio.NpzFile:
    return np.load(str(files("tilewright.sim.numerics") / "data" / _FILE))


sfpu_bcast = on_chip(fpu.sfpu_bcast)
sfpu_reduce = on_chip(fpu.sfpu_reduce)
typecast = on_chip(typecast_bits)
INTEGERS = INTEGER_CALLS | frozenset(TYPECASTS)  # what they write is not a float: stored as it is
_SMALL = 8192  # elements below which building a table does not pay


@on_chip
def unary(
    name: str, dst: U32, *, dst32: bool, params: Sequence[int] = (), approx: bool = False, variant: str = ""
) -> U32:
    """One DST tile in place."""
    dst = np.ascontiguousarray(dst)
    if variant == "narrow":  # the algorithm of a 16-bit DST, on all bits of one that has 32
        return store(find_unary(name)(dst, tuple(params), False), dst32=dst32)
    key = operation_key(name, approx=approx, variant=variant)
    if not dst32 and not params:
        known = look_up(key, dst)
        if known is not None:
            return known
    operation = find_unary(key)
    if not dst32 and key not in CHEAP and key not in INTEGERS and dst.size > _SMALL:
        return _table_of(chip(), key, tuple(params))[dst >> np.uint32(16)]
    result = operation(dst, tuple(params), dst32)
    return result if key in INTEGERS or (dst32 and key in RAW_UNARY) else store(result, dst32=dst32)


@lru_cache(maxsize=32)
def _table_of(chip: str, key: str, params: Params) -> U32:
    """In 16-bit DST any call is a function of 65,536 inputs: computed once for given parameters."""
    return computed_table(key, params)


def computed_table(key: str, params: Params = ()) -> U32:
    """What the algorithm of a call gives for every bf16 number, on the chip that computes."""
    return store(find_unary(key)(INPUTS, params, False), dst32=False)


def operation_key(name: str, *, approx: bool = False, variant: str = "") -> str:
    """``<call>`` or ``<call>:<variant>``."""
    chosen = variant or ("approx" if approx else "")
    return f"{name}:{chosen}" if chosen else name


def find_unary(key: str) -> UnaryOp:
    operation = UNARY.get(key)
    if operation is None:
        raise UnknownOperation(key, UNARY)
    return operation


@on_chip
def binary(
    name: str,
    a: U32,
    b: U32,
    *,
    dst32: bool,
    params: Sequence[int] = (),
    nearest_even: bool = False,
    variant: str = "",
) -> U32:
    """Two DST tiles. ``nearest_even`` is DstRoundingMode::NearestEven of add, sub and rsub."""
    key = operation_key(name, variant=variant)
    if nearest_even and name in NEAREST:
        operation = NEAREST[name]
    elif key in BINARY:
        operation = BINARY[key]
    else:
        raise UnknownOperation(key, BINARY)
    given: Params = tuple(params)
    a, b = (np.ascontiguousarray(operand) for operand in np.broadcast_arrays(a, b))
    result = operation(a, b, given, dst32)
    return result if key in INTEGERS or (dst32 and key in UNSTORED) else store(result, dst32=dst32)


@on_chip
def ternary(
    name: str, a: U32, b: U32, c: U32, *, dst32: bool, params: Sequence[int] = (), variant: str = ""
) -> U32:
    """Three DST tiles."""
    key = operation_key(name, variant=variant)
    if key not in TERNARY:
        raise UnknownOperation(key, TERNARY)
    a, b, c = (np.ascontiguousarray(operand) for operand in np.broadcast_arrays(a, b, c))
    result = TERNARY[key](a, b, c, tuple(params), dst32)
    return result if key in INTEGERS or (dst32 and key in RAW_TERNARY) else store(result, dst32=dst32)


__all__ = [
    "binary", "computed_table", "find_unary", "operation_key", "sfpu_bcast", "sfpu_reduce", "ternary", "typecast", "unary",
]  # fmt: skip


TERNARY: dict[str, TernaryOp] = {
    "where_tile": lambda condition, then, otherwise, params, wide: np.where(is_zero(condition), otherwise, then),
    "mac_tile": lambda a, b, c, params, wide: rounded_away_unless(mad(a, b, c), wide),
    "lerp_tile": lambda a, b, c, params, wide: rounded_unless(mad(c, sub(b, a), a), wide),
    "addcmul_tile": lambda a, b, c, params, wide: rounded_away_unless(mad(mul(b, pattern(params[0])), c, a), wide),
    "addcdiv_tile": lambda a, b, c, params, wide: rounded_unless(
        mad(mul(b, pattern(params[0])), reciprocal(c, 2), a), wide
    ),
    **integer_ops.TERNARY,
}

# Moved as integers: denormals survive the store.
RAW_TERNARY = frozenset({"where_tile"})
