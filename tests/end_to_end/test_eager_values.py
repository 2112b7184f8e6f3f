"""A value means what it was where it was written, whatever is released, overwritten or chosen after that.

Beside each body (`tests/compute_bodies.py`) stands what it means in NumPy, statement by statement.
"""

from __future__ import annotations

import numpy as np
import pytest

from compute_bodies import DTYPES, compiler_buffers, decisions, run

FORMS = {
    "the block as a value": (
        """
        with a_dfb.wait() as x:
            y, z = +x, x**1
        with b_dfb.wait() as x, o_dfb.reserve() as o_block, p_dfb.reserve() as p_block:
            o_block.store(y)
            p_block.store(z * x)
        """,
        lambda core, a, b: ([a[0]], [a[0] * b[0]]),
        {"writes": (1, 1)},
    ),
    "two blocks popped by a loop": (
        """
        x, w = a_dfb.wait(), a_dfb.wait()
        y = x - w
        for _ in range(2):
            a_dfb.pop()
        with o_dfb.reserve() as o_block:
            o_block.store(y)
        """,
        lambda core, a, b: ([a[0] - a[1]], []),
        {"reads": (2, 0)},
    ),
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
