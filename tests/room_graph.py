"""Which room imports which, computed from the files; and the drawing of it in ARCHITECTURE.md.

    python tests/room_graph.py      writes the drawing anew

A room is a folder of ``src/tilewright``, or a file beside the folders. Inside ``passes/`` it is the same once more: a pass, or a
folder that serves passes. Imports count wherever they stand in a file, except those that only annotations need.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "tilewright"
START, END = "<!-- rooms: tests/room_graph.py writes this -->\n```\n", "```\n<!-- end of rooms -->"

Graph = dict[str, set[str]]


def imported(file: Path) -> set[str]:
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return
        if isinstance(node, ast.Import):
            found.update(name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.update(f"{node.module}.{name.name}" for name in node.names)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(file.read_text(encoding="utf-8")))
    return found


def room_graph(around: Path) -> Graph:
    """Rooms directly in the folder ``around``. A file's imports of ``around`` itself count for nothing."""
    names = around.parts
    prefix = names[len(names) - 1 - names[::-1].index("tilewright") :]
    rooms = {room(file, around) for file in around.rglob("*.py")}
    graph: Graph = {name: set() for name in rooms}
    for file in around.rglob("*.py"):
        steps = [name.split(".") for name in imported(file)]
        below = {step[len(prefix)] for step in steps if tuple(step[: len(prefix)]) == prefix and len(step) > len(prefix)}
        graph[room(file, around)] |= (below & rooms) - {room(file, around)}
    return graph


def room(file: Path, around: Path) -> str:
    return file.relative_to(around).parts[0].removesuffix(".py")


def reached(graph: Graph, start: str, through: Iterable[str] | None = None) -> set[str]:
    """Rooms that one imports, directly or through others (of ``through``, if given)."""
    allowed = None if through is None else set(through)
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for name in graph[waiting.pop()] - found:
            found.add(name)
            if allowed is None or name in allowed:
                waiting.append(name)
    return found


def cycles(graph: Graph) -> list[list[str]]:
    """Groups of rooms that import each other, directly or through others."""
    within = {name: reached(graph, name) for name in graph}
    groups = {tuple(sorted(other for other in within[name] if name in within[other])) for name in graph if name in within[name]}
    return [list(group) for group in sorted(groups)]


def folder_graph(around: Path) -> Graph:
    """The folders alone: what a folder imports through a file beside them, it imports itself. Of paths only the longest is drawn."""
    graph = room_graph(around)
    folders = {entry.name for entry in around.iterdir() if (entry / "__init__.py").exists()}
    joined = {name: reached(graph, name, graph.keys() - folders) & folders - {name} for name in sorted(folders)}
    below = {name: reached(joined, name) for name in joined}
    return {
        name: {
            other
            for other in others
            if not any(other in below[step] and step not in below[other] and name not in below[step] for step in others - {other})
        }
        for name, others in joined.items()
    }


def drawing() -> str:
    lines: list[str] = []
    for around in (PACKAGE, PACKAGE / "passes"):
        graph = folder_graph(around)
        height = {name: len(reached(graph, name)) for name in graph}
        for name in sorted(graph, key=lambda name: (-height[name], name)):
            title = name if around == PACKAGE else f"passes/{name}"
            lines.append(f"{title:<22}{'-> ' + ', '.join(sorted(graph[name])) if graph[name] else ''}".rstrip() + "\n")
        lines.append("\n")
    return "".join(lines[:-1])


def drawn(text: str) -> str:
    return text.partition(START)[2].partition(END)[0]


if __name__ == "__main__":
    page = ROOT / "ARCHITECTURE.md"
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace(START + drawn(text) + END, START + drawing() + END), encoding="utf-8")
