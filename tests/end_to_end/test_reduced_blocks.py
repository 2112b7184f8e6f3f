"""Reduced values behave as NumPy's with keepdims: one element beside full tiles repeats, whatever the size of the block."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.diagnostics import KernelError

BODIES = {
    "softmax of one tile": (
        (1, 1),
        "e = ttl.math.exp(x - ttl.math.reduce_max(x, dims=[1]))\no0.store(e / ttl.math.reduce_sum(e, dims=[1]))",
        lambda x: np.exp(x - x.max(1, keepdims=True)) / np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True),
    ),
    "a column of tiles": ((3, 1), "o0.store(x + ttl.math.reduce_max(x, dims=[1]))", lambda x: x + x.max(1, keepdims=True)),
    "a row of tiles": ((1, 3), "o0.store(x + ttl.math.reduce_max(x, dims=[0]))", lambda x: x + x.max(0, keepdims=True)),
    "all of one tile": ((1, 1), "o0.store(x - ttl.math.reduce_mean(x))", lambda x: x - x.mean()),
    "mean of means": (
        (2, 2),
        "o0.store(x - ttl.math.reduce_mean(ttl.math.reduce_mean(x, dims=[1]), dims=[0]))",
        lambda x: x - x.mean(),
    ),
    "reduced twice": (
        (2, 2),
        "m = ttl.math.reduce_max(x, dims=[1])\no0.store(x - ttl.math.reduce_sum(ttl.math.exp(m), dims=[1]))",
        lambda x: x - np.exp(x.max(1, keepdims=True)),
    ),
    "a turned column is a row": (
        (2, 2),
        "o0.store(x - ttl.block.transpose(ttl.math.reduce_max(x, dims=[1])))",
        lambda x: x - x.max(1, keepdims=True).T,
    ),
    "two reductions of different kind": (
        (2, 2),
        "o0.store(x - (ttl.math.reduce_max(x) + ttl.math.reduce_sum(ttl.math.reduce_max(x, dims=[1]), dims=[0]) * 0.01))",
        lambda x: x - (x.max() + x.max(1).sum() * 0.01),
    ),
    "with a number as a block": (
        (2, 1),
        "o0.store(x * (ttl.math.reduce_max(x, dims=[1]) + ttl.block.fill(1.0, shape=(2, 1))))",
        lambda x: x * (x.max(1, keepdims=True) + 1),
    ),
    "beside a block of one number": (
        (1, 1),
        "o0.store(ttl.block.fill(0.5, shape=(1, 1)) * ttl.math.reduce_max(x, dims=[1]))",
        lambda x: 0.5 * x.max(1, keepdims=True) + 0 * x,
    ),
    "beside a row of one number": (
        (1, 3),
        "o0.store((1.0 - ttl.block.fill(0.5, shape=(1, 3))) * ttl.math.reduce_max(x))",
        lambda x: 0.5 * x.max() + 0 * x,
    ),
    "the mean of what is repeated": (
        (1, 1),
        "o0.store(x - ttl.math.reduce_mean(ttl.block.broadcast(x, dims=[1]), dims=[1]))",
        lambda x: x - x[:, :1],
    ),
    "the mean of what repeats beside a number": (
        (1, 1),
        "half = ttl.block.fill(0.5, shape=(1, 1)) * ttl.math.reduce_max(x, dims=[1])\no0.store(x + ttl.math.reduce_mean(half, dims=[1]))",
        lambda x: x + 0.5 * x.max(1, keepdims=True),
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_one_element_repeats(kernels, block_kernels, name):
    shape, body, reference = BODIES[name]
    x = np.random.default_rng(3).uniform(-2, 2, (shape[0] * 32, shape[1] * 32)).astype(ml_dtypes.bfloat16)
    out = np.zeros_like(x)
    kernels.run_everywhere(block_kernels.single_block({"x": shape}, [shape], body), x, out)
    wanted = reference(x.astype(np.float64))
    # Three roundings to 8 bits of values as large as the largest.
    assert np.abs(out.astype(np.float64) - wanted).max() <= 3 * 2**-8 * max(1, np.abs(wanted).max())


ONLINE = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(x, out):
    x_buffer = ttl.make_dataflow_buffer_like(x, shape=(1, {width}), block_count=2)
    max_buffer = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=2)
    out_buffer = ttl.make_dataflow_buffer_like(out, shape=(1, {width}), block_count=1)

    @ttl.compute()
    def compute():
        with max_buffer.reserve() as m:
            m.store({start})
        for _ in range(3):
            with x_buffer.wait() as block, max_buffer.wait() as m, max_buffer.reserve() as m_next:
                m_next.store(ttl.math.max(m, ttl.math.reduce_max(block, dims=[1])))
        with x_buffer.wait() as block, max_buffer.wait() as m, out_buffer.reserve() as o:
            o.store(block - m)

    @ttl.datamovement()
    def read():
        for step in range(4):
            with x_buffer.reserve() as block:
                ttl.copy(x[step : step + 1, 0:{width}], block).wait()

    @ttl.datamovement()
    def write():
        with out_buffer.wait() as block:
            ttl.copy(block, out[0:1, 0:{width}]).wait()
"""


