"""Fuzzing of whole kernels, run and compared: expressions (random bodies of arithmetic, reductions, broadcasts, matmuls and
transposes), and eager ones (values that outlive their blocks, branches per core, scratch buffers used again).

    python benchmarks/fuzz_kernels.py --kernels 500 --seed 7 [--native 0.2]     (0 kernels: without end)
    python benchmarks/fuzz_kernels.py --replay SEED [--kind eager]

A finding is a crash of the compiler, a simulator error, values unlike float64 NumPy (for eager kernels `tests/eager_numpy.py`), or a
native run that differs from the simulator in one bit. It is printed with its seed and its kernel; kernels refused with an error code
are counted by code.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import eager_kernels
import kernel_text
from tilewright import execution
from tilewright.diagnostics import KernelError
from tilewright.progress import interruptible, progress, say

TILE = 32
DTYPES = {"bf16": ml_dtypes.bfloat16, "f32": np.float32}
# One rounding step of the widest format a value of that dtype passes through: the matrix unit reads f32 as tf32.
STEP = {"bf16": 2.0**-8, "f32": 2.0**-10}
LARGEST = 64.0  # values stay small, so that a wrong tile shows and an error bound stays meaningful

Array = Any


@dataclass
class Value:
    name: str
    tiles: tuple[int, int]
    array: Array  # float64; one element along a dimension that was reduced
    error: float  # bound on the absolute error that rounding explains

    @property
    def size(self) -> float:
        return float(np.abs(self.array).max())

    @property
    def is_full(self) -> bool:
        return self.array.shape == (self.tiles[0] * TILE, self.tiles[1] * TILE)


@dataclass
class Body:
    """Statements of one random kernel, and what they mean."""

    choose: random.Random
    step: float
    values: list[Value] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def add(self, text: str, tiles: tuple[int, int], array: Array, error: float) -> None:
        name = f"v{len(self.lines)}"
        size = float(np.abs(array).max())
        if not np.isfinite(size) or size > LARGEST:
            return
        self.lines.append(f"{name} = {text}")
        self.values.append(Value(name, tiles, array, error + 2 * self.step * max(size, 1e-3)))

    def pick(self, wanted: Callable[[Value], bool] = lambda _: True) -> Value | None:
        found = [value for value in self.values if wanted(value)]
        return self.choose.choice(found[-4:] if self.choose.random() < 0.6 else found) if found else None

    def grow(self) -> None:
        kinds = ("binary",) * 5 + ("unary",) * 4 + ("number",) * 2 + ("reduce",) * 3 + ("matmul", "transpose", "where", "broadcast")
        getattr(self, f"_{self.choose.choice(kinds)}")()

    def _binary(self) -> None:
        left = self.pick()
        assert left is not None
        right = self.pick(lambda value: _broadcasts(left, value))
        if right is None:
            return
        text, meaning, error = self.choose.choice(BINARY)
        tiles = (max(left.tiles[0], right.tiles[0]), max(left.tiles[1], right.tiles[1]))
        bound = error(left, right)
        self.add(text.format(left.name, right.name), tiles, meaning(left.array, right.array), bound)

    def _unary(self) -> None:
        value = self.pick()
        assert value is not None
        text, meaning, slope = self.choose.choice(UNARY)
        self.add(text.format(value.name), value.tiles, meaning(value.array), value.error * slope(value) + self.step)

    def _number(self) -> None:
        value = self.pick()
        assert value is not None
        number = self.choose.choice((0.5, -1.25, 3.0, 2, -1))
        text, meaning = self.choose.choice(
            (("{} * {}", np.multiply), ("{1} * {0}", np.multiply), ("{} + {}", np.add), ("{} - {}", np.subtract))
        )
        self.add(text.format(value.name, number), value.tiles, meaning(value.array, number), value.error * max(1, abs(number)))

    def _reduce(self) -> None:
        value = self.pick()
        assert value is not None
        dims = self.choose.choice(([0], [1], [-1], [0, 1]))
        name, meaning = self.choose.choice((("sum", np.sum), ("max", np.max), ("mean", np.mean), ("max", np.max), ("min", np.min)))
        axes = tuple(dim % 2 for dim in dims)
        array = meaning(value.array, axis=axes, keepdims=True)
        count = value.array.size // array.size
        tiles = (1 if 0 in axes else value.tiles[0], 1 if 1 in axes else value.tiles[1])
        text, scale = f"ttl.math.reduce_{name}({value.name}, dims={dims})", 1.0
        if name == "sum":
            scale = 1.0 / count
            text = f"{text} * {scale!r}"
        self.add(text, tiles, array * scale, value.error + 4 * self.step * value.size)

    def _matmul(self) -> None:
        left = self.pick(lambda value: value.is_full)
        right = left and self.pick(lambda value: value.is_full and value.tiles[0] == left.tiles[1])
        if left is None or right is None:
            return
        inner = left.array.shape[1]
        scale = 1.0 / inner
        error = left.error * right.size + right.error * left.size + 4 * self.step * left.size * right.size
        self.add(f"({left.name} @ {right.name}) * {scale!r}", (left.tiles[0], right.tiles[1]), left.array @ right.array * scale, error)

    def _transpose(self) -> None:
        value = self.pick()
        if value is not None:
            self.add(f"ttl.block.transpose({value.name})", value.tiles[::-1], value.array.T, value.error)

    def _where(self) -> None:
        """A condition near zero may fall either way, so both sides of this one agree there."""
        value = self.pick()
        assert value is not None
        meaning = np.where(value.array > 0, value.array, value.array * 0.5)
        self.add(f"ttl.math.where({value.name} > 0.0, {value.name}, {value.name} * 0.5)", value.tiles, meaning, value.error)

    def _broadcast(self) -> None:
        value = self.pick(lambda value: not value.is_full)
        full = value and self.pick(lambda full: full.is_full and _broadcasts(value, full))
        if value is None or full is None:
            return
        dims = [axis for axis in (0, 1) if value.array.shape[axis] == 1 and full.array.shape[axis] != 1]
        text = f"ttl.block.broadcast({value.name}, dims={dims}, shape={full.tiles})"
        self.add(text, full.tiles, np.broadcast_to(value.array, full.array.shape), value.error)


def _broadcasts(left: Value, right: Value) -> bool:
    """As NumPy has it, but a single tile repeats as a tile, not as an element."""
    sizes = zip(left.array.shape, right.array.shape, strict=True)
    return all(size == other or 1 in (size, other) for size, other in sizes)


def _sum_error(left: Value, right: Value) -> float:
    return left.error + right.error


def _product_error(left: Value, right: Value) -> float:
    return left.error * right.size + right.error * left.size


BINARY = (
    ("{} + {}", np.add, _sum_error),
    ("{} - {}", np.subtract, _sum_error),
    ("{} * {}", np.multiply, _product_error),
    ("ttl.math.max({}, {})", np.maximum, _sum_error),
    ("ttl.math.min({}, {})", np.minimum, _sum_error),
)
UNARY = (
    ("ttl.math.exp({} * 0.25)", lambda x: np.exp(x * 0.25), lambda v: float(np.exp(v.size * 0.25))),
    ("ttl.math.tanh({})", np.tanh, lambda v: 1.0),
    ("ttl.math.sigmoid({})", lambda x: 1 / (1 + np.exp(-x)), lambda v: 1.0),
    ("ttl.math.abs({})", np.abs, lambda v: 1.0),
    ("-{}", np.negative, lambda v: 1.0),
    ("ttl.math.relu({})", lambda x: np.maximum(x, 0), lambda v: 1.0),
    ("{} ** 2", np.square, lambda v: 2 * v.size),
    ("ttl.math.recip({} ** 2 + 1.0)", lambda x: 1 / (x * x + 1), lambda v: 2 * v.size),
    ("ttl.math.sqrt({} ** 2 + 1.0)", lambda x: np.sqrt(x * x + 1), lambda v: 2 * v.size),
)


@dataclass
class Output:
    """What is stored: in every step, or once behind the loop, where a running value ends."""

    value: Value
    once: bool = False


@dataclass
class Kernel:
    text: str
    arrays: list[Array]
    outputs: list[tuple[Array, Output]]
    steps: int


def random_kernel(seed: int) -> tuple[Kernel, dict[str, Any]]:
    choose = random.Random(seed)
    dtype = choose.choice(("bf16", "bf16", "f32"))
    steps = choose.choice((1, 2, 3))
    body = Body(choose, STEP[dtype])
    sides = [choose.randint(1, 4) for _ in range(2)]
    data = np.random.default_rng(seed)
    inputs: list[tuple[str, tuple[int, int], Array]] = []
    for number in range(choose.randint(1, 4)):
        tiles = (choose.choice(sides), choose.choice(sides)) if choose.random() < 0.4 else (sides[0], sides[1])
        array = data.uniform(-2, 2, (tiles[0] * TILE, tiles[1] * TILE)).astype(DTYPES[dtype])
        inputs.append((f"x{number}", tiles, array))
        body.values.append(Value(f"x{number}", tiles, array.astype(np.float64), 0.0))
    for _ in range(choose.randint(1, 10)):
        body.grow()
    made = body.values[len(inputs) :] or body.values
    stored = [Output(made[-1]), *(Output(value) for value in choose.sample(made, min(len(made), choose.choice((0, 0, 1)))))]
    running = choose.choice((None, None, *RUNNING)) if steps > 1 else None
    if running is not None:
        value = choose.choice(made)
        _, text, meaning = running
        total = meaning(value.array, steps)
        body.lines.append(f"total = {text.format('total', value.name)}")
        stored.append(Output(Value("total", value.tiles, total, (value.error + 2 * body.step * value.size) * steps), once=True))
    held = frozenset(name for name, _, _ in inputs if choose.random() < 0.3)
    text = _text(body.lines, inputs, stored, steps, held, None if running is None else running[0])
    arrays = [array if name in held else np.concatenate([array] * steps) for name, _, array in inputs]
    outputs = [(np.zeros(((1 if o.once else steps) * o.value.tiles[0] * TILE, o.value.tiles[1] * TILE), DTYPES[dtype]), o) for o in stored]
    options = {
        "allocator": choose.choice(("optimal", "optimal", "linear-scan")),
        "full_sync": choose.choice((None, None, True)),
        "fp32_dest_acc": choose.choice((None, None, True)),
        "inits": choose.choice(("hoist", "hoist", "hoist", "each")),
        "metal": choose.choice(("0.78", "0.78", "0.69", "0.62")),
        "dst_capacity": choose.choice((None, None, None, 2, 3)),
    }
    return Kernel(text, arrays, outputs, steps), options


RUNNING = (
    (0.0, "{} + {}", lambda x, steps: x * steps),
    (-100.0, "ttl.math.max({}, {})", lambda x, steps: x),
)


def _text(
    lines: list[str],
    inputs: list[tuple[str, tuple[int, int], Array]],
    stored: list[Output],
    steps: int,
    held: frozenset[str],
    start: float | None,
) -> str:
    """``held`` inputs are waited for once, and what depends on them alone is written before the loop."""
    names = [name for name, _, _ in inputs]
    shapes = {name: tiles for name, tiles, _ in inputs} | {f"y{i}": output.value.tiles for i, output in enumerate(stored)}
    before, inside = _split(lines, held)
    each = [i for i, output in enumerate(stored) if not output.once]
    last = [i for i, output in enumerate(stored) if output.once]
    text = ["from tilewright import ttl", "", "@ttl.operation(grid=(1, 1))", f"def kernel({', '.join(f'{n}_t' for n in shapes)}):"]
    text += [f"    {name}_b = ttl.make_dataflow_buffer_like({name}_t, shape={tiles}, block_count=2)" for name, tiles in shapes.items()]
    text += ["", "    @ttl.compute()", "    def compute():"]
    text += [f"        {name} = {name}_b.wait()" for name in names if name in held]
    text += [f"        {line}" for line in before]
    if start is not None:
        text += [f"        total = ttl.block.fill({start}, shape={stored[-1].value.tiles})"]
    acquired = [f"{name}_b.wait() as {name}" for name in names if name not in held] + [f"y{i}_b.reserve() as y{i}" for i in each]
    text += [f"        for step in range({steps}):", f"            with {', '.join(acquired)}:"]
    text += [f"                {line}" for line in inside]
    text += [f"                y{i}.store({stored[i].value.name})" for i in each]
    for i in last:
        text += [f"        with y{i}_b.reserve() as y{i}:", f"            y{i}.store({stored[i].value.name})"]
    text += [f"        {name}.pop()" for name in names if name in held]

    def moves(names: list[str], how: str, copy: str, count: int) -> list[str]:
        found = [f"        for step in range({count}):"] if names else []
        for name in names:
            rows, columns = shapes[name]
            part = f"{name}_t[step * {rows} : step * {rows} + {rows}, 0:{columns}]"
            found += [f"            with {name}_b.{how}() as block:", f"                ttl.copy({copy.format(part)}).wait()"]
        return found

    text += ["", "    @ttl.datamovement()", "    def read():"]
    text += moves([name for name in names if name in held], "reserve", "{}, block", 1)
    text += moves([name for name in names if name not in held], "reserve", "{}, block", steps)
    text += ["", "    @ttl.datamovement()", "    def write():", *moves([f"y{i}" for i in each], "wait", "block, {}", steps)]
    text += moves([f"y{i}" for i in last], "wait", "block, {}", 1)
    return "\n".join(text) + "\n"


def _split(lines: list[str], held: frozenset[str]) -> tuple[list[str], list[str]]:
    """Statements that need only what is held, and the rest."""
    known = set(held)
    before: list[str] = []
    inside: list[str] = []
    for line in lines:
        name, expression = line.split(" = ", 1)
        if name != "total" and set(re.findall(r"\b[xv]\d+\b", expression)) <= known:
            known.add(name)
            before.append(line)
        else:
            inside.append(line)
    return before, inside


def expression_kernel(seed: int) -> ExpressionKernel:
    return ExpressionKernel(*random_kernel(seed))


@dataclass
class ExpressionKernel:
    kernel: Kernel
    options: dict[str, Any]

    @property
    def text(self) -> str:
        return self.kernel.text

    @property
    def arrays(self) -> list[Array]:
        return self.kernel.arrays

    @property
    def outputs(self) -> list[Array]:
        return [result for result, _ in self.kernel.outputs]

    def differences(self, results: list[Array]) -> list[str]:
        """What is wrong with the outputs, one line each."""
        found: list[str] = []
        for number, (result, (_, output)) in enumerate(zip(results, self.kernel.outputs, strict=True)):
            value = output.value
            rows, columns = value.array.shape
            for step in range(1 if output.once else self.kernel.steps):
                top = step * value.tiles[0] * TILE
                part = result[top : top + rows, :columns].astype(np.float64)
                error = float(np.abs(part - value.array).max())
                if not error <= 4 * value.error + 1e-6:
                    found.append(f"y{number} step {step}: off by {error:.4g}, rounding explains {4 * value.error:.4g} (size {value.size:.3g})")
        return found


KINDS: dict[str, Callable[[int], ExpressionKernel | eager_kernels.EagerKernel]] = {
    "expressions": expression_kernel,
    "eager": eager_kernels.random_kernel,
}


def run_one(kind: str, seed: int, folder: Path, *, native: bool) -> str | None:
    """None if all is well, ``refused TWnnn``, or the finding."""
    kernel = KINDS[kind](seed)
    options = kernel.options
    try:
        function = kernel_text.load(kernel.text, folder)
        results = kernel.outputs
        with execution.session(mode="sim", overrides=options):
            function(*kernel.arrays, *results)
        wrong = kernel.differences(results)
        if wrong:
            return "\n".join([f"options {options}", *wrong])
        if native:
            again = [np.zeros_like(result) for result in results]
            with execution.session(mode="native", overrides=options):
                function(*kernel.arrays, *again)
            if any(a.tobytes() != b.tobytes() for a, b in zip(results, again, strict=True)):
                return f"options {options}\nnative differs from the simulator"
    except KernelError as error:
        codes = sorted({diagnostic.code for diagnostic in error.diagnostics})
        if any(code.startswith(("TW5", "TW9")) for code in codes):
            return f"options {options}\n{error}"
        return f"refused {' '.join(codes)}"
    except Exception:  # a crash is what this looks for
        return f"options {options}\n{traceback.format_exc()}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=int, default=200, help="how many; 0: without end")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--native", type=float, default=0.1, help="share of kernels that also run natively")
    parser.add_argument("--refused", action="store_true", help="name the seeds of kernels that were refused")
    parser.add_argument("--kind", choices=sorted(KINDS), help="kernels of this kind only; by default every second one")
    parser.add_argument("--replay", type=int, help="run this seed of --kind alone, simulator and native, and print its kernel")
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    arguments = parser.parse_args()
    kinds = [arguments.kind] if arguments.kind else list(KINDS)
    with tempfile.TemporaryDirectory() as name:
        if arguments.replay is not None:
            kind = kinds[arguments.replay % len(kinds)]
            print(KINDS[kind](arguments.replay).text)
            print(run_one(kind, arguments.replay, Path(name), native=True) or "as expected")
            return 0
        counts: Counter[str] = Counter()
        seed = arguments.seed
        with progress("kernels", arguments.kernels, quiet=arguments.quiet) as shown:
            while not arguments.kernels or seed < arguments.seed + arguments.kernels:
                kind = kinds[seed % len(kinds)]
                found = run_one(kind, seed, Path(name), native=random.Random(seed).random() < arguments.native)
                counts[(found or "right") if found is None or found.startswith("refused") else "finding"] += 1
                if found is not None and not found.startswith("refused"):
                    say(f"--- seed {seed}, {kind}\n{KINDS[kind](seed).text}\n{found}")
                elif found is not None and arguments.refused:
                    say(f"--- seed {seed}, {kind}: {found}")
                seed += 1
                shown.tell(counts.total(), arguments.kernels, f"{counts['right']} right, {counts['finding']} findings, next seed {seed}")
        print(dict(counts))
        return 1 if counts["finding"] else 0


if __name__ == "__main__":
    sys.exit(interruptible(main))
