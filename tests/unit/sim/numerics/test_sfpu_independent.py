"""Facts about the vector unit's functions that do not come from the recordings: mathematics, signs, errors.

Every function of one bf16 number is compared with the true function in float64, on both chips, within the distance its kernel is
documented to have over ordinary inputs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import special

from tilewright.sim.numerics import mad as arithmetic
from tilewright.sim.numerics import roots, sfpu
from tilewright.sim.numerics.formats import FormatError, from_bits, scalar_bits, to_bits, values_of
from tilewright.sim.numerics.lanes import UnknownOperation
from tilewright.sim.numerics.mad import on_chip

CHIPS = ("wormhole_b0", "blackhole")
CHIP = CHIPS[0]
EVERY_BF16 = np.arange(65536, dtype=np.uint32) << np.uint32(16)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return special.expit(x)


def softplus(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(0.0, x)


# Function, interval of ordinary inputs, largest distance in bf16 ulps.
TRUE: dict[str, tuple[Callable[[np.ndarray], np.ndarray], tuple[float, float], float]] = {
    "exp_tile": (np.exp, (-80, 80), 1.0),
    "exp2_tile": (np.exp2, (-120, 120), 1.0),
    "expm1_tile": (np.expm1, (-20, 80), 1.0),
    "expm1_tile:approx": (np.expm1, (-20, 80), 1.0),
    "log_tile": (np.log, (1e-30, 1e30), 1.0),
    "log_tile:approx": (np.log, (1e-30, 1e30), 1.0),
    "log1p_tile": (np.log1p, (-0.99, 1e30), 1.0),
    "log1p_tile:approx": (np.log1p, (-0.99, 1e30), 1.0),
    "sqrt_tile": (np.sqrt, (1e-30, 1e30), 0.51),
    "sqrt_tile:approx": (np.sqrt, (1e-30, 1e30), 0.51),
    "rsqrt_tile": (lambda x: 1 / np.sqrt(x), (1e-30, 1e30), 0.51),
    "rsqrt_tile:approx": (lambda x: 1 / np.sqrt(x), (1e-30, 1e30), 0.51),
    "rsqrt_tile:legacy": (lambda x: 1 / np.sqrt(x), (1e-30, 1e30), 2.0),
    "recip_tile": (np.reciprocal, (1e-30, 1e30), 1.0),
    "recip_tile:ieee": (np.reciprocal, (1e-30, 1e30), 0.52),
    "tanh_tile": (np.tanh, (-20, 20), 1.0),
    "sigmoid_tile": (sigmoid, (-20, 20), 1.0),
    "silu_tile": (lambda x: x * sigmoid(x), (-20, 60), 1.0),
    "sin_tile": (np.sin, (-3.0, 3.0), 1.0),
    "cos_tile": (np.cos, (-1.5, 1.5), 1.0),
    "tan_tile": (np.tan, (-1.5, 1.5), 1.0),
    "asin_tile": (np.arcsin, (-0.999, 0.999), 1.0),
    "acos_tile": (np.arccos, (-0.999, 0.99), 2.0),
    "atan_tile": (np.arctan, (-64, 64), 1.0),
    "sinh_tile": (np.sinh, (-60, 60), 1.0),
    "cosh_tile": (np.cosh, (-60, 60), 1.0),
    "asinh_tile": (np.arcsinh, (-64, 64), 1.33),
    "acosh_tile": (np.arccosh, (1.01, 64), 1.42),
    "atanh_tile": (np.arctanh, (-0.99, 0.99), 2.1),
    "cbrt_tile": (np.cbrt, (-64, 64), 1.0),
    "mish_tile": (lambda x: x * np.tanh(softplus(x)), (-20, 60), 1.5),
    "mish_tile:approx": (lambda x: x * np.tanh(softplus(x)), (-20, 60), 1.5),
    "gelu_tanh_tile": (lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))), (-2, 60), 1.0),
    "gelu_tile": (lambda x: x * special.ndtr(x), (-3, 60), 1.0),
    "softsign_tile": (lambda x: x / (1 + np.abs(x)), (-64, 64), 1.0),
    "hardmish_tile": (lambda x: x * np.clip(0.5 * x + 1, 0, 1), (-1.9, 64), 1.0),
    "i0_tile": (special.i0, (-3, 3), 1.5),
    "erf_tile": (special.erf, (0.1, 4), 2.0),
}
ROUGH = {  # kernels that are documented as coarse: largest relative error
    "exp_tile:approx": (np.exp, (-40, 40), 0.04),
    "exp_tile:approx_unclamped": (np.exp, (-40, 0), 0.04),
    "exp_tile:approx_scale_half": (lambda x: np.exp(0.5 * x), (-40, 40), 0.04),
    "tanh_tile:approx": (np.tanh, (0.05, 4), 0.21),
    "sigmoid_tile:approx": (sigmoid, (0, 4), 0.15),
    "gelu_tile:approx": (lambda x: x * special.ndtr(x), (0.5, 4), 0.06),
    "erf_tile:approx": (special.erf, (0.1, 4), 0.01),
    "erfinv_tile": (special.erfinv, (-0.9, 0.9), 0.14),
    "tanh_derivative_tile": (lambda x: 1 - np.tanh(x) ** 2, (-2, 2), 0.02),
    "gelu_derivative_tile": (lambda x: special.ndtr(x) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi), (0, 2), 0.04),
}
COARSER_ON_BLACKHOLE = {"mish_tile:approx": 2.6, "erf_tile:approx": 0.0125}  # by the seven bits of its reciprocal
UNCHECKED = {"erfc_tile", "digamma_tile", "lgamma_stirling_tile", "i1_tile", "tanhshrink_tile"}


def ordinary_inputs(low: float, high: float) -> np.ndarray:
    values = values_of(EVERY_BF16)
    with np.errstate(invalid="ignore"):
        return EVERY_BF16[(values >= low) & (values <= high) & (np.abs(values) >= 2.0**-100)]


def bf16_ulp(values: np.ndarray) -> np.ndarray:
    return 2.0 ** (np.floor(np.log2(np.abs(values))) - 7)


def on(chip: str, key: str, bound: float) -> float:
    return COARSER_ON_BLACKHOLE.get(key, bound) if chip == "blackhole" else bound


def table(chip: str, key: str, inputs: np.ndarray) -> np.ndarray:
    name, _, variant = key.partition(":")
    return sfpu.unary(chip, name, inputs, dst32=False, variant=variant)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("key", sorted(TRUE))
def test_functions_are_near_the_true_one(chip: str, key: str) -> None:
    function, (low, high), bound = TRUE[key]
    inputs = ordinary_inputs(low, high)
    got = from_bits(table(chip, key, inputs)).astype(np.float64)
    want = function(from_bits(inputs).astype(np.float64))
    normal = np.abs(want) >= 2.0**-100
    assert normal.sum() > 200
    assert (np.abs(got - want)[normal] / bf16_ulp(want[normal])).max() <= on(chip, key, bound)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("key", sorted(ROUGH))
def test_coarse_functions_stay_in_their_bound(chip: str, key: str) -> None:
    function, (low, high), bound = ROUGH[key]
    inputs = ordinary_inputs(low, high)
    values = from_bits(inputs).astype(np.float64)
    inputs, values = inputs[np.abs(values) > 1e-2], values[np.abs(values) > 1e-2]
    got, want = from_bits(table(chip, key, inputs)).astype(np.float64), function(values)
    assert (np.abs(got - want) / np.abs(want)).max() <= on(chip, key, bound)


def test_every_table_is_checked_or_named() -> None:
    assert set(TRUE) | set(ROUGH) | UNCHECKED == {name.rpartition("/")[2] for name in sfpu.table_names()}


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("key", sorted({*TRUE, *ROUGH, *UNCHECKED}))
def test_tables_are_what_the_algorithms_give(chip: str, key: str) -> None:
    assert sfpu.name_of(key, chip) is not None
    assert np.array_equal(table(chip, key, EVERY_BF16), on_chip(sfpu.computed_table)(chip, key))


@pytest.mark.parametrize("chip", CHIPS)
def test_multiply_add_fast_route_equals_integer_model(chip: str) -> None:
    on_chip(compare_routes)(chip)


def compare_routes() -> None:
    random = np.random.default_rng(0)

    def numbers(kind: int, count: int) -> np.ndarray:
        if kind == 0:
            return random.integers(0, 2**32, count, dtype=np.uint64).astype(np.uint32)
        if kind == 1:
            return to_bits(random.normal(size=count))
        exponents = random.integers(120, 134, count) if kind == 2 else random.integers(0, 20, count)
        signs = random.integers(0, 2, count).astype(np.uint32) << np.uint32(31)
        return signs | exponents.astype(np.uint32) << np.uint32(23) | random.integers(0, 2**23, count).astype(np.uint32)

    for trial in range(24):
        x, y, z = (numbers(int(kind), 20000) for kind in random.integers(0, 4, 3))
        if trial % 3 == 0:
            with np.errstate(all="ignore"):
                product = from_bits(x).astype(np.float64) * from_bits(y)
                z = to_bits(-product) ^ random.integers(0, 64, 20000).astype(np.uint32)
        fast = arithmetic.mad(x, y, z)
        assert (fast == arithmetic._mad_lanes(x, y, z)).all()  # pyright: ignore[reportPrivateUsage]
        assert (arithmetic.mul(x, y) == arithmetic._mad_lanes(x, y, np.zeros_like(x))).all()  # pyright: ignore
        one = np.full_like(x, 0x3F800000)
        assert (arithmetic.add(x, z) == arithmetic._mad_lanes(x, one, z)).all()  # pyright: ignore


@pytest.mark.parametrize("chip", CHIPS)
def test_multiply_add_is_near_the_true_value(chip: str) -> None:
    random = np.random.default_rng(1)
    x, y, z = (to_bits(random.uniform(1, 2, 10000)) for _ in range(3))
    got = from_bits(on_chip(arithmetic.mad)(chip, x, y, z)).astype(np.float64)
    want = from_bits(x).astype(np.float64) * from_bits(y) + from_bits(z)
    assert (np.abs(got - want) <= 0.52 * np.spacing(want.astype(np.float32))).all()


EDGES = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.0**-126, -(2.0**-126), 3.0e38, -3.0e38, 1.5 * 2.0**-126, -1.25 * 2.0**-126)


def test_blackhole_adds_as_ieee_with_denormals_flushed() -> None:
    """Signs of zeros too; its NaN is always the same."""
    x, z = (part.ravel().astype(np.float32) for part in np.meshgrid(EDGES, EDGES))
    with np.errstate(all="ignore"):
        total = x + z
    tiny = (np.abs(total) < 2.0**-126) & np.isfinite(total)
    want = to_bits(np.where(tiny, np.copysign(np.float32(0.0), total), total))
    want = np.where(np.isnan(total), np.uint32(0x7FC00000), want)
    assert np.array_equal(on_chip(arithmetic.add)("blackhole", to_bits(x), to_bits(z)), want)


def test_wormhole_has_one_zero_and_many_nans() -> None:
    x, z = (part.ravel().astype(np.float32) for part in np.meshgrid(EDGES, EDGES))
    with np.errstate(all="ignore"):
        total = x + z
    got = on_chip(arithmetic.add)("wormhole_b0", to_bits(x), to_bits(z))
    ordinary = ~np.isnan(total)
    with np.errstate(invalid="ignore"):
        want = to_bits(np.where(np.abs(total) < 2.0**-126, 0.0, total))
    assert np.array_equal(got[ordinary], want[ordinary])
    assert np.isnan(from_bits(got[~ordinary])).all() and len(set(got[~ordinary].tolist())) > 1


def test_a_product_that_vanishes_keeps_its_sign_only_where_blackhole_rounds_it() -> None:
    """Exponents that add up to a denormal's are rounded and flushed; smaller ones are no product at all."""
    x = to_bits(np.array([-(2.0**-64), -(2.0**-64), -(2.0**-100), -0.0, -(2.0**-63)]))
    y = to_bits(np.array([2.0**-63, 2.0**-64, 2.0**-100, 1.0, 2.0**-63]))
    assert on_chip(arithmetic.mul)("blackhole", x, y).tolist() == [0x80000000, 0, 0, 0, 0x80800000]
    assert on_chip(arithmetic.mul)("wormhole_b0", x, y).tolist() == [0, 0, 0, 0, 0x80800000]


