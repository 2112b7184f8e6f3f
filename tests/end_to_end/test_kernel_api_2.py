"""``--api 2.0``: the object spelling of the kernel API. ``make vendor`` holds it against ttnn's own headers."""

from __future__ import annotations

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import print_kernel
from tilewright import execution
from tilewright.cli.main import main
from tilewright.diagnostics import KernelError
from tilewright.program import Program

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FREE = re.compile(r"\b(cb_(wait_front|pop_front|reserve_back|push_back)|noc_async_\w+|noc_semaphore_\w+|get_(write|read)_ptr)\((?!\))")


@pytest.mark.parametrize("name", ["02_fused", "06_multicast", "07_ring", "08_all_reduce", "11_sharded", "12_row_major"])
def test_examples_compute_the_same_with_objects(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Every example compares with its own reference; here the C++ that runs is the object spelling."""
    script = str(EXAMPLES / f"{name}.py")
    assert main(["run", "--native", "--api", "2.0", script]) == 0
    assert main(["compile", "--api", "2.0", script, "-o", str(tmp_path)]) == 0
    texts = {path: path.read_text() for path in tmp_path.rglob("*.cpp")}
    assert texts
    for path, text in texts.items():
        assert "CircularBuffer " in text, path
        assert not FREE.search(text), f"{path}: {FREE.search(text)}"


def test_prints_have_their_new_name() -> None:
    program = print_kernel.doubled.compile(*print_kernel.tensors(ml_dtypes.bfloat16), debug_print=True, api="2.0", metal="0.81")
    text = "".join(program.cpp.values())
    assert "DEVICE_PRINT(" in text and "api/debug/device_print.h" in text and " DPRINT" not in text
    old = print_kernel.doubled.compile(*print_kernel.tensors(np.float32), debug_print=True, metal="0.81")
    assert "DEVICE_PRINT" not in "".join(old.cpp.values())


def test_releases_without_objects_are_refused() -> None:
    with pytest.raises(KernelError, match="TW601"):
        print_kernel.doubled.compile(*print_kernel.tensors(np.float32), api="2.0", metal="0.78")
    with pytest.raises(KernelError):
        print_kernel.doubled.compile(*print_kernel.tensors(np.float32), api="3.0")


def test_the_newest_api_means_a_release_that_has_it(kernels):
    """In the decorator, in compile() and in a session, as on the command line; what is said about the release has the last word."""
    text = kernels.text.elementwise({"out": "a + b"}, "ab")
    arrays = [np.zeros((32, 32), np.float32) for _ in range(3)]
    kernel = kernels.load(text)
    assert kernel.compile(*arrays, api="2.0").options.metal == "0.81"
    called: list[Program] = []
    with execution.session(overrides={"api": "2.0"}, on_compiled=(called.append,)):
        kernel(*arrays)
    assert called[0].options.metal == "0.81"
    decorated = kernels.load(text.replace("grid=(1, 1)", 'grid=(1, 1), api="2.0"'))
    assert decorated.compile(*arrays).options.metal == "0.81"
    with pytest.raises(KernelError, match="does not have all of kernel API"):
        decorated.compile(*arrays, metal="0.69")
