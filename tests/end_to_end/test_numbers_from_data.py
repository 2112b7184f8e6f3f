"""Numbers that a kernel reads from its data: they choose slices, bound loops and decide ifs, in every thread."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.diagnostics import KernelError

BF16 = ml_dtypes.bfloat16


def numbers(values, dtype=np.int32):
    """A tile that holds them in its first row."""
    tile = np.zeros((32, 32), dtype)
    tile[0, : len(values)] = values
    return tile


EMBEDDING = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(table, ids, out):
    tokens, width = 32, table.shape[1] // 32
    id_cb = ttl.make_dataflow_buffer_like(ids, shape=(1, 1), block_count=1)
    band_cb = ttl.make_dataflow_buffer_like(table, shape=(1, width), block_count=1)
    row_cb = ttl.make_dataflow_buffer_like(table, shape=(1, width), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, width), block_count=2)

    @ttl.compute()
    def compute():
        with row_cb.wait() as x, out_cb.reserve() as o:
            o.store(x * 0.5)

    @ttl.datamovement()
    def read():
        with id_cb.reserve() as block:
            ttl.copy(ids[0, 0], block).wait()
        with id_cb.wait() as block, row_cb.reserve() as rows:
            for token in range(tokens):
                entry = ttl.read_index(block, 0, token, high=table.shape[0] - 1)
                with band_cb.reserve() as band:
                    ttl.copy(table[entry // 32, 0:width], band).wait()
                with band_cb.wait() as band:
                    for column in range(width * 32):
                        ttl.raw_element_write(rows, token, column, ttl.raw_element_read(band, entry % 32, column))

    @ttl.datamovement()
    def write():
        with out_cb.wait() as block:
            ttl.copy(block, out[0, 0:width]).wait()
"""


@pytest.mark.parametrize("dtype", [BF16, np.float32])
@pytest.mark.parametrize("indices", [np.int32, np.uint32, np.uint16, np.float32, BF16])
def test_rows_of_an_embedding_are_gathered(kernels, dtype, indices):
    generator = np.random.default_rng(3)
    table = generator.normal(size=(96, 64)).astype(dtype)
    ids = generator.integers(0, 96, 32)
    out = np.zeros((32, 64), dtype)
    program = kernels.run(EMBEDDING, table, numbers(ids, indices), out)
    assert (out == table[ids] * dtype(0.5)).all()
    assert ("whole_number(" in program.cpp["reader"]) == (indices in (np.float32, BF16))


