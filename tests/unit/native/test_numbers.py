"""The two number models agree bit for bit: the runner's C++ and the simulator's NumPy, written apart from the same rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilewright.hardware import BLACKHOLE, WORMHOLE_B0, Chip
from tilewright.native.compiled import from_face_order, to_face_order
from tilewright.native.driver import ComputeConfig
from tilewright.sim.numerics import fpu, packer, sfpu
from tilewright.sim.numerics.fpu import packed_mask, reduce
from tilewright.sim.numerics.matmul import matmul

Tiles = np.ndarray[Any, np.dtype[Any]]
Run = Callable[..., Tiles]

TILES = 4
FIDELITIES = ("LoFi", "HiFi2", "HiFi3", "HiFi4")
ON_CHIPS = pytest.mark.parametrize("chip", [WORMHOLE_B0, BLACKHOLE], ids=lambda chip: chip.name)
WIDTHS = pytest.mark.parametrize("wide", [False, True], ids=["dst16", "dst32"])


def patterns(dtype: str, seed: int, *, count: int = TILES, wild: bool = True) -> Tiles:
    """Random tiles ``[count, 32, 32]`` of bit patterns: ordinary numbers, every exponent, zeros, infinities, NaN."""
    rng = np.random.default_rng(seed)
    bits = rng.normal(size=(count, 32, 32)).astype(np.float32).view(np.uint32)
    if wild:
        anything = rng.integers(0, 1 << 32, bits.shape, dtype=np.uint32)
        bits = np.where(rng.random(bits.shape) < 0.4, anything, bits)
        specials = np.array([0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x00400000, 0x3F800000], np.uint32)
        bits = np.where(rng.random(bits.shape) < 0.1, rng.choice(specials, bits.shape), bits)
    return (bits >> 16).astype(np.uint16) if dtype == "bf16" else bits


def operand(dtype: str, tiles: Tiles) -> tuple[str, Tiles]:
    return dtype, to_face_order(tiles)


def expect(got: Tiles, wanted: Tiles) -> None:
    rows = from_face_order(got)
    different = rows != wanted
    assert not different.any(), f"{different.sum()} of {rows.size} differ, first at {np.argwhere(different)[0]}"


def source(tiles: Tiles, dtype: str, wide: bool) -> Tiles:
    return packer.to_src(tiles, dtype, dst32=wide)


def packed(dst: Tiles, dtype: str, wide: bool, **options: Any) -> Tiles:
    return packer.pack(dst.astype(np.uint32), dtype, dst32=wide, **options)


@WIDTHS
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize("fidelity", FIDELITIES)
@pytest.mark.parametrize("op", ["add", "sub", "mul"])
def test_elementwise(run_op: Run, op: str, fidelity: str, dtype: str, wide: bool) -> None:
    if op != "mul" and fidelity != "HiFi4":
        fidelity = "LoFi"  # must not matter
    a, b = patterns(dtype, 1), patterns(dtype, 2)
    got = run_op(
        f"{op}_tiles(A, B, 0, 0, 0);", [operand(dtype, a), operand(dtype, b)], dtype, headers=["eltwise_binary.h"],
        setup=f"compute_kernel_hw_startup(A, B, O); {op}_init(A, B);",
        config=ComputeConfig(fp32_dest_acc_en=wide, math_fidelity=fidelity),
    )  # fmt: skip
    function = {"add": fpu.elwadd, "sub": fpu.elwsub, "mul": fpu.elwmul}[op]
    dst = function(
        source(a, dtype, wide), source(b, dtype, wide), np.zeros(a.shape, np.uint32), dst32=wide, erratum=fpu.Erratum(), fidelity=fidelity,
        accumulate=op == "mul",
    )  # fmt: skip
    expect(got, packed(dst, dtype, wide))


@WIDTHS
@pytest.mark.parametrize("side", ["SRCA", "SRCB"])
@pytest.mark.parametrize("op", ["add", "sub", "mul"])
def test_dest_reuse(run_op: Run, op: str, side: str, wide: bool) -> None:
    a, b = patterns("bf16", 3), patterns("bf16", 4)
    reuse = f"<EltwiseBinaryReuseDestType::DEST_TO_{side}>"
    got = run_op(
        f"copy_init(A); copy_tile(A, 0, 0); {op}_reuse_dest_init{reuse}(B); {op}_reuse_dest_tiles{reuse}(B, 0, 0);",
        [operand("bf16", a), operand("bf16", b)], "bf16", headers=["eltwise_binary.h", "tile_move_copy.h"],
        setup="compute_kernel_hw_startup(A, B, O);", config=ComputeConfig(fp32_dest_acc_en=wide),
    )  # fmt: skip
    loaded = packer.copy_to_dst(a, "bf16", dst32=wide, unpack_to_dest=False)
    kept = fpu.dest_to_src(loaded, dst32=wide, src_format="bf16")
    left, right = (kept, source(b, "bf16", wide)) if side == "SRCA" else (source(b, "bf16", wide), kept)
    function = {"add": fpu.elwadd, "sub": fpu.elwsub, "mul": fpu.elwmul}[op]
    dst = function(left, right, np.zeros(a.shape, np.uint32), dst32=wide, erratum=fpu.Erratum(), accumulate=op == "mul")
    expect(got, packed(dst, "bf16", wide))


@WIDTHS
@pytest.mark.parametrize(("cpp", "kind"), [("rows", "row"), ("cols", "col"), ("scalar", "scalar")])
def test_broadcast_of_the_second_operand(run_op: Run, cpp: str, kind: Any, wide: bool) -> None:
    a, b = patterns("bf16", 5), patterns("bf16", 6)
    got = run_op(
        f"mul_tiles_bcast_{cpp}(A, B, 0, 0, 0);", [operand("bf16", a), operand("bf16", b)], "bf16", headers=["bcast.h"],
        setup=f"compute_kernel_hw_startup(A, B, O); mul_bcast_{cpp}_init(A, B);", config=ComputeConfig(fp32_dest_acc_en=wide),
    )  # fmt: skip
    spread = fpu.broadcast_src_b(source(b, "bf16", wide), kind)
    dst = fpu.elwmul(source(a, "bf16", wide), spread, np.zeros(a.shape, np.uint32), dst32=wide, erratum=fpu.Erratum(), accumulate=True)
    expect(got, packed(dst, "bf16", wide))


@WIDTHS
@pytest.mark.parametrize("fidelity", ["LoFi", "HiFi4"])
@pytest.mark.parametrize("transpose", [0, 1])
def test_matmul_accumulates_over_two_tiles(run_op: Run, transpose: int, fidelity: Any, wide: bool) -> None:
    a, b = patterns("bf16", 7), patterns("bf16", 8)
    got = run_op(
        "matmul_tiles(A, B, 0, 0, 0); matmul_tiles(A, B, 1, 1, 0);", [operand("bf16", a), operand("bf16", b)], "bf16",
        headers=["matmul.h"], setup=f"compute_kernel_hw_startup<SrcOrder::Reverse>(A, B, O); matmul_init(A, B, {transpose});",
        tiles=(2, 2), config=ComputeConfig(fp32_dest_acc_en=wide, math_fidelity=fidelity),
    )  # fmt: skip
    left, right = source(a, "bf16", wide), source(b, "bf16", wide)
    dst = np.zeros((TILES // 2, 32, 32), np.uint32)
    for k in range(2):
        dst = matmul(left[k::2], right[k::2], dst, dst32=wide, erratum=fpu.Erratum(), fidelity=fidelity, transpose=bool(transpose))
    expect(got, packed(dst, "bf16", wide))


@WIDTHS
def test_matmul_block_is_matmul_per_tile(run_op: Run, wide: bool) -> None:
    a, b = patterns("bf16", 9, count=4, wild=False), patterns("bf16", 10, count=4, wild=False)
    got = run_op(
        "for (uint32_t k = 0; k < 2; ++k) matmul_block(A, B, k, 2 * k, 0, 0, 2, 2, 2);", [operand("bf16", a), operand("bf16", b)],
        "bf16", headers=["matmul.h"], tiles=(4, 4), out_tiles=4, config=ComputeConfig(fp32_dest_acc_en=wide),
        setup="compute_kernel_hw_startup<SrcOrder::Reverse>(A, B, O); matmul_block_init(A, B, 0, 2, 2, 2);",
    )  # fmt: skip
    left, right = source(a, "bf16", wide).reshape(2, 2, 32, 32), source(b, "bf16", wide).reshape(2, 2, 32, 32)
    dst = np.zeros((2, 2, 32, 32), np.uint32)
    for r in range(2):
        for c in range(2):
            for k in range(2):
                dst[r, c] = matmul(left[r, k][None], right[k, c][None], dst[r, c][None], dst32=wide, erratum=fpu.Erratum())[0]
    expect(got, packed(dst.reshape(4, 32, 32), "bf16", wide))


@WIDTHS
@pytest.mark.parametrize("dim", ["row", "col", "scalar"])
@pytest.mark.parametrize("pool", ["sum", "max"])
def test_reduce(run_op: Run, pool: Any, dim: Any, wide: bool) -> None:
    data = patterns("bf16", 11)
    scaler = np.zeros(data.shape, np.uint16)
    scaler[:, ::16, :] = 0x3F80 if pool == "max" else 0x3E80
    template = f"<PoolType::{pool.upper()}, ReduceDim::REDUCE_{dim.upper()}>"
    swapped = pool == "sum" and dim == "row"
    got = run_op(
        f"reduce_init{template}(A, B, O); reduce_tile{template}(A, B, 0, 0, 0);",
        [operand("bf16", data), operand("bf16", scaler)],
        "bf16", headers=["reduce.h"], setup=f"compute_kernel_hw_startup({'B, A' if swapped else 'A, B'}, O);",
        pack="pack_tile(0, O); reduce_uninit();", config=ComputeConfig(fp32_dest_acc_en=wide),
    )  # fmt: skip
    zero = np.zeros(data.shape, np.uint32)
    dst = reduce(pool, dim, source(data, "bf16", wide), source(scaler, "bf16", wide), zero, dst32=wide, erratum=fpu.Erratum(), fresh=True)
    expect(got, packed(np.where(packed_mask(dim), dst, 0), "bf16", wide))


@WIDTHS
@pytest.mark.parametrize("out", ["bf16", "f32", "bfp8_b"])
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_copy_and_pack(run_op: Run, dtype: str, out: str, wide: bool) -> None:
    tiles = patterns(dtype, 12)
    direct = wide and dtype == "f32"
    got = run_op(
        "copy_tile(A, 0, 0);", [operand(dtype, tiles)], out, headers=["tile_move_copy.h"],
        setup="compute_kernel_hw_startup(A, O); copy_init(A);",
        config=ComputeConfig(fp32_dest_acc_en=wide, unpack_to_dest=frozenset({0} if direct else ())),
    )  # fmt: skip
    dst = packer.copy_to_dst(tiles, dtype, dst32=wide, unpack_to_dest=direct)
    wanted = packed(dst, out, wide)
    if out == "bfp8_b":
        assert np.array_equal(got.reshape(TILES, -1), wanted)
    else:
        expect(got, wanted)


@WIDTHS
@pytest.mark.parametrize("out", ["bf16", "f32"])
def test_accumulation_in_l1(run_op: Run, out: str, wide: bool) -> None:
    a, b = patterns("bf16", 13), patterns("bf16", 14)
    got = run_op(
        "copy_tile(A, 0, 0); copy_tile(B, 0, 1);", [operand("bf16", a), operand("bf16", b)], out, headers=["tile_move_copy.h"],
        setup="compute_kernel_hw_startup(A, O); copy_init(A);",
        pack="pack_reconfig_l1_acc(0); pack_tile<true>(0, O, 0); pack_reconfig_l1_acc(1); pack_tile<true>(1, O, 0);",
        config=ComputeConfig(fp32_dest_acc_en=wide),
    )  # fmt: skip
    first = packed(packer.copy_to_dst(a, "bf16", dst32=wide, unpack_to_dest=False), out, wide)
    second = packer.copy_to_dst(b, "bf16", dst32=wide, unpack_to_dest=False)
    expect(got, packed(second, out, wide, old_l1=first, l1_acc=True))


def test_block_floats_come_back(run_op: Run) -> None:
    rng = np.random.default_rng(15)
    raw = rng.integers(0, 256, (TILES, 1088), dtype=np.uint8)
    raw[:, :64] = rng.integers(0, 200, (TILES, 64))
    got = run_op(
        "copy_tile(A, 0, 0);", [("bfp8_b", raw)], "bf16", headers=["tile_move_copy.h"],
        setup="compute_kernel_hw_startup(A, O); copy_init(A);",
    )  # fmt: skip
    expect(got, packed(packer.copy_to_dst(raw, "bfp8_b", dst32=False, unpack_to_dest=False), "bf16", False))


UNARY = (
    ("abs_tile", "compute_kernel_api.h", ()), ("negative_tile", "eltwise_unary/negative.h", ()),
    ("relu_tile", "eltwise_unary/relu.h", ()), ("square_tile", "compute_kernel_api.h", ()),
    ("exp_tile", "eltwise_unary/exp.h", ()), ("tanh_tile", "compute_kernel_api.h", ()),
    ("recip_tile", "eltwise_unary/recip.h", ()), ("sqrt_tile", "eltwise_unary/sqrt.h", ()),
    ("sign_tile", "compute_kernel_api.h", ()),
    ("hardsigmoid_tile", "eltwise_unary/activations.h", ()), ("isnan_tile", "eltwise_unary/isinf_isnan.h", ()),
    ("gez_tile", "eltwise_unary/comp.h", ()), ("clamp_tile", "eltwise_unary/clamp.h", (0xBF800000, 0x3F000000)),
    ("leaky_relu_tile", "eltwise_unary/relu.h", (0x3DCCCCCD,)), ("unary_max_tile", "compute_kernel_api.h", (0x3F000000,)),
    ("unary_gt_tile", "eltwise_unary/comp.h", (0x3F000000,)), ("elu_tile", "eltwise_unary/elu.h", (0x3F800000,)),
)  # fmt: skip


@ON_CHIPS
@WIDTHS
@pytest.mark.parametrize(("name", "header", "params"), UNARY, ids=[row[0] for row in UNARY])
def test_vector_functions(run_op: Run, name: str, header: str, params: tuple[int, ...], wide: bool, chip: Chip) -> None:
    dtype = "f32" if wide else "bf16"
    tiles = patterns(dtype, 16)
    words = "".join(f", {word}u" for word in params)
    got = run_op(
        f"copy_tile(A, 0, 0); {name}(0{words});", [operand(dtype, tiles)], dtype, headers=["tile_move_copy.h", header],
        setup=f"compute_kernel_hw_startup(A, O); copy_init(A); {name}_init();",
        config=ComputeConfig(fp32_dest_acc_en=wide, unpack_to_dest=frozenset({0} if wide else ())), chip=chip,
    )  # fmt: skip
    dst = packer.copy_to_dst(tiles, dtype, dst32=wide, unpack_to_dest=wide)
    expect(got, packed(sfpu.unary(chip.name, name, dst, dst32=wide, params=params), dtype, wide))


BINARY = (
    "add_binary_tile",
    "sub_binary_tile",
    "rsub_binary_tile",
    "mul_binary_tile",
    "div_binary_tile",
    "lt_binary_tile",
    "eq_binary_tile",
)


@ON_CHIPS
@WIDTHS
@pytest.mark.parametrize("name", BINARY)
def test_vector_functions_of_two_tiles(run_op: Run, name: str, wide: bool, chip: Chip) -> None:
    dtype = "f32" if wide else "bf16"
    a, b = patterns(dtype, 17), patterns(dtype, 18)
    got = run_op(
        f"copy_tile(A, 0, 0); copy_tile(B, 0, 1); {name}(0, 1, 0);", [operand(dtype, a), operand(dtype, b)], dtype,
        headers=["tile_move_copy.h", "eltwise_binary_sfpu.h"],
        setup=f"compute_kernel_hw_startup(A, O); copy_init(A); {name}_init();",
        config=ComputeConfig(fp32_dest_acc_en=wide, unpack_to_dest=frozenset({0, 1} if wide else ())), chip=chip,
    )  # fmt: skip
    left, right = (packer.copy_to_dst(tiles, dtype, dst32=wide, unpack_to_dest=wide) for tiles in (a, b))
    expect(got, packed(sfpu.binary(chip.name, name, left, right, dst32=wide), dtype, wide))


def test_packer_relu(run_op: Run) -> None:
    tiles = patterns("bf16", 19)
    got = run_op(
        "copy_tile(A, 0, 0);", [operand("bf16", tiles)], "bf16", headers=["tile_move_copy.h"],
        setup="compute_kernel_hw_startup(A, O); copy_init(A); pack_relu_config(ReluConfig::max_threshold(0x3F80));",
    )  # fmt: skip
    plain = packed(packer.copy_to_dst(tiles, "bf16", dst32=False, unpack_to_dest=False), "bf16", False)
    wanted = np.where(plain & 0x8000, 0, np.minimum(plain, 0x3F80))
    expect(got, wanted)
