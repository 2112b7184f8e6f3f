"""The tree in figures: rooms, files a kernel's compilation enters, import cycles between rooms, and what stands twice on purpose.

    python benchmarks/house.py [ROOT]

ROOT is another checkout to look at, for a comparison; its own code runs. A room is a folder of ``src/tilewright``, or a file beside
them. A file is entered when one of its functions is called while `tilewright compile EXAMPLE` runs; importing it is not enough,
and neither is what an import runs of the file itself: bodies of classes, and comprehensions beside functions. Those are counted apart.
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import room_graph

HERE = Path(__file__).resolve()
EXAMPLES = ("02_fused.py", "10_matmul.py")
SUFFIXES = (".py", ".cpp", ".h")
TWICE = "## What stands twice"  # the section of ARCHITECTURE.md that lists it


def room_of(path: Path, package: Path) -> str:
    return path.relative_to(package).parts[0].removesuffix(".py")


def sizes(package: Path) -> dict[str, list[int]]:
    """Python files, Python lines, how many of them are code, lines of C++, by room; files beside the folders are one row."""
    rows: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for path in sorted(package.rglob("*")):
        if path.suffix not in SUFFIXES:
            continue
        row = rows["(files beside them)" if path.parent == package else room_of(path, package)]
        text = path.read_text(encoding="utf-8")
        lines = len(text.splitlines())
        if path.suffix == ".py":
            row[0] += 1
            row[1] += lines
            row[2] += code_lines(text)
        else:
            row[3] += lines
    return rows


def code_lines(text: str) -> int:
    """Lines that are neither blank nor a comment, a docstring or an import."""
    tree = ast.parse(text)
    other: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            other.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node, clean=False) is not None:
            text_of = node.body[0]
            other.update(range(text_of.lineno, (text_of.end_lineno or text_of.lineno) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(number not in other and bool(line.strip()) and not line.lstrip().startswith("#") for number, line in lines)


def entered(root: Path, example: str) -> tuple[list[str], list[str]]:
    """Files of the package with a function that was called, and those that were only imported. A process of its own: nothing may be compiled or imported before."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(HERE), "--profile", str(root), example, folder]
        done = subprocess.run(command, capture_output=True, text=True, cwd=root)
    if done.returncode:
        raise SystemExit(done.stderr)
    called, imported = done.stdout.split("\n--files--\n")[1:]
    return called.split(), imported.split()


def profile(root: Path, example: str, folder: str) -> int:
    """What `entered` runs: the command under a profiler."""
    sys.path.insert(0, str(root / "src"))
    package = str(root / "src" / "tilewright")
    called: set[str] = set()
    imported: set[str] = set()

    def note(frame: object, event: str, _argument: object) -> None:
        if event == "call":
            code = frame.f_code  # type: ignore[attr-defined]
            if code.co_filename.startswith(package):
                is_function = code.co_flags & inspect.CO_OPTIMIZED and (code.co_name[0] != "<" or code.co_name == "<lambda>")
                (called if is_function else imported).add(code.co_filename)

    from tilewright.cli.main import main

    sys.setprofile(note)
    try:
        status = main(["compile", str(root / "examples" / example), "-o", folder, "--no-cache"])
    finally:
        sys.setprofile(None)
    for names in (called, imported - called):
        print("\n--files--\n" + "\n".join(sorted(str(Path(name).relative_to(package)) for name in names)))
    return status


def twice(root: Path) -> list[str]:
    """Rows of the table in ARCHITECTURE.md; every file it names must be there."""
    text = (root / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = text.partition(TWICE)[2].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    for name in re.findall(r"`([^`]+\.(?:py|cpp|h))`", "\n".join(rows)):
        if not (root / "src" / "tilewright" / name).exists():
            raise SystemExit(f"ARCHITECTURE.md names {name}, which is not there")
    return rows


def main(root: Path) -> int:
    package = root / "src" / "tilewright"
    rows = sizes(package)
    print(f"{'room':<22}{'files':>7}{'Python lines':>15}{'of them code':>15}{'C++ lines':>12}")
    for room, (files, lines, code, other) in sorted(rows.items(), key=lambda item: -item[1][1]):
        print(f"{room:<22}{files:>7}{lines:>15}{code:>15}{other:>12}")
    total = [sum(column) for column in zip(*rows.values(), strict=True)]
    print(f"{'all':<22}{total[0]:>7}{total[1]:>15}{total[2]:>15}{total[3]:>12}\n")
    for example in EXAMPLES:
        names, imported = entered(root, example)
        by_room: defaultdict[str, int] = defaultdict(int)
        for name in names:
            by_room[Path(name).parts[0].removesuffix(".py") if "/" in name else "(beside)"] += 1
        print(f"{example} enters {len(names)} files: {', '.join(f'{room} {count}' for room, count in sorted(by_room.items()))}")
        print(f"{'':<{len(example)}} imports {len(imported)} more")
    edges = room_graph.room_graph(package)
    groups = room_graph.cycles(edges)
    print(f"\n{len(groups)} groups of rooms that import each other")
    for group in groups:
        print(f"  {', '.join(group)}")
        for room in group:
            print(f"    {room} -> {', '.join(sorted(edges[room] & set(group)))}")
    print(f"\nkept twice ({len(twice(root))}):", *twice(root), sep="\n")
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--profile"]:
        sys.exit(profile(Path(sys.argv[2]), sys.argv[3], sys.argv[4]))
    sys.exit(main(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else HERE.parents[1]))
