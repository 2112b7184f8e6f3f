"""The packer: DST to L1, in order or at a given tile."""

from __future__ import annotations

from tilewright.sim.buffers import Buffer
from tilewright.sim.calls.setup import format_text
from tilewright.sim.machine import Machine
from tilewright.sim.numerics.formats import scalar_bits
from tilewright.sim.numerics.packer import Relu
from tilewright.sim.registry import Site, call, fault

SIGN_BIT = 0x8000


def need_format(machine: Machine, site: Site, buffer: Buffer) -> None:
    found = machine.packer.format
    if found is not None and found[0] == buffer.dtype:
        return
    if found is None:
        raise fault("TW503", site, "the packer was never configured", help="call init_sfpu or binary_op_init_common at the start")
    message = f"{buffer.label} holds {buffer.dtype}, but the packer is configured for {format_text(found)}"
    raise fault("TW511", site, message, help=f"call pack_reconfig_data_format({buffer.name}) first")


def store(machine: Machine, site: Site, index: int, buffer: Buffer, tile: int) -> None:
    need_format(machine, site, buffer)
    slot = buffer.back_slot(site, tile)
    setup = machine.packer
    value = machine.dst.get_packed(site, index)
    if setup.reduced:
        if not machine.dst.packs_reduced(index):
            message = f"packs DST[{index}], which is no reduction, under the edge mask of reduce_init"
            remedy = "call reduce_uninit before it: the packer writes zeros outside the result of a reduction until then"
            raise fault("TW503", site, message, help=remedy)
        value = machine.arithmetic.mask_reduced(value, setup.reduced)
    old = None
    if setup.accumulate:
        if buffer.dtype not in ("bf16", "f32"):
            raise fault("TW514", site, f"accumulates in {buffer.label}, which holds {buffer.dtype}; the packer adds bf16 and f32")
        old = buffer.stale[slot] if buffer.slots[slot] is None else buffer.slots[slot]
        if old is None:
            raise fault("TW512", site, f"accumulates onto tile {tile} of {buffer.label}, which nobody wrote")
    buffer.slots[slot] = machine.arithmetic.pack(value, buffer.dtype, relu=setup.relu, old=old)


@call("pack_tile", on="p")
def pack_tile(machine: Machine, site: Site, index: int, buffer: Buffer, tile: int) -> None:
    """In order, the tile operand is ignored and a pointer that cb_push_back resets moves on."""
    if site.attributes.get("out_of_order", False):
        store(machine, site, index, buffer, tile)
        return
    store(machine, site, index, buffer, buffer.packed)
    buffer.packed += 1


@call("pack_tile_block", on="p")
def pack_block(machine: Machine, site: Site, first: int, buffer: Buffer, count: int) -> None:
    for index in range(first, first + count):
        store(machine, site, index, buffer, buffer.packed)
        buffer.packed += 1


@call("pack_reconfig_l1_acc", on="p")
def accumulate_in_l1(machine: Machine, site: Site, enabled: int | None = None) -> None:
    machine.packer.accumulate = bool(site.attributes.get("enabled", 0) if enabled is None else enabled)


@call("pack_relu_config", on="p")
def configure_relu(machine: Machine, site: Site) -> None:
    """Attributes ``mode`` (none, zero, min, max) and ``threshold``; sticky."""
    mode = site.attributes.get("mode", "none")
    threshold = scalar_bits(float(site.attributes.get("threshold", 0.0))) >> 16
    if threshold >= SIGN_BIT:
        raise fault("TW514", site, "the threshold of the packer's ReLU must not be negative")
    machine.packer.relu = None if mode == "none" else Relu(mode, threshold)
