"""How far two chips' vector units are apart, call by call."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tilewright.records import record
from tilewright.sim.numerics import sfpu, tables
from tilewright.sim.numerics.binary import OPS as BINARY
from tilewright.sim.numerics.formats import U32, is_nan, scalar_bits, to_bits, values_of
from tilewright.sim.numerics.registry import UNARY
from tilewright.sim.numerics.ternary import OPS as TERNARY

SAMPLES = 4096
PARAMETERS: dict[str, tuple[float, ...]] = {
    "rdiv_tile": (3.0,), "fmod_tile": (3.0, 1 / 3), "remainder_tile": (3.0, 1 / 3), "power_tile": (2.5,), "rpow_tile": (2.0,),
    "addcdiv_tile": (0.7,), "addcmul_tile": (0.7,), "isclose_binary_tile": (0.01, 0.001), "softplus_tile": (1.0, 1.0, 20.0),
    "elu_tile": (1.0,), "celu_tile": (1.0, 1.0), "selu_tile": (1.05, 1.67), "xielu_tile": (0.8, 0.8), "add_unary_tile": (0.1,),
    "sub_unary_tile": (0.1,), "mul_unary_tile": (0.1,), "div_unary_tile": (0.1,), "rsub_tile": (1.0,), "rsub_unary_tile": (1.0,),
    "leaky_relu_tile": (0.1,), "prelu_tile": (0.1,), "softshrink_tile": (0.5,), "log_with_base_tile": (1.442695,),
}  # fmt: skip


@record
class Difference:
    """Lanes of numbers whose results are not equal, at least one of them finite; of how many; the largest relative difference."""

    lanes: int
    compared: int
    largest: float


def differing_calls(one: str, other: str) -> Iterator[tuple[str, Difference | None, Difference | None]]:
    """Every call of floats that gives other numbers somewhere: its name, and what was found in 16-bit and in 32-bit DST."""
    for call in sorted({*UNARY, *BINARY, *TERNARY} - sfpu.INTEGERS - _takes_integers()):
        wanted = PARAMETERS.get(call.split(":")[0], ())
        params = tuple(scalar_bits(value) for value in wanted)
        found = [_difference(call, params, one, other, dst32=wide) for wide in (False, True)]
        if any(part is not None and part.lanes for part in found):
            listed = ", ".join(f"{value:.4g}" for value in wanted)
            yield (f"{call}[{listed}]" if listed else call), found[0], found[1]


def _takes_integers() -> frozenset[str]:
    """Calls whose parameters are no floats: how often, how many decimals, a scale in 16 bits."""
    return frozenset({"power_iterative_tile", "round_tile", "exp_tile:scaled", "log_with_base_tile:base2"})


def _difference(call: str, params: tuple[int, ...], one: str, other: str, *, dst32: bool) -> Difference | None:
    operands = 1 if call in UNARY else 2 if call in BINARY else 3
    given = [tables.INPUTS] if operands == 1 and not dst32 else [_samples(place) for place in range(operands)]
    if not dst32:
        given = [bits & np.uint32(0xFFFF0000) for bits in given]
    compute = (sfpu.unary, sfpu.binary, sfpu.ternary)[operands - 1]
    name, _, variant = call.partition(":")
    try:
        left, right = (compute(chip, name, *given, dst32=dst32, params=params, variant=variant) for chip in (one, other))
    except IndexError:  # parameters that no one gave
        return None
    with np.errstate(all="ignore"):
        a, b = values_of(left), values_of(right)
        differ = (a != b) & (np.isfinite(a) | np.isfinite(b))
        for bits in given:
            differ &= ~is_nan(bits)
        relative = np.abs(a - b) / np.maximum(np.abs(a), np.abs(b))
    return Difference(int(differ.sum()), left.size, float(relative[differ & np.isfinite(relative)].max(initial=0.0)))


def _samples(place: int) -> U32:
    generator = np.random.default_rng(place)
    near = generator.uniform(-10, 10, SAMPLES // 2)
    far = np.ldexp(generator.uniform(1, 2, SAMPLES // 2), generator.integers(-40, 40, SAMPLES // 2))
    return to_bits(np.concatenate([near, far * generator.choice([-1, 1], SAMPLES // 2)]))


