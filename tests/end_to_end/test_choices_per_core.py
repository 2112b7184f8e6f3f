"""Values, tensors and copies that differ by core, or by the branch that a core takes."""

from __future__ import annotations

import numpy as np
import pytest

from compute_bodies import DTYPES, compiler_buffers, decisions, run

FORMS = {
    "a stored block that both branches store": (
        """
        with o_dfb.reserve() as o_block:
            with a_dfb.wait() as x:
                if node == 0:
                    o_block.store(x * 2)
                elif node == 1:
                    o_block.store(ttl.math.exp(x))
                else:
                    o_block.store(ttl.math.reduce_max(x, dims=[1]) + x)
            with b_dfb.wait() as w:
                o_block.store(o_block - w)
                if node > 1:
                    o_block.store(o_block * 2)
                o_block.store(ttl.math.max(o_block, w) + o_block)
        """,
        lambda core, a, b: (lambda v: ([np.maximum(v, b[0]) + v], []))(
            ((a[0] * 2, np.exp(a[0]), a[0].max(1, keepdims=True) + a[0])[core] - b[0]) * (1, 1, 2)[core]
        ),
        {"cores": 3},
    ),
    "a stored block that one branch changes": (
        """
        with a_dfb.wait() as x, o_dfb.reserve() as o_block:
            o_block.store(x)
            if node == 1:
                o_block += x
            if node == 0:
                o_block.store(x * 5)
            else:
                o_block.store(o_block * 3)
            o_block.store(o_block * o_block)
        """,
        lambda core, a, b: ([(a[0] * (5, 6)[core]) ** 2], []),
        {"cores": 2, "reads": (1, 0)},
    ),
    "a sum onto what both branches store": (
        """
        with a_dfb.wait() as x, o_dfb.reserve() as o_block:
            if node == 0:
                o_block.store(x * 2)
            else:
                o_block.store(x * 3)
            o_block += x
            if node == 2:
                o_block += x * x
            o_block.store(o_block * x + o_block)
        """,
        lambda core, a, b: ([(a[0] * (3, 4, 4)[core] + a[0] * a[0] * (core == 2)) * (a[0] + 1)], []),
        {"cores": 3, "reads": (1, 0)},
    ),
    "a stored block that some turns of a loop change": (
        """
        with o_dfb.reserve() as o_block:
            with a_dfb.wait() as x:
                o_block.store(x)
            total = ttl.block.fill(0.0, shape=(2, 2))
            for i in range(3):
                with b_dfb.wait() as w:
                    if (i + node) % 2 == 0:
                        o_block.store(w)
                    total = total + o_block
            o_block.store(total)
        """,
        lambda core, a, b: ([b[0] + b[0] + b[2] if core == 0 else a[0] + b[1] + b[1]], []),
        {"cores": 2, "reads": (1, 3)},
    ),
    "numbers of lists in expressions": (
        """
        table = [0.5, 2.0, -1.0]
        with a_dfb.wait() as x, o_dfb.reserve() as o_block:
            y = x * [3.0, 4.0, 5.0][node] + table[node]
            y += 0.25 if node == 0 else 0.5
            y *= [1.0, 2.0, 4.0][[2, 0, 1][node]]
            if table[node] > 0.75:
                y = y * 2
            o_block.store(y)
        """,
        lambda core, a, b: ([((a[0] * (3, 4, 5)[core] + (0.5, 2, -1)[core] + (0.25, 0.5, 0.5)[core]) * (4, 1, 2)[core]) * (1, 2, 1)[core]], []),
        {"cores": 3, "reads": (1, 0)},
    ),
    "functions of a list": (
        """
        with a_dfb.wait() as x, o_dfb.reserve() as o_block:
            o_block.store([ttl.math.exp, ttl.math.abs][node](x) * [0.5, 2][node])
        """,
        lambda core, a, b: ([(np.exp, np.abs)[core](a[0]) * (0.5, 2)[core]], []),
        {"cores": 2, "reads": (1, 0)},
    ),
    "lists read from their ends": (
        """
        with a_dfb.wait() as x, o_dfb.reserve() as o_block:
            o_block.store(x * [1, 2, 3, 4][node - 2] + [0.5, 1.0, 1.5][node - 3])
        """,
        lambda core, a, b: ([a[0] * [1, 2, 3, 4][core - 2] + [0.5, 1.0, 1.5][core - 3]], []),
        {"cores": 3, "reads": (1, 0)},
    ),
    "entries that only some cores read": (
        """
        with a_dfb.wait() as x, o_dfb.reserve() as o_block:
            factor = [3][node] if node < 1 else 2
            if node < 1 and [7][node] == 7:
                o_block.store(x * [5.0][node])
            elif node < 1 or [8][node - 1] == 7:
                o_block.store(x)
            else:
                o_block.store(x * factor)
        """,
        lambda core, a, b: ([a[0] * (5, 2)[core]], []),
        {"cores": 2, "reads": (1, 0)},
    ),
    "taken from a list": (
        """
        with a_dfb.wait() as x, b_dfb.wait() as w:
            v = [x, w * 2, x - w][node]
        with o_dfb.reserve() as o_block:
            o_block.store(v * v)
        """,
        lambda core, a, b: ([(a[0], b[0] * 2, a[0] - b[0])[core] ** 2], []),
        {"cores": 3},
    ),
    "taken from a table": (
        """
        with o_dfb.reserve() as o_block:
            o_block.store(ttl.block.fill(0.0, shape=(2, 2)))
            for i in range(3):
                with a_dfb.wait() as x, b_dfb.wait() as w:
                    scale = (0.5, 2.0)[node]
                    o_block += {0: x, 1: w}[node] * scale
        """,
        lambda core, a, b: ([sum(b) * 2 if core else sum(a) * 0.5], []),
        {"cores": 2, "reads": (3, 3)},
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
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", FORMS)
def test_each_core_has_its_own(kernels, form, dtype):
    body, meaning, layout = FORMS[form]
    run(kernels, body, meaning, dtype=dtype, **layout)


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
    "unpacked": """
        for i in range(2):
            source, (row, *columns) = (a, (i, 0, 2)) if node == 0 else (b, (node * 2 + i, 0, 2))
            with dfb.reserve() as block, other_dfb.reserve() as other:
                ttl.copy(source[row, columns[0] : columns[1]], block).wait()
                ttl.copy(a[i, 0:2], other).wait()
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
