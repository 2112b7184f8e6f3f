"""Index arithmetic in the emitted text is Python's, also below zero: C++ variables are unsigned."""

from __future__ import annotations

from tilewright import execution

CONDITIONS = (
    "n - 1 > 0",
    "(n - 3) // 2 == -1",
    "(n - 3) % 2 == 1",
    "2 * (n // 2) == n",
    "-n < 0",
    "min(n - 2, 1) < 0",
    "max(n - 2, 0) >= 1",
    "n - 5 <= -3 and n != 0",
    "not n - 2 >= 0",
)
TRIPS = 4


def looped(body: str) -> str:
    lines: list[str] = []
    for row, condition in enumerate(CONDITIONS):
        lines += [f"for n in range({TRIPS}):", f"    if {condition}:", f"        {body.replace('ROW', str(row))}"]
    # A range that is empty or ends below zero, and one that counts down.
    rows = len(CONDITIONS)
    lines += [f"for n in range({TRIPS}):", "    for m in range(n - 2):", f"        {body.replace('ROW', str(rows))}"]
    lines += [f"for n in range({TRIPS - 1}, -1, -2):", f"    {body.replace('ROW', str(rows + 1))}"]
    return "\n".join(f"        {line}" for line in lines)


SOURCE = f"""
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(a, out):
    a_buffer = ttl.make_dataflow_buffer_like(a, shape=(1, 1), block_count=2)
    out_buffer = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)

    def work(x_buffer, y_buffer):
        with x_buffer.wait() as x, y_buffer.reserve() as y:
            y.store(ttl.math.abs(x))

    def fetch(n, row):
        with a_buffer.reserve() as x:
            ttl.copy(a[row : row + 1, n : n + 1], x).wait()

    def put(n, row):
        with out_buffer.wait() as y:
            ttl.copy(y, out[row : row + 1, n : n + 1]).wait()

    @ttl.compute()
    def compute():
{looped("work(a_buffer, out_buffer)")}

    @ttl.datamovement()
    def read():
{looped("fetch(n, ROW)")}

    @ttl.datamovement()
    def write():
{looped("put(n, ROW)")}
"""


def expected() -> list[list[bool]]:
    rows = [[bool(eval(condition, {"n": n, "min": min, "max": max})) for n in range(TRIPS)] for condition in CONDITIONS]
    rows.append([len(range(n - 2)) > 0 for n in range(TRIPS)])
    rows.append([n in range(TRIPS - 1, -1, -2) for n in range(TRIPS)])
    return rows


def written(array) -> list[list[bool]]:
    return [[bool(array[32 * row, 32 * n]) for n in range(TRIPS)] for row in range(len(CONDITIONS) + 2)]


def test_simulator_and_text_agree_with_python(kernels, make_array):
    tiles = (len(CONDITIONS) + 2, TRIPS)
    a = make_array(tiles, "bf16", 1, 2)
    simulated, native = (make_array(tiles, "bf16", 0, 0) for _ in range(2))
    program = kernels.run(SOURCE, a, simulated)
    assert written(simulated) == expected()
    with execution.session(mode=execution.NATIVE):
        execution.run(program, [a, native])
    assert written(native) == expected()
    assert "#include <algorithm>" in program.cpp["compute"]
