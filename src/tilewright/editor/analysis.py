"""What an editor shows of a script: its errors, and for each line DST slots, cycles, decisions and the emitted C++.

The text is explained in a process of its own, from a copy beside which nothing is written: it may be half typed, loop, or crash.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from tilewright.records import record

SECONDS = 20.0


@record(kw_only=True)
class Problem:
    """An error at a line, counted from 1; columns too. ``notes``: other places, with what they have to do with it."""

    code: str
    severity: str
    message: str
    line: int
    column: int
    end_column: int
    notes: Sequence[tuple[str, str, int]] = ()  # what, file, line


@record
class CppPlace:
    file: Path
    line: int


@record(kw_only=True)
class Analysis:
    problems: Sequence[Problem] = ()
    hovers: Mapping[int, str] = field(default_factory=dict[int, str])  # by line, in Markdown
    emitted: Mapping[int, Sequence[CppPlace]] = field(default_factory=dict[int, "Sequence[CppPlace]"])


async def explained(path: Path, text: str, *, seconds: float = SECONDS) -> dict[str, Any] | None:
    """The document of ``text``, as if it stood in ``path``; None if it takes too long or says nothing."""
    with tempfile.TemporaryDirectory(prefix="tilewright-lsp-") as folder:
        copy = Path(folder) / path.name
        copy.write_text(text, encoding="utf-8")
        around = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(path.parent), os.environ.get("PYTHONPATH", "")]))}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tilewright", "explain", "--json", str(copy), cwd=path.parent if path.parent.is_dir() else None,
            env=around, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            out, _ = await asyncio.wait_for(process.communicate(), seconds)
        except asyncio.TimeoutError:
            return None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        try:
            found: Any = json.loads(out.decode(errors="replace").replace(str(copy), str(path)))
        except ValueError:
            return None
        return found if isinstance(found, dict) else None  # pyright: ignore[reportUnknownVariableType]


def analysed(document: Mapping[str, Any], path: Path, folder: Path) -> Analysis:
    """``folder`` gets the kernel files."""
    files: list[str] = [each["path"] for each in document["files"]]
    own = files.index(str(path)) if str(path) in files else -1
    words: dict[int, list[str]] = defaultdict(list)
    emitted: dict[int, list[CppPlace]] = defaultdict(list)
    for kernel in document["kernels"]:
        for line, text in _words(kernel, own):
            if text not in words[line]:
                words[line].append(text)
        for source in kernel["cpp"]:
            target = folder / kernel["name"] / f"{source['role']}.cpp"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("\n".join(source["lines"]) + "\n", encoding="utf-8")
            for number, place in enumerate(source["from"], start=1):
                if place is not None and place[0] == own:
                    emitted[place[1]].append(CppPlace(target, number))
    return Analysis(
        problems=[_problem(each, files, own) for each in document["errors"]],
        hovers={line: "\n".join(f"- {text}" for text in texts) for line, texts in words.items() if texts},
        emitted=emitted,
    )


def _words(kernel: Mapping[str, Any], own: int) -> list[tuple[int, str]]:
    """What is known about lines of the file ``own``."""
    found: list[tuple[int, str]] = []
    timed: Mapping[str, Any] = kernel["time"] or {}
    for entry in timed.get("lines", ()):
        if entry["place"][0] == own:
            spent = ", ".join(f"{engine} {cycles:,.0f}" for engine, cycles in entry["cycles"].items())
            found.append((entry["place"][1], f"**cycles** of `{kernel['name']}` on {timed['chip']}: {spent}"))
    for region in kernel["dst"]:
        for part in region["parts"]:
            for value, slot in _slots(part):
                place = region["values"][value]["place"]
                if place is not None and place[0] == own:
                    indices: Sequence[int] = part["slots"][slot] if slot < len(part["slots"]) else ()
                    name = region["values"][value]["name"] or value
                    tiles = f" (DST {', '.join(map(str, indices))})" if indices else ""
                    found.append((place[1], f"**DST** {name}: slot {slot}{tiles} of {region['capacity']}"))
    for made in kernel["decisions"]:
        if made["place"] is not None and made["place"][0] == own:
            why = f": {made['detail']}" if made["detail"] else ""
            found.append((made["place"][1], f"{made['title']}{why} (`{made['pass']}`)"))
    return found


def _slots(part: Mapping[str, Any]) -> list[tuple[str, int]]:
    return [(step["value"], step["slot"]) for step in part["steps"] if "value" in step and "slot" in step]


def _problem(error: Mapping[str, Any], files: list[str], own: int) -> Problem:
    """An error in another file stands at the first line, with that place as a note."""
    place: tuple[int, int] | None = error["place"]
    columns: tuple[int, int] = error["columns"] or (1, 2)
    message = error["message"] + (f"\nhelp: {error['help']}" if error["help"] else "")
    notes: list[tuple[str, str, int]] = [
        (note["message"], files[note["place"][0]], note["place"][1]) for note in error["notes"] if note["place"] is not None
    ]
    if place is not None and place[0] != own:
        notes.insert(0, (error["message"], files[place[0]], place[1]))
    line, column, end = (place[1], *columns) if place is not None and place[0] == own else (1, 1, 2)
    return Problem(
        code=error["code"], severity=error["severity"], message=message, line=line, column=column,
        end_column=max(end, column + 1), notes=notes,
    )  # fmt: skip