@pytest.mark.parametrize("width", [1, 2])
def test_a_buffer_of_reduced_blocks_holds_reduced_blocks(kernels, width):
    """The running maximum is a column, known only from what is stored into its buffer later."""
    x = np.random.default_rng(4).uniform(-2, 2, (128, width * 32)).astype(ml_dtypes.bfloat16)
    out = np.zeros((32, width * 32), ml_dtypes.bfloat16)
    start = "ttl.block.fill(-100.0, shape=m.shape)"
    program = kernels.run_everywhere(ONLINE.format(width=width, start=start), x, out)
    steps = x.astype(np.float64).reshape(4, 32, -1)
    assert np.abs(out.astype(np.float64) - (steps[3] - steps[:3].max((0, 2))[:, None])).max() <= 2**-6
    assert "sub_tiles_bcast_cols" in program.cpp["compute"]


def test_a_buffer_that_also_takes_full_tiles_holds_full_tiles(kernels):
    """One store of full tiles is enough: every element of the block then stands for itself."""
    x = np.random.default_rng(4).uniform(-2, 2, (128, 32)).astype(ml_dtypes.bfloat16)
    out = np.zeros((32, 32), ml_dtypes.bfloat16)
    text = ONLINE.format(width=1, start="ttl.block.fill(-100.0, shape=m.shape)")
    full = text.replace("ttl.math.reduce_max(block, dims=[1])", "block")
    program = kernels.run_everywhere(full, x, out)
    steps = x.astype(np.float64).reshape(4, 32, -1)
    assert np.abs(out.astype(np.float64) - (steps[3] - steps[:3].max(0))).max() <= 2**-6
    assert "bcast" not in program.cpp["compute"]


def test_a_sum_beside_a_reduction_shares_its_section(kernels, block_kernels):
    """The packer's mask hides nothing of what is packed: one element per row is all that anybody looks at."""
    body = """
with l_buffer.reserve() as first:
    first.store(ttl.math.reduce_max(x, dims=[1]))
with l_buffer.wait() as l:
    o0.store(l * l + ttl.math.reduce_sum(x, dims=[1]))
"""
    x = np.random.default_rng(8).uniform(0.5, 2, (64, 96)).astype(ml_dtypes.bfloat16)
    out = np.zeros((64, 32), ml_dtypes.bfloat16)
    source = block_kernels.single_block({"x": (2, 3)}, [(2, 1)], body, between={"l": (2, 1)})
    program = kernels.run(source, x, out)
    text = program.cpp["compute"]
    assert text.count("tile_regs_acquire();") == 2 and "between_" not in text
    assert "mul_tiles(" in text and "add_binary_tile" not in text  # multiplied onto the sum
    exact = x.astype(np.float64)
    wanted = exact.max(1) ** 2 + exact.sum(1)
    np.testing.assert_allclose(out[:, 0].astype(np.float64), wanted, rtol=2**-7)


# What follows is about one value, not about the buffer it passes through.
FOLLOWED = """
from tilewright import ttl

@ttl.operation(grid=({cores}, 1))
def kernel(x, out):
    x_buffer = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=4)
    scratch = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=4)
    received = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=2)
    out_buffer = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=4)
    net = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=(1, 0))]) if {cores} > 1 else None

    @ttl.compute()
    def compute():
        core, _ = ttl.node(dims=2)
{compute}

    @ttl.datamovement()
    def read():
        core, _ = ttl.node(dims=2)
        for step in range({blocks}):
            with x_buffer.reserve() as block:
                ttl.copy(x[step, core], block).wait()
{between}

    @ttl.datamovement()
    def write():
        core, _ = ttl.node(dims=2)
        for step in range({results}):
            with out_buffer.wait() as block:
                ttl.copy(block, out[step, core]).wait()
"""


