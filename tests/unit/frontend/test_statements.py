"""Integers, loops and branches of a thread mean what they mean in Python."""

from __future__ import annotations

import pytest

from tilewright.diagnostics import KernelError

COPY = "ttl.copy(lhs[{0}, {1}], cb.reserve()).wait()"


def copy(row: str, column: str = "0") -> str:
    return COPY.format(row, column)


def test_loops_nest(tiles_read):
    starts = tiles_read(f"for i in range(2):\n    for j in range(1, 6, 2):\n        {copy('i', 'j')}")[0, 0]
    assert starts == [(i, j) for i in range(2) for j in range(1, 6, 2)]


def test_loop_stays_a_loop(load, tensor):
    scope = load(
        """
        from tilewright import ttl

        @ttl.operation(grid=(1, 1))
        def kernel(lhs):
            cb = ttl.make_dataflow_buffer_like(lhs, shape=(1, 1))

            @ttl.datamovement()
            def read():
                for i in range(50):
                    ttl.copy(lhs[i, 0], cb.reserve()).wait()
        """
    )
    text = str(scope["kernel"].build(tensor(shape=(1600, 32))).module)
    assert text.count("scf.for") == 1 and text.count("ttl.copy ") == 1


@pytest.mark.parametrize(
    "values",
    ["range(5, -1, -2)", "range(0)", "range(3, 3)", "(4, 1, 7)", "[2, 2]", "reversed(range(3))", "[n * 3 for n in range(3)]"],
)
def test_sequences(tiles_read, values):
    starts = tiles_read(f"for i in {values}:\n    {copy('i')}")[0, 0]
    assert starts == [(i, 0) for i in eval(values)]


def test_enumerate_zip_and_tuples(tiles_read):
    thread = f"""
    for position, (row, column) in enumerate(zip((5, 6), (7, 8))):
        {copy("row + position", "column")}
    """
    assert tiles_read(thread)[0, 0] == [(5, 7), (7, 8)]


def test_backward_loop_with_dynamic_start(tiles_read):
    starts = tiles_read(f"x, _ = ttl.core(dims=2)\nfor i in range(x + 2, -1, -1):\n    {copy('i')}", grid=(3, 1))
    assert {core: [s[0] for s in got] for core, got in starts.items()} == {(x, 0): list(range(x + 2, -1, -1)) for x in range(3)}


@pytest.mark.parametrize(
    "expression",
    [
        "x + y * 3",
        "(x - 1) % 4",
        "(x - 3) // 2 + 10",
        "x // 2 + y % 2",
        "(x + 1) * (y + 1)",
        "min(x, y) + max(x, 2)",
        "x if x > y else y + 5",
        "x << 1",
        "(x * 8) >> 2",
        "x ** 2",
        "abs(x - 2)",
        "int(x == y) + 4",
        "(3, 1, 4, 1)[x]",
        "1 if x == 0 and y == 1 else 2 if x != 1 or not y else 3",
        "x if 0 < x <= 2 else 9",
        "7 if x in (0, 3) else 8",
        "-(-(x + 1) // 2)",
        "sum((x, y, 4)) if False else x",
    ],
)
def test_integer_arithmetic_of_core_coordinates(tiles_read, expression):
    starts = tiles_read(f"x, y = ttl.core(dims=2)\n{copy(expression)}", grid=(4, 3))
    for (x, y), got in starts.items():
        assert got == [(eval(expression, {"x": x, "y": y}), 0)]


def test_branches_choose_integers(tiles_read):
    thread = f"""
    x, y = ttl.node(dims=2)
    row = 1
    flag = x > 1
    if x == 0:
        row = 10
    elif y == 1:
        row, extra = 20 + x, 3
    if flag:
        row += 1
    {copy("row", "y")}
    """
    for (x, y), got in tiles_read(thread, grid=(3, 2)).items():
        row = 10 if x == 0 else 20 + x if y == 1 else 1
        assert got == [(row + (x > 1), y)]


def test_loop_carries_integers(tiles_read):
    thread = f"""
    row = 3
    for i in range(4):
        {copy("row", "i")}
        row += i
        if i == 2:
            row = row + 10
    {copy("row")}
    """
    expected, row = [], 3
    for i in range(4):
        expected.append((row, i))
        row += i + (10 if i == 2 else 0)
    assert tiles_read(thread)[0, 0] == [*expected, (row, 0)]


