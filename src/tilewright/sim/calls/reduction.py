"""reduce_tile: pooling of a tile with a tile of scalers, and the packer's edge mask that goes with it; sfpu_reduce."""

from __future__ import annotations

from tilewright.machine.processes import Wait
from tilewright.sim.buffers import Buffer
from tilewright.sim.calls.matrix import need_float_source
from tilewright.sim.calls.setup import need_mode, need_source, set_mode
from tilewright.sim.calls.vector import need_vector
from tilewright.sim.faults import earlier, fault
from tilewright.sim.machine import Machine
from tilewright.sim.registers import SourceTiles
from tilewright.sim.registry import Site, call

POOLS = ("SUM", "AVG", "MAX", "MIN")
DIMS = ("ROW", "COL", "SCALAR")


def form_of(site: Site) -> tuple[str, str]:
    """Pool and dimension from the template arguments."""
    if site.plan is None:
        words = " ".join(site.template)
        pool = next((pool.lower() for pool in POOLS if f"PoolType::{pool}" in words), "")
        dim = next((dim.lower() for dim in DIMS if f"ReduceDim::REDUCE_{dim}" in words), "")
        if not pool or not dim:
            raise fault("TW514", site, f"template arguments '{words}' name no PoolType and ReduceDim")
        site.plan = (pool, dim)
    return site.plan


@call("reduce_init", on="ump")
def init_reduce(machine: Machine, site: Site, data: Buffer, scaler: Buffer, output: Buffer) -> None:
    pool, dim = form_of(site)
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
    pool, dim = form_of(site)
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
    pool, dim = form_of(site)
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
    pool, dim = form_of(site)
    init = machine.vector.site
    if init is not None and f"PoolType::{pool.upper()}" not in " ".join(init.template):
        raise fault(
            "TW503", site, f"sfpu_reduce_init prepared another reduction than {pool}",
            help="give call and init the same template arguments", notes=earlier("the init that is in force", init),
        )  # fmt: skip
    dst = machine.dst
    dst.put(site, index, machine.arithmetic.vector_reduce(pool, dim, dst.get(site, index)), reduced=dst.is_reduced(index))
