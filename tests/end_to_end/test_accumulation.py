"""Sums and other running values over a loop, in every spelling: values against float64 NumPy, and the emitted C++ bit for bit.

Tolerances: a bf16 result has 8 significant bits, and a running value that goes through a bf16 buffer rounds once per step. In f32 the
matrix unit reads 11 bits of its operands; sums on the vector unit are exact to f32.
"""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import accumulation_kernels
from tilewright.lang import tensors
from tilewright.native import driver
from tilewright.sim.run import simulate

DTYPES = {"bf16": ml_dtypes.bfloat16, "f32": np.float32}
STEPS = 4

FILL = """
with out_dfb.reserve() as o:
    total = ttl.block.fill(0.0, shape=o.shape)
    for _ in range(steps):
        with a_dfb.wait() as left, b_dfb.wait() as right:
            total += left @ right
    with c_dfb.wait() as add:
        o.store(total + add)
"""
BARE_FILL = """
total = ttl.math.fill(0)
for _ in range(steps):
    with a_dfb.wait() as left, b_dfb.wait() as right:
        total = total + left @ right
with out_dfb.reserve() as o, c_dfb.wait() as add:
    o.store(ttl.math.relu(total + add))
"""
FILL_LIKE = """
with out_dfb.reserve() as o:
    total = ttl.math.fill(o, 0)
    for _ in range(2):
        for _ in range(steps // 2):
            with a_dfb.wait() as left, b_dfb.wait() as right:
                total = left @ right + total
    with c_dfb.wait() as add:
        total = total + add
    o.store(total)
"""
FROM_BLOCK = """
with c_dfb.wait() as add, out_dfb.reserve() as o:
    total = add
    for _ in range(steps):
        with a_dfb.wait() as left, b_dfb.wait() as right:
            total += left @ right
    o.store(total)
"""
BRANCH = """
with out_dfb.reserve() as o:
    total = ttl.math.fill(o, 0.5)
    for step in range(steps):
        with a_dfb.wait() as left, b_dfb.wait() as right:
            if step > 1:
                total += left @ right
    with c_dfb.wait() as add:
        o.store(total + add)
"""
RUNNING_PAIR = """
s = ttl.block.fill(0.0, shape=(m, n))
p = ttl.block.fill(-1e30, shape=(m, n))
for _ in range(steps):
    with a_dfb.wait() as left, b_dfb.wait() as right:
        s += left
        p = ttl.math.max(p, right)
with out_dfb.reserve() as o, c_dfb.wait() as add:
    o.store(s + p + add)
"""
DECAY = """
mean = ttl.block.fill(0.0, shape=(m, n))
for _ in range(steps):
    with a_dfb.wait() as left, b_dfb.wait() as right:
        mean = mean * 0.5 + left * right
with out_dfb.reserve() as o, c_dfb.wait() as add:
    o.store(mean - add)
"""


def product(a, b, c):
    return a @ b + c


def later_half(a, b, c):
    half = a.shape[1] // 2
    return a[:, half:] @ b[half:] + 0.5 + c


def running_pair(a, b, c):
    return sum(np.split(a, STEPS, 1)) + np.max(np.stack(np.split(b, STEPS, 0)), 0) + c


def decay(a, b, c):
    mean = np.zeros_like(c)
    for left, right in zip(np.split(a, STEPS, 1), np.split(b, STEPS, 0), strict=True):
        mean = mean * 0.5 + left * right
    return mean - c


# name: body, reference, largest error in bf16 and f32 relative to the largest value
CASES = {
    "fill": (FILL, product, 8e-3, 2e-3),
    "bare fill, relu": (BARE_FILL, lambda a, b, c: np.maximum(product(a, b, c), 0), 8e-3, 2e-3),
    "two loops": (FILL_LIKE, product, 8e-3, 2e-3),
    "from a block": (FROM_BLOCK, product, 8e-3, 2e-3),
    "branch": (BRANCH, later_half, 8e-3, 2e-3),
    "running pair": (RUNNING_PAIR, running_pair, 8e-3, 1e-6),
    "decay": (DECAY, decay, 1.2e-2, 1e-3),
}


