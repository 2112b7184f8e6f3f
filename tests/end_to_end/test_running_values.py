"""Names that a loop changes, by what else happens to them: they replace each other, are seen before and behind their step, change in
branches, in inner loops and behind them. The same statements in NumPy say what comes out."""

from __future__ import annotations

import numpy as np
import pytest

import accumulation_kernels

FRAME = """
with c_dfb.wait() as c_blk, out_dfb.reserve() as o:
{start}
    for step in range(steps):
        with a_dfb.wait() as left, b_dfb.wait() as right:
{body}
    o.store({end})
"""
BODIES = {  # what names start from, the body of the loop, what is stored
    "names that change places": ("p = c_blk + 1\nq = c_blk * 2", "p, q = q, p * 0.5 + left", "p - q"),
    "a name that moves on": ("p = c_blk + 1\nq = c_blk * 2", "p = q + right\nq = q * 0.5 - left", "p + q"),
    "the old value behind the new one": (
        "total = c_blk + 0\nseen = c_blk - 4",
        "old = total\ntotal = total * 0.5 + left\nseen = largest(seen, old * right)",
        "seen + total",
    ),
    "one reads the other's new value": (
        "total = c_blk + 0\nseen = c_blk * 0",
        "total = total * 0.5 + left\nseen = seen + total * right",
        "seen - total",
    ),
    "both branches": ("total = c_blk + 0", "if step > 1:\n    total = total + left\nelse:\n    total = total * right", "total"),
    "before a branch and in it": ("total = c_blk + 0", "total = total * 0.5 + right\nif step > 1:\n    total = total + left", "total"),
    "a value from before the branch": (
        "total = c_blk + 0\nseen = c_blk * 0",
        "twice = total * 2\nif step > 1:\n    total = total + left\nseen = seen + twice * right",
        "seen + total",
    ),
    "an inner loop": ("total = c_blk + 0", "for again in range(3):\n    total = total * 0.5 + left", "total"),
    "an inner loop and behind it": (
        "total = c_blk + 0",
        "for again in range(3):\n    total = total * 0.5 + left\ntotal = total + right",
        "total",
    ),
    "sums in both branches, and other work": (
        "total = c_blk + 0\nseen = c_blk * 0",
        "if step > 1:\n    total = total + left\nelse:\n    total = total + right * left\nseen = right - seen * left",
        "seen + total",
    ),
    "a branch that forgets": ("total = c_blk + 0", "if step > 1:\n    total = total * 0.5 - left\nelse:\n    total = right * 2", "total"),
    "one branch that forgets, of a loop": ("total = c_blk + 0", "if step < 2:\n    total = right * 2", "total"),
    "each branch reads the other value": (
        "p = c_blk + 0\nq = c_blk * 2",
        "if step > 1:\n    p, q = q, p * 0.5 + left\nelse:\n    p = q - right",
        "p - q",
    ),
    "what it was before the branch": (
        "total = c_blk + 0\nseen = c_blk * 0",
        "old = total\nif step > 1:\n    total = total + left\nseen = seen + old * right",
        "seen + total",
    ),
    "what it was before the branch, after it": (
        "total = c_blk + 0\nseen = c_blk * 0",
        "old = +total\nif step > 1:\n    total = total + left\nseen = seen + total * right\ntotal = old * 0.5",
        "seen + total",
    ),
    "a branch, a loop and behind them": (
        "total = c_blk + 0",
        "if step > 1:\n    for again in range(2):\n        total = total * 0.5 + left\nelse:\n    total = total - right\ntotal = total + right",
        "total",
    ),
    "sums in loops and behind them": (
        "total = c_blk * 0\nseen = c_blk + 0",
        "for again in range(2):\n    total = total + left\n    seen = right - seen * left\ntotal = total + right",
        "seen + total",
    ),
    "a factor behind the loop, where f32 has a second index": (
        "total = c_blk + 0",
        "total = total * 0.5 + left",
        "total @ c_blk * 0.05 + total",
    ),
    "kept as it is": ("total = c_blk + 0\nseen = c_blk * 0", "same = +total\nseen = seen + same * left\ntotal = same", "seen + total"),
}  # fmt: skip


def indented(text: str, by: int) -> str:
    return "\n".join(" " * by + line for line in text.splitlines())


