"""The system's C++ compiler, and a folder for what it makes, each piece once per content."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import TypeVar
from weakref import WeakSet

from tilewright.records import record

T = TypeVar("T")
R = TypeVar("R")


@record
class Compiler:
    path: str
    version: str

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [self.path, *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
        _running.add(process)
        try:
            said, complaint = process.communicate()
        finally:
            _running.discard(process)
        if process.returncode == -signal.SIGINT or process in _ended:
            raise KeyboardInterrupt  # of the thread that waited for it
        return subprocess.CompletedProcess(command, process.returncode, said, complaint)


_running: set[subprocess.Popen[str]] = set()
_ended: WeakSet[subprocess.Popen[str]] = WeakSet()  # by us, since somebody interrupted


def at_once(work: Callable[[T], R], items: Iterable[T], workers: int) -> list[R]:
    """``work`` on all items, in threads. Whoever interrupts need not wait for the compilers that run."""
    with ThreadPoolExecutor(workers) as pool:
        started = [pool.submit(copy_context().run, work, item) for item in items]
        try:
            return [each.result() for each in started]
        except KeyboardInterrupt:
            for each in started:
                each.cancel()
            for process in list(_running):
                _ended.add(process)
                process.kill()
            raise


def system_compiler() -> Compiler | None:
    """The compiler named by CXX, else g++, c++ or clang++."""
    for name in filter(None, (os.environ.get("CXX"), "g++", "c++", "clang++")):
        path = shutil.which(name)
        if path is None:
            continue
        version = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout.split("\n")[0]
        return Compiler(path, version)
    return None


def cache_folder(purpose: str = "native") -> Path:
    """Where compiled objects live: the user's cache, or a temporary folder if that cannot be written."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(base) / "tilewright" / purpose
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(tempfile.gettempdir()) / f"tilewright-{purpose}-{os.getuid()}"
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def publish(temporary: Path, final: Path) -> None:
    """Moves a finished file or folder into the cache; a twin made meanwhile by another process is as good."""
    try:
        os.replace(temporary, final)
    except OSError:
        if not final.exists():
            raise