def followed(compute: str, cores: int = 1, blocks: int = 1, results: int = 1, between: str = "") -> str:
    def indented(text: str) -> str:
        return "\n".join(f"        {line}" for line in text.strip("\n").splitlines())

    return FOLLOWED.format(
        compute=indented(compute), cores=cores, blocks=blocks, results=results, between=indented(between or "pass")
    )


def blocks_of(rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(17).uniform(-2, 2, (rows * 32, columns * 32)).astype(ml_dtypes.bfloat16)


def assert_close(found: np.ndarray, wanted: np.ndarray) -> None:
    assert np.abs(found.astype(np.float64) - wanted).max() <= 3 * 2**-8 * max(1, np.abs(wanted).max())


def test_a_scratch_buffer_that_later_holds_a_full_block(kernels):
    compute = """
with x_buffer.wait() as a:
    with scratch.reserve() as m:
        m.store(ttl.math.reduce_max(a, dims=[1]))
    with scratch.wait() as m, out_buffer.reserve() as o:
        o.store(a - m)
    with scratch.reserve() as m:
        m.store(a * a)
    with scratch.wait() as m, out_buffer.reserve() as o:
        o.store(a + m)
    with scratch.reserve() as m:
        m.store(ttl.math.reduce_sum(a, dims=[0]))
    with scratch.wait() as m, out_buffer.reserve() as o:
        o.store(a + m)
"""
    x, out = blocks_of(1, 1), np.zeros((96, 32), ml_dtypes.bfloat16)
    kernels.run(followed(compute, results=3), x, out)
    exact = x.astype(np.float64)
    wanted = [exact - exact.max(1, keepdims=True), exact + exact * exact, exact + exact.sum(0, keepdims=True)]
    for found, value in zip(out.reshape(3, 32, 32), wanted, strict=True):
        assert_close(found, value)


def test_blocks_of_either_kind_side_by_side_in_one_buffer(kernels):
    """A column and a full block are in the buffer at once, and again in every iteration: each wait knows which it gets."""
    compute = """
for _ in range(3):
    with x_buffer.wait() as a:
        with scratch.reserve() as m:
            m.store(ttl.math.reduce_max(a, dims=[1]))
        with scratch.reserve() as m:
            m.store(a * 2.0)
        with scratch.wait() as m, scratch.wait() as twice, out_buffer.reserve() as o:
            o.store(twice - m)
"""
    x, out = blocks_of(3, 1), np.zeros((96, 32), ml_dtypes.bfloat16)
    kernels.run(followed(compute, blocks=3, results=3), x, out)
    exact = x.astype(np.float64)
    assert_close(out, 2 * exact - exact.max(1, keepdims=True))


def test_a_maximum_received_through_a_pipe_repeats(kernels):
    compute = """
with x_buffer.wait() as a, out_buffer.reserve() as o:
    if core == 0:
        with scratch.reserve() as m:
            m.store(ttl.math.reduce_max(a, dims=[1]))
        o.store(a)
    else:
        with received.wait() as m:
            o.store(a - m)
"""
    between = """
if net.is_src():
    with scratch.wait() as block:
        net.if_src(lambda pipe: ttl.copy(block, pipe).wait())
if net.is_dst():
    with received.reserve() as block:
        net.if_dst(lambda pipe: ttl.copy(pipe, block).wait())
"""
    x, out = blocks_of(1, 2), np.zeros((32, 64), ml_dtypes.bfloat16)
    kernels.run(followed(compute, cores=2, between=between), x, out)
    exact = x.astype(np.float64)
    assert_close(out[:, 32:], exact[:, 32:] - exact[:, :32].max(1, keepdims=True))


def test_a_sum_of_full_and_reduced_blocks(kernels):
    """``+=`` in place means what ``+`` means."""
    compute = """
with x_buffer.wait() as a, out_buffer.reserve() as o:
    o += ttl.math.reduce_max(a, dims=[1])
    for _ in range(2):
        o += a
    o += ttl.math.reduce_sum(a, dims=[0])
"""
    x, out = blocks_of(1, 1), np.zeros((32, 32), ml_dtypes.bfloat16)
    kernels.run(followed(compute), x, out)
    exact = x.astype(np.float64)
    assert_close(out, 2 * exact + exact.max(1, keepdims=True) + exact.sum(0, keepdims=True))


EITHER_KIND = """
with x_buffer.wait() as a:
    with scratch.reserve() as m:
        m.store(a)
for _ in range(3):
    with x_buffer.wait() as a:
        with scratch.wait() as m, out_buffer.reserve() as o:
            o.store({use})
        with scratch.reserve() as m:
            m.store(ttl.math.reduce_max(a, dims=[1]))
with scratch.wait() as m:
    pass
"""


def test_a_block_of_unknown_kind_is_refused_where_it_matters(kernels):
    """The first iteration finds a full block, the others a column, and the loop is too long to be unrolled."""
    x, out = blocks_of(401, 1), np.zeros((400 * 32, 32), ml_dtypes.bfloat16)
    text = followed(EITHER_KIND.format(use="a - m").replace("range(3)", "range(400)"), blocks=401, results=400)
    with pytest.raises(KernelError) as error:
        kernels.compile(text, x, out)
    assert [found.code for found in error.value.diagnostics] == ["TW112"]
    assert len(error.value.diagnostics[0].notes) == 2


def test_a_short_loop_over_blocks_of_either_kind_is_unrolled(kernels):
    x, out = blocks_of(4, 1), np.zeros((96, 32), ml_dtypes.bfloat16)
    kernels.run(followed(EITHER_KIND.format(use="a - m"), blocks=4, results=3), x, out)
    steps = x.astype(np.float64).reshape(4, 32, 32)
    others = [steps[0], steps[1].max(1, keepdims=True), steps[2].max(1, keepdims=True)]
    for found, step, other in zip(out.reshape(3, 32, 32), steps[1:], others, strict=True):
        assert_close(found, step - other)


def test_values_of_an_unrolled_loop_that_need_each_other(kernels):
    """A column before the loop, full blocks in it: it is unrolled, and the new sum is computed from the old maximum."""
    compute = """
m = ttl.block.fill(-1e30, shape=(1, 1))
t = ttl.block.fill(0.0, shape=(1, 1))
for _ in range(2):
    with x_buffer.wait() as a:
        m = ttl.math.max(m, ttl.math.reduce_max(a, dims=[1]))
        t = t + ttl.math.reduce_sum(a, dims=[1])
for _ in range(3):
    with x_buffer.wait() as a:
        new = ttl.math.max(m, a + 2.0)
        t = t + (new - m)
        m = new
with out_buffer.reserve() as o:
    o.store(t + m)
"""
    x, out = blocks_of(5, 1), np.zeros((32, 32), ml_dtypes.bfloat16)
    kernels.run(followed(compute, blocks=5, results=1), x, out)
    steps = x.astype(np.float64).reshape(5, 32, 32)
    m, t = steps[:2].max((0, 2))[:, None], steps[:2].sum((0, 2))[:, None]
    for step in steps[2:]:
        new = np.maximum(m, step + 2.0)
        m, t = new, t + (new - m)
    assert_close(out, t + m)


def test_a_broadcast_says_which_element_repeats(kernels):
    x, out = blocks_of(4, 1), np.zeros((96, 32), ml_dtypes.bfloat16)
    use = "a - ttl.block.broadcast(m * 2.0, dims=[1], shape=(1, 1))"
    kernels.run(followed(EITHER_KIND.format(use=use), blocks=4, results=3), x, out)
    steps = x.astype(np.float64).reshape(4, 32, 32)
    first = np.stack([steps[0][:, :1], steps[1].max(1, keepdims=True), steps[2].max(1, keepdims=True)])
    assert_close(out.reshape(3, 32, 32), steps[1:] - 2 * first)


def test_a_name_that_a_loop_makes_reduced(kernels):
    compute = """
with x_buffer.wait() as a:
    m = a * 1.0
    for _ in range(2):
        m = ttl.math.reduce_max(a + m * 0.0, dims=[1])
    with out_buffer.reserve() as o:
        o.store(a - m)
"""
    x, out = blocks_of(1, 1), np.zeros((32, 32), ml_dtypes.bfloat16)
    kernels.run(followed(compute), x, out)
    exact = x.astype(np.float64)
    assert_close(out, exact - exact.max(1, keepdims=True))


@pytest.mark.parametrize("dtype", ["f32", "i32"])
@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("tiles", [(1, 1), (2, 1)])
def test_a_block_of_one_number_has_all_its_elements(kernels, dtype, dims, tiles):
    """Beside a column it counts as a column, but a sum takes the number as often as the block has it."""
    shape = tuple(1 if dim in dims else size for dim, size in enumerate(tiles))
    kernel = f"""
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(x, out):
    x_buffer = ttl.make_dataflow_buffer_like(x, shape={tiles}, block_count=1)
    out_buffer = ttl.make_dataflow_buffer_like(out, shape={shape}, block_count=1)

    @ttl.compute()
    def compute():
        number = ttl.block.fill(3, shape={tiles}, dtype="{dtype}")
        for _ in range(2):
            number = number + 1
        with x_buffer.wait() as a, out_buffer.reserve() as o:
            o.store(ttl.math.reduce_max(a, dims={list(dims)}) + ttl.math.reduce_sum(ttl.math.min(number, 4), dims={list(dims)}))

    @ttl.datamovement()
    def read():
        with x_buffer.reserve() as block:
            ttl.copy(x[0:{tiles[0]}, 0:{tiles[1]}], block).wait()

    @ttl.datamovement()
    def write():
        with out_buffer.wait() as block:
            ttl.copy(block, out[0:{shape[0]}, 0:{shape[1]}]).wait()
"""
    kind = {"f32": np.float32, "i32": np.int32}[dtype]
    x = np.random.default_rng(12).integers(-50, 50, (tiles[0] * 32, tiles[1] * 32)).astype(kind)
    out = np.zeros((shape[0] * 32, shape[1] * 32), kind)
    kernels.run(kernel, x, out)
    want = x.max(dims, keepdims=True) + np.full_like(x, 4).sum(dims, keepdims=True)
    rows, columns = want.shape
    assert np.array_equal(out[:rows, :columns], want)  # whole numbers below 2**24


@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1)])
def test_the_mean_of_one_number_is_that_number(kernels, dims):
    compute = f"""
with x_buffer.wait() as a, out_buffer.reserve() as o:
    o.store(a + ttl.math.reduce_mean(ttl.block.fill(3.0, shape=(1, 1)), dims={list(dims)}))
"""
    x, out = blocks_of(1, 1), np.zeros((32, 32), ml_dtypes.bfloat16)
    kernels.run(followed(compute), x, out)
    assert_close(out, x.astype(np.float64) + 3.0)