def arrays_for(block, blocks, dtype):
    m, n, k = (32 * size * count for size, count in zip(block, blocks, strict=True))
    generator = np.random.default_rng(11)
    inputs = [generator.uniform(-1, 1, shape).astype(DTYPES[dtype]) for shape in ((m, k), (k, n), (m, n))]
    return [*inputs, np.zeros((m, n), DTYPES[dtype])]


def run_everywhere(kernels, source, arrays, **options):
    """Simulates, runs the C++ natively, demands the same bits; the result is in the last array."""
    program = kernels.compile(source, *arrays, **options)
    simulated = [tensors.to_array(array).copy() for array in arrays]
    native = [array.copy() for array in simulated]
    outcome = simulate(program, simulated)
    result = driver.run(program, native)
    assert not result.errors
    assert simulated[-1].tobytes() == native[-1].tobytes()
    tensors.from_array(arrays[-1], simulated[-1])
    return program, outcome.groups[0]


def relative_error(arrays, reference):
    *inputs, out = (array.astype(np.float64) for array in arrays)
    want = reference(*inputs)
    return float(np.max(np.abs(out - want)) / np.max(np.abs(want)))


@pytest.mark.parametrize("names", [accumulation_kernels.NEW, accumulation_kernels.OLD], ids=["new names", "old names"])
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize("name", CASES)
def test_running_value(kernels, name, dtype, names):
    body, reference, loose, tight = CASES[name]
    block, blocks = (2, 2, 2), (1, 1, STEPS)
    arrays = arrays_for(block, blocks, dtype)
    run_everywhere(kernels, accumulation_kernels.kernel(body, block=block, blocks=blocks, names=names), arrays)
    assert relative_error(arrays, reference) <= (loose if dtype == "bf16" else tight)


ZEROS = "with acc_dfb.reserve() as acc:\n    acc.store(ttl.math.fill(acc, 0))\n"
UPDATE = """for _ in range(steps):
    with a_dfb.wait() as left, b_dfb.wait() as right, acc_dfb.wait() as prev:
        with acc_dfb.reserve() as nxt:
            nxt.store({step})
"""
RESULT = "with acc_dfb.wait() as total, c_dfb.wait() as add, out_dfb.reserve() as o:\n    o.store({result})\n"
BIAS_FIRST = """
with c_dfb.wait() as add, acc_dfb.reserve() as acc:
    acc.store(add)
for _ in range(steps):
    with (
        a_dfb.wait() as left,
        b_dfb.wait() as right,
        acc_dfb.wait() as prev,
        acc_dfb.reserve() as nxt,
    ):
        nxt.store(prev + left @ right)
with acc_dfb.wait() as total, out_dfb.reserve() as o:
    o.store(total)
"""
PEELED = """
with a_dfb.wait() as left, b_dfb.wait() as right, acc_dfb.reserve() as acc:
    acc.store(left @ right)
for _ in range(steps - 1):
    left = a_dfb.wait()
    right = b_dfb.wait()
    prev = acc_dfb.wait()
    nxt = acc_dfb.reserve()
    nxt.store(left @ right + prev)
    acc_dfb.push()
    acc_dfb.pop()
    a_dfb.pop()
    b_dfb.pop()
with acc_dfb.wait() as total, out_dfb.reserve() as o, c_dfb.wait() as add:
    o.store(ttl.math.relu(total) * 0.5)
"""


def idiom(step="prev + left @ right", result="total"):
    return ZEROS + UPDATE.format(step=step) + RESULT.format(result=result)


def elementwise(a, b, c):
    return sum(left * right for left, right in zip(np.split(a, STEPS, 1), np.split(b, STEPS, 0), strict=True))


def largest(a, b, c):
    return np.maximum(np.max(np.stack(np.split(a, STEPS, 1)), 0), 0) + c


# name: body, reference, largest relative error in bf16 and f32
IDIOMS = {
    "plain": (idiom(), lambda a, b, c: a @ b, 8e-3, 2e-3),
    "relu": (idiom(result="ttl.math.relu(total)"), lambda a, b, c: np.maximum(a @ b, 0), 8e-3, 2e-3),
    "bias and relu": (idiom(result="ttl.math.relu(total + add)"), lambda a, b, c: np.maximum(a @ b + c, 0), 8e-3, 2e-3),
    "bias first": (BIAS_FIRST, product, 8e-3, 2e-3),
    "peeled": (PEELED, lambda a, b, c: np.maximum(a @ b, 0) * 0.5, 8e-3, 2e-3),
    "products": (idiom("prev + left * right"), elementwise, 1.2e-2, 1e-6),
    "maximum": (idiom("ttl.math.max(prev, left)", "total + add"), largest, 4e-3, 1e-6),
}


