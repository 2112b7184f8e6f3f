"""A value means what it was where it was written, whatever is released, overwritten or chosen after that.

Each body is the compute thread of a kernel with inputs ``a`` and ``b`` (as many blocks each as it takes) and outputs ``o`` and
``p``; beside it stands what it means in NumPy, statement by statement.
"""

from __future__ import annotations

import textwrap

import ml_dtypes
import numpy as np
import pytest

DTYPES = {"bf16": ml_dtypes.bfloat16, "f32": np.float32}
TOLERANCE = {"bf16": 2.0**-6, "f32": 2.0**-9}  # f32 passes through the matrix unit as tf32
SIDE = 2  # tiles per side of a block

KERNEL = """
from tilewright import ttl

@ttl.operation(grid=({cores}, 1))
def kernel(a, b, o, p):
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=({side}, {side}), block_count={count})
    b_dfb = ttl.make_dataflow_buffer_like(b, shape=({side}, {side}), block_count={count})
    s_dfb = ttl.make_dataflow_buffer_like(a, shape=({side}, {side}), block_count=2)
    o_dfb = ttl.make_dataflow_buffer_like(o, shape=({side}, {side}), block_count={count})
    p_dfb = ttl.make_dataflow_buffer_like(p, shape=({side}, {side}), block_count={count})

    @ttl.compute()
    def compute():
        node, _ = ttl.node(dims=2)
{body}

    def place(tensor, step, steps):
        node, _ = ttl.node(dims=2)
        row = (node * steps + step) * {side}
        return tensor[row : row + {side}, 0:{side}]

    @ttl.datamovement()
    def read():
        for step in range(max({reads})):
            for tensor, buffer, steps in zip((a, b), (a_dfb, b_dfb), {reads}):
                if step < steps:
                    with buffer.reserve() as block:
                        ttl.copy(place(tensor, step, steps), block).wait()

    @ttl.datamovement()
    def write():
        for step in range(max({writes})):
            for tensor, buffer, steps in zip((o, p), (o_dfb, p_dfb), {writes}):
                if step < steps:
                    with buffer.wait() as block:
                        ttl.copy(block, place(tensor, step, steps)).wait()
"""


def run(kernels, body, meaning, *, reads=(1, 1), writes=(1, 0), cores=1, dtype="bf16", count=2):
    """``meaning(core, a, b)`` gets the blocks a core reads and gives those it writes to ``o`` and ``p``."""
    text = KERNEL.format(
        body=textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8),
        side=SIDE, cores=cores, count=count, reads=reads, writes=writes,
    )  # fmt: skip
    generator = np.random.default_rng(3)
    high = SIDE * 32
    inputs = [generator.uniform(-1, 1, (cores * max(n, 1) * high, high)).astype(DTYPES[dtype]) for n in reads]
    outputs = [np.zeros((cores * max(n, 1) * high, high), DTYPES[dtype]) for n in writes]
    program = kernels.run(text, *inputs, *outputs)

    def of_core(array, number, core):
        return [array[(core * number + i) * high : (core * number + i + 1) * high].astype(np.float64) for i in range(number)]

    for core in range(cores):
        given = [of_core(array, number, core) for array, number in zip(inputs, reads, strict=True)]
        wanted = meaning(core, *given)
        for array, number, expected in zip(outputs, writes, wanted, strict=True):
            for found, want in zip(of_core(array, number, core), expected, strict=True):
                bound = TOLERANCE[dtype] * max(1.0, float(np.abs(want).max()))
                np.testing.assert_allclose(found[: want.shape[0], : want.shape[1]], want, rtol=0, atol=bound)
    return program


