"""Matrix products. in0 goes through SrcB and in1 through SrcA; DST accumulates."""

from __future__ import annotations

from typing import Any

from tilewright.machine.processes import Wait
from tilewright.sim.buffers import Buffer
from tilewright.sim.calls.matrix import need_float_source
from tilewright.sim.calls.setup import configure, need_mode, need_source, set_mode
from tilewright.sim.machine import Machine
from tilewright.sim.registers import SourceTiles
from tilewright.sim.registry import Site, call

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
