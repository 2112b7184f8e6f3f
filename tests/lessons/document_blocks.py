"""Code and commands of a document, run as a reader would run them: from top to bottom, in one folder.

* A ``python`` block whose first line is ``# file: NAME.py`` is that file. Others run at once; they share their names.
* A fragment of a kernel stands below ``<!-- frame: NAME -->``: it runs inside ``tests/lessons/frames/NAME.py``, in place of the line
  ``...  # fragment``. A frame checks what the fragment computes.
* In a ``console`` block every ``$`` line is run, and what it prints (both streams) is what stands below it. ``…`` stands for anything:
  for lines if it is alone on its line, else for a part of the line.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib.util
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewright.cli.main import main

NEAR = 20  # lines
NUMBERS = re.compile(r"[\d.,\s]+")
FRAMES = Path(__file__).parent / "frames"
ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"(?:<!-- frame: (?P<frame>\w+) -->\n+)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.S | re.M)
FILE = re.compile(r"# file: (\S+)\n")
TORCH = importlib.util.find_spec("torch") is not None  # an extra: where it is missing, blocks that import it stay unread
TIMES = re.compile(r"(?<=(?:sim|ast|ive) )[\d.]+ m?s\b")  # simulated, fast, native: wall time of this machine


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    frame: str | None
    line: int  # of the document, where the text begins


@dataclass(frozen=True)
class Command:
    """A ``$`` line and the lines that it prints."""

    words: str
    shown: list[str]
    line: int


def blocks_of(document: Path) -> Iterator[Block]:
    text = document.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        yield Block(found["language"], found["text"], found["frame"], text.count("\n", 0, found.start("text")) + 1)


def commands_of(block: Block) -> list[Command]:
    commands: list[Command] = []
    for number, line in enumerate(block.text.splitlines()):
        if line.startswith("$ "):
            commands.append(Command(line[2:], [], block.line + number))
        else:
            commands[-1].shown.append(line)
    return commands


def pattern_of(shown: list[str]) -> re.Pattern[str]:
    """What an output must look like to be the shown one."""
    parts: list[str] = []
    for line in shown:
        parts.append(r"(?:[^\n]*\n)*?" if line == "…" else "[^\n]*".join(map(re.escape, line.split("…"))) + "\n")
    return re.compile("".join(parts))


def framed(block: Block) -> str:
    """A fragment with the kernel around it, indented as its place is."""
    frame = (FRAMES / f"{block.frame}.py").read_text(encoding="utf-8")
    place = re.search(r"^( *)\.\.\.  # fragment\n", frame, re.M)
    assert place, f"the frame {block.frame} has no line '...  # fragment'"
    body = "".join(place[1] + line if line.strip() else line for line in block.text.splitlines(keepends=True))
    return frame[: place.start()] + body + frame[place.end() :]


@dataclass
class Reader:
    """Somebody who follows a document in a folder of their own."""

    folder: Path
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "document"})

    def follow(self, document: Path) -> Iterator[tuple[Command, str]]:
        """Runs everything; gives each command with what it printed."""
        examples = self.folder / "examples"
        if not examples.exists():
            examples.symlink_to(ROOT / "examples")
        for block in blocks_of(document):
            if block.language == "python" and (TORCH or "import torch" not in block.text):
                self.take(block, f"{document.stem}_{block.line}.py")
            elif block.language == "console":
                for command in commands_of(block):
                    yield command, self.run(command.words)

    def take(self, block: Block, name: str) -> None:
        named = FILE.match(block.text)
        text = framed(block) if block.frame else block.text
        path = self.folder / (named[1] if named else name)  # the source of a kernel is read from its file
        path.write_text(text, encoding="utf-8")
        if block.frame or not named:
            names = {"__name__": "frame", "__file__": str(path)} if block.frame else self.names
            with self.importable():
                exec(compile(text, str(path), "exec"), names)

    @contextlib.contextmanager
    def importable(self) -> Iterator[None]:
        """Files of the folder can be imported, and are forgotten afterwards: the next document may have others of that name."""
        sys.path.insert(0, str(self.folder))
        try:
            yield
        finally:
            sys.path.remove(str(self.folder))
            for name, module in list(sys.modules.items()):
                if str(self.folder) in (getattr(module, "__file__", None) or ""):
                    del sys.modules[name]

    def run(self, words: str) -> str:
        program, *arguments = shlex.split(words)
        if program != "tilewright":
            path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
            return subprocess.run(
                words, shell=True, cwd=self.folder, env={**os.environ, "PATH": path}, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            ).stdout  # fmt: skip
        printed = io.StringIO()
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), contextlib.suppress(SystemExit):
                main(arguments)
        finally:
            os.chdir(before)
        return printed.getvalue()


def refreshed(shown: list[str], printed: str) -> list[str]:
    """The same excerpt of a new output: each shown line becomes the one that is most like it, in order."""
    lines = TIMES.sub("…", printed).splitlines()
    if "…" not in shown and not any(line.startswith("~ ") for line in shown):
        return lines  # all of it was shown
    kept: list[str] = []
    start = 0
    for line in (line for line in shown if line != "…"):
        rest = range(start, len(lines))
        wanted = line.removeprefix("~ ")
        exact = pattern_of([line])
        at = next((i for i in rest if exact.fullmatch(lines[i] + "\n")), None)
        text = line
        if at is None:
            at = next((i for i in rest if NUMBERS.sub("", lines[i]) == NUMBERS.sub("", wanted)), None)
            if at is None:
                at = next((i for i in rest if wanted in lines[i]), None)
            if at is None:  # a line changed: it is most likely near the one before
                at = max(rest[:NEAR], key=lambda i: difflib.SequenceMatcher(None, wanted, lines[i]).ratio(), default=None)
            if at is None:
                break
            text = lines[at]
        if at > start:
            kept.append("…")
        kept.append(text)
        start = at + 1
    return kept if start == len(lines) else [*kept, "…"]
