"""Every spelling of a running value, in both languages, becomes the same op."""

from __future__ import annotations

import re

import numpy as np
import pytest

import accumulation_kernels
from tilewright import execution, tilelang
from tilewright.program import Program

T = tilelang.language

NAME = """
with c_dfb.wait() as c_blk, out_dfb.reserve() as o:
    total = ttl.block.fill(0.0, shape=(m, n))
    for step in range(steps):
        with a_dfb.wait() as left, b_dfb.wait() as right:
            total += left @ right
    o.store(ttl.math.exp(total) + c_blk)
"""
BUFFER = """
with acc_dfb.reserve() as first:
    first.store(ttl.math.fill(first, 0))
for step in range(steps):
    with a_dfb.wait() as left, b_dfb.wait() as right, acc_dfb.wait() as old, acc_dfb.reserve() as new:
        new.store(old + left @ right)
with acc_dfb.wait() as total, c_dfb.wait() as c_blk, out_dfb.reserve() as o:
    o.store(ttl.math.exp(total) + c_blk)
"""
BLOCK = """
with acc_dfb.reserve() as total:
    for step in range(steps):
        with a_dfb.wait() as left, b_dfb.wait() as right:
            total += left @ right
with acc_dfb.wait() as total, c_dfb.wait() as c_blk, out_dfb.reserve() as o:
    o.store(ttl.math.exp(total) + c_blk)
"""
LARGEST = """
with c_dfb.wait() as c_blk, out_dfb.reserve() as o:
    total = c_blk + 0
    for step in range(steps):
        with a_dfb.wait() as left, b_dfb.wait() as right:
            total = ttl.math.max(total, left @ right)
    o.store(total)
"""
SEEN_TWICE = """
with c_dfb.wait() as c_blk, out_dfb.reserve() as o:
    total = ttl.block.fill(0.0, shape=(m, n))
    seen = ttl.block.fill(0.0, shape=(m, n))
    for step in range(steps):
        with a_dfb.wait() as left, b_dfb.wait() as right:
            seen = ttl.math.max(seen, total)
            total += left @ right
    o.store(total + seen + c_blk)
"""


@T.prim_func
def gemm(A: T.Tensor((64, 128), "float32"), B: T.Tensor((128, 64), "float32"), C: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128) as _:
        a = T.alloc_shared((64, 32), "float32")
        b = T.alloc_shared((32, 64), "float32")
        c = T.alloc_fragment((64, 64), "float32")
        T.clear(c)
        for k in T.Pipelined(4, num_stages=2):
            T.copy(A[0, k * 32], a)
            T.copy(B[k * 32, 0], b)
            T.gemm(a, b, c)
        T.copy(c, C)


def raised(program: Program) -> str:
    """The compute thread behind the pass."""
    text = next(stage.ir for stage in program.trace.stages if stage.name == "ttl-raise-running-values")
    return next(thread for thread in text.split("\n  func.func ") if "thread<compute>" in thread)


def steps(thread: str) -> list[list[str]]:
    """Tile ops of the step of every `ttl.running`: the region that reads the block and replaces what is in it."""
    found: list[list[str]] = []
    regions = re.findall(r"ttl\.compute ins\((.*?)\) outs\((.*?)\) \{.*?\n(.*?)ttl\.yield", thread, re.DOTALL)
    for block, buffer in re.findall(r"(%\w+) = ttl\.running (%\w+) ", thread):
        views = set(re.findall(rf"(%\w+) = ttl\.attach_cb {block}, {buffer}\b", thread))
        own = [ops for read, written, ops in regions if views & names(read) and views & names(written)]
        found += [re.findall(r"ttl\.(tile_\w+)", ops) for ops in own]
        handovers = len(re.findall(rf"ttl\.cb_\w+ {buffer}\b", thread))
        assert handovers in (1, 3)  # a push; wait and pop if the result is taken back here
    return found


def names(text: str) -> set[str]:
    return set(re.findall(r"%\w+", text))


def after_raising(kernels, body: str) -> str:
    source = accumulation_kernels.kernel(body, block=(1, 1, 1))
    arrays = [np.zeros((32 * rows, 32 * cols), np.float32) for rows, cols in ((1, 4), (4, 1), (1, 1), (1, 1))]
    program = kernels.load(source).compile(*arrays, keep_ir=True)
    return raised(program)


@pytest.mark.parametrize("body", [NAME, BUFFER, BLOCK], ids=["name", "buffer", "block"])
def test_every_spelling_is_one_op(kernels, body):
    assert steps(after_raising(kernels, body)) == [["tile_matmul", "tile_add"]]


def test_other_steps_too(kernels):
    thread = after_raising(kernels, LARGEST)
    assert [step[-1] for step in steps(thread)] == ["tile_max"]


def test_a_fragment_of_the_other_language():
    found: list[Program] = []
    with execution.session(mode=execution.COMPILE, keep_ir=True, on_compiled=(found.append,), cache=False):
        gemm(*(np.zeros(shape, np.float32) for shape in ((64, 128), (128, 64), (64, 64))))
    assert steps(raised(found[0])) == [["tile_matmul", "tile_add"]]


def test_a_value_that_others_see_stays_in_its_buffer(kernels):
    thread = after_raising(kernels, SEEN_TWICE)
    assert "ttl.running" not in thread