@pytest.mark.parametrize(("axes", "fill", "over"), [((0, 1), (1, 4), 1), ((0, 1), (4, 1), 0), ((1,), (4, 1), 0), ((0,), (1, 4), 1)])
@pytest.mark.parametrize("kind", ["sum", "max"])
def test_a_reduced_fill_is_full_in_what_is_left(kernels, block_kernels, kind, axes, fill, over):
    """A fill of one row of tiles has all 32 rows: so has its sum over columns, beside whatever is reduced further."""
    x = np.random.default_rng(8).uniform(1, 2, (32, 32)).astype(np.float32)
    out = np.full((32, 32), np.nan, np.float32)
    ones = f"ttl.math.reduce_{kind}(ttl.block.fill(0.5, shape={fill}), dims=[{over}])"
    body = f"o0.store(ttl.math.reduce_max(x, dims={list(axes)}) * {ones})"
    kernels.run_everywhere(block_kernels.single_block({"x": (1, 1)}, [(1, 1)], body), x, out)
    full = np.full((32 * fill[0], 32 * fill[1]), 0.5)
    factor = full.sum(axis=over, keepdims=True) if kind == "sum" else full.max(axis=over, keepdims=True)
    want = x.astype(np.float64).max(axis=axes, keepdims=True) * factor
    np.testing.assert_allclose(out[: want.shape[0], : want.shape[1]], want, rtol=2**-9)


