"""Sessions: what surrounds kernel calls."""

from __future__ import annotations

import pytest

from tilewright import execution
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