def wanted(start: str, body: str, end: str, arrays: list[np.ndarray]) -> np.ndarray:
    a, b, c, _ = (array.astype(np.float64) for array in arrays)
    names = {"c_blk": c, "largest": np.maximum}
    exec(start, names)
    for step in range(a.shape[1] // 32):
        names |= {"step": step, "left": a[:, 32 * step : 32 * (step + 1)], "right": b[32 * step : 32 * (step + 1)]}
        exec(body, names)
    return eval(end, names)


@pytest.mark.parametrize("name", BODIES)
def test_it_is_what_python_says(kernels, name):
    start, body, end = BODIES[name]
    text = FRAME.format(start=indented(start, 4), body=indented(body, 12), end=end).replace("largest", "ttl.math.max")
    generator = np.random.default_rng(7)
    arrays = [generator.uniform(-1, 1, (32 * rows, 32 * cols)).astype(np.float32) for rows, cols in ((1, 4), (4, 1), (1, 1), (1, 1))]
    kernels.simulate(accumulation_kernels.kernel(text, block=(1, 1, 1)), *arrays)
    np.testing.assert_allclose(arrays[3], wanted(start, body, end, arrays), rtol=1e-2, atol=1e-3)


def test_the_result_of_a_loop_is_what_the_next_one_starts_from(kernels):
    """The region between them ends the first section of DST. The second loads what it stored."""
    text = """
with c_dfb.wait() as c_blk, out_dfb.reserve() as o:
    total = c_blk + 0
    for step in range(2):
        with a_dfb.wait() as left, b_dfb.wait() as right:
            total = ttl.math.max(total, left - right)
    other = ttl.math.tanh(total) * 0.5
    for step in range(steps - 2):
        with a_dfb.wait() as left, b_dfb.wait() as right:
            other = ttl.math.min(other * 0.5, left + right)
    o.store(other)
"""
    generator = np.random.default_rng(8)
    arrays = [generator.uniform(-1, 1, (32 * rows, 32 * cols)).astype(np.float32) for rows, cols in ((1, 4), (4, 1), (1, 1), (1, 1))]
    kernels.simulate(accumulation_kernels.kernel(text, block=(1, 1, 1)), *arrays)
    a, b, c, _ = (array.astype(np.float64) for array in arrays)
    lefts, rights = np.split(a, 4, axis=1), np.split(b, 4, axis=0)
    total = np.maximum(np.maximum(c, lefts[0] - rights[0]), lefts[1] - rights[1])
    other = np.tanh(total) * 0.5
    for left, right in zip(lefts[2:], rights[2:], strict=True):
        other = np.minimum(other * 0.5, left + right)
    np.testing.assert_allclose(arrays[3], other, rtol=1e-2, atol=1e-3)


def running_program(kernels, start: str, body: str, end: str):
    text = FRAME.format(start=indented(start, 4), body=indented(body, 12), end=end)
    arrays = [np.zeros((32 * rows, 32 * cols), np.float32) for rows, cols in ((1, 4), (4, 1), (1, 1), (1, 1))]
    return kernels.load(accumulation_kernels.kernel(text, block=(1, 1, 1))).compile(*arrays, keep_ir=True)


def frontend_text(kernels, start: str, body: str, end: str) -> str:
    """The compute thread as the front end wrote it."""
    program = running_program(kernels, start, body, end)
    stage = next(stage.ir for stage in program.trace.stages if stage.name == "frontend")
    return next(thread for thread in stage.split("\n  func.func ") if "thread<compute>" in thread)


def test_the_front_end_writes_one_op(kernels):
    """Read and stored anew in the loop, without a handover; pushed behind it, and taken back."""
    thread = frontend_text(kernels, *BODIES["names that change places"])
    loop = thread[thread.index("scf.for %step") : thread.index("ttl.cb_push", thread.index("scf.for %step"))]
    assert thread.count("= ttl.running ") == 2
    assert loop.count("ttl.store") == 2
    assert "ttl.cb_reserve" not in loop


@pytest.mark.parametrize("name", ["both branches", "an inner loop and behind it"])
def test_several_pieces_of_code_are_steps_of_it(kernels, name):
    thread = frontend_text(kernels, *BODIES[name])
    loop = thread[thread.index("scf.for %step") :]
    assert thread.count("= ttl.running ") == 1
    assert "ttl.cb_reserve" not in loop[: loop.index("ttl.cb_push")]


@pytest.mark.parametrize("name", ["both branches", "an inner loop and behind it", "a branch that forgets", "a branch, a loop and behind them"])
def test_steps_in_several_pieces_of_code_stay_in_dst(kernels, name):
    """One acquire around the loop, wherever the steps are."""
    program = running_program(kernels, *BODIES[name])
    assert program.cpp["compute"].count("tile_regs_acquire(") == 1
    assert program.cpp["compute"].count(" pack_tile(") == 1


def test_math_that_a_step_and_a_store_share_is_done_once(kernels):
    """Nothing waits between the two, so they are one region."""
    text = """
with c_dfb.wait() as c_blk:
    total = c_blk + 0
    for step in range(steps):
        with a_dfb.wait() as left, b_dfb.wait() as right, acc_dfb.reserve() as between:
            total = ttl.math.tanh(total * left)
            between.store(total + right)
        with acc_dfb.wait() as between:
            pass
with out_dfb.reserve() as o:
    o.store(total)
"""
    arrays = [np.zeros((32 * rows, 32 * cols), np.float32) for rows, cols in ((1, 4), (4, 1), (1, 1), (1, 1))]
    program = kernels.compile(accumulation_kernels.kernel(text, block=(1, 1, 1)), *arrays)
    assert program.cpp["compute"].count(" tanh_tile(") == 1


def test_a_name_that_a_loop_only_replaces_outlives_it(kernels):
    """Blocks and integers, in loops whose length differs by core: some cores never come to the new value."""
    source = """
from tilewright import ttl

@ttl.operation(grid=(3, 1))
def kernel(a, out):
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(1, 1))
    out_dfb = ttl.make_dataflow_buffer_like(out, shape=(1, 1))
    node = ttl.node(dims=1)

    @ttl.compute()
    def compute():
        last = ttl.block.fill(7.0, shape=(1, 1))
        third = ttl.block.fill(-1.0, shape=(1, 1))
        for _ in range(2):
            for step in range(node):
                with a_dfb.wait() as x:
                    last = x * 2
                    if step == 1:
                        third = x + 1
        with a_dfb.wait() as x, out_dfb.reserve() as o:
            o.store(last - third * x)

    @ttl.datamovement()
    def read():
        row = 5
        for _ in range(2):
            for step in range(node):
                row = 2 * step
                with a_dfb.reserve() as block:
                    ttl.copy(a[step, 0], block).wait()
        with a_dfb.reserve() as block:
            ttl.copy(a[row, 0], block).wait()

    @ttl.datamovement()
    def write():
        with out_dfb.wait() as block:
            ttl.copy(block, out[node, 0]).wait()
"""
    a, out = np.random.default_rng(9).uniform(-1, 1, (6, 32, 32)).astype(np.float32), np.zeros((96, 32), np.float32)
    kernels.simulate(source, a.reshape(192, 32), out)
    wanted = np.concatenate([7 + a[5], a[0] * 2 + a[0], a[1] * 2 - (a[1] + 1) * a[2]])
    np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-6)


