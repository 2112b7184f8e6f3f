#!/usr/bin/env python3
"""Takes the place of the vendor's RISC-V compiler: type-checks kernels with a plain RISC-V g++, links an empty program.

ttnn calls it with its own command lines, generated headers and arguments, so a kernel that passes here is one whose text, includes,
template arguments and constants agree with the headers of the installed ttnn. Firmware is not compiled. What it cannot see: code
generation, immediates of instructions, and the vector language itself (``include/sfpi.h`` only has its names).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

PREFIX = "riscv64-unknown-elf-"
STANDARD_LIBRARY = Path("/usr/include/c++/12")
C_LIBRARY = Path("/usr/lib/picolibc/riscv64-unknown-elf/include")
HERE = Path(__file__).resolve().parent
START = """.section .start,"ax"
.globl _start
_start:
  lui a0, %hi(word)
  addi a0, a0, %lo(word)
  ret
.data
word: .word 1
"""
PRINTING = ("-DDEBUG_PRINT_ENABLED",)
DROPPED = ("-ftt", "-mcpu", "-flto", "-g", "-MMD", "-O", "-Winvalid-pch", "-Wno-error=invalid-pch", "--param=min-pagesize")
# About the vendor's own headers: attributes that only its compiler has, and how its prints copy a slice of a tile.
THEIRS = ("-Wno-attributes", "-Wno-address-of-packed-member")
DROPPED_WITH_VALUE = ("-o", "-MF", "-include")


def type_check_command(arguments: Sequence[str], folder: Path) -> list[str]:
    """The vendor's command line for g++. Its headers stay ordinary ones: about system headers g++ does not warn, and warnings are errors."""
    kept: list[str] = []
    skip = False
    for word in arguments:
        if skip:
            skip = False
        elif word in DROPPED_WITH_VALUE:
            skip = True
        elif word != "-c" and not word.startswith(DROPPED):
            kept.append(word)
    libraries = [f"-isystem{path}" for path in (HERE / "include", STANDARD_LIBRARY, folder / "config", C_LIBRARY)]
    return [f"{PREFIX}g++", "-march=rv32im", "-mabi=ilp32", "-fsyntax-only", "-O1", "-fmax-errors=5", *libraries, *kept, *THEIRS]


def compile_unit(arguments: Sequence[str], folder: Path) -> int:
    target = Path(arguments[arguments.index("-o") + 1])
    if "-MF" in arguments:
        Path(arguments[arguments.index("-MF") + 1]).write_text(f"{target}:\n")
    if "-DKERNEL_BUILD" in arguments:
        command = type_check_command([*arguments, *PRINTING] if prints() else arguments, folder)
        done = subprocess.run(command, capture_output=True, text=True)
        sys.stderr.write(done.stderr)
        record(folder, done.returncode, done.stderr)
        if done.returncode:
            return done.returncode
    target.write_bytes((folder / "start.o").read_bytes())
    return 0


def prints() -> bool:
    """Whether the kernel prints: without a console, which a mock device has not, ttnn leaves its prints out."""
    files = [path for path in Path.cwd().parent.iterdir() if path.suffix in (".cpp", ".hpp")]
    return any(header in path.read_text(encoding="utf-8") for path in files for header in ("debug/dprint.h", "debug/device_print.h"))


def record(folder: Path, status: int, messages: str) -> None:
    entry = {"cwd": os.getcwd(), "arguments": sys.argv[1:], "status": status, "messages": messages}
    with (folder / "units.jsonl").open("a") as file:
        file.write(json.dumps(entry) + "\n")


def link(arguments: Sequence[str], folder: Path) -> int:
    command = [f"{PREFIX}ld", "-m", "elf32lriscv", "-z", "max-page-size=16", "-z", "common-page-size=16"]
    for word in arguments:
        if word.startswith("-L"):
            command.append(word)
        elif word.startswith("-T"):
            command += ["-T", word[2:]]
        elif word.startswith(("-Wl,--emit-relocs", "-Wl,--just-symbols", "-Wl,--defsym")):
            command += word.split(",")[1:]
    return subprocess.run([*command, str(folder / "start.o"), "-o", arguments[arguments.index("-o") + 1]]).returncode


def main(arguments: Sequence[str]) -> int:
    folder = Path(os.environ["TILEWRIGHT_VENDOR_FOLDER"])
    if {"--version", "-dumpversion", "-dumpfullversion"} & set(arguments):
        print(f"riscv-tt-elf-g++ (sfpi:{(folder / 'version').read_text()}) 15.1.0")
        return 0
    if "-o" not in arguments:
        return 0
    if "c++-header" in arguments:
        Path(arguments[arguments.index("-o") + 1]).write_bytes(b"")
        return 0
    return compile_unit(arguments, folder) if "-c" in arguments else link(arguments, folder)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