MATH = re.compile(r"\b(matmul_tiles|matmul_block|copy_tile|\w+_binary_tile|mul_tiles|add_tiles|relu_tile|fill_tile)\(")
PHASES = {"acquire": ("idle", "math"), "commit": ("math", "full"), "wait": ("full", "packing"), "release": ("packing", "idle")}


def lifecycle(cpp):
    """Follows DST through the text: every block of code leaves it as it found it, math runs only between acquire and commit,
    packs only between wait and release. Gives the number of acquires and whether one spans a loop that hands blocks over."""
    state, around, acquires, spans = "idle", [], 0, False
    for line in cpp.splitlines():
        text = line.split("//")[0].strip()
        if text.startswith("}"):
            assert around.pop() == state, line
        phase = re.match(r"tile_regs_(\w+)\(\);", text)
        if phase:
            before, after = PHASES[phase[1]]
            assert state == before, line
            state, acquires = after, acquires + (phase[1] == "acquire")
        assert state == "math" or not MATH.search(text) or "init" in text, line
        assert state == "packing" or not re.search(r"\bpack_(tile|block|tile_block)(<\w+>)?\(", text), line
        spans = spans or (state == "math" and "pop_front" in text)
        if text.endswith("{"):
            around.append(state)
    assert state == "idle" and not around
    return acquires, spans


@pytest.mark.parametrize("size", [2, 4], ids=["fits", "larger than DST"])
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize("name", IDIOMS)
def test_accumulator_buffer(kernels, name, dtype, size):
    body, reference, loose, tight = IDIOMS[name]
    block, blocks = (size, size, size), (1, 1, STEPS)
    arrays = arrays_for(block, blocks, dtype)
    names = accumulation_kernels.OLD if size == 2 else accumulation_kernels.NEW
    program, _ = run_everywhere(kernels, accumulation_kernels.kernel(body, block=block, blocks=blocks, names=names), arrays)
    assert relative_error(arrays, reference) <= (loose if dtype == "bf16" else tight)
    lifecycle(program.cpp["compute"])


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize("name", ["plain", "relu", "bias first", "peeled"])
def test_accumulator_is_held_in_dst(kernels, name, dtype):
    arrays = arrays_for((2, 2, 1), (1, 1, STEPS), dtype)
    program, group = run_everywhere(kernels, accumulation_kernels.kernel(IDIOMS[name][0], block=(2, 2, 1)), arrays)
    assert lifecycle(program.cpp["compute"]) == (1, True)
    assert group.acquires == 1
    assert all(buffer.name != "acc_dfb" for buffer in program.buffers)  # no memory either
    assert group.calls.get("copy_tile", 0) == (4 if name == "bias first" else 0)
    assert any("stays in DST across the loop" in decision.title for decision in program.trace.decisions)


def test_accumulator_larger_than_dst_is_added_by_the_packer(kernels):
    arrays = arrays_for((4, 4, 4), (1, 1, STEPS), "bf16")
    program, group = run_everywhere(kernels, accumulation_kernels.kernel(IDIOMS["plain"][0], block=(4, 4, 4)), arrays)
    assert group.calls["pack_reconfig_l1_acc"] > 0
    assert "copy_tile" not in group.calls  # the output block is reserved before the loop, and the sum is made there
    assert any("the packer adds each step to 'out_dfb' in L1" in decision.title for decision in program.trace.decisions)


