"""``ttl.wait_any``: a core that receives from several looks at whichever has arrived first."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.diagnostics import KernelError

SELECT = """
from tilewright import ttl

@ttl.operation(grid=(3, 1))
def kernel(a, out):
    left, right = ttl.Pipe(src=(0, 0), dst=(2, 0)), ttl.Pipe(src=(1, 0), dst=(2, 0))
    in_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    left_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=1)
    right_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=1)
    out_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    column, _ = ttl.node(dims=2)

    @ttl.compute()
    def compute():
        if column == 2:
            for step in range(3):
                with left_cb.wait() as x, right_cb.wait() as y, out_cb.reserve() as o:
                    o.store(x * 2 + y)

    @ttl.datamovement()
    def move():
        for step in range(3):
            if column < 2:
                with in_cb.reserve() as block:
                    ttl.copy(a[step, column], block).wait()
                with in_cb.wait() as block:
                    if column == 0:
                        ttl.copy(block, left).wait()
                    else:
                        ttl.copy(block, right).wait()
            else:
                with left_cb.reserve() as x, right_cb.reserve() as y:
                    first, second = ttl.copy(left, x), ttl.copy(right, y)
                    ready = ttl.wait_any((first, second), start=step)
                    if ready.index() == 0:
                        first.wait()
                        second.wait()
                    else:
                        second.wait()
                        first.wait()

    @ttl.datamovement()
    def write():
        if column == 2:
            for step in range(3):
                with out_cb.wait() as block:
                    ttl.copy(block, out[step, 0]).wait()
"""


def test_whichever_arrives_first_is_taken_first(kernels):
    a = np.random.default_rng(1).integers(-9, 9, (96, 64)).astype(np.float32)
    out = np.zeros((96, 32), np.float32)
    program = kernels.run(SELECT, a, out)
    assert (out == a[:, :32] * 2 + a[:, 32:]).all()
    assert "*word(places[ready]) == 0" in program.cpp["reader"]


@pytest.mark.parametrize(
    ("old", "new", "code", "message"),
    [
        ("(first, second), start=step", "first", "TW004", "takes receives"),
        ("(first, second), start=step", "(first, first)", "TW217", "one net"),
        ("start=step", "start=0.5", "TW004", "start is 0.5"),
    ],
)
def test_wrong_uses_are_told(kernels, old, new, code, message):
    with pytest.raises(KernelError) as found:
        kernels.compile(SELECT.replace(old, new), np.zeros((96, 64), np.float32), np.zeros((96, 32), np.float32))
    (first, *_) = found.value.diagnostics
    assert first.code == code and message in first.message and first.span is not None and first.help
