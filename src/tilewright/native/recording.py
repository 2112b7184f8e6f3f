"""The calls every thread of a native run made, as ``recording.cpp`` lists them; a timeline of hand-written kernels reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tilewright.native.findings import NativeError
from tilewright.records import record

MOST_CALLS = 2_000_000  # of all threads together

Core = tuple[int, int]


@record
class RecordedCall:
    """One call, with its integers: what they mean depends on the name."""

    name: str
    words: tuple[int, ...]
    file: str
    line: int


Recording = Mapping[tuple[Core, str], list[RecordedCall]]  # by core and processor: reader, unpack, math, pack, writer


def read_recording(path: Path) -> Recording:
    """Calls that are alike share one object: loops make the same calls again and again."""
    found: dict[tuple[Core, str], list[RecordedCall]] = {}
    known: dict[str, tuple[tuple[Core, str], RecordedCall]] = {}
    for count, line in enumerate(_lines(path)):
        if count >= MOST_CALLS:
            raise NativeError(f"the kernels make more than {MOST_CALLS:,} calls: give them less to do")
        if line not in known:
            x, y, thread, file, number, name, *words = line.split("\t")
            key = ((int(x), int(y)), thread)
            known[line] = (key, RecordedCall(name, tuple(map(int, words)), file, int(number)))
        key, call = known[line]
        found.setdefault(key, []).append(call)
    return found


def _lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            yield line.rstrip("\n")