@pytest.mark.parametrize("fill", [(1, 4), (4, 1), (2, 2)])
def test_a_fill_reduced_over_both_axes_is_one_element(kernels, block_kernels, fill):
    x = np.random.default_rng(9).uniform(1, 2, (32, 32)).astype(np.float32)
    out = np.full((32, 32), np.nan, np.float32)
    largest = f"ttl.math.reduce_max(ttl.block.fill(0.5, shape={fill}), dims=[0, 1])"
    body = f"o0.store(ttl.math.reduce_sum(ttl.math.reduce_max(x, dims=[0, 1]) * {largest}, dims=[0]))"
    kernels.run_everywhere(block_kernels.single_block({"x": (1, 1)}, [(1, 1)], body), x, out)
    assert abs(out[0, 0] - 0.5 * x.max()) <= 2**-9  # counted once, not 32 times


FILLS = {  # what a fill becomes: statements, and the factor it stands for
    "changed by a loop": ("f = ttl.block.fill(1.0, shape=(1, 1))\nfor _ in range(3):\n    f = f * 0.5", 0.125),
    "as wide as the block": ("f = ttl.block.fill(1.0, shape=(1, 3))\nfor _ in range(3):\n    f = f * 0.5", 0.125),
    "changed by two loops": (
        "f = ttl.block.fill(1.0, shape=(1, 1))\nfor _ in range(2):\n    for _ in range(2):\n        f = f * 0.5",
        0.0625,
    ),
    "of another one": (
        "f = ttl.block.fill(1.0, shape=(1, 1))\ng = ttl.block.fill(0.5, shape=(1, 1))\nfor _ in range(2):\n    f = f * g + g",
        1.0,
    ),
    "read back from a buffer": (
        "with between_buffer.reserve() as kept:\n    kept.store(ttl.block.fill(0.5, shape=(1, 1)))\n"
        "with between_buffer.wait() as kept:\n    f = kept * 2.0",
        1.0,
    ),
}


