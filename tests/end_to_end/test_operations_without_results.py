"""Operations that write nothing: a body that only asks where it is, and threads that only read."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import execution, ttl
from tilewright.diagnostics import KernelError

asked = []


@ttl.operation(grid=(4, 2))
def ask():
    x, y, z = ttl.node(dims=3)
    assert 0 <= x < 4 and 0 <= y < 2 and z == 0
    asked.append(ttl.grid_size(dims=1))


@ttl.operation(grid=(4, 2))
def ask_wrongly():
    assert ttl.grid_size(dims=3) == (4, 2, 2)


@pytest.mark.parametrize("mode", ["sim", "native", "fast", "compile"])
def test_a_body_without_tensors_and_threads_runs(mode):
    asked.clear()
    with execution.session(mode=mode, cache=False):
        ask()
    assert asked in ([8], [])  # empty: the program is known already


def test_its_assertions_count():
    with pytest.raises(KernelError, match="AssertionError"):
        ask_wrongly()


READS = """
from tilewright import ttl

@ttl.operation(grid=(2,))
def kernel(PARAMETERS):
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(2, 1), block_count=DEPTH)

    @ttl.datamovement()
    def read():
        for step in range(3):
            with a_cb.reserve() as block:
                ttl.copy(a[2 * step : 2 * step + 2, ttl.node(dims=1)], block).wait()
"""
TENSOR = np.ones((192, 64), np.float32)


def test_a_kernel_that_only_reads_may_leave_its_blocks(kernels):
    kernel = kernels.load(READS.replace("PARAMETERS", "a").replace("DEPTH", "3"))
    for mode in ("sim", "native"):
        with execution.session(mode=mode):
            kernel(TENSOR)
    assert kernel.compile(TENSOR).written_tensors == ()


@pytest.mark.parametrize(("parameters", "depth", "code"), [("a, out", 3, "TW209"), ("a", 2, "TW211")])
def test_results_that_are_missing_and_blocks_without_room_are_told(kernels, parameters, depth, code):
    source = READS.replace("PARAMETERS", parameters).replace("DEPTH", str(depth))
    with pytest.raises(KernelError, match=code):
        kernels.compile(source, *[TENSOR] * len(parameters.split(",")))
