"""Every constant of time: value on both chips, bounds, and where it comes from; cycles of every kernel call.

Sources: [isa] the public ISA documentation, [count] instructions counted on the vendor's simulator, [metal] tables, test bounds
and soc descriptors of tt-metal, [silicon] published measurements of single mechanisms, [fit] fitted by us, to the rows that are
named, [guess] no measurement is public. Cycles are those of the chip's own clock.

Cycles of a kernel call differ by chip and DST width; allocator, cycle model and documentation read them here. Wormhole numbers
are instructions counted on the vendor's simulator, turned into cycles by the issue rules of the ISA; Blackhole numbers were
published for silicon. Where neither exists the cost is an estimate or Wormhole's, and its evidence says so. The data,
``op_costs.json``, is made by ``benchmarks/make_op_costs.py``.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from tilewright.dtypes import BLOCK_FLOATS, DTYPE_BY_NAME
from tilewright.hardware import BLACKHOLE, WORMHOLE_B0
from tilewright.records import record

Bounds = tuple[float, float, float]  # value, low, high


@record
class Row:
    name: str
    unit: str
    wormhole: Bounds
    blackhole: Bounds
    source: str


def _same(value: float, low: float | None = None, high: float | None = None) -> tuple[Bounds, Bounds]:
    bounds = (value, value if low is None else low, value if high is None else high)
    return bounds, bounds


ROWS = (
    Row("clock_ghz", "GHz", (1.0, 1.0, 1.0), (1.35, 1.35, 1.35), "[isa], [metal] busy clock"),
    # Compute threads.
    Row("start_unpack", "cycles", *_same(300, 200, 500), "[fit] mb2, one iteration; 461 in a published zone of hw_configure"),
    Row("start_math", "cycles", *_same(60, 60, 209), "[count] start-up of an addition; 209 in a published zone"),
    Row("start_pack", "cycles", *_same(300, 200, 500), "[fit] mb2, one iteration; 482 in a published zone of hw_configure"),
    Row("wait_front", "cycles", *_same(15, 8, 18), "[count] wait and pop together 29, unpack thread"),
    Row("pop_front", "cycles", *_same(14, 8, 18), "[count] wait and pop together 29, unpack thread"),
    Row("reserve_back", "cycles", *_same(15, 8, 20), "[count] reserve and push together 32, pack thread"),
    Row("push_back", "cycles", *_same(17, 8, 20), "[count] reserve and push together 32, pack thread"),
    Row("counter_store", "cycles", *_same(6, 3, 10), "[count] three instructions: wait for the unit, store the counter"),
    Row("hand_over", "cycles", (24, 8, 30), (36, 8, 40), "[fit] mb1, one tile; the poll loop alone is an L1 load of 8 cycles and a branch [isa]"),
    Row("math_sync", "cycles per acquire", (19, 12, 20), (11.5, 10, 13), "[silicon]; [fit] dst-chunk with two buffers, chunks 2 to 8"),
    Row("pack_sync", "cycles per acquire", (36, 20, 45), (24.6, 23, 26), "[fit] fpu-chunk add; Wormhole: mb2 with the packer adding, one tile"),
    Row("queue", "instructions", *_same(32, 24, 32), "[silicon] 31 to 32 absorbed"),
    Row("macro_ahead", "cycles", *_same(10, 0, 16), "[fit] counted kernels with inits of the matrix unit between vector calls: what the macro expander has issued and the unit has not executed"),
    Row("copy_issue", "cycles of the unpack RISC-V", (38.5, 37, 41), (38.9, 38, 41), "[fit] dst-chunk with two buffers: 38.9 + 11 / chunk"),
    Row("call_issue", "cycles", *_same(20, 10, 30), "[count] a call of the matrix unit, its unpack or its pack"),
    Row("unpack_tile", "cycles per bf16 tile", (38.5, 37, 41), (20, 16, 28), "[silicon] tt-llk#131; Blackhole [fit] dst-chunk in full sync: 128 B per cycle and the start"),
    Row("matmul_operand", "cycles per bf16 tile", (40, 38, 43), (26, 16, 28), "[fit] gemm-flops: what HiFi2 of bf16 and LoFi of bfp8 leave the unpacker"),
    Row("product_issue", "cycles of the unpack RISC-V", (84, 80, 86), (79, 78, 81), "[fit] mm-ladder, one tile a call: the next call's addresses wait for the last one"),
    Row("unpack_pair", "cycles per two bf16 tiles", (66, 64, 70), (24, 20, 28), "[silicon] additions: unpack binds on Wormhole, pack on Blackhole"),
    Row("bank_switch", "cycles per product and phase", (1.3, 0.5, 2.5), (0.7, 0.3, 1.1), "[fit] gemm-flops, matmul-e2e, mm-ladder from one K block to three: measured minus counted"),
    Row("face_switch", "cycles per elementwise tile", (7, 3, 10), (12.4, 11, 13), "[fit] mb2 slopes with the sum in DST; fpu-chunk mul: measured minus counted"),
    Row("pack_tile", "cycles per bf16 tile", (47, 45, 48), (25.1, 24, 27), "[silicon] mb1, fpu-chunk add"),
    Row("pack_accumulate", "cycles per bf16 tile", (60, 55, 62), (50, 35, 52), "[fit] mb2 slopes of two and four tiles: reading and adding in L1 goes on behind the packer"),
    Row("accumulate_queue", "tiles", *_same(4, 1, 8), "[fit] mb2 in full sync, 4 and 8 tiles: the packer is not held up by its adder"),
    Row("unpack_to_dest", "cycles per tile", *_same(45, 30, 60), "[guess] handshake of math and unpack"),
    # Data movement: what the RISC-V spends on issuing.
    Row("read_page_issue", "cycles", (36, 33, 40), (27, 25, 30), "[fit] one core, interleaved, 64 B"),
    Row("write_page_issue", "cycles", (39, 36, 43), (31, 28, 40), "[fit] one core, interleaved, 64 B"),
    Row("read_issue", "cycles", (45, 44, 45), (47, 47, 47), "[silicon] noc_async_read with a computed address"),
    Row("write_issue", "cycles", (43, 22, 46), (40, 23, 40), "[silicon] noc_async_write with a computed address"),
    Row("multicast_issue", "cycles", *_same(45, 24, 60), "[guess] a write with two corners"),
    Row("semaphore_issue", "cycles", *_same(32, 25, 40), "[guess] the register sequence of a write"),
    Row("semaphore_local", "cycles", *_same(5, 3, 8), "[isa] one L1 store"),
    Row("barrier", "cycles", *_same(20, 15, 25), "[isa] polls of NIU counters, 7 cycles a load"),
    Row("poll", "cycles", *_same(8, 8, 9), "[isa] L1 load latency"),
    Row("buffer_call", "cycles", (20, 15, 40), (35, 15, 40), "[fit] mb2 streamed, one tile; 15 counted, without the L1 loads"),
    Row("start_mover", "cycles", *_same(60, 20, 120), "[guess] arguments, accessors"),
    Row("fill_tile", "cycles", *_same(1300, 600, 2600), "[isa] 256 L1 stores, one in 5 cycles"),
    Row("swap_words", "cycles", *_same(20, 14, 28), "[isa] two L1 loads of 8 cycles, two L1 stores, one in 5 cycles"),
    Row("niu_start", "cycles", (12, 5, 20), (19, 10, 25), "[fit] read_one, one transaction of 64 B: from the register to the first flit"),
    # Network.
    Row("hop", "cycles", (9, 8.3, 9.4), (9, 8.3, 9.4), "[isa]"),
    Row("niu", "cycles each end", *_same(5, 4, 6), "[isa]"),
    Row("flit_bytes", "B per cycle and link", (32, 30, 32), (64, 60, 64), "[isa]"),
    Row("router_bytes", "B per hop", (512, 32, 2048), (1024, 64, 4096), "[isa] of one virtual channel: a flit of its own and up to 15 shared; Blackhole's flits are twice as large"),
    Row("packet_bytes", "B", (8192, 8192, 8192), (16384, 16384, 16384), "[isa], [metal]"),
    Row("read_efficiency", "share", (0.9, 0.89, 0.9), (0.96, 0.93, 0.97), "[fit] read_one, 64 KB x 64"),
    Row("write_efficiency", "share", (0.975, 0.95, 0.98), (0.968, 0.93, 0.97), "[fit] write_one, 64 KB x 64"),
    Row("multicast_hop", "cycles per hop there and back", *_same(16, 15.8, 16.2), "[fit] unlinked multicasts of 64 B to rectangles, rows, columns: slopes over the distance of the farthest core"),
    Row("multicast_overlap", "share of that", *_same(0.33, 0.2, 0.5), "[fit] row_to_row and column_to_column, unlinked: requests of several cores are under way at once"),
    Row("multicast_set_up", "cycles per packet", (5, 3, 7), (4, 2, 6), "[fit] the same, what is left without distance and flits"),
    # Memory.
    Row("banks", "DRAM banks", (12, 12, 12), (8, 8, 8), "[metal]"),
    Row("bank_read", "B per cycle", (22.1, 21.9, 22.3), (46.5, 45.5, 47.2), "[silicon] dram-rate"),
    Row("bank_write", "B per cycle", (21.3, 20.5, 22.0), (47.0, 46.2, 47.1), "[silicon] dram-rate"),
    Row("dram_read_latency", "cycles over L1", (104, 99, 112), (126, 108, 152), "[metal] difference of read rows"),
    Row("dram_write_latency", "cycles over L1", (130, 104, 145), (22, 13, 29), "[metal] difference of write rows"),
    Row("page_read", "cycles", (479, 470, 493), (539, 527, 545), "[metal] one 2 KB page of DRAM, from its request to the end of the barrier"),
    Row("dram_reads", "B per cycle", (132, 117, 132), (237, 228, 237), "[silicon] dram-rate, all cores on network 0"),
    Row("request_interval", "cycles per request and endpoint", (6.8, 6.5, 7.5), (16.4, 16, 17), "[silicon] tt-metal#55898"),
    Row("l1_latency", "cycles", *_same(10, 5, 15), "[isa] an L1 access behind the NIU"),
    # Launch.
    Row("start_skew", "cycles per core of distance", *_same(9, 5, 20), "[guess] the launch message travels as a multicast"),
)  # fmt: skip


@record(kw_only=True)
class Constants:
    """The values of one chip."""

    clock_ghz: float
    start_unpack: float
    start_math: float
    start_pack: float
    wait_front: float
    pop_front: float
    reserve_back: float
    push_back: float
    counter_store: float
    hand_over: float
    math_sync: float
    pack_sync: float
    queue: float
    macro_ahead: float
    copy_issue: float
    call_issue: float
    unpack_tile: float
    matmul_operand: float
    product_issue: float
    unpack_pair: float
    bank_switch: float
    face_switch: float
    pack_tile: float
    pack_accumulate: float
    accumulate_queue: float
    unpack_to_dest: float
    read_page_issue: float
    write_page_issue: float
    read_issue: float
    write_issue: float
    multicast_issue: float
    semaphore_issue: float
    semaphore_local: float
    barrier: float
    poll: float
    buffer_call: float
    start_mover: float
    fill_tile: float
    swap_words: float
    niu_start: float
    hop: float
    niu: float
    flit_bytes: float
    router_bytes: float
    packet_bytes: float
    read_efficiency: float
    write_efficiency: float
    multicast_hop: float
    multicast_overlap: float
    multicast_set_up: float
    banks: float
    bank_read: float
    bank_write: float
    dram_read_latency: float
    dram_write_latency: float
    page_read: float
    dram_reads: float
    request_interval: float
    l1_latency: float
    start_skew: float


@cache
def constants_of(chip: str) -> Constants:
    known = {WORMHOLE_B0.name: "wormhole", BLACKHOLE.name: "blackhole"}[chip]
    values: dict[str, float] = {row.name: getattr(row, known)[0] for row in ROWS}
    return Constants(**values)


WORMHOLE = "wormhole_b0"
UNCERTAINTY = 0.15  # share by which cycles may be off: counted instructions lie within it of what silicon was measured at



def hand_over_cost(chip: str) -> float:
    """Cycles from a commit of math until it has the first tile that comes back to it through a buffer, beside packing it."""
    each = constants_of(chip)
    return each.pack_sync + each.push_back + each.hand_over + each.wait_front + each.unpack_pair


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
    mantissas = DTYPE_BY_NAME[dtype].tile_bytes - (EXPONENT_BYTES if dtype in BLOCK_FLOATS else 0)
    return min(dtype_ratio("one", dtype, chip), mantissas / DTYPE_BY_NAME["bf16"].tile_bytes)


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