@pytest.mark.parametrize("name", FILLS)
def test_a_fill_that_went_through_a_loop_or_a_buffer_is_full(kernels, block_kernels, name):
    """As one that did neither: beside what is reduced it has all rows."""
    statements, factor = FILLS[name]
    x = np.random.default_rng(10).uniform(1, 2, (32, 96)).astype(np.float32)
    out = np.full((32, 96), np.nan, np.float32)
    body = f"{statements}\no0.store(ttl.math.reduce_max(x, dims=[0]) * f)"
    kernels.run_everywhere(block_kernels.single_block({"x": (1, 3)}, [(1, 3)], body, {"between": (1, 1)}), x, out)
    np.testing.assert_allclose(out, np.tile(x.max(0) * factor, (32, 1)), rtol=1e-6)


@pytest.mark.parametrize("steps", [1, 3])
def test_a_fill_is_full_inside_the_loop_that_changes_it(kernels, block_kernels, steps):
    """What is reduced in the same loop stays so: the running largest is one row, the factor has all of them."""
    x = np.random.default_rng(11).uniform(1, 2, (32, 32)).astype(np.float32)
    out = np.full((32, 32), np.nan, np.float32)
    body = f"""
f, most = ttl.block.fill(1.0, shape=(1, 1)), ttl.block.fill(0.0, shape=(1, 1))
for _ in range({steps}):
    f = f * 0.5
    most = ttl.math.max(most, ttl.math.reduce_max(x, dims=[0]))
    with between_buffer.reserve() as kept:
        kept.store(most * f)
    with between_buffer.wait() as kept:
        last = kept * 2.0
o0.store(last)
"""
    kernels.run_everywhere(block_kernels.single_block({"x": (1, 1)}, [(1, 1)], body, {"between": (1, 1)}), x, out)
    np.testing.assert_allclose(out, np.tile(x.max(0) * 2 * 0.5**steps, (32, 1)), rtol=1e-6)


def test_what_no_reduction_of_its_region_reaches_is_packed_whole(kernels, block_kernels):
    """The compiler puts 1 / (|m| + 1) through a buffer, in the region that reduces b: under that reduction's mask it would lose rows."""
    b = np.random.default_rng(13).uniform(0, 1, (64, 64)).astype(ml_dtypes.bfloat16)
    sums, rows = np.zeros((32, 32), ml_dtypes.bfloat16), np.zeros((32, 64), ml_dtypes.bfloat16)
    body = """
s = ttl.block.fill(0.0, shape=(1, 1))
r = ttl.math.reduce_max(b, dims=[0])
for _ in range(4):
    m = ttl.math.reduce_sum(ttl.math.reduce_min(r, dims=[1]), dims=[0]) * 0.02
    s = s * 0.5 + (m + ttl.math.reduce_max(b, dims=[0, 1]))
    r = r + (1.0 / (abs(m) + 1.0)) / (r * r + 1.0) + s
o0.store(s)
o1.store(r)
"""
    kernels.run_everywhere(block_kernels.single_block({"b": (2, 2)}, [(1, 1), (1, 2)], body), b, sums, rows)
    exact = b.astype(np.float64)
    s, r = 0.0, exact.max(0)
    for _ in range(4):
        m = r.min() * 0.02
        s = s * 0.5 + m + exact.max()
        r = r + 1.0 / (abs(m) + 1.0) / (r * r + 1.0) + s
    assert abs(float(sums[0, 0]) - s) <= 4 * 2**-8 * s  # a rounding to 8 bits a step
    assert np.abs(rows[0].astype(np.float64) - r).max() <= 4 * 2**-8 * r.max()
