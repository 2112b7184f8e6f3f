"""Random kernels about when things happen: values that outlive their blocks, branches per core, scratch buffers used again.

Three texts grow together. Whatever compute waits for, the reader reads at the same point of its own course, and whatever compute
pushes, the writer writes, so every kernel is right by construction: it ends, and in plain Python it means what `eager_numpy` computes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

import eager_numpy

DTYPES = {"bf16": ml_dtypes.bfloat16, "f32": np.float32}
TILE = 32
LARGEST = 8.0  # beyond this size a value is squeezed
INPUTS, OUTPUTS, SCRATCH = 3, 2, 2


@dataclass
class EagerKernel:
    text: str
    arrays: list[Any]
    outputs: list[Any]
    cores: int
    dtype: str
    options: dict[str, Any]


    def differences(self, results: list[Any]) -> list[str]:
        """What is wrong with the outputs, one line each."""
        tensors = eager_numpy.run(self.text, [*self.arrays, *self.outputs], self.cores, self.dtype)
        found: list[str] = []
        for number, (result, wanted) in enumerate(zip(results, tensors[len(self.arrays) :], strict=True)):
            for row, bound in sorted(wanted.errors.items()):
                rows = slice(row * TILE, row * TILE + TILE)
                error = float(np.abs(result[rows].astype(np.float64) - wanted.array[rows]).max())
                if not error <= 4 * bound + 1e-6:
                    found.append(f"y{number} row {row}: off by {error:.4g}, rounding explains {4 * bound:.4g}")
        return found


@dataclass(frozen=True)
class Known:
    """A name that can be read: how large it may be, and in which dimensions it has one element."""

    name: str
    size: float
    reduced: tuple[int, ...] = ()
    block: bool = False  # it is a block of a buffer, which ends with its release


@dataclass
class Course:
    """Lines of one thread."""

    lines: list[str] = field(default_factory=list)
    level: int = 2

    def add(self, line: str) -> None:
        self.lines.append("    " * self.level + line)


@dataclass
class Writer:
    choose: random.Random
    cores: int
    tiles: tuple[int, int]
    compute: Course = field(default_factory=Course)
    read: Course = field(default_factory=Course)
    write: Course = field(default_factory=Course)
    known: dict[str, Known] = field(default_factory=dict)
    taken: dict[str, int] = field(default_factory=dict)  # blocks of each tensor so far, and of each buffer how many are held
    held: dict[str, int] = field(default_factory=dict)
    loop: tuple[str, int] | None = None  # its counter, and how many rounds
    names: int = 0

    # --- expressions

    def expression(self, depth: int = 2, full: bool = False) -> Known:
        """An expression as its own name."""
        if depth == 0 or self.choose.random() < 0.15:
            found = self.pick()
        else:
            kinds = (self._binary,) * 5 + (self._unary,) * 3 + (self._number,) * 2 + (self._reduce, self._product, self._transpose)
            found = self.choose.choice(kinds)(depth - 1)
        if full and found.reduced:
            other = self.pick(lambda known: not known.reduced)
            found = Known(f"({other.name} - {found.name})", other.size + found.size)
        if found.size > LARGEST:
            found = Known(f"ttl.math.tanh({found.name})", 1.0, found.reduced)
        return found

    def value(self) -> Known:
        """An expression of full size that is no block itself, so that it outlives all blocks."""
        found = self.expression(1, full=True)
        known = self.known.get(found.name)
        return Known(f"{found.name} * 1.0", found.size) if known is not None and known.block else found

    def pick(self, wanted: Callable[[Known], bool] = lambda _: True) -> Known:
        found = [known for known in self.known.values() if wanted(known)]
        return self.choose.choice(found[-4:] if self.choose.random() < 0.6 else found)

    def _binary(self, depth: int) -> Known:
        left, right = self.expression(depth), self.expression(depth)
        reduced = tuple(dim for dim in left.reduced if dim in right.reduced)
        text, size = self.choose.choice(
            (
                ("({} + {})", left.size + right.size),
                ("({} - {})", left.size + right.size),
                ("({} * {})", left.size * right.size),
                ("ttl.math.max({}, {})", max(left.size, right.size)),
                ("ttl.math.min({}, {})", max(left.size, right.size)),
            )
        )
        return Known(text.format(left.name, right.name), size, reduced)

    def _unary(self, depth: int) -> Known:
        x = self.expression(depth)
        text, size = self.choose.choice(
            (
                ("ttl.math.exp({} * 0.125)", float(np.exp(x.size * 0.125))),
                ("ttl.math.tanh({})", 1.0),
                ("ttl.math.sigmoid({})", 1.0),
                ("ttl.math.abs({})", x.size),
                ("ttl.math.relu({})", x.size),
                ("(-{})", x.size),
            )
        )
        return Known(text.format(x.name), size, x.reduced)

    def _number(self, depth: int) -> Known:
        x = self.expression(depth)
        number = self.choose.choice((0.5, -1.25, 2.0))
        text, size = self.choose.choice((("({} * {})", x.size * abs(number)), ("({} + {})", x.size + abs(number)), ("({1} - {0})", x.size + abs(number))))
        return Known(text.format(x.name, number), size, x.reduced)

    def _reduce(self, depth: int) -> Known:
        x = self.expression(depth, full=True)
        dims = self.choose.choice(([0], [1], [0, 1]))
        if self.choose.random() < 0.5:
            return Known(f"ttl.math.reduce_max({x.name}, dims={dims})", x.size, tuple(dims))
        count = int(np.prod([self.tiles[dim] * TILE for dim in dims]))
        return Known(f"(ttl.math.reduce_sum({x.name}, dims={dims}) * {1 / count!r})", x.size, tuple(dims))

    def _product(self, depth: int) -> Known:
        if self.tiles[0] != self.tiles[1]:
            return self._binary(depth)
        left, right = self.expression(depth, full=True), self.expression(depth, full=True)
        return Known(f"(({left.name} @ {right.name}) * {1 / (self.tiles[0] * TILE)!r})", left.size * right.size)

    def _transpose(self, depth: int) -> Known:
        if self.tiles[0] != self.tiles[1]:
            return self._unary(depth)
        x = self.expression(depth, full=True)
        return Known(f"ttl.block.transpose({x.name})", x.size)

    # --- what the three threads do together

    def new_name(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def row(self, tensor: str) -> str:
        """The rows of the next block of a tensor; a core's blocks lie one behind the other."""
        place = self.taken.get(tensor, 0)
        self.taken[tensor] = place + 1
        return f"{tensor}_start + {place}" if self.loop is None else f"{tensor}_start + {place} + {self.loop[0]} * {{{tensor}_stride}}"

    def reads(self, number: int, course: Course | None = None) -> str:
        """The reader reads a block of an input; gives the buffer."""
        course = course or self.read
        buffer, tensor = f"x{number}_b", f"x{number}"
        row, (rows, columns) = self.row(tensor), self.tiles
        part = f"[({row}) * {rows} : ({row}) * {rows} + {rows}, 0:{columns}]"
        course.add(f"with {buffer}.reserve() as block:")
        if self.cores > 1 and self.choose.random() < 0.2:  # the same tensor both times, so that every core reads its own blocks
            course.add(f"    source = {tensor}_t if node == {self.choose.randrange(self.cores)} else {tensor}_twin")
            course.add(f"    ttl.copy(source{part}, block).wait()")
        else:
            course.add(f"    ttl.copy({tensor}_t{part}, block).wait()")
        return buffer

    def writes(self, number: int) -> str:
        buffer, tensor = f"y{number}_b", f"y{number}"
        row, (rows, columns) = self.row(tensor), self.tiles
        self.write.add(f"with {buffer}.wait() as block:")
        self.write.add(f"    ttl.copy(block, {tensor}_t[({row}) * {rows} : ({row}) * {rows} + {rows}, 0:{columns}]).wait()")
        return buffer

    @contextmanager
    def inside(self, line: str, *courses: Course) -> Iterator[None]:
        for course in courses:
            course.add(line)
            course.level += 1
        lengths = [len(course.lines) for course in courses]
        yield
        for course, length in zip(courses, lengths, strict=True):
            if len(course.lines) == length:
                course.add("pass")
            course.level -= 1

    # --- statements

    def statements(self, count: int, depth: int) -> None:
        own: list[tuple[str, str]] = []  # blocks that this suite waits for and has to pop: name, buffer
        for _ in range(count):
            kinds: list[Callable[[int], None]] = [self.assign, self.assign, self.block_with, self.block_with, self.store, self.scratch]
            kinds += [self.change, self.listed, self.helper]
            if depth and self.cores > 1:
                kinds += [self.branch, self.branch, self.conditional, self.conditional]
            if depth and self.loop is None:
                kinds += [self.loop_over]
            if self.choose.random() < 0.15:
                own += self.wait_plainly(own)
            elif own and self.choose.random() < 0.4:
                self.pop_plainly(own)
            else:
                self.choose.choice(kinds)(depth)
        while own:
            self.pop_plainly(own)

    def wait_plainly(self, own: list[tuple[str, str]]) -> list[tuple[str, str]]:
        number = self.choose.randrange(INPUTS)
        if self.held.get(f"x{number}_b", 0) > min(1, sum(buffer == f"x{number}_b" for _, buffer in own)):
            return []  # a queue: an older block of another suite would be popped first
        buffer, name = self.reads(number), self.new_name("b")
        self.held[buffer] = self.held.get(buffer, 0) + 1
        self.compute.add(f"{name} = {buffer}.wait()")
        self.known[name] = Known(name, 2.0, block=True)
        return [(name, buffer)]

    def pop_plainly(self, own: list[tuple[str, str]]) -> None:
        name, buffer = own.pop(0)
        self.held[buffer] -= 1
        del self.known[name]
        self.compute.add(self.choose.choice((f"{name}.pop()", f"{buffer}.pop()")))

    def block_with(self, depth: int) -> None:
        number = self.choose.randrange(INPUTS)
        if self.held.get(f"x{number}_b", 0):  # a queue: the inner block would be popped first
            self.assign(depth)
            return
        buffer, name = self.reads(number), self.new_name("b")
        self.held[buffer] = 2
        with self.inside(f"with {buffer}.wait() as {name}:", self.compute):
            self.known[name] = Known(name, 2.0, block=True)
            if not depth:
                self.compute.add(f"{name.replace('b', 'v')} = {name} * 1.0")
                self.known[name.replace("b", "v")] = Known(name.replace("b", "v"), 2.0)
            self.assign(depth)
            self.statements(self.choose.randint(0, 2), max(depth - 1, 0))
            del self.known[name]
        self.held[buffer] = 0

    def assign(self, depth: int) -> None:
        del depth
        value, name = self.expression(), self.new_name("v")
        self.compute.add(f"{name} = {value.name}")
        if value.name not in self.known or not self.known[value.name].block:  # another name of a block ends with the block
            self.known[name] = Known(name, value.size, value.reduced)

    def change(self, depth: int) -> None:
        """A name gets another value; those computed from it keep theirs."""
        del depth
        old = self.pick(lambda known: known.name[0] == "v" and not known.reduced)
        other = self.expression(1)
        size = old.size + other.size
        if size > 2 * LARGEST:
            return
        self.compute.add(self.choose.choice((f"{old.name} += {other.name}", f"{old.name} = {old.name} - {other.name}")))
        self.known[old.name] = Known(old.name, size)

    def store(self, depth: int) -> None:
        del depth
        buffer, name = self.writes(self.choose.randrange(OUTPUTS)), self.new_name("o")
        value = self.expression(full=True)
        with self.inside(f"with {buffer}.reserve() as {name}:", self.compute):
            self.compute.add(f"{name}.store({value.name})")
            if self.choose.random() < 0.3:
                seen = self.new_name("v")
                self.compute.add(f"{seen} = {name} * 0.5")
                self.known[seen] = Known(seen, value.size)
                self.compute.add(f"{name}.store({self.expression(1, full=True).name})")

    def last_stores(self) -> None:
        """Most values should be seen by somebody."""
        live = [known for known in self.known.values() if not known.reduced]
        for known in self.choose.sample(live, min(len(live), self.choose.randint(1, 3))):
            buffer, name = self.writes(self.choose.randrange(OUTPUTS)), self.new_name("o")
            self.compute.add(f"with {buffer}.reserve() as {name}:")
            self.compute.add(f"    {name}.store({known.name})")

    def scratch(self, depth: int) -> None:
        """Through a buffer of compute's own, which others have used before."""
        buffer = f"s{self.choose.randrange(SCRATCH)}_b"
        if self.held.get(buffer):
            self.assign(depth)
            return
        value, name = self.expression(full=True), self.new_name("t")
        self.held[buffer] = 1
        with self.inside(f"with {buffer}.reserve() as {name}:", self.compute):
            self.compute.add(f"{name}.store({value.name})")
        with self.inside(f"with {buffer}.wait() as {name}:", self.compute):
            self.known[name] = Known(name, value.size, block=True)
            self.assign(0)
            self.statements(self.choose.randint(0, 1), 0)
            del self.known[name]
        self.held[buffer] = 0

    def listed(self, depth: int) -> None:
        del depth
        items, name = [self.expression(1, full=True) for _ in range(2)], self.new_name("w")
        self.compute.add(f"{name} = [{items[0].name}]")
        self.compute.add(f"{name}.append({items[1].name})")
        result = self.new_name("v")
        self.compute.add(f"{result} = {name}[1] - {name}[0]")
        self.known[result] = Known(result, items[0].size + items[1].size)

    def helper(self, depth: int) -> None:
        del depth
        function, result = self.new_name("f"), self.new_name("v")
        value, other = self.pick(lambda known: not known.reduced), self.expression(1, full=True)
        with self.inside(f"def {function}(x):", self.compute):
            if self.cores > 1 and self.choose.random() < 0.5:
                self.compute.add(f"if node == {self.choose.randrange(self.cores)}:")
                self.compute.add(f"    return x + {other.name}")
            self.compute.add(f"return x - {other.name}")
        self.compute.add(f"{result} = {function}({value.name})")
        self.known[result] = Known(result, value.size + other.size)

    def conditional(self, depth: int) -> None:
        del depth
        sides = [self.value() for _ in range(2)]
        name = self.new_name("v")
        self.compute.add(f"{name} = {sides[0].name} if {self.condition()} else {sides[1].name}")
        self.known[name] = Known(name, max(side.size for side in sides))

    def condition(self) -> str:
        core = self.choose.randrange(self.cores)
        return self.choose.choice((f"node == {core}", f"node < {core}", f"node != {core}"))

    def branch(self, depth: int) -> None:
        """Both branches read and write the same blocks, in the same order, and do something else with them."""
        condition, name = self.condition(), self.new_name("v")
        before, taken = dict(self.known), dict(self.taken)
        seed = self.choose.random() < 0.7
        number = self.choose.randrange(INPUTS)
        waits = seed and not self.held.get(f"x{number}_b", 0)
        sizes: list[float] = []
        changed: list[str] = []
        olds = [known.name for known in before.values() if known.name[0] == "v" and not known.reduced]
        for line in (f"if {condition}:", "else:"):
            self.known, self.taken = dict(before), dict(taken)
            with self.inside(line, self.compute, self.read, self.write):
                if waits:
                    buffer, block = self.reads(number), self.new_name("b")
                    self.held[buffer] = 2
                    with self.inside(f"with {buffer}.wait() as {block}:", self.compute):
                        self.known[block] = Known(block, 2.0, block=True)
                        self._local(1)
                        value = self.expression(full=True)
                        self.compute.add(f"{name} = {value.name}" if value.name not in self.known else f"{name} = {value.name} * 1.0")
                        del self.known[block]
                    self.held[buffer] = 0
                else:
                    value = self.expression(full=True)
                    self.compute.add(f"{name} = {value.name} * 1.0")
                self.known[name] = Known(name, value.size)
                sizes.append(value.size)
                if olds and self.choose.random() < 0.4:
                    changed.append(self.choose.choice(olds))
                    size = self.known[changed[-1]].size
                    self.compute.add(f"{changed[-1]} = {changed[-1]} * 0.5 + {self.expression(0, full=True).name} * 0.25")
                    self.known[changed[-1]] = Known(changed[-1], size + 4 * LARGEST)
        after = dict(self.taken)
        self.known, self.taken = before, after
        self.known[name] = Known(name, max(sizes))
        for old in changed:
            self.known[old] = Known(old, self.known[old].size + 4 * LARGEST)
        if depth > 1 and self.choose.random() < 0.3:
            self.branch(depth - 1)

    def _local(self, count: int) -> None:
        for _ in range(count):
            self.assign(0)

    def loop_over(self, depth: int) -> None:
        """A loop with its own blocks, and a value that it changes."""
        del depth
        rounds, counter = self.choose.choice((2, 3)), self.new_name("i")
        start, name = self.expression(1, full=self.choose.random() < 0.7), self.new_name("v")
        self.compute.add(f"{name} = {start.name} * 1.0")
        before, taken = dict(self.known), dict(self.taken)
        self.loop = (counter, rounds)
        with self.inside(f"for {counter} in range({rounds}):", self.compute, self.read, self.write):
            number = self.choose.randrange(INPUTS)
            if not self.held.get(f"x{number}_b", 0):
                buffer, block = self.reads(number), self.new_name("b")
                self.held[buffer] = 2
                with self.inside(f"with {buffer}.wait() as {block}:", self.compute):
                    self.known[block] = Known(block, 2.0, block=True)
                    self._local(1)
                    del self.known[block]
                self.held[buffer] = 0
            self.statements(self.choose.randint(0, 2), 1)
            self.known[name] = Known(name, start.size, start.reduced)
            step = self.expression(1, full=not start.reduced)
            if start.reduced and step.reduced != start.reduced:
                step = Known(name, start.size, start.reduced)
            text = self.choose.choice(("ttl.math.max({}, {})", "({} + {} * 0.25)", "({} * 0.5 - {})"))
            self.compute.add(f"{name} = {text.format(name, step.name)}")
        strides = {tensor: count - taken.get(tensor, 0) for tensor, count in self.taken.items()}
        for course in (self.read, self.write):
            course.lines = [line.format_map(Strides(strides)) if "_stride}" in line else line for line in course.lines]
        self.taken = {tensor: taken.get(tensor, 0) + rounds * stride for tensor, stride in strides.items()}
        self.loop = None
        self.known = before
        self.known[name] = Known(name, start.size + rounds * 2 * LARGEST, start.reduced)


