"""How close a result is to its reference: the rule that `tilewright score` and the pytest fixture share.

An element may be off by a share of itself plus a share of the largest element, by dtype: sums of many bf16 products are only
that good. Where the reference is not finite nothing is compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilewright.records import record

if TYPE_CHECKING:
    from numpy.typing import NDArray

# A share of the element and one of the largest, by dtype of the tensor; other dtypes are integers and must be equal.
TOLERANCES = {"bf16": (3e-2, 2e-2), "bfp8_b": (5e-2, 5e-2), "bfp4_b": (0.5, 0.5), "f32": (2e-3, 1e-3)}
NOTHING = 1e-30  # the chip flushes denormals; what is this small is zero


@record(kw_only=True)
class Difference:
    worst: float  # over the largest element of the reference; infinite if a finite one was not met by a number
    message: str  # empty if all elements are within the tolerance

    @property
    def holds(self) -> bool:
        return not self.message


def tolerance_of(dtype: str) -> tuple[float, float]:
    return TOLERANCES.get(dtype, (0.0, 0.0))


def difference(got: NDArray[Any], want: NDArray[Any], tolerance: tuple[float, float]) -> Difference:
    """``got`` in any dtype that holds its values, ``want`` in float64."""
    import numpy as np

    if got.shape != want.shape:
        return Difference(worst=float("inf"), message=f"its shape is {got.shape}, the reference's {want.shape}")
    relative, absolute = tolerance
    values, finite = got.astype(np.float64), np.isfinite(want)
    wanted = np.where(finite, want, 0.0)
    scale = float(np.abs(wanted).max(initial=0.0))
    distance = np.where(finite, np.abs(values - wanted), 0.0)
    distance = np.where(np.isnan(distance), np.inf, distance)
    worst = float(distance.max(initial=0.0)) / scale if scale > NOTHING else 0.0
    beyond = distance > relative * np.abs(wanted) + absolute * scale + NOTHING
    if not beyond.any():
        return Difference(worst=worst, message="")
    place = tuple(int(each) for each in np.argwhere(beyond)[0])
    shown = f"at {place} it is {values[place]:.6g}, not {want[place]:.6g}; {int(beyond.sum())} of {beyond.size} elements differ"
    return Difference(worst=worst, message=shown)
