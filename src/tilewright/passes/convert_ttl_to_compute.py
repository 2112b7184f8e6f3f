"""Block expressions become ``ttl.compute`` regions, fused as far as the hardware lets values stay in DST.

Requires: every ``ttl.store`` puts a block expression into a reserved block.
Ensures: no tensor-level math is left; each region reads blocks that buffers hold and writes blocks that were reserved; a
sub-expression that several stores share is computed once; a value that a unit must read from a buffer goes through one the
compiler made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import count

from xdsl.dialects.builtin import AffineMapAttr, IntegerAttr, ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.tensor import EmptyOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from tilewright.diagnostics import counted, fail
from tilewright.dialects.attributes import (
    REQUIRED,
    block_type_of,
    buffer_type_of,
    created,
    i32_attr,
    pins_of,
    text_attr,
    text_value,
)
from tilewright.dialects.tile_ops import FREE_TYPECASTS
from tilewright.dialects.ttl import (
    KEEP_IN_DST,
    TILE_OPS,
    TURNED_B,
    BcastOp,
    FillBlockOp,
    MatmulOp,
    ReduceOp,
    ReshapeOp,
    StoreOp,
    TensorMathOp,
    TransposeOp,
    YieldOp,
    compute_functions,
    dtype_of,
    shape_of,
)
from tilewright.dialects.ttl_buffers import AttachCBOp, CBPopOp, CBPushOp, RunningOp
from tilewright.dialects.ttl_compute import (
    ComputeOp,
    TileBcastOp,
    TileFoldOp,
    TileMatmulOp,
    TileReduceOp,
    TileScratchOp,
    TileTransposeOp,
    TileVectorReduceOp,
)
from tilewright.dialects.walking import append, erase, insert_before, line_of, place_of, users
from tilewright.passes import compiler_buffers
from tilewright.passes.context import PassContext
from tilewright.passes.fusion.expressions import (
    FusedRegion,
    Partition,
    blocks_of,
    erase_dead_math,
    partition,
    store_groups,
)

NAME = "convert-ttl-to-compute"


def run(module: ModuleOp, context: PassContext) -> None:
    for function in compute_functions(module):
        emitter = RegionEmitter(function)
        for block in blocks_of(function):
            for stores in store_groups(block):
                _emit(stores, emitter, context)
        erase_dead_math(function)  # what the regions replace


def _emit(stores: list[StoreOp], emitter: RegionEmitter, context: PassContext) -> None:
    last = stores[-1]
    parts = partition([store.value for store in stores])
    _check_required(parts)
    targets: list[tuple[SSAValue, SSAValue]] = []
    for store in stores:
        place = _target(store)
        insert_before(place, last)
        targets.append((store.value, place[-1].results[0]))
    emitter.emit(parts, targets, last)
    place = f"line {line_of(last)}"
    for store in stores:
        erase(store)
    ops = sum(len(region.ops) for region in parts.regions)
    details = [f"{len(parts.materialised)} values through buffers that a unit must read from L1"] if parts.materialised else []
    regions = counted(max(1, len(parts.regions)), "region")
    title = f"{counted(ops, 'tile op')} and {counted(len(stores), 'output')} in {regions}"
    context.trace.decide(NAME, title, "; ".join(details), place=place)


def _check_required(parts: Partition) -> None:
    """``ttl.require_dst``: text demands that a value does not go through a buffer."""
    for value in parts.materialised:
        maker = value.owner
        if isinstance(maker, Operation) and REQUIRED in maker.attributes:
            message = "ttl.require_dst: the value goes through a buffer, because a unit reads it from there"
            remedy = "matrix products, reductions, broadcasts and transposes read buffers"
            raise fail("TW401", message, place_of(maker), help=remedy)


def _target(store: StoreOp) -> list[Operation]:
    """The block a region writes, bound to the buffer that was reserved for it; of a running value, that value."""
    reserved = store.target.owner
    assert isinstance(reserved, AttachCBOp)
    attributes = {**reserved.attributes, **store.attributes}
    if _filled_twice(reserved, store):
        attributes["out_of_order"] = UnitAttr()
    running = isinstance(reserved.block.owner, RunningOp)
    empty = [] if running else [created(EmptyOp, (), [store.target.type], location=store.location)]
    attached = AttachCBOp.create(
        operands=[empty[0].results[0] if empty else reserved.block, reserved.buffer],
        result_types=[store.target.type],
        attributes=attributes,
        location=store.location,
    )
    return [*empty, attached]


def _filled_twice(reserved: AttachCBOp, store: StoreOp) -> bool:
    """The packer counts tiles from the reserve on; a second store into the same block must name its tiles instead."""
    stores = [user for user in users(reserved.results[0]) if isinstance(user, StoreOp)]
    return len(stores) > 1 or store.parent is not reserved.parent


# Regions as ops, with buffers for the values between them ----------------------------------------------------------------------

# Which tile of a block an output tile starts from: how many dimensions the output has, and which of them each of the block's own
# follows, None for the first tile. Numbers, as they are compared often; an affine map says the same.
Tiles = tuple[int, tuple[int | None, ...]]
Input = tuple[SSAValue, Tiles]
FIRST: Tiles = (2, (None, None))


@lru_cache(maxsize=256)
def _map(tiles: Tiles) -> AffineMapAttr:
    rank, places = tiles
    terms = tuple(AffineExpr.constant(0) if place is None else AffineExpr.dimension(place) for place in places)
    return AffineMapAttr(AffineMap(rank, 0, terms))


class RegionEmitter:
    """One per compute function; compiler buffers are reused by later expressions of the same shape and type."""

    def __init__(self, function: FuncOp) -> None:
        self.function = function
        self.idle: dict[tuple[tuple[int, ...], str], list[SSAValue]] = {}
        self.indices: Iterator[int] | None = None  # of buffers that there are not yet

    def emit(self, parts: Partition, targets: Sequence[tuple[SSAValue, SSAValue]], anchor: Operation) -> None:
        """Write everything in front of ``anchor``. ``targets`` are (value, block to store it in)."""
        held: dict[SSAValue, SSAValue] = {}  # materialised value -> its buffer
        waited: dict[SSAValue, SSAValue] = {}  # materialised value -> its block, once somebody has waited for it
        readers = self._readers(parts)
        for region in parts.regions:
            self._region(region, parts, targets, held, waited, anchor)
            for value in [value for value in held if readers.get(value) is region]:
                buffer = held.pop(value)
                self._insert([CBPopOp.create(operands=[buffer], location=anchor.location)], anchor)
                kind = buffer_type_of(buffer)
                self.idle.setdefault((kind.dims, kind.tile.dtype), []).append(buffer)
        for value, block in targets:
            if not any(value in region.outputs for region in parts.regions):
                self._compute([(value, _identity(value))], [block], [], [value], parts, anchor)

    @staticmethod
    def _readers(parts: Partition) -> dict[SSAValue, FusedRegion]:
        """The last region that reads each value."""
        readers: dict[SSAValue, FusedRegion] = {}
        for region in parts.regions:
            for op in region.ops:
                for operand in op.operands:
                    readers[operand] = region
        return readers

    def _insert(self, ops: Sequence[Operation], anchor: Operation) -> None:
        insert_before(list(ops), anchor)

    def _region(
        self,
        region: FusedRegion,
        parts: Partition,
        targets: Sequence[tuple[SSAValue, SSAValue]],
        held: dict[SSAValue, SSAValue],
        waited: dict[SSAValue, SSAValue],
        anchor: Operation,
    ) -> None:
        blocks: dict[SSAValue, SSAValue] = {}
        location = region.ops[0].location
        for op in region.ops:
            for value in op.operands:
                if value in held and value not in waited:
                    ops = compiler_buffers.waited(held[value], location)
                    self._insert(ops, anchor)
                    waited[value] = ops[-1].results[0]
                if value in held:
                    blocks[value] = waited[value]
        inside: set[SSAValue] = {op.results[0] for op in region.ops}
        inputs = _inputs(region, inside, blocks)
        outputs: list[SSAValue] = []
        results: list[SSAValue] = []
        pushes: list[Operation] = []
        for value in region.outputs:
            if value in parts.materialised:
                buffer = held[value] = self._buffer(value, location)
                compiler_buffers.say_what_it_holds(buffer, value)
                ops = compiler_buffers.reserved(buffer, location)
                self._insert(ops, anchor)
                outputs.append(ops[-1].results[0])
                results.append(value)
                pushes.append(CBPushOp.create(operands=[buffer], location=location))
            for stored, block in targets:
                if stored is value:
                    outputs.append(block)
                    results.append(value)
        self._compute(inputs, outputs, region.ops, results, parts, anchor, blocks)
        self._insert(pushes, anchor)

    def _buffer(self, value: SSAValue, location: Attribute) -> SSAValue:
        key = (shape_of(value.type), dtype_of(value.type))
        if self.idle.get(key):
            return self.idle[key].pop()
        self.indices = self.indices or count(compiler_buffers.next_index(self.function))
        index = next(self.indices)
        return compiler_buffers.bind(self.function, index, key[0], key[1], f"between_{index}", location)  # pyright: ignore

    def _compute(
        self,
        inputs: list[Input],
        outputs: list[SSAValue],
        ops: Sequence[Operation],
        results: list[SSAValue],
        parts: Partition,
        anchor: Operation,
        blocks: dict[SSAValue, SSAValue] | None = None,
    ) -> None:
        actual = [((blocks or {}).get(value, value), tiles) for value, tiles in inputs]
        body = Block(arg_types=[_tile(value) for value in (*(v for v, _ in actual), *outputs)])
        arguments: dict[Input, SSAValue] = dict(zip(inputs, body.args, strict=False))
        values: dict[SSAValue, SSAValue] = {}
        writer = _BodyWriter(body, arguments, values)
        for op in ops:
            writer.write(op)
        identity = _identity(outputs[0])
        stored = [values[v] if v in values else arguments[v, _identity(v)] for v in results]
        append(YieldOp.create(operands=stored), body)
        maps = [_map(tiles) for _, tiles in actual] + [_map(identity)] * len(outputs)
        rank = identity[0]
        compute = ComputeOp([v for v, _ in actual], outputs, maps, ["parallel"] * rank, Region(body))
        compute.location = anchor.location if not ops else ops[-1].location
        self._insert([compute], anchor)


def _identity(value: SSAValue) -> Tiles:
    rank = len(block_type_of(value).shape.data)
    return rank, tuple(range(rank))


def _tile(value: SSAValue) -> Attribute:
    kind = block_type_of(value)
    return kind.element_type


def operand_tiles(op: Operation) -> list[Tiles]:
    """Which tile of each operand an output tile starts from."""
    if isinstance(op, TensorMathOp):
        return [_identity(operand) for operand in op.operands]
    if isinstance(op, MatmulOp):
        return [(2, (0, None)), (2, (1, None) if TURNED_B in op.attributes else (None, 1))]
    if isinstance(op, ReduceOp):
        dims = op.dims
        return [(2, tuple([None if dim in dims else dim for dim in range(2)])), *(FIRST for _ in op.operands[1:])]
    if isinstance(op, BcastOp):
        return [_repeated(shape_of(op.source.type), len(shape_of(op.results[0].type)))]
    if isinstance(op, ReshapeOp):
        return [(len(shape_of(op.results[0].type)), op.places)]
    if isinstance(op, TransposeOp):
        return [(2, (1, 0))]
    return [_identity(operand) for operand in op.operands]


def _repeated(shape: tuple[int, ...], rank: int) -> Tiles:
    """A dimension of size 1 stays at its only tile; missing dimensions are missing in front."""
    dims = zip(shape, range(rank - len(shape), rank), strict=True)
    return rank, tuple([None if extent == 1 else dim for extent, dim in dims])


def _inputs(region: FusedRegion, inside: set[SSAValue], blocks: dict[SSAValue, SSAValue]) -> list[Input]:
    found: dict[Input, None] = {}
    for op in region.ops:
        for value, tiles in zip(op.operands, operand_tiles(op), strict=True):
            if value not in inside or value in blocks:
                found.setdefault((value, tiles))
    return list(found)


class _BodyWriter:
    """Tile ops for the block ops of a region."""

    def __init__(self, body: Block, arguments: dict[Input, SSAValue], values: dict[SSAValue, SSAValue]) -> None:
        self.body, self.arguments, self.values = body, arguments, values

    def write(self, op: Operation) -> None:
        tiles = [
            self.values[value] if value in self.values else self.arguments[value, places]
            for value, places in zip(op.operands, operand_tiles(op), strict=True)
        ]
        if is_free(op):
            self.values[op.results[0]] = tiles[0]
            return
        if isinstance(op, ReduceOp) and op.exact:
            self._exact_reduction(op, tiles[0])
            return
        kind, attributes = _tile_op(op)
        self.values[op.results[0]] = self._add(kind, tiles, attributes, op)

    def _add(self, kind: type[Operation], tiles: Sequence[SSAValue], attributes: dict[str, Attribute], op: Operation) -> SSAValue:
        if KEEP_IN_DST in attributes:
            attributes = {key: value for key, value in attributes.items() if key != KEEP_IN_DST}
        attributes |= pins_of(op)
        new = kind.create(operands=tiles, result_types=[_tile(op.results[0])], attributes=attributes, location=op.location)
        new.results[0].name_hint = op.results[0].name_hint
        append(new, self.body)
        return new.results[0]

    def _exact_reduction(self, op: ReduceOp, tile: SSAValue) -> None:
        """Tiles are joined element by element, then the one that is left within itself."""
        kind = {"kind": op.attributes["kind"]}
        if op.tiles > 1:
            counts = reduced_counts(op)
            scratch = self._add(TileScratchOp, [], {}, op)
            tile = self._add(TileFoldOp, [tile, scratch], {**kind, "rows": counts[0], "cols": counts[1]}, op)
        for dim in ("col", "row") if len(op.dims) == 2 else (dim_name(op.dims),):
            tile = self._add(TileVectorReduceOp, [tile], {**kind, "dim": text_attr(dim)}, op)
        self.values[op.results[0]] = tile


def _tile_op(op: Operation) -> tuple[type[Operation], dict[str, Attribute]]:
    if isinstance(op, TensorMathOp):
        return TILE_OPS[op.SPEC.name], op.attributes
    if isinstance(op, FillBlockOp):
        row = "fill_int" if isinstance(op.attributes["value"], IntegerAttr) else "fill"
        return TILE_OPS[row], {"value": op.attributes["value"]}
    if isinstance(op, MatmulOp):
        right = shape_of(op.rhs.type)
        depth, columns = right[::-1] if TURNED_B in op.attributes else right
        return TileMatmulOp, {**op.attributes, "k": i32_attr(depth), "columns": i32_attr(columns)}
    if isinstance(op, ReduceOp):
        rows, cols = reduced_counts(op)
        attributes = {"kind": op.attributes["kind"], "rows": rows, "cols": cols}
        return TileReduceOp, {**attributes, "dim": text_attr(dim_name(op.dims))}
    if isinstance(op, BcastOp):
        return TileBcastOp, {"dim": text_attr(dim_name(op.dims))}
    assert isinstance(op, TransposeOp)
    return TileTransposeOp, {}


def reduced_counts(op: ReduceOp) -> list[Attribute]:
    """Rows and columns of tiles that one result comes from."""
    return [i32_attr(extent if dim in op.dims else 1) for dim, extent in enumerate(shape_of(op.source.type))]


def is_free(op: Operation) -> bool:
    """Needs no call: the unpacker and the packer convert, and a whole tile is repeated by reading it again."""
    if isinstance(op, BcastOp):
        return not op.dims
    if isinstance(op, ReshapeOp):
        return True
    if not isinstance(op, TensorMathOp) or op.SPEC.name != "typecast":
        return False
    return (text_value(op, "source"), text_value(op, "dtype")) in FREE_TYPECASTS


def dim_name(dims: tuple[int, ...]) -> str:
    """``row``: one value per row (a column vector); ``col``: one per column; ``scalar``: one."""
    if len(dims) == 2:
        return "scalar"
    return "row" if dims[0] == 1 else "col"
