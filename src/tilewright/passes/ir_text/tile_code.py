"""Code on single tiles as expressions on whole blocks."""

from __future__ import annotations

import math
from collections.abc import Iterable

from xdsl.dialects.arith import AddiOp, ConstantOp, MuliOp
from xdsl.dialects.builtin import ArrayAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp, YieldOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from tilewright.diagnostics import KernelError, fail
from tilewright.dialects.attributes import (
    PINNED,
    CBType,
    TileType,
    block_type_of,
    buffer_type_of,
    constant_of,
    defining_op,
    i32_attr,
    i64_list,
    identity_map,
    int_value,
    tensor_type,
    text_attr,
    text_value,
)
from tilewright.dialects.ttl import TENSOR_OPS, BcastOp, MatmulOp, ReduceOp, StoreOp, TileOpBase, shape_of
from tilewright.dialects.ttl_buffers import SPILL, AttachCBOp, CBPopOp, CBPushOp, CBReserveOp, CBWaitOp
from tilewright.dialects.ttl_compute import (
    ComputeOp,
    IrregularTileOp,
    RestoreTileOp,
    SpillTileOp,
    TileBcastOp,
    TileMatmulOp,
    TileReduceOp,
    TileTransposeOp,
)
from tilewright.dialects.ttl_regions import TILE_ACCESS, AcquireDstOp, GetTileOp, PackTileOp, ReleaseDstOp, RequireDstOp
from tilewright.dialects.walking import insert_before, of_kind, operations, place_of
from tilewright.passes import compiler_buffers
from tilewright.records import record

# Tile bodies --------------------------------------------------------------------------------------------------------------
# Code on single tiles as expressions on whole blocks: what a tile loop or a structured op does to every tile of its blocks.


REDUCED = {"row": (1,), "col": (0,), "scalar": (0, 1)}  # dimensions that a tile op's ``dim`` does away with


class TileBody:
    """Writes block ops in front of ``anchor`` for tile ops; ``shape`` is the block that one run of the tile code covers."""

    def __init__(self, anchor: Operation, shape: tuple[int, ...]) -> None:
        self.anchor, self.shape = anchor, shape
        self.values: dict[SSAValue, SSAValue] = {}  # tile -> block

    def add(self, op: Operation) -> SSAValue:
        insert_before(op, self.anchor)
        return op.results[0]

    def repeated(self, value: SSAValue, op: Operation) -> SSAValue:
        """A block of one tile along some dimension, as often as the expression needs it."""
        kind = block_type_of(value)
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
                source = self.block_of(op.source, op)
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


# Tile access --------------------------------------------------------------------------------------------------------------
# ``ttl.get_tile`` and ``ttl.pack_tile``: a loop over the tiles of a block becomes one expression on blocks.
#
# The loop runs over all tiles of the packed block, one by one; every tile it gets is the tile with the same number, or the only
# one of its buffer. What ``ttl.pack_tile`` packs is what lies in its register: the value with that ``dst_idx``.


STRUCTURE = (ConstantOp, MuliOp, AddiOp, YieldOp, AcquireDstOp, ReleaseDstOp)


def refused(op: Operation, message: str, remedy: str = "") -> KernelError:
    return fail("TW603", f"{op.name}: {message}", place_of(op), help=remedy)


def expand_tile_access(function: FuncOp) -> None:
    blocks = dict.fromkeys(op.parent for op in operations(function) if isinstance(op, TILE_ACCESS))
    for block in blocks:
        assert block is not None
        _expand(block)


@record
class Nest:
    """Loops around a body: the outermost, and per loop its variable and how often it runs."""

    top: Operation | None
    loops: tuple[tuple[SSAValue, int], ...]

    @property
    def runs(self) -> int:
        return math.prod(count for _, count in self.loops)