LOOKED_AT = """
with acc_dfb.reserve() as acc:
    acc.store(ttl.math.fill(acc, 0))
for step in range(steps):
    with a_dfb.wait() as left, b_dfb.wait() as right, acc_dfb.wait() as prev, acc_dfb.reserve() as nxt:
        nxt.store(prev + left @ right)
    if step == 1:
        with acc_dfb.wait() as prev, acc_dfb.reserve() as nxt:
            nxt.store(ttl.math.relu(prev))
with acc_dfb.wait() as total, c_dfb.wait() as add, out_dfb.reserve() as o:
    o.store(total - ttl.block.broadcast(ttl.math.reduce_max(total, dims=[1]), dims=[1], shape=o.shape))
"""


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_accumulator_that_other_code_looks_at(kernels, dtype):
    arrays = arrays_for((2, 2, 2), (1, 1, STEPS), dtype)
    run_everywhere(kernels, accumulation_kernels.kernel(LOOKED_AT, block=(2, 2, 2)), arrays)

    def reference(a, b, c):
        half = a.shape[1] // 2
        total = np.maximum(a[:, :half] @ b[:half], 0) + a[:, half:] @ b[half:]
        return total - total.max(1, keepdims=True)

    assert relative_error(arrays, reference) <= (1e-2 if dtype == "bf16" else 2e-3)


TRANSPOSED = """
with out_dfb.reserve() as o, c_dfb.wait() as add:
    total = add
    for _ in range(steps):
        with a_dfb.wait() as left, b_dfb.wait() as right:
            total += left @ ttl.block.transpose(right)
    o.store(total)
"""


@pytest.mark.parametrize(("dtype", "buffers"), [("bf16", 0), ("f32", 1)])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_transposed_right_operand(kernels, dtype, buffers, size):
    """The unpacker turns 16-bit tiles; f32 goes through a buffer."""
    arrays = arrays_for((size, size, size), (1, 1, STEPS), dtype)
    program, _ = run_everywhere(kernels, accumulation_kernels.kernel(TRANSPOSED, block=(size, size, size)), arrays)

    def reference(a, b, c):
        return c + sum(left @ right.T for left, right in zip(np.split(a, STEPS, 1), np.split(b, STEPS, 0), strict=True))

    assert relative_error(arrays, reference) <= (8e-3 if dtype == "bf16" else 2e-3)
    assert sum(buffer.name.startswith("between") for buffer in program.buffers) == buffers


COUNTED = """
count, before = 1, 0
for _ in range(steps):
    with a_dfb.wait() as left, b_dfb.wait() as right:
        if count == 3:
            with out_dfb.reserve() as o, c_dfb.wait() as add:
                o.store(left @ right + add)
    count, before = count + before, count
"""


def test_integers_that_a_loop_changes(kernels):
    """1, 1, 2, 3: the product of the fourth step. The reader counts its columns the same way."""
    arrays = arrays_for((2, 2, 2), (1, 1, STEPS), "bf16")
    source = accumulation_kernels.kernel(COUNTED, block=(2, 2, 2))
    source = source.replace("step * k:(step + 1) * k], left", "at:at + k], left").replace("first.wait()", "at = at + k; first.wait()")
    loop = "                for step in range(steps):\n                    with a_dfb.reserve"
    assert loop in source and "at:at + k" in source
    source = source.replace(loop, f"{' ' * 16}at = 0\n{loop}")
    run_everywhere(kernels, source, arrays)
    assert relative_error(arrays, lambda a, b, c: a[:, 192:] @ b[192:] + c) <= 8e-3


LARGE = {
    "16 steps": ((2, 2, 1), (1, 1, 16), (1, 1)),
    "512 cubed, one core": ((2, 2, 16), (8, 8, 1), (1, 1)),
    "512 cubed on 8x8": ((2, 2, 4), (8, 8, 4), (8, 8)),
}


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize(
    ("body", "size"), [(IDIOMS["plain"][0], size) for size in LARGE] + [(FILL, "16 steps")], ids=[*LARGE, "16 steps of a name"]
)
def test_large_products(kernels, body, size, dtype):
    block, blocks, grid = LARGE[size]
    arrays = arrays_for(block, blocks, dtype)
    names = accumulation_kernels.OLD if size == "16 steps" else accumulation_kernels.NEW
    program = kernels.compile(accumulation_kernels.kernel(body, block=block, blocks=blocks, grid=grid, names=names), *arrays)
    simulate(program, simulated := [tensors.to_array(array) for array in arrays])
    tensors.from_array(arrays[-1], simulated[-1])
    wanted = product if body == FILL else (lambda a, b, c: a @ b)
    assert relative_error(arrays, wanted) <= (6e-3 if dtype == "bf16" else 2e-3)
    assert lifecycle(program.cpp["compute"])[1], "held across the loop"


