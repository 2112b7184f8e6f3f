"""Headers of the user's own that a kernel includes: which they are, and what in them a native run cannot do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tilewright.native.findings import NativeError

_INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)

# What stands below the kernel API: instructions and registers of the chip, which this model does not have.
_BELOW = (
    (re.compile(r"\bsfpi::|\bdst_reg\s*\[|\bv_if\s*\("), "code for the lanes of the vector unit (sfpi)"),
    (re.compile(r"\bTTI?_[A-Z0-9]+\s*\("), "instructions of the Tensix (TT_ and TTI_ macros)"),
    (
        re.compile(r'#\s*include\s*["<](?:[\w/]*/)?(?:sfpi|ckernel_sfpu_|llk_|ckernel_ops)[^">]*[">]'),
        "a header of the low-level kernels (LLK)",
    ),
    (re.compile(r"\b_?llk_\w+\s*[<(]"), "a call of the low-level kernels (LLK)"),
    (re.compile(r"\bTT_KERNEL\b"), "a TT_KERNEL entry point, around which the vendor's host generates kernel_main()"),
)


def included(text: str, folders: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """Files in ``folders`` that ``text`` includes, and those that they include."""
    pending, seen = [text], set[Path]()
    while pending:
        for name in _INCLUDE.findall(pending.pop()):
            path = next((folder / name for folder in folders if (folder / name).is_file()), None)
            if path is None or path in seen:
                continue
            seen.add(path)
            found = path.read_text(encoding="utf-8", errors="replace")
            pending.append(found)
            yield path, found


def refuse_unmodelled(label: str, text: str, folders: Sequence[Path]) -> None:
    """Raises where a kernel goes below the kernel API, with the line: a compiler would only say that a header is missing."""
    for name, content in ((label, text), *((str(path), found) for path, found in included(text, folders))):
        code = _COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), content)
        for pattern, what in _BELOW:
            match = pattern.search(code)
            if match is None:
                continue
            line = code.count("\n", 0, match.start()) + 1
            raise NativeError(
                f"{name}:{line}: {what}: the native run models calls of the kernel API on whole tiles, not what they are made of"
            )
