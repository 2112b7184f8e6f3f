"""Cores that talk to each other: multicast with a handshake, a ring, a gather with semaphores, and how it fails."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.diagnostics import KernelError
from tilewright.sim.run import simulate

NAMES = """get_semaphore get_noc_addr get_noc_multicast_addr noc_async_write noc_async_write_multicast noc_async_read
noc_semaphore_set noc_semaphore_inc noc_semaphore_wait noc_semaphore_wait_min noc_semaphore_set_multicast"""
CALLS = dict.fromkeys(NAMES.split(), "d")

WRITER = """
def writer():
    cb_wait_front(a, 1)
    noc_async_write_page(my_core(0), O, get_read_ptr(a))
    noc_async_write_barrier()
    cb_pop_front(a, 1)
"""

MULTICAST = (
    """
def reader():
    ready = get_semaphore(index=0)
    sent = get_semaphore(index=1)
    cb_reserve_back(a, 1)
    if my_core(0) == 0:
        noc_async_read_page(0, A, get_write_ptr(a))
        noc_async_read_barrier()
        noc_semaphore_wait(ready, 3)
        noc_semaphore_set(ready, 0)
        noc_async_write_multicast(get_write_ptr(a), get_noc_multicast_addr(1, 0, 3, 0, get_write_ptr(a)), 2048, {count})
        noc_async_write_barrier()
        noc_semaphore_set(sent, 1)
        noc_semaphore_set_multicast(sent, get_noc_multicast_addr(1, 0, 3, 0, sent), 3)
    if my_core(0) > 0:
        noc_semaphore_inc(get_noc_addr(0, 0, ready), 1)
        noc_semaphore_wait(sent, 1)
    cb_push_back(a, 1)
"""
    + WRITER
)


@pytest.fixture
def run(make_program, extra_calls, random_bf16):
    extra_calls(**CALLS)

    def start(text, pages=4, grid=(4, 1), buffers=(("a", "bf16", 2), ("b", "bf16", 2))):
        program = make_program(
            text, grid=grid, buffers=buffers, tensors=[("A", "bf16", (pages, 32, 32)), ("O", "bf16", (pages, 32, 32))]
        )
        data = random_bf16(pages, 32, 32)
        out = np.zeros_like(data)
        return data, out, simulate(program, [data, out])

    return start


def test_multicast_with_a_handshake(run):
    data, out, result = run(MULTICAST.format(count=3))
    for core in range(4):
        assert np.array_equal(out[core].view(np.uint16), data[0].view(np.uint16))
    assert len(result.groups) == 4


def test_wrong_number_of_destinations(run):
    with pytest.raises(KernelError) as caught:
        run(MULTICAST.format(count=4))
    assert caught.value.diagnostics[0].code == "TW513"


def test_write_before_the_receiver_has_reserved(run):
    text = MULTICAST.format(count=3).replace("        noc_semaphore_wait(ready, 3)\n", "")
    with pytest.raises(KernelError) as caught:
        run(text)
    assert caught.value.diagnostics[0].code == "TW506"
    assert "not reserved there" in str(caught.value)


def test_semaphore_that_is_never_set(run):
    text = MULTICAST.format(count=3).replace(
        "        noc_semaphore_set_multicast(sent, get_noc_multicast_addr(1, 0, 3, 0, sent), 3)\n", ""
    )
    with pytest.raises(KernelError) as caught:
        run(text)
    (found,) = caught.value.diagnostics
    assert found.code == "TW501"
    assert "reader (core (1, 0)) waits until semaphore 1 is 1: it is 0" in found.render()


def test_ring(run):
    """Every core passes its tile to the right, three times: core x ends with the tile of core x + 1."""
    text = """
def reader():
    arrived = get_semaphore(index=0)
    free = get_semaphore(index=1)
    right = (my_core(0) + 1) % 4
    left = (my_core(0) + 3) % 4
    cb_reserve_back(b, 1)
    noc_async_read_page(my_core(0), A, get_write_ptr(b))
    noc_async_read_barrier()
    cb_push_back(b, 1)
    for step in range(3):
        cb_reserve_back(a, 1)
        noc_semaphore_inc(get_noc_addr(left, 0, free), 1)
        noc_semaphore_wait_min(free, step + 1)
        if step == 0:
            cb_wait_front(b, 1)
            noc_async_write(get_read_ptr(b), get_noc_addr(right, 0, get_write_ptr(a)), 2048)
            noc_async_write_barrier()
            cb_pop_front(b, 1)
        if step > 0:
            cb_wait_front(a, 1)
            noc_async_write(get_read_ptr(a), get_noc_addr(right, 0, get_write_ptr(a)), 2048)
            noc_async_write_barrier()
            cb_pop_front(a, 1)
        noc_semaphore_inc(get_noc_addr(right, 0, arrived), 1)
        noc_semaphore_wait_min(arrived, step + 1)
        cb_push_back(a, 1)
    cb_wait_front(a, 1)
    noc_async_write_page(my_core(0), O, get_read_ptr(a))
    noc_async_write_barrier()
    cb_pop_front(a, 1)
"""
    data, out, _ = run(text)
    for core in range(4):
        assert np.array_equal(out[core].view(np.uint16), data[(core + 1) % 4].view(np.uint16))


def test_remote_read(run):
    text = (
        """
def reader():
    ready = get_semaphore(index=0)
    cb_reserve_back(b, 1)
    noc_async_read_page(my_core(0), A, get_write_ptr(b))
    noc_async_read_barrier()
    noc_semaphore_inc(get_noc_addr((my_core(0) + 3) % 4, 0, ready), 1)
    noc_semaphore_wait(ready, 1)
    cb_reserve_back(a, 1)
    noc_async_read(get_noc_addr((my_core(0) + 1) % 4, 0, get_write_ptr(b)), get_write_ptr(a), 2048)
    noc_async_read_barrier()
    cb_push_back(a, 1)
"""
        + WRITER
    )
    data, out, _ = run(text)
    for core in range(4):
        assert np.array_equal(out[core].view(np.uint16), data[(core + 1) % 4].view(np.uint16))


def test_core_outside_the_grid(run):
    text = MULTICAST.format(count=3).replace("get_noc_addr(0, 0, ready)", "get_noc_addr(9, 0, ready)")
    with pytest.raises(KernelError) as caught:
        run(text)
    assert caught.value.diagnostics[0].code == "TW513"
