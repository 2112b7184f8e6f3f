"""Costs of kernel calls: counted, published and estimated numbers, each with its evidence."""

from __future__ import annotations

import pytest

from tilewright.timing_constants import (
    call_cost,
    constants_of,
    copy_dest_values_cost,
    copy_tile_cost,
    cost_data,
    known_calls,
    pack_cost,
    sync_cost,
)

CHIPS = ("wormhole_b0", "blackhole")
DTYPES = ("bf16", "f32", "bfp8_b", "bfp4_b", "i32", "u32", "u16", "u8")


def math_cycles(call: str, *template: str, dst32: bool = False, **options: object) -> float:
    return call_cost(call, dst32=dst32, template=template, **options).math_cycles  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "narrow", "wide"),
    [
        ("exp_tile", 676, 1442), ("tanh_tile", 520, 1614), ("recip_tile", 560, 656), ("sqrt_tile", 912, 880),
        ("mul_binary_tile", 756, 208), ("add_binary_tile", 208, 208), ("div_binary_tile", 1460, 1524),
        ("addcmul_tile", 256, 224), ("copy_dest_values", 133, 133), ("abs_tile", 144, 144), ("add_tiles", 14, 14),
    ],
)  # fmt: skip
def test_counted_cycles_on_wormhole(call: str, narrow: float, wide: float) -> None:
    assert math_cycles(call) == narrow
    assert math_cycles(call, dst32=True) == wide
    assert "counted" in call_cost(call, dst32=False).evidence


def test_silicon_runs_load_macros() -> None:
    assert math_cycles("binary_max_tile") == 143
    assert math_cycles("where_tile") == 160
    assert math_cycles("exp_tile", approx=True) == 128
    assert "SFPLOADMACRO" in call_cost("binary_max_tile", dst32=False).evidence


def test_the_template_may_ask_for_the_approximate_form() -> None:
    assert math_cycles("exp_tile", "true") == math_cycles("exp_tile", approx=True)
    assert math_cycles("exp_tile", "false") == math_cycles("exp_tile")
    assert math_cycles("rsqrt_tile", "false", "true") == 944
    assert math_cycles("sigmoid_tile", "VectorMode::RC", "true") == 240


def test_fidelity_costs_phases() -> None:
    assert [math_cycles("mul_tiles", fidelity=f) for f in ("LoFi", "HiFi2", "HiFi3", "HiFi4")] == [14, 30, 50, 70]
    assert math_cycles("add_tiles", fidelity="LoFi") == math_cycles("add_tiles")


def test_template_arguments_select_the_variant() -> None:
    reuse = "EltwiseBinaryReuseDestType::DEST_TO_SRC"
    add, mul = "EltwiseBinaryType::ELWADD", "EltwiseBinaryType::ELWMUL"
    assert math_cycles("binary_dest_reuse_tiles", add, f"{reuse}A") == 42
    assert math_cycles("binary_dest_reuse_tiles", add, f"{reuse}B") == 54
    assert math_cycles("binary_dest_reuse_tiles", mul, f"{reuse}A") == 102
    assert math_cycles("mul_reuse_dest_tiles", f"{reuse}A", dst32=True) == 106
    assert math_cycles("reduce_tile", "PoolType::SUM", "ReduceDim::REDUCE_ROW") == 42
    assert math_cycles("reduce_tile", "PoolType::AVG", "ReduceDim::REDUCE_COL") == 71
    assert math_cycles("reduce_tile", "PoolType::MAX", "ReduceDim::REDUCE_COL") == 16
    assert math_cycles("unary_bcast", "BroadcastType::SCALAR") == 11
    assert math_cycles("add_binary_tile", "ckernel::DstRoundingMode::NearestEven") == 496
    to_float = ("(uint32_t)DataFormat::Int32", "(uint32_t)DataFormat::Float16_b")
    assert math_cycles("typecast_tile", *to_float) == 186
    assert math_cycles("typecast_tile", *reversed(to_float)) == 446


def test_without_a_matching_variant_the_dearest_is_assumed() -> None:
    assert math_cycles("binary_dest_reuse_tiles") == 110


