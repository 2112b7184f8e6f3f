"""Make ``src/tilewright/op_costs.json`` from the table of counted instructions.

    python benchmarks/make_op_costs.py op-costs.csv

The table has one line per op, DST width, fidelity and SFPLOADMACRO setting. Here lines become calls with variants;
Blackhole numbers, data times and estimates, which were published or derived and not counted, are written below with
their evidence.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parents[1] / "src" / "tilewright" / "op_costs.json"

# Names of the counted table whose call has another name in the IR: call, and the words that select the variant.
REUSE = {"add": "ELWADD", "sub": "ELWSUB", "mul": "ELWMUL"}
RENAMED = {
    "where_tile(out=other)": ("where_tile", []),
    "where_tile(out=cond)": ("where_tile", ["in_place"]),
    "power_iterative_tile(3)": ("power_iterative_tile", []),
    "power_iterative_tile(2)": ("power_iterative_tile", ["2"]),
    "pack_tile->fp32 CB": ("", []),
    "pack_tile L1acc": ("", []),
    "copy_block(2)": ("copy_block", []),
    "exp_tile<iter=32> VectorMode::None": ("exp_tile", ["32"]),
    "matmul_block(ct=2,rt=2)": ("matmul_block", []),
    "transpose_tile": ("transpose_wh_tile", []),
    "transpose_dest": ("transpose_wh_dest", []),
    "sfpu_mul_bcast_col": ("sfpu_mul_bcast_col", []),
}
WORDS = {
    "fast": "approx", "approx": "approx", "RNE": "NearestEven", "f32": "Float32", "bf16": "Float16_b", "i32": "Int32",
    "ROW": "REDUCE_ROW", "COL": "REDUCE_COL", "SCALAR": "REDUCE_SCALAR",
}  # fmt: skip

# Blackhole, published for 16-bit DST (tt-metal issue or pull request in brackets). Cycles per tile, no datacopy.
BLACKHOLE = {
    "copy_dest_values": (124, "measured on Blackhole as identity [#54317]"),
    "identity_tile": (124, "measured on Blackhole [#54317]"),
    "abs_tile": (146, "measured on Blackhole [#57292]"),
    "fill_tile": (118, "measured on Blackhole [#49820]"),
    "add_binary_tile": (215, "derived for Blackhole, 6 slots a row"),
    "sub_binary_tile": (215, "derived for Blackhole, 6 slots a row"),
    "mul_binary_tile": (670, "derived for Blackhole, 640 to 700"),
    "binary_max_tile": (119, "3 cycles a row, comment in the kernel source"),
    "binary_min_tile": (119, "3 cycles a row, comment in the kernel source"),
    "where_tile": (168, "published slot count [tt-llk#822]"),
    "where_tile in_place": (132, "published slot count [tt-llk#822]"),
    "exp_tile": (620, "measured on Blackhole [#43973]"),
    "exp_tile 32": (597, "measured on Blackhole [#43973], less the 23 cycles that one pass spares Wormhole"),
    "exp_tile 32 None": (533, "measured on Blackhole [#43973], less the 23 and 64 cycles that are spared on Wormhole"),
    "exp_tile approx": (93.6, "measured on Blackhole [#54317]"),
    "recip_tile": (116, "3 cycles a row published [tt-llk#834], 20 for the call"),
    "tanh_tile approx": (126, "measured on Blackhole [#54317]"),
    "sigmoid_tile": (1247, "measured on Blackhole [#49926]"),
    "sigmoid_tile approx": (221, "measured on Blackhole [#49926]"),
    "gelu_tile": (2849, "measured on Blackhole [#52407]"),
    "gelu_tanh_tile": (2014, "measured on Blackhole [#52407]"),
    "gelu_tile approx": (222, "measured on Blackhole [#49926]"),
    "floor_tile": (476, "measured on Blackhole [#49926]"),
    "ceil_tile": (476, "measured on Blackhole [#49926]"),
    "reduce_tile MAX REDUCE_ROW": (65, "measured on Blackhole, 0.05 us a tile with its share of sync [tt-lang microbench 4]"),
    "add_int_tile": (178.5, "measured on Blackhole, Int32 [#49820]"),
}
BLACKHOLE_32 = {"recip_tile": (180, "5 cycles a row published [tt-llk#834], 20 for the call")}

# Not counted, but the same instructions as a counted call except for the opcode of the addition or multiplication.
SAME_AS = {
    "sfpu_add_bcast_col": "sfpu_sub_bcast_col",
    "sfpu_add_bcast_row": "sfpu_mul_bcast_row",
    "sfpu_sub_bcast_row": "sfpu_mul_bcast_row",
}

# Not counted, but a counted variant without some of its instructions: variant, counted one, cycles less in 16-bit and 32-bit DST, why.
FEWER = {
    "exp_tile": (("32 None", "32", 64, 0, "counted, less the two instructions a row that limit the operand from below"),),
}

# Not counted: cycles in 16-bit and 32-bit DST, init, and the counted relative the guess comes from.
ESTIMATES: dict[str, tuple[float, float, float, str]] = {
    "atan2_binary_tile": (3400, 3040, 15, "atan plus a division"),
    "xlogy_binary_tile": (1200, 1490, 13, "log plus a multiplication"),
    "fmod_binary_tile": (2000, 2100, 14, "division, truncation, multiply-subtract"),
    "remainder_binary_tile": (2150, 2250, 14, "division, floor, multiply-subtract"),
    "fmod_tile": (700, 700, 20, "scalar multiply, trunc, multiply-subtract"),
    "remainder_tile": (850, 850, 20, "scalar multiply, floor, multiply-subtract"),
    "logaddexp_binary_tile": (2300, 3300, 20, "exp, log1p, max and two additions"),
    "logaddexp2_binary_tile": (2400, 3000, 20, "exp2, log1p, max and two additions"),
    "isclose_binary_tile": (900, 900, 5, "two comparisons and an addition"),
    "nextafter_binary_tile": (700, 700, 5, "a comparison chain"),
    "nextafter_bf16_binary_tile": (700, 700, 5, "a comparison chain"),
    "mask_tile": (240, 240, 5, "as where without SFPLOADMACRO"),
    "mask_posinf_tile": (240, 240, 5, "as where without SFPLOADMACRO"),
    "i1_tile": (1422, 1422, 14, "as i0"),
    "digamma_tile": (3000, 3400, 15, "log, reciprocal and a polynomial"),
    "lgamma_stirling_tile": (2800, 3200, 15, "log, reciprocal and a polynomial"),
    "polygamma_tile": (4000, 4000, 15, "a sum of reciprocal powers"),
    "hardmish_tile": (464, 464, 5, "as hardsigmoid"),
    "xielu_tile": (1700, 2200, 15, "as elu with a polynomial"),
    "tanh_derivative_tile": (700, 1800, 15, "tanh, square and a subtraction"),
    "gelu_derivative_tile": (4300, 4800, 15, "erf and exp"),
    "logsigmoid_tile": (1100, 1480, 13, "log plus comparisons"),
    "snake_beta_tile": (2600, 2700, 15, "sine, square and a division"),
    "softcap_tile": (1100, 2200, 15, "two multiplications and a tanh"),
    "dropout_tile": (400, 400, 10, "random number, comparison, multiplication"),
    "rand_tile": (300, 300, 40, "random number and a multiply-add"),
    "isposinf_tile": (336, 336, 5, "as isinf"),
    "isneginf_tile": (336, 336, 5, "as isinf"),
    "isfinite_tile": (336, 336, 5, "as isinf"),
    "unary_ge_tile": (372, 372, 5, "as unary_gt"),
    "unary_le_tile": (372, 372, 5, "as unary_gt"),
    "rsub_tile": (496, 208, 5, "as rsub_unary"),
    "signbit_tile_int32": (176, 176, 12, "as signbit"),
    "sub_int_tile": (176, 176, 5, "as add_int"),
    "rsub_int_tile": (176, 176, 5, "as add_int"),
    "mul_int_tile": (1100, 1100, 15, "partial products of 32 bits"),
    "div_int32_tile": (2600, 2600, 15, "reciprocal with correction"),
    "div_int32_floor_tile": (2900, 2900, 15, "reciprocal with correction and floor"),
    "div_int32_trunc_tile": (2800, 2800, 15, "reciprocal with correction"),
    "fmod_int32_tile": (3000, 3000, 15, "integer division and multiply-subtract"),
    "remainder_int32_tile": (3100, 3100, 15, "integer division and multiply-subtract"),
    "remainder_uint32_tile": (3000, 3000, 15, "integer division and multiply-subtract"),
    "remainder_tile_uint32": (3000, 3000, 15, "integer division and multiply-subtract"),
    "gcd_tile": (6000, 6000, 15, "thirty steps of the binary algorithm"),
    "lcm_tile": (8000, 8000, 15, "gcd, division, multiplication"),
    "fill_tile_int": (84, 84, 5, "as fill"),
    "cumsum_tile": (500, 500, 10, "row by row additions"),
    "sub_unary_tile_int32": (144, 144, 5, "as add_unary_tile_int32"),
    "rsub_unary_int32_tile": (176, 176, 5, "as add_unary_tile_int32"),
    "clamp_tile_int32": (432, 432, 5, "as clamp"),
    "negative_tile_int32": (176, 176, 5, "as negative"),
    "stochastic_round_tile": (144, 144, 5, "as abs"),
    "alt_complex_rotate90_tile": (206, 206, 5, "as identity"),
    "identity_tile_uint32": (206, 206, 5, "as identity"),
    "tiled_prod_tile": (400, 400, 5, "products of rows"),
    "relu_tile_int32": (216, 216, 9, "as relu"),
}  # fmt: skip
for _kind in ("eq", "ne", "lt", "gt", "le", "ge"):
    ESTIMATES[f"{_kind}_int_tile"] = (300, 300, 5, "integer comparison")
    ESTIMATES[f"unary_{_kind}_tile_int32"] = (340, 340, 5, f"as unary_{_kind}")
for _kind in ("gtz", "nez", "gez", "ltz", "eqz", "lez"):
    ESTIMATES[f"{_kind}_tile_int32"] = (300, 300, 8, f"as {_kind}")
for _kind in ("eqz", "nez"):
    ESTIMATES[f"{_kind}_tile_uint16"] = (222, 222, 8, f"as {_kind}")
    ESTIMATES[f"{_kind}_tile_uint32"] = (222, 222, 8, f"as {_kind}")
for _kind in ("and", "or", "xor"):
    ESTIMATES[f"bitwise_{_kind}_binary_tile"] = (176, 176, 5, "as add_int")
    ESTIMATES[f"bitwise_{_kind}_tile"] = (144, 144, 5, "as add_unary_tile_int32")
ESTIMATES["bitwise_not_tile"] = (144, 144, 5, "as abs")
for _kind in ("left_shift", "right_shift", "logical_right_shift"):
    ESTIMATES[f"binary_{_kind}_tile"] = (300, 300, 5, "shift with a range test")
    ESTIMATES[f"{_kind}_tile"] = (176, 176, 5, "as add_unary_tile_int32")
for _kind in ("max", "min"):
    for _type in ("int32", "uint32"):
        ESTIMATES[f"binary_{_kind}_{_type}_tile"] = (180, 180, 18, f"as binary_{_kind}")
        ESTIMATES[f"unary_{_kind}_{_type}_tile"] = (150, 150, 18, f"as unary_{_kind}")
for _kind in ("relu_max", "relu_min"):
    for _type in ("int32", "uint32", "uint16"):
        ESTIMATES[f"{_kind}_tile_{_type}"] = (404, 404, 9, f"as {_kind}")

# What a call keeps the unpacker, the packer or the math thread busy with beside its own arithmetic.
# unpack: how many tiles of the buffer's data type it reads, as the engine sees them.
READS = {
    "copy_tile": "one",
    "copy_block": "one",
    "transpose_wh_tile": "one",
    "add_tiles": "pair",
    "sub_tiles": "pair",
    "mul_tiles": "pair",
    "binary_dest_reuse_tiles": "one",
    "matmul_tiles": "pair",
    "matmul_block": "one",
    "reduce_tile": "one",
    "unary_bcast": "one",
    **{f"{op}_tiles_bcast_{dim}": "pair" for op in REUSE for dim in ("rows", "cols", "scalar")},
}
INIT_OTHER = {  # cycles the init keeps the unpack thread and the pack thread busy, counted
    "copy_tile": (41, 0),
    "copy_block": (41, 0),
    "matmul_tiles": (29, 0),
    "matmul_block": (29, 0),
    "reduce_tile": (21, 16),
    "transpose_wh_tile": (41, 0),
    "unary_bcast": (21, 0),
    "binary_dest_reuse_tiles": (21, 0),
    **{f"{op}_tiles": (21, 0) for op in REUSE},
    **{f"{op}_tiles_bcast_{dim}": (21, 0) for op in REUSE for dim in ("rows", "cols", "scalar")},
}
CONTROL = {  # math, unpack, pack cycles of one call
    "tile_regs_acquire": (10, 0, 0, "measured 18 to 20 per acquire and commit together [#54429]"),
    "tile_regs_commit": (10, 0, 0, "measured 18 to 20 per acquire and commit together [#54429]"),
    "tile_regs_wait": (0, 0, 5, "counted, wait and release together 17"),
    "tile_regs_release": (0, 0, 12, "counted, wait and release together 17"),
    "cb_wait_front": (0, 15, 0, "counted, read pointer in L1"),
    "cb_pop_front": (0, 15, 0, "counted, read pointer in L1"),
    "cb_reserve_back": (0, 0, 15, "counted, write pointer in L1"),
    "cb_push_back": (0, 0, 15, "counted, write pointer in L1"),
    "reconfig_data_format": (7, 18, 0, "counted"),
    "reconfig_data_format_srca": (7, 12, 0, "counted"),
    "reconfig_data_format_srcb": (7, 10, 0, "counted"),
    "pack_reconfig_data_format": (0, 0, 160, "counted"),
    "pack_reconfig_l1_acc": (0, 0, 12, "counted, 5 instructions"),
    "pack_relu_config": (0, 0, 14, "counted, 6 instructions"),
}
TRANSFER = {  # cycles per tile: {chip: {dtype: cycles}}, and the evidence
    "one": {
        "wormhole_b0": {"bf16": 40, "f32": 72, "bfp8_b": 32, "bfp4_b": 28, "i32": 72, "u32": 72, "u16": 40, "u8": 32},
        "blackhole": {"bf16": 28, "f32": 45, "bfp8_b": 25, "bfp4_b": 25, "i32": 45, "u32": 45, "u16": 28, "u8": 25},
    },
    "pair": {
        "wormhole_b0": {
            "bf16": 70,
            "f32": 136,
            "bfp8_b": 44,
            "bfp4_b": 40,
            "i32": 136,
            "u32": 136,
            "u16": 70,
            "u8": 44,
        },
        "blackhole": {"bf16": 45, "f32": 74, "bfp8_b": 32, "bfp4_b": 28, "i32": 74, "u32": 74, "u16": 45, "u8": 32},
    },
    "to_dest": {"wormhole_b0": {"f32": 100, "i32": 100, "u32": 100}, "blackhole": {"f32": 60, "i32": 60, "u32": 60}},
    "pack": {
        "wormhole_b0": {"bf16": 46, "f32": 80, "bfp8_b": 32, "bfp4_b": 32, "i32": 80, "u32": 80, "u16": 46, "u8": 32},
        "blackhole": {"bf16": 25, "f32": 45, "bfp8_b": 25, "bfp4_b": 25, "i32": 45, "u32": 45, "u16": 25, "u8": 25},
    },
}
TRANSFER_EVIDENCE = {
    "one": "bf16 measured [tt-llk#131]; f32 derived from 64 B per cycle; block formats estimated",
    "pair": "derived: two unpackers share 64 B per cycle (128 on Blackhole)",
    "to_dest": "estimate: 64 B per cycle and the handshake with the math thread",
    "pack": "bf16 measured [tt-llk#130]; f32 derived from 64 B per cycle; block formats estimated",
}


def call_of(op: str) -> tuple[str, list[str]]:
    """The IR call and the words of the variant that a line of the counted table is about; an empty call: not wanted."""
    if op in RENAMED:
        return RENAMED[op]
    if " " in op or "iter" in op or "noclamp" in op or "scale>" in op or "legacy" in op:
        return "", []
    match = re.fullmatch(r"(\w+)(?:<([^>]*)>)?", op)
    if match is None:
        return "", []
    name, words = match[1], (match[2] or "").split(",") if match[2] else []
    reuse = re.fullmatch(r"(add|sub|mul)_reuse_dest", name)
    if reuse is not None:
        return "binary_dest_reuse_tiles", [REUSE[reuse[1]], *words]
    if name == "unary_bcast":
        return name, words
    if name == "typecast_tile":
        return name, [">".join(WORDS[word] for word in words)]
    return name, [WORDS.get(word, word) for word in words]


def counted(path: Path) -> dict[str, dict[str, Any]]:
    """``{call: {variant: {width: {fidelity: [cycles, init, (instructions)]}}}}``; SFPLOADMACRO lines, which silicon runs, win.

    ``instructions`` stands where the RISC-V that pushes them binds and not the unit that executes them. The lines SFPLOADMACRO
    wins over are kept as ``without_macro``: builds with TT_METAL_DISABLE_SFPLOADMACRO=1 run those.
    """
    table: dict[str, dict[str, Any]] = {}
    with path.open(encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if row["math_approx"] == "0" and row["dst"] != "mix"]
    for row in sorted(rows, key=lambda row: row["loadmacro"]):
        if row["unit"] not in ("FPU", "SFPU"):
            continue
        call, words = call_of(row["op"])
        if not call:
            continue
        variant = table.setdefault(call, {}).setdefault(" ".join(sorted(words)), {})
        width = "32" if row["dst"] == "fp32" else "16"
        cell = [float(row["math_cycles"]), float(row["math_init_cycles"])]
        if row["unit"] == "SFPU" and row["bound"] == "riscv-push":
            cell.append(float(row["math_instr"]))
        by_fidelity = variant.setdefault(width, {})
        if row["loadmacro"] == "1":
            variant.setdefault("without_macro", {}).setdefault(width, {})[row["fidelity"]] = by_fidelity[row["fidelity"]]
            variant["evidence"] = "counted, with SFPLOADMACRO as silicon runs it"
        by_fidelity[row["fidelity"]] = cell
    return table


def main() -> None:
    table = counted(Path(sys.argv[1]))
    for call, (cycles16, cycles32, init, why) in ESTIMATES.items():
        if call in table:
            raise SystemExit(f"{call} is counted: drop its estimate")
        cell = {"16": {"HiFi4": [cycles16, init]}, "32": {"HiFi4": [cycles32, init]}}
        table[call] = {"": {**cell, "evidence": f"estimate: {why}"}}
    for call, counted_call in SAME_AS.items():
        variant = table[counted_call][""]
        table[call] = {"": {**variant, "evidence": f"estimate: the instructions of {counted_call}"}}
    for call, rows in FEWER.items():
        for variant, counted_variant, less16, less32, why in rows:
            known = table[call][counted_variant]
            cells = {width: {key: [cell[0] - less, *cell[1:]] for key, cell in known[width].items()}
                     for width, less in (("16", less16), ("32", less32))}  # fmt: skip
            table[call][variant] = {**cells, "evidence": why}
    for words, (cycles, evidence) in BLACKHOLE.items():
        call, _, variant = words.partition(" ")
        variant = "Int32" if call == "add_int_tile" else variant
        table[call][variant]["blackhole"] = {"16": [cycles, evidence]}
    for call, (cycles, evidence) in BLACKHOLE_32.items():
        table[call][""]["blackhole"]["32"] = [cycles, evidence]
    data = {
        "calls": dict(sorted(table.items())),
        "reads": READS,
        "init_other": INIT_OTHER,
        "control": CONTROL,
        "transfer": TRANSFER,
        "transfer_evidence": TRANSFER_EVIDENCE,
    }
    lines = [f'"{key}": {{\n' + ",\n".join(f" {json.dumps(k)}: {json.dumps(v)}" for k, v in value.items()) + "\n}"
             for key, value in data.items()]  # fmt: skip
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
