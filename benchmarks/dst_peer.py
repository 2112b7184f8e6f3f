"""Math-thread cycles of elementwise kernels beside those of another compiler's kernels for the same expression.

    python benchmarks/dst_peer.py [NAME…]

Ours are modelled from the counted costs of every call the compiled kernel makes, inits and acquires as the simulator counts
them. The peer's are counted in the kernels tt-lang 1.1.1 emits. ``kernels.py`` and the tests look at the values. Where the
peer sends f32 data through the matrix unit, ours is shown as it is by default (all bits kept) and with ``allow_tf32``. Rows
whose expression is not published (r_shared3, m3_sfpu_multi) are left out.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from kernels import CASES, DTYPES, Case, build

from tilewright import timing_constants
from tilewright.lang import tensors
from tilewright.sim.run import simulate

BY_NAME = {case.name: case for case in CASES}
TWO = (2, 2)
SIX = dict.fromkeys("pgmv", (1, 1))
ADAM = """m2 = mb * 0.9 + gb * 0.1
v2 = vb * 0.999 + gb * gb * 0.001
o0.store(pb - 0.01 * m2 / (ttl.math.sqrt(v2) + 1e-8))
o1.store(m2)
o2.store(v2)"""
GELU_TANH = """x3 = xb * xb * xb
o0.store(0.5 * xb * (1.0 + ttl.math.tanh(0.7978845608 * (xb + 0.044715 * x3))))"""
SWIGLU = "o0.store(ttl.math.silu(gb) * ub)"
TREE = "o0.store(((ab + bb) + (cb + db)) + ((eb + fb) + (gb + hb)))"


def _case(name: str, inputs: dict[str, tuple[int, int]], outputs: int, body: str, like: tuple[int, int] = TWO) -> Case:
    return Case(name, inputs, (like,) * outputs, body, reference=lambda *values: values)


def _f32(case: Case, **options: Any) -> Case:
    return replace(case, dtype="f32", options=options)


K = BY_NAME["k gelu*sigmoid 4x4"]
ROTARY = _case("rotary", dict.fromkeys("abcd", TWO), 2, "o0.store(ab * cb - bb * db)\no1.store(bb * cb + ab * db)")
SWIGLU_CASE = _case("swiglu", {"g": TWO, "u": TWO}, 1, SWIGLU)
# Row of instruction-counts.md, our kernel, the peer's cycles.
ROWS: tuple[tuple[str, Case, int], ...] = (
    ("a_add2x2", BY_NAME["a add 2x2"], 177),
    ("b_expmuladd8x8", BY_NAME["b exp(a*b+c) 8x8"], 63_011),
    ("b_expmuladd8x8_fullsync", replace(BY_NAME["b exp(a*b+c) 8x8"], options={"full_sync": True}), 62_533),
    ("b_expmuladd8x8_nofpu", replace(BY_NAME["b exp(a*b+c) 8x8"], options={"fpu_binary_ops": False}), 108_918),
    ("c_mul_abs_exp", BY_NAME["c mul -> abs, exp"], 4_011),
    ("d_mul_abs_addc", BY_NAME["d mul -> abs, mul+c"], 2_219),
    ("e_unary_chain", BY_NAME["e abs-exp-relu"], 4_386),
    ("k_gelu_sigmoid", BY_NAME["k gelu*sigmoid 4x4"], 43_911),
    ("k_gelu_sigmoid", replace(K, body=K.body.replace("gelu(ab)", "gelu(ab, approx=True)")), 43_911),
    ("r_lstm_bf16", BY_NAME["LSTM cell 2x2"], 54_101),
    ("r_complexmul_bf16", BY_NAME["complex mul 2x2"], 3_245),
    ("r_rotary_bf16", ROTARY, 3_245),
    ("r_poly5_bf16", BY_NAME["Horner degree 5"], 17_120),
    ("r_gelutanh_bf16", _case("gelu tanh", {"x": TWO}, 1, GELU_TANH), 20_665),
    ("r_swiglu_bf16", SWIGLU_CASE, 9_504),
    ("r_adam_bf16", _case("adam", SIX, 3, ADAM, (1, 1)), 6_202),
    ("m2_unary_last", BY_NAME["m2 (m+c)*abs(m)"], 5_318),
    ("m14_div", _case("div", {"a": TWO, "b": TWO}, 1, "o0.store(ab / bb)"), 6_100),
    ("m16_bcast_mul", BY_NAME["m16 a*bcast_col(b)"], 13_100),
    ("n_addtree8_bf16", _case("tree", dict.fromkeys("abcdefgh", (1, 1)), 1, TREE, (1, 1)), 956),
    ("a_add2x2_f32", _f32(BY_NAME["a add 2x2"]), 177),
    ("a_add2x2_f32", _f32(BY_NAME["a add 2x2"], allow_tf32=True), 177),
    ("b_expmuladd8x8_f32", BY_NAME["b f32"], 112_381),
    ("b_expmuladd8x8_f32", replace(BY_NAME["b f32"], options={"allow_tf32": True}), 112_381),
    ("e_unary_chain_f32", _f32(BY_NAME["e abs-exp-relu"]), 7_418),
    ("r_lstm_f32", BY_NAME["LSTM cell f32"], 66_875),
    ("r_complexmul_f32", _f32(BY_NAME["complex mul 2x2"]), 3_200),
    ("r_complexmul_f32", _f32(BY_NAME["complex mul 2x2"], allow_tf32=True), 3_200),
    ("r_rotary_f32", _f32(ROTARY, allow_tf32=True), 3_200),
    ("r_poly5_f32", _f32(BY_NAME["Horner degree 5"]), 9_317),
    ("r_poly5_f32", _f32(BY_NAME["Horner degree 5"], allow_tf32=True), 9_317),
    ("r_swiglu_f32", _f32(SWIGLU_CASE), 9_396),
)  # fmt: skip
HARDWARE_START = 52  # what the peer's addition takes beyond its calls: the hardware is configured once
STATELESS_INIT = 5
# The peer's figure comes from less: f32 cut to tf32, or gelu from a table of slopes, off by up to 0.024. Ours needs permission.
LESS_EXACT = {"a_add2x2_f32", "r_complexmul_f32", "k_gelu_sigmoid"}


def measured(case: Case, folder: Path) -> tuple[int, Any]:
    """Cycles of the math thread for one run of the kernel, and the program."""
    arrays = [np.zeros((rows * 32, cols * 32), DTYPES[case.dtype]) for rows, cols in (*case.inputs.values(), *case.outputs)]
    program = build(case, folder).compile(*arrays, **case.options)
    group = simulate(program, [tensors.to_array(array) for array in arrays]).groups[0]
    config = program.config
    total = float(HARDWARE_START + timing_constants.sync_cost().math_cycles * group.acquires)
    for call, count in group.calls.items():
        if call == "binop_with_scalar_tile_init":
            total += STATELESS_INIT * count
        elif call.endswith("_init"):
            cost = timing_constants.call_cost(call.removesuffix("_init"), dst32=config.fp32_dest_acc_en, fidelity=config.math_fidelity)
            total += cost.init_math_cycles * count
    for region, plan in program.trace.plans:
        total += sum(part.allocation.math_cycles for part in plan.parts) * region.problem.tiles
    return round(total), program


def peer_table(names: list[str]) -> tuple[dict[str, int], list[str]]:
    """Print the rows; our cycles by kernel (as the defaults compile it), and the kernels where they are above the peer's."""
    cycles: dict[str, int] = {}
    above: list[str] = []
    print(f"{'kernel':26} {'ours':>9} {'peer':>9} {'ratio':>7}   options; per region: tiles per acquire, copies, parts; DST")
    with tempfile.TemporaryDirectory() as folder:
        for name, case, peer in ROWS:
            if names and not any(wanted in name for wanted in names):
                continue
            ours, program = measured(case, Path(folder))
            shapes = [
                f"{'+'.join(str(p.allocation.tiles_per_acquire) for p in plan.parts)} tiles, {plan.copies} copies,"
                f" {len(plan.parts)} part{'s' if len(plan.parts) > 1 else ''}"
                for plan in program.dst
            ]
            config = program.config
            dst = f"{32 if config.fp32_dest_acc_en else 16}-bit {'full' if config.dst_full_sync_en else 'half'} sync"
            cycles.setdefault(name, ours)
            options = case.options | ({"approx": True} if "approx" in case.body else {})
            given = ", ".join(f"{key}={value}" for key, value in options.items()) or "none"
            print(f"{name:26} {ours:>9,} {peer:>9,} {peer / ours:>6.2f}x   {given}; {' | '.join(shapes)}; {dst}")
            permitted = case.options or "approx" in case.body
            if ours > peer and (permitted or name not in LESS_EXACT):
                above.append(f"{name} ({given})")
    return cycles, above


if __name__ == "__main__":
    _, missed = peer_table(sys.argv[1:])
    print(f"\nabove the peer: {', '.join(missed) or 'none'}")
    sys.exit(1 if missed else 0)
