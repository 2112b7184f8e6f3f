"""SHA-256 without OpenSSL: loading that takes longer than all that a process hashes.

Python's own module has another name in each release; ``hashlib`` serves where it has neither.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def _own() -> Callable[[bytes], Any]:
    for name in ("_sha2", "_sha256", "hashlib"):
        try:
            return importlib.import_module(name).sha256
        except (ImportError, AttributeError):
            continue
    raise ImportError("this Python has no SHA-256")


sha256 = _own()