def test_the_reciprocal_instruction_is_good_to_seven_bits() -> None:
    x = to_bits(np.concatenate([np.linspace(1, 2, 5000, endpoint=False), -np.geomspace(1e-37, 1e37, 5000)]))
    got = from_bits(roots.approximate_reciprocal(x)).astype(np.float64) * from_bits(x)
    assert got.min() > 0.9944 and got.max() < 1.0055
    ends = to_bits(np.array([0.0, -0.0, 1e-39, 2.0**126, -np.inf]))
    assert from_bits(roots.approximate_reciprocal(ends)).tolist() == [np.inf, -np.inf, np.inf, 0.0, 0.0]


def test_signs_and_specials() -> None:
    """Bit operations see what the kernels see: -0 has a sign, denormals are not zero."""
    bits = np.array([0x00000000, 0x80000000, 0x00010000, 0xFF800000, 0x7FC00000], dtype=np.uint32)

    def values(name: str) -> list[float]:
        return from_bits(sfpu.unary(CHIP, name, bits, dst32=True)).tolist()

    assert values("signbit_tile") == [0, 1, 0, 1, 0]
    assert values("sign_tile") == [0, -1, 1, -1, 1]
    assert values("eqz_tile") == [1, 1, 0, 0, 0]
    assert values("isnan_tile") == [0, 0, 0, 0, 1]
    assert values("isneginf_tile") == [0, 0, 0, 1, 0]


