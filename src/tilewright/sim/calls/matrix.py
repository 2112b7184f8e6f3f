"""The matrix unit on buffers: copies, element-wise arithmetic and its forms that reuse DST.

The unpacker part of a call puts its operands into the source queue; the math part takes them out.
"""

from __future__ import annotations

from tilewright.machine.processes import Wait
from tilewright.sim.buffers import Buffer
from tilewright.sim.calls.setup import need_mode, need_source, set_mode
from tilewright.sim.exact_arithmetic import INTEGER_DTYPES
from tilewright.sim.faults import fault
from tilewright.sim.machine import Machine
from tilewright.sim.registers import SourceTiles
from tilewright.sim.registry import Site, call

ARITHMETIC = ("add", "sub", "mul")


def need_float_source(site: Site, buffer: Buffer) -> None:
    if buffer.unpack_to_dest:
        raise fault(
            "TW511", site, f"{buffer.label} is unpacked straight to DST and cannot be an operand of the matrix unit",
            help="use a second buffer without unpack-to-dest, or copy the tile and use the vector unit",
        )  # fmt: skip
    if buffer.dtype in INTEGER_DTYPES:
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
    direct = buffer.unpack_to_dest or buffer.dtype in INTEGER_DTYPES
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
