"""Kernels written as text, and a small interpreter of the integers in their IR to hold against Python."""

from __future__ import annotations

import itertools
import textwrap

import pytest
from xdsl.dialects import arith, scf
from xdsl.ir import Operation

from tilewright.dialects.ttl import CoreOp
from tilewright.dialects.ttl_buffers import TensorSliceOp
from tilewright.program import TensorSpec

READER = """
from tilewright import ttl

{before}

@ttl.operation(grid={grid})
def kernel(lhs):
    cb = ttl.make_dataflow_buffer_like(lhs, shape=(1, 1), block_count=2)
    {body}

    @ttl.datamovement()
    def read():
{thread}
"""


@pytest.fixture
def load(tmp_path):
    """Runs text as a file and returns its names."""
    numbers = itertools.count()

    def run(text: str) -> dict:
        path = tmp_path / f"kernel_{next(numbers)}.py"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        scope = {"__name__": path.stem, "__file__": str(path)}
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), scope)
        return scope

    return run


@pytest.fixture
def tensor():
    def make(name: str = "lhs", shape: tuple[int, ...] = (64, 64), dtype: str = "bf16") -> TensorSpec:
        return TensorSpec(name=name, shape=shape, dtype=dtype)

    return make


@pytest.fixture
def tiles_read(load, tensor):
    """Builds a reader from the text of its thread; gives the slice starts it touches, core by core, in order."""

    def run(thread: str, *, grid=(1, 1), before: str = "", body: str = "", shape=(3200, 3200)):
        source = textwrap.indent(textwrap.dedent(thread).strip("\n"), " " * 8)
        text = READER.format(grid=grid, before=textwrap.dedent(before), body=body, thread=source)
        built = load(text)["kernel"].build(tensor(shape=shape))
        built.module.verify()
        (function,) = built.module.ops
        return {core: IntegerRun(core).run(function) for core in itertools.product(*(range(size) for size in grid))}

    return run


class IntegerRun:
    """Executes loops, branches and integers of one function."""

    def __init__(self, core):
        self.core = core
        self.values = {}
        self.starts = []

    def run(self, function):
        self.block(function.body.block)
        return self.starts

    def block(self, block):
        for op in block.ops:
            if isinstance(op, scf.ForOp):
                carried = [self.values[v] for v in op.iter_args]
                for counter in range(*(self.values[v] for v in (op.lb, op.ub, op.step))):
                    self.values.update(zip(op.body.block.args, [counter, *carried], strict=True))
                    carried = self.block(op.body.block)
                self.values.update(zip(op.results, carried, strict=True))
            elif isinstance(op, scf.IfOp):
                region = op.true_region if self.values[op.cond] else op.false_region
                if region.blocks:
                    self.block(region.block)
            elif isinstance(op, scf.YieldOp):
                return [self.values[v] for v in op.operands]
            elif isinstance(op, CoreOp):
                self.values.update(zip(op.results, self.core, strict=True))
            elif isinstance(op, TensorSliceOp):
                self.starts.append(tuple(self.values[v] for v in op.operands[1:]))
            elif op.name.startswith("arith."):
                self.values[op.results[0]] = self.arithmetic(op)
        return []

    def arithmetic(self, op: Operation):
        if isinstance(op, arith.ConstantOp):
            return op.value.value.data
        args = [self.values[v] for v in op.operands]
        if isinstance(op, arith.CmpiOp):
            symbol = ["==", "!=", "<", "<=", ">", ">="][op.predicate.value.data]
            return eval(f"a {symbol} b", {"a": args[0], "b": args[1]})
        if isinstance(op, (arith.DivUIOp, arith.RemUIOp)):
            assert args[0] >= 0 and args[1] > 0, "unsigned division"
        return {
            arith.AddiOp: lambda a, b: a + b,
            arith.SubiOp: lambda a, b: a - b,
            arith.MuliOp: lambda a, b: a * b,
            arith.DivUIOp: lambda a, b: a // b,
            arith.RemUIOp: lambda a, b: a % b,
            arith.MinSIOp: min,
            arith.MaxSIOp: max,
            arith.AndIOp: lambda a, b: a and b,
            arith.OrIOp: lambda a, b: a or b,
            arith.XOrIOp: lambda a, b: bool(a) != bool(b),
            arith.SelectOp: lambda c, a, b: a if c else b,
        }[type(op)](*args)
