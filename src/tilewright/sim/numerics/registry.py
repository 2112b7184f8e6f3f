"""All unary models, and tables of those in 16-bit DST: one entry per bf16 input."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import numpy as np

from tilewright.hardware import WORMHOLE_B0
from tilewright.sim.numerics import (
    activations,
    exponentials,
    integer_ops,
    roots,
    rounding,
    special,
    trigonometry,
    typecast,
    unary_bits,
)
from tilewright.sim.numerics.formats import U16, U32
from tilewright.sim.numerics.lanes import UnaryOp
from tilewright.sim.numerics.mad import chip

# Cheap enough to compute in 16-bit DST as well: they need no table.
CHEAP: dict[str, UnaryOp] = {**unary_bits.OPS, **rounding.OPS}

UNARY: dict[str, UnaryOp] = {
    **CHEAP,
    **roots.OPS,
    **exponentials.OPS,
    **trigonometry.OPS,
    **activations.OPS,
    **special.OPS,
    **roots.UNARY,
    **integer_ops.UNARY,
    **typecast.OPS,
}

# Integers are stored as they are: no denormals to flush.
RAW_STORE = frozenset({*integer_ops.UNARY, *typecast.OPS})


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
