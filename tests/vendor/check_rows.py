"""Type-checks the kernels of every row of the op table against the headers of the installed ttnn, many in one translation unit.

    python tests/vendor/check_rows.py FOLDER [WORD…] [--arch wormhole_b0|blackhole]

One kernel per dtype and configuration goes through ttnn on the mock device (see ``check_kernels.py``); the others use the headers and
command lines that it made. Kernels stand together only with those that include the same files in the same order, in every thread: a
missing include is found, and so are two headers that a thread only takes in the other order. (Together with other rows' includes,
digamma.h before tile_move_copy.h passed: a third header had brought the unpacker's library before both.)
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import stand_in
from compiler import type_check_command

THREADS = {"math": "UCK_CHLKC_MATH", "pack": "UCK_CHLKC_PACK", "unpack": "UCK_CHLKC_UNPACK"}


@dataclass(frozen=True)
class Row:
    name: str
    program: Any

    @property
    def text(self) -> str:
        return self.program.cpp["compute"]

    @property
    def includes(self) -> tuple[str, ...]:
        return tuple(line for line in self.text.splitlines() if line.startswith("#include"))

    @property
    def configuration(self) -> tuple[Any, ...]:
        config = self.program.config
        return tuple(sorted({buffer.dtype for buffer in self.program.buffers})), config.fp32_dest_acc_en, config.dst_full_sync_en

    def body(self) -> str:
        """The function with its compile-time arguments filled in."""
        thread = next(thread for thread in self.program.threads if thread.role == "compute")
        values = [each.what for each in thread.compile_time_args]
        text = self.text[self.text.index("void kernel_main") :]
        return re.sub(r"get_compile_time_arg_val\((\d+)\)", lambda found: str(values[int(found[1])]), text)


def main(folder: Path, words: list[str], arch: str) -> int:
    stand_in.prepare(folder, arch)
    import mock_device
    import ttnn

    import kernel_corpus
    from tilewright.diagnostics import KernelError
    from tilewright.progress import progress
    from tilewright.runtime.devices import installed_release

    rows: list[Row] = []
    newer: list[str] = []
    target = {"metal": installed_release(), "arch": arch}
    chosen = [kernel for kernel in kernel_corpus.row_kernels() if not words or any(word in kernel.name for word in words)]
    with progress("compiling rows", len(chosen)) as shown:
        for kernel in chosen:
            try:
                rows.append(Row(kernel.name, mock_device.compiled(kernel, folder, target)))
            except KernelError as error:
                assert "or newer" in str(error), str(error)  # the release has no call for it, and the message says which has
                newer.append(kernel.name)
            shown.advance()
    device = ttnn.open_device(device_id=0)
    groups: defaultdict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.configuration].append(row)
    problems: list[str] = []
    with progress("rows through the vendor's headers", len(rows)) as shown:
        for group in groups.values():
            problems += group_problems(ttnn, device, group, folder)
            shown.advance(len(group))
    ttnn.close_device(device)
    print(*problems, f"{len(rows)} kernels, {len(problems)} problems; not in this release: {', '.join(newer) or 'none'}", sep="\n")
    return 1 if problems else 0


def group_problems(ttnn: Any, device: Any, group: list[Row], folder: Path) -> list[str]:
    """The largest kernel is launched; with the commands that ttnn built it by, all of them are compiled."""
    import mock_device

    first = max(group, key=lambda row: len(row.program.buffers))
    problem = mock_device.problem_of(ttnn, device, first.program)
    if problem:
        return [f"{first.name}: {problem}"]
    built = mock_device.units(folder)
    problems: list[str] = []
    for thread, define in THREADS.items():
        unit = next(unit for unit in reversed(built) if f"-D{define}" in unit["arguments"])
        problems += [text for together in sharing(group) for text in checked(together, thread, unit, folder)]
    return problems


def sharing(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Rows with the same includes in the same order."""
    groups: defaultdict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.includes].append(row)
    yield from groups.values()


def checked(rows: Sequence[Row], thread: str, unit: dict[str, Any], folder: Path) -> list[str]:
    """Errors and warnings of one translation unit."""
    place = folder / "rows"
    shutil.rmtree(place, ignore_errors=True)
    (place / thread).mkdir(parents=True)
    for name in ("chlkc_descriptors.h", "defines_generated.h"):
        shutil.copy(Path(unit["cwd"]).parent / name, place / name)
    kernels = [f'namespace kernel_{place} {{\n#line 1 "{row.name}"\n{row.body()}}}\n' for place, row in enumerate(rows)]
    start = [f"#define TRISC_{thread.upper()}", '#include "defines_generated.h"', "void kernel_main();", *rows[0].includes]
    text = "\n".join([*start, *kernels, "void kernel_main() {}\n"])
    (place / f"chlkc_{thread}.cpp").write_text(text, encoding="utf-8")
    command = type_check_command(unit["arguments"], folder)
    done = subprocess.run(command, cwd=place / thread, capture_output=True, text=True)
    found = [line for line in done.stderr.splitlines() if " error: " in line or " warning: " in line or "required from here" in line]
    return found or ([done.stderr] if done.returncode else [])


if __name__ == "__main__":
    given = stand_in.arguments(__doc__)
    sys.exit(stand_in.exit_code(lambda: main(given.folder, given.words, given.arch), quiet=given.quiet))