APPEND = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(cache, pages, position, new, out):
    width = cache.shape[1] // 32
    p_cb = ttl.make_dataflow_buffer_like(position, shape=(1, 1), block_count=1)
    t_cb = ttl.make_dataflow_buffer_like(pages, shape=(1, 1), block_count=1)
    n_cb = ttl.make_dataflow_buffer_like(new, shape=(1, width), block_count=1)
    band_cb = ttl.make_dataflow_buffer_like(cache, shape=(1, width), block_count=1)

    @ttl.compute()
    def compute():
        pass

    @ttl.datamovement()
    def move():
        with p_cb.reserve() as p, t_cb.reserve() as t, n_cb.reserve() as n:
            ttl.copy(position[0, 0], p).wait()
            ttl.copy(pages[0, 0], t).wait()
            ttl.copy(new[0, 0:width], n).wait()
        with p_cb.wait() as p, t_cb.wait() as t, n_cb.wait() as n:
            at = ttl.read_index(p, 0, 0, high=127)
            page = ttl.read_index(t, 0, at // 32, high=cache.shape[0] // 32 - 1)
            with band_cb.reserve() as band:
                ttl.copy(cache[page, 0:width], band).wait()
            with band_cb.wait() as band:
                for column in range(width * 32):
                    ttl.raw_element_write(band, at % 32, column, ttl.raw_element_read(n, 0, column))
                ttl.copy(band, out[page, 0:width]).wait()
"""


@pytest.mark.parametrize("position", [0, 37, 127])
def test_a_row_is_appended_to_a_paged_cache(kernels, position):
    generator = np.random.default_rng(position)
    cache = generator.normal(size=(6 * 32, 64)).astype(BF16)
    new = generator.normal(size=(32, 64)).astype(np.float32)  # rounded on its way into the cache
    pages = generator.permutation(6)[:4]
    out, want = cache.copy(), cache.copy()
    want[pages[position // 32] * 32 + position % 32] = new[0].astype(BF16)
    kernels.load(APPEND)(cache, numbers(pages), numbers([position]), new, out)  # the native twin runs it, too
    assert (out == want).all()


DISPATCH = """
from tilewright import ttl

@ttl.operation(grid=(4, 1))
def kernel(tokens, chosen, weights, out):
    count, width = 6, tokens.shape[1] // 32
    r_cb = ttl.make_dataflow_buffer_like(chosen, shape=(1, 1), block_count=1)
    c_cb = ttl.make_dataflow_buffer_like(chosen, shape=(1, 1), block_count=1)
    w_cb = ttl.make_dataflow_buffer_like(chosen, shape=(1, 1), block_count=1)
    x_cb = ttl.make_dataflow_buffer_like(tokens, shape=(1, width), block_count=2)
    k_cb = ttl.make_dataflow_buffer_like(weights, shape=(width, width), block_count=1)
    y_cb = ttl.make_dataflow_buffer_like(out, shape=(1, width), block_count=2)
    expert, _ = ttl.node(dims=2)

    @ttl.compute()
    def compute():
        with c_cb.wait() as ids, k_cb.wait() as k:
            for token in range(count):
                if ttl.read_index(ids, 0, token, high=3) == expert:
                    with x_cb.wait() as x, y_cb.reserve() as y:
                        y.store(x @ k)

    @ttl.datamovement()
    def read():
        with r_cb.reserve() as a, c_cb.reserve() as b, w_cb.reserve() as c:
            ttl.copy(chosen[0, 0], a).wait()
            ttl.copy(chosen[0, 0], b).wait()
            ttl.copy(chosen[0, 0], c).wait()
        with k_cb.reserve() as k:
            ttl.copy(weights[expert * width:expert * width + width, 0:width], k).wait()
        with r_cb.wait() as ids:
            for token in range(count):
                if ttl.read_index(ids, 0, token, high=3) == expert:
                    with x_cb.reserve() as x:
                        ttl.copy(tokens[token, 0:width], x).wait()

    @ttl.datamovement()
    def write():
        with w_cb.wait() as ids:
            for token in range(count):
                if ttl.read_index(ids, 0, token, high=3) == expert:
                    with y_cb.wait() as y:
                        ttl.copy(y, out[token, 0:width]).wait()
"""


def test_each_token_goes_to_the_expert_that_its_number_names(kernels):
    generator = np.random.default_rng(8)
    tokens = generator.normal(size=(6 * 32, 64)).astype(np.float32)
    weights = generator.normal(size=(4 * 64, 64)).astype(np.float32)
    chosen = np.array([2, 0, 3, 2, 2, 0])
    out = np.zeros((6 * 32, 64), np.float32)
    program = kernels.run(DISPATCH, tokens, numbers(chosen), weights, out)
    for token, expert in enumerate(chosen):
        rows = slice(token * 32, token * 32 + 32)
        want = tokens[rows].astype(np.float64) @ weights[expert * 64 : expert * 64 + 64].astype(np.float64)
        assert np.abs(out[rows] - want).max() < 0.05
    assert "read_tile_value(c_cb" in program.cpp["compute"]
    decided = [text for decision in program.trace.decisions for text in [f"{decision}"] if "numbers from data" in text]
    assert decided and "is 0 to 3" in decided[0] and "'chosen'" in decided[0]


COUNTED = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(count, a, out):
    n_cb = ttl.make_dataflow_buffer_like(count, shape=(1, 1), block_count=1)
    m_cb = ttl.make_dataflow_buffer_like(count, shape=(1, 1), block_count=1)
    a_cb = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        with m_cb.wait() as block, out_cb.reserve() as o:
            sum = ttl.block.fill(0.0, shape=(1, 1))
            for step in range(ttl.read_index(block, 0, 0, LIMIT)):
                with a_cb.wait() as x:
                    sum += x
            o.store(sum)

    @ttl.datamovement()
    def read():
        with n_cb.reserve() as block, m_cb.reserve() as other:
            ttl.copy(count[0, 0], block).wait()
            ttl.copy(count[0, 0], other).wait()
        with n_cb.wait() as block:
            steps = ttl.read_index(block, 0, 0, LIMIT)
        for step in range(steps):
            with a_cb.reserve() as x:
                ttl.copy(a[step, 0], x).wait()

    @ttl.datamovement()
    def write():
        with out_cb.wait() as o:
            ttl.copy(o, out[0, 0]).wait()
"""


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_a_number_bounds_loops_of_two_threads(kernels, steps):
    a = np.random.default_rng(steps).integers(-8, 8, (160, 32)).astype(BF16)
    out = np.zeros((32, 32), BF16)
    program = kernels.run(COUNTED.replace("LIMIT", "high=5"), numbers([steps]), a, out)
    assert (out.astype(float) == a[: steps * 32].astype(float).reshape(-1, 32, 32).sum(0)).all()
    assert any("every value tried" in f"{decision}" for decision in program.trace.decisions)


COUNTED_BY_CORE = """
from tilewright import ttl

@ttl.operation(grid=(3,))
def kernel(counts, x, y):
    for_reader, for_compute = (ttl.make_dataflow_buffer_like(counts, shape=(1, 1), block_count=1) for _ in range(2))
    x_cb = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=2)
    y_cb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=1)

    @ttl.compute()
    def compute():
        with for_compute.wait() as block:
            total = ttl.block.fill(0.0, shape=(1, 1))
            for _ in range(ttl.read_index(block, 0, 0, high=4)):
                with x_cb.wait() as part:
                    total += part
            with y_cb.reserve() as out:
                out.store(total)

    @ttl.datamovement()
    def read():
        node = ttl.node(dims=1)
        with for_reader.reserve() as one, for_compute.reserve() as other:
            ttl.copy(counts[2 - node, 0], one).wait()
            ttl.copy(counts[2 - node, 0], other).wait()
        with for_reader.wait() as block:
            for row in range(ttl.read_index(block, 0, 0, high=4)):
                with x_cb.reserve() as part:
                    ttl.copy(x[row, node], part).wait()

    @ttl.datamovement()
    def write():
        with y_cb.wait() as block:
            ttl.copy(block, y[0, ttl.node(dims=1)]).wait()
"""


def test_threads_of_a_core_agree_on_a_number_of_its_own(kernels):
    """The slice depends on the core: every thread of the core reads the same element."""
    counts = np.zeros((96, 32), np.int32)
    counts[[0, 32, 64], 0] = 4, 0, 3
    x = np.random.default_rng(8).uniform(-1, 1, (128, 96)).astype(np.float32)
    y = np.full((32, 96), np.nan, np.float32)
    kernels.run(COUNTED_BY_CORE, counts, x, y)
    rows = x.astype(np.float64).reshape(4, 32, 3, 32)
    wanted = np.stack([rows[:steps, :, core].sum(0) for core, steps in enumerate((3, 0, 4))], 1).reshape(32, 96)
    assert np.abs(y - wanted).max() <= 1e-6


def test_bounds_of_a_slice_are_those_of_its_number(kernels):
    a, out = np.zeros((160, 32), BF16), np.zeros((32, 32), BF16)
    with pytest.raises(KernelError) as found:
        kernels.compile(COUNTED.replace("LIMIT", "high=6"), numbers([2]), a, out)
    assert "TW103" in str(found.value)
    program = kernels.compile(COUNTED.replace("LIMIT", ""), numbers([2]), a, out)
    assert any("assumed to lie inside" in f"{decision}" for decision in program.trace.decisions)


def test_a_number_outside_its_bounds_stops_the_run(kernels):
    a, out = np.zeros((160, 32), BF16), np.zeros((32, 32), BF16)
    with pytest.raises(KernelError, match="not from 0 to 5") as found:
        kernels.simulate(COUNTED.replace("LIMIT", "high=5"), numbers([6]), a, out)
    assert "TW521" in str(found.value)


def test_threads_that_part_for_some_numbers_are_told(kernels):
    source = COUNTED.replace("range(steps)", "range(min(steps, 3))").replace("LIMIT", "high=5")
    with pytest.raises(KernelError) as found:
        kernels.compile(source, numbers([2]), np.zeros((160, 32), BF16), np.zeros((32, 32), BF16))
    assert "TW210" in str(found.value) and "when the number read here is 4" in str(found.value)


LARGEST = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(scores, table, out):
    s_cb = ttl.make_dataflow_buffer_like(scores, shape=(1, 1), block_count=1)
    row_cb = ttl.make_dataflow_buffer_like(table, shape=(1, 1), block_count=1)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=1)

    @ttl.compute()
    def compute():
        with row_cb.wait() as x, out_cb.reserve() as o:
            o.store(x)

    @ttl.datamovement()
    def read():
        with s_cb.reserve() as block:
            ttl.copy(scores[0, 0], block).wait()
        with s_cb.wait() as block:
            best = 0
            for place in range(1, 4):
                if ttl.raw_element_read(block, 0, place) > ttl.raw_element_read(block, 0, best):
                    best = place
            if ttl.raw_element_read(block, 0, best) < -2.5:
                best = 0
            with row_cb.reserve() as row:
                ttl.copy(table[best, 0], row).wait()

    @ttl.datamovement()
    def write():
        with out_cb.wait() as block:
            ttl.copy(block, out[0, 0]).wait()