def _expand(body: Block) -> None:
    nest = _nest(body)
    inside = list(body.ops)
    gets = [op for op in inside if isinstance(op, GetTileOp)]
    packs = [op for op in inside if isinstance(op, PackTileOp)]
    if not packs:
        raise refused(gets[0], "the tile is never packed", "ttl.pack_tile in the same loop")
    if nest.top is not None:
        for op in inside:
            if not isinstance(op, (*TILE_ACCESS, TileOpBase, IrregularTileOp, RequireDstOp, *STRUCTURE)):
                raise refused(op, "does not stand in a loop over single tiles", "only tile arithmetic does")
    shapes = {_kind(pack).dims for pack in packs}
    if len(shapes) != 1:
        raise refused(packs[1], f"packs into blocks of the same shape, not of {sorted(shapes)}")
    shape = shapes.pop()
    if math.prod(shape) != nest.runs:
        raise refused(packs[0], f"the loop runs over all {math.prod(shape)} tiles of the block, found {nest.runs}")
    anchor = nest.top or packs[-1]
    written = TileBody(anchor, shape)
    packed = {pack: _packed(pack, inside) for pack in packs}
    for op in inside:
        if isinstance(op, GetTileOp):
            written.values[op.results[0]] = _got(op, nest, shape, anchor)
        elif isinstance(op, (TileOpBase, IrregularTileOp)):
            written.write([op])
    for pack in packs:
        _check_index(pack, pack.index, nest)
        value = written.block_of(packed[pack], pack)
        store = StoreOp.create(operands=[value, _block(pack, CBReserveOp, CBPushOp, anchor)], location=pack.location)
        written.anchor.parent.insert_op_before(store, anchor)  # pyright: ignore
    _remove(nest, inside)


def _remove(nest: Nest, inside: list[Operation]) -> None:
    if nest.top is not None:
        nest.top.detach()
        nest.top.erase(safe_erase=False)
        return
    for op in reversed(inside):
        if isinstance(op, (*TILE_ACCESS, TileOpBase, IrregularTileOp)):
            op.detach()
            op.erase(safe_erase=False)


def _nest(body: Block) -> Nest:
    loops: list[tuple[SSAValue, int]] = []
    top: Operation | None = None
    parent = body.parent_op()
    while isinstance(parent, ForOp) and (top is None or _only_child(parent, top)):
        bounds = [constant_of(value) for value in (parent.lb, parent.ub, parent.step)]
        if bounds[0] != 0 or bounds[2] != 1 or bounds[1] is None or parent.iter_args:
            break
        loops.insert(0, (parent.body.block.args[0], bounds[1]))
        top, parent = parent, parent.parent_op()
    return Nest(top, tuple(loops))


def _only_child(loop: ForOp, child: Operation) -> bool:
    return all(op is child or isinstance(op, (ConstantOp, YieldOp)) for op in loop.body.block.ops)


def _weights(value: SSAValue) -> dict[SSAValue | None, int] | None:
    """A sum of loop variables with factors; None stands for the constant part."""
    number = constant_of(value)
    if number is not None:
        return {None: number}
    if isinstance(value, BlockArgument):
        return {value: 1}
    owner = value.owner
    if isinstance(owner, AddiOp):
        left, right = _weights(owner.lhs), _weights(owner.rhs)
        if left is None or right is None:
            return None
        return {key: left.get(key, 0) + right.get(key, 0) for key in {*left, *right}}
    if isinstance(owner, MuliOp):
        for factor, other in ((owner.lhs, owner.rhs), (owner.rhs, owner.lhs)):
            number, terms = constant_of(factor), _weights(other)
            if number is not None and terms is not None:
                return {key: number * weight for key, weight in terms.items()}
    return None


def _is_number_of_the_run(value: SSAValue, nest: Nest) -> bool:
    wanted: dict[SSAValue, int] = {}
    weight = 1
    for variable, count in reversed(nest.loops):
        if count > 1:
            wanted[variable] = weight
        weight *= count
    single = {variable for variable, count in nest.loops if count == 1}
    found = _weights(value)
    if found is None:
        return False
    return {key: w for key, w in found.items() if w and key not in single} == wanted


def _check_index(op: Operation, index: SSAValue, nest: Nest) -> None:
    if not _is_number_of_the_run(index, nest):
        remedy = "one loop over all tiles, or row * columns + column"
        raise refused(op, "the number of the tile counts the loop's runs from 0", remedy)


def _got(op: GetTileOp, nest: Nest, shape: tuple[int, ...], anchor: Operation) -> SSAValue:
    kind = _kind(op)
    block = _block(op, CBWaitOp, CBPopOp, anchor)
    if math.prod(kind.dims) == 1 and constant_of(op.index) == 0:
        return block
    _check_index(op, op.index, nest)
    if kind.dims != shape:
        raise refused(op, f"its block has the shape of the packed one, {list(shape)}")
    return block


def _kind(op: Operation) -> CBType:
    return buffer_type_of(op.operands[1 if isinstance(op, PackTileOp) else 0])


