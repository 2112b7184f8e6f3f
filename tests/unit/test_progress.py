"""Progress on a pseudo-terminal and on a pipe, by the command line and by itself; what is said when somebody interrupts."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tilewright import progress

WORK = """
import sys, time
from tilewright import progress
progress.SILENT_SECONDS, progress.TICK_SECONDS, progress.LINE_SECONDS = {silent}, 0.02, {line}
sys.modules.update({{name: None for name in {hidden!r}}})
with progress.progress("working", 40) as shown:
    for _ in range(40):
        time.sleep({step})
        shown.advance()
"""


def script(step: float = 0.02, silent: float = 0.1, line: float = 0.2, hidden: tuple[str, ...] = ("rich", "rich.progress", "tqdm")) -> list[str]:
    return [sys.executable, "-c", WORK.format(step=step, silent=silent, line=line, hidden=list(hidden))]


def on_terminal(command: list[str], *, interrupt_after: float = 0.0, word: bytes = b"working", **changes: str) -> tuple[str, int]:
    """What a command writes to a terminal, and its exit code."""
    master, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", **changes}
    process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, env=environment, start_new_session=True)
    os.close(terminal)
    found, started, interrupted = b"", time.monotonic(), False
    while True:
        if interrupt_after and not interrupted and time.monotonic() - started > interrupt_after and word in found:
            process.send_signal(signal.SIGINT)
            interrupted = True
        try:
            data = os.read(master, 65536)
        except OSError:  # the last writer has gone
            break
        if not data:
            break
        found += data
    os.close(master)
    return found.decode(), process.wait()


def test_a_terminal_gets_a_bar_with_rate_and_time_left():
    text, code = on_terminal(script())
    assert code == 0
    assert re.search(r"working \[#+\.+\] \d+ of 40 \(\d+%\), \d+/s, \d+ s left", text)
    assert text.rstrip(" \r").endswith("left") or text.endswith("\r"), "the bar goes when the work is done"


def test_rich_draws_the_bar_where_it_is():
    text, _ = on_terminal(script(hidden=()))
    assert re.search(r"\d+ of 40 \(\d+%\), \d+/s", text)


def test_a_pipe_gets_lines():
    result = subprocess.run(script(), capture_output=True, text=True, check=True)
    assert result.stdout == "" and "\r" not in result.stderr
    lines = result.stderr.splitlines()
    assert 1 <= len(lines) <= 5
    assert all(re.fullmatch(r"working: \d+ of 40 \(\d+%\), \d+/s, \d+ s left", line) for line in lines)


def test_short_work_says_nothing():
    assert on_terminal(script(step=0.001, silent=2.0))[0] == ""
    assert subprocess.run(script(step=0.001, line=10), capture_output=True, text=True, check=True).stderr == ""


def test_an_interrupt_ends_at_once_and_says_how_far_it_came():
    started = time.monotonic()
    text, code = on_terminal(script(step=0.5), interrupt_after=0.5)
    assert code != 0 and time.monotonic() - started < 10
    assert re.search(r"working: stopped at \d+ of 40", text)


def test_quiet_shows_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.01)
    with progress.silenced(), progress.progress("working", 2) as shown:
        time.sleep(0.05)
        shown.advance()
    with progress.progress("working", 2, quiet=True):
        time.sleep(0.05)
    assert capsys.readouterr().err == ""


def test_work_inside_other_work_says_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.02)
    with progress.progress("outer", 2), progress.progress("inner", 2):
        time.sleep(0.2)
    text = capsys.readouterr().err
    assert "outer: " in text and "inner" not in text
    with progress.progress("later", 2):
        time.sleep(0.1)
    assert "later: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("done", "total", "words"),
    [(0, 0, "5 s so far"), (10, 0, "10, 2/s, 5 s so far"), (10, 40, "10 of 40 (25%), 2/s, 15 s left"), (50, 40, "50, 10/s, 5 s so far")],
)
def test_numbers(done: float, total: float, words: str, monkeypatch: pytest.MonkeyPatch):
    now: list[Any] = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    shown = progress.progress("x", total, done=lambda: done)
    now[0] = 105.0
    assert shown.numbers() == words


def test_the_bar_leaves_the_terminal_to_others(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.02)
    with progress.progress("working", 2):
        time.sleep(0.1)
        with progress.paused():
            capsys.readouterr()
            time.sleep(0.2)
            assert capsys.readouterr().err == ""
        time.sleep(0.2)
        progress.say("a line")
    found = capsys.readouterr()
    assert "working: " in found.err and found.out == "a line\n"


def test_an_interrupt_does_not_wait_for_compilers(tmp_path: Path):
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\ntrap '' INT\nexec sleep 60\n")
    slow.chmod(0o755)
    text = f"""
import sys
from tilewright import host_compiler, progress
compiler = host_compiler.Compiler({str(slow)!r}, "")

def part(number):
    with progress.progress(f"part {{number}}", 3):
        print("started", flush=True)
        return compiler.run()

sys.exit(progress.interruptible(lambda: len(host_compiler.at_once(part, [1], 1))))
"""
    process = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None and process.stdout.readline() == "started\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert process.returncode == progress.INTERRUPTED and "part 1: stopped at 0 of 3" in said and "Traceback" not in said


def test_a_fuzzer_says_how_far_it_came():
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, str(root / "benchmarks" / "fuzz_dst.py"), "--ops", "4"]
    text, code = on_terminal(command, interrupt_after=0.1, word=b"problems")
    assert code == progress.INTERRUPTED and "Traceback" not in text
    assert re.search(r"problems.* [\d,]+, [\d,.]+/s, \d+ s so far; [\d,]+ plans checked", text)
    assert re.search(r"problems: stopped at [\d,]+ after \d+ s; [\d,]+ plans checked, next seed \d+", text)


LARGE = '''
import numpy as np
import ttl
from tilewright import progress
from tilewright.sim import work

progress.SILENT_SECONDS, progress.LINE_SECONDS, work.MANY_STEPS = 0.0, 0.05, 0


@ttl.operation(grid=(2, 2))
def large(a, y):
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        for _ in range(1500):
            with a_dfb.wait() as x, y_dfb.reserve() as out:
                out.store(ttl.math.exp(x))

    @ttl.datamovement()
    def read():
        for _ in range(1500):
            with a_dfb.reserve() as block:
                ttl.copy(a[0:1, 0:1], block).wait()

    @ttl.datamovement()
    def write():
        for _ in range(1500):
            with y_dfb.wait() as block:
                x, y_ = ttl.node(dims=2)
                ttl.copy(block, y[x : x + 1, y_ : y_ + 1]).wait()


large(np.ones((32, 32), dtype=np.float32), np.zeros((64, 64), dtype=np.float32))
'''


def test_a_simulation_tells_how_far_it_is(tmp_path: Path):
    file = tmp_path / "large.py"
    file.write_text(LARGE)
    command = [sys.executable, "-m", "tilewright", "run", "--fast", str(file)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    told = [tuple(map(int, found)) for found in re.findall(r"simulating large: ([\d]+) of (\d+) ", shown.replace(",", ""))]
    assert told, shown
    assert all(done <= total for done, total in told) and told == sorted(told) and len({total for _, total in told}) == 1
    command.insert(4, "--quiet")
    assert subprocess.run(command, capture_output=True, text=True, check=True).stderr == ""