"""


@pytest.mark.parametrize("dtype", [BF16, np.float32])
@pytest.mark.parametrize("scores", [(1, 2, 3, -4), (-1, -2, -0.5, -3), (-0.0, 0.0, -1, 0), (-3, -4, -2.75, -9)])
def test_floats_are_compared_where_they_lie(kernels, dtype, scores):
    table = np.random.default_rng(4).normal(size=(128, 32)).astype(BF16)
    out = np.zeros((32, 32), BF16)
    kernels.run(LARGEST, numbers(scores, dtype), table, out)
    best = int(np.argmax(np.array(scores, dtype).astype(float)))
    best = 0 if scores[best] < -2.5 else best
    assert (out == table[best * 32 : best * 32 + 32]).all()


ONE_BODY = """
from tilewright import ttl

@ttl.atom(grid=(1, 1))
def kernel(cache, new, position, out):
    width = cache.shape[1] // 32
    p_cb = ttl.make_dataflow_buffer_like(position, shape=(1, 1), block_count=1)
    n_cb = ttl.make_dataflow_buffer_like(new, shape=(1, width), block_count=1)
    row_cb = ttl.make_dataflow_buffer_like(cache, shape=(1, width), block_count=1)
    out_cb = ttl.make_dataflow_buffer_like(out, shape=(1, width), block_count=1)

    where = p_cb.reserve()
    ttl.copy(position[0, 0], where)
    held = p_cb.wait()
    at = ttl.read_index(held, 0, 0, high=cache.shape[0] - 1)
    band = at // 32

    fresh = n_cb.reserve()
    ttl.copy(new[0:1, 0:width], fresh)
    given = n_cb.wait()

    old = row_cb.reserve()
    ttl.copy(cache[band:band + 1, 0:width], old).wait()
    for column in range(width * 32):
        ttl.raw_element_write(old, at % 32, column, ttl.raw_element_read(given, 0, column))
    old.push()
    rows = row_cb.wait()
    result = out_cb.reserve()
    result.store(rows * 2)
    ttl.copy(out_cb.wait(), out[band:band + 1, 0:width])
