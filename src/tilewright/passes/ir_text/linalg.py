"""``linalg.generic`` and ``linalg.fill`` on tiles, as expressions on blocks.

A memref is a buffer that holds one block; a tensor is a block. The output's content before the op is a value like any other: a
body that reads it gets it, and a reduction starts from it. Reductions that a unit has are taken: products summed over tiles
(``ttl.tile_matmul`` added to the output) and sums or maxima of rows and columns (``ttl.tile_reduce``). Others are refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.dialects.linalg.ops import GenericOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr
from xdsl.rewriter import Rewriter

from tilewright.diagnostics import KernelError, fail
from tilewright.dialects.attributes import (
    TileType,
    buffer_type_of,
    cb_type,
    i32_attr,
    is_memref_type,
    is_number_attr,
    is_shaped_type,
    tensor_type,
)
from tilewright.dialects.ttl import TENSOR_OPS, FillBlockOp, StoreOp, TileOpBase
from tilewright.dialects.ttl_buffers import AttachCBOp, BindCBOp, CBPopOp, CBPushOp, CBReserveOp
from tilewright.dialects.ttl_compute import AccumulateMatmulOp, TileMatmulOp, TileReduceOp
from tilewright.dialects.ttl_regions import FillOp
from tilewright.dialects.walking import erase, insert_before, operations, place_of
from tilewright.passes import compiler_buffers
from tilewright.passes.ir_text.tile_code import REDUCED, TileBody

Space = tuple[int, ...]  # iterators, by number
JOINS = {"sum": "add", "max": "max"}  # how a reduction of a kind continues from what its output holds


def expand_linalg(function: FuncOp) -> None:
    found = [op for op in operations(function) if isinstance(op, (GenericOp, FillOp))]
    inner = next((op for op in found if isinstance(op.parent_op(), GenericOp)), None)
    if inner is not None:
        raise refused(inner, "works on blocks, inside of an op that works on tiles")
    if found:
        forms = LinalgForms(function, found)
        for op in found:
            forms.convert(op)
        forms.finish()


def refused(op: Operation, message: str, remedy: str = "") -> KernelError:
    return fail("TW603", f"{op.name}: {message}", place_of(op), help=remedy)


class LinalgForms:
    def __init__(self, function: FuncOp, found: list[GenericOp | FillOp]) -> None:
        self.function = function
        filled = {op.target for op in found if isinstance(op, FillOp)}
        self.read_outputs = {
            value
            for op in found
            if isinstance(op, GenericOp) and _is_generic_of_tiles(op)
            for value, argument in zip(op.outputs, op.body.block.args[len(op.inputs) :], strict=True)
            if argument.uses and value not in filled
        }
        self.buffers: dict[SSAValue, SSAValue] = {}
        self.filled: dict[SSAValue, Attribute] = {}  # memref -> the number that fills it until somebody writes it

    def finish(self) -> None:
        for argument in list(self.function.body.block.args):
            if argument.uses:
                user = next(iter(argument.uses)).operation
                raise refused(user, "a memref of tiles is read and written by linalg ops only")
            self.function.body.block.erase_arg(argument)
        self.function.update_function_type()

    def convert(self, op: GenericOp | FillOp) -> None:
        if isinstance(op, FillOp):
            self._fill(op)
        else:
            self._generic(op)

    # Buffers --------------------------------------------------------------------------------------------------------------

    def _buffer(self, memref: SSAValue, op: Operation) -> SSAValue:
        if memref in self.buffers:
            return self.buffers[memref]
        kind = memref.type
        assert is_memref_type(kind) and isinstance(kind.element_type, TileType)
        if not isinstance(memref, BlockArgument) or memref.block is not self.function.body.block:
            raise refused(op, "a memref of tiles is an argument of the function")
        index = self._index(memref)
        name, shape, dtype = memref.name_hint or f"cb{index}", kind.get_shape(), kind.element_type.dtype
        buffer = compiler_buffers.bind(self.function, index, shape, dtype, name, op.location)
        bind = buffer.owner
        assert isinstance(bind, BindCBOp)
        factor = self._factor(index, memref, op)
        if factor > 1:
            bind.attributes["buffer_factor"] = i32_attr(factor)
            buffer = Rewriter.replace_value_with_new_type(buffer, cb_type(shape, dtype, factor))
        self.buffers[memref] = buffer
        return buffer

    def _factor(self, index: int, memref: SSAValue, op: Operation) -> int:
        """As many blocks as the other threads say. Alone, an output that is read needs two: one was there, one comes."""
        module = self.function.parent_op()
        assert module is not None
        found = [bind.results[0] for bind in operations(module) if isinstance(bind, BindCBOp) and bind.cb_index == index]
        if not found or memref not in self.read_outputs:
            factors = (buffer_type_of(buffer).factor.data for buffer in found)
            return max(factors, default=2 if memref in self.read_outputs else 1)
        if any(isinstance(use.operation, CBPushOp) for buffer in found for use in buffer.uses):
            raise refused(op, "reads its output, which another thread fills", "make it an input")
        raise self._unwritten(op)

    def _index(self, memref: BlockArgument) -> int:
        """Argument number n is buffer n, so that other functions can fill and empty it."""
        taken = {op.cb_index for op in operations(self.function) if isinstance(op, BindCBOp)}
        return compiler_buffers.next_index(self.function) if memref.index in taken else memref.index

    def _waited(self, memref: SSAValue, op: Operation, after: list[Operation]) -> SSAValue:
        buffer = self._buffer(memref, op)
        ops = compiler_buffers.waited(buffer, op.location)
        _insert(ops, op)
        after.append(CBPopOp.create(operands=[buffer], location=op.location))
        return ops[-1].results[0]

    def _store(self, value: SSAValue, memref: SSAValue, op: Operation) -> list[Operation]:
        """The push that follows the store."""
        buffer = self._buffer(memref, op)
        kind = buffer_type_of(buffer)
        reserve = CBReserveOp.create(operands=[buffer], result_types=[kind.block_type], location=op.location)
        attach = compiler_buffers.attached(reserve.results[0], buffer, op.location)
        store = StoreOp.create(operands=[value, attach.results[0]], location=op.location)
        _insert([reserve, attach, store], op)
        return [CBPushOp.create(operands=[buffer], location=op.location)]

    # Ops --------------------------------------------------------------------------------------------------------------------

    def _fill(self, op: FillOp) -> None:
        number = op.number.owner
        value = number.properties["value"] if isinstance(number, ConstantOp) else None
        if not is_number_attr(value):
            raise refused(op, "the number is a constant")
        target = op.target
        if is_memref_type(target.type) and any(_comes_later(op, later, target) for later in _users(target)):
            self.filled[target] = value
            erase(op)
            return
        block = _fill_block(value, target.type, op)
        if is_memref_type(target.type):
            _insert(self._store(block, target, op), op)
        else:
            op.results[0].replace_all_uses_with(block)
        erase(op)

    def _generic(self, op: GenericOp) -> None:
        if not _is_generic_of_tiles(op):
            raise refused(op, "works on memrefs or tensors of tiles", "memref<8x8x!ttcore.tile<32x32, bf16>, #L1>")
        reader = _Body(op)
        after: list[Operation] = []
        for number, value in enumerate(op.inputs):
            reader.blocks[number] = self._waited(value, op, after) if is_memref_type(value.type) else value
        for number, value in enumerate(op.outputs, start=len(op.inputs)):
            if op.body.block.args[number].uses:
                reader.blocks[number] = self._initial(value, op, after)
        results = reader.results()
        if op.results and len(op.results) != len(results):
            raise refused(op, "has one result per output")
        pushes: list[Operation] = []
        for number, (value, target) in enumerate(zip(results, op.outputs, strict=True)):
            if is_memref_type(target.type):
                pushes += self._store(value, target, op)
                continue
            if not op.results[number].uses:
                if not _is_reserved(target):
                    raise refused(op, "nobody uses its result", "ttl.store it, or write to a block that ttl.cb_reserve gave")
                _insert([StoreOp.create(operands=[value, target], location=op.location)], op)
            op.results[number].replace_all_uses_with(value)
        _insert([*pushes, *after], op)
        erase(op)

    def _initial(self, value: SSAValue, op: GenericOp, after: list[Operation]) -> SSAValue:
        """What the output holds before."""
        if is_memref_type(value.type):
            number = self.filled.pop(value, None)
            return self._waited(value, op, after) if number is None else _fill_block(number, value.type, op)
        if _is_reserved(value):
            raise self._unwritten(op)
        return value

    def _unwritten(self, op: Operation) -> KernelError:
        remedy = "linalg.fill it first, or give a block that ttl.cb_wait gave"
        return refused(op, "reads its output, and nobody has written that block", remedy)


class _Body:
    """The body of one generic, read as an expression over its iterators."""

    def __init__(self, op: GenericOp) -> None:
        self.op = op
        self.kinds = [kind.data for kind in op.iterator_types]
        if IteratorType.WINDOW in self.kinds:
            raise refused(op, "an iterator is parallel or reduction")
        self.blocks: dict[int, SSAValue] = {}
        self.arguments = {argument: number for number, argument in enumerate(op.body.block.args)}
        self.spaces = [self._space(number) for number in range(len(op.operands))]
        self.extents = self._extents()
        self.bodies: dict[Space, TileBody] = {}

    @property
    def reduced(self) -> Space:
        return tuple(number for number, kind in enumerate(self.kinds) if kind is IteratorType.REDUCTION)

    def _space(self, number: int) -> tuple[int | None, ...]:
        """The iterator that runs along each dimension of an operand; None where it stays at its only tile."""
        found: list[int | None] = []
        shape = _shape(self.op.operands[number])
        map_ = self.op.indexing_maps.data[number].data
        if len(map_.results) != len(shape) or map_.num_dims != len(self.kinds) or map_.num_symbols:
            raise refused(self.op, f"map {number} gives one index per dimension of its operand, from the iterators")
        for extent, term in zip(shape, map_.results, strict=True):
            if isinstance(term, AffineDimExpr) and term.position not in found:
                found.append(term.position)
            elif isinstance(term, AffineConstantExpr) and term.value == 0 and extent == 1:
                found.append(None)
            else:
                raise refused(self.op, f"map {number} picks iterators, or 0 along a dimension of one tile")
        return tuple(found)

    def _extents(self) -> list[int]:
        extents: dict[int, int] = {}
        for operand, space in zip(self.op.operands, self.spaces, strict=True):
            for extent, iterator in zip(_shape(operand), space, strict=True):
                if iterator is not None and extents.setdefault(iterator, extent) != extent:
                    raise refused(self.op, f"iterator {iterator} runs over {extents[iterator]} and over {extent} tiles")
        if len(extents) != len(self.kinds):
            raise refused(self.op, "an iterator runs along no operand")
        return [extents[iterator] for iterator in range(len(self.kinds))]

    def results(self) -> list[SSAValue]:
        last = self.op.body.block.last_op
        assert last is not None
        targets = range(len(self.op.inputs), len(self.op.operands))
        parallel = tuple(number for number, kind in enumerate(self.kinds) if kind is IteratorType.PARALLEL)
        for number in targets:
            if tuple(i for i in self.spaces[number] if i is not None) != parallel:
                raise refused(self.op, "an output has its parallel iterators as dimensions, in their order")
        if not self.reduced:
            return [self.value(tile, parallel) for tile in last.operands]
        if len(targets) != 1:
            raise refused(self.op, "a reduction has one output")
        return [self._reduction(last.operands[0], targets[0], parallel)]

    def value(self, tile: SSAValue, space: Space) -> SSAValue:
        """The block that ``tile`` is a tile of, as it runs over ``space``."""
        body = self.bodies.setdefault(space, TileBody(self.op, tuple(self.extents[iterator] for iterator in space)))
        if tile in body.values:
            return body.values[tile]
        if isinstance(tile, BlockArgument) and tile in self.arguments:
            number = self.arguments[tile]
            places = self.spaces[number]
            fits = len(places) == len(space) and all(own in (None, wanted) for own, wanted in zip(places, space, strict=True))
            if not fits or number not in self.blocks:
                raise refused(self.op, f"operand {number} does not run along the iterators of the expression that reads it")
            body.values[tile] = self.blocks[number]
            return body.values[tile]
        owner = tile.owner
        if not isinstance(owner, Operation) or owner.parent is not self.op.body.block:
            raise refused(self.op, "its body uses what is not an argument of it")
        for operand in owner.operands:
            self.value(operand, space)
        body.write([owner])
        return body.values[tile]

    def _reduction(self, yielded: SSAValue, target: int, parallel: Space) -> SSAValue:
        running = self.op.body.block.args[target]
        join = yielded.owner
        if isinstance(join, AccumulateMatmulOp) and join.accumulator is running:
            return self._joined("add", self._product(join, join.operands[1:], parallel), target, join)
        if not isinstance(join, TileOpBase) or join.SPEC.name not in JOINS.values() or running not in join.operands:
            raise self._not_a_reduction()
        others = [operand for operand in join.operands if operand is not running]
        part = others[0].owner if len(others) == 1 else None
        if isinstance(part, TileMatmulOp) and join.SPEC.name == "add":
            return self._joined("add", self._product(part, part.operands, parallel), target, join)
        if isinstance(part, TileReduceOp) and JOINS.get(part.kind) == join.SPEC.name and part.counts == (1, 1):
            return self._joined(join.SPEC.name, self._reduced(part, target), target, join)
        raise self._not_a_reduction()

    def _not_a_reduction(self) -> KernelError:
        return refused(
            self.op,
            "no unit has this reduction over tiles",
            "yield ttl.tile_add of the output and ttl.tile_matmul (k = 1) or ttl.tile_reduce (sum), or ttl.tile_max (max)",
        )

    def _product(self, op: TileMatmulOp, factors: Sequence[SSAValue], parallel: Space) -> SSAValue:
        left, right = factors
        if op.k != 1 or len(parallel) != 2 or len(self.reduced) != 1 or op.transposed or op.turned:
            raise self._not_a_reduction()
        inner = self.reduced[0]
        first, second = self.value(left, (parallel[0], inner)), self.value(right, (inner, parallel[1]))
        return TileBody(self.op, ()).matmul(op, self._full(first, (parallel[0], inner)), self._full(second, (inner, parallel[1])))

    def _full(self, value: SSAValue, space: Space) -> SSAValue:
        return self.bodies[space].repeated(value, self.op)

    def _reduced(self, op: TileReduceOp, target: int) -> SSAValue:
        every = tuple(range(len(self.kinds)))
        dims = tuple(sorted(self.reduced))
        if len(every) != 2 or REDUCED[op.dim] != dims or len(self.spaces[target]) != 2:
            raise self._not_a_reduction()
        value = self._full(self.value(op.source, every), every)
        scaler = self.arguments.get(op.operands[1])  # pyright: ignore
        if scaler is None or any(place is not None for place in self.spaces[scaler]):
            raise refused(self.op, "the second operand of ttl.tile_reduce is an input of one tile")
        return TileBody(self.op, ()).reduced(op, value, self.blocks[scaler])

    def _joined(self, row: str, value: SSAValue, target: int, op: Operation) -> SSAValue:
        """``value`` on top of what the output held."""
        initial = self.blocks[target]
        filled = initial.owner
        if row == "add" and isinstance(filled, FillBlockOp) and _is_zero(filled.attributes["value"]):
            return value
        join = TENSOR_OPS[row].create(operands=[initial, value], result_types=[value.type], location=op.location)
        _insert([join], self.op)
        return join.results[0]


def _is_zero(number: Attribute) -> bool:
    return isinstance(number, (FloatAttr, IntegerAttr)) and number.value.data == 0


def _is_tiles(kind: Attribute) -> bool:
    return is_shaped_type(kind) and isinstance(kind.element_type, TileType)


def _is_generic_of_tiles(op: GenericOp) -> bool:
    block = op.body.block
    if len(block.args) != len(op.operands) or block.last_op is None or block.last_op.name != "linalg.yield":
        return False
    same = all(_is_tiles(v.type) and v.type.element_type == a.type for v, a in zip(op.operands, block.args, strict=True))  # pyright: ignore
    counts = len(block.last_op.operands) == len(op.outputs) and len(op.indexing_maps) == len(op.operands)
    return same and bool(op.outputs) and counts


def _shape(value: SSAValue) -> tuple[int, ...]:
    assert is_shaped_type(value.type)
    return value.type.get_shape()


def _insert(ops: list[Operation], anchor: Operation) -> None:
    insert_before(ops, anchor)


def _fill_block(number: Attribute, kind: Attribute, op: Operation) -> SSAValue:
    assert is_shaped_type(kind)
    block = tensor_type(kind.element_type, kind.get_shape())
    new = FillBlockOp.create(result_types=[block], attributes={"value": number}, location=op.location)
    _insert([new], op)
    return new.results[0]


def _is_reserved(value: SSAValue) -> bool:
    owner = value.owner
    if isinstance(owner, AttachCBOp):
        owner = owner.block.owner
    return isinstance(owner, CBReserveOp)


def _users(value: SSAValue) -> list[Operation]:
    return [use.operation for use in value.uses]


def _comes_later(op: Operation, later: Operation, target: SSAValue) -> bool:
    """A generic behind ``op`` that continues from what it wrote."""
    block = op.parent
    if not isinstance(later, GenericOp) or later.parent is not block or target not in later.outputs or block is None:
        return False
    return block.get_operation_index(op) < block.get_operation_index(later)
