"""Words in messages."""

from __future__ import annotations


def counted(number: int, word: str, plural: str = "") -> str:
    """``1 block``, ``2 blocks``."""
    return f"{number} {word if number == 1 else plural or word + 's'}"