"""


@pytest.mark.parametrize("at", [5, 70])
def test_one_body_keeps_what_a_number_places_in_one_thread(kernels, at):
    """As decode kernels are written: position, append, arithmetic and the copy to the same place, in one body."""
    generator = np.random.default_rng(at)
    cache, new = (generator.integers(-9, 9, (96, 64)).astype(np.float32) for _ in range(2))
    out = np.zeros((96, 64), np.float32)
    kernels.run(ONE_BODY, cache, new, numbers([at]), out)
    band = slice(at // 32 * 32, at // 32 * 32 + 32)
    want = cache[band].copy()
    want[at % 32] = new[0]
    assert (out[band] == want * 2).all() and not out[np.r_[0 : band.start, band.stop : 96]].any()


BESIDE_A_BLOCK = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(given, places, out):
    n_cb = ttl.make_dataflow_buffer_like(given["a number"], shape=(1, 1), block_count=1)
    m_cb = ttl.make_dataflow_buffer_like(given["a number"], shape=(1, 1), block_count=1)
    p_cb = ttl.make_dataflow_buffer_like(places, shape=(1, 1), block_count=2)
    o_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        with m_cb.wait() as number:
            limit = ttl.read_index(number, 0, 0, high=100)
        for step in range(limit // 32 + 1):
            with p_cb.wait() as place, o_cb.reserve() as o:
                o.store(ttl.math.where(place > limit - step * 32, -1.0, place * limit))

    @ttl.datamovement()
    def read():
        for buffer in (n_cb, m_cb):
            with buffer.reserve() as number:
                ttl.copy(given["a number"][0, 0], number).wait()
        with n_cb.wait() as number:
            steps = ttl.read_index(number, 0, 0, high=100) // 32 + 1
            for step in range(steps):
                with p_cb.reserve() as block:
                    ttl.copy(places[0, 0], block).wait()
            for step in range(steps):
                with o_cb.wait() as block:
                    ttl.copy(block, out[step, 0]).wait()
"""


@pytest.mark.parametrize("limit", [0, 31, 70, 100])
def test_numbers_of_data_and_of_loops_that_data_bounds_stand_beside_blocks(kernels, limit):
    """Such a loop cannot be unrolled, so its counter is made a tile. The tensor's name in the C++ comes from a key with a space."""
    places = np.tile(np.arange(32, dtype=np.float32), (32, 1))
    out = np.zeros((128, 32), np.float32)
    kernels.load(BESIDE_A_BLOCK)({"a number": numbers([limit])}, places, out)
    for step in range(limit // 32 + 1):
        want = np.where(places > limit - step * 32, -1.0, places * limit)
        assert (out[step * 32 : step * 32 + 32] == want).all()