def test_stores_truncate_unless_the_kernel_rounds() -> None:
    """1 + 2^-8 + 2^-9: added on the SFPU it is cut to 1 + 2^-8... of bf16, or rounded on request."""
    one, rest = (np.full((1,), scalar_bits(v), dtype=np.uint32) for v in (1.0, 2.0**-8 + 2.0**-9))
    cut = sfpu.binary(CHIP, "add_binary_tile", one, rest, dst32=False)
    rounded = sfpu.binary(CHIP, "add_binary_tile", one, rest, dst32=False, nearest_even=True)
    assert from_bits(cut)[0] == 1.0
    assert from_bits(rounded)[0] == 1.0078125


@pytest.mark.parametrize("slope", [0.01, 0.2, -1.5])
def test_parameters_reach_the_algorithm(slope: float) -> None:
    bits = to_bits(np.linspace(-4, 4, 1024))
    got = from_bits(sfpu.unary(CHIP, "leaky_relu_tile", bits, dst32=True, params=(scalar_bits(slope),)))
    values = from_bits(bits)
    want = np.where(values < 0, values * np.float32(slope), values)
    assert np.allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.5])
def test_elu_for_any_alpha(alpha: float) -> None:
    bits = to_bits(np.linspace(-8, 8, 65536)) & np.uint32(0xFFFF0000)
    for dst32, bound in ((True, 2e-6), (False, 2.0**-8)):
        got = from_bits(sfpu.unary(CHIP, "elu_tile", bits, dst32=dst32, params=(scalar_bits(alpha),))).astype(np.float64)
        values = from_bits(bits).astype(np.float64)
        want = np.where(values < 0, np.float32(alpha) * np.expm1(values), values)
        assert (np.abs(got - want) <= bound * np.abs(want) + 1e-30).all()


def test_large_and_small_calls_agree_in_16_bit() -> None:
    """Large calls go through a table built on first use."""
    bits = to_bits(np.linspace(-8, 8, 16384)) & np.uint32(0xFFFF0000)
    large = sfpu.unary(CHIP, "elu_tile", bits, dst32=False, params=(scalar_bits(0.7),))
    small = np.concatenate(
        [sfpu.unary(CHIP, "elu_tile", part, dst32=False, params=(scalar_bits(0.7),)) for part in np.split(bits, 16)]
    )
    assert (large == small).all()


def test_unknown_names_are_refused_with_neighbours() -> None:
    tile = np.zeros((32, 32), dtype=np.uint32)
    with pytest.raises(UnknownOperation, match="exp_tile"):
        sfpu.unary(CHIP, "exp_tail", tile, dst32=True)
    with pytest.raises(UnknownOperation, match="add_binary_tile"):
        sfpu.binary(CHIP, "add_tile", tile, tile, dst32=True)
    with pytest.raises(UnknownOperation, match="where_tile"):
        sfpu.ternary(CHIP, "where", tile, tile, tile, dst32=True)
    with pytest.raises(FormatError, match="f32 to i32"):
        sfpu.typecast(CHIP, tile, "u32", "u8", dst32=True)
