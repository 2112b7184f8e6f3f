"""Broadcasts and transposition on the matrix unit: operand B's row 0, column 0 or element [0][0] stands for the whole tile."""

from __future__ import annotations

from itertools import product

from tilewright.dtypes import INTEGERS
from tilewright.machine.threads import Wait
from tilewright.sim.buffers import Buffer
from tilewright.sim.calls.matrix import ARITHMETIC, need_wide_dst, unpack_operands
from tilewright.sim.calls.setup import configure, need_mode, need_source, set_mode
from tilewright.sim.calls.vector import need_vector
from tilewright.sim.machine import Machine
from tilewright.sim.registers import SourceTiles
from tilewright.sim.registry import Site, call, fault

DIMS = {"rows": "row", "cols": "col", "scalar": "scalar"}
WORDS = {"ROW": "row", "COL": "col", "SCALAR": "scalar", "NONE": "none"}

CALLS = tuple(f"{kind}_tiles_bcast_{dim}" for kind, dim in product(ARITHMETIC, DIMS))
INITS = (
    *(f"{kind}_bcast_{dim}_init_short" for kind, dim in product(ARITHMETIC, DIMS)),
    *(f"{kind}_bcast_{dim}_init" for kind, dim in product(ARITHMETIC, DIMS)),
    *(f"{kind}_tiles_bcast_{dim}_init_short" for kind, dim in product(ARITHMETIC, DIMS)),
)


def form_of(site: Site) -> tuple[str, str]:
    """Operation and dimension, from the name, or from the template arguments of the generic spelling."""
    if site.plan is None:
        dim = next((DIMS[word] for word in DIMS if f"_{word}" in site.name), "")
        site.plan = (site.name[:3], dim or template_dim(site))
    return site.plan


def template_dim(site: Site) -> str:
    for word, dim in WORDS.items():
        if any(f"BroadcastType::{word}" in text for text in site.template):
            return dim
    raise fault("TW514", site, "its template arguments name no BroadcastType")


@call(*INITS, on="um")
def init_broadcast(machine: Machine, site: Site, first: Buffer, second: Buffer) -> None:
    kind, dim = form_of(site)
    set_mode(machine, site, ("pair", dim) if site.role == "u" else ("elementwise", kind, dim))


@call(*CALLS, on="u")
def unpack_broadcast(
    machine: Machine, site: Site, first: Buffer, second: Buffer, first_tile: int, second_tile: int, index: int
) -> Wait | None:
    if wait := machine.sources.full(site):
        return wait
    kind, dim = form_of(site)
    need_mode(machine, site, ("pair", dim), f"{kind}_bcast_{dim} init")
    return unpack_operands(machine, site, first, second, first_tile, second_tile)


@call(*CALLS, on="m")
def math_broadcast(
    machine: Machine, site: Site, first: Buffer, second: Buffer, first_tile: int, second_tile: int, index: int
) -> Wait | None:
    if wait := machine.sources.empty(site):
        return wait
    kind, dim = form_of(site)
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
