"""pipeline.py is the list: a pass has a file, a test and a promise, and nothing else in passes/ changes IR behind its back."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import passes_page
import room_graph
from tilewright.pipeline import PASS_NAMES

ROOT = Path(__file__).resolve().parents[3]
PASSES = ROOT / "src" / "tilewright" / "passes"
FILES = {name: PASSES / f"{name.replace('-', '_')}.py" for name in PASS_NAMES}
OTHERS = [file for file in sorted(PASSES.rglob("[!_]*.py")) if file not in FILES.values()]
CHANGES = {"erase", "detach", "replace_all_uses_with", "insert_op_before", "insert_ops_before", "insert_op_after", "insert_ops_after",
           "insert_before", "insert_after", "move_before", "drop_all_references"}  # fmt: skip
JUDGES = ("validation",)  # folders that only look


def modules(file: Path) -> set[str]:
    """Files of passes/ that a file imports, as module names."""
    names = {name for name in room_graph.imported(file) if name.startswith("tilewright.passes.")}
    return names | {name.rpartition(".")[0] for name in names}


def module(file: Path) -> str:
    return "tilewright.passes." + ".".join(file.relative_to(PASSES).with_suffix("").parts)


def changes(file: Path) -> set[str]:
    """Calls in a file that change IR."""
    calls = [node.func for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    return {call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "") for call in calls} & CHANGES


@pytest.mark.parametrize("name", PASS_NAMES)
def test_a_pass_is_a_file_with_a_promise_and_a_test(name: str):
    assert FILES[name].exists()
    assert (ROOT / "tests" / "filecheck" / f"{name}.mlir").exists()
    _, requires, ensures = passes_page.promises(passes_page.docstring(name))
    assert requires and ensures


def test_every_other_file_serves_a_listed_pass():
    """Whoever it is imported by is a pass, or serves one: from outside of passes/ nobody reaches a file that changes IR."""
    imported = {file: modules(file) for file in [*FILES.values(), *OTHERS]}
    reached = {module(file) for file in FILES.values()}
    while True:
        more = {name for file, names in imported.items() if module(file) in reached for name in names} - reached
        if not more:
            break
        reached |= more
    assert not [str(file) for file in OTHERS if module(file) not in reached and changes(file)]
    outside = [file for file in (ROOT / "src" / "tilewright").rglob("*.py") if PASSES not in file.parents]
    used = {name for file in outside for name in modules(file)}
    assert not [str(file) for file in OTHERS if module(file) in used and changes(file)]


def test_what_judges_changes_nothing():
    judging = [file for file in OTHERS if file.relative_to(PASSES).parts[0] in JUDGES]
    assert judging and not {str(file): found for file in judging if (found := changes(file))}


def test_the_page_of_passes_is_the_generated_one():
    written = (ROOT / "docs" / "passes.md").read_text(encoding="utf-8")
    assert written == passes_page.page(), "run python tests/passes_page.py docs/passes.md"
