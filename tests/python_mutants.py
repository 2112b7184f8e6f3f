"""Python kernels with something changed at random: whatever is done to the text, the answer is a program or an error with a place.

A mutant is compiled through the whole pipeline and, if that succeeds, run on small tensors by the simulator; its two arithmetics
must agree. Anything but that, or an error with a code at a line, is a finding.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import io
import linecache
import random
import signal
import sys
import threading
import traceback
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from tilewright import execution, ttl
from tilewright.diagnostics import KernelError

EXACT_EACH = 4  # mutants of which one is simulated with the arithmetic of the chip too
SECONDS = 60  # for one mutant; what takes longer is a finding

GRID = """
from tilewright import ttl

def load(cb, tensor, row, column):
    with cb.reserve() as block:
        transfer = ttl.copy(tensor[row:row + 2, column:column + 2], block)
        transfer.wait()
    return row + 1

@ttl.operation(grid=(4, 2))
def kernel(lhs, rhs, out):
    rows = lhs.shape[0] // 64
    width, height = ttl.grid_size(dims=2)
    each = -(-rows // width)
    a_cb = ttl.make_dataflow_buffer_like(lhs, shape=(2, 2), block_count=2)
    b_cb = ttl.make_dataflow_buffer_like(rhs, shape=(2, 2), block_count=2)
    t_cb = ttl.make_dataflow_buffer_like(out, shape=(2, 2), block_count=2)
    o_cb = ttl.make_dataflow_buffer_like(out, shape=(2, 2), block_count=2)
    pairs = ((a_cb, lhs), (b_cb, rhs))

    @ttl.compute()
    def compute():
        x, y = ttl.node(dims=2)
        for i in range(each):
            row = x * each + i
            if row < rows:
                a = a_cb.wait()
                b = b_cb.wait()
                with t_cb.reserve() as t:
                    t.store(ttl.math.exp(a) * 2.0 - b)
                v = t_cb.wait()
                with o_cb.reserve() as o:
                    z = v + a if width > 1 else v
                    o.store(z ** 2)
                    o += a
                v.pop()
                a_cb.pop()
                b_cb.pop()

    @ttl.datamovement()
    def read():
        x, y = ttl.node(dims=2)
        count = 0
        for i in range(each):
            row = x * each + i
            if row < rows and y < 5:
                for cb, tensor in pairs:
                    count = load(cb, tensor, row * 2, y * 2)

    @ttl.datamovement()
    def write():
        x, y = ttl.node(dims=2)
        for i in range(each):
            row = x * each + i
            if row < rows:
                block = o_cb.wait()
                ttl.copy(block, out[row * 2:(row + 1) * 2, y * 2:y * 2 + 2]).wait()
                o_cb.pop()
"""
PYTHON = """
import functools, math, operator
from collections import namedtuple
from dataclasses import dataclass
from tilewright import ttl

Both = namedtuple("Both", "u v")
SCALES = [1.0, 2.0]

@dataclass
class Pair:
    first: object
    second: object = 3.0

class Total:
    def __init__(self, start):
        self.value = start
        self.parts = []
    def add(self, more):
        self.value = self.value + more
        self.parts.append(more)
        return self
    def __add__(self, other):
        return Total(self.value + other.value)

def power(v, n):
    if n == 1:
        return v
    return v * power(v, n - 1)

@ttl.operation(grid=(2, 1))
def kernel(lhs, rhs, out):
    a_cb = ttl.make_dataflow_buffer_like(lhs, shape=(1, 2), block_count=2)
    b_cb = ttl.make_dataflow_buffer_like(rhs, shape=(1, 2), block_count=2)
    o_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 2), block_count=2)
    mode = ("scale", 2.0)

    @ttl.compute()
    def compute():
        x, _ = ttl.node(dims=2)
        n = 1
        def more(k=1):
            nonlocal n
            n += k
            return n
        for step in range(2):
            with a_cb.wait() as a, b_cb.wait() as b, o_cb.reserve() as o:
                p = Pair(a)
                t = Total(b).add(a) + Total(p.first)
                both = Both(a, v=b)
                match mode:
                    case ("add", s):
                        y = a + s
                    case ("scale", s) if s > 1:
                        y = a * s
                    case _:
                        y = a
                total = functools.reduce(lambda u, w: u + w, [a, b, y])
                values = {k: w for k, w in enumerate(map(lambda w: w * 2.0, [a, b]))}
                del values[0]
                m = ttl.math.reduce_max(t.value, dims=[1])
                o.store(total + values[1] * power(a, 2) - m if step == 0 else both.u - both.v * SCALES[1])

    @ttl.datamovement()
    def read():
        x, _ = ttl.node(dims=2)
        for step in range(2):
            for cb, tensor in ((a_cb, lhs), (b_cb, rhs)):
                with cb.reserve() as block:
                    ttl.copy(tensor[x * 2 + step, 0:2], block).wait()

    @ttl.datamovement()
    def write():
        x, _ = ttl.node(dims=2)
        for step in range(2):
            with o_cb.wait() as block:
                print("core", x, step)
                ttl.copy(block, out[x * 2 + step, 0:2]).wait()
