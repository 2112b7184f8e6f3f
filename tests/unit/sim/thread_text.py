"""Final IR from Python text, one function per thread, so that simulator tests read like kernels and errors have lines.

``for … in range``, ``if``, integer arithmetic and calls. A name of a buffer or tensor is its handle; keyword arguments of a
call are its attributes.
"""

from __future__ import annotations

import ast
import textwrap

from xdsl.builder import Builder
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import ArrayAttr, FloatAttr, FunctionType, IndexType, IntegerAttr, ModuleOp, StringAttr, f32, i1, i32
from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import InsertPoint

from tilewright.dialects import ttkernel
from tilewright.dialects.attributes import COMPUTE_THREAD, NOC_THREAD, KernelCBType, int_array, tile_type
from tilewright.dialects.walking import location
from tilewright.options import Options
from tilewright.program import BufferSpec, ComputeConfig, Program, TensorSpec, ThreadSpec
from tilewright.trace import Trace

INDEX = IndexType()
FILE = "kernel.py"
COMPARES = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "slt", ast.LtE: "sle", ast.Gt: "sgt", ast.GtE: "sge"}
OPERATORS = {
    ast.Add: arith.AddiOp,
    ast.Sub: arith.SubiOp,
    ast.Mult: arith.MuliOp,
    ast.FloorDiv: arith.FloorDivSIOp,
    ast.Mod: arith.RemSIOp,
}
CALL_OPERATORS = {"min": arith.MinSIOp, "max": arith.MaxSIOp, "divsi": arith.DivSIOp}


def call_class(name, operands, results):
    """The dialect's op, or one made here for a call that the dialect does not have yet."""
    if name in ttkernel.CALLS:
        return ttkernel.CALLS[name]
    runs_on = EXTRA_CALLS[name]
    return ttkernel._call_class(ttkernel.Call(name, runs_on, " ".join(f"x{place}" for place in range(operands)), results))


EXTRA_CALLS = {}


def attribute(value):
    if isinstance(value, bool):
        return IntegerAttr(int(value), i1)
    if isinstance(value, int):
        return IntegerAttr(value, i32)
    if isinstance(value, float):
        return FloatAttr(value, f32)
    if isinstance(value, str):
        return StringAttr(value)
    return ArrayAttr([attribute(item) for item in value])


