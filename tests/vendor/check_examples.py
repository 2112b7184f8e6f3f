"""Runs every example with ``--device`` and every emitted ``runner.py``, each in a process of its own, on the mock device.

    python tests/vendor/check_examples.py FOLDER [WORD…] [--arch wormhole_b0|blackhole]

The mock device computes nothing, so a script may fail, but only where it compares results; each of its kernels must have been launched.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import stand_in

ROOT = Path(__file__).resolve().parents[2]
LAUNCHED = re.compile(r"^\w+: grid \S+, device ", re.MULTILINE)
COMPARES = "AssertionError"


def main(folder: Path, words: list[str], arch: str) -> int:
    stand_in.prepare(folder, arch)
    from tilewright.progress import progress, say

    os.environ["PYTHONPATH"] = str(ROOT / "src")
    examples = [path for path in sorted((ROOT / "examples").rglob("*.py")) if not words or any(word in path.name for word in words)]
    failed = 0
    with progress("examples", len(examples)) as shown:
        for number, example in enumerate(examples, 1):
            problems = [problem for problem in (device_problem(example), *runner_problems(example, folder, arch)) if problem]
            failed += bool(problems)
            say(f"{example.relative_to(ROOT)}: {'; '.join(problems) or 'launched'}")
            shown.tell(number, len(examples), f"{failed} failed")
    print(f"{len(examples)} examples, {failed} failed")
    return 1 if failed else 0


def output(*command: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, cwd=ROOT)
    return done.returncode, done.stdout + done.stderr


def device_problem(example: Path) -> str:
    code, text = output("-m", "tilewright", "run", "--device", str(example))
    if not LAUNCHED.search(text) or (code and COMPARES not in text):
        return f"--device: {last_lines(text)}"
    return ""


def runner_problems(example: Path, folder: Path, arch: str) -> list[str]:
    """Kernels that take numbers cannot run alone, and say so."""
    from tilewright.runtime.devices import installed_release

    target = folder / "runners" / example.stem
    settings = ["--metal", installed_release(), "--arch", arch]
    code, text = output("-m", "tilewright", "compile", str(example), "-o", str(target), "--emit-runner", *settings)
    if code:
        return [f"compile: {last_lines(text)}"]
    problems: list[str] = []
    for runner in sorted(target.rglob("runner.py")):
        code, text = output(str(runner))
        if code and not (code == 2 and "call run(...) from Python" in text):
            problems.append(f"{runner.parent.name}/runner.py: {last_lines(text)}")
    return problems


def last_lines(text: str) -> str:
    return " | ".join([line.strip() for line in text.splitlines() if line.strip()][-8:])


if __name__ == "__main__":
    given = stand_in.arguments(__doc__)
    sys.exit(stand_in.exit_code(lambda: main(given.folder, given.words, given.arch), quiet=given.quiet))
