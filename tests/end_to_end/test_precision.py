"""``precision`` and ``approximate``: what they choose, what that does to results, and what explain says about it."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.options import PERMISSIONS, wanted_instead

SOFTMAX = """e = ttl.math.exp(x - ttl.math.broadcast(ttl.math.reduce_max(x, dims=[1]), dims=[1], shape=(1, 4)))
o0.store(e * ttl.math.broadcast(ttl.math.recip(ttl.math.reduce_sum(e, dims=[1])), dims=[1], shape=(1, 4)))"""
MOST = {"fast": 16 * 2.0**-9 + 2.0**-7, "balanced": 2.0**-6, "exact": 2.0**-6}  # relative error of any probability


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("precision", MOST)
def test_sums_of_a_softmax(kernels, block_kernels, make_array, precision):
    x = make_array((1, 4), "bf16", -3.0, 3.0)
    out = np.zeros(x.shape, x.dtype)
    program = kernels.run(block_kernels.single_block({"x": (1, 4)}, [(1, 4)], SOFTMAX), x, out, precision=precision)
    assert program.config.fp32_dest_acc_en == (precision != "fast")
    assert ("InputClamping::ClampToNegative, 32, false>" in program.cpp["compute"]) == (precision == "balanced")
    expected = softmax(x.astype(np.float64))
    assert np.max(np.abs(out.astype(np.float64) - expected) / expected) <= MOST[precision]
    (stated,) = [each for each in program.trace.decisions if "bound_percent" in each.data]
    assert stated.data["bound_percent"] == pytest.approx(100 * 32 * 2.0 ** (-8 if precision == "fast" else -24))


@pytest.mark.parametrize("count", [1, 4, 16])
def test_the_stated_bound_holds(kernels, block_kernels, count):
    """Sums of numbers of one sign, where every rounding goes the same way as often as it can."""
    x = np.full((32, 32 * count), 1.0078125, ml_dtypes.bfloat16)
    x[:, ::3] = 0.003
    out = np.zeros((32, 32), x.dtype)
    body = "o0.store(ttl.math.reduce_sum(x, dims=[1]))"
    source = block_kernels.single_block({"x": (1, count)}, [(1, 1)], body)
    program = kernels.run(source, x, out, precision="fast")
    (stated,) = [each for each in program.trace.decisions if "bound_percent" in each.data]
    expected = x.astype(np.float64).sum(axis=1)
    error = np.abs(out.astype(np.float64)[:, 0] - expected) / expected
    assert error.max() <= stated.data["bound_percent"] / 100
    assert error.max() > 0.0


@pytest.mark.parametrize(
    "name, text, most", [("gelu", "ttl.math.gelu(a)", 0.05), ("exp", "ttl.math.exp(a)", 0.1), ("tanh", "ttl.math.tanh(a)", 0.16)]
)
def test_only_what_is_named_is_approximate(kernels, make_array, name, text, most):
    a = make_array((1, 4), "bf16", -1.0, 1.0)
    plain, exact = kernels.elementwise({"out": text}, {"a": a}, block=(1, 4))
    other = next(each for each in PERMISSIONS if each != name)
    same, _ = kernels.elementwise({"out": text}, {"a": a}, block=(1, 4), approximate=other)
    fast, found = kernels.elementwise({"out": text}, {"a": a}, block=(1, 4), approximate=f"{name}, {other}")
    everything, _ = kernels.elementwise({"out": text}, {"a": a}, block=(1, 4), approximate="all")
    assert plain.cpp["compute"] == same.cpp["compute"] != fast.cpp["compute"] == everything.cpp["compute"]
    assert 0.0 < np.abs(found["out"].astype(np.float64) - exact["out"].astype(np.float64)).max() <= most


def test_names_are_checked():
    assert not wanted_instead("approximate", "gelu,exp") and not wanted_instead("approximate", "")
    assert "gelu" in wanted_instead("approximate", "geluu")
    assert wanted_instead("precision", "best") == "one of fast, balanced, exact"


def test_explain_lists_what_permissions_save(tmp_path, capsys):
    from tilewright.cli import main

    script = tmp_path / "script.py"
    script.write_text(
        """import ml_dtypes, numpy as np
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(a, out):
    a_buffer = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    out_buffer = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        with a_buffer.wait() as block, out_buffer.reserve() as result:
            result.store(ttl.math.gelu(block))

    @ttl.datamovement()
    def read():
        with a_buffer.reserve() as block:
            ttl.copy(a[0:1, 0:1], block).wait()

    @ttl.datamovement()
    def write():
        with out_buffer.wait() as block:
            ttl.copy(block, out[0:1, 0:1]).wait()

kernel(np.zeros((32, 32), ml_dtypes.bfloat16), np.zeros((32, 32), ml_dtypes.bfloat16))
"""
    )
    assert main.main(["explain", str(script)]) == 0
    text = capsys.readouterr().out
    assert 'approximate="gelu" would save 2592 of 2832 cycles per tile' in text
    assert main.main(["explain", "--approximate", "gelu", str(script)]) == 0
    assert "would save" not in capsys.readouterr().out
