"""What the specification's listings may write and the front end does not: regions, ``block_`` names, ``linalg.generic``.

Runs at the head of ``convert-ttl-to-compute``: afterwards there are only tensor-level ops, stores and ``ttl.compute``.
"""

from __future__ import annotations

from xdsl.dialects.builtin import MemRefType, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.dialects.linalg.ops import GenericOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilewright.dialects.attributes import i64_list, int_value, text_attr
from tilewright.dialects.ir_types import TileType
from tilewright.dialects.ttl import TENSOR_OPS, StoreOp, YieldOp
from tilewright.dialects.ttl_blocks import BcastOp, MatmulOp, ReduceOp
from tilewright.dialects.ttl_buffers import CBPopOp, CBPushOp
from tilewright.dialects.ttl_compute import ComputeOp
from tilewright.dialects.ttl_regions import (
    MARKERS,
    BlockAliasOp,
    BlockBcastOp,
    BlockMatmulOp,
    BlockReduceMaxOp,
    BlockReduceSumOp,
    BlockStoreOp,
    ComputeRegionOp,
)
from tilewright.dialects.walking import erase, of_kind, operations
from tilewright.passes import compiler_buffers


def expand(function: FuncOp) -> None:
    for region in of_kind(function, ComputeRegionOp):
        _inline(region)
    for op in operations(function):
        if isinstance(op, MARKERS):
            _remove(op)
        else:
            _rename(op)
    generics = of_kind(function, GenericOp)
    if generics:
        _Linalg(function).convert(generics)


def _remove(op: Operation) -> None:
    for result in op.results:
        for use in list(result.uses):
            _remove(use.operation)
    if op.parent is not None:
        op.detach()
        op.erase(safe_erase=False)


def _inline(region: ComputeRegionOp) -> None:
    """The body in place of the region; what it yields is stored into its outputs."""
    block = region.parent
    body = region.body.block
    assert block is not None
    for argument, value in zip(body.args, region.inputs, strict=True):
        argument.replace_all_uses_with(value)
    last = body.last_op
    assert last is not None
    for op in [op for op in body.ops if op is not last]:
        op.detach()
        block.insert_op_before(op, region)
    for value, target in zip(last.operands, region.outputs, strict=True):
        block.insert_op_before(StoreOp.create(operands=[value, target], location=region.location), region)
    for result, target in zip(region.results, region.outputs, strict=True):
        result.replace_all_uses_with(target)
    region.detach()
    region.erase(safe_erase=False)


def _rename(op: Operation) -> None:
    kind: type[Operation] | None = None
    operands = list(op.operands)
    attributes: dict[str, Attribute] = dict(op.attributes)
    if isinstance(op, BlockAliasOp):
        kind = TENSOR_OPS[op.ROW]
    elif isinstance(op, BlockMatmulOp):
        kind = MatmulOp
    elif isinstance(op, (BlockReduceSumOp, BlockReduceMaxOp)):
        kind, attributes = ReduceOp, {"kind": text_attr(op.KIND), "dims": _dims(op)}
    elif isinstance(op, BlockBcastOp):
        kind, attributes = BcastOp, {"dims": _dims(op)}
    elif isinstance(op, BlockStoreOp):
        kind, operands = StoreOp, operands[::-1]
    if kind is None:
        return
    block = op.parent
    assert block is not None
    results = [result.type for result in op.results]
    new = kind.create(operands=operands, result_types=results, attributes=attributes, location=op.location)
    block.insert_op_before(new, op)
    for old, result in zip(op.results, new.results, strict=True):
        old.replace_all_uses_with(result)
    erase(op)


def _dims(op: Operation) -> Attribute:
    return i64_list([int_value(op, "axis", 1)])


class _Linalg:
    """``linalg.generic`` on memrefs of tiles: each memref is a buffer that holds one block."""

    def __init__(self, function: FuncOp) -> None:
        self.function = function
        self.buffers: dict[SSAValue, SSAValue] = {}

    def convert(self, generics: list[GenericOp]) -> None:
        for op in generics:
            self._generic(op)
        for argument in list(self.function.body.block.args):
            self.function.body.block.erase_arg(argument)
        self.function.update_function_type()

    def _buffer(self, memref: SSAValue, op: Operation) -> SSAValue:
        if memref not in self.buffers:
            kind = memref.type
            assert isinstance(kind, (MemRefType, TensorType)) and isinstance(kind.element_type, TileType)
            index = compiler_buffers.next_index(self.function)
            name = memref.name_hint or f"cb{index}"
            self.buffers[memref] = compiler_buffers.bind(
                self.function, index, kind.get_shape(), kind.element_type.dtype, name, op.location
            )
        return self.buffers[memref]

    def _generic(self, op: GenericOp) -> None:
        block = op.parent
        assert block is not None
        before: list[Operation] = []
        after: list[Operation] = []
        inputs: list[SSAValue] = []
        outputs: list[SSAValue] = []
        for memref in op.inputs:
            buffer = self._buffer(memref, op)
            before += compiler_buffers.waited(buffer, op.location)
            inputs.append(before[-1].results[0])
            after.append(CBPopOp.create(operands=[buffer], location=op.location))
        for memref in op.outputs:
            buffer = self._buffer(memref, op)
            before += compiler_buffers.reserved(buffer, op.location)
            outputs.append(before[-1].results[0])
            after.append(CBPushOp.create(operands=[buffer], location=op.location))
        body = Block(arg_types=[argument.type for argument in op.body.block.args])
        values: dict[SSAValue, SSAValue] = dict(zip(op.body.block.args, body.args, strict=True))
        for inner in op.body.block.ops:
            if inner.name == "linalg.yield":
                body.add_op(YieldOp.create(operands=[values[value] for value in inner.operands]))
            else:
                body.add_op(inner.clone(values))
        iterators = ["parallel"] * len(op.iterator_types)
        compute = ComputeOp(inputs, outputs, list(op.indexing_maps), iterators, Region(body))
        compute.location = op.location
        block.insert_ops_before([*before, compute, *after], op)
        erase(op)


