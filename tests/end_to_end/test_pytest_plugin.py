"""The pytest plugin on a folder of tests that import ``ttl`` and ``ttnn`` plainly, and `tilewright run -m pytest`, `run -`."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

KERNEL = """
import ml_dtypes
import numpy as np
import ttl
import ttnn


@ttl.operation(grid=(1, 1))
def doubled(x, out):
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=2)
    out_dfb = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        with x_dfb.wait() as xb, out_dfb.reserve() as ob:
            ob.store(BODY)

    @ttl.datamovement()
    def read():
        with x_dfb.reserve() as block:
            ttl.copy(x[0, 0], block).wait()

    @ttl.datamovement()
    def write():
        with out_dfb.wait() as block:
            ttl.copy(block, out[0, 0]).wait()


def arrays():
    x = np.random.default_rng(0).uniform(-1, 1, (32, 32)).astype(ml_dtypes.bfloat16)
    return x, np.zeros_like(x)
"""
PASSES = """

def test_right(check_kernel):
    check_kernel(doubled, *arrays(), reference=lambda x: 2 * x)


def test_plain_call():
    x, out = arrays()
    doubled(x, out)
    assert (out == x + x).all()
    assert ttnn.bfloat16 is not None
"""
FAILS = """

def test_wrong(check_kernel):
    check_kernel(doubled, *arrays(), reference=lambda x: 3 * x)
"""
TILELANG = """
import tilelang
import tilelang.language as T


def test_import():
    assert T.Kernel is not None
"""


def pytest_in(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    installed = any(each.name == "tilewright" for each in entry_points(group="pytest11"))
    plugin = [] if installed else ["-p", "tilewright.pytest_plugin"]  # a tree that was not installed has no entry point
    command = [sys.executable, "-m", "pytest", *plugin, "-p", "no:cacheprovider", *words]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)


def test_folder_of_plain_tests(tmp_path: Path):
    (tmp_path / "test_kernel.py").write_text(KERNEL.replace("BODY", "xb * 2.0") + PASSES)
    (tmp_path / "test_language.py").write_text(TILELANG)
    found = pytest_in(tmp_path, "-q")
    assert found.returncode == 0 and "3 passed" in found.stdout, found.stdout + found.stderr


def test_wrong_numbers_are_told_with_place_and_value(tmp_path: Path):
    (tmp_path / "test_kernel.py").write_text(KERNEL.replace("BODY", "xb * 2.0") + FAILS)
    found = pytest_in(tmp_path, "-q")
    assert found.returncode == 1
    assert "output 0 of the sim run: at (0, 0) it is" in found.stdout and "elements differ" in found.stdout


def test_mistake_shows_the_users_line_only(tmp_path: Path):
    (tmp_path / "test_kernel.py").write_text(KERNEL.replace("BODY", "xb * undefined") + PASSES)
    found = pytest_in(tmp_path, "-q")
    assert found.returncode == 1
    assert "ob.store(xb * undefined)" in found.stdout and "test_kernel.py:16" in found.stdout
    assert "src/tilewright" not in found.stdout  # no frame of the compiler


def test_stand_ins_can_be_switched_off(tmp_path: Path):
    (tmp_path / "test_language.py").write_text(TILELANG)
    found = pytest_in(tmp_path, "-q", "--tilewright=never")
    assert found.returncode != 0 and "No module named 'tilelang'" in found.stdout
    found = pytest_in(tmp_path, "-q", "-o", "tilewright=sometimes")
    assert found.returncode != 0 and "one of auto, always, never" in found.stderr


def tilewright(*words: str, folder: Path, text: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tilewright", *words]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.run(command, cwd=folder, input=text, capture_output=True, text=True, check=False, env=environment)


def test_module_runs_with_the_stand_ins(tmp_path: Path):
    (tmp_path / "test_kernel.py").write_text(KERNEL.replace("BODY", "xb * 2.0") + PASSES.replace("def test_right(check_kernel)", "def unused(check_kernel)"))
    found = tilewright("run", "--quiet", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_kernel.py", folder=tmp_path)
    assert found.returncode == 0 and "1 passed" in found.stdout, found.stdout + found.stderr
    (tmp_path / "tool.py").write_text("import sys\nimport ttl\nprint(sys.argv[1:], __name__)\nsys.exit(3)\n")
    found = tilewright("run", "-m", "tool", "-x", "word", folder=tmp_path)
    assert (found.returncode, found.stdout) == (3, "['-x', 'word'] __main__\n")


def test_script_from_standard_input(tmp_path: Path):
    text = KERNEL.replace("BODY", "xb * 2.0") + "\n\nx, out = arrays()\ndoubled(x, out)\nprint((out == x + x).all())\n"
    found = tilewright("run", "-", folder=tmp_path, text=text)
    assert found.stdout == "True\n" and "doubled" in found.stderr, found.stderr
    found = tilewright("run", "-", folder=tmp_path, text=text.replace("xb * 2.0", "xb * undefined"))
    assert found.returncode == 1 and "ob.store(xb * undefined)" in found.stderr


@pytest.mark.parametrize("words", [["run"], ["run", "-m"], ["run", "--quiet"]])
def test_nothing_to_run_is_said(words: list[str], tmp_path: Path):
    found = tilewright(*words, folder=tmp_path)
    assert found.returncode == 2 and found.stderr
