"""Random kernels that keep reduced and full blocks in the same buffers, against NumPy with keepdims."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import kernel_text
from tilewright import execution

FRAME = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(x, out):
    x_buffer = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=2)
    s0 = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count={s0})
    s1 = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count={s1})
    out_buffer = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        for _ in range({rounds}):
            with x_buffer.wait() as x0:
{body}

    @ttl.datamovement()
    def read():
        for step in range({rounds}):
            with x_buffer.reserve() as block:
                ttl.copy(x[step, 0], block).wait()

    @ttl.datamovement()
    def write():
        for step in range({stores}):
            with out_buffer.wait() as block:
                ttl.copy(block, out[step, 0]).wait()
"""
ROUNDS = 3


def random_body(rng: np.random.Generator) -> tuple[list[str], list[tuple]]:
    """Lines of the kernel, and the same steps for NumPy. Blocks in a scratch buffer are taken out in the order they went in."""
    lines: list[str] = []
    steps: list[tuple] = []
    queues: dict[str, int] = {"s0": 0, "s1": 0}
    values = ["x0"]
    held: list[str] = []
    for number in range(int(rng.integers(6, 14))):
        choice = rng.choice(["reduce", "combine", "put", "take", "grow"])
        name, one, other = f"v{number}", str(rng.choice(values)), str(rng.choice(values))
        scratch = str(rng.choice(["s0", "s1"]))
        if choice == "reduce":
            kind, dim = str(rng.choice(["sum", "max"])), int(rng.integers(0, 2))
            lines.append(f"{name} = ttl.math.reduce_{kind}({one}, dims=[{dim}]) * 0.125")
            steps.append(("reduce", name, one, kind, dim))
            values.append(name)
        elif choice == "combine":
            symbol = str(rng.choice(["+", "-"]))
            lines.append(f"{name} = {one} {symbol} {other} * 0.5")
            steps.append(("combine", name, one, symbol, other))
            values.append(name)
        elif choice == "put" and queues[scratch] < 3:
            lines.append(f"with {scratch}.reserve() as block:\n    block.store({one} * 1.0)")
            steps.append(("put", scratch, one))
            queues[scratch] += 1
        elif choice == "grow" and queues[scratch] < 3:
            lines.append(f"with {scratch}.reserve() as block:\n    block += {one}\n    block += {other}")
            steps.append(("grow", scratch, one, other))
            queues[scratch] += 1
        elif choice == "take" and queues[scratch]:
            lines.append(f"{name} = {scratch}.wait()")
            steps.append(("take", name, scratch))
            queues[scratch] -= 1
            values.append(name)
            held.append(name)
    last = str(rng.choice(values))
    lines.append(f"with out_buffer.reserve() as o:\n    o.store(x0 + {last} * 0.25)")
    steps.append(("out", last))
    lines += [f"{name}.pop()" for name in held]
    for scratch, left in queues.items():
        lines += [f"with {scratch}.wait() as rest:\n    pass"] * left
    return lines, steps


def eager(steps: list[tuple], x: np.ndarray) -> np.ndarray:
    names = {"x0": x}
    queues: dict[str, list[np.ndarray]] = {"s0": [], "s1": []}
    for kind, *given in steps:
        if kind == "reduce":
            name, one, how, dim = given
            names[name] = getattr(names[one], how)(axis=dim, keepdims=True) * 0.125
        elif kind == "combine":
            name, one, symbol, other = given
            names[name] = names[one] + (1 if symbol == "+" else -1) * names[other] * 0.5
        elif kind == "put":
            queues[given[0]].append(names[given[1]])
        elif kind == "grow":
            queues[given[0]].append(names[given[1]] + names[given[2]])
        elif kind == "take":
            names[given[0]] = queues[given[1]].pop(0)
        else:
            return x + names[given[0]] * 0.25
    raise AssertionError


@pytest.mark.parametrize("seed", range(24))
def test_one_buffer_for_blocks_of_any_extent(seed: int, tmp_path: Path):
    rng = np.random.default_rng(seed)
    lines, steps = random_body(rng)
    body = "\n".join(" " * 16 + part for line in lines for part in line.splitlines())
    depths = {name: max(1, sum(name in step[1:2] and step[0] in ("put", "grow") for step in steps)) for name in ("s0", "s1")}
    source = FRAME.format(body=body, rounds=ROUNDS, stores=ROUNDS, **depths)  # every round starts at the first block
    x = rng.uniform(-1, 1, (ROUNDS * 32, 32)).astype(np.float32)
    out = np.zeros_like(x)
    with execution.session(mode="fast"):
        kernel_text.load(source, tmp_path)(x, out)
    for step in range(ROUNDS):
        part = slice(step * 32, step * 32 + 32)
        wanted = np.broadcast_to(eager(steps, x[part].astype(np.float64)), (32, 32))
        assert np.abs(out[part] - wanted).max() <= 2**-14 * max(1, np.abs(wanted).max()), source