ALIASES = {  # ``b`` has no dtype until it meets a block
    "they change places": "for i in range(2 + node): a, b = b, a",
    "they change places in an inner loop": "for j in range(2):\n    for i in range(2 + node): a, b = b, a",
    "both are fills": "a = fill(2)\nfor i in range(2 + node): a, b = b, a",
    "they change places in a branch": "for i in range(2 + node):\n    a, b = b, a\n    if i == 1: a, b = b, a + b",
    "a helper's argument of the same name": (
        "def f(b):\n    if node == 0: b = b * 2\n    return b\nfor i in range(2 + node):\n    a = a + f(b)\n    b = b * 0.5"
    ),
    "another name that a branch changes": "for i in range(2 + node):\n    t = b\n    if node == 1: t = t * 0.5\n    a, b = t, a",
    "another name that a loop changes": (
        "for i in range(2 + node):\n    t = b\n    for j in range(node + 1):\n        t = t + a\n        if j == 1: t = b\n    b = t * 0.25"
    ),
    "another name, kept over a branch": (
        "for i in range(2 + node):\n    t = b\n    if node == 0: b = b + a\n    else: b = b - a\n    a = a + t * a"
    ),
    "another name, kept over an inner loop": (
        "for i in range(2 + node):\n    t = b\n    for j in range(2): b = b + a\n    a = a + t * a * 0.25"
    ),
    "names of names, kept over two changes": (
        "for i in range(2 + node):\n    t = b\n    u = t\n    if node == 0: b = b + a\n    v = b\n    for j in range(2): b = b - a\n"
        "    a = a + u * 0.25 + v * 0.5 - t"
    ),
    "an argument, kept over a branch": (
        "def f(t, c):\n    if c > 0: t = t * 2\n    return t\nfor i in range(2 + node):\n    t = (b, i)\n"
        "    if node == 1: b = b + a\n    a = a + f(t[0], node)"
    ),
    "another name by branch": "for i in range(2 + node):\n    if node == 0: t = b\n    else: t = a\n    b = t * 0.25",
}


