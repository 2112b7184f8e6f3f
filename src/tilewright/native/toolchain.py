"""Finds the system C++ compiler and compiles runner and kernels, each once per content."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tilewright.native.errors import KernelCompileError, NativeError, NoCompilerError
from tilewright.native.header_tree import INCLUDE, tree_digest, write_tree

SOURCES = Path(__file__).parent / "src"
RUNNER_FLAGS = ("-std=c++17", "-O3", "-ffp-contract=off", "-fno-strict-aliasing", "-pthread")
KERNEL_FLAGS = (
    "-std=c++17", "-O1", "-shared", "-fPIC", "-w", "-fno-strict-aliasing", "-fno-exceptions", "-fno-rtti",
    "-fno-asynchronous-unwind-tables", "-fvisibility=hidden", "-nostartfiles",
)  # fmt: skip
GCC_KERNEL_FLAGS = ("-fno-gnu-unique",)  # threads load the same template twice and must not share its statics


@dataclass(frozen=True)
class Compiler:
    path: str
    version: str

    @property
    def kernel_flags(self) -> tuple[str, ...]:
        return KERNEL_FLAGS if "clang" in self.version.lower() else KERNEL_FLAGS + GCC_KERNEL_FLAGS


@cache
def find_compiler() -> Compiler:
    """The compiler named by CXX, else g++, c++ or clang++."""
    for name in filter(None, (os.environ.get("CXX"), "g++", "c++", "clang++")):
        path = shutil.which(name)
        if path is None:
            continue
        version = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout.split("\n")[0]
        return Compiler(path, version)
    raise NoCompilerError("a native run needs a C++17 compiler: install g++ (apt-get install g++) or set CXX")


def cache_folder() -> Path:
    """Where compiled objects live: the user's cache, or a temporary folder if that cannot be written."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(base) / "tilewright" / "native"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(tempfile.gettempdir()) / f"tilewright-native-{os.getuid()}"
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def _publish(temporary: Path, final: Path) -> None:
    """Moves a finished file or folder into the cache; a twin made meanwhile by another process is as good."""
    try:
        os.replace(temporary, final)
    except OSError:
        if not final.exists():
            raise


@cache
def include_folder(release: int) -> Path:
    """The generated include tree of one release."""
    folder = cache_folder() / f"include-{tree_digest(release)}"
    if not folder.exists():
        temporary = Path(tempfile.mkdtemp(dir=cache_folder()))
        write_tree(release, temporary)
        _publish(temporary, folder)
        shutil.rmtree(temporary, ignore_errors=True)
    return folder


def _run_compiler(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


@cache
def runner_path() -> Path:
    """The host runner, compiled on first use."""
    compiler = find_compiler()
    files = sorted((*SOURCES.rglob("*.cpp"), *SOURCES.rglob("*.h"), INCLUDE / "tw" / "runtime.h"))
    content = "".join(path.read_text() for path in files)
    runner = cache_folder() / f"runner-{_digest(compiler.version, *RUNNER_FLAGS, content)}"
    if runner.exists():
        return runner
    with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
        units = sorted(SOURCES.rglob("*.cpp"))
        objects = [Path(folder) / f"{unit.parent.name}-{unit.stem}.o" for unit in units]

        def compile_unit(pair: tuple[Path, Path]) -> subprocess.CompletedProcess[str]:
            return _run_compiler([compiler.path, *RUNNER_FLAGS, "-c", str(pair[0]), "-o", str(pair[1])])

        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            results = list(pool.map(compile_unit, zip(units, objects, strict=True)))
        linked = Path(folder) / "runner"
        link = [compiler.path, *RUNNER_FLAGS, "-rdynamic", *map(str, objects), "-o", str(linked), "-ldl"]
        failed = [result for result in results if result.returncode] or [_run_compiler(link)]
        if failed[0].returncode:
            raise NativeError(f"the host runner does not compile with {compiler.version}:\n{failed[0].stderr}")
        _publish(linked, runner)
    return runner


def compile_kernel(name: str, text: str, release: int) -> Path:
    """One translation unit -> one shared object in the cache."""
    compiler = find_compiler()
    headers = include_folder(release)
    library = cache_folder() / f"kernel-{_digest(compiler.version, headers.name, *compiler.kernel_flags, text)}.so"
    if library.exists():
        return library
    with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
        source = Path(folder) / "kernel.cpp"
        source.write_text(text)
        built = Path(folder) / "kernel.so"
        command = [compiler.path, *compiler.kernel_flags, f"-I{headers}", f"-I{INCLUDE}", str(source), "-o", str(built)]
        result = _run_compiler(command)
        if result.returncode:
            raise KernelCompileError(name, result.stderr.strip())
        _publish(built, library)
    return library
