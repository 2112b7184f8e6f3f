"""Numbers of semaphores: a core has few, and every number is a word on all cores."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.grid import Core
from tilewright.records import record


@record
class Words:
    """Semaphores with numbers in a row, and the cores whose words are waited for and written."""

    count: int
    cores: frozenset[Core]


def numbered(words: Sequence[Words], first: int, limit: int) -> tuple[list[int], int]:
    """The first number of each, and the number behind the last.

    Each has numbers of its own if the core has as many. If not, two whose cores differ share: neither sees the other's word.
    """
    plain: list[int] = []
    following = first
    for one in words:
        plain.append(following)
        following += one.count
    if following <= limit:
        return plain, following
    shared, last = _shared(words, first)
    return (shared, last) if last <= limit else (plain, following)


def _shared(words: Sequence[Words], first: int) -> tuple[list[int], int]:
    taken: dict[int, set[Core]] = {}  # number -> cores that use it
    found: list[int] = []
    for one in words:
        number = first
        while any(taken.get(number + each, set[Core]()) & one.cores for each in range(one.count)):
            number += 1
        for each in range(one.count):
            taken.setdefault(number + each, set()).update(one.cores)
        found.append(number)
    return found, 1 + max(taken, default=first - 1)
