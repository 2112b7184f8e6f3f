"""Code on single tiles as expressions on whole blocks: what a tile loop or a structured op does to every tile of its blocks."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import ArrayAttr, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.diagnostics import KernelError, fail
from tilewright.dialects.attributes import TileType, i64_list, tensor_type, text_attr, text_value
from tilewright.dialects.ttl import TENSOR_OPS, BcastOp, MatmulOp, ReduceOp, TileOpBase, shape_of
from tilewright.dialects.ttl_compute import TileBcastOp, TileMatmulOp, TileReduceOp, TileTransposeOp
from tilewright.dialects.walking import place_of

REDUCED = {"row": (1,), "col": (0,), "scalar": (0, 1)}  # dimensions that a tile op's ``dim`` does away with


class TileBody:
    """Writes block ops in front of ``anchor`` for tile ops; ``shape`` is the block that one run of the tile code covers."""

    def __init__(self, anchor: Operation, shape: tuple[int, ...]) -> None:
        self.anchor, self.shape = anchor, shape
        self.values: dict[SSAValue, SSAValue] = {}  # tile -> block

    def add(self, op: Operation) -> SSAValue:
        block = self.anchor.parent
        assert block is not None
        block.insert_op_before(op, self.anchor)
        return op.results[0]

    def repeated(self, value: SSAValue, op: Operation) -> SSAValue:
        """A block of one tile along some dimension, as often as the expression needs it."""
        kind = value.type
        assert isinstance(kind, TensorType)
        if kind.get_shape() == self.shape:
            return value
        wide = tensor_type(kind.element_type, self.shape)
        return self.add(
            BcastOp.create(operands=[value], result_types=[wide], attributes={"dims": ArrayAttr([])}, location=op.location)
        )

    def block_of(self, tile: SSAValue, op: Operation) -> SSAValue:
        if tile not in self.values:
            raise fail("TW603", f"{op.name} uses a tile that does not come from a buffer here", place_of(op))
        return self.values[tile]

    def write(self, ops: Iterable[Operation]) -> None:
        for op in ops:
            if isinstance(op, TileOpBase):
                operands = [self.repeated(self.block_of(tile, op), op) for tile in op.operands]
                self._put(op, TENSOR_OPS[op.SPEC.name], operands, dict(op.attributes))
            elif isinstance(op, TileBcastOp):
                source = self.block_of(op.operands[0], op)
                self._put(op, BcastOp, [source], {"dims": i64_list(REDUCED[op.dim])})
            else:
                raise unsupported(op)

    def _put(self, op: Operation, kind: type[Operation], operands: list[SSAValue], attributes: dict[str, Attribute]) -> None:
        attributes.pop("dst_idx", None)
        self.values[op.results[0]] = self.made(op, kind, operands, attributes, self.shape)

    def made(
        self,
        op: Operation,
        kind: type[Operation],
        operands: list[SSAValue],
        attributes: dict[str, Attribute],
        shape: tuple[int, ...],
    ) -> SSAValue:
        tile = op.results[0].type
        assert isinstance(tile, TileType)
        new = kind.create(operands=operands, result_types=[tensor_type(tile, shape)], attributes=attributes, location=op.location)
        new.results[0].name_hint = op.results[0].name_hint
        return self.add(new)

    def matmul(self, op: TileMatmulOp, left: SSAValue, right: SSAValue) -> SSAValue:
        shape = (shape_of(left.type)[0], shape_of(right.type)[1])
        return self.made(op, MatmulOp, [left, right], {}, shape)

    def reduced(self, op: TileReduceOp, value: SSAValue, scaler: SSAValue) -> SSAValue:
        dims = REDUCED[op.dim]
        shape = tuple(1 if dim in dims else size for dim, size in enumerate(shape_of(value.type)))
        attributes: dict[str, Attribute] = {"kind": text_attr(text_value(op, "kind")), "dims": i64_list(dims)}
        return self.made(op, ReduceOp, [value, scaler], attributes, shape)


def unsupported(op: Operation) -> KernelError:
    if isinstance(op, (TileReduceOp, TileMatmulOp, TileTransposeOp)):
        remedy = "add its result to the output of a linalg.generic with a reduction, or use the op on blocks"
    else:
        remedy = "tile arithmetic, as in docs/ops.md"
    message = f"{op.name} is no arithmetic on single tiles that can be done for a whole block"
    return fail("TW603", message, place_of(op), help=remedy)
