"""The least that the math thread can take for a kernel: what it must compute, each op by its cheapest call, and the start.

Nothing else is counted: no inits but the start, no second section of DST, no copies, no trips through L1. A sum with a product that
is in DST already is free, because the multiplier adds; so is a maximum with zero of what is only packed. So no compiler that uses
the counted calls at this accuracy gets below.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.timing_constants import call_cost

START, SYNC = 60.0, 12.0  # cycles of the first init, which sets up the unit, and of one section of DST
LOOPED_EXP = {"16": 653.0, "32": 1394.0}  # exp_tile over all 32 rows of a tile in one call, as counted
NO_LIMIT = 64.0  # what the exponential in 16 bits of what cannot be negative spares

# An op, the calls that compute it, and the share of a tile that has to be computed.
CALLS: dict[str, tuple[tuple[str, ...], float]] = {
    "add": (("add_tiles", "copy_tile"), 1.0),
    "load": (("copy_tile",), 1.0),
    "mul": (("mul_tiles",), 1.0),
    "mul_add": (("mac_tile", "addcmul_tile"), 1.0),
    "vector_add": (("add_binary_tile",), 1.0),
    "vector_mul": (("mul_binary_tile",), 1.0),
    "max": (("binary_max_tile",), 1.0),
    "max_column": (("binary_max_tile",), 0.5),
    "abs": (("abs_tile",), 1.0),
    "sigmoid": (("sigmoid_tile",), 1.0),
    "silu": (("silu_tile",), 1.0),
    "tanh": (("tanh_tile",), 1.0),
    "gelu_approx": (("gelu_tile",), 1.0),
    "rsqrt_approx": (("rsqrt_tile",), 1.0),  # of what cannot be negative: without a test for it
    "recip_column": (("recip_tile",), 0.5),
    "sub_column": (("sub_tiles_bcast_cols",), 1.0),
    "mul_column": (("mul_tiles_bcast_cols",), 1.0),
}
REDUCED = {"sum_rows": "PoolType::SUM", "max_rows": "PoolType::MAX"}
PRODUCT = {"HiFi4": 66.0, "HiFi3": 50.0, "HiFi2": 34.0}  # matmul_block, one pair of tiles


def least(needs: Mapping[str, int], *, dst32: bool = False, fidelity: str = "HiFi3") -> float:
    return START + SYNC + sum(count * _cycles(op, dst32, fidelity) for op, count in needs.items())


def _cycles(op: str, dst32: bool, fidelity: str) -> float:
    if op == "product":
        return PRODUCT[fidelity]
    if op == "exp_of_abs":
        return _cycles("exp", dst32, fidelity) - (0.0 if dst32 else NO_LIMIT)
    if op in ("exp", "exp_column"):
        return LOOPED_EXP["32" if dst32 else "16"] * (0.5 if op == "exp_column" else 1.0)
    if op in REDUCED:
        template = (REDUCED[op], "ReduceDim::REDUCE_ROW")
        return call_cost("reduce_tile", dst32=dst32, fidelity=fidelity, template=template).math_cycles
    calls, share = CALLS[op]
    approx = op.endswith("_approx")
    return share * min(call_cost(call, dst32=dst32, fidelity=fidelity, approx=approx).math_cycles for call in calls)


FUSED = {"mul": 64, "add": 64, "exp": 64}
SOFTMAX = {"max_rows": 4, "sub_column": 4, "exp": 4, "sum_rows": 4, "recip_column": 1, "mul_column": 4}
LSTM = {"sigmoid": 12, "tanh": 8}
WIDE = {"dst32": True, "fidelity": "HiFi4"}

# What each row must compute, and how: an f32 row has its functions in 32 bits.
NEEDS: dict[str, tuple[dict[str, int], dict[str, object]]] = {
    "a add 2x2": ({"add": 4}, {}),
    "a f32, tf32 allowed": ({"add": 4}, WIDE),
    "b exp(a*b+c) 8x8": (FUSED, {}),
    "b f32, tf32 allowed": (FUSED, WIDE),
    "b full sync": (FUSED, {}),
    "b no matrix unit": ({"load": 192, "mul_add": 64, "exp": 64}, {}),
    "c mul -> abs, exp": ({"mul": 4, "abs": 4, "exp": 4}, {}),
    "d mul -> abs, mul+c": ({"mul": 4, "abs": 4, "add": 4}, {}),
    "e abs-exp-relu": ({"load": 4, "abs": 4, "exp_of_abs": 4}, {}),
    "f matmul 4x4x16, acc": ({"product": 256}, {"fidelity": "HiFi3"}),
    "f 16-bit DST": ({"product": 256}, {"fidelity": "HiFi2"}),
    "f2 matmul +=": ({"product": 256}, {"fidelity": "HiFi3"}),
    "g relu(a@b+c) 2x2x4": ({"product": 16, "add": 4}, {"fidelity": "HiFi3"}),
    "g2 acc, bias, relu": ({"product": 256, "add": 16}, {"fidelity": "HiFi3"}),
    "h10 e / bcast(sum)": (SOFTMAX, {}),
    "h9 two buffers": (SOFTMAX, {}),
    "h2 six buffers": (SOFTMAX, {}),
    "i a*b+c 4x4": ({"mul": 16, "add": 16}, {}),
    "j full sync": ({"add": 8, "vector_add": 8, "max": 7}, {}),
    "j2 max of 8, f32": ({"load": 8, "max": 7}, WIDE),
    "k gelu*sigmoid 4x4": ({"load": 16, "gelu_approx": 16, "add": 16, "sigmoid": 16, "mul": 16}, {}),
    "l flash attention": (
        {"product": 32, "max_rows": 8, "max_column": 3, "sub_column": 8, "exp": 8, "add": 3, "exp_column": 3, "sum_rows": 8,
         "mul": 3, "mul_column": 8, "recip_column": 1}, {},
    ),
    "LSTM cell 2x2": ({**LSTM, "mul": 12, "load": 16}, {}),
    "LSTM cell f32": ({**LSTM, "load": 20, "vector_mul": 8, "mul_add": 4}, WIDE),
    "complex mul 2x2": ({"mul": 16, "add": 4}, {}),
    "Horner degree 5": ({"mul": 20, "add": 20}, {}),
    "m2 (m+c)*abs(m)": ({"mul": 8, "add": 4, "abs": 4}, {}),
    "m16 a*bcast_col(b)": ({"mul_column": 16}, {}),
    "swiglu": ({"load": 4, "silu": 4, "mul": 4}, {}),
    "layernorm bf16": ({"sum_rows": 12, "sub_column": 6, "mul": 12, "mul_column": 6, "rsqrt_approx": 2, "add": 8}, {}),
    "attention bf16": ({"product": 24, "exp": 6, "sum_rows": 6, "recip_column": 2, "mul_column": 6}, {}),
}  # fmt: skip
