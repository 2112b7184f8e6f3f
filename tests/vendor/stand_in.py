"""A runtime root of ttnn whose compiler is ``compiler.py``: ttnn opens a mock device and builds every kernel through it."""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from compiler import PREFIX, START, type_check_command

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "src"), str(HERE.parent)]  # this checkout, whatever is installed
MOCK_CLUSTERS = {"wormhole_b0": HERE / "mock_cluster_wormhole.yaml", "blackhole": HERE / "mock_cluster_blackhole.yaml"}
CONFIG = Path("/usr/include/x86_64-linux-gnu/c++/12/bits")
COPIED = ("hw", "tt-llk")  # parts of tt_metal with headers the plain compiler needs another spelling in
# Newer compilers judge these only when a template is instantiated; a generic lambda says the same to older ones.
NEVER = re.compile(r"static_assert\(\s*false\s*,\s*((?:\"[^\"]*\"\s*)+)\)\s*;")
# Newer compilers take references to arguments in constants.
CONSTANTS = {
    "device_print_detail::helpers::count_arguments(args...)": "sizeof...(args)",
    "constexpr auto message_size = device_print_detail": "const auto message_size = device_print_detail",
}
UNROLLED = re.compile(r"^\s*#pragma GCC unroll [A-Za-z_].*$", re.MULTILINE)

# What the vendor's compiler refuses and a tolerant one might not: judged where a template is written, and where it is used.
REFUSED = {
    "an ambiguous name in a template that nobody uses": "template <int N> bool body() { int k = N; return f(k); }",
    "an ambiguous name that depends on the argument": "template <class T> bool body(T k) { return f(k); } bool used() { return body(1); }",
    "an assertion in a template that is used": "template <int N> int body() { static_assert(N != 3); return N; } int used() { return body<3>(); }",
    "a shift past the end": "template <int N> unsigned body() { return 1u << N; } unsigned used() { return body<40>(); }",
    "a narrowing constant": "template <int N> int body() { unsigned char c{N}; return c; } int used() { return body<300>(); }",
}
AMBIGUOUS = "namespace a { bool f(int); } namespace b { bool f(int); }\nusing namespace a;\nusing namespace b;\n"


def wheel() -> Path:
    """The folder of the installed ttnn, without importing it: it reads its environment then."""
    found = importlib.util.find_spec("ttnn")
    if found is None or found.origin is None:
        raise SystemExit("ttnn is not installed in this environment")
    return Path(found.origin).parent


def arguments(usage: str | None) -> argparse.Namespace:
    """What every script here takes."""
    parser = argparse.ArgumentParser(description=usage, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=lambda text: Path(text).resolve(), help="where ttnn builds")
    parser.add_argument("words", nargs="*", help="only kernels with one of these in their name")
    parser.add_argument("--arch", choices=MOCK_CLUSTERS, default="wormhole_b0")
    parser.add_argument("--api", choices=("1.0", "2.0"), default="1.0", help="spelling of the kernels")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    return parser.parse_args()


def exit_code(main: Callable[[], int], *, quiet: bool) -> int:
    """Runs a check; an interrupt ends it at once, with a word on how far it came."""
    from tilewright.progress import interruptible, silenced

    with silenced(quiet):
        return interruptible(main)


def prepare(folder: Path, arch: str) -> None:
    """Make the root in ``folder`` and point the environment at it. Call before the first import of ttnn."""
    source = wheel()
    root = folder / "root"
    folder.mkdir(parents=True, exist_ok=True)
    if root.exists():
        shutil.rmtree(root)
    (root / "tt_metal").mkdir(parents=True)
    (root / "runtime").mkdir()
    (root / "ttnn").symlink_to(source / "ttnn")
    for part in (source / "tt_metal").iterdir():
        target = root / "tt_metal" / part.name
        if part.name in COPIED:
            copy_respelled(part, target)
        else:
            target.symlink_to(part)
    (root / "runtime" / "hw").symlink_to(source / "runtime" / "hw")
    programs = root / "runtime" / "sfpi" / "compiler" / "bin"
    programs.mkdir(parents=True)
    for name in ("g++", "gcc"):
        (programs / f"riscv-tt-elf-{name}").symlink_to(HERE / "compiler.py")
    for name in ("nm", "objcopy", "objdump", "readelf"):
        found = shutil.which(f"{PREFIX}{name}")
        if found is None:
            raise SystemExit(f"{PREFIX}{name} is missing: apt-get install gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf")
        (programs / f"riscv-tt-elf-{name}").symlink_to(found)
    prepare_compiler(folder, source)
    os.environ.update(
        TILEWRIGHT_VENDOR_FOLDER=str(folder),
        TT_METAL_RUNTIME_ROOT=str(root),
        TT_METAL_HOME=str(root),
        TT_METAL_CACHE=str(folder / "cache"),
        TT_METAL_MOCK_CLUSTER_DESC_PATH=str(MOCK_CLUSTERS[arch]),
        TT_METAL_SLOW_DISPATCH_MODE="1",
        TT_METAL_LOGGER_LEVEL="FATAL",
    )


def prepare_compiler(folder: Path, source: Path) -> None:
    (folder / "config").mkdir(exist_ok=True)
    shutil.copytree(CONFIG, folder / "config" / "bits", dirs_exist_ok=True)
    (folder / "config" / "bits" / "os_defines.h").write_text("")  # what it asks of the host's C library is not there
    version = re.search(r"sfpi_version='([^']+)'", (source / "tt_metal" / "sfpi-version").read_text())
    assert version is not None
    (folder / "version").write_text(version[1])
    (folder / "start.s").write_text(START)
    command = [f"{PREFIX}as", "-march=rv32im", "-mabi=ilp32", str(folder / "start.s"), "-o", str(folder / "start.o")]
    subprocess.run(command, check=True)
    check_compiler(folder)


def check_compiler(folder: Path) -> None:
    """A check that accepts everything is none: each of these, in a header of the vendor's, must be refused."""
    place = folder / "refused"
    (place / "include").mkdir(parents=True, exist_ok=True)
    for what, text in REFUSED.items():
        (place / "include" / "header.h").write_text(f"{AMBIGUOUS}{text}\n")
        (place / "kernel.cpp").write_text('#include "header.h"\n')
        command = type_check_command([f"-I{place / 'include'}", "-std=c++17", "-Wall", "-Werror", str(place / "kernel.cpp")], folder)
        if subprocess.run(command, capture_output=True).returncode == 0:
            raise SystemExit(f"the compiler of this check accepts {what}")


def copy_respelled(source: Path, target: Path) -> None:
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("tests", "docs", "infra", "perf"))
    for path in target.rglob("*.h"):
        text = path.read_text(encoding="utf-8")
        changed = UNROLLED.sub("", NEVER.sub(r"[](auto never) { static_assert(sizeof(never) == 0, \1); }(0);", text))
        for newer, older in CONSTANTS.items():
            changed = changed.replace(newer, older)
        if changed != text:
            path.write_text(changed, encoding="utf-8")
