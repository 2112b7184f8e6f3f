"""How long compiling takes, in CPU milliseconds: a first process, a cached one, a warm compiler on kernels whose time with the
peer's compiler is known, wide bodies, bodies of 10 to 10,000 ops.

python benchmarks/compile_time.py [--runs N] [--ops 10,100,1000,10000] [--against OTHER/src] [--peer PYTHON] [--only processes,warm,...]

CPU time, least of several runs, because wall time on a shared machine measures the neighbours. The first line times a fixed
loop: divide by it to compare machines. ``--against`` times another source tree in turn with this one: processes, warm kernels and
wide bodies; the ratio is this tree's time over the other's. ``--peer`` times the peer's compiler in turn with this one, with a Python
that has it (tt-lang 1.1.1).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from peer_compile import peer_text

HERE = Path(__file__).resolve().parents[1]
SOURCE = HERE / "src"
sys.path[:0] = [str(HERE / "tests"), str(HERE / "tests" / "end_to_end")]
TILE = 32

KERNEL = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def fused({tensors}, out):
    {buffers}
    out_dfb = ttl.make_dataflow_buffer_like(out, shape=({side}, {side}), block_count=1)

    @ttl.compute()
    def compute():
        with {waits}, out_dfb.reserve() as o:
            {body}

    @ttl.datamovement()
    def read():
        {reads}

    @ttl.datamovement()
    def write():
        with out_dfb.wait() as block:
            ttl.copy(block, out[0:{side}, 0:{side}]).wait()
"""

TEN_OPS = """m = a_blk * b_blk + c_blk
e = ttl.math.exp(m)
f = ttl.math.tanh(e) + ttl.math.abs(m)
g = f * a_blk - ttl.math.sqrt(e)
o.store(ttl.math.relu(g * 0.5))"""
CHAIN = ("v * b_blk", "ttl.math.exp(v)", "v + a_blk", "ttl.math.abs(v)", "v - b_blk", "ttl.math.tanh(v)")

WITH_NUMPY = """
import ml_dtypes, numpy as np
fused(*(np.zeros(({size}, {size}), ml_dtypes.bfloat16) for _ in range({count})))
"""
WITHOUT_NUMPY = """
from tilewright.program import TensorSpec
{call}(*(TensorSpec(name=name, shape=({size}, {size}), dtype="bf16") for name in {names}))
"""


def kernel_text(names: str, side: int, body: str) -> str:
    def lines(parts: list[str], indent: int) -> str:
        return ("\n" + " " * indent).join(parts)

    reads = [f"with {n}_dfb.reserve() as block:\n            ttl.copy({n}[0:{side}, 0:{side}], block).wait()" for n in names]
    buffers = [f"{n}_dfb = ttl.make_dataflow_buffer_like({n}, shape=({side}, {side}), block_count=1)" for n in names]
    return KERNEL.format(
        tensors=", ".join(names),
        side=side,
        buffers=lines(buffers, 4),
        waits=", ".join(f"{n}_dfb.wait() as {n}_blk" for n in names),
        body=lines(body.split("\n"), 12),
        reads=lines(reads, 8),
    )


def chain_body(ops: int) -> str:
    return "\n".join(["v = a_blk", *(f"v = {CHAIN[number % len(CHAIN)]}" for number in range(ops)), "o.store(v)"])


def defined(folder: Path, name: str, text: str) -> Any:
    """The kernel of a file with this text."""
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    names: dict[str, Any] = {"__name__": name}
    exec(compile(text, str(path), "exec"), names)
    return names["fused"]


# Processes ----------------------------------------------------------------------------------------------------------------


