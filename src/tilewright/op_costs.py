"""Cycles of every kernel call, by chip and DST width: one place for allocator, cycle model and documentation.

What does not depend on the call (sync, data times of packer and unpacker) is a constant of the timeline.

Wormhole numbers are instructions counted on the vendor's simulator, turned into cycles by the issue rules of the ISA;
Blackhole numbers were published for silicon. Where neither exists the cost is an estimate or Wormhole's, and its
evidence says so. The data, ``op_costs.json``, is made by ``benchmarks/make_op_costs.py``.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from tilewright.dtypes import BLOCK_FLOATS, BY_NAME
from tilewright.records import record
from tilewright.timing_constants import constants_of

WORMHOLE = "wormhole_b0"
BUFFER_HANDSHAKE = 40  # cycles of math per tile through a buffer of its own thread: reserve, push, wait, pop (estimated)
UNCERTAINTY = 0.15  # share by which cycles may be off: counted instructions lie within it of what silicon was measured at

PHASE_CYCLES = 16  # of the matrix unit for two tiles
EXPONENT_BYTES = 64  # of a tile of block floats
FIDELITY_PHASES = {"LoFi": 1, "HiFi2": 2, "HiFi3": 3, "HiFi4": 4}

# Releases renamed these; the table knows the canonical name only.
RENAMED = {
    "transpose_tile": "transpose_wh_tile",
    "transpose_dest": "transpose_wh_dest",
    "copy_block_matmul_partials": "copy_block",
    "add_reuse_dest_tiles": "binary_dest_reuse_tiles",
    "sub_reuse_dest_tiles": "binary_dest_reuse_tiles",
    "mul_reuse_dest_tiles": "binary_dest_reuse_tiles",
    "pack_tile_block": "pack_block",
}

COPIES = ("copy_tile", "unary_bcast", "transpose_wh_tile")  # one tile straight through the source registers

# Which template argument asks for the approximate form.
APPROXIMATE_AT = {
    "exp_tile": 0,
    "log_tile": 0,
    "sqrt_tile": 0,
    "tanh_tile": 0,
    "erf_tile": 0,
    "gelu_tile": 0,
    "rsqrt_tile": 1,
    "sigmoid_tile": 1,
}

# Which template argument, if false, asks for the function as a 16-bit DST has it, whatever DST is.
WIDTH_AT = {
    "exp_tile": 4,
    "expm1_tile": 1,
    "log1p_tile": 1,
    "log_tile": 1,
    "sigmoid_tile": 2,
    "silu_tile": 0,
    "tanh_tile": 1,
}


@record
class CallCost:
    """Cycles one call keeps each thread of a core busy, and what its init costs."""

    math_cycles: float
    unpack_cycles: float
    pack_cycles: float
    init_math_cycles: float
    evidence: str
    init_unpack_cycles: float = 0.0
    init_pack_cycles: float = 0.0
    pushed: float = 0.0  # instructions, where pushing them takes the math cycles and executing them fewer


@cache
def cost_data() -> dict[str, Any]:
    return json.loads(Path(__file__).with_name("op_costs.json").read_text(encoding="utf-8"))


def known_calls() -> frozenset[str]:
    """Every call that has a cost."""
    data = cost_data()
    return frozenset((*data["calls"], *data["control"], "pack_tile", "pack_block"))


@cache
def call_cost(
    call: str,
    *,
    dst32: bool,
    fidelity: str = "HiFi4",
    chip: str = WORMHOLE,
    approx: bool = False,
    template: tuple[str, ...] = (),
    dtype: str = "bf16",
    macros: bool = True,
) -> CallCost:
    """Cost of one call on one tile.

    ``template`` is the C++ text of the template arguments, ``dtype`` what the buffers of the call hold, ``macros`` whether the
    build may use SFPLOADMACRO.
    """
    name = RENAMED.get(call, call)
    data = cost_data()
    if name in ("pack_tile", "pack_block"):
        return pack_cost(dtype, chip)
    if name in data["control"]:
        math, unpack, pack, evidence = data["control"][name]
        return CallCost(math, unpack, pack, 0.0, evidence)
    if name not in data["calls"]:
        raise KeyError(f"no cost for the call {call!r}")

    words = template_words(call, template, approx or chooses_approximation(call, template))
    variant = choose_variant(data["calls"][name], words)
    dst32 = dst32 and not is_narrow(call, template)
    width = "32" if dst32 else "16"
    by_fidelity = variant[width] if macros else variant.get("without_macro", variant)[width]
    math, init, *pushed = by_fidelity.get(fidelity, by_fidelity["HiFi4"])
    if macros or "without_macro" not in variant:
        math, evidence = on_chip(variant, math, dst32=dst32, chip=chip)
    else:
        evidence = "counted on Wormhole, without SFPLOADMACRO"
    unpack = unpack_cycles(name, dtype, chip)
    init_unpack, init_pack = data["init_other"].get(name, (0.0, 0.0))
    return CallCost(math, unpack, 0.0, init, evidence, init_unpack, init_pack, *pushed)


def product_cycles(fidelity: str, rows: int, columns: int) -> float:
    """Math cycles of one product call that makes a block of tiles: instructions counted by shape.

    ``call_cost`` has one tile's share of a 2x2 block, which is the dearest; it serves where the shape is still open.
    """
    phases = FIDELITY_PHASES[fidelity]
    steps = (1 if phases > 1 else 0) + (2 if min(rows, columns) > 1 else 1)  # to the next phase, to the next row and tile
    return rows * columns * (PHASE_CYCLES * phases + steps) + 1


def streamed_share(dtype: str, chip: str) -> float:
    """Of a bf16 tile's time, where tiles stream under one call: small ones gain all of their bytes but the shared exponents."""
    mantissas = BY_NAME[dtype].tile_bytes - (EXPONENT_BYTES if dtype in BLOCK_FLOATS else 0)
    return min(dtype_ratio("one", dtype, chip), mantissas / BY_NAME["bf16"].tile_bytes)


