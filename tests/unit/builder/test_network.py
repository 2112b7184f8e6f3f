"""Pipes, semaphores and places: where a core is, its share of a tensor, integers given at the call, and what is emitted."""

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
    assert f"noc_async_write_multicast(a_cb_l1, get_noc_multicast_addr({corners}, target), 4096, 3, true);" in text
    assert f"noc_semaphore_set_multicast(one, get_noc_multicast_addr({corners}, net_valid), 3);" in text
    assert "if (core_x == 0) {" in text and "if (core_x >= 1) {" in text
    source, destination = text.split("if (core_x >= 1) {")
    for branch in (source, destination):  # the block's address is asked for once, under the same name in both
        assert branch.count("const uint32_t a_cb_l1 = get_write_ptr(a_cb);") == branch.count("get_write_ptr") == 1
    assert source.count("noc_async_writes_flushed();") == text.count("noc_async_write_barrier();") == 1


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
    assert text.count("noc_semaphore_set_multicast_loopback_src(one, ") == 1, "the sender is a receiver too"


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


def placed(grid, expression):
    """A kernel in which every core copies tile ``expression`` of ``a`` into the same tile of ``y``."""

    @ttl.operation(grid=grid)
    def kernel(a, y):
        a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=1)

        @ttl.datamovement()
        def move():
            with a_cb.reserve() as block:
                ttl.copy(a[0, expression()], block).wait()
            with a_cb.wait() as block:
                ttl.copy(block, y[0, expression()]).wait()

    return kernel


@pytest.mark.parametrize(
    ("grid", "expression"),
    [
        ((6,), lambda: ttl.core_linear()),
        ((3, 2), lambda: ttl.core_linear()),
        ((3, 1, 2), lambda: ttl.core_linear()),
        ((3, 2), lambda: ttl.core(dims=1)),
        ((2, 3, 1), lambda: ttl.core(dims=2)[0] * 3 + ttl.core(dims=2)[1]),
        ((6,), lambda: ttl.core(dims=2)[0] + ttl.core(dims=3)[2]),
    ],
)
def test_every_core_has_its_own_number(grid, expression):
    a = np.random.default_rng(0).uniform(-1, 1, (32, 6 * 32)).astype(np.float32)
    y = np.zeros_like(a)
    placed(grid, expression)(a, y)
    assert (y == a).all()


def test_linear_numbers_go_along_the_first_dimension():
    text = placed((3, 2), lambda: ttl.core_linear()).compile(*[np.zeros((32, 192), np.float32)] * 2).cpp["reader"]
    assert "core_y * 3 + core_x" in text


def test_grid_slice():
    @ttl.operation(grid=(2, 3))
    def kernel(a, y):
        a_cb = ttl.make_dataflow_buffer_like(a, shape=(2, 1), block_count=1)

        @ttl.datamovement()
        def move():
            with a_cb.reserve() as block:
                ttl.copy(ttl.grid_slice(a, (2, 1)), block).wait()
            with a_cb.wait() as block:
                ttl.copy(block, ttl.grid_slice(y, block_factors=(2, 1))).wait()

    a = np.random.default_rng(0).uniform(-1, 1, (4 * 32, 3 * 32)).astype(np.float32)
    y = np.zeros_like(a)
    kernel(a, y)
    assert (y == a).all()
    with pytest.raises(KernelError, match="2 cores take 2 tiles each of a dimension of 'a' that has 3"):
        kernel.compile(a[:96], y[:96])


@ttl.operation(grid=(2, 1))
def doubled(a, y, count: ttl.runtime_int(0, 6)):
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    y_cb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        for _ in range(count):
            with a_cb.wait() as x, y_cb.reserve() as o:
                o.store(x + x)

    @ttl.datamovement()
    def read():
        row = ttl.core_linear()
        for index in range(count):
            with a_cb.reserve() as block:
                ttl.copy(a[row, index], block).wait()

    @ttl.datamovement()
    def write():
        row = ttl.core_linear()
        for index in range(count):
            with y_cb.wait() as block:
                ttl.copy(block, y[row, index]).wait()


def test_integers_given_at_the_call_do_not_recompile():
    a = np.random.default_rng(0).uniform(-1, 1, (64, 192)).astype(np.float32)
    programs = {id(doubled.compile(a, a, count)) for count in (0, 1, 5)}
    assert len(programs) == 1
    for count in (0, 1, 5, 6):
        y = np.zeros_like(a)
        doubled(a, y, count)
        assert (y[:, : count * 32] == 2 * a[:, : count * 32]).all() and not y[:, count * 32 :].any()


def test_integers_given_at_the_call_are_checked():
    a = np.zeros((64, 192), np.float32)
    with pytest.raises(KernelError, match="between 0 and 6"):
        doubled(a, a, 7)
    with pytest.raises(KernelError, match="give an integer"):
        doubled(a, a, 2.5)
    with pytest.raises(KernelError, match="lie outside dimension 1"):
        doubled.compile(a[:, :128], a[:, :128], 2)
