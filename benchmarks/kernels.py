"""Dynamic counts of real kernels beside the peer's: acquires, inits, copies, packs, L1 round trips, and the error.

    python benchmarks/kernels.py [NAME…]

The peer's columns are counted in the C++ that tt-lang 1.1.1 emits for the same kernels (one block each); ours are counted by the
simulator. A dash means that the peer does not compile the kernel or was not counted.
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import loop_kernels

import block_kernels
import kernel_text

DTYPES = {"bf16": ml_dtypes.bfloat16, "f32": np.float32}
BCAST = "ttl.math.broadcast"


@dataclass(frozen=True)
class Case:
    name: str
    inputs: dict[str, tuple[int, int]]
    outputs: tuple[tuple[int, int], ...]
    body: str
    reference: Callable[..., Any]
    dtype: str = "bf16"
    # acquires, copy_tile, FPU binary, SFPU binary, unary, copy_dest_values, packed tiles, inits
    peer: tuple[int, ...] | None = None
    low: float = -1.0
    high: float = 1.0
    options: dict[str, Any] = field(default_factory=dict)
    source: str = ""  # the whole kernel, where it is more than one block of everything


def sigmoid(x: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-x))


def gelu(x: Any) -> Any:
    return 0.5 * x * (1.0 + np.vectorize(math.erf)(x / math.sqrt(2.0)))


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


SOFTMAX = f"""e = ttl.math.exp(xb - {BCAST}(ttl.math.reduce_max(xb, dims=[1]), dims=[1], shape=(1, 4)))
o0.store(e * {BCAST}(ttl.math.recip(ttl.math.reduce_sum(e, dims=[1])), dims=[1], shape=(1, 4)))"""
LSTM = """c2 = ttl.math.sigmoid(fb) * cb + ttl.math.sigmoid(ib) * ttl.math.tanh(gb)
o0.store(c2)
o1.store(ttl.math.sigmoid(ob) * ttl.math.tanh(c2))"""
COMPLEX = "o0.store(ab * cb - bb * db)\no1.store(ab * db + bb * cb)"
HORNER = "o0.store(((((ab * xb + bb) * xb + cb) * xb + db) * xb + eb) * xb + fb)"
FIVE = dict.fromkeys("ifgoc", (2, 2))


def lstm(i: Any, f: Any, g: Any, o: Any, c: Any) -> tuple[Any, Any]:
    c2 = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return c2, sigmoid(o) * np.tanh(c2)


CASES = (
    Case("a add 2x2", {"a": (2, 2), "b": (2, 2)}, ((2, 2),), "o0.store(ab + bb)", lambda a, b: a + b, peer=(1, 0, 4, 0, 0, 0, 4, 2)),
    Case("b exp(a*b+c) 8x8", dict.fromkeys("abc", (8, 8)), ((8, 8),), "o0.store(ttl.math.exp(ab * bb + cb))",
         lambda a, b, c: np.exp(a * b + c), peer=(16, 64, 64, 64, 64, 0, 64, 65)),
    Case("b f32", dict.fromkeys("abc", (8, 8)), ((8, 8),), "o0.store(ttl.math.exp(ab * bb + cb))",
         lambda a, b, c: np.exp(a * b + c), dtype="f32", peer=(32, 64, 64, 64, 64, 0, 64, 129)),
    Case("c mul -> abs, exp", dict.fromkeys("ab", (2, 2)), ((2, 2), (2, 2)),
         "m = ab * bb\no0.store(ttl.math.abs(m))\no1.store(ttl.math.exp(m))",
         lambda a, b: (abs(a * b), np.exp(a * b)), peer=(2, 0, 8, 0, 8, 0, 8, 6)),
    Case("d mul -> abs, mul+c", dict.fromkeys("abc", (2, 2)), ((2, 2), (2, 2)),
         "m = ab * bb\no0.store(ttl.math.abs(m))\no1.store(m + cb)",
         lambda a, b, c: (abs(a * b), a * b + c), peer=(2, 4, 8, 4, 4, 0, 8, 7)),
    Case("e abs-exp-relu", {"a": (2, 2)}, ((2, 2),), "o0.store(ttl.math.relu(ttl.math.exp(ttl.math.abs(ab))))",
         lambda a: np.maximum(np.exp(abs(a)), 0), peer=(1, 4, 0, 0, 12, 0, 4, 5)),
    Case("g relu(a@b+c) 2x2x4", {"a": (2, 4), "b": (4, 2), "c": (2, 2)}, ((2, 2),), "o0.store(ttl.math.relu(ab @ bb + cb))",
         lambda a, b, c: np.maximum(a @ b + c, 0), peer=(1, 4, 0, 0, 4, 0, 4, 4)),
    Case("f matmul 4x4x16, acc", {"a": (4, 16), "b": (16, 4)}, ((4, 4),), "", lambda a, b: a @ b,
         peer=(24, 80, 0, 0, 0, 0, 96, 46), source=loop_kernels.BUFFER),
    Case("f f32", {"a": (4, 16), "b": (16, 4)}, ((4, 4),), "", lambda a, b: a @ b, dtype="f32", source=loop_kernels.BUFFER),
    Case("f 2x2x16, acc", {"a": (2, 16), "b": (16, 2)}, ((2, 2),), "", lambda a, b: a @ b, source=loop_kernels.BUFFER_SMALL),
    Case("f2 matmul +=", {"a": (4, 16), "b": (16, 4)}, ((4, 4),), "", lambda a, b: a @ b,
         peer=(16, 0, 0, 0, 0, 0, 64, 17), source=loop_kernels.matmul(loop_kernels.ACCUMULATE)),
    Case("f3 running name", {"a": (4, 16), "b": (16, 4)}, ((4, 4),), "", lambda a, b: a @ b,
         source=loop_kernels.matmul(loop_kernels.RUNNING)),
    Case("g2 acc, bias, relu", {"a": (4, 16), "b": (16, 4), "c": (4, 4)}, ((4, 4),), "",
         lambda a, b, c: np.maximum(a @ b + c, 0), peer=(24, 64, 16, 0, 16, 0, 96, 50), source=loop_kernels.FUSED_END),
    Case("l flash attention", {"q": (1, 2), "k": (2, 8), "v": (8, 2)}, ((1, 2),), "",
         lambda q, k, v: softmax(q @ k * 0.125) @ v, peer=(59, 38, 22, 24, 13, 0, 98, 167),
         source=block_kernels.flash_attention(rows=1, keys=2, depth=2, steps=4, scale=0.125, masked=False)),
    Case("h softmax 1x4", {"x": (1, 4)}, ((1, 4),), SOFTMAX, softmax, peer=(4, 8, 0, 12, 8, 0, 10, 16)),
    Case("k gelu*sigmoid 4x4", {"a": (4, 4), "b": (4, 4)}, ((4, 4),),
         "g = ttl.math.gelu(ab)\no0.store(g * ttl.math.sigmoid(g + bb))",
         lambda a, b: gelu(a) * sigmoid(gelu(a) + b), peer=(4, 32, 0, 32, 32, 0, 16, 25)),
    Case("LSTM cell 2x2", FIVE, ((2, 2), (2, 2)), LSTM, lstm, peer=(4, 36, 0, 28, 32, 0, 8, 48)),
    Case("LSTM cell f32", FIVE, ((2, 2), (2, 2)), LSTM, lstm, dtype="f32", peer=(8, 36, 0, 28, 32, 0, 8, 94)),
    Case("complex mul 2x2", dict.fromkeys("abcd", (2, 2)), ((2, 2), (2, 2)), COMPLEX,
         lambda a, b, c, d: (a * c - b * d, a * d + b * c), peer=(2, 0, 16, 8, 0, 0, 8, 20)),
    Case("Horner degree 5", dict.fromkeys("abcdefx", (2, 2)), ((2, 2),), HORNER,
         lambda a, b, c, d, e, f, x: ((((a * x + b) * x + c) * x + d) * x + e) * x + f, peer=(2, 24, 4, 36, 0, 0, 4, 33)),
    Case("m2 (m+c)*abs(m)", dict.fromkeys("abc", (2, 2)), ((2, 2),), "m = ab * bb\no0.store((m + cb) * ttl.math.abs(m))",
         lambda a, b, c: (a * b + c) * abs(a * b), peer=(2, 4, 4, 8, 4, 4, 4, 13)),
    Case("m16 a*bcast_col(b)", {"a": (4, 4), "b": (4, 1)}, ((4, 4),), f"o0.store(ab * {BCAST}(bb, dims=[1], shape=(4, 4)))",
         lambda a, b: a * b[:, :1], peer=(4, 16, 0, 16, 0, 0, 16, 13)),
    Case("swiglu", {"g": (2, 2), "u": (2, 2)}, ((2, 2),), "o0.store(gb * ttl.math.sigmoid(gb) * ub)", lambda g, u: g * sigmoid(g) * u),
    Case("rmsnorm 2x4", {"x": (2, 4), "w": (1, 4)}, ((2, 4),),
         f"r = ttl.math.rsqrt(ttl.math.reduce_sum(xb * xb, dims=[1]) * {1 / 128} + 1e-5)\n"
         f"o0.store(xb * {BCAST}(r, dims=[1], shape=(2, 4)) * {BCAST}(wb, dims=[0], shape=(2, 4)))",
         lambda x, w: x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * w[:1]),
    Case("dense layer 2x2x3", {"x": (2, 2), "w": (2, 3), "b": (1, 3)}, ((2, 3),),
         f"h = ttl.math.relu(xb @ wb + {BCAST}(bb, dims=[0], shape=(2, 3)))\n"
         f"o0.store(h - {BCAST}(ttl.math.reduce_sum(h, dims=[1]) * {1 / 96}, dims=[1], shape=(2, 3)))",
         lambda x, w, b: (h := np.maximum(x @ w + b[:1], 0)) - h.mean(1, keepdims=True)),
    Case("attention block", {"q": (2, 2), "k": (2, 3), "v": (3, 2)}, ((2, 2),),
         "e = ttl.math.exp((qb @ kb) * 0.125)\n"
         f"o0.store((e * {BCAST}(ttl.math.recip(ttl.math.reduce_sum(e, dims=[1])), dims=[1], shape=(2, 3))) @ vb)",
         lambda q, k, v: (e := np.exp(q @ k * 0.125)) / e.sum(1, keepdims=True) @ v),
)  # fmt: skip

COLUMNS = ("acquire", "copy_tile", "FPU", "SFPUb", "unary", "cdv", "packed", "init")


def source_of(case: Case) -> str:
    if case.source:
        return case.source
    return block_kernels.single_block({f"{name}b": shape for name, shape in case.inputs.items()}, case.outputs, case.body)


def build(case: Case, folder: Path) -> Any:
    return kernel_text.load(source_of(case), folder)


def counts(calls: dict[str, int], acquires: int, tiles_packed: int) -> tuple[int, ...]:
    def total(matches: Callable[[str], bool]) -> int:
        return sum(count for name, count in calls.items() if matches(name))

    binary = ("add", "sub", "mul")
    fpu = total(lambda n: n.startswith(tuple(f"{b}_tiles" for b in binary)) and "init" not in n)
    fpu += calls.get("binary_dest_reuse_tiles", 0)
    sfpu = total(lambda n: n.endswith("_binary_tile") or (n.startswith(("binary_max", "binary_min", "sfpu_")) and not n.endswith("init")))
    unary = total(lambda n: n.endswith("_tile") and not n.endswith("_binary_tile") and not n.startswith(
        ("copy_", "pack_", "binary_", "reduce_", "transpose_", "unary_bcast")))  # fmt: skip
    inits = total(lambda n: "init" in n or n == "reduce_uninit")
    return acquires, calls.get("copy_tile", 0), fpu, sfpu, unary, calls.get("copy_dest_values", 0), tiles_packed, inits


def run(case: Case, folder: Path) -> tuple[tuple[int, ...], float, int]:
    from tilewright.lang import tensors
    from tilewright.sim.run import simulate

    kernel = build(case, folder)
    rng = np.random.default_rng(7)
    dtype = DTYPES[case.dtype]
    arrays = [rng.uniform(case.low, case.high, (r * 32, c * 32)).astype(dtype) for r, c in case.inputs.values()]
    results = [np.zeros((r * 32, c * 32), dtype) for r, c in case.outputs]
    program = kernel.compile(*arrays, *results, **case.options)
    values = [tensors.to_array(array) for array in (*arrays, *results)]
    outcome = simulate(program, values)
    expected = case.reference(*(array.astype(np.float64) for array in arrays))
    expected = expected if isinstance(expected, tuple) else (expected,)
    error = 0.0
    for got, want in zip(values[len(arrays) :], expected, strict=True):
        seen = got.view(ml_dtypes.bfloat16).astype(np.float64) if got.dtype == np.uint16 else got.astype(np.float64)
        error = max(error, float(np.max(np.abs(seen - want)) / max(1.0, float(np.max(np.abs(want))))))
    group = outcome.groups[0]
    between = sum(buffer.origin == "compiler" for buffer in program.buffers)
    # Block packs count as one call each: the same program without them packs tile by tile.
    single = kernel.compile(*arrays, *results, **case.options, combine_packs=False)
    packed = simulate(single, [tensors.to_array(array) for array in (*arrays, *results)]).groups[0].calls["pack_tile"]
    return counts(group.calls, group.acquires, packed), error, between


def main(names: list[str]) -> int:
    chosen = [case for case in CASES if not names or any(name in case.name for name in names)]
    head = f"{'kernel':22}" + "".join(f"{column:>14}" for column in COLUMNS) + f"{'buffers':>9}{'error':>11}"
    print(head)
    print("-" * len(head))
    worse = 0
    with tempfile.TemporaryDirectory() as folder:
        for case in chosen:
            ours, error, between = run(case, Path(folder))
            cells: list[str] = []
            for index, value in enumerate(ours):
                peer = "-" if case.peer is None else str(case.peer[index])
                cells.append(f"{f'{value} / {peer}':>14}")
            print(f"{case.name:22}" + "".join(cells) + f"{between:>9}{error:>11.2e}", flush=True)
            worse += case.peer is not None and sum(ours[:1] + ours[1:2] + ours[5:6] + ours[7:]) > sum(
                case.peer[:1] + case.peer[1:2] + case.peer[5:6] + case.peer[7:]
            )
    print(f"\nours / tt-lang 1.1.1; {worse} of {len(chosen)} kernels need more acquires, copies and inits than the peer's")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
