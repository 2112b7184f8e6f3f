"""Folding of traces: the same events in the same order, in few items where loops repeat."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tilewright.machine.threads import Event
from tilewright.passes.validation.communication_trace import FOLDED_EVENTS, ThreadTrace

CHUNKS = [(Event("wait", number, 1, None),) * (number + 1) for number in range(3)]


def items(entries: list[Any]) -> Any:
    """What a thread of one core does that lists these chunks and counted loops."""
    thread = ThreadTrace(None, lambda core, out, *rest: out.extend(entries), list(CHUNKS), by_core=False)  # type: ignore[arg-type]
    return thread.items((0,), (1,))


def words(entries: list[Any]) -> list[int]:
    """Their events one by one, written out without folding anything."""
    out: list[int] = []
    for entry in entries:
        if isinstance(entry, int):
            out += [event.buffer for event in CHUNKS[entry]]
        else:
            out += words(entry[1]) * entry[0]
    return out


def written_out(trace: Any) -> list[int]:
    return [event.buffer for chunk, count in trace for _ in range(count) for event in chunk]


ENTRIES = st.recursive(
    st.lists(st.integers(0, 2), max_size=12),
    lambda inner: st.lists(st.one_of(st.integers(0, 2), st.tuples(st.integers(1, 5), inner)), max_size=6),
    max_leaves=12,
)


@given(ENTRIES)
def test_folding_keeps_the_order(entries):
    assert written_out(items(entries)) == words(entries)


def test_iterations_listed_on_their_own_become_a_loop_again():
    block = [0, 1] * 16 + [2]
    trace = items(block * 40)
    assert written_out(trace) == words(block * 40)
    assert len(trace) == 1 and trace[0][1] == 40


def test_a_first_round_that_differs_is_kept_apart():
    trace = items([0, 1] * 17 + [2] + ([0, 1] * 16 + [2]) * 9)
    assert len(trace) <= 4
    assert written_out(trace) == words([0, 1] * 17 + [2] + ([0, 1] * 16 + [2]) * 9)


def test_chunks_stay_short():
    long = [(FOLDED_EVENTS, [0]), 1]
    assert max(len(chunk) for chunk, _ in items(long * 8)) <= FOLDED_EVENTS