def _block(op: Operation, acquire: type[Operation], release: type[Operation], anchor: Operation) -> SSAValue:
    """The block of the buffer that is held at ``anchor``."""
    buffer = op.operands[1 if isinstance(op, PackTileOp) else 0]
    earlier = anchor.prev_op
    while earlier is not None:
        if isinstance(earlier, release) and earlier.operands[0] is buffer:
            break
        if isinstance(earlier, acquire) and earlier.operands[0] is buffer:
            uses = [use.operation for use in earlier.results[0].uses if isinstance(use.operation, AttachCBOp)]
            return uses[0].results[0] if uses else earlier.results[0]
        earlier = earlier.prev_op
    raise refused(op, f"no block of the buffer is held here, by {acquire.name}")


def _packed(pack: PackTileOp, inside: list[Operation]) -> SSAValue:
    """The tile in the register that is packed: the last one computed there before."""
    before = inside[: inside.index(pack)]
    computed = [op for op in before if isinstance(op, (TileOpBase, IrregularTileOp, GetTileOp))]
    acquire = pack.register.owner
    number = acquire.number if isinstance(acquire, AcquireDstOp) else constant_of(pack.register)
    if number is None and not isinstance(acquire, AcquireDstOp):
        raise refused(pack, "a register is named by ttl.acquire_dst or by a constant")
    if number is not None:
        computed = [op for op in computed if int_value(op, "dst_idx", -1) == number]
    if not computed:
        raise refused(pack, f"nothing lies in register {number}", "dst_idx on the op whose result is packed")
    maker = computed[-1]
    if number is not None and not isinstance(maker, GetTileOp):
        maker.attributes[PINNED] = i32_attr(number)
    return maker.results[0]


# Spilled tiles ------------------------------------------------------------------------------------------------------------
# ``ttl.spill_tile_to_l1`` in a ``ttl.compute`` that text writes on blocks it reserved: the tiles pass through a buffer.
#
# The region becomes an expression on blocks with a store, a push and a wait where a tile leaves DST. Regions whose outputs are
# bound in another way, as in the IR of later stages, are cut by ``ttl-tile-and-assign-dst``.


def expand_spills(function: FuncOp) -> None:
    for compute in of_kind(function, ComputeOp):
        if any(isinstance(op, SpillTileOp) for op in compute.block.ops) and all(map(_is_reserved, compute.outputs)):
            _expand_spill(compute, function)


def _is_reserved(block: SSAValue) -> bool:
    owner = block.owner
    return isinstance(owner, AttachCBOp) and isinstance(owner.block.owner, CBReserveOp)


def _expand_spill(compute: ComputeOp, function: FuncOp) -> None:
    plain = identity_map(len(compute.output_shape))
    body = TileBody(compute, compute.output_shape)
    for argument, block, map_ in zip(compute.block.args, compute.inputs, compute.maps, strict=False):
        if map_ != plain:
            message = "a region that spills tiles reads every block tile by tile"
            raise fail("TW603", message, place_of(compute), help="use the identity as the map of every operand")
        body.values[argument] = block
    pops: list[Operation] = []
    for op in compute.block.ops:
        if isinstance(op, SpillTileOp):
            body.values[op.results[0]] = _away(op, body, function, pops)
        elif isinstance(op, RestoreTileOp):
            body.values[op.results[0]] = body.block_of(op.spilled, op)
        elif op is compute.block.last_op:
            for tile, block in zip(op.operands, compute.outputs, strict=True):
                store = StoreOp.create(operands=[body.block_of(tile, op), block], location=compute.location)
                insert_before(store, compute)
        elif op.results and not op.name.startswith("arith."):
            body.write([op])
    insert_before(pops, compute)
    compute.detach()
    compute.erase(safe_erase=False)


def _away(op: SpillTileOp, body: TileBody, function: FuncOp, pops: list[Operation]) -> SSAValue:
    value = body.block_of(op.tile, op)
    index = compiler_buffers.next_index(function)
    tile = op.tile.type
    assert isinstance(tile, TileType)
    buffer = compiler_buffers.bind(function, index, body.shape, tile.dtype, f"spill_{index}", op.location)
    defining_op(buffer).attributes[SPILL] = UnitAttr()
    kind = buffer_type_of(buffer)
    reserve = CBReserveOp.create(operands=[buffer], result_types=[kind.block_type], location=op.location)
    attach = compiler_buffers.attached(reserve.results[0], buffer, op.location)
    store = StoreOp.create(operands=[value, attach.results[0]], location=op.location)
    push = CBPushOp.create(operands=[buffer], location=op.location)
    back = compiler_buffers.waited(buffer, op.location)
    insert_before([reserve, attach, store, push, *back], body.anchor)
    pops.append(CBPopOp.create(operands=[buffer], location=op.location))
    return back[-1].results[0]
