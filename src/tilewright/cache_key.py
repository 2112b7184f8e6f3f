"""What a compiled result depends on, as one hash: the kernel's code, all it can read, its arguments, options, and us.

The cache in memory and the one on disk share it. A value whose content cannot be told makes the kernel uncacheable: a miss costs
a compilation, a wrong hit costs an answer.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from tilewright.code_reads import reads_of
from tilewright.content import Content, Uncacheable, is_users_own
from tilewright.options import Options

EVERYTHING = ((),)


def key_of(kernel: Any, arguments: Mapping[str, Any], options: Options | None = None) -> str | None:
    """The hash for a kernel (or another ``key_parts``) and arguments by parameter; None if there is none.

    Tensors are what `tensors.visible` says of them by now. Of an object, only what the code takes of its parameter counts.
    """
    content = Content()
    taken = reads_of(kernel.function.__code__).variables
    try:
        content.value(kernel)
        for name, value in arguments.items():
            content.taken(name, value, taken.get(name, ()) if is_users_own(type(value)) else EVERYTHING)
        content.value(options)
        return hashlib.sha256(content.text().encode(errors="backslashreplace")).hexdigest()
    except (Uncacheable, RecursionError):
        return None


def on_disk(key: str) -> str:
    """The name of an entry that this compiler may use."""
    return hashlib.sha256(f"{compiler_fingerprint()} {key}".encode()).hexdigest()


@lru_cache(maxsize=1)
def compiler_fingerprint() -> str:
    """Names, sizes and times of all files of this package: any edit of the compiler is another compiler."""
    root = Path(__file__).parent
    found: list[str] = [f"{sys.version_info[:2]} {root}"]
    pending = [str(root)]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir():
                    pending += [] if entry.name == "__pycache__" else [entry.path]
                    continue
                facts = entry.stat()
                found.append(f"{entry.path} {facts.st_size} {facts.st_mtime_ns}")
    return hashlib.sha256("\n".join(sorted(found)).encode()).hexdigest()
