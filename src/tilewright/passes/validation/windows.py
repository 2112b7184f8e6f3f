"""Blocks that one thread holds of a buffer at the same time must lie in one piece.

A buffer is a ring, but kernels address the held blocks from the oldest one on: where they pass the end of the ring, the
address leads out of the buffer.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.diagnostics import Diagnostic
from tilewright.passes.validation.events import Buffer, problem
from tilewright.passes.validation.traces import Chunk, Event, Item

ACQUIRES = ("wait", "reserve")
SIDE_OF = {"pop": "wait", "push": "reserve"}

Starts = dict[tuple[int, str], int]  # (buffer, side) -> blocks released so far, modulo the depth


def check_windows(course: Sequence[Item], buffers: dict[int, Buffer]) -> list[Diagnostic]:
    """``course`` is what one thread of one core does."""
    depths = {index: buffer.kind.factor.data for index, buffer in buffers.items()}
    if not any(event.word in ACQUIRES and event.amount > 1 for chunk, _ in course for event in chunk):
        return []  # a single block never wraps
    starts: Starts = {}
    for chunk, count in course:
        laps: list[Starts] = []  # what each lap of this chunk starts from
        while len(laps) < count and starts not in laps:
            laps.append(dict(starts))
            wrapped = _lap(chunk, starts, depths)
            if wrapped is not None:
                alike = (e.amount for c, _ in course for e in c if (e.buffer, e.word) == (wrapped.buffer, wrapped.word))
                return [_refusal(wrapped, buffers[wrapped.buffer], max(alike), starts.get((wrapped.buffer, wrapped.word), 0))]
        if len(laps) < count:  # the rest repeats what came before
            first = laps.index(starts)
            starts = dict(laps[first + (count - first) % (len(laps) - first)])
    return []


def _lap(chunk: Chunk, starts: Starts, depths: dict[int, int]) -> Event | None:
    """Moves the starts on; the first acquire that wraps, if there is one."""
    for event in chunk:
        if event.word in SIDE_OF:
            key = (event.buffer, SIDE_OF[event.word])
            starts[key] = (starts.get(key, 0) + 1) % depths[event.buffer]
        elif event.word in ACQUIRES and starts.get((event.buffer, event.word), 0) + event.amount > depths[event.buffer]:
            return event
    return None


def _refusal(event: Event, buffer: Buffer, group: int, start: int) -> Diagnostic:
    depth = buffer.kind.factor.data
    rounded = -(-depth // group) * group
    deeper = f"set block_count={rounded} and " if rounded != depth else ""
    return problem(
        "TW307",
        f"the {event.amount} blocks of '{buffer.name}' held here would pass the end of the buffer, which has {depth}",
        event.op,
        label=f"from block {start} on",
        help=f"{deeper}release all {group} before the next, or hold one block at a time",
    )
