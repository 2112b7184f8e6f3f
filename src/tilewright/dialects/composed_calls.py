"""Names of kernel calls that are put together from what an op does."""

from __future__ import annotations

# A value per row is a column vector: the hardware calls repeating it along the columns "cols".
BCAST_WORDS = {"row": "cols", "col": "rows", "scalar": "scalar"}
BCAST_TYPES = {"row": "COL", "col": "ROW", "scalar": "SCALAR"}
SFPU_BCAST_SINCE = (0, 78)  # the older releases have no sfpu_binary_bcast.h
SFPU_REDUCE_SINCE = (0, 78)  # the older releases reduce columns only, or nothing
REDUCE_DIMS = {"row": "REDUCE_ROW", "col": "REDUCE_COL", "scalar": "REDUCE_SCALAR"}


def bcast_call(op: str, dim: str) -> str:
    return f"{op}_tiles_bcast_{BCAST_WORDS[dim]}"


def bcast_init(op: str, dim: str) -> str:
    return f"{op}_bcast_{BCAST_WORDS[dim]}_init_short"


def sfpu_bcast_call(op: str, dim: str) -> str:
    return f"sfpu_{op}_bcast_{BCAST_WORDS[dim].removesuffix('s')}"


def reduce_template(kind: str, dim: str) -> tuple[str, ...]:
    return (f"PoolType::{kind.upper()}", f"ReduceDim::{REDUCE_DIMS[dim]}")


def bcast_type(dim: str) -> str:
    return f"BroadcastType::{BCAST_TYPES[dim]}"
