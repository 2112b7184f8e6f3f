"""What a prediction depends on besides the kernel: the release of the compiler and its tables of costs."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

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
