"""The C++ of every example, as it stands in ``tests/golden_cpp`` to be read in review.

    python tests/golden_files.py        # writes the folder anew (make golden)

``golden_cpp/EXAMPLE/KERNEL/CHIP/ROLE.cpp``, with default options. Blackhole's folder holds only files that differ from Wormhole's.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "golden_cpp"
# The gallery is held by its results and pages: too much text to be read in review.
EXAMPLES = [path for path in sorted((ROOT / "examples").rglob("*.py")) if path.parent.name != "gallery"]
CHIPS = ("wormhole_b0", "blackhole")  # the first is complete


def programs(example: Path, arch: str) -> list[Any]:
    """What the example's kernels compile to; its host code runs, its kernels do not."""
    from tilewright import execution
    from tilewright.cli import invocation

    found: list[Any] = []
    overrides = {"arch": arch}
    compiled = execution.session(mode=execution.COMPILE, overrides=overrides, on_compiled=(found.append,), cache=False)
    with compiled, contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(AssertionError):  # nothing was computed
        invocation.run_script(str(example), [])
    return list({id(program): program for program in found}.values())


def files(example: Path) -> dict[str, str]:
    """Texts by their place below the folder. A kernel that is compiled for several tensors is numbered."""
    texts: dict[str, str] = {}
    stem = str(example.relative_to(ROOT / "examples").with_suffix(""))
    complete: dict[str, str] = {}
    for arch in CHIPS:
        count: dict[str, int] = {}
        for program in programs(example, arch):
            count[program.name] = count.get(program.name, 0) + 1
            number = "" if count[program.name] == 1 else f"-{count[program.name]}"
            for role, text in program.cpp.items():
                kernel = f"{stem}/{program.name}{number}"
                place = f"{kernel}/{role}.cpp"
                if complete.setdefault(place, text) != text or arch == CHIPS[0]:
                    texts[f"{kernel}/{arch}/{role}.cpp"] = text
    return texts


def stored(example: Path) -> dict[str, str]:
    below = FOLDER / example.relative_to(ROOT / "examples").with_suffix("")
    return {str(path.relative_to(FOLDER)): path.read_text(encoding="utf-8") for path in sorted(below.rglob("*.cpp"))}


def main() -> int:
    shutil.rmtree(FOLDER, ignore_errors=True)
    for example in EXAMPLES:
        for place, text in files(example).items():
            path = FOLDER / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    print(f"{len(list(FOLDER.rglob('*.cpp')))} files in {FOLDER.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