"""
PIPES = """
from tilewright import ttl

@ttl.operation(grid=(4, 1))
def kernel(lhs, rhs, out):
    columns, _ = ttl.grid_size(dims=2)
    net = ttl.PipeNet([ttl.Pipe(src=(0, 0), dst=(slice(1, columns), 0))])
    a_cb = ttl.make_dataflow_buffer_like(lhs, shape=(1, 1), block_count=2)
    b_cb = ttl.make_dataflow_buffer_like(rhs, shape=(1, 1), block_count=2)
    o_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)

    @ttl.compute()
    def compute():
        total = ttl.math.fill(0.0)
        with a_cb.wait() as a:
            for k in range(3):
                with b_cb.wait() as b:
                    total += a @ b
        with o_cb.reserve() as o:
            o.store(ttl.math.relu(total))

    @ttl.datamovement()
    def read():
        x, _ = ttl.core(dims=2)

        def send(pipe):
            with a_cb.reserve() as block:
                ttl.copy(lhs[0, 0], block).wait()
                ttl.copy(block, pipe).wait()

        def receive(pipe):
            with a_cb.reserve() as block:
                ttl.copy(pipe, block).wait()

        net.if_src(send)
        net.if_dst(receive)
        for k in range(3):
            with b_cb.reserve() as block:
                ttl.copy(rhs[k, x], block).wait()

    @ttl.datamovement()
    def write():
        x, _ = ttl.core(dims=2)
        with o_cb.wait() as block:
            ttl.copy(block, out[0, x]).wait()
"""
BODY = """
from tilewright import ttl

@ttl.operation(grid=(1, 1))
def kernel(lhs, rhs, out):
    a_cb = ttl.make_dataflow_buffer_like(lhs, shape=(1, 1), block_count=2)
    b_cb = ttl.make_dataflow_buffer_like(rhs, shape=(1, 1), block_count=2)
    o_cb = ttl.make_dataflow_buffer_like(out, shape=(1, 1), block_count=2)
    for row in range(4):
        for column in range(2):
            with a_cb.reserve() as block, b_cb.reserve() as other:
                ttl.copy(lhs[row, column], block).wait()
                ttl.copy(rhs[row, column], other).wait()
            with a_cb.wait() as a, b_cb.wait() as b, o_cb.reserve() as o:
                s = a + b
                o.store(ttl.math.where(s > 0.5, s, a * 2.0))
            with o_cb.wait() as done:
                ttl.copy(done, out[row, column]).wait()
"""
TILELANG = """
from tilewright import tilelang
from tilewright.tilelang import language as T

@T.macro
def scaled(C, s):
    for i, j in T.Parallel(32, 32):
        C[i, j] = C[i, j] * s

@T.prim_func
def kernel(lhs: T.Tensor((128, 128), "float32"), rhs: T.Tensor((128, 128), "float32"), out: T.Tensor((128, 128), "float32")):
    with T.Kernel(T.ceildiv(128, 32), 4, threads=128) as (bx, by):
        A = T.alloc_shared((32, 32), "float32")
        B = T.alloc_shared((32, 32), "float32")
        C = T.alloc_fragment((32, 32), "float32")
        m = T.alloc_fragment((32,), "float32")
        T.clear(C)
        for k in T.Pipelined(4, num_stages=2):
            T.copy(lhs[by * 32, k * 32], A)
            T.copy(rhs[k * 32, bx * 32], B)
            T.gemm(A, B, C)
        scaled(C, 0.5)
        T.reduce_max(C, m, dim=1)
        for i, j in T.Parallel(32, 32):
            C[i, j] = T.exp(C[i, j] - m[i]) if bx == 0 else T.max(C[i, j], 0.0)
        T.copy(C, out[by * 32, bx * 32])