FORMS = {
    "stored after the with": (
        """
        with a_dfb.wait() as x:
            y = x * 2
        with o_dfb.reserve() as o_block:
            o_block.store(y)
        """,
        lambda core, a, b: ([a[0] * 2], []),
        {"reads": (1, 0)},
    ),
    "used in the next with": (
        """
        with a_dfb.wait() as x:
            y = ttl.math.exp(x)
        with b_dfb.wait() as x, o_dfb.reserve() as o_block:
            o_block.store(x - y)
        """,
        lambda core, a, b: ([b[0] - np.exp(a[0])], []),
        {},
    ),
    "after pop()": (
        """
        x = a_dfb.wait()
        w = b_dfb.wait()
        o_block = o_dfb.reserve()
        y = x + w
        x.pop()
        b_dfb.pop()
        o_block.store(y * y)
        o_block.push()
        """,
        lambda core, a, b: ([(a[0] + b[0]) ** 2], []),
        {},
    ),
    "reduction after the with": (
        """
        with a_dfb.wait() as x:
            y = x * 0.5
        m = ttl.math.reduce_max(y, dims=[1])
        with o_dfb.reserve() as o_block:
            o_block.store(y - m)
        """,
        lambda core, a, b: ([a[0] * 0.5 - (a[0] * 0.5).max(1, keepdims=True)], []),
        {"reads": (1, 0)},
    ),
    "reduced in the with": (
        """
        with a_dfb.wait() as x:
            m = ttl.math.reduce_max(x, dims=[1])
        with b_dfb.wait() as x:
            y = ttl.math.exp(x - m)
        with o_dfb.reserve() as o_block:
            o_block.store(y)
        """,
        lambda core, a, b: ([np.exp(b[0] - a[0].max(1, keepdims=True))], []),
        {},
    ),
    "product after the with": (
        """
        with a_dfb.wait() as x:
            y = x * 0.125
        with b_dfb.wait() as w, o_dfb.reserve() as o_block:
            o_block.store(y @ w)
        """,
        lambda core, a, b: ([a[0] * 0.125 @ b[0]], []),
        {},
    ),
    "product in the with": (
        """
        with a_dfb.wait() as x, b_dfb.wait() as w:
            y = x @ w
        with o_dfb.reserve() as o_block, p_dfb.reserve() as p_block:
            o_block.store(y * 0.125)
            p_block.store(-y)
        """,
        lambda core, a, b: ([a[0] @ b[0] * 0.125], [-(a[0] @ b[0])]),
        {"writes": (1, 1)},
    ),
    "loop seeded from a first block": (
        """
        with a_dfb.wait() as x:
            m = x * 1.0
        for _ in range(3):
            with a_dfb.wait() as x:
                m = ttl.math.max(m, x)
        with o_dfb.reserve() as o_block:
            o_block.store(m)
        """,
        lambda core, a, b: ([np.maximum.reduce(a)], []),
        {"reads": (4, 0)},
    ),
    "list of values": (
        """
        values = []
        for _ in range(3):
            with a_dfb.wait() as x:
                values.append(x * x)
        with o_dfb.reserve() as o_block:
            o_block.store(values[0] + values[2] - values[1])
        """,
        lambda core, a, b: ([a[0] ** 2 + a[2] ** 2 - a[1] ** 2], []),
        {"reads": (3, 0)},
    ),
    "sum outside a loop": (
        """
        acc = ttl.block.fill(0.0, shape=(2, 2))
        with a_dfb.wait() as x:
            acc += x * x
        with b_dfb.wait() as x:
            acc += x * x
        with o_dfb.reserve() as o_block:
            o_block.store(acc)
        """,
        lambda core, a, b: ([a[0] ** 2 + b[0] ** 2], []),
        {},
    ),
    "under an if of this core": (
        """
        if node == 0:
            with a_dfb.wait() as x:
                y = x * 2
            with b_dfb.wait() as x:
                z = x + y
            with o_dfb.reserve() as o_block:
                o_block.store(z)
        else:
            with a_dfb.wait() as x, b_dfb.wait() as w:
                y = x - w
            with o_dfb.reserve() as o_block:
                o_block.store(y)
        """,
        lambda core, a, b: ([b[0] + a[0] * 2 if core == 0 else a[0] - b[0]], []),
        {"cores": 2},
    ),
    "released in both branches": (
        """
        x = a_dfb.wait()
        y = x * 2
        with o_dfb.reserve() as o_block:
            if node == 0:
                z = x + 1.0
                x.pop()
                o_block.store(y * z)
            else:
                x.pop()
                o_block.store(y)
        """,
        lambda core, a, b: ([a[0] * 2 * (a[0] + 1) if core == 0 else a[0] * 2], []),
        {"reads": (1, 0), "cores": 2},
    ),
    "scratch buffer used again": (
        """
        with a_dfb.wait() as x, s_dfb.reserve() as s:
            s.store(x * 2)
        with s_dfb.wait() as s:
            y = s + 1.0
        with b_dfb.wait() as x, s_dfb.reserve() as s:
            s.store(x * 3)
        with s_dfb.wait() as s, o_dfb.reserve() as o_block:
            o_block.store(y * s)
        """,
        lambda core, a, b: ([(a[0] * 2 + 1) * (b[0] * 3)], []),
        {},
    ),
    "block stored to again": (
        """
        with a_dfb.wait() as x, b_dfb.wait() as w:
            with o_dfb.reserve() as o_block:
                o_block.store(x)
                y = o_block + 1.0
                o_block.store(w)
                z = o_block * 2.0
        with p_dfb.reserve() as p_block:
            p_block.store(y * z)
        """,
        lambda core, a, b: ([b[0]], [(a[0] + 1) * (b[0] * 2)]),
        {"writes": (1, 1)},
    ),
    "stored to again, with what both stores share": (
        """
        with a_dfb.wait() as x, o_dfb.reserve() as o_block:
            y = ttl.math.tanh(x)
            o_block.store(y - 5.0)
            o_block.store(y)
        """,
        lambda core, a, b: ([np.tanh(a[0])], []),
        {"reads": (1, 0)},
    ),
    "added to, with what the sums share": (
        """
        with a_dfb.wait() as x, o_dfb.reserve() as o_block:
            y = ttl.math.tanh(x)
            o_block.store(y - 0.5)
            o_block += y
            o_block += 0.5 - y
        """,
        lambda core, a, b: ([np.tanh(a[0])], []),
        {"reads": (1, 0)},
    ),
    "two blocks of one buffer, the first popped": (
        """
        x = a_dfb.wait()
        w = a_dfb.wait()
        y = x - w
        x.pop()
        z = w * 0.5
        w.pop()
        with o_dfb.reserve() as o_block:
            o_block.store(y + z)
        """,
        lambda core, a, b: ([a[0] - a[1] + a[1] * 0.5], []),
        {"reads": (2, 0)},
    ),
    "chosen per core": (
        """
        with a_dfb.wait() as x, b_dfb.wait() as w, o_dfb.reserve() as o_block:
            v = x if node == 0 else w
            o_block.store(v)
        """,
        lambda core, a, b: ([a[0] if core == 0 else b[0]], []),
        {"cores": 2},
    ),
    "computed per core": (
        """
        with a_dfb.wait() as x, b_dfb.wait() as w:
            v = x * 2 if node == 0 else ttl.math.exp(w)
        with o_dfb.reserve() as o_block, p_dfb.reserve() as p_block:
            o_block.store(v + 1.0)
            p_block.store(v * v)
        """,
        lambda core, a, b: (lambda v: ([v + 1], [v * v]))(a[0] * 2 if core == 0 else np.exp(b[0])),
        {"cores": 2, "writes": (1, 1)},
    ),
    "assigned in both branches": (
        """
        with a_dfb.wait() as x, b_dfb.wait() as w, o_dfb.reserve() as o_block:
            if node == 0:
                v = x - w
            elif node == 1:
                v = x + w
            else:
                v = x * w
            o_block.store(v)
        """,
        lambda core, a, b: ([(a[0] - b[0], a[0] + b[0], a[0] * b[0])[core]], []),
        {"cores": 3},
    ),
    "changed in one branch": (
        """
        with a_dfb.wait() as x:
            v = x * 2
        if node == 1:
            with b_dfb.wait() as w:
                v = v - w
        else:
            with b_dfb.wait() as w:
                unused = w * 3
        with o_dfb.reserve() as o_block:
            o_block.store(v)
        """,
        lambda core, a, b: ([a[0] * 2 - (b[0] if core == 1 else 0)], []),
        {"cores": 2},
    ),
    "reduced on one core": (
        """
        with a_dfb.wait() as x, b_dfb.wait() as w:
            if node == 0:
                m = ttl.math.reduce_max(x, dims=[1])
            else:
                m = ttl.math.reduce_sum(x, dims=[1]) * 0.125
            y = w - m
        with o_dfb.reserve() as o_block:
            o_block.store(y)
        """,
        lambda core, a, b: (
            [b[0] - (a[0].max(1, keepdims=True) if core == 0 else a[0].sum(1, keepdims=True) * 0.125)],
            [],
        ),
        {"cores": 2},
    ),
    "returned by a helper": (
        """
        def pick(x, w):
            if node == 0:
                return x * 0.5
            return w

        with a_dfb.wait() as x, b_dfb.wait() as w:
            v = pick(x, w)
        with o_dfb.reserve() as o_block:
            o_block.store(v * v)
        """,
        lambda core, a, b: ([(a[0] * 0.5 if core == 0 else b[0]) ** 2], []),
        {"cores": 2},
    ),
    "chosen in every round": (
        """
        total = ttl.block.fill(0.0, shape=(2, 2))
        for _ in range(3):
            with a_dfb.wait() as x, b_dfb.wait() as w:
                v = x if node == 0 else w * 2
                total = total + v
        with o_dfb.reserve() as o_block:
            o_block.store(total)
        """,
        lambda core, a, b: ([sum(a) if core == 0 else sum(b) * 2], []),
        {"cores": 2, "reads": (3, 3)},
    ),
    "start of a loop": (
        """
        with a_dfb.wait() as x:
            m = x * 1.0 if node == 0 else ttl.math.fill(0.25)
        for _ in range(2):
            with b_dfb.wait() as w:
                m = ttl.math.max(m, w)
        with o_dfb.reserve() as o_block:
            o_block.store(m)
        """,
        lambda core, a, b: ([np.maximum.reduce([a[0] if core == 0 else np.full_like(a[0], 0.25), *b])], []),
        {"cores": 2, "reads": (1, 2)},
    ),
    "number and buffer per core": (
        """
        scale = 2.0 if node == 0 else -1.0
        source = a_dfb if node == 0 else b_dfb
        other = b_dfb if node == 0 else a_dfb
        with source.wait() as x:
            y = x * scale
        with other.wait() as x, o_dfb.reserve() as o_block:
            o_block.store(y + x)
        """,
        lambda core, a, b: ([a[0] * 2 + b[0] if core == 0 else a[0] - b[0]], []),
        {"cores": 2},
    ),
    "output block per core": (
        """
        with a_dfb.wait() as x, o_dfb.reserve() as o_block, p_dfb.reserve() as p_block:
            first = o_block if node == 0 else p_block
            second = p_block if node == 0 else o_block
            first.store(x)
            second.store(x * 3)
        """,
        lambda core, a, b: ([a[0] * (1 if core == 0 else 3)], [a[0] * (3 if core == 0 else 1)]),
        {"cores": 2, "reads": (1, 0), "writes": (1, 1)},
    ),
    "one of three": (
        """
        with a_dfb.wait() as x, b_dfb.wait() as w:
            v = x if node == 0 else (w if node == 1 else x * w)
            u = v - 1.0
        with o_dfb.reserve() as o_block:
            o_block.store(u)
        """,
        lambda core, a, b: ([(a[0], b[0], a[0] * b[0])[core] - 1], []),
        {"cores": 3},
    ),
    "chosen by core and round": (
        """
        for i in range(3):
            with a_dfb.wait() as x, o_dfb.reserve() as o_block:
                v = x * 2 if node == i else x - 1.0
                o_block.store(v * 0.5)
        """,
        lambda core, a, b: ([(x * 2 if core == i else x - 1) * 0.5 for i, x in enumerate(a)], []),
        {"cores": 2, "reads": (3, 0), "writes": (3, 0)},
    ),
    "waited for by one side": (
        """
        v = a_dfb.wait() * 2 if node == 0 else a_dfb.wait()
        with o_dfb.reserve() as o_block:
            o_block.store(v)
        """,
        lambda core, a, b: ([a[0] * (2 if core == 0 else 1)], []),
        {"cores": 2, "reads": (1, 0)},
    ),
    "function per core": (
        """
        function = ttl.math.exp if node == 0 else ttl.math.tanh
        with a_dfb.wait() as x, o_dfb.reserve() as o_block:
            o_block.store(function(x) + 1.0)
        """,
        lambda core, a, b: ([(np.exp(a[0]) if core == 0 else np.tanh(a[0])) + 1], []),
        {"cores": 2, "reads": (1, 0)},
    ),
    "chosen, then added": (
        """
        with a_dfb.wait() as x, b_dfb.wait() as w, o_dfb.reserve() as o_block:
            o_block.store(x)
            v = w if node == 0 else w * 0.5
            o_block += v
            o_block += v
        """,
        lambda core, a, b: ([a[0] + b[0] * (2 if core == 0 else 1)], []),
        {"cores": 2},
    ),
    "a sum that one core adds more to": (
        """
        acc = ttl.math.fill(0)
        for _ in range(3):
            with a_dfb.wait() as x:
                if node == 0:
                    acc += x
                    t = x * 0.5
                else:
                    t = x * -1.0
                acc += t
        with o_dfb.reserve() as o_block:
            o_block.store(acc)
        """,
        lambda core, a, b: ([sum(a) * (1.5 if core == 0 else -1)], []),
        {"cores": 2, "reads": (3, 0)},
    ),
    "branches in a branch": (
        """
        with a_dfb.wait() as x:
            v = x * 2
            if node > 0:
                v = v + x
                if node == 2:
                    v = -v
        with o_dfb.reserve() as o_block:
            o_block.store(v)
        """,
        lambda core, a, b: ([a[0] * (2, 3, -3)[core]], []),
        {"cores": 3, "reads": (1, 0)},
    ),
    "used in a loop behind it": (
        """
        with b_dfb.wait() as w:
            y = ttl.math.tanh(w)
        for _ in range(3):
            with a_dfb.wait() as x, o_dfb.reserve() as o_block:
                o_block.store(x * y)
        """,
        lambda core, a, b: ([x * np.tanh(b[0]) for x in a], []),
        {"reads": (3, 1), "writes": (3, 0)},
    ),
    "turned, used in a loop and stored behind it": (
        """
        with b_dfb.wait() as w:
            y = ttl.block.transpose(w * 0.5 + 0.25)
        z = ttl.math.relu(y)
        for _ in range(2):
            with a_dfb.wait() as x, o_dfb.reserve() as o_block:
                o_block.store(x * y)
        with p_dfb.reserve() as p_block:
            p_block.store(z)
        """,
        lambda core, a, b: (
            [x * (b[0] * 0.5 + 0.25).T for x in a],
            [np.maximum((b[0] * 0.5 + 0.25).T, 0)],
        ),
        {"reads": (2, 1), "writes": (2, 1)},
    ),
    "values nobody stores": (
        """
        with a_dfb.wait() as x:
            v = x * 2 if node == 0 else x * 3
            unused = ttl.math.exp(v) - v
        for _ in range(2):
            with b_dfb.wait() as w, o_dfb.reserve() as o_block:
                neither = unused * w
                o_block.store(w + v)
        """,
        lambda core, a, b: ([w + a[0] * (2 if core == 0 else 3) for w in b], []),
        {"cores": 2, "reads": (1, 2), "writes": (2, 0)},
    ),
    "in every round of a loop": (
        """
        for _ in range(3):
            with a_dfb.wait() as x:
                y = x * x
            with b_dfb.wait() as x:
                z = x - y
            with o_dfb.reserve() as o_block:
                o_block.store(z + y)
        """,
        lambda core, a, b: ([w - x * x + x * x for x, w in zip(a, b, strict=True)], []),
        {"reads": (3, 3), "writes": (3, 0)},
    ),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", FORMS)
def test_value_is_what_it_was_where_it_was_written(kernels, form, dtype):
    body, meaning, layout = FORMS[form]
    run(kernels, body, meaning, dtype=dtype, **layout)


@pytest.mark.parametrize("form", ["used in the next with", "sum outside a loop", "in every round of a loop"])
def test_buffers_of_one_block(kernels, form):
    """Compute hands its blocks back at once, as written: nobody could fill the next one otherwise."""
    body, meaning, layout = FORMS[form]
    run(kernels, body, meaning, count=1, **layout)


def compiler_buffers(program):
    return [buffer.name for buffer in program.buffers if buffer.origin == "compiler"]


def decisions(program):
    return " ".join(decision.title for decision in program.trace.decisions)


def test_value_stays_in_dst_where_the_pop_may_wait(kernels):
    """With two blocks of each input the pops wait for the store; one block in a loop is given back at once."""
    body, meaning, layout = FORMS["used in the next with"]
    program = run(kernels, body, meaning, **layout)
    assert not compiler_buffers(program) and program.cpp["compute"].count("tile_regs_acquire") == 1
    assert "'y' is computed before 'a_dfb' is popped" in decisions(program)
    assert "is computed where wanted, without that buffer" in decisions(program)
    body, meaning, layout = FORMS["in every round of a loop"]
    assert not any("z" in name for name in compiler_buffers(run(kernels, body, meaning, **layout)))
    program = run(kernels, body, meaning, count=1, **layout)
    assert {name[0] for name in compiler_buffers(program)} == {"y", "z"}


def test_store_takes_place_before_the_pop(kernels):
    program = run(
        kernels,
        """
        with o_dfb.reserve() as o_block:
            with a_dfb.wait() as x:
                y = x * 2
            o_block.store(y)
        """,
        lambda core, a, b: ([a[0] * 2], []),
        reads=(1, 0),
        count=1,
    )
    text = program.cpp["compute"]
    assert not compiler_buffers(program) and text.index("tile_regs_release") < text.index("cb_pop_front")
    assert any(decision.detail == "its store takes place there" for decision in program.trace.decisions)


def test_values_whose_ways_do_not_overlap_share_a_buffer(kernels):
    body = """
        for _ in (0, 1, 2, 3, 4, 5):
            with a_dfb.wait() as x:
                y = ttl.math.exp(x)
            with o_dfb.reserve() as o_block:
                o_block.store(y)
            with p_dfb.reserve() as p_block:
                p_block.store(y * 2)
    """
    program = run(
        kernels, body, lambda core, a, b: ([np.exp(x) for x in a], [np.exp(x) * 2 for x in a]), reads=(6, 0), writes=(6, 6)
    )
    assert len(compiler_buffers(program)) == 1


@pytest.mark.parametrize("form", ["chosen per core", "assigned in both branches"])
def test_each_branch_stores_its_own_value(kernels, form):
    body, meaning, layout = FORMS[form]
    program = run(kernels, body, meaning, **layout)
    assert not compiler_buffers(program)
    assert program.cpp["compute"].count("tile_regs_acquire") == layout["cores"]
    assert "each branch stores its own value" in decisions(program)


MOVES = """
from tilewright import ttl

@ttl.operation(grid=(3, 1))
def kernel(a, b, out):
    dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 2), block_count=2)
    other_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 2), block_count=2)
    out_dfb = ttl.make_dataflow_buffer_like(out, shape=(1, 2), block_count=2)

    @ttl.compute()
    def compute():
        for _ in range(2):
            with dfb.wait() as x, other_dfb.wait() as y, out_dfb.reserve() as o:
                o.store(x - y)

    @ttl.datamovement()
    def read():
        node, _ = ttl.node(dims=2)
{read}

    @ttl.datamovement()
    def write():
        node, _ = ttl.node(dims=2)
        for i in range(2):
            with out_dfb.wait() as block:
                ttl.copy(block, out[node * 2 + i, 0:2]).wait()
"""
READERS = {
    "tensor": """
        source = a if node == 0 else b
        for i in range(2):
            with dfb.reserve() as block:
                ttl.copy(source[node * 2 + i, 0:2], block).wait()
            with other_dfb.reserve() as block:
                ttl.copy(a[i, 0:2], block).wait()
    """,
    "slice": """
        for i in range(2):
            with dfb.reserve() as block, other_dfb.reserve() as other:
                part = a[i, 0:2] if node == 0 else b[node * 2 + i, 0:2]
                first = ttl.copy(part, block)
                second = ttl.copy(a[i, 0:2], other)
                first.wait()
                second.wait()
    """,
    "inside the copy": """
        for i in range(2):
            with dfb.reserve() as block:
                ttl.copy(a[i, 0:2] if node == 0 else b[node * 2 + i, 0:2], block).wait()
            with other_dfb.reserve() as block:
                ttl.copy(a[i, 0:2], block).wait()
    """,
    "if statement": """
        for i in range(2):
            if node == 0:
                source, row = a, i
            else:
                source, row = b, node * 2 + i
            with dfb.reserve() as block, other_dfb.reserve() as other:
                ttl.copy(source[row, 0:2], block).wait()
                ttl.copy(a[i, 0:2], other).wait()
    """,
    "copy": """
        for i in range(2):
            with dfb.reserve() as block, other_dfb.reserve() as other:
                if node == 0:
                    copy = ttl.copy(a[i, 0:2], block)
                else:
                    copy = ttl.copy(b[node * 2 + i, 0:2], block)
                ttl.copy(a[i, 0:2], other).wait()
                copy.wait()
    """,
    "target": """
        for i in range(2):
            with dfb.reserve() as block, other_dfb.reserve() as other:
                first = block if node == 0 else other
                second = other if node == 0 else block
                ttl.copy(a[i, 0:2], first).wait()
                ttl.copy(a[i, 0:2] if node == 0 else b[node * 2 + i, 0:2], second).wait()
                if node != 0:
                    ttl.copy(b[node * 2 + i, 0:2], block).wait()
                    ttl.copy(a[i, 0:2], other).wait()
    """,
    "helper": """
        def source(row):
            if node == 0:
                return a[row, 0:2]
            return b[node * 2 + row, 0:2]

        def fetch(buffer, part):
            with buffer.reserve() as block:
                ttl.copy(part, block).wait()

        for i in range(2):
            part = source(i)
            fetch(dfb, part)
            fetch(other_dfb, a[i, 0:2])
    """,
}


@pytest.mark.parametrize("form", READERS)
def test_transfer_chosen_per_core(kernels, form):
    generator = np.random.default_rng(5)
    a, b = (generator.uniform(-1, 1, (192, 64)).astype(np.float32) for _ in range(2))
    out = np.zeros_like(a)
    kernels.run(MOVES.format(read=READERS[form].strip("\n").rstrip()), a, b, out)
    wanted = [(a if row < 2 else b)[row * 32 : row * 32 + 32] - a[row % 2 * 32 : row % 2 * 32 + 32] for row in range(6)]
    if form == "target":
        wanted[:2] = [np.zeros((32, 64))] * 2
    assert np.abs(out - np.concatenate(wanted)).max() < 2e-3