def test_name_reused_by_later_loops(tiles_read):
    thread = f"""
    for i in range(2):
        row = i + 1
        {copy("row")}
    for i in range(2):
        row = i + 5
        {copy("row")}
    """
    assert [s[0] for s in tiles_read(thread)[0, 0]] == [1, 2, 5, 6]


def test_helpers_closures_and_lambdas_are_inlined(tiles_read):
    before = """
    def ceil_divide(a, b):
        return -(-a // b)

    def load(buffer, tensor, row, *, column=2):
        block = buffer.reserve()
        ttl.copy(tensor[row, column], block).wait()
        return row + 1
    """
    thread = """
    shift = lambda n: n + offset
    def twice(row):
        load(cb, lhs, row)
        return load(cb, lhs, row, column=4)
    last = twice(shift(1))
    ttl.copy(lhs[last, ceil_divide(7, 2)], cb.reserve()).wait()
    """
    assert tiles_read(thread, before=before, body="offset = 5")[0, 0] == [(6, 2), (6, 4), (7, 4)]


def test_host_functions_run_at_compile_time(tiles_read):
    before = """
    import math

    def steps(n):
        count = 0
        while n > 1:
            n //= 2
            count += 1
        return count
    """
    assert tiles_read(copy("steps(32)", "math.isqrt(50)"), before=before)[0, 0] == [(5, 7)]


@pytest.mark.parametrize(("grid", "dims"), [((4, 3), 1), ((4, 3), 2), ((4, 3), 3), ((2, 2, 2), 2), ((2, 2, 2), 1), ((6,), 2)])
def test_coordinates_fold_and_pad(tiles_read, grid, dims):
    """The highest dimensions are counted as one; missing ones are 0. Sizes follow the same rule."""
    names = ", ".join("xyz"[:dims])
    thread = f"""
    {names} = ttl.core(dims={dims})
    sizes = ttl.grid_size(dims={dims})
    total = sizes if {dims} == 1 else sizes[-1]
    {copy("x", "y" if dims > 1 else "total")}
    {copy("z" if dims > 2 else "total")}
    """
    last = 1
    for size in grid[dims - 1 :]:
        last *= size
    for core, got in tiles_read(thread, grid=grid).items():
        folded = 0
        for place, size in zip(core[dims - 1 :], grid[dims - 1 :], strict=True):
            folded = folded * size + place
        places = [*core[: dims - 1], folded] if dims <= len(grid) else [*core, *([0] * (dims - len(grid)))]
        total = last if dims <= len(grid) else 1
        assert got == [(places[0], places[1] if dims > 1 else total), (places[2] if dims > 2 else total, 0)]


def test_constant_conditions_fold(tiles_read):
    thread = f"""
    assert flag, "must hold"
    if flag and lhs.shape[0] == 3200:
        {copy("1")}
    else:
        undefined_name()
    for _ in range(0):
        undefined_name()
    """
    assert tiles_read(thread, body="flag = True")[0, 0] == [(1, 0)]


def test_symbolic_slice_sizes(tiles_read):
    thread = """
    x, _ = ttl.core(dims=2)
    for i in range(2):
        base = (x // 2) * 2 + i
        ttl.copy(lhs[base : base + 1, (i + 1) * 2 : 2 * i + 3], cb.reserve()).wait()
    """
    for (x, _), got in tiles_read(thread, grid=(4, 1)).items():
        assert got == [(x // 2 * 2 + i, 2 * i + 2) for i in range(2)]


def test_lists_of_copies(tiles_read):
    thread = """
    for i in range(2):
        pending = []
        for j in (3, 4):
            block = cb.reserve()
            pending.append(ttl.copy(lhs[i, j], block))
        for transfer in pending:
            transfer.wait()
    """
    assert tiles_read(thread)[0, 0] == [(0, 3), (0, 4), (1, 3), (1, 4)]


def test_lists_do_not_grow_on_the_device(tiles_read):
    with pytest.raises(KernelError, match="TW012"):
        tiles_read("rows = []\nfor i in range(200):\n    rows.append(i)\n" + copy("0"))
    with pytest.raises(KernelError, match="TW012"):
        tiles_read("shared.append(1)\n" + copy("0"), body="shared = []")