"""
SEEDS: dict[str, str] = {"grid": GRID, "python": PYTHON, "pipes": PIPES, "body": BODY, "tilelang": TILELANG}
SHAPES = {"grid": (512, 128), "python": (128, 64), "pipes": (128, 128), "body": (128, 64), "tilelang": (128, 128)}
EXPRESSIONS = (
    "0", "-1", "1", "7", "2.5", "-0.0", "1e40", "float('nan')", "10 ** 30", "'s'", "b's'", "None", "True", "...", "()", "[]", "{}", "a_cb", "lhs",
    "out", "x", "a", "b", "o", "nope", "a_cb.wait()", "o_cb.reserve()", "[1, 2]", "[a, b]", "(a, x)", "{'k': a}", "{1, 2}", "ttl", "ttl.math",
    "ttl.math.exp", "ttl.copy", "{1: 2}", "lhs[0, 0]", "lhs[0:1]", "lhs.shape", "a.shape", "a.dtype", "o_cb.shape", "lambda v: v * 2.0", "lambda: a",
    "[v for v in (a, b)]", "sum([a, b])", "max(a, b)", "len", "range", "range(3)", "range(x)", "slice(0, 2)", "int", "float(2)", "str(x)", "f'{x} {a}'",
    "x if x else 1", "a if x else b", "not a", "a and b", "a < b < a", "a is b", "a in (b,)", "ttl.node(dims=2)", "ttl.node", "ttl.grid_size(dims=2)",
    "(yield)", "(z := a)", "(*a,)", "a[0]", "a[0:1, 0:1]", "x[0]", "print", "open", "getattr(a, 'ssa')", "type(a)", "repr(a)", "sorted([a, b])",
    "functools.reduce(max, [a, b])", "ttl.math.fill(0.0)", "ttl.math.broadcast(a, dims=[1])", "ttl.math.reduce_sum(a, dims=[0])", "a @ b", "a ** x", "a // 2",
    "a % b", "~a", "a << 1", "T", "T.exp(lhs[0, 0])", "C[0, 0]", "T.float32", "bx", "A",
)  # fmt: skip
STATEMENTS = (
    "while True: pass", "while x: x = x - 1", "break", "continue", "return", "return 1", "return a", "import os", "from math import *", "x = 1", "x = a",
    "a = a_cb.wait()", "a_cb.pop()", "o_cb.push()", "o.store(a)", "o.store(1)", "o += a", "o -= a", "a += b", "del x", "del a", "def f(): return f()",
    "def f(v): return v + a", "class K: pass", "raise ValueError", "assert x", "assert False, a", "i += 1", "ttl.copy(lhs[0, 0], o_cb)", "a, b = 1",
    "a, b = b, a", "with a: pass", "with a_cb.wait() as a: pass", "yield 1", "lhs[0] = 1", "x.y = 2", "a.shape = 3", "print(x)", "print(a)", "print(a, b)",
    "print([a], x)", "block = block + 1", "count += x", "global x", "nonlocal x", "try:\n    pass\nexcept Exception:\n    pass",
    "match x:\n    case 0:\n        pass\n    case [a, *b]:\n        pass", "match a:\n    case None:\n        pass", "match [a, x]:\n    case [b, 1]:\n        o.store(b)",
    "if x: a = b", "if a: pass", "for v in a: pass", "for v in (a, b): o += v", "for v in range(2): a = a + b", "for v in range(x): pass",
    "for v in range(3):\n    if v == 1: break", "async def g(): pass", "await x", "pass", "...", "lambda: 0", "ttl.signpost('here')", "x: int = 2", "x: int",
    "items = []\nitems.append(a)", "items = [a]\nfor v in range(2): items.append(v)", "it = iter([1, 2])\nnext(it)", "T.copy(A, B)", "T.clear(C)",
    "C[0, 0] = 1", "C = A", "T.gemm(A, B, C)",
)  # fmt: skip


@dataclass
class Mutant:
    seed: int
    name: str  # of the kernel it was
    text: str


@dataclass
class Outcome:
    kind: str  # program, an error code, nothing (no kernel came out of the text), or finding
    detail: str = ""


def places(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.expr]]:
    """Every expression, with the way to replace it."""
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            for index, item in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(item, ast.expr):
                    yield node, name, index, item


def mutant(seed: int) -> Mutant | None:
    """None where the text is no Python any more."""
    choose = random.Random(seed)
    name = choose.choice(list(SEEDS))
    tree = ast.parse(SEEDS[name])
    for _ in range(choose.choice([1, 1, 1, 2, 3])):
        _mutate(tree, choose)
    try:
        text = ast.unparse(ast.fix_missing_locations(tree))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<mutant>", "exec")
    except (SyntaxError, ValueError, TypeError, AttributeError):
        return None
    return Mutant(seed, name, text)


def _mutate(tree: ast.Module, choose: random.Random) -> None:
    expressions = list(places(tree))
    bodies = [n.body for n in ast.walk(tree) if isinstance(getattr(n, "body", None), list) and not isinstance(n, ast.Module)]
    body, kind = choose.choice(bodies), choose.randrange(10)
    position = choose.randrange(len(body))
    if kind <= 3:
        node, name, index, _ = choose.choice(expressions)
        other = choose.choice(expressions)[3] if kind < 2 else ast.parse(choose.choice(EXPRESSIONS), mode="eval").body
        new = copy.deepcopy(other)
        if index is None:
            setattr(node, name, new)
        else:
            getattr(node, name)[index] = new
    elif kind == 4 and len(body) > 1:
        body.pop(position)
    elif kind == 5:
        choose.shuffle(body)
    elif kind == 6:  # a statement under another
        around: Any = ast.parse(choose.choice(("if x: pass", "if 1: pass", "for v in range(2): pass", "for v in (1, 2): pass", "if x == 0: pass"))).body[0]
        around.body = [body[position]]
        body[position] = around
    elif kind == 7:
        body.insert(position, copy.deepcopy(choose.choice(body)))
    elif kind == 8:  # a name or attribute for another
        words = [node for node in ast.walk(tree) if isinstance(node, (ast.Name, ast.Attribute))]
        one, other = choose.choice(words), choose.choice(words)
        word = other.id if isinstance(other, ast.Name) else other.attr
        if isinstance(one, ast.Name):
            one.id = word
        else:
            one.attr = word
    else:
        body[position:position] = ast.parse(choose.choice(STATEMENTS)).body


class TookTooLong(BaseException):
    """Not an Exception: nothing on the way may catch it."""


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """`TookTooLong` after `SECONDS`; only the main thread can have that."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: Any) -> None:
        raise TookTooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def run(one: Mutant) -> Outcome:
    file = f"<mutant {one.seed}>"
    linecache.cache[file] = (len(one.text), None, one.text.splitlines(keepends=True), file)
    before = dict(vars(ttl))
    module = sys.modules["mutant"] = types.ModuleType("mutant")  # dataclasses look for it
    scope = vars(module)
    try:
        with limited(), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            try:
                exec(compile(one.text, file, "exec"), scope)
            except Exception:  # the module itself is broken; no kernel came out of it
                return Outcome("nothing")
            kernel = scope.get("kernel")
            return _tried(kernel, one) if hasattr(kernel, "build") else Outcome("nothing")
    except TookTooLong as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.name != "stop"]
        return Outcome("nothing") if frames[-1].filename == file else Outcome("finding", "took too long:\n" + _end(error))
    finally:
        linecache.cache.pop(file, None)
        vars(ttl).clear()  # a mutant may have assigned to it
        vars(ttl).update(before)