class Strides(dict[str, int]):
    """Blocks of each tensor that one round of a loop takes, as the text names them."""

    def __missing__(self, key: str) -> int:
        return dict.__getitem__(self, key.removesuffix("_stride"))


def random_kernel(seed: int) -> EagerKernel:
    choose = random.Random(seed)
    dtype = choose.choice(("bf16", "bf16", "f32"))
    cores = choose.choice((1, 2, 2, 3))
    tiles = choose.choice(((1, 1), (1, 2), (2, 1), (2, 2), (1, 1)))
    writer = Writer(choose, cores, tiles)
    writer.block_with(0)  # from here on there is a value of full size
    writer.statements(choose.randint(3, 7), 2)
    writer.last_stores()
    tensors = [f"x{number}" for number in range(INPUTS)] + [f"y{number}" for number in range(OUTPUTS)]
    counts = {tensor: max(1, writer.taken.get(tensor, 0)) for tensor in tensors}
    data = np.random.default_rng(seed)
    arrays: list[Any] = []
    for tensor in tensors[:INPUTS]:
        high = cores * counts[tensor] * tiles[0] * TILE
        arrays.append(data.uniform(-2, 2, (high, tiles[1] * TILE)).astype(DTYPES[dtype]))
    arrays += arrays[:INPUTS]  # the twins
    outputs = [np.zeros((cores * counts[tensor] * tiles[0] * TILE, tiles[1] * TILE), DTYPES[dtype]) for tensor in tensors[INPUTS:]]
    count = choose.choice((2, 2, 3))
    text = _text(writer, counts, cores, tiles, count)
    options = {
        "allocator": choose.choice(("optimal", "optimal", "linear-scan")),
        "dst_capacity": choose.choice((None, None, None, 3, 4)),
        "full_sync": choose.choice((None, None, True)),
    }
    return EagerKernel(text, arrays, outputs, cores, dtype, options)


