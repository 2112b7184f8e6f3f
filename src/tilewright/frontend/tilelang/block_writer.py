"""Expressions on fragments as block operations: what is repeated, turned or reduced, and where numbers become tiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xdsl.ir import Operation, SSAValue

from tilewright.builder import blocks, functions
from tilewright.builder.thread import ThreadBuilder
from tilewright.builder.values import Block
from tilewright.dialects.tile_ops import BY_NAME, COMPOSITE_BY_NAME
from tilewright.dialects.ttl_buffers import AttachCBOp
from tilewright.frontend.tilelang.dtypes import FLOATS, widest
from tilewright.frontend.tilelang.layouts import fragment_tiles
from tilewright.frontend.tilelang.symbols import (
    ALONG,
    BIT_OPERATORS,
    COLUMN_FORM,
    ROW_FORM,
    TRANSPOSED,
    Apply,
    Cast,
    Expression,
    Fragment,
    Number,
    Product,
    Read,
    Reduction,
)
from tilewright.frontend.tilelang.tile_program import COLUMN, FULL, ROW
from tilewright.integers import COMPARISONS
from tilewright.records import record

if TYPE_CHECKING:
    from tilewright.frontend.tilelang.compute import ComputeThread

OPERATORS = ("+", "-", "*", "/", "**", *BIT_OPERATORS)
REPEATED = {COLUMN: 1, ROW: 0}  # dimension along which a vector is repeated


@record
class Tile:
    """A block and how it lies: a matrix, or a vector in the first column or row of its tiles."""

    block: Block
    layout: str


class BlockWriter:
    """Writes one assignment of the compute thread, which knows the current values of fragments."""

    def __init__(self, thread: ComputeThread, target: Fragment, layout: str) -> None:
        self.thread, self.target, self.layout = thread, target, layout
        tiles = fragment_tiles(target)
        self.shape: tuple[int, ...] = tiles if len(tiles) == 2 else (tiles[0], 1) if layout == COLUMN else (1, tiles[0])

    def write(self, value: Expression) -> Tile:
        result = self.evaluate(value)
        if isinstance(result, Tile):
            return self.placed(result, self.layout)
        return Tile(self.filled(result, self.shape, self.target.format), self.layout)

    def evaluate(self, value: Expression) -> Tile | float:
        if isinstance(value, Number):
            return value.value
        if isinstance(value, Read):
            return self._read(value)
        if isinstance(value, Cast):
            return self._cast(value)
        if isinstance(value, Product):
            return self._product(value)
        if isinstance(value, Reduction):
            return self._reduction(value)
        assert isinstance(value, Apply), type(value)
        return self._apply(value)

    # Layouts ----------------------------------------------------------------------------------------------------------

    def placed(self, tile: Tile, layout: str) -> Tile:
        """The same values in another layout."""
        if tile.layout == layout:
            return tile
        if layout == FULL:
            return Tile(blocks.broadcast(self.thread, tile.block, self.shape, [REPEATED[tile.layout]]), FULL)
        assert tile.layout != FULL, "a matrix is no vector"
        return Tile(blocks.transposed(self.thread, tile.block), layout)

    def filled(self, number: float, shape: tuple[int, ...], dtype: str) -> Block:
        return Block(blocks.filled(self.thread, number, shape, dtype).ssa, shape, dtype)

    def _read(self, value: Read) -> Tile:
        tile = self.thread.read_narrow(value.fragment)
        if value.form == TRANSPOSED:
            return Tile(blocks.transposed(self.thread, tile.block), FULL)
        if value.form in (COLUMN_FORM, ROW_FORM):
            return self.placed(tile, COLUMN if value.form == COLUMN_FORM else ROW)
        return self.placed(tile, self.layout) if value.form == ALONG else tile

    # Operations -------------------------------------------------------------------------------------------------------

    def _apply(self, value: Apply) -> Tile | float:
        arguments = [self.evaluate(argument) for argument in value.arguments]
        tiles = [argument for argument in arguments if isinstance(argument, Tile)]
        if not tiles:
            tiles = [Tile(self.filled(float(arguments[0]), self.shape, self.target.format), self.layout)]  # pyright: ignore
            arguments[0] = tiles[0]
        layouts = {tile.layout for tile in tiles}
        layout = tiles[0].layout if len(layouts) == 1 else FULL
        dtype = widest([tile.block.dtype for tile in tiles])
        operands: list[Block | float] = []
        for argument in arguments:
            if isinstance(argument, Tile):
                block = self.placed(argument, layout).block
                operands.append(held_as(self.thread, block, dtype))
            else:
                whole = dtype not in FLOATS and float(argument).is_integer()
                operands.append(int(argument) if whole else argument)
        return Tile(self._operation(value, operands), layout)

    def _operation(self, value: Apply, operands: list[Block | float]) -> Block:
        thread, name = self.thread, value.op
        numbers = [operand for operand in operands if isinstance(operand, float)]
        if name in COMPARISONS:
            return blocks.compare(thread, name, operands[0], operands[1])
        if name == "max" and 0.0 in numbers:
            block = next(operand for operand in operands if isinstance(operand, Block))
            return blocks.apply_op(thread, BY_NAME["relu"], [block], {})
        if name == "where" or (name == "/" and operands[1] == 0.0):
            like = next(operand for operand in operands if isinstance(operand, Block))
            operands = [self._block(operand, like) for operand in operands]
        op = blocks.operator_op(thread, name) if name in OPERATORS else BY_NAME.get(name) or COMPOSITE_BY_NAME[name]
        if len(operands) == 2:
            return blocks.apply_pair(thread, op, operands[0], operands[1])
        whole = [operand for operand in operands if isinstance(operand, Block)]
        return blocks.apply_op(thread, op, whole, dict(value.parameters))

    def _block(self, operand: Block | float, like: Block | float) -> Block:
        if isinstance(operand, Block):
            return operand
        assert isinstance(like, Block)
        return self.filled(operand, like.shape, like.dtype)

    def _cast(self, value: Cast) -> Tile | float:
        tile = self.evaluate(value.argument)
        if not isinstance(tile, Tile) or tile.block.dtype == value.dtype:
            return tile
        if is_narrowing(tile.block.dtype, value.dtype):
            return rounded(self.thread, tile)
        return Tile(held_as(self.thread, tile.block, value.dtype), tile.layout)

    def _product(self, value: Product) -> Tile:
        left, right = self.thread.read(value.left).block, self.thread.read(value.right).block
        left = blocks.transposed(self.thread, left) if value.transpose_left else left
        turned = value.transpose_right and value.right in self.thread.buffers.turned
        right = blocks.transposed(self.thread, right) if value.transpose_right and not turned else right
        dtype = "f32" if "f32" in (self.target.format, left.dtype, right.dtype) else "bf16"
        return Tile(blocks.product(self.thread, left, right, dtype, transpose_right=turned), FULL)

    def _reduction(self, value: Reduction) -> Tile:
        like: Any = _Shaped(value.shape, self.target)
        inner = BlockWriter(self.thread, like, FULL)
        source = inner.write(value.argument).block
        dtype = widest([source.dtype, self.target.format])
        return Tile(blocks.reduced(self.thread, value.kind, [source], [value.dim], dtype), COLUMN if value.dim == 1 else ROW)


class _Shaped:
    """Stands for a target of another shape: the data that is reduced."""

    def __init__(self, shape: tuple[int, ...], like: Fragment) -> None:
        self.shape, self.format, self.name, self.place = shape, like.format, like.name, like.place


def is_narrowing(source: str, target: str) -> bool:
    return (source, target) == ("f32", "bf16")


def rounded(thread: ThreadBuilder, tile: Tile) -> Tile:
    """The nearest values that 16 bits hold, wherever the tile is."""
    return Tile(_converted(thread, tile.block, "bf16"), tile.layout)


def held_as(thread: ThreadBuilder, block: Block, dtype: str) -> Block:
    """The same values in another format. Between floats the packer and the unpacker convert; others need a call."""
    if block.dtype == dtype or (block.dtype in FLOATS and dtype in FLOATS):
        return Block(block.ssa, block.shape, dtype)
    return _converted(thread, block, dtype)


def _converted(thread: ThreadBuilder, block: Block, dtype: str) -> Block:
    return functions.typecast(thread, [block, dtype], {})


def math_of(value: SSAValue) -> set[Operation]:
    """Block operations a value is computed with."""
    found: set[Operation] = set()
    pending = [value]
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, Operation) and not isinstance(owner, AttachCBOp) and owner not in found:
            found.add(owner)
            pending += owner.operands
    return found
