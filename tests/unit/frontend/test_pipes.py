"""Pipes and semaphores: what the front end makes of them, and what it emits."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import ttl
from tilewright.diagnostics import KernelError
from tilewright.grid import NetSpec, PipeSpec, chip_place, cores_of, folded_core, form_of, rectangle, table_of


def arrays():
    return np.zeros((64, 256), np.float32), np.zeros((64, 256), np.float32)


def multicast(dst, grid=(4, 2), *, loopback=False):
    """Each row's first core sends to ``dst(row)``."""

    @ttl.operation(grid=grid)
    def kernel(a, y):
        net = ttl.PipeNet([ttl.Pipe(src=(0, row), dst=dst(row)) for row in range(grid[1])])
        a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
        own_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)

        @ttl.datamovement()
        def move():
            _, row = ttl.node(dims=2)

            def give(pipe):
                if loopback:
                    with own_cb.reserve() as block:
                        ttl.copy(a[row, 0], block).wait()
                    with own_cb.wait() as block:
                        ttl.copy(block, pipe).wait()
                else:
                    with a_cb.reserve() as block:
                        ttl.copy(a[row, 0], block).wait()
                        ttl.copy(block, pipe).wait()

            def take(pipe):
                with a_cb.reserve() as block:
                    ttl.copy(pipe, block).wait()

            net.if_src(give)
            net.if_dst(take)

        @ttl.datamovement()
        def write():
            column, row = ttl.node(dims=2)
            if net.is_active():
                with a_cb.wait() as block:
                    ttl.copy(block, y[row, column]).wait()

    return kernel


def test_a_rectangle_is_one_multicast():
    text = multicast(lambda row: (slice(1, 4), row)).compile(*arrays()).cpp["reader"]
    corners = "noc_x(1), noc_y(core_y), noc_x(3), noc_y(core_y)"
    assert f"noc_async_write_multicast(a_cb_l1, get_noc_multicast_addr({corners}, target), 4096, 3);" in text
    assert f"noc_semaphore_set_multicast(one, get_noc_multicast_addr({corners}, net_valid), 3);" in text
    assert "if (core_x == 0) {" in text and "if (core_x >= 1) {" in text
    source, destination = text.split("if (core_x >= 1) {")
    for branch in (source, destination):  # the block's address is asked for once, under the same name in both
        assert branch.count("const uint32_t a_cb_l1 = get_write_ptr(a_cb);") == branch.count("get_write_ptr") == 1
    assert source.count("noc_async_write_barrier();") == 1


def test_the_writer_names_corners_the_other_way_round():
    @ttl.operation(grid=(4, 1))
    def kernel(a, y):
        net = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=(slice(1, 4), 0))])
        a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
        b_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)

        @ttl.datamovement()
        def read():
            def take(pipe):
                with b_cb.reserve() as block:
                    ttl.copy(pipe, block).wait()

            with a_cb.reserve() as block:
                ttl.copy(a[0, 0], block).wait()
            net.if_dst(take)

        @ttl.datamovement()
        def write():
            column, _ = ttl.node(dims=2)

            def give(pipe):
                ttl.copy(block, pipe).wait()

            with a_cb.wait() as block:
                net.if_src(give)
            if net.is_dst():
                with b_cb.wait() as block:
                    ttl.copy(block, y[0, column]).wait()

    text = kernel.compile(*arrays()).cpp["writer"]
    assert "get_noc_multicast_addr(noc_x(3), noc_y(0), noc_x(1), noc_y(0), target)" in text


def test_one_destination_is_a_plain_write():
    program = multicast(lambda row: (3, row)).compile(*arrays())
    text = program.cpp["reader"]
    assert "noc_async_write(a_cb_l1, get_noc_addr(noc_x(3), noc_y(core_y), target), 4096);" in text
    assert "multicast" not in text and text.count("noc_async_write_barrier();") == 1  # the copy's wait has nothing left to wait for
    assert [(s.index, s.name, s.initial) for s in program.semaphores] == [(0, "net_ready", 0), (1, "net_valid", 0)]


def test_coordinates_come_from_the_launcher():
    (reader,) = (t for t in multicast(lambda row: (3, row)).compile(*arrays()).threads if t.role == "reader")
    kinds = [each.KIND for each in reader.runtime_args]
    assert kinds.count("noc_x") == 4 and kinds.count("noc_y") == 2


