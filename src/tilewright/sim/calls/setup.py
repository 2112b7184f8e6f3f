"""Start-up, data formats and the inits of the matrix unit and packer.

Inits do not change formats and formats do not change modes; each engine remembers the last of each.
"""

from __future__ import annotations

from typing import Any

from tilewright.sim.arithmetic import Format
from tilewright.sim.buffers import Buffer
from tilewright.sim.machine import Machine
from tilewright.sim.registry import Site, call, earlier, fault

RECORDED = ("matmul_tiles", "matmul_block", "reduce_tile", "transpose_wh_tile")


def _adds_rows(site: Site) -> bool:
    return any("SUM" in word for word in site.template) and any("REDUCE_ROW" in word for word in site.template)


def set_mode(machine: Machine, site: Site, mode: tuple[Any, ...], *, accumulate: bool = False) -> None:
    setup = machine.matrix[site.role]
    setup.mode = mode
    setup.site = site
    setup.accumulate = accumulate
    setup.replay_taken = ""


def need_mode(machine: Machine, site: Site, mode: tuple[Any, ...], init: str) -> None:
    """The unpacker or matrix unit must have been set up for this call last."""
    setup = machine.matrix[site.role]
    if setup.replay_taken and site.name in RECORDED and not (site.name == "reduce_tile" and not _adds_rows(site)):
        message = f"{setup.replay_taken} has overwritten its instructions in the replay buffer"
        raise fault("TW503", site, message, help=f"call {init} again before it")
    if setup.mode == mode:
        return
    engine = "unpacker" if site.role == "u" else "matrix unit"
    if setup.mode is None:
        found = f"the {engine} was never set up"
    else:
        found = f"the {engine} was last set up by {setup.site.name if setup.site else 'another call'}"
    remedy = f"call {init} before it"
    raise fault("TW503", site, f"{found}, not by {init}", help=remedy, notes=earlier("the init that is in force", setup.site))


def need_source(machine: Machine, site: Site, register: str, buffer: Buffer) -> None:
    """A source register must be configured for the format of the buffer it is filled from."""
    setup = machine.matrix[site.role]
    found = setup.source_a if register == "a" else setup.source_b
    if found == buffer.format:
        return
    name = f"Src{register.upper()}"
    if found is None:
        remedy = "call init_sfpu or binary_op_init_common at the start of the kernel"
        raise fault("TW503", site, f"{name} was never configured", help=remedy)
    message = f"{buffer.label} holds {format_text(buffer.format)}, but {name} is configured for {format_text(found)}"
    raise fault("TW511", site, message, help=f"call reconfig_data_format_src{register}({buffer.name}) first")


def format_text(kind: Format) -> str:
    return f"{kind[0]} unpacked to DST" if kind[1] else kind[0]


@call("init_sfpu", "unary_op_init_common", on="ump")
def start_unary(machine: Machine, site: Site, source: Buffer, output: Buffer) -> None:
    """Formats of all engines; also prepares copy_tile."""
    if site.role == "p":
        machine.packer.format = output.format
        return
    configure(machine, site, source, source)
    set_mode(machine, site, ("copy", source.unpack_to_dest))


@call("binary_op_init_common", on="ump")
def start_binary(machine: Machine, site: Site, first: Buffer, second: Buffer, output: Buffer) -> None:
    if site.role == "p":
        machine.packer.format = output.format
        return
    configure(machine, site, first, second)


def configure(machine: Machine, site: Site, first: Buffer | None, second: Buffer | None) -> None:
    setup = machine.matrix[site.role]
    if first is not None:
        setup.source_a = first.format
    if second is not None:
        setup.source_b = second.format


@call("reconfig_data_format", on="um")
def reconfigure_both(machine: Machine, site: Site, first: Buffer, second: Buffer) -> None:
    configure(machine, site, first, second)


@call("reconfig_data_format_srca", on="um")
def reconfigure_a(machine: Machine, site: Site, buffer: Buffer) -> None:
    configure(machine, site, buffer, None)


@call("reconfig_data_format_srcb", on="um")
def reconfigure_b(machine: Machine, site: Site, buffer: Buffer) -> None:
    configure(machine, site, None, buffer)


@call("pack_reconfig_data_format", on="p")
def reconfigure_packer(machine: Machine, site: Site, buffer: Buffer) -> None:
    machine.packer.format = buffer.format
