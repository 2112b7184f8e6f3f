"""Type-checks kernels spelled for an older release against its headers, by the command lines of a newer build.

    python tests/vendor/check_older.py FOLDER [WORD…] --older …/site-packages/ttnn --metal 0.69 [--arch wormhole_b0|blackhole]

The mock device of old releases builds nothing. So ``check_kernels.py`` must have run in FOLDER with a newer ttnn: its command lines and
generated headers are taken, and the headers of the older wheel. Structural and real kernels of the corpus, each if it has a call that no
kernel before it had. What headers of the vector unit say among themselves does not count: the vector language of old releases has other
names than ``include/sfpi.h``.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import stand_in
from compiler import type_check_command

COMPUTE = {"unpack": "UCK_CHLKC_UNPACK", "pack": "UCK_CHLKC_PACK", "math": "UCK_CHLKC_MATH"}
PROCESSORS = {**COMPUTE, "reader": "COMPILE_FOR_NCRISC", "writer": "COMPILE_FOR_BRISC"}
GENERATED = ("chlkc_descriptors.h", "defines_generated.h")
ARGUMENTS = "-DKERNEL_COMPILE_TIME_ARGS="
ACCESSOR = (2, 2048)  # what an interleaved tensor in DRAM gives
VECTOR = re.compile(r"sfpu|sfpi")  # headers and names of the vector language
CALL = re.compile(r"\b[a-z]\w*(?:<[^<>()]*>)?(?=\()")


def main(folder: Path, words: list[str], older: Path, metal: str, arch: str) -> int:
    import mock_device

    from tilewright.progress import progress, say

    built = mock_device.units(folder)
    units = {name: next(unit for unit in reversed(built) if f"-D{define}" in unit["arguments"]) for name, define in PROCESSORS.items()}
    root = older_root(folder, older)
    count = failed = 0
    with progress(f"kernels for ttnn {metal}") as shown:
        for name, program in programs(folder, words, {"metal": metal, "arch": arch}):
            found = [text for processor, unit in units.items() for text in problems(program, processor, unit, folder, root)]
            count, failed = count + 1, failed + bool(found)
            for text in found:
                say(f"{name}: {text}")
            shown.tell(count, 0, f"{failed} failed, last {name}")
    print(f"{count} kernels for ttnn {metal}, {failed} failed")
    return 1 if failed or not count else 0


def older_root(folder: Path, older: Path) -> Path:
    """Headers of the older wheel, respelled for the plain compiler as those of the newer one are."""
    root = folder / "older"
    if not root.exists():
        (root / "tt_metal").mkdir(parents=True)
        for part in (older / "tt_metal").iterdir():
            if part.name in stand_in.COPIED:
                stand_in.copy_respelled(part, root / "tt_metal" / part.name)
            else:
                (root / "tt_metal" / part.name).symlink_to(part)
    return root


def programs(folder: Path, words: list[str], target: dict[str, str]) -> Iterator[tuple[str, Any]]:
    import mock_device

    import kernel_corpus
    from tilewright.diagnostics import KernelError

    seen: set[str] = set()
    for kernel in [*kernel_corpus.structural_kernels(), *kernel_corpus.real_kernels()]:
        if words and not any(word in kernel.name for word in words):
            continue
        try:
            program = mock_device.compiled(kernel, folder, target)
        except KernelError:
            continue  # the release has no call for it, and the message says so
        calls = {call for text in program.cpp.values() for call in CALL.findall(text)}
        if not calls <= seen:
            seen |= calls
            yield kernel.name, program


def problems(program: Any, processor: str, unit: dict[str, Any], folder: Path, root: Path) -> list[str]:
    from tilewright.runtime.descriptor import compile_time_arguments

    role = "compute" if processor in COMPUTE else processor
    thread = next((each for each in program.threads if each.role == role), None)
    if thread is None:
        return []
    given = compile_time_arguments(thread, [ACCESSOR] * len(program.tensors))
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place = Path(name)
        (place / processor).mkdir()
        for generated in (Path(unit["cwd"]).parent / file for file in GENERATED):
            if generated.exists():
                (place / generated.name).write_text(generated.read_text(encoding="utf-8"), encoding="utf-8")
        if role == "compute":
            start, file = f'#define TRISC_{processor.upper()}\n#include "defines_generated.h"\n', f"chlkc_{processor}.cpp"
        else:
            start, file = "void kernel_main();\n", "kernel_includes.hpp"
        (place / file).write_text(f"{start}{program.cpp[role]}", encoding="utf-8")
        arguments = [word.replace(str(folder / "root"), str(root)) for word in unit["arguments"] if not word.startswith(ARGUMENTS)]
        arguments = [f"-I{root / 'tt_metal'}", ARGUMENTS + ",".join(map(str, given)), *arguments]
        done = subprocess.run(type_check_command(arguments, folder), cwd=place / processor, capture_output=True, text=True)
    lines = [line for line in done.stderr.splitlines() if " error: " in line or " warning: " in line]
    return [f"{processor}: {line}" for line in lines if file in line or (" error: " in line and not VECTOR.search(line))]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=lambda text: Path(text).resolve(), help="where check_kernels.py has built with a newer ttnn")
    parser.add_argument("words", nargs="*", help="only kernels with one of these in their name")
    parser.add_argument("--older", type=lambda text: Path(text).resolve(), required=True, help="the folder of the older ttnn")
    parser.add_argument("--metal", required=True, help="its release")
    parser.add_argument("--arch", choices=stand_in.MOCK_CLUSTERS, default="wormhole_b0")
    given = parser.parse_args()
    sys.exit(main(given.folder, given.words, given.older, given.metal, given.arch))
