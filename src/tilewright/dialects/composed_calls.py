"""Names of kernel calls, and of the inits they run under, put together from what an op does."""

from __future__ import annotations

import itertools
import re
from typing import Any

from tilewright.dialects.assembly import parameters_of
from tilewright.dialects.attributes import TileType
from tilewright.dialects.tile_op import UnitForm, dst_format
from tilewright.dialects.ttl import TileOpBase
from tilewright.dialects.ttl_compute import TileVectorReduceOp

# A value per row is a column vector: the hardware calls repeating it along the columns "cols".
BCAST_WORDS = {"row": "cols", "col": "rows", "scalar": "scalar"}
BCAST_TYPES = {"row": "COL", "col": "ROW", "scalar": "SCALAR"}
SFPU_BCAST = "sfpu_bcast"  # a unit: an op with a broadcast, both operands in DST
SFPU_BCAST_SINCE = (0, 78)  # the older releases have no sfpu_binary_bcast.h
SFPU_REDUCE_SINCE = (0, 78)  # the older releases reduce columns only, or nothing
STATELESS = "sfpu"  # key of all inits that set nothing of their own
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


def reduced_by_vector(op: TileVectorReduceOp) -> tuple[str, ...]:
    """Template arguments of sfpu_reduce."""
    pool, dim = reduce_template(op.kind, op.dim)
    return (pool, "DataFormat::Float32", dim)


# Inits ----------------------------------------------------------------------------------------------------------------


def template_values(op: TileOpBase, *, dst32: bool) -> dict[str, Any]:
    """What a form's template arguments may name: the op's parameters, format of its data in DST, DST's width."""
    return {
        **parameters_of(op, op.SPEC),
        "fmt": dst_format(worked_on(op), wide=dst32),
        "fp32": "true" if dst32 else "false",
    }


def worked_on(op: TileOpBase) -> str:
    """The dtype an op computes in: its first operand's, or its result's if it has none."""
    kind = next(iter(op.operands), op.results[0]).type
    assert isinstance(kind, TileType)
    return kind.dtype


def init_params(form: UnitForm) -> frozenset[str]:
    """Parameters of the row that its init depends on, in any release."""
    templates = [form.init_template, *(spelling.init_template or () for spelling in form.spellings)]
    named = {name for entry in itertools.chain(*templates) for name in re.findall(r"\{(\w+)", entry)}
    return frozenset(named | {argument.split(":")[0] for argument in form.init_args if ":" in argument})


def init_key(form: UnitForm, op: TileOpBase) -> str:
    """Stateless inits share one key: any SFPU init does for them."""
    if not form.stateful:
        return STATELESS
    values = template_values(op, dst32=False)
    template = ",".join(form.init_call_template(values))
    arguments = ",".join(str(values[a.split(":")[0]]) for a in form.init_args if ":" in a)
    return f"{form.init}<{template}>({arguments})"