ALIASES |= {
    "assigned by a branch, then by a loop in another": (
        "if node == 1: b = a * 2\nif node == 0:\n    for i in range(node + 1): b = a - i\nelse:\n    a = a + b\na = a - b"
    ),
    "two values that are stored one behind the other": "for i in range(node + 1):\n    a = a + 1\n    b = b * 0.5 + a * 2",
    "a tuple that a branch returns": (
        "def f(p, q):\n    if node == 1: return p * 2, q\n    return q * 0.5, p + q\na, b = f(a, b)\na = a - f(b, a)[1]"
    ),
    "a tuple that branches make": (
        "t = (b, a) if node < 0 else (a, a * 2)\nif node == 1: t = (b - a, a)\nfor i in range(node + 1):\n    a = a + t[0]\n    b = t[1]"
    ),
}


@pytest.mark.parametrize("name", ALIASES)
def test_two_names_of_a_value_whose_type_is_open(kernels, name):
    body = "b = fill(-1)\n" + ALIASES[name]
    source = f"""
from tilewright import ttl

@ttl.operation(grid=(2, 1))
def kernel(x, out):
    x_dfb, out_dfb = (ttl.make_dataflow_buffer_like(each, shape=(1, 1)) for each in (x, out))
    node = ttl.node(dims=1)

    def fill(number):
        return ttl.block.fill(number, shape=(1, 1))

    @ttl.compute()
    def compute():
        with x_dfb.wait() as blk:
            a = blk * 1
{indented(body, 8)}
        with out_dfb.reserve() as o:
            o.store(a)
        with out_dfb.reserve() as o:
            o.store(b)

    @ttl.datamovement()
    def read():
        with x_dfb.reserve() as blk:
            ttl.copy(x[0, 0], blk).wait()

    @ttl.datamovement()
    def write():
        for i in range(2):
            with out_dfb.wait() as blk:
                ttl.copy(blk, out[2 * node + i, 0]).wait()
"""
    x, out = np.random.default_rng(3).uniform(-1, 1, (32, 32)).astype(np.float32), np.zeros((128, 32), np.float32)
    kernels.simulate(source, x, out)
    wanted: list[np.ndarray] = []
    for node in range(2):
        names = {"a": x.astype(np.float64), "node": node, "fill": lambda number: np.full((32, 32), float(number))}
        exec(body, names)
        wanted += [names["a"], names["b"]]
    np.testing.assert_allclose(out, np.concatenate(wanted), rtol=1e-5, atol=1e-6)


def test_loops_in_branches_hand_integers_and_blocks_on(kernels):
    """Behind the branch: a place that the loop counted up, and a block that it only assigned."""
    source = """
from tilewright import ttl

@ttl.operation(grid=(3, 1))
def kernel(a, out):
    a_dfb, out_dfb = (ttl.make_dataflow_buffer_like(each, shape=(1, 1)) for each in (a, out))
    node = ttl.node(dims=1)

    @ttl.compute()
    def compute():
        last = ttl.block.fill(7.0, shape=(1, 1))
        if node > 0:
            for _ in range(2 * node):
                with a_dfb.wait() as x:
                    last = x * 2
        for _ in range(3):
            with a_dfb.wait() as x, out_dfb.reserve() as o:
                o.store(last - x)

    @ttl.datamovement()
    def read():
        place = 0
        if node > 0:
            for _ in range(0, 4 * node, 2):
                with a_dfb.reserve() as block:
                    ttl.copy(a[place, 0], block).wait()
                place += 1
        else:
            place = 5
        for _ in range(3, 0, -1):
            with a_dfb.reserve() as block:
                ttl.copy(a[place % 8, 0], block).wait()
            place += 1

    @ttl.datamovement()
    def write():
        for i in range(3):
            with out_dfb.wait() as block:
                ttl.copy(block, out[3 * node + i, 0]).wait()
"""
    a, out = np.random.default_rng(9).uniform(-1, 1, (8, 32, 32)).astype(np.float32), np.zeros((288, 32), np.float32)
    kernels.simulate(source, a.reshape(256, 32), out)
    wanted = [7 - a[5:8], 2 * a[1] - a[2:5], 2 * a[3] - a[4:7]]
    np.testing.assert_allclose(out, np.concatenate(wanted).reshape(288, 32), rtol=1e-5, atol=1e-6)


