"""The tree is the flow: who may import whom, how long a file may be, and names that say nothing."""

from __future__ import annotations

import ast
import functools
import sys
from pathlib import Path

import pytest

import room_graph
from tilewright.pipeline import PASS_NAMES

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "tilewright"
FILES = sorted(PACKAGE.rglob("*.py"))
LIMIT = 600
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "misc", "common", "core", "experimental"}
OPTIONAL = {"torch", "ttnn", "tilelang"}


@functools.cache
def imports(file: Path) -> set[str]:
    """Full names of all modules a file imports, wherever in it the import stands."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            found.add(node.module or "")
            found |= {f"{node.module}.{name.name}" for name in node.names}
    return found


def top_level_imports(file: Path) -> set[str]:
    """Root names of what a file imports when it is imported itself."""
    found: set[str] = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    return found


def part(file: Path) -> str:
    """Folder below the package, or the file's own name at the top."""
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def uses(file: Path, *parts: str) -> set[str]:
    wanted = tuple(f"tilewright.{name}" for name in parts)
    return {name for name in imports(file) if name in wanted or name.startswith(tuple(f"{one}." for one in wanted))}


def in_part(*names: str) -> list[Path]:
    return [file for file in FILES if part(file) in names]


def offenders(files: list[Path], *forbidden: str) -> dict[str, set[str]]:
    found = {str(file.relative_to(PACKAGE)): uses(file, *forbidden) for file in files}
    return {name: used for name, used in found.items() if used}


def test_the_package_was_found():
    assert len(FILES) > 50


def test_dst_imports_the_standard_library_and_records_only():
    """`records.py` itself needs nothing else: the two stand alone."""
    records = PACKAGE / "records.py"
    for file in [*in_part("dst"), records]:
        roots = {name.partition(".")[0] for name in imports(file)} - {"tilewright", "typing_extensions"}
        assert roots <= set(sys.stdlib_module_names), file
        allowed = set() if file == records else uses(file, "dst", "records")
        assert {name for name in imports(file) if name.startswith("tilewright")} == allowed, file


def test_only_runtime_imports_ttnn():
    for file in FILES:
        if part(file) != "runtime":
            assert not {name for name in imports(file) if name == "ttnn" or name.startswith("ttnn.")}, file


def test_optional_packages_are_imported_late():
    for file in FILES:
        assert not top_level_imports(file) & OPTIONAL, file


def test_report_reads_only_the_trace():
    """The pages of ops and of errors are no views of a compilation: they show those tables."""
    for file in in_part("report"):
        ours = {name for name in imports(file) if name.startswith("tilewright.")}
        assert ours <= uses(file, "report", "trace") or file.name in ("ops_page.py", "errors_page.py"), file


def test_nobody_imports_the_command_line():
    assert not offenders([file for file in FILES if part(file) not in ("cli", "__main__")], "cli")


def test_dialects_stand_below_everything_that_transforms_them():
    above = ("frontend", "lang", "emit", "sim", "native", "runtime", "report", "compiler")
    assert not offenders(in_part("dialects"), *above, "passes", "pipeline")


def test_the_language_knows_neither_front_end_nor_compiler():
    above = ("frontend", "builder", "compiler", "pipeline", "passes", "execution", "cache", "jit", "ttl", "tilelang")
    assert not offenders(in_part("lang"), *above)


def test_the_builder_knows_no_python_syntax():
    """Both front ends make the same ops with it."""
    assert not offenders(in_part("builder"), "frontend", "emit", "sim", "native", "runtime", "report", "execution", "compiler")
    assert not {str(file) for file in in_part("builder") if "ast" in imports(file)}


def test_passes_know_neither_source_nor_target():
    assert not offenders(in_part("passes"), "frontend", "lang", "emit", "sim", "native", "runtime", "report", "execution")


@pytest.mark.parametrize("around", [PACKAGE, PACKAGE / "passes"], ids=["tilewright", "passes"])
def test_no_two_rooms_import_each_other(around: Path):
    assert not room_graph.cycles(room_graph.room_graph(around))


def test_no_pass_imports_another():
    """What two passes share stands in neither."""
    passes = {f"tilewright.passes.{name.replace('-', '_')}" for name in PASS_NAMES}
    for file in (PACKAGE / "passes").rglob("*.py"):
        assert not imports(file) & passes, file


def test_the_architecture_page_draws_the_graph():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert room_graph.drawn(text) == room_graph.drawing(), "run python tests/room_graph.py"


def test_the_machine_knows_neither_ir_nor_who_runs_it():
    """Validation explores it, the simulator executes it, a timeline clocks it: it stands below all three."""
    above = ("dialects", "passes", "frontend", "lang", "emit", "sim", "timing", "native", "runtime", "report", "program")
    assert not offenders(in_part("machine"), *above)
    assert not [file for file in in_part("machine") if any(name.startswith("xdsl") for name in imports(file))]


@pytest.mark.parametrize("one", ["frontend", "emit", "sim", "native"])
def test_front_end_emitter_and_simulators_do_not_know_each_other(one: str):
    others = {"frontend", "emit", "sim", "native"} - {one}
    if one == "native":
        others -= {"emit"}  # native builds what emit writes
    found = offenders(in_part(one), *others)
    # Number formats, and arrays as pages in them, are facts that both engines read; neither reads the other's machine.
    shared = ("tilewright.sim.numerics", "tilewright.sim.exact_arithmetic")
    assert not {name: used for name, used in found.items() if not all(each.startswith(shared) for each in used)}


def test_the_map_names_everything_at_the_top():
    """A file or folder that ARCHITECTURE.md does not name is one nobody finds."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    folders = [entry for around in (PACKAGE, PACKAGE / "passes") for entry in around.glob("[!_]*") if entry.is_dir()]
    names = [*(file.name for file in PACKAGE.glob("[!_]*.py")), *(f"{folder.name}/" for folder in folders)]
    assert not [name for name in names if f"`{name}`" not in text]


def test_files_are_short():
    lengths = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in FILES}
    assert not {str(file): length for file, length in lengths.items() if length > LIMIT}


def test_names_say_something():
    for file in FILES:
        assert not {step.removesuffix(".py") for step in file.relative_to(PACKAGE).parts} & EMPTY_NAMES, file


def test_packages_start_without_logic():
    """A docstring and imports of public names, nothing that runs."""
    for file in FILES:
        if file.name != "__init__.py":
            continue
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            documented = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            listed = isinstance(node, ast.Assign) and all(isinstance(target, ast.Name) for target in node.targets)
            assert documented or listed or isinstance(node, (ast.Import, ast.ImportFrom)), file


def test_the_command_line_starts_light():
    """Commands import xDSL and NumPy when they need them, not when they are listed."""
    for file in in_part("cli"):
        assert not top_level_imports(file) & {"xdsl", "numpy", "ml_dtypes"}, file


@pytest.mark.parametrize("folder", ["src", "tests", "docs", "examples", "benchmarks"])
def test_no_merge_is_left_half_done(folder: str):
    """In a docstring neither Python nor a linter minds the marks of a conflict."""
    marks = ("<" * 7 + " ", ">" * 7 + " ")
    files = [file for file in (ROOT / folder).rglob("*") if file.suffix in (".py", ".md", ".mlir", ".cpp", ".h", ".hpp")]
    marked = [str(file.relative_to(ROOT)) for file in files if any(f"\n{mark}" in file.read_text("utf-8") for mark in marks)]
    assert not marked