def chooses_approximation(call: str, template: tuple[str, ...]) -> bool:
    """Whether the template argument that selects the approximate form of ``call`` is true."""
    position = APPROXIMATE_AT.get(call)
    return position is not None and template[position : position + 1] == ("true",)


def is_narrow(call: str, template: tuple[str, ...]) -> bool:
    """Whether the template argument for DST's width says 16 bits."""
    position = WIDTH_AT.get(call)
    return position is not None and template[position : position + 1] == ("false",)


def template_words(call: str, template: tuple[str, ...], approx: bool) -> frozenset[str]:
    """What selects the variant: the last component of every template argument."""
    words = [argument.rsplit("::", 1)[-1].rstrip(")") for argument in template]
    if call.endswith("_reuse_dest_tiles"):
        words.append(f"ELW{call[:3].upper()}")
    if call == "typecast_tile" and len(words) > 1:
        words.append(f"{words[0]}>{words[1]}")
    if "AVG" in words:
        words.append("SUM")
    if approx:
        words.append("approx")
    return frozenset(words)


def choose_variant(variants: dict[str, Any], words: frozenset[str]) -> dict[str, Any]:
    """The variant all of whose words are given, the more the better; without a match the dearest one."""
    fits = [key for key in variants if frozenset(key.split()) <= words]
    if fits:
        return variants[max(fits, key=lambda key: len(key.split()))]
    return max(variants.values(), key=lambda variant: variant["16"]["HiFi4"][0])


def on_chip(variant: dict[str, Any], counted: float, *, dst32: bool, chip: str) -> tuple[float, str]:
    """Math cycles and evidence on ``chip``, from the Wormhole number ``counted``."""
    evidence = variant.get("evidence", "counted instructions")
    if chip == WORMHOLE:
        return counted, evidence
    published = variant.get(chip, {}).get("32" if dst32 else "16")
    if published is not None:
        return published[0], published[1]
    return counted, f"Wormhole's number ({evidence})"


def unpack_cycles(call: str, dtype: str, chip: str) -> float:
    """Cycles the unpack thread takes for the operands of a call: one tile, a pair, or none."""
    reads = cost_data()["reads"].get(call)
    if reads is None:
        return 0.0
    constants = constants_of(chip)
    data = constants.unpack_pair if reads == "pair" else constants.unpack_tile
    # A tile is bound by its data or by the processor that asks for it.
    issue = constants.copy_issue if call in COPIES else constants.call_issue
    return max(data * dtype_ratio(reads, dtype, chip), issue)


def dtype_ratio(transfer: str, dtype: str, chip: str) -> float:
    """How much longer than a bf16 tile a tile of ``dtype`` takes."""
    by_dtype = cost_data()["transfer"][transfer][chip]
    return by_dtype.get(dtype, by_dtype["bf16"]) / by_dtype["bf16"]


def copy_tile_cost(dtype: str, dst32: bool, unpack_to_dest: bool = False, chip: str = WORMHOLE) -> CallCost:
    """A tile from a buffer into DST: through SrcA, or with ``unpack_to_dest`` straight, which loses no bit of 32."""
    through_source = call_cost("copy_tile", dst32=dst32, chip=chip, dtype=dtype)
    if not unpack_to_dest:
        return through_source
    data = cost_data()
    return CallCost(
        math_cycles=through_source.math_cycles,
        unpack_cycles=data["transfer"]["to_dest"][chip][dtype],
        pack_cycles=0.0,
        init_math_cycles=through_source.init_math_cycles,
        evidence=data["transfer_evidence"]["to_dest"],
        init_unpack_cycles=through_source.init_unpack_cycles,
    )


def copy_dest_values_cost(dst32: bool, chip: str = WORMHOLE) -> CallCost:
    """A tile from one DST slot to another."""
    return call_cost("copy_dest_values", dst32=dst32, chip=chip)


@cache
def pack_cost(dtype: str, chip: str = WORMHOLE) -> CallCost:
    """A tile from DST into a buffer of ``dtype``."""
    cycles = constants_of(chip).pack_tile * dtype_ratio("pack", dtype, chip)
    return CallCost(0.0, 0.0, cycles, 0.0, cost_data()["transfer_evidence"]["pack"])


@cache
def sync_cost(chip: str = WORMHOLE) -> CallCost:
    """One acquire, commit, wait and release together."""
    constants = constants_of(chip)
    return CallCost(constants.math_sync, 0.0, constants.pack_sync, 0.0, "see the timeline's constants")