def test_blackhole_numbers_say_where_they_come_from() -> None:
    published = call_cost("exp_tile", dst32=False, chip="blackhole")
    assert published.math_cycles == 620 and "measured on Blackhole" in published.evidence
    borrowed = call_cost("exp_tile", dst32=True, chip="blackhole")
    assert borrowed.math_cycles == 1442 and "Wormhole" in borrowed.evidence
    assert math_cycles("recip_tile", chip="blackhole") == 116
    assert math_cycles("recip_tile", chip="blackhole", dst32=True) == 180


def test_estimates_are_marked() -> None:
    assert call_cost("atan2_binary_tile", dst32=False).evidence.startswith("estimate")


def test_unpack_follows_what_the_call_reads() -> None:
    constants = constants_of("wormhole_b0")
    assert call_cost("copy_tile", dst32=False).unpack_cycles == constants.unpack_tile == 38.5
    assert call_cost("mul_tiles", dst32=False).unpack_cycles == constants.unpack_pair == 66
    assert call_cost("binary_dest_reuse_tiles", dst32=False).unpack_cycles == 38.5
    assert call_cost("copy_tile", dst32=False, chip="blackhole").unpack_cycles == constants_of("blackhole").copy_issue == 38.9
    assert call_cost("exp_tile", dst32=False).unpack_cycles == 0
    assert call_cost("mul_tiles", dst32=True, dtype="f32").unpack_cycles > 66


def test_copies_packs_and_synchronisation() -> None:
    assert copy_tile_cost("bf16", dst32=False).math_cycles == 14
    assert copy_tile_cost("f32", dst32=True, unpack_to_dest=True).unpack_cycles == 100
    assert copy_dest_values_cost(dst32=False).math_cycles == 133
    assert copy_dest_values_cost(dst32=False, chip="blackhole").math_cycles == 124
    assert pack_cost("bf16").pack_cycles == call_cost("pack_tile", dst32=False).pack_cycles == 47
    assert (sync_cost().math_cycles, sync_cost().pack_cycles) == (19, 36)
    assert call_cost("tile_regs_acquire", dst32=False).math_cycles == 10
    assert call_cost("pack_reconfig_data_format", dst32=False).pack_cycles == 160


def test_inits_cost_too() -> None:
    assert call_cost("exp_tile", dst32=False).init_math_cycles == 16
    assert call_cost("add_tiles", dst32=False).init_math_cycles == 49
    assert call_cost("copy_tile", dst32=False).init_unpack_cycles == 41
    reduction = call_cost("reduce_tile", dst32=False, template=("PoolType::SUM", "ReduceDim::REDUCE_ROW"))
    assert reduction.init_pack_cycles == 16


def test_names_of_newer_releases_are_known() -> None:
    assert math_cycles("transpose_tile") == math_cycles("transpose_wh_tile") == 14


def test_an_unknown_call_is_an_error() -> None:
    with pytest.raises(KeyError, match="no_such_tile"):
        call_cost("no_such_tile", dst32=False)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("call", sorted(known_calls()))
def test_every_known_call_costs_something(call: str, chip: str) -> None:
    for dst32 in (False, True):
        cost = call_cost(call, dst32=dst32, chip=chip)
        assert cost.math_cycles + cost.unpack_cycles + cost.pack_cycles > 0
        assert cost.evidence


@pytest.mark.parametrize("chip", CHIPS)
def test_every_dtype_can_be_moved(chip: str) -> None:
    for dtype in DTYPES:
        pair, one = (call_cost(call, dst32=True, chip=chip, dtype=dtype) for call in ("mul_tiles", "binary_dest_reuse_tiles"))
        assert pair.unpack_cycles >= one.unpack_cycles > 0
        assert pack_cost(dtype, chip).pack_cycles > 0
    for dtype in cost_data()["transfer"]["to_dest"][chip]:
        assert copy_tile_cost(dtype, dst32=True, unpack_to_dest=True, chip=chip).unpack_cycles > 0


def test_a_build_without_macros_runs_the_longer_form():
    fast, slow = (call_cost("binary_max_tile", dst32=False, macros=macros) for macros in (True, False))
    assert (fast.math_cycles, slow.math_cycles) == (143, 238)
    same = [call_cost("exp_tile", dst32=False, macros=macros) for macros in (True, False)]
    assert same[0] == same[1], "it has no macro to lose"
