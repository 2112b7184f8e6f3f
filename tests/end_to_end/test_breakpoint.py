"""``breakpoint()`` in a thread: a prompt at the user's line with blocks, DST and buffers; the run goes on, ends, or says why it did not stop."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tilewright import execution

SCRIPT = '''
import numpy as np
import ttl


@ttl.operation(grid=(2, 1))
def stopping(a, y):
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)
    scale = 3

    @ttl.compute()
    def compute():
        for i in range(2):
            with a_dfb.wait() as x, y_dfb.reserve() as out:
                out.store(x * scale)
                twice = x + x
                breakpoint()

    @ttl.datamovement()
    def read():
        me = ttl.node(dims=1)
        for i in range(2):
            with a_dfb.reserve() as block:
                ttl.copy(a[i, me], block).wait()

    @ttl.datamovement()
    def write():
        me = ttl.node(dims=1)
        for i in range(2):
            with y_dfb.wait() as block:
                ttl.copy(block, y[i, me]).wait()


a = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
y = np.zeros((64, 64), np.float32)
stopping(a, y)
print("result", (y == 3 * a).all())
'''
LINE = SCRIPT.splitlines().index("                breakpoint()") + 1


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "stopping.py"
    path.write_text(SCRIPT)
    return path


def run(script: Path, commands: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tilewright", "run", *options, str(script)]
    return subprocess.run(
        command, input=commands, capture_output=True, text=True, check=False, timeout=120, env={**os.environ, **environment}
    )


def answers(shown: str) -> list[str]:
    return [part.strip() for part in shown.split("(Pdb)")]


@pytest.mark.parametrize("options", [(), ("--fast",)], ids=["sim", "fast"])
def test_a_pipe_answers_the_prompt(script, options):
    asked = ["p x[1, 2]", "p out.max()", "dst", "buffers", "p (i, scale)", "p twice", "p on_core(1, 0).x[0, 0]", "n", "c", "p i", "c"]
    done = run(script, "\n".join(asked) + "\n", *options)
    assert done.returncode == 0, done.stderr
    first, x, out, dst, buffers, numbers, twice, other, step, again, second, end = answers(done.stdout)
    assert f"stopping.py({LINE})compute()" in first and first.endswith("-> breakpoint()")
    assert "core (0, 0) and 1 more" in first
    assert x == "np.float32(66.0)" and out == f"np.float32({3.0 * (31 * 64 + 31)})"
    assert "slot 0:" in dst and "192." in dst and "6045." in dst  # the second row begins with 3 * 64
    assert "buffer 'a_dfb': 2 blocks" in buffers and "buffer 'y_dfb': 2 blocks, 2 tiles of 4096 bytes, 0 pushed, 1 reserved" in buffers
    assert numbers == "(0, 3)" and "an expression" in twice and other == "np.float32(32.0)"
    assert "cannot be stepped" in step
    assert again.endswith("-> breakpoint()") and second == "1" and end == "result True"


def test_a_terminal_answers_the_prompt(script):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "tilewright", "run", "--quiet", str(script)]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True) as process:
        os.close(theirs)
        os.write(ours, b"p x[1, 2]\nc\nc\n")
        shown = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
    os.close(ours)
    assert process.returncode == 0
    assert b"66.0" in shown and shown.count(b"-> breakpoint()") == 2 and b"result True" in shown


def test_leaving_the_prompt_ends_the_run(script):
    done = run(script, "q\n")
    assert done.returncode == 130 and "result" not in done.stdout
    assert f"ended at the breakpoint, {script}:{LINE}" in done.stderr and "Traceback" not in done.stderr
    assert run(script, "").returncode == 130  # nobody can answer


def test_python_turns_it_off(script):
    done = run(script, "", PYTHONBREAKPOINT="0")
    assert done.returncode == 0 and done.stdout.strip() == "result True"


def test_a_native_run_says_that_it_does_not_stop(script):
    done = run(script, "", "--native")
    assert done.returncode == 0 and done.stdout.strip() == "result True"
    assert "TW523" in done.stderr and f"{script}:{LINE}" in done.stderr


STORED = "        out_block.store(ttl.math.exp(a))\n"


def test_any_hook_is_asked_at_the_line_and_results_stay(kernels, monkeypatch):
    seen: list[tuple[int, float, float]] = []

    def hook() -> None:
        frame = sys._getframe(1)
        names = frame.f_locals
        seen.append((frame.f_lineno, float(names["a"].sum()), float(names["dst"][0].max())))

    monkeypatch.setattr(sys, "breakpointhook", hook)
    source = kernels.text.elementwise({"out": "ttl.math.exp(a)"}, ("a",)).replace(STORED, f"{STORED}        breakpoint()\n")
    a, out = np.ones((32, 32), np.float32), np.zeros((32, 32), np.float32)
    kernels.simulate(source, a, out)
    np.testing.assert_allclose(out, np.e, rtol=1e-5)
    ((line, total, largest),) = seen
    assert source.splitlines()[line - 1].strip() == "breakpoint()" and total == 1024.0 and largest == pytest.approx(np.e, rel=1e-5)


def test_a_silent_session_does_not_stop(kernels, monkeypatch):
    monkeypatch.setattr(sys, "breakpointhook", lambda: pytest.fail("stopped"))
    source = kernels.text.elementwise({"out": "ttl.math.exp(a)"}, ("a",)).replace(STORED, f"{STORED}        breakpoint()\n")
    with execution.session(silent=True):
        kernels.simulate(source, np.ones((32, 32), np.float32), np.zeros((32, 32), np.float32))


def test_arguments_are_refused(kernels):
    source = kernels.text.elementwise({"out": "ttl.math.exp(a)"}, ("a",)).replace(
        "    @ttl.datamovement()", "        breakpoint(1)\n\n    @ttl.datamovement()", 1
    )
    with pytest.raises(Exception, match="breakpoint takes no arguments"):
        kernels.simulate(source, np.ones((32, 32), np.float32), np.zeros((32, 32), np.float32))