class ThreadWriter:
    def __init__(self, buffers, tensors):
        self.buffers = {spec.name: spec for spec in buffers}
        self.tensors = {spec.name: number for number, spec in enumerate(tensors)}
        self.values: dict[str, SSAValue] = {}

    def function(self, node):
        block = Block()
        self.builder = Builder(InsertPoint.at_end(block))
        for statement in node.body:
            self.statement(statement)
        self.builder.insert(func.ReturnOp())
        op = func.FuncOp(node.name, FunctionType.from_lists([], []), Region(block))
        op.attributes["ttl.kernel_thread"] = COMPUTE_THREAD if node.name == "compute" else NOC_THREAD
        return op

    def put(self, op, node):
        op.location = location(FILE, node.lineno, node.col_offset + 1)
        self.builder.insert(op)
        return op

    def body(self, block, statements, carried=()):
        outer, self.builder = self.builder, Builder(InsertPoint.at_end(block))
        known = dict(self.values)
        for statement in statements:
            self.statement(statement)
        self.builder.insert(scf.YieldOp(*[self.values[name] for name in carried]))
        self.builder, self.values = outer, known

    def statement(self, node):
        if isinstance(node, ast.Expr):
            self.expression(node.value, wanted=False)
        elif isinstance(node, ast.Assign):
            self.values[node.targets[0].id] = self.expression(node.value)
        elif isinstance(node, ast.For):
            self.loop(node)
        elif isinstance(node, ast.If):
            self.branch(node)
        else:
            assert isinstance(node, ast.Pass), ast.dump(node)

    def loop(self, node):
        bounds = [self.expression(argument) for argument in node.iter.args]
        if len(bounds) == 1:
            bounds.insert(0, self.constant(0))
        if len(bounds) == 2:
            bounds.append(self.constant(1))
        names = [word.id for word in ast.walk(ast.Module(node.body, [])) if isinstance(word, ast.Name)]
        stored = [w.targets[0].id for w in ast.walk(ast.Module(node.body, [])) if isinstance(w, ast.Assign)]
        carried = [name for name in dict.fromkeys(stored) if name in self.values and name in names]
        block = Block(arg_types=[INDEX] * (1 + len(carried)))
        inits = [self.values[name] for name in carried]
        before = dict(self.values)
        self.values[node.target.id] = block.args[0]
        for name, argument in zip(carried, block.args[1:], strict=True):
            self.values[name] = argument
        self.body(block, node.body, carried)
        self.values = before
        op = scf.ForOp(*bounds, inits, block)
        self.put(op, node)
        for name, result in zip(carried, op.results, strict=True):
            self.values[name] = result

    def branch(self, node):
        condition = self.expression(node.test)
        blocks = [Block(), Block()]
        self.body(blocks[0], node.body)
        self.body(blocks[1], node.orelse)
        self.put(scf.IfOp(condition, [], [blocks[0]], [blocks[1]]), node)

    def constant(self, value):
        op = arith.ConstantOp(IntegerAttr(value, INDEX))
        self.builder.insert(op)
        return op.result

    def expression(self, node, wanted=True):
        if isinstance(node, ast.Constant):
            return self.constant(node.value)
        if isinstance(node, ast.Name):
            return self.values[node.id] if node.id in self.values else self.handle(node)
        if isinstance(node, ast.BinOp):
            operator = OPERATORS[type(node.op)]
            return self.put(operator(self.expression(node.left), self.expression(node.right)), node).results[0]
        if isinstance(node, ast.Compare):
            left, right = self.expression(node.left), self.expression(node.comparators[0])
            return self.put(arith.CmpiOp(left, right, COMPARES[type(node.ops[0])]), node).results[0]
        if isinstance(node, ast.BoolOp):
            kind = arith.AndIOp if isinstance(node.op, ast.And) else arith.OrIOp
            return self.put(kind(*map(self.expression, node.values)), node).results[0]
        if isinstance(node, ast.IfExp):
            parts = map(self.expression, (node.test, node.body, node.orelse))
            return self.put(arith.SelectOp(*parts), node).results[0]
        assert isinstance(node, ast.Call), ast.dump(node)
        return self.call(node, wanted)

    def call(self, node, wanted):
        name = node.func.id
        attributes = {word.arg: attribute(ast.literal_eval(word.value)) for word in node.keywords}
        if name in CALL_OPERATORS:
            return self.put(CALL_OPERATORS[name](*map(self.expression, node.args)), node).results[0]
        if name in ("my_core", "get_arg_val"):
            key = "dim" if name == "my_core" else "name"
            attributes[key] = attribute(ast.literal_eval(node.args[0]))
            operands = []
        else:
            operands = [self.expression(argument) for argument in node.args]
        kind = call_class(name, len(operands), int(wanted))
        op = kind.create(operands=operands, result_types=[INDEX] if wanted else [], attributes=attributes)
        self.put(op, node)
        return op.results[0] if wanted else None

    def handle(self, node):
        if node.id in self.tensors:
            attributes = {"tensor_index": attribute(self.tensors[node.id]), "name": StringAttr(node.id)}
            kind = ttkernel.CALLS["tensor_accessor"]
            result = ttkernel.KernelAccessorType()
        else:
            spec = self.buffers[node.id]
            attributes = {"index": attribute(spec.index), "name": StringAttr(spec.name), "cb_index": attribute(spec.index)}
            kind = ttkernel.CALLS["get_compile_time_arg_val"]
            result = KernelCBType(int_array(spec.shape), tile_type(spec.dtype), int_array([spec.block_count]).data[0])
        return self.put(kind.create(result_types=[result], attributes=attributes), node).results[0]


def make_program(text, *, buffers, tensors, grid=(1, 1), **config):
    """``buffers``: name, dtype, tiles; ``tensors``: name, dtype, shape."""
    specs = tuple(
        BufferSpec(index=number, name=name, shape=(1, tiles), dtype=dtype, block_count=1)
        for number, (name, dtype, tiles) in enumerate(buffers)
    )
    arguments = tuple(TensorSpec(name=name, dtype=dtype, shape=shape) for name, dtype, shape in tensors)
    functions = [node for node in ast.parse(textwrap.dedent(text)).body if isinstance(node, ast.FunctionDef)]
    module = ModuleOp([ThreadWriter(specs, arguments).function(node) for node in functions])
    module.verify()
    return Program(
        name="kernel", options=Options(), module=module, grid=grid, tensors=arguments, buffers=specs,
        threads=tuple(ThreadSpec(name=node.name, role=node.name, function=node.name) for node in functions),
        config=ComputeConfig(**config), cpp={}, trace=Trace(),
    )  # fmt: skip
