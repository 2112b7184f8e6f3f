"""Everything that was tried, in a file of the cache: a search that was stopped goes on from there, and reasons can be read.

One JSON object a line, appended as it comes; a line that was cut off is left out.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from tilewright import cache
from tilewright.tune.problem import Problem, Subject, plain
from tilewright.tune.results import current_versions
from tilewright.tune.space import Space, text_of
from tilewright.tune.trial import Trial

FIELDS = tuple(name for name in Trial.__annotations__ if name != "config")


class Journal:
    """Trials of one problem by their configuration. ``path`` is None where nothing can be written."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.known: dict[str, dict[str, Any]] = {}
        self.problem = ""
        if path is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
                try:
                    row = json.loads(line)
                    self.known[row["config"]] = row
                except (ValueError, KeyError, TypeError):
                    continue
        except OSError as error:
            self.path, self.problem = None, f"no log is kept: {error.strerror} ({path.parent})"

    def recall(self, config: dict[str, Any]) -> Trial | None:
        row = self.known.get(name_of(config))
        return None if row is None else Trial(config=config, **{name: row[name] for name in FIELDS if name in row})

    def note(self, trial: Trial) -> None:
        row = {"config": name_of(trial.config), **{name: getattr(trial, name) for name in FIELDS}}
        self.known[row["config"]] = row
        if self.path is None:
            return
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        except OSError as error:
            self.path, self.problem = None, f"no log is kept: {error.strerror}"


def folder() -> Path:
    return cache.folder() / "tune"


def name_of(config: dict[str, Any]) -> str:
    return text_of({name: plain(value) for name, value in config.items()})


def journal_for(subject: Subject, problem: Problem, space: Space) -> Journal:
    """The one of this kernel as it is written now, this problem and these costs."""
    try:
        source = Path(subject.file).read_bytes()
    except OSError:
        source = b""
    options = sorted(problem.options.items(), key=str)
    parts = (subject.name, subject.file, problem.key, problem.chip, options, str(current_versions()))
    digest = hashlib.sha256(repr(parts).encode() + source + repr(sorted(space.axes)).encode()).hexdigest()[:16]
    try:
        return Journal(folder() / f"{subject.name}-{digest}.jsonl")
    except RuntimeError:
        return Journal(None)
