"""Threads with names (kernel=), and options that the call of a Program gives."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.diagnostics import KernelError

TWO_OPERATIONS = """
from tilewright import ttl

mover, other = ttl.Kernel(ttl.KernelKind.DATA_MOVEMENT), ttl.Kernel(ttl.KernelKind.DATA_MOVEMENT)
worker = ttl.Kernel(ttl.KernelKind.COMPUTE)


@ttl.operation(grid="full")
def scaled(x, out, factor):
    a = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=2)
    o = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)

    @ttl.compute(kernel=worker)
    def work():
        with a.wait() as v, o.reserve() as r:
            r.store(v * factor)

    @ttl.datamovement(kernel=FIRST)
    def read():
        with a.reserve() as blk:
            ttl.copy(x[0, 0], blk).wait()

    @ttl.datamovement(kernel=SECOND)
    def write():
        with o.wait() as blk:
            ttl.copy(blk, out[0, 0]).wait()


@ttl.operation(grid=(1, 1))
def kernel(x, tmp, out):
    scaled(x, tmp, 2.0)
    b = ttl.make_dataflow_buffer_like(tmp, shape=(1, 1), block_count=2)

    @ttl.datamovement(kernel=other)
    def read():
        with b.reserve() as blk:
            ttl.copy(tmp[0, 0], blk).wait()

    @ttl.datamovement(kernel=mover)
    def write():
        with b.wait() as blk:
            ttl.copy(blk, out[0, 0]).wait()
"""


@pytest.mark.parametrize(("first", "second", "second_read"), [("mover", "other", "writer"), ("other", "mover", "reader")])
def test_the_same_name_is_the_same_thread(kernels, first, second, second_read):
    """The second operation's read follows the name, whatever it does there."""
    x = np.random.default_rng(1).uniform(-1, 1, (32, 32)).astype(np.float32)
    tmp, out = np.zeros_like(x), np.zeros_like(x)
    program = kernels.run(TWO_OPERATIONS.replace("FIRST", first).replace("SECOND", second), x, tmp, out)
    assert np.array_equal(tmp, 2 * x) and np.array_equal(out, 2 * x)
    assert [role for role, text in program.cpp.items() if "cb_reserve_back(b," in text] == [second_read]


OUTSIDE = """
from tilewright import ttl

first, second = ttl.Kernel(ttl.KernelKind.DATA_MOVEMENT), ttl.Kernel(ttl.KernelKind.DATA_MOVEMENT)


@ttl.operation(grid=(1, 1))
def kernel(x, out):
    a = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=2)
    o = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)
    with a.reserve() as blk:
        ttl.copy(x[0, 0], blk).wait()
    with a.wait() as v, o.reserve() as r:
        r.store(v + v)
    ttl.call_extern_func("HEADER", "mark", kernel=SELECTOR)
    with o.wait() as blk:
        ttl.copy(blk, out[0, 0]).wait()
"""


@pytest.mark.parametrize(
    ("selector", "roles"),
    [
        ("ttl.KernelKind.COMPUTE", {"compute"}),
        ("ttl.KernelKind.DATA_MOVEMENT", {"reader"}),
        ("ttl.PIPE_SOURCE_KERNEL", {"writer"}),
        ("first", {"reader"}),
        ("ttl.KernelKind.COMPUTE | ttl.KernelKind.DATA_MOVEMENT", {"compute", "reader"}),
        ("(ttl.KernelKind.COMPUTE, ttl.PIPE_SOURCE_KERNEL)", {"compute", "writer"}),
    ],
)
def test_external_code_of_one_body_goes_where_kernel_says(kernels, tmp_path, selector, roles):
    header = tmp_path / "mark.h"
    header.write_text("#pragma once\ninline void mark() {}\n")
    x = np.random.default_rng(1).uniform(-1, 1, (32, 32)).astype(np.float32)
    source = OUTSIDE.replace("HEADER", str(header)).replace("SELECTOR", selector)
    program = kernels.compile(source, x, np.zeros_like(x))
    assert {role for role, text in program.cpp.items() if "mark();" in text} == roles


def test_a_name_that_is_no_thread(kernels):
    x = np.zeros((32, 32), np.float32)
    with pytest.raises(KernelError) as caught:
        kernels.compile(OUTSIDE.replace("SELECTOR", "'compute'"), x, x.copy())
    assert "TW004" in str(caught.value) and "ttl.KernelKind" in str(caught.value)


PROGRAM = """
from tilewright import ttl


@ttl.operation(grid=(1, 1))
def kernel(a, b, out):
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 2), block_count=2)
    b_cb = ttl.make_dataflow_buffer_like(b, shape=(1, 2), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 2), block_count=2)

    @ttl.compute()
    def add():
        with a_cb.wait() as l, b_cb.wait() as r, out_cb.reserve() as o:
            o.store(l + r)

    @ttl.datamovement()
    def read():
        with a_cb.reserve() as l, b_cb.reserve() as r:
            ttl.copy(a[0:1, 0:2], l).wait()
            ttl.copy(b[0:1, 0:2], r).wait()

    @ttl.datamovement()
    def write():
        with out_cb.wait() as o:
            ttl.copy(o, out[0:1, 0:2]).wait()

    return ttl.Program(add, read, write)(a, b, outOPTIONS)
"""


@pytest.mark.parametrize(("options", "vector_unit"), [("", False), (', options="--no-ttl-fpu-binary-ops"', True)])
def test_options_of_the_call_of_a_program(kernels, make_array, options, vector_unit):
    a, b, out = (make_array((1, 2), "bf16") for _ in range(3))
    program = kernels.run(PROGRAM.replace("OPTIONS", options), a, b, out)
    assert np.abs((out - (a + b)).astype(np.float32)).max() <= 2e-2
    assert ("add_binary_tile(" in program.cpp["compute"]) == vector_unit


def test_an_unknown_flag_of_a_program(kernels, make_array):
    arrays = [make_array((1, 2), "f32") for _ in range(3)]
    with pytest.raises(KernelError) as caught:
        kernels.compile(PROGRAM.replace("OPTIONS", ', options="--ttl-no-such-flag"'), *arrays)
    assert "TW015" in str(caught.value) and "--ttl-fpu-binary-ops" in str(caught.value)