FLASH = """
largest = ttl.block.fill(-1e30, shape=(m, 1))
weight = ttl.block.fill(0.0, shape=(m, 1))
total = ttl.block.fill(0.0, shape=(m, n))
for _ in range(steps):
    with a_dfb.wait() as score, b_dfb.wait() as value:
        new = ttl.math.max(largest, ttl.math.reduce_max(score, dims=[1]))
        p = ttl.math.exp(score - ttl.block.broadcast(new, dims=[1], shape=score.shape))
        shrink = ttl.math.exp(largest - new)
        weight = weight * shrink + ttl.math.reduce_sum(p, dims=[1])
        total = total * ttl.block.broadcast(shrink, dims=[1], shape=total.shape) + p @ value
        largest = new
with out_dfb.reserve() as o, c_dfb.wait() as add:
    o.store(total * ttl.block.broadcast(ttl.math.recip(weight), dims=[1], shape=total.shape) + add)
"""


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_online_softmax_over_three_running_names(kernels, dtype):
    block, blocks = (1, 2, 2), (1, 1, STEPS)
    arrays = arrays_for(block, blocks, dtype)
    program, _ = run_everywhere(kernels, accumulation_kernels.kernel(FLASH, block=block, blocks=blocks), arrays)
    lifecycle(program.cpp["compute"])

    def reference(a, b, c):
        e = np.exp(a - a.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True) @ b + c

    assert relative_error(arrays, reference) <= (1.5e-2 if dtype == "bf16" else 2e-3)


REDUCED_ENDS = """
with a_dfb.wait() as left, b_dfb.wait() as right, acc_dfb.reserve() as acc:
    acc.store(left - ttl.block.broadcast(ttl.math.reduce_max(left, dims=[1]), dims=[1], shape=left.shape))
for _ in range(steps - 1):
    with a_dfb.wait() as left, b_dfb.wait() as right, acc_dfb.wait() as prev, acc_dfb.reserve() as nxt:
        nxt.store(ttl.math.max(prev, left * right))
with acc_dfb.wait() as total, out_dfb.reserve() as o, c_dfb.wait() as add:
    o.store(total * (add * add))
"""


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_products_beside_a_held_maximum(kernels, dtype, size):
    """The matrix unit's product adds to its slot, which a held section does not find empty the second time."""
    arrays = arrays_for((size, size, size), (1, 1, STEPS), dtype)
    run_everywhere(kernels, accumulation_kernels.kernel(REDUCED_ENDS, block=(size, size, size)), arrays)

    def reference(a, b, c):
        first, *others = np.split(a, STEPS, 1)
        total = first - first.max(1, keepdims=True)
        for left, right in zip(others, np.split(b, STEPS, 0)[1:], strict=True):
            total = np.maximum(total, left * right)
        return total * c * c

    assert relative_error(arrays, reference) <= (1.5e-2 if dtype == "bf16" else 1e-5)


ADDED = "with out_dfb.reserve() as o, c_dfb.wait() as add:\n{start}    for _ in range({outer}):\n        for _ in range(steps // {outer}):\n"
ADDED += "            with a_dfb.wait() as left, b_dfb.wait() as right:\n                {step}\n"
# name: what is stored first, the step, the reference, tiles loaded
ADDITIONS = {
    "products": ("", "o += left * right", elementwise, 0),
    "matmul in two loops": ("", "o += left @ right", lambda a, b, c: a @ b, 0),
    "onto a block": ("    o.store(add)\n", "o.store(left @ right, acc=True)", product, 4),
    "sums": ("    o.store(add)\n", "o += left", lambda a, b, c: c + sum(np.split(a, STEPS, 1)), None),
}


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize("name", ADDITIONS)
def test_adding_to_a_reserved_block_stays_in_dst(kernels, name, dtype):
    start, step, reference, loads = ADDITIONS[name]
    block, blocks = (2, 2, 2), (1, 1, STEPS)
    arrays = arrays_for(block, blocks, dtype)
    body = ADDED.format(start=start, step=step, outer=2)
    program, group = run_everywhere(kernels, accumulation_kernels.kernel(body, block=block, blocks=blocks, names=accumulation_kernels.OLD), arrays)
    assert relative_error(arrays, reference) <= (1.2e-2 if dtype == "bf16" else 2e-3)
    acquires, held = lifecycle(program.cpp["compute"])
    fits = dtype == "bf16" or "@" in step  # f32 sums run on the vector unit, which needs a slot beside the four of the sum
    assert held == fits and (not fits or (acquires == 1 and group.calls.get("pack_reconfig_l1_acc", 0) == 0))
    assert not fits or loads is None or group.calls.get("copy_tile", 0) == loads