def _tried(kernel: Any, one: Mutant) -> Outcome:
    results: list[Any] = []
    try:
        for mode in (execution.FAST, execution.SIM) if one.seed % EXACT_EACH == 0 else (execution.FAST,):
            values = arrays(one)
            with execution.session(mode=mode):
                kernel(*values)
            results.append(values)
    except KernelError as error:
        missing = [found for found in error.diagnostics if found.span is None or not found.code]
        return Outcome("finding", f"an error without a place: {error}") if missing else Outcome(error.diagnostics[0].code)
    except Exception as error:
        return Outcome("finding", _end(error))
    for fast, exact in zip(results[0], results[-1], strict=True):
        if not np.allclose(fast.astype(np.float32), exact.astype(np.float32), rtol=0.1, atol=0.1, equal_nan=True):
            return Outcome("finding", "the two arithmetics of the simulator disagree")
    return Outcome("program")


def arrays(one: Mutant) -> list[Any]:
    values = random.Random(one.seed)
    dtype: Any = np.float32 if one.name in ("tilelang", "body") else ml_dtypes.bfloat16
    shape = SHAPES[one.name]
    base = (np.arange(shape[0] * shape[1]).reshape(shape) * 7 % 64 / 64 + values.random()).astype(dtype)
    return [base, (1 - base).astype(dtype), np.zeros(shape, dtype)]


def _end(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)[-8:])
