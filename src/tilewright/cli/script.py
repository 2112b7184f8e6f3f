"""Runs the user's script in this process, with or without stand-in modules."""

from __future__ import annotations

import contextlib
import runpy
import sys
from collections.abc import Generator, Sequence
from pathlib import Path

from tilewright.lang import standin, standin_torch


def missing_file(path: str) -> str:
    """What is wrong with ``path``, or nothing."""
    if not Path(path).exists():
        return f"no such file: {path}"
    if Path(path).is_dir():
        return f"is a directory: {path}"
    return ""


@contextlib.contextmanager
def as_main(script: str, arguments: Sequence[str]) -> Generator[None, None, None]:
    """``sys.argv`` and ``sys.path`` as Python sets them for a script."""
    argv, path = sys.argv, sys.path[:]
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path(script).resolve().parent))
    try:
        yield
    finally:
        sys.argv = argv
        sys.path[:] = path


def run_script(script: str, arguments: Sequence[str], *, packages: Sequence[str] = standin.PACKAGES) -> int:
    """Runs ``script`` as ``__main__`` and returns its exit code; its exceptions pass through."""
    with standin.installed(packages), _cuda(packages), as_main(script, arguments):
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as stop:
            return exit_code(stop)
    return 0


def _cuda(packages: Sequence[str]) -> contextlib.AbstractContextManager[None]:
    """Scripts for a GPU name it; where the language is ours, so is the device."""
    return standin_torch.installed() if "tilelang" in packages else contextlib.nullcontext()


def exit_code(stop: SystemExit) -> int:
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code
    print(stop.code, file=sys.stderr)
    return 1
