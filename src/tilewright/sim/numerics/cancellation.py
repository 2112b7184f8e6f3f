"""What the user hears when the matrix unit's erratum (rule N7, ``accumulate.py``) changed results.

A hit is seen where a sum is added to DST, far from the tensor it ends up in. So the program runs a second time as on a chip
without the erratum, and the tensors of both runs are compared: only then is it known which results are wrong, and by how much.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.diagnostics import Diagnostic
from tilewright.program import TensorSpec
from tilewright.sim.numerics import formats
from tilewright.tile_pages import Array, join_tiles

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
    return join_tiles(formats.from_l1(pages, spec.dtype), spec.shape).astype(np.float64)
