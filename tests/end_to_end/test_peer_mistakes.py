"""Every row of the peer's table of mistakes and refusals: rejected with a code here, or compiled and right where it is no mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright import execution

ERRORS = Path(__file__).resolve().parents[1] / "errors"

# Mistakes: the wrong kernel in tests/errors that has it.
REJECTED = {
    "operand shape mismatch": "shape_mismatch",
    "dtype mismatch in an op": "dtype_mismatch",
    "dtype mismatch in a store": "dtype_mismatch_in_store",
    "slice smaller than the buffer": "slice_unlike_block",
    "slice out of range": "slice_outside_tensor",
    "reads a buffer nobody fills": "buffer_nobody_fills",
    "extra wait": "extra_wait",
    "extra reserve": "extra_reserve",
    "wrong order": "wrong_order_of_waits",
    "reserve, never store, push": "push_unwritten_block",
    "read of a reserved block": "read_reserved_block",
    "value used after its block's with": "use_after_with",
    "two producers": "two_producers",
    "L1 overflow": "buffers_over_l1",
    "unknown op": "unknown_function",
    "while": "while_loop",
}


@pytest.mark.parametrize("row", REJECTED)
def test_rejected_with_a_place_and_a_remedy(row: str):
    """What the message must be stands in the file; tests/errors checks it."""
    assert "# error TW" in (ERRORS / f"{REJECTED[row]}.py").read_text(encoding="utf-8")


FRAME = """from tilewright import ttl

def helper(value):
    return value * value

@ttl.operation(grid=(1, 1))
def kernel(a, y):
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
{compute}

    @ttl.datamovement()
    def move():
{move}
"""
COMPUTE = """        with a_dfb.wait() as x, y_dfb.reserve() as o:
            o.store({value})"""
MOVE = """        with a_dfb.reserve() as block:
            ttl.copy(a[0, 0], block).wait()
        with y_dfb.wait() as block:
            ttl.copy(block, y[0, 0]).wait()"""
UNRELEASED = ("        x = a_dfb.wait()\n        o = y_dfb.reserve()\n        o.store(x + x)", MOVE)
UNWAITED = (COMPUTE.format(value="x + x"), MOVE.replace(".wait()\n        with", "\n        with"))
DEEP = " + ".join(f"(ttl.math.abs(x) + {n}.0) * (x - {n}.0)" for n in range(1, 17))

# No mistakes: (compute, data movement, what NumPy says).
RIGHT: dict[str, tuple[str, str, Any]] = {
    "missing push and pop": (*UNRELEASED, lambda a: a + a),
    "copy without wait": (*UNWAITED, lambda a: a + a),
    "minus block": (COMPUTE.format(value="-x"), MOVE, lambda a: -a),
    "block * 2.0": (COMPUTE.format(value="x * 2.0"), MOVE, lambda a: a * 2),
    "block ** 2": (COMPUTE.format(value="x ** 2"), MOVE, lambda a: a**2),
    "reduce, then elementwise": (
        COMPUTE.format(value="ttl.math.recip(ttl.math.reduce_sum(x, dims=[0, 1])) * x"), MOVE, lambda a: a / a.sum(),
    ),
    "helper function": (COMPUTE.format(value="helper(x)"), MOVE, lambda a: a * a),
    "list of blocks": (COMPUTE.format(value="sum([b * 2.0 for b in [x, x]][1:], [x][0])"), MOVE, lambda a: a * 3),
    "DST overflow": (
        COMPUTE.format(value=DEEP), MOVE, lambda a: sum((np.abs(a) + n) * (a - n) for n in range(1, 17)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("engine", ["sim", "native"])
@pytest.mark.parametrize("row", RIGHT)
def test_compiled_and_right(row: str, engine: str, kernels: Any):
    """One data-movement thread in each: the peer wants two."""
    compute, move, meaning = RIGHT[row]
    a = np.random.default_rng(2).uniform(0.5, 1.5, (32, 32)).astype(np.float32)
    y = np.zeros_like(a)
    with execution.session(mode=engine):
        kernels.load(FRAME.format(compute=compute, move=move))(a, y)
    wanted = meaning(a.astype(np.float64))
    assert np.abs(y - wanted).max() <= 2e-3 * np.abs(wanted).max()
