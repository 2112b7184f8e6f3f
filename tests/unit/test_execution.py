"""Sessions: what surrounds kernel calls."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright import execution, ttl
from tilewright.options import Options


def test_the_default_session_changes_nothing():
    options = Options(allocator="linear-scan")
    assert execution.current().options(options) is options
    assert execution.current().mode == execution.AUTO


def test_a_session_ends_with_its_block():
    with execution.session(mode="fast"):
        assert execution.current().mode == "fast"
        with execution.session(keep_ir=True):
            assert execution.current().mode == "fast"
            assert execution.current().keep_ir
        assert not execution.current().keep_ir
    assert execution.current().mode == execution.AUTO


def test_overrides_win_over_the_decorator():
    with execution.session(overrides={"allocator": "linear-scan", "arch": "blackhole"}) as session:
        changed = session.options(Options(allocator="optimal", metal="0.69"))
    assert (changed.allocator, changed.arch, changed.metal) == ("linear-scan", "blackhole", "0.69")


def test_an_unknown_mode_is_refused():
    with pytest.raises(ValueError, match="unknown mode 'gpu'"), execution.session(mode="gpu"):
        pass


class FakeDeviceTensor:
    pass


FakeDeviceTensor.__module__ = "ttnn._ttnn.tensor"


def test_tensors_on_a_device_run_there_unless_told_otherwise():
    assert execution.chosen_mode(execution.AUTO, [FakeDeviceTensor()]) == execution.DEVICE
    assert execution.chosen_mode(execution.AUTO, [3.0]) == execution.SIM
    assert execution.chosen_mode(execution.FAST, [FakeDeviceTensor()]) == execution.FAST


def negate_last(arrays: list[np.ndarray]) -> str:
    arrays[-1][...] = -arrays[0]
    return "done"


def test_results_reach_every_kind_of_tensor():
    values = np.full((32, 32), 1 / 3, dtype=np.float32)
    plain = np.zeros((32, 32), dtype=np.float32)
    assert execution.on_arrays([values, plain], negate_last) == "done"
    assert np.array_equal(plain, -values)
    view = np.zeros((32, 32), dtype=np.float32)
    execution.on_arrays([values, ttl.bf16(view)], negate_last)
    assert np.array_equal(view, (-values).astype(ml_dtypes.bfloat16).astype(np.float32))
    strided = np.zeros((64, 64), dtype=np.float32)[::2, ::2]
    execution.on_arrays([values, strided], negate_last)
    assert np.array_equal(strided, -values)


def test_tensors_that_are_only_read_keep_their_bits():
    values = np.full((32, 32), 1 / 3, dtype=np.float32)
    out = np.zeros((32, 32), dtype=np.float32)
    execution.on_arrays([ttl.bf16(values), ttl.bf16(out)], negate_last)
    assert np.array_equal(values, np.full((32, 32), 1 / 3, dtype=np.float32))
    assert not np.array_equal(-out, values), "the result was rounded"
