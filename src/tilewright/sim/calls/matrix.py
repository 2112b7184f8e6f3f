"""The matrix unit on buffers: copies, element-wise arithmetic and its forms that reuse DST, products, reductions, broadcasts,
transposition.

The unpacker part of a call puts its operands into the source queue; the math part takes them out. In a broadcast, operand B's
row 0, column 0 or element [0][0] stands for the whole tile.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from tilewright.dtypes import INTEGERS
from tilewright.machine.threads import Wait
from tilewright.sim.buffers import Buffer
from tilewright.sim.calls.setup import configure, need_mode, need_source, set_mode
from tilewright.sim.calls.vector import need_vector
from tilewright.sim.machine import Machine, SourceTiles
from tilewright.sim.registry import Site, call, earlier, fault

ARITHMETIC = ("add", "sub", "mul")


def need_float_source(site: Site, buffer: Buffer) -> None:
    if buffer.unpack_to_dest:
        raise fault(
            "TW511", site, f"{buffer.label} is unpacked straight to DST and cannot be an operand of the matrix unit",
            help="use a second buffer without unpack-to-dest, or copy the tile and use the vector unit",
        )  # fmt: skip
    if buffer.dtype in INTEGERS:
        raise fault("TW511", site, f"{buffer.label} holds {buffer.dtype}; the matrix unit works on floats")


def need_wide_dst(machine: Machine, site: Site, buffer: Buffer) -> None:
    narrow = not machine.program.config.fp32_dest_acc_en
    if narrow and (buffer.dtype in ("i32", "u32", "u8") or buffer.unpack_to_dest):
        raise fault(
            "TW511", site, f"{buffer.label} holds {buffer.dtype}, which only a 32-bit DST can take as it is",
            help="set fp32_dest_acc",
        )  # fmt: skip


@call("copy_tile_init", "copy_tile_to_dst_init_short", on="um")
def init_copy(machine: Machine, site: Site, buffer: Buffer) -> None:
    set_mode(machine, site, ("copy", buffer.unpack_to_dest))


@call("copy_tile", on="u")
def unpack_copy(machine: Machine, site: Site, buffer: Buffer, tile: int, index: int) -> Wait | None:
    if wait := machine.sources.full(site):
        return wait
    need_mode(machine, site, ("copy", buffer.unpack_to_dest), f"copy_tile_init({buffer.name})")
    need_source(machine, site, "a", buffer)
    need_wide_dst(machine, site, buffer)
    data = buffer.front(site, tile)
    direct = buffer.unpack_to_dest or buffer.dtype in INTEGERS
    if direct:
        source = machine.arithmetic.straight_to_dst(data, buffer.dtype, unpack_to_dest=buffer.unpack_to_dest)
    else:
        source = machine.arithmetic.to_source(data, buffer.dtype)
    return machine.sources.put(SourceTiles(site.name, source, None, direct=direct))


@call("copy_tile", on="m")
def math_copy(machine: Machine, site: Site, buffer: Buffer, tile: int, index: int) -> Wait | None:
    if wait := machine.sources.empty(site):
        return wait
    need_mode(machine, site, ("copy", buffer.unpack_to_dest), f"copy_tile_init({buffer.name})")
    tiles = machine.sources.take(site)
    machine.dst.put(site, index, tiles.a if tiles.direct else machine.arithmetic.copy(tiles.a))
    return None


@call("add_tiles_init", "sub_tiles_init", "mul_tiles_init", on="um")
def init_elementwise(machine: Machine, site: Site, first: Buffer, second: Buffer) -> None:
    mode = ("pair", "none") if site.role == "u" else ("elementwise", site.name[:3], "none")
    set_mode(machine, site, mode, accumulate=bool(site.attributes.get("acc_to_dest", False)))


@call("add_tiles", "sub_tiles", "mul_tiles", on="u")
def unpack_pair(
    machine: Machine, site: Site, first: Buffer, second: Buffer, first_tile: int, second_tile: int, index: int
) -> Wait | None:
    if wait := machine.sources.full(site):
        return wait
    need_mode(machine, site, ("pair", "none"), f"{site.name}_init")
    return unpack_operands(machine, site, first, second, first_tile, second_tile)


def unpack_operands(machine: Machine, site: Site, in_a: Buffer, in_b: Buffer, tile_a: int, tile_b: int) -> None:
    """Fill SrcA and SrcB from two buffers."""
    for register, buffer in (("a", in_a), ("b", in_b)):
        need_float_source(site, buffer)
        need_source(machine, site, register, buffer)
    arithmetic = machine.arithmetic
    a = arithmetic.to_source(in_a.front(site, tile_a), in_a.dtype)
    b = arithmetic.to_source(in_b.front(site, tile_b), in_b.dtype)
    machine.sources.put(SourceTiles(site.name, a, b))


@call("add_tiles", "sub_tiles", "mul_tiles", on="m")
def math_pair(
    machine: Machine, site: Site, first: Buffer, second: Buffer, first_tile: int, second_tile: int, index: int
) -> Wait | None:
    if wait := machine.sources.empty(site):
        return wait
    kind = site.name[:3]
    need_mode(machine, site, ("elementwise", kind, "none"), f"{site.name}_init")
    tiles = machine.sources.take(site)
    accumulate = kind == "mul" or machine.matrix["m"].accumulate
    old = machine.dst.old(site, index)
    result = machine.arithmetic.binary(kind, tiles.a, tiles.b, old, accumulate=accumulate)
    machine.dst.put(site, index, result, reduced=accumulate and machine.dst.is_reduced(index))
    return None


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


@call("binary_dest_reuse_tiles_init", on="um")
def init_reuse(machine: Machine, site: Site, buffer: Buffer) -> None:
    kind, side = reuse_form(site)
    set_mode(machine, site, ("reuse", side) if site.role == "u" else ("reuse", kind, side))


@call("binary_dest_reuse_tiles", on="u")
def unpack_reuse(machine: Machine, site: Site, buffer: Buffer, tile: int, index: int) -> Wait | None:
    if wait := machine.sources.full(site):
        return wait
    _, side = reuse_form(site)
    need_mode(machine, site, ("reuse", side), "binary_dest_reuse_tiles_init")
    need_float_source(site, buffer)
    need_source(machine, site, "b" if side == "a" else "a", buffer)
    return machine.sources.put(SourceTiles(site.name, machine.arithmetic.to_source(buffer.front(site, tile), buffer.dtype), None))


@call("binary_dest_reuse_tiles", on="m")
def math_reuse(machine: Machine, site: Site, buffer: Buffer, tile: int, index: int) -> Wait | None:
    """DST op buffer (DEST_TO_SRCA) or buffer op DST, in place; a product starts from zero."""
    if wait := machine.sources.empty(site):
        return wait
    kind, side = reuse_form(site)
    need_mode(machine, site, ("reuse", kind, side), "binary_dest_reuse_tiles_init")
    other = machine.sources.take(site).a
    setup = machine.matrix["m"]
    source = setup.source_a if side == "a" else setup.source_b
    assert source is not None, "the unpacker has checked the other register, and start-up sets both"
    moved = machine.arithmetic.dst_to_source(machine.dst.get(site, index), source)
    a, b = (moved, other) if side == "a" else (other, moved)
    result = machine.arithmetic.binary(kind, a, b, None, accumulate=kind == "mul")
    machine.dst.put(site, index, result, reduced=machine.dst.is_reduced(index))
    return None


MOST_UNPACKED = 4096  # tiles kept, all cores together


def block_shape(site: Site) -> tuple[int, int, int]:
    """Tiles down, across and along k of one matmul_block."""
    attributes = site.attributes
    return attributes.get("rt", 1), attributes.get("ct", 1), attributes.get("kt", 1)


def transposes(site: Site) -> bool:
    return bool(site.attributes.get("transpose", False))


@call("mm_init", "mm_block_init", on="ump")
def start_product(machine: Machine, site: Site, in0: Buffer, in1: Buffer, output: Buffer) -> None:
    """Start-up and init in one: formats of all engines."""
    if site.role == "p":
        machine.packer.format = output.format
        return
    configure(machine, site, in1, in0)
    init_product(machine, site, in0, in1)


@call("mm_init_short", "mm_block_init_short", "matmul_init", "matmul_block_init", on="um")
def init_product(machine: Machine, site: Site, in0: Buffer, in1: Buffer) -> None:
    mode: tuple[Any, ...] = ("matmul", transposes(site))
    if "block" in site.name:
        mode = ("matmul block", transposes(site), *block_shape(site))
    set_mode(machine, site, mode)


def unpacked(machine: Machine, site: Site, buffer: Buffer, tile: int) -> Any:
    """A source tile; product loops unpack the same tile many times, and tiles in L1 never change."""
    data = buffer.front(site, tile)
    known = machine.unpacked
    if id(data) not in known:
        if len(known) * machine.core_count >= MOST_UNPACKED:
            known.clear()
        known[id(data)] = (data, machine.arithmetic.to_source(data, buffer.dtype))
    return known[id(data)][1]


def unpack_product(machine: Machine, site: Site, in0: Buffer, in1: Buffer, tiles0: list[int], tiles1: list[int]) -> None:
    """SrcB gets a column of in0 tiles, SrcA a row of in1 tiles."""
    for register, buffer in (("b", in0), ("a", in1)):
        need_float_source(site, buffer)
        need_source(machine, site, register, buffer)
    down = [unpacked(machine, site, in0, tile) for tile in tiles0]
    across = [unpacked(machine, site, in1, tile) for tile in tiles1]
    if transposes(site):
        across = [machine.arithmetic.turned(tile) for tile in across]
    machine.sources.put(SourceTiles(site.name, across, down))


@call("matmul_tiles", on="u")
def unpack_matmul(machine: Machine, site: Site, in0: Buffer, in1: Buffer, tile0: int, tile1: int, index: int) -> Wait | None:
    if wait := machine.sources.full(site):
        return wait
    need_mode(machine, site, ("matmul", transposes(site)), "mm_init_short")
    return unpack_product(machine, site, in0, in1, [tile0], [tile1])


@call("matmul_tiles", on="m")
def math_matmul(machine: Machine, site: Site, in0: Buffer, in1: Buffer, tile0: int, tile1: int, index: int) -> Wait | None:
    if wait := machine.sources.empty(site):
        return wait
    need_mode(machine, site, ("matmul", transposes(site)), "mm_init_short")
    tiles = machine.sources.take(site)
    machine.dst.multiply(site, (index, 1, 1), (tiles.b, tiles.a))
    return None


@call("matmul_block", on="u")
def unpack_matmul_block(
    machine: Machine, site: Site, in0: Buffer, in1: Buffer, tile0: int, tile1: int, index: int
) -> Wait | None:
    if wait := machine.sources.full(site):
        return wait
    down, across, inner = block_shape(site)
    need_mode(machine, site, ("matmul block", transposes(site), down, across, inner), "mm_block_init_short")
    tiles0 = [tile0 + row * inner for row in range(down)]
    return unpack_product(machine, site, in0, in1, tiles0, list(range(tile1, tile1 + across)))


@call("matmul_block", on="m")
def math_matmul_block(machine: Machine, site: Site, in0: Buffer, in1: Buffer, tile0: int, tile1: int, index: int) -> Wait | None:
    """One k step: output tile (r, c) is DST[index + r * across + c]."""
    if wait := machine.sources.empty(site):
        return wait
    down, across, inner = block_shape(site)
    need_mode(machine, site, ("matmul block", transposes(site), down, across, inner), "mm_block_init_short")
    tiles = machine.sources.take(site)
    machine.dst.multiply(site, (index, down, across), (tiles.b, tiles.a))
    return None


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


@call("reduce_init", on="ump")
def init_reduce(machine: Machine, site: Site, data: Buffer, scaler: Buffer, output: Buffer) -> None:
    pool, dim = reduction_of(site)
    if site.role == "p":
        machine.packer.reduced = dim
        return
    set_mode(machine, site, ("reduce", pool, dim))


@call("reduce_uninit", on="p")
def uninit_reduce(machine: Machine, site: Site, *_: Buffer) -> None:
    machine.packer.reduced = ""


@call("reduce_tile", on="u")
def unpack_reduce(
    machine: Machine, site: Site, data: Buffer, scaler: Buffer, tile: int, scaler_tile: int, index: int
) -> Wait | None:
    """Sums along rows are matrix products: the scaler is then in SrcA and the data in SrcB."""
    if wait := machine.sources.full(site):
        return wait
    pool, dim = reduction_of(site)
    need_mode(machine, site, ("reduce", pool, dim), "reduce_init")
    swapped = dim == "row" and pool != "max"
    for register, buffer in (("b" if swapped else "a", data), ("a" if swapped else "b", scaler)):
        need_float_source(site, buffer)
        need_source(machine, site, register, buffer)
    arithmetic = machine.arithmetic
    values = arithmetic.to_source(data.front(site, tile), data.dtype)
    factors = arithmetic.to_source(scaler.front(site, scaler_tile), scaler.dtype)
    return machine.sources.put(SourceTiles(site.name, values, factors))


@call("reduce_tile", on="m")
def math_reduce(
    machine: Machine, site: Site, data: Buffer, scaler: Buffer, tile: int, scaler_tile: int, index: int
) -> Wait | None:
    if wait := machine.sources.empty(site):
        return wait
    pool, dim = reduction_of(site)
    need_mode(machine, site, ("reduce", pool, dim), "reduce_init")
    tiles = machine.sources.take(site)
    old = machine.dst.old(site, index)
    result = machine.arithmetic.reduce(tiles.a, tiles.b, old, pool=pool, dim=dim, dtype=data.dtype)
    machine.dst.put(site, index, result, reduced=True)
    return None


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
        raise fault(
            "TW503", site, f"sfpu_reduce_init prepared another reduction than {pool}",
            help="give call and init the same template arguments", notes=earlier("the init that is in force", init),
        )  # fmt: skip
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


@call(*BROADCAST_INITS, on="um")
def init_broadcast(machine: Machine, site: Site, first: Buffer, second: Buffer) -> None:
    kind, dim = broadcast_of(site)
    set_mode(machine, site, ("pair", dim) if site.role == "u" else ("elementwise", kind, dim))


@call(*BROADCASTS, on="u")
def unpack_broadcast(
    machine: Machine, site: Site, first: Buffer, second: Buffer, first_tile: int, second_tile: int, index: int
) -> Wait | None:
    if wait := machine.sources.full(site):
        return wait
    kind, dim = broadcast_of(site)
    need_mode(machine, site, ("pair", dim), f"{kind}_bcast_{dim} init")
    return unpack_operands(machine, site, first, second, first_tile, second_tile)


@call(*BROADCASTS, on="m")
def math_broadcast(
    machine: Machine, site: Site, first: Buffer, second: Buffer, first_tile: int, second_tile: int, index: int
) -> Wait | None:
    if wait := machine.sources.empty(site):
        return wait
    kind, dim = broadcast_of(site)
    need_mode(machine, site, ("elementwise", kind, dim), f"{kind}_bcast_{dim} init")
    tiles = machine.sources.take(site)
    spread = machine.arithmetic.broadcast(tiles.b, dim, site.attributes.get("bcast_row_idx", 0))
    old = machine.dst.old(site, index)
    result = machine.arithmetic.binary(kind, tiles.a, spread, old, accumulate=kind == "mul")
    machine.dst.put(site, index, result, reduced=kind == "mul" and machine.dst.is_reduced(index))
    return None


@call("unary_bcast_init", on="um")
def init_unary_broadcast(machine: Machine, site: Site, buffer: Buffer) -> None:
    set_mode(machine, site, ("unary broadcast", template_dim(site)))


@call("unary_bcast", on="u")
def unpack_unary_broadcast(machine: Machine, site: Site, buffer: Buffer, tile: int, index: int) -> Wait | None:
    if wait := machine.sources.full(site):
        return wait
    need_mode(machine, site, ("unary broadcast", template_dim(site)), "unary_bcast_init")
    return unpack_moved(machine, site, buffer, tile, register="b")


def unpack_moved(machine: Machine, site: Site, buffer: Buffer, tile: int, *, register: str) -> None:
    """One tile on its way to DST that the matrix unit only rearranges."""
    need_source(machine, site, register, buffer)
    need_wide_dst(machine, site, buffer)
    data = buffer.front(site, tile)
    direct = buffer.unpack_to_dest or buffer.dtype in INTEGERS
    if direct:
        value = machine.arithmetic.straight_to_dst(data, buffer.dtype, unpack_to_dest=buffer.unpack_to_dest)
    else:
        value = machine.arithmetic.to_source(data, buffer.dtype)
    machine.sources.put(SourceTiles(site.name, value, None, direct=direct))


@call("unary_bcast", on="m")
def math_unary_broadcast(machine: Machine, site: Site, buffer: Buffer, tile: int, index: int) -> Wait | None:
    if wait := machine.sources.empty(site):
        return wait
    dim = template_dim(site)
    need_mode(machine, site, ("unary broadcast", dim), "unary_bcast_init")
    if dim == "row" and machine.program.config.fp32_dest_acc_en and not buffer.unpack_to_dest:
        raise fault(
            "TW511", site, f"rows of {buffer.label} are broadcast into 32-bit DST: the device gives wrong values",
            help="use 16-bit DST, or an f32 buffer that is unpacked straight to DST",
        )  # fmt: skip
    tiles = machine.sources.take(site)
    machine.dst.put(site, index, machine.arithmetic.unary_broadcast(tiles.a, dim, direct=tiles.direct))
    return None


@call("transpose_wh_init", on="ump")
def start_transpose(machine: Machine, site: Site, buffer: Buffer, output: Buffer) -> None:
    if site.role == "p":
        machine.packer.format = output.format
        return
    configure(machine, site, buffer, buffer)
    set_mode(machine, site, ("transpose",))


@call("transpose_wh_init_short", on="um")
def init_transpose(machine: Machine, site: Site, buffer: Buffer) -> None:
    set_mode(machine, site, ("transpose",))


@call("transpose_wh_tile", on="u")
def unpack_transpose(machine: Machine, site: Site, buffer: Buffer, tile: int, index: int) -> Wait | None:
    if wait := machine.sources.full(site):
        return wait
    need_mode(machine, site, ("transpose",), "transpose_wh_init_short")
    return unpack_moved(machine, site, buffer, tile, register="a")


@call("transpose_wh_tile", on="m")
def math_transpose(machine: Machine, site: Site, buffer: Buffer, tile: int, index: int) -> Wait | None:
    if wait := machine.sources.empty(site):
        return wait
    need_mode(machine, site, ("transpose",), "transpose_wh_init_short")
    tiles = machine.sources.take(site)
    machine.dst.put(site, index, machine.arithmetic.transpose(tiles.a, direct=tiles.direct))
    return None


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
