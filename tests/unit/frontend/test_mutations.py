"""Whatever is done to a kernel's text, the answer is a program or an error with a place: never an exception of ours."""

from __future__ import annotations

import ast
import copy
import linecache
import random
import warnings

import pytest

from tilewright.diagnostics import KernelError
from tilewright.hardware import CHIPS
from tilewright.options import Options
from tilewright.passes import ttl_validate
from tilewright.passes.context import PassContext
from tilewright.program import TensorSpec

KERNEL = """
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
EXPRESSIONS = [
    "0",
    "-1",
    "2.5",
    "'s'",
    "None",
    "a_cb",
    "lhs",
    "x",
    "nope",
    "a_cb.wait()",
    "[1, 2]",
    "ttl.math",
    "{1: 2}",
    "lhs[0, 0]",
]
STATEMENTS = [
    "while True: pass",
    "break",
    "return",
    "return 1",
    "import os",
    "x = 1",
    "a = a_cb.wait()",
    "o_cb.push()",
    "o.store(a)",
    "del x",
    "def f(): return f()",
    "raise ValueError",
    "assert x",
    "i += 1",
    "ttl.copy(lhs[0, 0], o_cb)",
    "a, b = 1",
    "with a: pass",
    "yield 1",
    "lhs[0] = 1",
    "x.y = 2",
    "print(x)",
    "block = block + 1",
    "count += x",
]


def places(tree):
    """Every expression, with the way to replace it."""
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            for index, item in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(item, ast.expr):
                    yield node, name, index, item


def mutated(seed: int) -> str | None:
    choose = random.Random(seed)
    tree = ast.parse(KERNEL)
    for _ in range(choose.choice([1, 1, 2, 3])):
        expressions = list(places(tree))
        bodies = [n.body for n in ast.walk(tree) if isinstance(getattr(n, "body", None), list) and not isinstance(n, ast.Module)]
        body, kind = choose.choice(bodies), choose.randrange(5)
        if kind <= 1:
            node, name, index, _ = choose.choice(expressions)
            other = choose.choice(expressions)[3] if kind else ast.parse(choose.choice(EXPRESSIONS), mode="eval").body
            new = copy.deepcopy(other)
            if index is None:
                setattr(node, name, new)
            else:
                getattr(node, name)[index] = new
        elif kind == 2 and len(body) > 1:
            body.pop(choose.randrange(len(body)))
        elif kind == 3:
            choose.shuffle(body)
        else:
            body.insert(choose.randrange(len(body) + 1), ast.parse(choose.choice(STATEMENTS)).body[0])
    try:
        text = ast.unparse(ast.fix_missing_locations(tree))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<mutant>", "exec")
    except (SyntaxError, ValueError, TypeError, AttributeError):
        return None
    return text


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_mutants(first):
    tensors = [TensorSpec(name=name, shape=(512, 128), dtype="bf16") for name in ("lhs", "rhs", "out")]
    for seed in range(first, first + 20):
        text = mutated(seed)
        if text is None:
            continue
        file = f"<mutant {seed}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        scope = {"__name__": "mutant"}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(compile(text, file, "exec"), scope)
        except Exception:  # the module itself is broken; no kernel came out of it
            continue
        if not hasattr(scope.get("kernel"), "build"):
            continue
        try:
            built = scope["kernel"].build(*tensors)
            context = PassContext(options=Options(), chip=CHIPS["wormhole_b0"], grid=built.grid, tensors=built.tensors)
            ttl_validate.run(built.module, context)
            built.module.verify()
        except KernelError as error:
            assert all(found.span is not None for found in error.diagnostics), str(error)
