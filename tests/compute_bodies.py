"""Compute threads as text, run against what they mean in NumPy.

A body is the compute thread of a kernel with inputs ``a`` and ``b`` (as many blocks each as it takes), outputs ``o`` and ``p`` and a
scratch buffer ``s``; ``node`` is the core's place in a row of cores.
"""

from __future__ import annotations

import textwrap

import ml_dtypes
import numpy as np

DTYPES = {"bf16": ml_dtypes.bfloat16, "f32": np.float32}
TOLERANCE = {"bf16": 2.0**-6, "f32": 2.0**-9}  # f32 passes through the matrix unit as tf32
SIDE = 2  # tiles per side of a block

KERNEL = """
from tilewright import ttl

@ttl.operation(grid=({cores}, 1))
def kernel(a, b, o, p):
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=({side}, {side}), block_count={count})
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=({side}, {side}), block_count={count})
    s_dfb = ttl.make_dataflow_buffer_like(a, shape=({side}, {side}), block_count=2)
    o_dfb = ttl.make_dataflow_buffer_like(o, shape=({side}, {side}), block_count={count})
    p_dfb = ttl.make_dataflow_buffer_like(p, shape=({side}, {side}), block_count={count})

    @ttl.compute()
    def compute():
        node, _ = ttl.node(dims=2)
{body}

    def place(tensor, step, steps):
        node, _ = ttl.node(dims=2)
        row = (node * steps + step) * {side}
        return tensor[row : row + {side}, 0:{side}]

    @ttl.datamovement()
    def read():
        for step in range(max({reads})):
            for tensor, buffer, steps in zip((a, b), (a_dfb, b_dfb), {reads}):
                if step < steps:
                    with buffer.reserve() as block:
                        ttl.copy(place(tensor, step, steps), block).wait()

    @ttl.datamovement()
    def write():
        for step in range(max({writes})):
            for tensor, buffer, steps in zip((o, p), (o_dfb, p_dfb), {writes}):
                if step < steps:
                    with buffer.wait() as block:
                        ttl.copy(block, place(tensor, step, steps)).wait()
"""


def run(kernels, body, meaning, *, reads=(1, 1), writes=(1, 0), cores=1, dtype="bf16", count=2):
    """``meaning(core, a, b)`` gets the blocks a core reads and gives those it writes to ``o`` and ``p``."""
    text = KERNEL.format(
        body=textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8),
        side=SIDE, cores=cores, count=count, reads=reads, writes=writes,
    )  # fmt: skip
    generator = np.random.default_rng(3)
    high = SIDE * 32
    inputs = [generator.uniform(-1, 1, (cores * max(n, 1) * high, high)).astype(DTYPES[dtype]) for n in reads]
    outputs = [np.zeros((cores * max(n, 1) * high, high), DTYPES[dtype]) for n in writes]
    program = kernels.run(text, *inputs, *outputs)

    def of_core(array, number, core):
        return [array[(core * number + i) * high : (core * number + i + 1) * high].astype(np.float64) for i in range(number)]

    for core in range(cores):
        given = [of_core(array, number, core) for array, number in zip(inputs, reads, strict=True)]
        wanted = meaning(core, *given)
        for array, number, expected in zip(outputs, writes, wanted, strict=True):
            for found, want in zip(of_core(array, number, core), expected, strict=True):
                bound = TOLERANCE[dtype] * max(1.0, float(np.abs(want).max()))
                np.testing.assert_allclose(found[: want.shape[0], : want.shape[1]], want, rtol=0, atol=bound)
    return program


def compiler_buffers(program):
    return [buffer.name for buffer in program.buffers if buffer.origin == "compiler"]


def decisions(program):
    return " ".join(decision.title for decision in program.trace.decisions)