INTO_RESERVED = """
with out_dfb.reserve() as o, c_dfb.wait() as add:
    total = {start}
    for _ in range(steps):
        with a_dfb.wait() as left, b_dfb.wait() as right:
            total += left @ right
    o.store(total)
"""


@pytest.mark.parametrize(("start", "reference", "copies"), [("ttl.math.fill(o, 0)", lambda a, b, c: a @ b, 0), ("add", product, 16)])
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_name_larger_than_dst_is_added_up_where_it_is_stored(kernels, dtype, start, reference, copies):
    """No buffer of its own: the packer adds every step to the block the result is stored to."""
    block, blocks = (4, 4, 2), (1, 1, STEPS)
    arrays = arrays_for(block, blocks, dtype)
    program, group = run_everywhere(kernels, accumulation_kernels.kernel(INTO_RESERVED.format(start=start), block=block, blocks=blocks), arrays)
    assert relative_error(arrays, reference) <= (1e-2 if dtype == "bf16" else 2e-3)
    assert all(buffer.origin == "user" for buffer in program.buffers)
    assert group.calls.get("copy_tile", 0) == copies
    lifecycle(program.cpp["compute"])


SOMETIMES = """
from tilewright import ttl

@ttl.operation(grid=(2, 1))
def kernel(x, out):
    x_buffer = ttl.make_dataflow_buffer_like(x, shape=(1, 1), block_count=2)
    out_buffer = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        core, _ = ttl.node(dims=2)
        with out_buffer.reserve() as o:
            for step in range(6):
                with x_buffer.wait() as a:
                    if {condition}:
                        o += a

    @ttl.datamovement()
    def read():
        core, _ = ttl.node(dims=2)
        for step in range(6):
            with x_buffer.reserve() as block:
                ttl.copy(x[step, core], block).wait()

    @ttl.datamovement()
    def write():
        core, _ = ttl.node(dims=2)
        with out_buffer.wait() as block:
            ttl.copy(block, out[0, core]).wait()
"""


@pytest.mark.parametrize(
    ("condition", "added"),
    [("step % 2 == 1", [[1, 3, 5], [1, 3, 5]]), ("core == 1", [[], range(6)]), ("step + core > 5", [[], [5]])],
)
def test_a_sum_of_some_iterations_starts_from_zero(kernels, condition, added):
    x = np.random.default_rng(8).uniform(-1, 1, (192, 64)).astype(np.float32)
    out = np.full((32, 64), np.nan, np.float32)
    kernels.run(SOMETIMES.format(condition=condition), x, out)
    steps = x.reshape(6, 32, 2, 32)
    for core in range(2):
        wanted = sum((steps[step, :, core].astype(np.float64) for step in added[core]), np.zeros((32, 32)))
        assert np.abs(out[:, core * 32 : core * 32 + 32] - wanted).max() <= 2**-21


@pytest.mark.parametrize(
    ("body", "factor"),
    [
        ("v = ttl.math.exp(x)\no0 += v\no0 += v", 2),
        ("o0 += ttl.math.exp(x) * 0.5\no0 += ttl.math.exp(x) * 0.5", 1),
        ("v = ttl.math.exp(x)\no0 += v\no0 += v * 2.0\no0 += v", 4),
        ("v = ttl.math.exp(x)\no0.store(v)\no0 += v", 2),
    ],
)
def test_one_value_added_twice(kernels, block_kernels, body, factor):
    """Equal values are computed once, but each is added."""
    x = np.random.default_rng(8).uniform(-1, 1, (64, 64)).astype(np.float32)
    out = np.zeros_like(x)
    kernels.run(block_kernels.single_block({"x": (2, 2)}, [(2, 2)], body), x, out)
    np.testing.assert_allclose(out, factor * np.exp(x.astype(np.float64)), rtol=2**-20)