def child_cpu(command: list[str], source: Path, folder: Path) -> float:
    """CPU milliseconds of one process. Bytecode is kept, as it is in an installation."""
    settings = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    settings |= {
        "PYTHONPATH": str(source),
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    quiet = subprocess.DEVNULL
    subprocess.run([sys.executable, *command], env=settings, check=True, stdout=quiet, stderr=quiet)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1e3


def process_commands(folder: Path, source: Path) -> dict[str, list[str]]:
    text = kernel_text("abc", 8, TEN_OPS)
    size = 8 * TILE
    script, plain, called = folder / "with_numpy.py", folder / "without_numpy.py", folder / "called.py"
    script.write_text(text + WITH_NUMPY.format(size=size, count=4), encoding="utf-8")
    for path, call in ((plain, "fused.compile"), (called, "fused")):  # `tilewright compile` writes what a script calls
        path.write_text(text + WITHOUT_NUMPY.format(call=call, size=size, names=("a", "b", "c", "out")), encoding="utf-8")
    tilewright = ["-m", "tilewright", "compile"]
    fresh = ["--no-cache"] if (source / "tilewright" / "cache.py").exists() else []
    return {
        "python alone": ["-c", "pass"],
        "python and NumPy": ["-c", "import numpy, ml_dtypes"],
        "cold: import, compile, emit": [str(plain)],
        "cold: tilewright compile, a script with NumPy": [*tilewright, *fresh, str(script)],
        "cached: tilewright compile, a script without NumPy": [*tilewright, str(called)],
        "cached: tilewright compile, a script with NumPy": [*tilewright, str(script)],
        "cached: tilewright run examples/01_add.py": ["-m", "tilewright", "run", str(HERE / "examples" / "01_add.py")],
    }


def time_processes(folder: Path, sources: list[Path], runs: int) -> None:
    for name in process_commands(folder, sources[0]):
        best = [float("inf")] * len(sources)
        for run in range(runs + 1):
            for index, source in enumerate(sources):
                taken = child_cpu(process_commands(folder, source)[name], source, folder)
                if run:  # the first writes bytecode and the cache
                    best[index] = min(best[index], taken)
        show(name, best)


# A warm compiler, in a process of each tree ----------------------------------------------------------------------------------------

# Kernels that the peer compiles too (peer_compile.py).
PEER_CASES = {
    "a add 2x2": "add", "b exp(a*b+c) 8x8": "exp(a*b+c)", "f2 matmul +=": "matmul with a K loop",
    "h2 six buffers": "staged softmax", "l flash attention": "flash attention",
}  # fmt: skip
FUSED = "three threads, ten fused ops"
WIDE = ("products of sums", "products far apart", "exponentials")  # 16 shared values, 47 ops and more

# Compiles every kernel of a file in turn, each time anew, and prints the least milliseconds by name.
CHILD = """
import json, sys, time
import ml_dtypes, numpy
from tilewright.dst.allocate import checked_plan
from tilewright.jit.kernel import Kernel
least = {}
for name, (path, shapes) in json.load(open(sys.argv[1])).items():
    scope = {"__name__": "kernels"}
    exec(compile(open(path).read(), path, "exec"), scope)
    kernel = [value for value in scope.values() if isinstance(value, Kernel)][-1]
    tensors = [numpy.zeros(shape, ml_dtypes.bfloat16) for shape in shapes]
    times = []
    for _ in range(int(sys.argv[2]) + 1):
        kernel._programs.clear()
        checked_plan.cache_clear()
        started = time.process_time()
        kernel.compile(*tensors)
        times.append((time.process_time() - started) * 1e3)
    least[name] = min(times[1:])
print(json.dumps(least))
"""


def peer_kernels() -> dict[str, tuple[str, list[tuple[int, int]]]]:
    """Text and shapes of the arguments by name."""
    from kernels import CASES, source_of

    found = {FUSED: (kernel_text("abc", 8, TEN_OPS), [(8 * TILE, 8 * TILE)] * 4)}
    for case in CASES:
        if case.name in PEER_CASES:
            shapes = [(rows * TILE, columns * TILE) for rows, columns in (*case.inputs.values(), *case.outputs)]
            found[PEER_CASES[case.name]] = source_of(case), shapes
    return found


def wide_kernels() -> dict[str, tuple[str, list[tuple[int, int]]]]:
    from test_wide_bodies import BODIES, SHARED

    from kernel_text import elementwise

    names = [f"x{number}" for number in range(SHARED)]
    found: dict[str, tuple[str, list[tuple[int, int]]]] = {}
    for body in WIDE:
        lets = [(name, value) for name, value in (line.split(" = ", 1) for line in BODIES[body])]
        text = elementwise({"out": "y"}, names, lets=lets, block=(2, 1), count=1)
        found[f"wide: {body}"] = text, [(2 * TILE, TILE)] * (SHARED + 1)
    return found


def written(folder: Path, kernels: dict[str, tuple[str, list[tuple[int, int]]]]) -> Path:
    """Kernels as files, and a file that lists them with the shapes of their arguments."""
    folder.mkdir(exist_ok=True)
    listed: dict[str, tuple[str, list[tuple[int, int]]]] = {}
    for number, (name, (text, shapes)) in enumerate(kernels.items()):
        path = folder / f"kernel_{number}.py"
        path.write_text(text, encoding="utf-8")
        listed[name] = str(path), shapes
    found = folder / "kernels.json"
    found.write_text(json.dumps(listed), encoding="utf-8")
    return found


def compiled_by_us(source: Path, kernels: Path, runs: int) -> dict[str, float]:
    command = [sys.executable, "-c", CHILD, str(kernels), str(runs)]
    settings = {**os.environ, "PYTHONPATH": str(source)}
    return json.loads(subprocess.run(command, env=settings, check=True, stdout=subprocess.PIPE).stdout)


def compiled_by_peer(python: Path, kernels: Path, runs: int) -> dict[str, float]:
    command = [str(python), str(HERE / "benchmarks" / "peer_compile.py"), str(kernels), str(runs)]
    done = subprocess.run(command, capture_output=True, text=True)  # it prints what it leaks
    found = [line for line in done.stdout.splitlines() if line.startswith("peer ")]
    if not found:
        raise SystemExit(f"{python} does not compile the peer's kernels:\n{done.stderr[-2000:]}")
    return json.loads(found[0].removeprefix("peer "))


def time_kernels(compilers: list[Callable[[], dict[str, float]]], rounds: int) -> dict[str, list[float]]:
    """The least milliseconds of every kernel by every compiler, which work in turn."""
    best: dict[str, list[float]] = {}
    for _ in range(rounds):
        for index, compiled in enumerate(compilers):
            for name, taken in compiled().items():
                values = best.setdefault(name, [float("inf")] * len(compilers))
                values[index] = min(values[index], taken)
    return best


def time_against(folder: Path, sources: list[Path], peer: Path | None, runs: int) -> None:
    kernels = peer_kernels()
    listed = written(folder / "warm", kernels)
    compilers = [partial(compiled_by_us, source, listed, runs) for source in sources]
    if peer is not None:
        theirs = {name: (peer_text(name, text), shapes) for name, (text, shapes) in kernels.items()}
        compilers.append(partial(compiled_by_peer, peer, written(folder / "peer", theirs), runs))
    for name, values in time_kernels(compilers, 3).items():
        ours, other = values[: len(sources)], values[len(sources) :]
        show(f"warm: {name}", ours, f"  peer {other[0]:6.1f} ms, ours / peer {ours[0] / other[0]:.2f}" if other else "")


def time_wide(folder: Path, sources: list[Path]) -> None:
    listed = written(folder / "wide", wide_kernels())
    for name, values in time_kernels([partial(compiled_by_us, source, listed, 1) for source in sources], 2).items():
        show(name, values)


# In this process --------------------------------------------------------------------------------------------------------------


def cpu_ms(work: Callable[[], Any]) -> float:
    started = time.process_time()
    work()
    return (time.process_time() - started) * 1e3


@contextmanager
def timed_passes(into: dict[str, float]) -> Iterator[None]:
    """CPU of every pass; the least over all compilations inside."""
    from tilewright import pipeline

    original = pipeline.run_pass

    def run_pass(name: str, *given: Any) -> None:
        into[name] = min(into.get(name, float("inf")), cpu_ms(lambda: original(name, *given)))

    pipeline.run_pass = run_pass
    try:
        yield
    finally:
        pipeline.run_pass = original


def specs(names: str, side: int) -> list[Any]:
    from tilewright.program import TensorSpec

    shape = (side * TILE, side * TILE)
    return [TensorSpec(name=name, shape=shape, dtype="bf16") for name in (*names, "out")]


def time_warm(folder: Path, runs: int) -> None:
    from tilewright.dst.allocate import checked_plan

    kernel = defined(folder, "ten_ops", kernel_text("abc", 8, TEN_OPS))
    tensors = specs("abc", 8)
    passes: dict[str, float] = {}

    def once(*, forget: bool) -> float:
        kernel._programs.clear()
        if forget:
            checked_plan.cache_clear()
        return cpu_ms(lambda: kernel.compile(*tensors))

    once(forget=True)
    fresh = min(once(forget=True) for _ in range(runs))
    known = min(once(forget=False) for _ in range(runs))
    show("warm: ten fused ops, by pass", [fresh])
    show("the same with its DST allocation remembered", [known])
    with timed_passes(passes):
        for _ in range(runs):
            once(forget=True)
    front = min(cpu_ms(lambda: kernel.build(*tensors)) for _ in range(runs))
    show("  front end", [front])
    for name, taken in passes.items():
        show(f"  {name}", [taken])
    show("  stage checks, emission, the rest", [max(0.0, fresh - front - sum(passes.values()))])


def time_bodies(folder: Path, sizes: list[int]) -> None:
    from tilewright.dst.allocate import checked_plan

    def once(kernel: Any) -> float:
        kernel._programs.clear()
        checked_plan.cache_clear()
        return cpu_ms(lambda: kernel.compile(*specs("ab", 2)))

    previous: float | None = None
    for ops in sizes:
        kernel = defined(folder, f"chain_{ops}", kernel_text("ab", 2, chain_body(ops)))
        taken = min(once(kernel) for _ in range(3))
        growth = f"  x{taken / previous:.1f}" if previous else ""
        print(f"{f'body of {ops:,} ops':<58} {taken:9.1f} ms{growth}")
        previous = taken


# Size ------------------------------------------------------------------------------------------------------------------------


def requirements(name: str, known: dict[str, int]) -> None:
    """Bytes of a distribution and of all it needs, by name."""
    name = re.sub(r"[-_.]+", "-", name).lower()
    if name in known:
        return
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return
    files = [Path(str(found.locate_file(file))) for file in found.files or ()]
    known[name] = sum(file.stat().st_size for file in files if file.exists())
    for needed in found.requires or ():
        if "extra ==" not in needed:
            requirements(re.split(r"[^\w.-]", needed, maxsplit=1)[0], known)


def show_size() -> None:
    ours = sum(file.stat().st_size for file in (SOURCE / "tilewright").rglob("*") if file.is_file() and file.suffix != ".pyc")
    sizes = {"tilewright": ours}
    for name in ("xdsl", "numpy", "ml_dtypes"):
        requirements(name, sizes)
    for name, size in sizes.items():
        print(f"{f'installed: {name}':<58} {size / 2**20:9.1f} MB")
    print(f"{'installed: all':<58} {sum(sizes.values()) / 2**20:9.1f} MB")


def show(name: str, values: list[float], remark: str = "") -> None:
    ratio = f"  x{values[0] / values[1]:.2f}" if len(values) > 1 else ""
    print(f"{name:<58} {'  '.join(f'{value:9.1f}' for value in values)} ms{ratio}{remark}", flush=True)


def spin() -> int:
    total = 0
    for number in range(1_000_000):
        total += number & 7
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--ops", default="10,100,1000,10000")
    parser.add_argument("--against", type=Path, metavar="SRC")
    parser.add_argument("--peer", type=Path, metavar="PYTHON", help="a Python that has tt-lang and ttnn")
    parser.add_argument("--only", default="processes,warm,wide,passes,bodies,size", help="what to measure")
    arguments = parser.parse_args()
    wanted = arguments.only.split(",")
    sources = [SOURCE, *([arguments.against.resolve()] if arguments.against else [])]
    show("a loop of a million turns", [min(cpu_ms(spin) for _ in range(5))])
    with tempfile.TemporaryDirectory() as name:
        if "processes" in wanted:
            time_processes(Path(name), sources, arguments.runs)
        if "warm" in wanted:
            time_against(Path(name), sources, arguments.peer, arguments.runs * 2)
        if "wide" in wanted:
            time_wide(Path(name), sources)
        if "passes" in wanted:
            time_warm(Path(name), arguments.runs * 4)
        if "bodies" in wanted:
            time_bodies(Path(name), [int(size) for size in arguments.ops.split(",")])
    if "size" in wanted:
        show_size()


if __name__ == "__main__":
    main()
