"""What tuning found, in a JSON file beside the script: one line an entry, sorted, so that two files merge like text.

A file is written beside and then renamed; whoever reads it sees the old one or the new one. Entries of another release of the
compiler or of other costs, on which a prediction depends too, are kept in the file and not used.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from tilewright.records import record

COST_FILES = ("op_costs.json", "timing_constants.py", "timing/*.py")


@record(kw_only=True)
class Versions:
    tilewright: str
    costs: str

    def __str__(self) -> str:
        return f"tilewright {self.tilewright}, costs {self.costs}"


@lru_cache(maxsize=1)
def current_versions() -> Versions:
    from importlib.metadata import PackageNotFoundError, version

    try:
        release = version("tilewright")
    except PackageNotFoundError:
        release = "source"
    root = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for pattern in COST_FILES:
        for file in sorted(root.glob(pattern)):
            digest.update(file.read_bytes())
    return Versions(tilewright=release, costs=digest.hexdigest()[:12])


SUFFIX = ".tune.json"
FORMAT = 1


@record(kw_only=True)
class Entry:
    kernel: str
    chip: str
    key: dict[str, Any]
    config: dict[str, Any]
    time_us: float  # as ``how`` says
    how: str  # predicted, estimate, measured
    measured_us: float | None = None
    bound_by: str = ""
    uncertainty: float = 0.0
    tried: int = 0  # configurations that were looked at
    space: int = 0  # that there were
    tilewright: str = ""
    costs: str = ""

    @property
    def place(self) -> tuple[str, str, str]:
        return self.kernel, self.chip, json.dumps(self.key, sort_keys=True)

    @property
    def versions(self) -> Versions:
        return Versions(tilewright=self.tilewright, costs=self.costs)


NAMES = tuple(Entry.__annotations__)


def beside(file: str) -> Path:
    """The results of the kernels of a file."""
    return Path(file).with_suffix(SUFFIX)


def read(path: Path) -> tuple[list[Entry], str]:
    """The entries of a file and what is wrong with it; a file that is not there has none."""
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
        rows: list[Mapping[str, Any]] = data["entries"]
        if data["format"] != FORMAT:
            return [], f"{path.name} has format {data['format']}; this release reads {FORMAT}"
        return [Entry(**{name: row[name] for name in NAMES if name in row}) for row in rows], ""
    except FileNotFoundError:
        return [], ""
    except (OSError, ValueError, KeyError, TypeError) as error:
        return [], f"{path.name} cannot be read ({type(error).__name__}: {error}); it is not used"


def find(path: Path, kernel: str, chip: str, key: Mapping[str, Any], *, any_version: bool = False) -> tuple[Entry | None, str]:
    """The entry for one problem, and a note if there is one that may not be used."""
    entries, problem = read(path)
    wanted = (kernel, chip, json.dumps(dict(key), sort_keys=True))
    entry = next((entry for entry in entries if entry.place == wanted), None)
    if entry is None or any_version or entry.versions == current_versions():
        return entry, problem
    return None, f"{path.name}: the entry for {kernel} was made by {entry.versions}; this is {current_versions()}: it is not used"


def store(path: Path, new: Iterable[Entry]) -> str:
    """Adds entries, which replace those for the same problem. What went wrong, if anything."""
    entries, problem = read(path)
    if problem and not entries and path.exists():
        return f"{problem} Nothing was written"
    merged = {entry.place: entry for entry in [*entries, *new]}
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text_of([merged[place] for place in sorted(merged)]), encoding="utf-8")
        os.replace(temporary, path)
    except OSError as error:
        return f"cannot write {path}: {error.strerror}; the results are not kept"
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    return ""


def text_of(entries: Iterable[Entry]) -> str:
    lines = [json.dumps({name: getattr(entry, name) for name in NAMES}, sort_keys=False) for entry in entries]
    body = ",\n  ".join(lines)
    return f'{{\n "format": {FORMAT},\n "entries": [\n  {body}\n ]\n}}\n'