ROUNDS_BY_CORE = """
from tilewright import ttl

@ttl.operation(grid=(3, 1))
def kernel(a, out):
    a_buffer = ttl.make_dataflow_buffer_like(a, shape=(4, 4), block_count=2)
    out_buffer = ttl.make_dataflow_buffer_like(out, shape=(4, 4), block_count=2)

    @ttl.compute()
    def compute():
        node, _ = ttl.node(dims=2)
        with out_buffer.reserve() as o:
            for _ in range(node):
                with a_buffer.wait() as x:
                    o += {summand}

    @ttl.datamovement()
    def read():
        node, _ = ttl.node(dims=2)
        for i in range(node):
            row = (node * 2 + i) * 4
            with a_buffer.reserve() as block:
                ttl.copy(a[row : row + 4, 0:4], block).wait()

    @ttl.datamovement()
    def write():
        node, _ = ttl.node(dims=2)
        with out_buffer.wait() as block:
            ttl.copy(block, out[node * 4 : node * 4 + 4, 0:4]).wait()
"""


@pytest.mark.parametrize("summand", ["x", "x * x", "x @ x"])
def test_a_sum_of_no_rounds_is_zero(kernels, make_array, summand):
    """Core 0 adds nothing, and the block is larger than DST."""
    a = make_array((6 * 4, 4), "f32", -1.0, 1.0)
    out = np.full((3 * 128, 128), 7, np.float32)
    kernels.run(ROUNDS_BY_CORE.format(summand=summand), a, out)
    blocks = a.astype(np.float64).reshape(3, 2, 128, 128)
    wanted = [sum((eval(summand, {"x": blocks[core, i]}) for i in range(core)), np.zeros((128, 128))) for core in range(3)]
    np.testing.assert_allclose(out, np.concatenate(wanted), rtol=0, atol=0.05)
    assert not out[:128].any()


SUMS = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(a, out):
    rows, cols = {block}
    a_dfb = ttl.make_dataflow_buffer_like(a, shape=(rows, cols), block_count=2)
    out_dfb = ttl.make_dataflow_buffer_like(out, shape={result}, block_count=2)

    @ttl.compute()
    def compute():
        with out_dfb.reserve() as o:
            for step in range({steps}):
                with a_dfb.wait() as x:
                    o += ttl.math.reduce_sum({summand}, dims=[{dim}])

    @ttl.datamovement()
    def read():
        for step in range({steps}):
            with a_dfb.reserve() as block:
                ttl.copy(a[step * rows:(step + 1) * rows, 0:cols], block).wait()

    @ttl.datamovement()
    def write():
        with out_dfb.wait() as block:
            ttl.copy(block, out[0:{result}[0], 0:{result}[1]]).wait()
"""


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("block", [(1, 1), (2, 3)])
@pytest.mark.parametrize("summand", ["x", "ttl.math.abs(x)"])
def test_reductions_added_to_a_block(kernels, summand, block, dim):
    """What the matrix unit adds up by itself stays in DST and is packed once, like a sum of products."""
    rows, cols = block
    result = (1, cols) if dim == 0 else (rows, 1)
    rng = np.random.default_rng(5)
    a = rng.uniform(-1, 1, (STEPS * rows * 32, cols * 32)).astype(ml_dtypes.bfloat16)
    out = np.full((result[0] * 32, result[1] * 32), np.nan, ml_dtypes.bfloat16)
    source = SUMS.format(block=block, result=result, steps=STEPS, dim=dim, summand=summand)
    program, _ = run_everywhere(kernels, source, [a, out])
    seen = a.astype(np.float64).reshape(STEPS, rows * 32, cols * 32)
    seen = np.abs(seen) if "abs" in summand else seen
    if dim == 0:
        expected, got = seen.sum(axis=(0, 1)), out[0].astype(np.float64)
    else:
        expected, got = seen.sum(axis=(0, 2)), out[:, 0].astype(np.float64)
    assert np.max(np.abs(got - expected)) <= 2e-2 * np.max(np.abs(expected)) + 0.1
    if summand == "x":
        assert lifecycle(program.cpp["compute"]) == (1, True)
        assert program.cpp["compute"].count("tile_regs_acquire") == 1
        assert "pack_reconfig_l1_acc" not in program.cpp["compute"]
