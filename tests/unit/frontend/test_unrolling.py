"""Loops that only Python can run are unrolled; what they leave behind is what Python leaves."""

from __future__ import annotations

import pytest

from tilewright.diagnostics import KernelError


@pytest.mark.parametrize(
    ("thread", "expected"),
    [
        ("step = 1\nwhile step < 20:\n    COPY(step)\n    step *= 3", [1, 3, 9]),
        ("rows = [4, 5, 6]\nfor i in range(3):\n    rows[i] += i\n    COPY(rows[i])", [4, 6, 8]),
        ("rows = {}\nfor i in range(3):\n    rows[f'r{i}'] = i * i\nfor row in rows.values():\n    COPY(row)", [0, 1, 4]),
        ("rows = []\nfor i in range(2):\n    for j in range(2):\n        rows.append(i * 5 + j)\nfor r in rows:\n    COPY(r)", [0, 1, 5, 6]),
        ("a, b = (3, 4), (7, 8)\nfor i in range(3):\n    COPY(a[0])\n    a, b = b, a", [3, 7, 3]),
        ("for i in range(4):\n    if i == 2:\n        break\n    COPY(i)\nCOPY(i)", [0, 1, 2]),
        ("for i in (5, 6, 7):\n    if i == 6:\n        continue\n    COPY(i)", [5, 7]),
        ("while True:\n    COPY(1)\n    break", [1]),
        ("for i in range(3):\n    last = i * 2\nCOPY(last)", [4]),
        ("for i in range(3):\n    if i == 0:\n        row = 7\n    else:\n        row = row + i\n    COPY(row)", [7, 8, 10]),
        ("first, *rest = (1, 2, 3)\nCOPY(first)\nfor r in rest:\n    COPY(r)", [1, 2, 3]),
        ("rows = {r: r + 1 for r in (2, 5)}\nfor r in rows:\n    COPY(rows[r])", [3, 6]),
        ("def at(i, *more, by=10):\n    return i + sum(more) + by\nCOPY(at(1))\nCOPY(at(1, 2, by=0))", [11, 3]),
        ("fs = []\nfor i in range(3):\n    fs.append(lambda i=i: i + 4)\nfor f in fs:\n    COPY(f())", [4, 5, 6]),
    ],
)
def test_python_runs_the_loop(tiles_read, thread, expected):
    before = "def take(cb, lhs, row):\n    ttl.copy(lhs[row, 0], cb.reserve()).wait()\n"
    starts = tiles_read(thread.replace("COPY(", "take(cb, lhs, "), before=before)[0, 0]
    assert starts == [(row, 0) for row in expected]


def test_a_list_of_buffers_is_indexed_in_a_helper(load, tensor):
    scope = load(
        """
        from tilewright import ttl

        @ttl.operation(grid=(1, 1))
        def kernel(lhs):
            cbs = [ttl.make_dataflow_buffer_like(lhs, shape=(1, 1)) for _ in range(3)]

            @ttl.datamovement()
            def read():
                def fill(which, row):
                    with cbs[which].reserve() as block:
                        ttl.copy(lhs[row, 0], block).wait()

                for row in range(50):
                    for which in range(3):
                        fill(which, row)
        """
    )
    text = str(scope["kernel"].build(tensor(shape=(1600, 32))).module)
    assert text.count("scf.for") == 1 and text.count("ttl.copy ") == 3


def test_break_inside_a_with_releases_its_block(load, tensor):
    scope = load(
        """
        from tilewright import ttl

        @ttl.operation(grid=(1, 1))
        def kernel(lhs):
            cb = ttl.make_dataflow_buffer_like(lhs, shape=(1, 1))

            @ttl.datamovement()
            def read():
                for row in (0, 1, 2):
                    with cb.reserve() as block:
                        ttl.copy(lhs[row, 0], block).wait()
                        if row == 1:
                            break
        """
    )
    text = str(scope["kernel"].build(tensor(shape=(96, 32))).module)
    assert text.count("ttl.cb_reserve ") == 2 and text.count("ttl.cb_push ") == 2


def test_the_failure_behind_an_unrolled_loop_is_the_one_told(tiles_read):
    thread = "rows = [1, 2]\nfor i in range(2):\n    rows[i] = 3\nttl.copy(lhs[rowz[0], 0], cb.reserve()).wait()"
    with pytest.raises(KernelError, match="name 'rowz' is not defined"):
        tiles_read(thread)


def test_the_failure_of_a_loop_that_cannot_be_unrolled_is_told_as_it_was(tiles_read):
    thread = "x, _ = ttl.core(dims=2)\nname = lambda: ('a', 'b')[x]\nfor i in range(2):\n    print(name())"
    with pytest.raises(KernelError, match=r"print of 'a' or, on other cores, 'b'"):
        tiles_read(thread, grid=(2, 1))


def test_a_loop_without_end(tiles_read):
    with pytest.raises(KernelError, match="does not end within 4096 iterations"):
        tiles_read("while True:\n    pass")