def _text(writer: Writer, counts: dict[str, int], cores: int, tiles: tuple[int, int], count: int) -> str:
    inputs = [f"x{number}" for number in range(INPUTS)]
    outputs = [f"y{number}" for number in range(OUTPUTS)]
    arguments = [f"{name}_t" for name in inputs] + [f"{name}_twin" for name in inputs] + [f"{name}_t" for name in outputs]
    lines = ["from tilewright import ttl", "", f"@ttl.operation(grid=({cores}, 1))", f"def kernel({', '.join(arguments)}):"]
    for name in (*inputs, *outputs, *(f"s{number}" for number in range(SCRATCH))):
        like = "x0_t" if name.startswith("s") else f"{name}_t"
        lines.append(f"    {name}_b = ttl.make_dataflow_buffer_like({like}, shape={tiles}, block_count={count})")
    used = {name for name in (*inputs, *outputs) if writer.taken.get(name)}
    for decorator, name, course in (("compute", "compute", writer.compute), ("datamovement", "read", writer.read), ("datamovement", "write", writer.write)):
        lines += ["", f"    @ttl.{decorator}()", f"    def {name}():", "        node, _ = ttl.node(dims=2)"]
        mine = {"read": inputs, "write": outputs}.get(name, [])
        lines += [f"        {tensor}_start = node * {counts[tensor]}" for tensor in mine if tensor in used]
        lines += course.lines
    return "\n".join(lines) + "\n"