FILLED_NAMES = """
import tilewright.ttl as ttl

@ttl.operation(grid=(1, 1))
def kernel(x, y, z):
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=2)
    y_dfb, z_dfb = (ttl.make_dataflow_buffer_like(each, shape=(1, 1), block_count=1) for each in (y, z))
    further, onwards = (lambda p, q: {further}), (lambda q, step: q * 0.5 + step)

    @ttl.compute()
    def compute():
        p, q = ttl.block.fill({start}, shape=(1, 1)), ttl.block.fill(-1.0, shape=(1, 1))
        for _ in range({steps}):
            with x_dfb.wait() as step:
                p = further(p, q)
                q = onwards(q, step)
        with y_dfb.reserve() as block:
            block.store(p)
        with z_dfb.reserve() as block:
            block.store(q)

    @ttl.datamovement()
    def read():
        for number in range({steps}):
            with x_dfb.reserve() as block:
                ttl.copy(x[number, 0], block).wait()

    @ttl.datamovement()
    def write():
        with y_dfb.wait() as block:
            ttl.copy(block, y[0, 0]).wait()
        with z_dfb.wait() as block:
            ttl.copy(block, z[0, 0]).wait()
"""


FURTHER = {
    "p + abs(q)": lambda p, q: p + abs(q),
    "p + q * q": lambda p, q: p + q * q,
    "max(p, abs(q))": lambda p, q: np.maximum(p, abs(q)),
    "max(p, 0.5) + q": lambda p, q: np.maximum(p, np.float32(0.5)) + q,
    "round(q * 3) + p": lambda p, q: np.round(q * 3) + p,
    "p + q[0:1, 0:1]": lambda p, q: p + q,
}


@pytest.mark.parametrize("steps", [3, 130])  # the second loop is not unrolled, whatever happens
@pytest.mark.parametrize("further", FURTHER)
def test_names_that_start_as_fills_meet_in_functions(kernels, further, steps):
    """Python's own functions, helpers and parts take a name whose type nothing has said yet."""
    x = np.random.default_rng(4).uniform(-1, 1, (32 * steps, 32)).astype(np.float32)
    y, z = np.zeros((32, 32), np.float32), np.zeros((32, 32), np.float32)
    kernels.run_everywhere(FILLED_NAMES.format(further=further, start=0.25, steps=steps), x, y, z)
    p, q = np.full((32, 32), 0.25, np.float32), np.full((32, 32), -1.0, np.float32)
    for step in np.split(x, steps):
        p = FURTHER[further](p, q)
        q = q * np.float32(0.5) + step
    np.testing.assert_allclose(z, q, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(y, p, rtol=1e-5, atol=1e-5)


UNROLLED = """
import tilewright.ttl as ttl

@ttl.operation(grid=(1, 1))
def kernel(x, y):
    x_dfb = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=2)
    y_dfb = ttl.make_dataflow_buffer_like(y, shape=(1, 1), block_count=1)

    @ttl.compute()
    def compute():
        weights = [1.0]
        p, q = ttl.block.fill(0.0, shape=(1, 1)), ttl.block.fill(0.0, shape=(1, 1))
        for _ in range(5):
            weights.append(weights[-1] * 0.5)
            with x_dfb.wait() as step:
                p = p + ttl.math.abs(q) * weights[-1]
                q = q * 0.5 + step
        with y_dfb.reserve() as block:
            block.store(p)

    @ttl.datamovement()
    def read():
        for number in range(5):
            with x_dfb.reserve() as block:
                ttl.copy(x[number, 0], block).wait()

    @ttl.datamovement()
    def write():
        with y_dfb.wait() as block:
            ttl.copy(block, y[0, 0]).wait()
"""


def test_what_an_unrolled_loop_keeps_of_each_turn_has_room(kernels):
    """The list unrolls the loop. Each turn's q outlives the block it came from, in a buffer of the compiler, until p is stored."""
    x = np.random.default_rng(5).uniform(-1, 1, (160, 32)).astype(np.float32)
    y = np.zeros((32, 32), np.float32)
    kernels.run_everywhere(UNROLLED, x, y)
    p, q, weight = np.zeros((32, 32), np.float32), np.zeros((32, 32), np.float32), np.float32(1.0)
    for step in np.split(x, 5):
        weight *= np.float32(0.5)
        p, q = p + np.abs(q) * weight, q * np.float32(0.5) + step
    np.testing.assert_allclose(y, p, rtol=1e-6, atol=1e-6)
