"""Op classes made when first asked for: the op table gives nearly a thousand, a kernel uses a few dozen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from xdsl.ir import Operation

Kind = TypeVar("Kind", bound=Operation)


class ClassTable(Mapping[str, type[Kind]]):
    """Classes by name."""

    def __init__(self, names: Iterable[str], make: Callable[[str], type[Kind]]) -> None:
        self._made: dict[str, type[Kind] | None] = dict.fromkeys(names)
        self._make = make

    def __getitem__(self, name: str) -> type[Kind]:
        known = self._made[name]
        if known is None:
            known = self._made[name] = self._make(name)
        return known

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)
