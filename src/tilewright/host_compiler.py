"""The system's C++ compiler, and a folder for what it makes, each piece once per content."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tilewright.records import record


@record
class Compiler:
    path: str
    version: str

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([self.path, *arguments], capture_output=True, text=True, check=False)


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
