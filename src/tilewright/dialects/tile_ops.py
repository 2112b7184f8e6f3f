"""THE op table. One op, one row; the rows stand by family in ``op_rows/``."""

from __future__ import annotations

from tilewright.dialects.op_rows import activation, arithmetic, comparison, composed, functions, integer, scalar
from tilewright.dialects.tile_op import Composite, TileOp

FAMILIES: dict[str, tuple[TileOp, ...]] = {
    "arithmetic": arithmetic.ROWS,
    "arithmetic with a scalar": scalar.ROWS,
    "functions": functions.ROWS,
    "activations": activation.ROWS,
    "comparison, selection, conversion": comparison.ROWS,
    "integers": integer.ROWS,
}
ROWS: tuple[TileOp, ...] = tuple(row for family in FAMILIES.values() for row in family)
COMPOSITES: tuple[Composite, ...] = composed.COMPOSITES

BY_NAME: dict[str, TileOp] = {row.name: row for row in ROWS}
BY_PYTHON: dict[str, TileOp] = {spelling: row for row in ROWS for spelling in row.python}
BY_OPERATOR: dict[str, TileOp] = {row.operator: row for row in ROWS if row.operator}

COMPOSITE_BY_NAME: dict[str, Composite] = {op.name: op for op in COMPOSITES}
COMPOSITE_BY_PYTHON: dict[str, Composite] = {spelling: op for op in COMPOSITES for spelling in op.python}
COMPOSITE_BY_OPERATOR: dict[str, Composite] = {op.operator: op for op in COMPOSITES if op.operator}

TYPECASTS = comparison.SFPU_TYPECASTS  # (from, to) that need a call
FREE_TYPECASTS = comparison.FREE_TYPECASTS  # done by the unpacker or packer
