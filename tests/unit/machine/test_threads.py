"""A ring against a list that somebody fills and empties; and the simulator's buffers against the ring that validation explores."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.machine.grid import GridMachine
from tilewright.machine.threads import DstHalves, Event, Ring, Semaphores
from tilewright.sim.buffers import Buffer

CALLS = st.lists(st.tuples(st.sampled_from(["wait", "reserve", "push", "pop"]), st.integers(1, 4)), max_size=60)


@settings(max_examples=200)
@given(st.integers(1, 5), CALLS)
def test_a_ring_is_a_bounded_queue(capacity, calls):
    ring, queue, reserved, waited, pushed, popped = Ring(capacity), [], 0, 0, 0, 0
    for word, count in calls:
        if word == "wait":
            assert ring.wait(count) == (len(queue) >= count)
            waited = max(waited, count) if len(queue) >= count else waited
        elif word == "reserve":
            free = capacity - len(queue)
            assert ring.reserve(count) == (free >= count)
            reserved = max(reserved, count) if free >= count else reserved
        elif word == "push" and count <= reserved:
            assert ring.push(count)
            queue += range(pushed, pushed + count)
            pushed, reserved = pushed + count, reserved - count
        elif word == "pop" and count <= waited:
            assert ring.pop(count)
            del queue[:count]
            popped, waited = popped + count, waited - count
        assert (ring.available, ring.room) == (len(queue), capacity - len(queue))
        assert (ring.reserved, ring.waited) == (reserved, waited)
        assert (ring.write, ring.read) == (pushed % capacity, popped % capacity)


def test_only_the_end_of_the_memory_stops_a_block():
    ring = Ring(3)
    assert not ring.passes_end(1, 2)
    assert ring.passes_end(2, 2)


def test_the_simulators_buffers_are_rings():
    """What blocks and what counts stands once; the simulator adds what is in a buffer and what must not be done to it."""
    assert issubclass(Buffer, Ring)
    assert not {"wait", "reserve", "push", "pop", "room", "passes_end"} & set(vars(Buffer))


def test_dst_goes_from_math_to_the_packer_and_back():
    halves = DstHalves(2)
    for turn in range(5):
        assert halves.acquire()
        assert halves.math == turn % 2
        halves.commit()
        if turn:  # one half behind
            assert halves.wait()
            assert halves.pack == (turn - 1) % 2
            halves.release()
    assert halves.acquire()
    halves.commit()
    assert not halves.acquire()
    assert not halves.free


def test_a_semaphore_is_waited_for_exactly_or_at_least():
    levels = Semaphores({3: 1})
    levels.add(3, 2)
    assert levels.level(3) == 3
    assert levels.reached(3, 2, at_least=True)
    assert not levels.reached(3, 2, at_least=False)
    assert levels.level(7, initial=4) == 4


def events(buffer: int, *words: str) -> tuple[Event, ...]:
    return tuple(Event(word, buffer, 1, None) for word in words)


def test_a_million_turns_are_skipped_and_the_stop_is_found():
    """The producer runs one turn too few: the consumer is stopped in its last."""
    fill, take = events(0, "reserve", "push"), events(0, "wait", "pop")
    machine = GridMachine([((), "fill", ((fill, 999_999),)), ((), "take", ((take, 1_000_000),))], {0: 2})
    (stopped,) = machine.run()
    assert (stopped.thread, stopped.event, stopped.repeat) == ("take", take[0], 999_999)