def test_destinations_that_are_no_rectangle_get_one_write_each():
    text = multicast(lambda row: (slice(1, 4, 2), row)).compile(*arrays()).cpp["reader"]
    assert text.count("noc_async_write(") == 2
    assert "noc_x(1)" in text and "noc_x(3)" in text


@pytest.mark.parametrize("metal", ["0.62", "0.69", "0.78"])
def test_every_spelling(metal):
    text = multicast(lambda row: (slice(0, 4), row), loopback=True).compile(*arrays(), metal=metal).cpp["reader"]
    assert "noc_async_write_multicast_loopback_src(" in text and "noc_semaphore_wait_min(word(net_ready), 4 << 24);" in text
    assert text.count("noc_semaphore_set(word(net_valid), 1);") == 1, "the sender is a receiver too"


def test_pipes_tell_where_they_lead():
    @ttl.operation(grid=(4, 1))
    def kernel(a, y):
        net = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=(x, 0)) for x in range(1, 4)])
        a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
        b_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)

        @ttl.datamovement()
        def move():
            def give(pipe):
                x, _ = pipe.dst
                with a_cb.reserve() as block:
                    ttl.copy(a[0, x], block).wait()
                with a_cb.wait() as block:
                    ttl.copy(block, pipe).wait()

            def take(pipe):
                assert pipe.src == (0, 0)
                with b_cb.reserve() as block:
                    ttl.copy(pipe, block).wait()

            net.if_src(give)
            net.if_dst(take)

        @ttl.datamovement()
        def write():
            column, _ = ttl.node(dims=2)
            if net.is_dst():
                with b_cb.wait() as block:
                    ttl.copy(block, y[0, column]).wait()

    a, y = arrays()
    a[:] = np.arange(a.size).reshape(a.shape) % 997
    kernel(a, y)
    assert (y[:32, 32:128] == a[:32, 32:128]).all() and not y[:32, :32].any()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ttl.Pipe(src=(0, 0)), "dst of a pipe is missing"),
        (lambda: ttl.Pipe(src=(0, 0), dst=(1, 0), dst_core=(1, 0)), "dst of a pipe is given twice"),
        (lambda: ttl.Pipe(src=(0, 0), dst=(1, 0), color=3), "no argument 'color'"),
        (lambda: ttl.Pipe(src=(0, slice(1)), dst=(1, 0)), "a coordinate of a pipe is an integer"),
        (lambda: ttl.PipeNet([]), "a net without pipes"),
        (lambda: ttl.PipeNet([ttl.Pipe((0, 0), (1, 0)), ttl.Pipe((0, 0), (slice(0, 2), 0))]), "mixes pipes"),
        (lambda: ttl.Semaphore(), "Semaphore(…) outside a kernel"),
    ],
)
def test_wrong_pipes(make, message):
    with pytest.raises(KernelError, match=message.replace("(", r"\(").replace(")", r"\)")):
        make()


def test_forms_of_numbers():
    cores = cores_of((3, 2))
    assert form_of({(core, 0): 5 for core in cores}).kind == "constant"
    form = form_of({(core, 0): core[1] + 2 for core in cores})
    assert (form.kind, form.dim, form.offset) == ("core", 1, 2)
    assert form_of({(cores[0], k): k + 1 for k in range(3)}).kind == "pipe"
    field = {(core, 0): core[0] * core[1] for core in cores}
    assert form_of(field).kind == "table"
    assert [row[0] for row in table_of(field, (3, 2))] == [0, 0, 0, 0, 1, 2]


def test_places():
    assert folded_core((1, 2, 3), (4, 5, 6), 2) == (1, 15) and folded_core((1, 2), (4, 5), 3) == (1, 2, 0)
    assert chip_place((11,), (20,), 8) == (3, 1) and chip_place((1, 2, 3), (4, 2, 4), 8) == (1, 11)
    assert rectangle([(1, 0), (2, 0), (1, 1), (2, 1)]) == (1, 0, 2, 1) and rectangle([(0, 0), (1, 1)]) is None
    pipe = PipeSpec((5,), ((0, 8, 3),), False)
    assert pipe.source_core((4, 2)) == (2, 1) and pipe.target_cores((4, 2)) == ((0, 0), (3, 0), (1, 1))
    net = NetSpec(0, "net", (pipe, PipeSpec((5,), ((1, 2, 1),), False)))
    assert net.by_source((4, 2)) == {(2, 1): (0, 1)}
