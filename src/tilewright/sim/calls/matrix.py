"""The matrix unit on buffers: copies, element-wise arithmetic and its forms that reuse DST, products, reductions, broadcasts,
transposition.

The unpacker part of a call puts its operands into the source queue; the math part takes them out. In a broadcast, operand B's
row 0, column 0 or element [0][0] stands for the whole tile.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from tilewright.dialects.ttkernel import DATA_IN_SRCA
from tilewright.dtypes import INTEGERS
from tilewright.machine.threads import Wait
from tilewright.records import record
from tilewright.sim.buffers import Buffer
from tilewright.sim.calls.setup import configure, need_mode, need_source, set_mode
from tilewright.sim.calls.vector import need_vector
from tilewright.sim.machine import Machine, SourceTiles
from tilewright.sim.registry import Site, call, earlier, fault

ARITHMETIC = ("add", "sub", "mul")


def need_float_source(site: Site, buffer: Buffer) -> None:
    if buffer.unpack_to_dest:
        message = f"{buffer.label} is unpacked straight to DST and cannot be an operand of the matrix unit"
        remedy = "use a second buffer without unpack-to-dest, or copy the tile and use the vector unit"
        raise fault("TW511", site, message, help=remedy)
    if buffer.dtype in INTEGERS:
        raise fault("TW511", site, f"{buffer.label} holds {buffer.dtype}; the matrix unit works on floats")


def need_wide_dst(machine: Machine, site: Site, buffer: Buffer) -> None:
    narrow = not machine.program.config.fp32_dest_acc_en
    if narrow and (buffer.dtype in ("i32", "u32", "u8") or buffer.unpack_to_dest):
        remedy = "set fp32_dest_acc"
        raise fault("TW511", site, f"{buffer.label} holds {buffer.dtype}, which only a 32-bit DST can take as it is", help=remedy)


Unpack = Callable[..., SourceTiles]  # of machine, site and operands
Compute = Callable[..., None]  # of machine, site, what was unpacked, and operands


@record
class Form:
    """Calls that one init prepares: the mode that it leaves in the engine of a site, and what messages call it.

    The unpacker's part of a call waits for a free bank of the source registers, the math part until one is filled. Both need the
    mode.
    """

    mode: Callable[[Site, Buffer], tuple[Any, ...]]
    init: Callable[[Site, Buffer], str]

    def prepare(self, machine: Machine, site: Site, first: Buffer, *others: Buffer) -> None:
        set_mode(machine, site, self.mode(site, first), accumulate=bool(site.attributes.get("acc_to_dest", False)))

    def unpacks(self, *names: str) -> Callable[[Unpack], Unpack]:
        def register(function: Unpack) -> Unpack:
            def part(machine: Machine, site: Site, first: Buffer, *operands: Any) -> Wait | None:
                if wait := machine.sources.full(site):
                    return wait
                need_mode(machine, site, self.mode(site, first), self.init(site, first))
                return machine.sources.put(function(machine, site, first, *operands))

            call(*names, on="u")(part)
            return function

        return register

    def computes(self, *names: str) -> Callable[[Compute], Compute]:
        def register(function: Compute) -> Compute:
            def part(machine: Machine, site: Site, first: Buffer, *operands: Any) -> Wait | None:
                if wait := machine.sources.empty(site):
                    return wait
                need_mode(machine, site, self.mode(site, first), self.init(site, first))
                return function(machine, site, machine.sources.take(site), first, *operands)

            call(*names, on="m")(part)
            return function

        return register


COPY = Form(lambda site, buffer: ("copy", buffer.unpack_to_dest), lambda site, buffer: f"copy_tile_init({buffer.name})")
call("copy_tile_init", "copy_tile_to_dst_init_short", on="um")(COPY.prepare)


def unpack_moved(machine: Machine, site: Site, buffer: Buffer, tile: int, *, register: str = "a") -> SourceTiles:
    """One tile on its way to DST that the matrix unit only rearranges."""
    need_source(machine, site, register, buffer)
    need_wide_dst(machine, site, buffer)
    data = buffer.front(site, tile)
    direct = buffer.unpack_to_dest or buffer.dtype in INTEGERS
    if direct:
        value = machine.arithmetic.straight_to_dst(data, buffer.dtype, unpack_to_dest=buffer.unpack_to_dest)
    else:
        value = machine.arithmetic.to_source(data, buffer.dtype)
    return SourceTiles(site.name, value, None, direct=direct)


@COPY.unpacks("copy_tile")
def unpack_copy(machine: Machine, site: Site, buffer: Buffer, tile: int, index: int) -> SourceTiles:
    return unpack_moved(machine, site, buffer, tile)


@COPY.computes("copy_tile")
def math_copy(machine: Machine, site: Site, tiles: SourceTiles, buffer: Buffer, tile: int, index: int) -> None:
    machine.dst.put(site, index, tiles.a if tiles.direct else machine.arithmetic.copy(tiles.a))


ELEMENTWISE = Form(
    lambda site, buffer: ("pair", "none") if site.role == "u" else ("elementwise", site.name[:3], "none"),
    lambda site, buffer: f"{site.name}_init",
)
PAIRS = tuple(f"{kind}_tiles" for kind in ARITHMETIC)
call(*(f"{name}_init" for name in PAIRS), on="um")(ELEMENTWISE.prepare)


def operands_of(
    machine: Machine, site: Site, in_a: Buffer, in_b: Buffer, tile_a: int, tile_b: int, *, swapped: bool
) -> SourceTiles:
    """Tiles of two buffers for SrcA and SrcB, or for SrcB and SrcA."""
    for register, buffer in (("b" if swapped else "a", in_a), ("a" if swapped else "b", in_b)):
        need_float_source(site, buffer)
        need_source(machine, site, register, buffer)
    arithmetic = machine.arithmetic
    a = arithmetic.to_source(in_a.front(site, tile_a), in_a.dtype)
    return SourceTiles(site.name, a, arithmetic.to_source(in_b.front(site, tile_b), in_b.dtype))


@ELEMENTWISE.unpacks(*PAIRS)
def unpack_pair(machine: Machine, site: Site, a: Buffer, b: Buffer, tile_a: int, tile_b: int, index: int) -> SourceTiles:
    return operands_of(machine, site, a, b, tile_a, tile_b, swapped=False)


@ELEMENTWISE.computes(*PAIRS)
def math_pair(
    machine: Machine, site: Site, tiles: SourceTiles, a: Buffer, b: Buffer, tile_a: int, tile_b: int, index: int
) -> None:
    kind = site.name[:3]
    put_pair(machine, site, kind, tiles.a, tiles.b, index, accumulate=kind == "mul" or machine.matrix["m"].accumulate)


def put_pair(machine: Machine, site: Site, kind: str, a: Any, b: Any, index: int, *, accumulate: bool) -> None:
    result = machine.arithmetic.binary(kind, a, b, machine.dst.old(site, index), accumulate=accumulate)
    machine.dst.put(site, index, result, reduced=accumulate and machine.dst.is_reduced(index))


def reuse_form(site: Site) -> tuple[str, str]:
    """Operation and register that takes DST, from the template arguments."""
    if site.plan is None:
        words = " ".join(site.template)
        kind = next((kind for kind in ARITHMETIC if f"ELW{kind.upper()}" in words), "")
        side = next((side for side in ("a", "b") if f"DEST_TO_SRC{side.upper()}" in words), "")
        if not kind or not side:
            raise fault("TW514", site, f"template arguments '{words}' do not name an operation and a side")
        site.plan = (kind, side)
    return site.plan


REUSE = Form(
    lambda site, buffer: ("reuse", *reuse_form(site)[site.role == "u" :]), lambda site, buffer: "binary_dest_reuse_tiles_init"
)
call("binary_dest_reuse_tiles_init", on="um")(REUSE.prepare)


@REUSE.unpacks("binary_dest_reuse_tiles")
def unpack_reuse(machine: Machine, site: Site, buffer: Buffer, tile: int, index: int) -> SourceTiles:
    need_float_source(site, buffer)
    need_source(machine, site, "b" if reuse_form(site)[1] == "a" else "a", buffer)
    return SourceTiles(site.name, machine.arithmetic.to_source(buffer.front(site, tile), buffer.dtype), None)


@REUSE.computes("binary_dest_reuse_tiles")
def math_reuse(machine: Machine, site: Site, tiles: SourceTiles, buffer: Buffer, tile: int, index: int) -> None:
    """DST op buffer (DEST_TO_SRCA) or buffer op DST, in place; a product starts from zero."""
    kind, side = reuse_form(site)
    setup = machine.matrix["m"]
    source = setup.source_a if side == "a" else setup.source_b
    assert source is not None, "the unpacker has checked the other register, and start-up sets both"
    moved = machine.arithmetic.dst_to_source(machine.dst.get(site, index), source)
    a, b = (moved, tiles.a) if side == "a" else (tiles.a, moved)
    result = machine.arithmetic.binary(kind, a, b, None, accumulate=kind == "mul")
    machine.dst.put(site, index, result, reduced=machine.dst.is_reduced(index))


MOST_UNPACKED = 4096  # tiles kept, all cores together


def block_shape(site: Site) -> tuple[int, int, int]:
    """Tiles down, across and along k of one matmul_block."""
    attributes = site.attributes
    return attributes.get("rt", 1), attributes.get("ct", 1), attributes.get("kt", 1)


def transposes(site: Site) -> bool:
    return bool(site.attributes.get("transpose", False))


PRODUCT = Form(
    lambda site, buffer: (
        ("matmul block", transposes(site), *block_shape(site)) if "block" in site.name else ("matmul", transposes(site))
    ),
    lambda site, buffer: "mm_block_init_short" if "block" in site.name else "mm_init_short",
)
call("mm_init_short", "mm_block_init_short", "matmul_init", "matmul_block_init", on="um")(PRODUCT.prepare)
PRODUCTS = ("matmul_tiles", "matmul_block")


@call("mm_init", "mm_block_init", on="ump")
def start_product(machine: Machine, site: Site, in0: Buffer, in1: Buffer, output: Buffer) -> None:
    """Start-up and init in one: formats of all engines."""
    if site.role == "p":
        machine.packer.format = output.format
        return
    configure(machine, site, in1, in0)
    PRODUCT.prepare(machine, site, in0)


def unpacked(machine: Machine, site: Site, buffer: Buffer, tile: int) -> Any:
    """A source tile; product loops unpack the same tile many times, and tiles in L1 never change."""
    data = buffer.front(site, tile)
    known = machine.unpacked
    if id(data) not in known:
        if len(known) * machine.core_count >= MOST_UNPACKED:
            known.clear()
        known[id(data)] = (data, machine.arithmetic.to_source(data, buffer.dtype))
    return known[id(data)][1]


@PRODUCT.unpacks(*PRODUCTS)
def unpack_product(machine: Machine, site: Site, in0: Buffer, in1: Buffer, tile0: int, tile1: int, index: int) -> SourceTiles:
    """SrcB gets a column of in0 tiles, SrcA a row of in1 tiles. One product is a block of one."""
    for register, buffer in (("b", in0), ("a", in1)):
        need_float_source(site, buffer)
        need_source(machine, site, register, buffer)
    rows, columns, inner = product_shape(site)
    down = [unpacked(machine, site, in0, tile0 + row * inner) for row in range(rows)]
    across = [unpacked(machine, site, in1, tile) for tile in range(tile1, tile1 + columns)]
    if transposes(site):
        across = [machine.arithmetic.turned(tile) for tile in across]
    return SourceTiles(site.name, across, down)


def product_shape(site: Site) -> tuple[int, int, int]:
    return block_shape(site) if site.name == "matmul_block" else (1, 1, 1)


@PRODUCT.computes(*PRODUCTS)
def math_product(
    machine: Machine, site: Site, tiles: SourceTiles, in0: Buffer, in1: Buffer, tile0: int, tile1: int, index: int
) -> None:
    """One k step: output tile (r, c) is DST[index + r * across + c]."""
    down, across, _ = product_shape(site)
    machine.dst.multiply(site, (index, down, across), (tiles.b, tiles.a))


POOLS = ("SUM", "AVG", "MAX", "MIN")
REDUCE_DIMS = ("ROW", "COL", "SCALAR")


def reduction_of(site: Site) -> tuple[str, str]:
    """Pool and dimension from the template arguments."""
    if site.plan is None:
        words = " ".join(site.template)
        pool = next((pool.lower() for pool in POOLS if f"PoolType::{pool}" in words), "")
        dim = next((dim.lower() for dim in REDUCE_DIMS if f"ReduceDim::REDUCE_{dim}" in words), "")
        if not pool or not dim:
            raise fault("TW514", site, f"template arguments '{words}' name no PoolType and ReduceDim")
        site.plan = (pool, dim)
    return site.plan


REDUCE = Form(lambda site, buffer: ("reduce", *reduction_of(site)), lambda site, buffer: "reduce_init")


@call("reduce_init", on="ump")
def init_reduce(machine: Machine, site: Site, data: Buffer, scaler: Buffer, output: Buffer) -> None:
    if site.role == "p":
        machine.packer.reduced = reduction_of(site)[1]
        return
    REDUCE.prepare(machine, site, data)


@call("reduce_uninit", on="p")
def uninit_reduce(machine: Machine, site: Site, *_: Buffer) -> None:
    machine.packer.reduced = ""


@REDUCE.unpacks("reduce_tile")
def unpack_reduce(
    machine: Machine, site: Site, data: Buffer, scaler: Buffer, tile: int, scaler_tile: int, index: int
) -> SourceTiles:
    """Sums along rows are matrix products since ttnn 0.78: the scaler is then in SrcA and the data in SrcB."""
    pool, dim = reduction_of(site)
    swapped = dim == "row" and pool != "max" and DATA_IN_SRCA not in site.attributes
    return operands_of(machine, site, data, scaler, tile, scaler_tile, swapped=swapped)


@REDUCE.computes("reduce_tile")
def math_reduce(
    machine: Machine, site: Site, tiles: SourceTiles, data: Buffer, scaler: Buffer, tile: int, scaler_tile: int, index: int
) -> None:
    pool, dim = reduction_of(site)
    old = machine.dst.old(site, index)
    result = machine.arithmetic.reduce(tiles.a, tiles.b, old, pool=pool, dim=dim, dtype=data.dtype)
    machine.dst.put(site, index, result, reduced=True)


@call("sfpu_reduce_init", on="m")
def init_vector_reduce(machine: Machine, site: Site) -> None:
    machine.vector.ready = True
    machine.vector.owner = site.name
    machine.vector.site = site


@call("sfpu_reduce", on="m")
def vector_reduce(machine: Machine, site: Site, index: int) -> None:
    """In place; the result is column 0 or row 0, the rest of the tile is no longer of use."""
    need_vector(machine, site, "sfpu_reduce_init", stateful=True)
    pool, dim = reduction_of(site)
    init = machine.vector.site
    if init is not None and f"PoolType::{pool.upper()}" not in " ".join(init.template):
        message = f"sfpu_reduce_init prepared another reduction than {pool}"
        remedy = "give call and init the same template arguments"
        raise fault("TW503", site, message, help=remedy, notes=earlier("the init that is in force", init))
    dst = machine.dst
    dst.put(site, index, machine.arithmetic.vector_reduce(pool, dim, dst.get(site, index)), reduced=dst.is_reduced(index))


BROADCAST_DIMS = {"rows": "row", "cols": "col", "scalar": "scalar"}
BROADCAST_WORDS = {"ROW": "row", "COL": "col", "SCALAR": "scalar", "NONE": "none"}

BROADCASTS = tuple(f"{kind}_tiles_bcast_{dim}" for kind, dim in product(ARITHMETIC, BROADCAST_DIMS))
BROADCAST_INITS = (
    *(f"{kind}_bcast_{dim}_init_short" for kind, dim in product(ARITHMETIC, BROADCAST_DIMS)),
    *(f"{kind}_bcast_{dim}_init" for kind, dim in product(ARITHMETIC, BROADCAST_DIMS)),
    *(f"{kind}_tiles_bcast_{dim}_init_short" for kind, dim in product(ARITHMETIC, BROADCAST_DIMS)),
)


def broadcast_of(site: Site) -> tuple[str, str]:
    """Operation and dimension, from the name, or from the template arguments of the generic spelling."""
    if site.plan is None:
        dim = next((BROADCAST_DIMS[word] for word in BROADCAST_DIMS if f"_{word}" in site.name), "")
        site.plan = (site.name[:3], dim or template_dim(site))
    return site.plan


def template_dim(site: Site) -> str:
    for word, dim in BROADCAST_WORDS.items():
        if any(f"BroadcastType::{word}" in text for text in site.template):
            return dim
    raise fault("TW514", site, "its template arguments name no BroadcastType")


BROADCAST = Form(
    lambda site, buffer: ("pair", broadcast_of(site)[1]) if site.role == "u" else ("elementwise", *broadcast_of(site)),
    lambda site, buffer: "{}_bcast_{} init".format(*broadcast_of(site)),
)
call(*BROADCAST_INITS, on="um")(BROADCAST.prepare)
BROADCAST.unpacks(*BROADCASTS)(unpack_pair)


@BROADCAST.computes(*BROADCASTS)
def math_broadcast(
    machine: Machine, site: Site, tiles: SourceTiles, a: Buffer, b: Buffer, tile_a: int, tile_b: int, index: int
) -> None:
    kind, dim = broadcast_of(site)
    spread = machine.arithmetic.broadcast(tiles.b, dim, site.attributes.get("bcast_row_idx", 0))
    put_pair(machine, site, kind, tiles.a, spread, index, accumulate=kind == "mul")


UNARY_BROADCAST = Form(lambda site, buffer: ("unary broadcast", template_dim(site)), lambda site, buffer: "unary_bcast_init")
call("unary_bcast_init", on="um")(UNARY_BROADCAST.prepare)


@call("unary_bcast_full_init", on="ump")
def prepare_unary_broadcast_anew(machine: Machine, site: Site, buffer: Buffer, output: Buffer) -> None:
    """The init of old releases starts packer and DST anew: math goes back to the first half, whichever it holds."""
    if site.role == "p":
        machine.packer.format, machine.packer.relu = output.format, None
        return
    if site.role == "m":
        machine.dst.start_anew(site)
    configure(machine, site, buffer, buffer)
    UNARY_BROADCAST.prepare(machine, site, buffer)


@UNARY_BROADCAST.unpacks("unary_bcast")
def unpack_unary_broadcast(machine: Machine, site: Site, buffer: Buffer, tile: int, index: int) -> SourceTiles:
    return unpack_moved(machine, site, buffer, tile, register="b")


@UNARY_BROADCAST.computes("unary_bcast")
def math_unary_broadcast(machine: Machine, site: Site, tiles: SourceTiles, buffer: Buffer, tile: int, index: int) -> None:
    dim = template_dim(site)
    if dim == "row" and machine.program.config.fp32_dest_acc_en and not buffer.unpack_to_dest:
        message = f"rows of {buffer.label} are broadcast into 32-bit DST: the device gives wrong values"
        raise fault("TW511", site, message, help="use 16-bit DST, or an f32 buffer that is unpacked straight to DST")
    machine.dst.put(site, index, machine.arithmetic.unary_broadcast(tiles.a, dim, direct=tiles.direct))


TRANSPOSE = Form(lambda site, buffer: ("transpose",), lambda site, buffer: "transpose_wh_init_short")
call("transpose_wh_init_short", on="um")(TRANSPOSE.prepare)
TRANSPOSE.unpacks("transpose_wh_tile")(unpack_copy)


@call("transpose_wh_init", on="ump")
def start_transpose(machine: Machine, site: Site, buffer: Buffer, output: Buffer) -> None:
    if site.role == "p":
        machine.packer.format = output.format
        return
    configure(machine, site, buffer, buffer)
    TRANSPOSE.prepare(machine, site, buffer)


@TRANSPOSE.computes("transpose_wh_tile")
def math_transpose(machine: Machine, site: Site, tiles: SourceTiles, buffer: Buffer, tile: int, index: int) -> None:
    machine.dst.put(site, index, machine.arithmetic.transpose(tiles.a, direct=tiles.direct))


VECTOR_FORMS = tuple(f"sfpu_{kind}_bcast_{dim}" for kind, dim in product(ARITHMETIC, ("row", "col")))


@call(*(f"{name}_init" for name in VECTOR_FORMS), on="m")
def init_vector_broadcast(machine: Machine, site: Site) -> None:
    """Rows and columns have one set-up each, whatever the operation."""
    machine.vector.ready = True
    machine.vector.owner = f"sfpu_bcast_{site.name.removesuffix('_init')[-3:]}_init"
    machine.vector.site = site
    machine.vector.table = False


@call(*VECTOR_FORMS, on="m")
def vector_broadcast(machine: Machine, site: Site, data: int, vector: int) -> None:
    kind, dim = site.name[5:8], site.name[-3:]
    need_vector(machine, site, f"sfpu_bcast_{dim}_init", stateful=True)
    dst = machine.dst
    result = machine.arithmetic.vector_broadcast(kind, dim, dst.get(site, data), dst.get(site, vector))
    dst.put(site, data, result, reduced=dst.is_reduced(data))
