"""Order of ttnn releases, so that a spelling can say from which one on it holds."""

from __future__ import annotations

from tilewright.diagnostics import fail

OLDEST, NEWEST = (0, 62), (0, 99)
CHANGED = tuple((0, number) for number in (69, 72, 74, 76, 77, 78, 79, 80, 81))  # releases that may have other names than before


def release(text: str) -> tuple[int, int]:
    """``"0.78"`` or ``"0.81.1"`` as a comparable pair."""
    parts = text.split(".")
    if len(parts) < 2 or not all(part.isdigit() for part in parts[:2]):
        raise fail("TW601", f"'{text}' is not a ttnn release", help="give one like 0.62, 0.69, 0.78 or 0.81")
    found = (int(parts[0]), int(parts[1]))
    if not OLDEST <= found <= NEWEST:
        raise fail("TW601", f"ttnn {text} is not supported", help="Tilewright spells kernels for ttnn 0.62 and newer")
    return found
