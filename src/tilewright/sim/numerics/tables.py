"""Tables of unary SFPU functions in 16-bit DST: one entry per bf16 input.

The entries are outputs of the real kernels of ttnn 0.78.0 on the vendor's bit-accurate simulator;
``benchmarks/make_numeric_tables.py`` builds the file. A function of one 16-bit number is its table, so these ops are
exact by construction. The packer hides NaN and the sign of zero from any recording; those entries are completed from
recordings of the same kernels in 32-bit DST, where it does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import numpy as np

from tilewright.sim.numerics.formats import U16, U32
from tilewright.sim.numerics.unit import on_blackhole

_FILE = "unary_bf16.npz"

# Calls that compute something else on Blackhole; the other tables were recorded on both chips and are equal.
WORMHOLE_ONLY = frozenset({
    "asinh_tile", "atanh_tile", "cosh_tile", "erf_tile:approx", "erfc_tile", "gelu_tanh_tile", "gelu_tile:approx", "hardmish_tile",
    "log_tile:approx", "mish_tile", "recip_tile:ieee", "rsqrt_tile:approx", "sigmoid_tile", "sigmoid_tile:approx", "silu_tile",
    "softsign_tile", "sqrt_tile:approx", "tan_tile", "sin_tile", "cos_tile",
})  # fmt: skip


@cache
def table_names() -> frozenset[str]:
    """Keys ``<call>`` or ``<call>:<variant>`` that have a table."""
    with _open() as archive:
        return frozenset(archive.files)


@cache
def table(key: str) -> U32:
    """The 65,536 results of ``key`` as fp32 patterns, indexed by the bf16 input pattern."""
    with _open() as archive:
        deltas: U16 = archive[key]
    return np.cumsum(deltas, dtype=np.uint16).astype(np.uint32) << np.uint32(16)


def table_key(key: str, params: Sequence[int]) -> str:
    """Tables of calls with parameters hold for those parameters only: ``elu_tile[3f800000]``."""
    if not params:
        return key
    return f"{key}[{','.join(f'{value:x}' for value in params)}]"


def holds(key: str) -> bool:
    """Whether the call has a table on the chip that computes."""
    return key in table_names() and not (on_blackhole() and key.split("[")[0] in WORMHOLE_ONLY)


def look_up(key: str, dst: U32) -> U32:
    return table(key)[dst >> np.uint32(16)]


def _open() -> np.lib.npyio.NpzFile:
    return np.load(str(files("tilewright.sim.numerics") / "data" / _FILE))
