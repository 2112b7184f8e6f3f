"""Loops over ranges in other words stay loops, and mean what they mean in Python."""

from __future__ import annotations

import itertools

import pytest

from tilewright.diagnostics import KernelError

IMPORTS = "import itertools\nfrom itertools import product\n"
TAKE = "def take(cb, lhs, row, column=0):\n    ttl.copy(lhs[row, column], cb.reserve()).wait()\n"
TILES = """
def tiles(rows, columns):
    x, y = ttl.core(dims=2)
    for row in range(y, rows, 2):
        for column in range(x, columns, 2):
            yield row, column
"""


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        ("for i, j in product(range(2), range(1, 4, 2)):\n    TAKE(i, j)", list(itertools.product(range(2), range(1, 4, 2)))),
        ("for pair in itertools.product(range(2), range(2)):\n    TAKE(*pair)", list(itertools.product(range(2), range(2)))),
        ("for n, i in enumerate(range(4, 10, 3)):\n    TAKE(i, n)", [(4, 0), (7, 1)]),
        ("for n, i in enumerate(range(5, 0, -2)):\n    TAKE(i, n)", [(5, 0), (3, 1), (1, 2)]),
        ("for i in reversed(range(1, 8, 3)):\n    TAKE(i)", [(7, 0), (4, 0), (1, 0)]),
    ],
)
def test_meaning(tiles_read, loop, expected):
    assert tiles_read(loop.replace("TAKE(", "take(cb, lhs, "), before=IMPORTS + TAKE)[0, 0] == expected


def test_a_range_of_this_core_backwards(tiles_read):
    starts = tiles_read("x, _ = ttl.core(dims=2)\nfor i in reversed(range(x, 4)):\n    take(cb, lhs, i)", grid=(2, 1), before=TAKE)
    assert starts == {(x, 0): [(i, 0) for i in reversed(range(x, 4))] for x in range(2)}


def test_a_helper_that_yields(tiles_read):
    starts = tiles_read("for r, c in tiles(4, 3):\n    take(cb, lhs, r, c)", grid=(2, 2), before=TAKE + TILES)
    for (x, y), got in starts.items():
        assert got == [(r, c) for r in range(y, 4, 2) for c in range(x, 3, 2)]


def test_a_local_helper_that_yields_with_code_behind(tiles_read):
    thread = "def pairs():\n    for i in range(2):\n        yield i, 5\n        take(cb, lhs, 9, i)\nfor a, b in pairs():\n    take(cb, lhs, a, b)"
    assert tiles_read(thread, before=TAKE)[0, 0] == [(0, 5), (9, 0), (1, 5), (9, 1)]


def test_they_stay_loops(load, tensor):
    scope = load(
        """
        from itertools import product
        from tilewright import ttl

        @ttl.operation(grid=(2, 2))
        def kernel(lhs):
            cb = ttl.make_dataflow_buffer_like(lhs, shape=(1, 1))

            def mine():
                x, y = ttl.node(dims=2)
                for row in range(y, 40, 2):
                    yield row

            @ttl.datamovement()
            def read():
                for row, column in product(range(20), range(30)):
                    ttl.copy(lhs[row, column], cb.reserve()).wait()
                for row in mine():
                    ttl.copy(lhs[row, 0], cb.reserve()).wait()
        """
    )
    text = str(scope["kernel"].build(tensor(shape=(1600, 1600))).module)
    assert text.count("scf.for") == 3 and text.count("ttl.copy ") == 2


@pytest.mark.parametrize(
    ("thread", "said"),
    [
        ("for r, c in tiles(400, 3):\n    break", "leaving a loop over what 'tiles' yields"),
        ("n = 0\nfor r, c in tiles(400, 3):\n    n = n + 1\n    take(cb, lhs, n)", "'n' changes in a loop that 'tiles' runs"),
        ("rows = [r for r, c in tiles(4, 3)]", "what 'tiles' yields cannot be iterated"),
    ],
)
def test_what_yielding_helpers_cannot_do(tiles_read, thread, said):
    with pytest.raises(KernelError, match=said):
        tiles_read(thread, grid=(2, 2), before=TAKE + TILES)
